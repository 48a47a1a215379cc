"""The way from code to TLC: a script that the suite found failing becomes a trace, and TLC helps to class it.

The suite judges what a client saw; TLC judges what the broker wrote into its event log of the same run. Who
of the two disagrees tells what is wrong.

| a promise is broken | TLC explains the log | what is wrong |
|---|---|---|
| yes | no | the code |
| no, but the reference cannot explain what was seen | no | the model: it forbids what breaks no promise |
| either | yes | the mapping: reference and TLA+, or log and client, do not tell the same |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from conformance.session import SPEC_1
from conformance.suite import FLUSH, Failure, Suite, TargetFactory, ViolationError, examine
from conformance.traces.check import LogVerdict, check_logs
from spec.events import Event, encode


class Wrong(StrEnum):
    """What has to be mended."""

    CODE = "code"
    MODEL = "model"
    MAPPING = "mapping"


@dataclass(frozen=True, slots=True)
class Classed:
    invariant: str
    failure: Failure
    trace: Path
    """The broker's event log of that very run, for `mqproof trace-check`."""
    verdicts: tuple[LogVerdict, ...]
    wrong: Wrong

    def __str__(self) -> str:
        explained = "explains" if self.wrong is Wrong.MAPPING else "does not explain"
        return f"{self.invariant}: TLC {explained} {self.trace.name}: the {self.wrong} is wrong"


def classify(
    factory: TargetFactory,
    folder: Path,
    *,
    examples: int,
    seed: int = 0,
    suite: Suite = FLUSH,
    shrink: bool = True,
) -> tuple[Classed, ...]:
    """Examine a target that has an event log (`events`), and class what is found; nothing, if nothing is.

    Raises:
        TlcError: TLC gave no verdict.
    """
    logs: dict[tuple[str, ...], list[Event]] = {}

    def machine(target: Any, judge: Callable[[Any], None]) -> RuleBasedStateMachine:
        def noting(session: Any) -> None:
            try:
                judge(session)
            except ViolationError:
                logs[tuple(session.script())] = list(session.target.events)
                raise

        return suite.machine(target, noting)

    examination = examine(factory, examples, seed, suite=replace(suite, machine=machine), shrink=shrink)
    traces = {invariant: folder / f"{invariant}.ndjson" for invariant in examination.failures}
    for invariant, trace in traces.items():
        trace.write_bytes(b"".join(map(encode, logs[examination.failures[invariant].script])))
    checked = check_logs(list(traces.values())) if traces else ()
    found = []
    for invariant, trace in traces.items():
        verdicts = tuple(log for log in checked if log.path == trace)
        failure = examination.failures[invariant]
        found.append(Classed(invariant, failure, trace, verdicts, _wrong(invariant, verdicts)))
    return tuple(found)


def _wrong(invariant: str, verdicts: Sequence[LogVerdict]) -> Wrong:
    explained = all(log.accepted == len(log.windows) for log in verdicts)
    if explained:
        return Wrong.MAPPING
    return Wrong.MODEL if invariant == SPEC_1 else Wrong.CODE

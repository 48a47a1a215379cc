"""The way from code to TLC: a script that a suite found failing becomes a trace, and TLC helps to class it.

The suite judges what a client saw; TLC judges what the server wrote into its event log of the same run. Who
of the two disagrees tells what is wrong.

| a promise is broken | TLC explains the log | what is wrong |
|---|---|---|
| yes | no | the code |
| no, but the reference cannot explain what was seen | no | the model: it forbids what breaks no promise |
| either | yes | the mapping: client and log do not tell the same, or reference and TLA+ do not |

The last two are what to look at first. Behind either may be the code: what it does breaks no promise that has
a name, or no event tells of it, as of a pull that leaves a message out.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from mqproof.conformance.engine.examination import Examination, Failure
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.traces.check import LogVerdict, check_logs, results
from mqproof.conformance.traces.models import MODELS
from mqproof.report.model import Result, Witness
from mqproof.spec.events import EventError, encode
from mqproof.spec.tlc.errors import TlcError

_SECONDS_MAX: Final = 120.0
"""TLC needs some; what takes it longer is not classed."""


class Wrong(StrEnum):
    """What has to be mended, and why it is thought so."""

    CODE = "code wrong: TLC does not explain the event log either"
    MODEL = "model wrong, or code: no promise is broken, but TLC does not explain the event log either"
    MAPPING = "mapping wrong, or code of which no event tells: TLC explains the event log"


@dataclass(frozen=True, slots=True)
class Class:
    """What is wrong, if anybody knows."""

    wrong: Wrong | None
    why: str = ""
    """Nobody knows."""
    traces: int = 0
    """So many TLC looked at."""
    witnesses: tuple[Witness, ...] = ()
    """What TLC does not explain first."""

    def __str__(self) -> str:
        return self.wrong or f"not classed: {self.why}"


def classes(examination: Examination, folder: Path | None = None) -> dict[str, Class]:
    """A class for each invariant that was found violated. `folder` keeps the event logs of these runs, as
    violates-ID.ndjson, for `mqproof trace-check`.

    Raises:
        OSError: the folder cannot be written.
    """
    failures, model = examination.failures, examination.suite.model.removesuffix(".tla")
    if not any(known.name == model for known in MODELS):
        return _unclassed(failures, f"no event log is held against {model}")
    logged = {invariant: failure for invariant, failure in failures.items() if failure.events}
    if not logged:
        return _unclassed(failures, "the target keeps no event log")
    with ExitStack() as stack:
        kept = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mqproof-traces-")))
        logs = {invariant: kept / f"violates-{invariant}.ndjson" for invariant in logged}
        for invariant, log in logs.items():
            log.write_bytes(b"".join(map(encode, logged[invariant].events)))
        try:
            checked = check_logs(list(logs.values()), models=(model,), seconds_max=_SECONDS_MAX)
        except (TlcError, EventError) as error:
            return _unclassed(failures, str(error))
        return {
            invariant: _class(invariant, [told for told in checked if told.path == log])
            for invariant, log in logs.items()
        }


def with_classes(found: Iterable[Result], known: Mapping[str, Class]) -> tuple[Result, ...]:
    """The results with their classes at the end of the detail, and what TLC says among the witnesses."""
    return tuple(_with(result, known[result.id]) if result.id in known else result for result in found)


def _with(result: Result, told: Class) -> Result:
    return replace(result, detail=f"{result.detail}; {told}", witnesses=(*result.witnesses, *told.witnesses))


def _unclassed(failures: Mapping[str, Failure], why: str) -> dict[str, Class]:
    return dict.fromkeys(failures, Class(None, why))


def _class(invariant: str, verdicts: Sequence[LogVerdict]) -> Class:
    traces = sum(len(log.windows) for log in verdicts)
    if not traces:
        return Class(None, "the event log holds nothing that TLC could be asked about")
    refused = tuple(witness for told in results(verdicts) for witness in told.witnesses)
    if not refused:
        return Class(Wrong.MAPPING, traces=traces)
    wrong = Wrong.MODEL if invariant == SPEC_1 else Wrong.CODE
    return Class(wrong, traces=traces, witnesses=refused[:1])

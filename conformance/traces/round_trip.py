"""Classifies suite failures with TLC: the event log of a failed script becomes a trace that TLC checks.

The suite judges the observations of a client. TLC judges the server's event log of the same run. Both
verdicts together show where the defect is.

| an invariant is violated | TLC explains the log | defect |
|---|---|---|
| yes | no | the code |
| no, but the reference cannot explain the observations | no | the model: it forbids legal behaviour |
| either | yes | the mapping: client and log disagree, or reference and TLA+ do |

The last two are to be examined first. The code may still be the cause of either: its behaviour violates no
named invariant, or no event records it, as for a pull that omits a message.
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
"""Maximum time for TLC; failures that take longer are not classified."""


class Wrong(StrEnum):
    """Where the defect is, and why."""

    CODE = "code wrong: TLC does not explain the event log either"
    MODEL = "model or code wrong: no invariant is violated, but TLC does not explain the event log either"
    MAPPING = "mapping wrong, or code without events: TLC explains the event log"


@dataclass(frozen=True, slots=True)
class Class:
    """The classification of a failure."""

    wrong: Wrong | None
    why: str = ""
    """Why the failure is not classified."""
    traces: int = 0
    """Number of traces that TLC checked."""
    witnesses: tuple[Witness, ...] = ()
    """The first event that TLC does not explain."""

    def __str__(self) -> str:
        return self.wrong or f"not classified: {self.why}"


def classes(examination: Examination, folder: Path | None = None) -> dict[str, Class]:
    """Return a classification for each violated invariant.

    `folder` keeps the event logs of these runs, as violates-ID.ndjson, for `mqproof trace-check`.

    Raises:
        OSError: the folder cannot be written.
    """
    failures, model = examination.failures, examination.suite.model.removesuffix(".tla")
    if not any(known.name == model for known in MODELS):
        return _unclassed(failures, f"event logs of {model} are not checked")
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
            invariant: _class(invariant, [verdict for verdict in checked if verdict.path == log])
            for invariant, log in logs.items()
        }


def with_classes(found: Iterable[Result], known: Mapping[str, Class]) -> tuple[Result, ...]:
    """Return the results with their classification appended to the detail, and TLC's witness added."""
    return tuple(_with(result, known[result.id]) if result.id in known else result for result in found)


def _with(result: Result, classification: Class) -> Result:
    return replace(
        result,
        detail=f"{result.detail}; {classification}",
        witnesses=(*result.witnesses, *classification.witnesses),
    )


def _unclassed(failures: Mapping[str, Failure], why: str) -> dict[str, Class]:
    return dict.fromkeys(failures, Class(None, why))


def _class(invariant: str, verdicts: Sequence[LogVerdict]) -> Class:
    traces = sum(len(log.windows) for log in verdicts)
    if not traces:
        return Class(None, "the event log has no events of the model")
    refused = tuple(witness for result in results(verdicts) for witness in result.witnesses)
    if not refused:
        return Class(Wrong.MAPPING, traces=traces)
    wrong = Wrong.MODEL if invariant == SPEC_1 else Wrong.CODE
    return Class(wrong, traces=traces, witnesses=refused[:1])

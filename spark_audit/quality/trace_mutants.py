"""Deliberately broken trace readers, with proof that traces with known results detect each of them.

Traces give bounds instead of rows. So these mutants, unlike those in mutants.py, replace a function of
`sources/trace/traces.py` itself while it reads and judges.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.generator import message_traces
from mqproof.spark_audit.sources.trace import traces
from mqproof.spark_audit.sources.trace.embedded_traces import read_embedded_traces

_SKEW_US: Final = 100_000


@dataclass(frozen=True, slots=True)
class TraceMutant:
    name: str
    invariant: str
    description: str
    where: str
    """The module.attribute that is replaced."""
    wrong: Callable[..., Any]


def _judged_by_absence(invariant: str, counts: dict[str, int], text: str, judged: Any) -> Result:
    return replace(_bounded(invariant, counts, text, judged), verdict=Verdict.VIOLATED)


def _as_it_is(body: bytes, _sys_flag: int) -> str:
    return body.decode(errors="replace")


_bounded: Final = traces._result

TRACE_MUTANTS: Final[dict[str, TraceMutant]] = {
    mutant.name: mutant
    for mutant in (
        TraceMutant("AbsenceIsLoss", "DELIV-1", "reports a message without a record as lost",
                    "mqproof.spark_audit.sources.trace.traces._result", _judged_by_absence),
        TraceMutant("RolledBackIsExpected", "DELIV-1", "expects the delivery of rolled-back messages",
                    "mqproof.spark_audit.sources.trace.traces._rolled_back",
                    lambda records: records.where("false").select("msg_id")),
        TraceMutant("CompressedUnread", "DELIV-1", "does not decompress bodies",
                    "mqproof.spark_audit.sources.trace.bodies.text_of", _as_it_is),
        TraceMutant("BatchIsOneMessage", "DELIV-2", "treats the ids of a batch as one id",
                    "mqproof.spark_audit.sources.trace.traces._each_message", lambda records: records),
        TraceMutant("RepeatedTraceIsTwice", "DELIV-3", "counts a repeated trace message twice",
                    "mqproof.spark_audit.sources.trace.traces._deduplicated", lambda records: records),
        TraceMutant("AbortedMayBeRead", "DELIV-9", "ignores the outcome of transactions",
                    "mqproof.spark_audit.sources.trace.traces._transactions", lambda _records: ()),
    )
}  # fmt: skip


def judge(mutant: TraceMutant) -> Result:
    """Return HELD if the result for the mutant's invariant differs from the ground truth."""
    started = time.monotonic()
    with (
        TemporaryDirectory(prefix="mqproof-mutants-") as folder,
        active.embedded(),
        closing(Database(Path(folder))) as database,
        patch(mutant.where, mutant.wrong),
    ):
        store, text = message_traces.write_traces(Path(folder))
        read = read_embedded_traces(database, [store], [text])
        shown = traces.judge_traces(read, _SKEW_US, judged=())
    wrong = [*differences(shown)]
    caught = any(name == mutant.invariant for name, _ in wrong)
    return Result(
        id=mutant.invariant,
        name=mutant.name,
        layer="audit",
        verdict=Verdict.HELD if caught else Verdict.VIOLATED,
        counts={"injected": len(message_traces.SHOWN), "wrong": len(wrong)},
        witnesses=tuple(Witness(f"{name}: {text}") for name, text in wrong),
        detail=f"{'caught' if caught else 'survived'}: {mutant.description}",
        replay="" if caught else f"mqproof mutants --layer audit --only {mutant.name}",
        seconds=time.monotonic() - started,
    )


def differences(shown: tuple[Result, ...]) -> Iterator[tuple[str, str]]:
    """Yield the invariants whose result differs from the ground truth, with the difference."""
    found = {result.id: (result.verdict, result.counts) for result in shown}
    for invariant, counts in message_traces.SHOWN.items():
        due = Verdict.VIOLATED if counts.get("rolled_back_and_visible") else Verdict.UNKNOWN
        if found.get(invariant) != (due, counts):
            yield invariant, f"{found.get(invariant)}, expected {due}, {counts}"

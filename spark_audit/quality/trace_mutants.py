"""Deliberately broken trace readers, with proof that traces with known results detect each of them.

Traces give bounds instead of rows. So these mutants, unlike those in mutants.py, replace a function of
`traces.py` itself while it reads and judges.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spark_audit.generator import message_traces
from mqproof.spark_audit.sources import traces

_SKEW_US: Final = 100_000


@dataclass(frozen=True, slots=True)
class TraceMutant:
    name: str
    invariant: str
    story: str
    where: str
    """The module.attribute that is replaced."""
    wrong: Callable[..., Any]


def _judged_by_absence(invariant: str, counts: dict[str, int], text: str, judged: Any) -> Result:
    return replace(_bounded(invariant, counts, text, judged), verdict=Verdict.VIOLATED)


def _as_it_is(body: str, _sys_flag: str) -> Column:
    return f.col(body).cast("string")


_bounded: Final = traces._result

TRACE_MUTANTS: Final[dict[str, TraceMutant]] = {
    mutant.name: mutant
    for mutant in (
        TraceMutant("AbsenceIsLoss", "DELIV-1", "takes a record that is missing for a message that is lost",
                    "mqproof.spark_audit.sources.traces._result", _judged_by_absence),
        TraceMutant("RolledBackIsOwed", "DELIV-1", "expects that what was rolled back is delivered",
                    "mqproof.spark_audit.sources.traces._rolled_back",
                    lambda told: told.where("false").select("msg_id")),
        TraceMutant("CompressedUnread", "DELIV-1", "reads bodies as they travelled",
                    "mqproof.spark_audit.sources.bodies.text", _as_it_is),
        TraceMutant("BatchIsOneMessage", "DELIV-2", "takes the ids of a batch for one",
                    "mqproof.spark_audit.sources.traces._each_message", lambda told: told),
        TraceMutant("ToldTwiceIsTwice", "DELIV-3", "counts a trace message that is there twice as two",
                    "mqproof.spark_audit.sources.traces._told_once", lambda told: told),
        TraceMutant("AbortedMayBeRead", "DELIV-9", "does not look at what became of transactions",
                    "mqproof.spark_audit.sources.traces._transactions", lambda _told: ()),
    )
}  # fmt: skip


def judge(spark: SparkSession, mutant: TraceMutant) -> Result:
    """Return HELD if the result for the mutant's invariant differs from the ground truth."""
    started = time.monotonic()
    with TemporaryDirectory(prefix="mqproof-mutants-") as folder, patch(mutant.where, mutant.wrong):
        store, text = message_traces.write_traces(Path(folder))
        shown = traces.judge_traces(traces.read_traces(spark, [store], [text]), _SKEW_US, judged=())
    wrong = [*differences(shown)]
    caught = any(name == mutant.invariant for name, _ in wrong)
    return Result(
        id=mutant.invariant,
        name=mutant.name,
        layer="audit",
        verdict=Verdict.HELD if caught else Verdict.VIOLATED,
        counts={"planted": len(message_traces.SHOWN), "wrong": len(wrong)},
        witnesses=tuple(Witness(f"{name}: {told}") for name, told in wrong),
        detail=f"{'caught' if caught else 'survived'}: {mutant.story}",
        replay="" if caught else f"mqproof mutants --layer audit --name {mutant.name}",
        seconds=time.monotonic() - started,
    )


def differences(shown: tuple[Result, ...]) -> Iterator[tuple[str, str]]:
    """Yield the invariants whose result differs from the ground truth, with the difference."""
    found = {result.id: (result.verdict, result.counts) for result in shown}
    for invariant, counts in message_traces.SHOWN.items():
        due = Verdict.VIOLATED if counts.get("rolled_back_and_visible") else Verdict.UNKNOWN
        if found.get(invariant) != (due, counts):
            yield invariant, f"{found.get(invariant)}, expected {due}, {counts}"

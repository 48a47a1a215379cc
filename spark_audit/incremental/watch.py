"""The audit of growing logs: each batch of new input is a short incremental run.

The verdicts are those of one run over all logs, and the open messages are carried. A batch is in the state
only once. `local_watch.py` takes the batches in this process, `spark_watch.py` from a stream of Spark.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mqproof.report.printable import counted
from mqproof.spark_audit.audit import Audit, audit
from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.incremental.all_runs import certain_now
from mqproof.spark_audit.incremental.carried_state import Batch
from mqproof.spark_audit.incremental.continuation import Continuation
from mqproof.spark_audit.incremental.state_folder import (
    FORGET_US,
    UNREADABLE,
    IncrementalRun,
    newest,
    next_state,
)
from mqproof.spark_audit.judging.outcome import write_skipped
from mqproof.spark_audit.runtime.staging import staged

if TYPE_CHECKING:
    from mqproof.spark_audit.sources.embedded_read import EmbeddedLog
    from mqproof.spark_audit.sources.read import Log

_REPORTED: Final = "reported"
"""A file in a state: its violations were reported."""
_REPORTED_FORMERLY: Final = "told"
"""The name of this file in the states of versions up to 0.2.0."""


@dataclass(frozen=True, slots=True)
class Source:
    """The watched inputs: folders of NDJSON or Parquet files, and topics with NDJSON messages."""

    folders: tuple[Path, ...] = ()
    topics: Mapping[str, str] | None = None
    """Options of the `rocketmq` format."""


ReportViolation = Callable[[Mapping[str, Any]], None]
"""Receives a violation, a row of schema.FINDING_COLUMNS, when no row of the last `late_us` can change it."""

AfterBatch = Callable[[Audit, Path, float], None]
"""Receives the audit of a batch, the state that it left, and its duration in seconds."""


@dataclass(frozen=True, slots=True)
class Watch:
    source: Source
    state: Path
    """The folder for the carried state."""
    late_us: int
    options: Options = field(default_factory=Options)
    every_s: float = 60.0
    once: bool = False
    """Process the existing input, in one batch or several, and end."""
    checks: Mapping[str, Check] = field(default_factory=lambda: EVENT_CHECKS)
    forget_us: int = FORGET_US
    batch_bytes: int = 256 << 20
    """Maximum bytes of files in a batch; a single larger file is still processed."""
    batch_messages: int = 100_000
    poll: Callable[[], None] | None = None
    """Called about every second while the watch waits; what it raises ends the watch."""
    figures: bool = False
    """Measure lag and latencies."""
    after_batch: AfterBatch | None = None
    """Called after each batch, when its violations have been reported."""


def judge_batch(
    request: Watch,
    run: IncrementalRun,
    log: "Log | EmbeddedLog",
    batch: Batch,
    scratch: Path,
    report: ReportViolation,
    say: Callable[[str], None],
) -> None:
    """Judge the log as the next run, report the violations that are certain now, and describe the batch."""
    began_s = time.monotonic()
    for line in log.inputs.repeat_messages():
        say(line)
    with next_state(run) as following:
        done = audit(
            log.event_log,
            scratch,
            options=request.options,
            checks=request.checks,
            given_rows=log.rows,
            pictures=False,
            figures=request.figures,
            history=Continuation(run, following, batch),
        )
        assert following is not None, "a state is not replayed here"
        if done.unreadable_rows:
            # A repeated batch replaces its earlier files.
            with staged(request.state / UNREADABLE / f"batch-{batch.number:06}") as folder:
                write_skipped(log.corrupt, folder)
    state = newest(request.state)
    reported = announce(state, report)
    if request.after_batch and state:
        request.after_batch(done, state, time.monotonic() - began_s)
    say(f"batch {batch.number}: {', '.join(_parts(done, log.torn_files, reported))}")


def _parts(done: Audit, torn_files: int, reported: int) -> list[str]:
    parts = [
        counted(done.overview.rows, "event"),
        "1 row that is not an event"
        if done.unreadable_rows == 1
        else f"{done.unreadable_rows} rows that are not events",
        counted(reported, "violation"),
        f"{done.withdrawn} withdrawn",
    ]
    if done.set_aside_rows:
        parts.append(f"{counted(done.set_aside_rows, 'row')} with an implausible time")
    if torn_files:
        parts.append(f"{counted(torn_files, 'torn last line')} skipped")
    return parts


def announce(state: Path | None, report: ReportViolation) -> int:
    """Report the violations that became certain in the last run, unless that was done; return their number.

    A process that ends during the report repeats it: rather twice than never.
    """
    assert state is not None, "a batch has been judged"
    if any((state / name).exists() for name in (_REPORTED, _REPORTED_FORMERLY)):
        return 0
    certain = certain_now(state)
    for violation in certain:
        report(violation)
    (state / _REPORTED).touch()
    return len(certain)


def announce_again(
    state: Path | None, number: int, report: ReportViolation, say: Callable[[str], None]
) -> None:
    """Finish the report of a batch whose process ended before or during it."""
    if reported := announce(state, report):
        say(f"batch {number}: {counted(reported, 'violation')}, possibly reported before")

"""The audit of growing logs: each micro-batch of a stream is a short incremental run.

The verdicts are those of one run over all logs, and the open messages are carried. For files, the stream has
only their names: they are read by the same rules as in any other run (sources/read.py). A batch is in the
state only once: if Spark repeats a batch because it was killed before it wrote its checkpoint, its number
shows that.
"""

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from mqproof.report.printable import counted
from mqproof.report.staging import file_beside
from mqproof.spark_audit.audit import Audit, audit
from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.incremental.all_runs import certain_now
from mqproof.spark_audit.incremental.continuation import Continuation
from mqproof.spark_audit.incremental.state_folder import FORGET_US, UNREADABLE, newest, next_state, open_run
from mqproof.spark_audit.runtime.staging import staged
from mqproof.spark_audit.sources import topics
from mqproof.spark_audit.sources.inputs import SUFFIXES, InputError, Inputs, find_files, literal
from mqproof.spark_audit.sources.read import Log, read_files

_CHECKPOINT: Final = ".checkpoint"
_SOURCES: Final = ".sources.json"
"""Describes the sources to which the checkpoint belongs."""
_REPORTED: Final = "reported"
"""A file in a state: its violations were reported."""
_REPORTED_FORMERLY: Final = "told"
"""The name of this file in the states of versions up to 0.2.0."""
_POLL_S: Final = 1
_TAKEN: Final = "file string, value string"
"""Columns of the stream.

A row has the name of a file, of which Spark reads nothing else, or a line of NDJSON and its place.
"""
_LISTED: Final = {
    # As in find_files: a file that is still being written does not have the name of a log yet.
    "pathGlobFilter": f"[!._]*{{{','.join(SUFFIXES)}}}",
    "recursiveFileLookup": "true",
    # By default, Spark silently skips files a week older than the newest it has seen.
    "maxFileAge": "36500d",
    # A refused file can be removed; otherwise its batch would fail forever.
    "ignoreMissingFiles": "true",
}
_FILES: Final = "path string, modificationTime timestamp, length bigint, content binary"


@dataclass(frozen=True, slots=True)
class Source:
    """The watched inputs: folders of NDJSON or Parquet files, and topics with NDJSON messages."""

    folders: tuple[Path, ...] = ()
    topics: Mapping[str, str] | None = None
    """Options of the `rocketmq` format."""


AfterBatch = Callable[[Audit, Path, float], None]
"""Receives the audit of a batch, the state that it left, and its duration in seconds."""


@dataclass(frozen=True, slots=True)
class Watch:
    source: Source
    state: Path
    """The folder for the carried state and Spark's checkpoint."""
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


ReportViolation = Callable[[Mapping[str, Any]], None]


def watch(
    spark: SparkSession, request: Watch, scratch: Path, report: ReportViolation, say: Callable[[str], None]
) -> None:
    """Judge batches until the process is asked to end, or, with `once`, until all input is judged.

    `report` is called with each violation, a row of schema.FINDINGS, when no row of the last `late_us` can
    change it any more. `say` is called with one line per batch.

    Raises:
        InputError: not a folder; a state of another watch; rows of an earlier batch; a file that `audit run`
            refuses. Also pyspark's own errors.
    """
    # A failure is reported once, by the caller; Spark and its bridge would print stack traces of both sides.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("OFF")
    stream = _stream(spark, request)
    _check_sources(request.state / _SOURCES, request.source)
    failed: list[Exception] = []

    def judge(rows: DataFrame, number: int) -> None:
        try:
            _batch(spark, request, rows, number, scratch, report, say)
        except Exception as error:
            failed.append(error)
            # Spark matches patterns against the text, and a query plan in it would overflow its stack.
            raise RuntimeError("the batch was not judged") from None

    writer = stream.writeStream.foreachBatch(judge)
    writer = writer.option("checkpointLocation", str(request.state / _CHECKPOINT))
    trigger = writer.trigger(availableNow=True) if request.once else writer.trigger(
        processingTime=f"{request.every_s} seconds"
    )  # fmt: skip
    query = trigger.start()
    try:
        # Wait in short intervals, between which signals are handled.
        while not query.awaitTermination(_POLL_S):
            if request.poll:
                request.poll()
    except (PySparkException, Py4JError):
        if failed:
            raise failed[0] from None
        raise
    finally:
        query.stop()


def _batch(
    spark: SparkSession,
    request: Watch,
    rows: DataFrame,
    number: int,
    scratch: Path,
    report: ReportViolation,
    say: Callable[[str], None],
) -> None:
    run = open_run(spark, request.state, request.late_us, request.forget_us)
    if run.carried and run.carried.manifest.batch >= number:
        if reported := _announced(run.before, report):
            say(f"batch {number}: {counted(reported, 'violation')}, possibly reported before")
        return
    began_s = time.monotonic()
    work = scratch / "batch"
    log = _read(spark, request.source, rows, work)
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
            history=Continuation(run, following, number),
        )
        assert following is not None, "a state is not replayed here"
        if done.unreadable_rows:
            _write_unreadable(log.corrupt, request.state / UNREADABLE, number)
    state = newest(request.state)
    reported = _announced(state, report)
    if request.after_batch and state:
        request.after_batch(done, state, time.monotonic() - began_s)
    shutil.rmtree(work, ignore_errors=True)
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
    if log.torn_files:
        parts.append(f"{counted(log.torn_files, 'torn last line')} skipped")
    say(f"batch {number}: {', '.join(parts)}")


def _announced(state: Path | None, report: ReportViolation) -> int:
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


def _write_unreadable(rows: DataFrame, folder: Path, number: int) -> None:
    """Write the rows that are not events to JSON files."""
    # A repeated batch replaces its earlier files.
    with staged(folder / f"batch-{number:06}") as staging:
        rows.coalesce(1).write.mode("append").json(str(staging))


# --- input of the stream


def _check_sources(place: Path, source: Source) -> None:
    """Record the watched sources, or compare them with the recorded ones.

    The checkpoint applies to these sources only.

    Raises:
        InputError: the state belongs to another watch.
    """
    given = {"folders": sorted({str(folder.absolute()) for folder in source.folders}),
             "topics": sorted((source.topics or {}).get("topics", "").split(","))}  # fmt: skip
    if place.exists():
        known = json.loads(place.read_text(encoding="utf-8"))
        if known != given:
            watched = ", ".join(filter(None, (*known["folders"], *known["topics"])))
            raise InputError(
                f"{place.parent}: belongs to a watch of {watched}, expected the same, or another --state"
            )
        return
    with file_beside(place) as temporary:
        temporary.write_text(json.dumps(given), encoding="utf-8")
        temporary.replace(place)


def _stream(spark: SparkSession, request: Watch) -> DataFrame:
    """Return a stream with the columns of _TAKEN, of all watched inputs.

    Raises:
        InputError: there is nothing to watch.
    """
    streams = [_files(spark, request.source.folders, request.batch_bytes)] if request.source.folders else []
    if request.source.topics:
        topics.register(spark)
        bound = {"maxOffsetsPerTrigger": str(request.batch_messages)}
        messages = spark.readStream.format("rocketmq").options(**bound, **request.source.topics).load()
        body = f.trim(f.col("body").cast("string"))
        place = f.concat_ws("/", "topic", "broker", "queue_id", "queue_offset").alias("file")
        streams.append(messages.select(place, f.explode(f.split(body, "\n")).alias("value")))
    if not streams:
        raise InputError("nothing to watch: no folder and no topic")
    return reduce(DataFrame.unionByName, streams)


def _files(spark: SparkSession, folders: Sequence[Path], batch_bytes: int) -> DataFrame:
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: not a folder, expected one into which event logs are moved")
    # Only the name is selected, so that file contents are not read.
    listed = spark.readStream.format("binaryFile").schema(_FILES).options(**_LISTED)
    files = listed.option("maxBytesPerTrigger", batch_bytes).load(_pattern(folders))
    within = [f.col("path").startswith(f"file:{folder.absolute()}/") for folder in folders]
    files = files.where(reduce(Column.__or__, within))
    return files.select(f.col("path").alias("file"), f.lit(None).cast("string").alias("value"))


def _pattern(folders: Sequence[Path]) -> str:
    """Return one pattern that covers all folders, and possibly others.

    With one pattern, files of all folders are processed in one order, by modification time.
    """
    given = sorted({folder.absolute() for folder in folders})
    # Folders within another folder are covered by it.
    outermost = [folder for folder in given if not any(other in folder.parents for other in given)]
    common = Path(os.path.commonpath(outermost))
    if common in outermost:
        return literal(common)
    # Hadoop drops escape characters within such braces.
    names = (re.sub(r"[\\{}\[\]*?,]", "?", str(folder.relative_to(common))) for folder in outermost)
    return f"{literal(common)}/{{{','.join(names)}}}"


def _read(spark: SparkSession, source: Source, rows: DataFrame, work: Path) -> Log:
    """Read the rows of a batch by the rules of `audit run`.

    Raises:
        InputError: as read_files.
    """
    shutil.rmtree(work, ignore_errors=True)
    # Read only once from the source.
    rows.write.parquet(str(work / "taken"))
    taken = spark.read.schema(_TAKEN).parquet(literal(work / "taken"))
    named = [row["file"].removeprefix("file:") for row in taken.where("value IS NULL").collect()]
    found = find_files(named) if named else Inputs(())
    return read_files(spark, found, work, taken.where("value IS NOT NULL") if source.topics else None)

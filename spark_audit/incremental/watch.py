"""The audit of logs that grow: each micro-batch of a stream is an incremental run, a short one.

So the verdicts are those of one run over all logs, and what is carried is what is open. For files, the stream
has only their names: they are read by the rules of any other run (read.py). A batch is in the state once: one
that Spark repeats, because it was killed before it wrote its checkpoint, is known by its number.
"""

import json
import logging
import os
import re
import shutil
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
from mqproof.spark_audit.audit import audit
from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.incremental.continuation import Continuation
from mqproof.spark_audit.incremental.so_far import certain_now
from mqproof.spark_audit.incremental.state_folder import FORGET_US, UNREADABLE, newest, next_state, open_run
from mqproof.spark_audit.runtime.staging import staged
from mqproof.spark_audit.sources import topics
from mqproof.spark_audit.sources.inputs import SUFFIXES, InputError, Inputs, find_files, literal
from mqproof.spark_audit.sources.read import Log, read_files

_CHECKPOINT: Final = ".checkpoint"
_SOURCES: Final = ".sources.json"
"""What the checkpoint is of."""
_TOLD: Final = "told"
"""In a state, a file: its violations were told."""
_POLL_S: Final = 1
_TAKEN: Final = "file string, value string"
"""What streams: a file whose name is all that is read of it by Spark, or a line of NDJSON and its place."""
_LISTED: Final = {
    # As find_files sees it: what is being written is not called a log yet.
    "pathGlobFilter": f"[!._]*{{{','.join(SUFFIXES)}}}",
    "recursiveFileLookup": "true",
    # Spark passes over files a week older than the newest it has seen, without a word.
    "maxFileAge": "36500d",
    # What was refused can be taken away; else its batch would fail for ever.
    "ignoreMissingFiles": "true",
}
_FILES: Final = "path string, modificationTime timestamp, length bigint, content binary"


@dataclass(frozen=True, slots=True)
class Source:
    """What is watched: folders of NDJSON or Parquet files, and topics whose messages are lines of NDJSON."""

    folders: tuple[Path, ...] = ()
    topics: Mapping[str, str] | None = None
    """Options of the `rocketmq` format."""


@dataclass(frozen=True, slots=True)
class Watch:
    source: Source
    state: Path
    """What is carried, and Spark's checkpoint."""
    late_us: int
    options: Options = field(default_factory=Options)
    every_s: float = 60.0
    once: bool = False
    """Take what is there, in one batch or several, and end."""
    checks: Mapping[str, Check] = field(default_factory=lambda: EVENT_CHECKS)
    forget_us: int = FORGET_US
    batch_bytes: int = 256 << 20
    """A batch takes so many bytes of files at most, but a file."""
    batch_messages: int = 100_000


Told = Callable[[Mapping[str, Any]], None]


def watch(spark: SparkSession, wish: Watch, scratch: Path, tell: Told, say: Callable[[str], None]) -> None:
    """Judge batch after batch until the process is told to end, or, with `once`, all is judged.

    `tell` is called with each violation, a row of schema.FINDINGS, when nothing of the last `late_us` can
    change it any more; `say` with a line a batch.

    Raises:
        InputError: a folder that is none; a state of another watch; rows that an earlier batch had; a file
            that `audit run` refuses. pyspark's own errors.
    """
    # A failure is reported once, by the caller; Spark and its bridge would print the stacks of both sides.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("OFF")
    stream = _stream(spark, wish)
    _hold(wish.state / _SOURCES, wish.source)
    failed: list[Exception] = []

    def judge(rows: DataFrame, number: int) -> None:
        try:
            _batch(spark, wish, rows, number, scratch, tell, say)
        except Exception as error:
            failed.append(error)
            # Spark matches patterns against the text, and a plan in it would overflow its stack.
            raise RuntimeError("the batch was not judged") from None

    writer = stream.writeStream.foreachBatch(judge)
    writer = writer.option("checkpointLocation", str(wish.state / _CHECKPOINT))
    trigger = writer.trigger(availableNow=True) if wish.once else writer.trigger(
        processingTime=f"{wish.every_s} seconds"
    )  # fmt: skip
    query = trigger.start()
    try:
        # In short waits, between which a signal is heard.
        while not query.awaitTermination(_POLL_S):
            pass
    except (PySparkException, Py4JError):
        if failed:
            raise failed[0] from None
        raise
    finally:
        query.stop()


def _batch(
    spark: SparkSession,
    wish: Watch,
    rows: DataFrame,
    number: int,
    scratch: Path,
    tell: Told,
    say: Callable[[str], None],
) -> None:
    run = open_run(spark, wish.state, wish.late_us, wish.forget_us)
    if run.carried and run.carried.manifest.batch >= number:
        if told := _announced(run.before, tell):
            say(f"batch {number}: {counted(told, 'violation')}, perhaps told before it ended")
        return
    work = scratch / "batch"
    log = _read(spark, rows, work, has_lines=bool(wish.source.topics))
    for line in log.inputs.said_of_repeats():
        say(line)
    with next_state(run) as following:
        done = audit(
            log.told,
            scratch,
            options=wish.options,
            checks=wish.checks,
            given_rows=log.rows,
            pictures=False,
            history=Continuation(run, following, number),
        )
        assert following is not None, "a state is not replayed here"
        if done.unreadable_rows:
            _keep_aside(log.corrupt, wish.state / UNREADABLE, number)
    told = _announced(newest(wish.state), tell)
    shutil.rmtree(work, ignore_errors=True)
    parts = [
        counted(done.overview.rows, "event"),
        "1 row that is none" if done.unreadable_rows == 1 else f"{done.unreadable_rows} rows that are none",
        counted(told, "violation"),
        f"{done.withdrawn} taken back",
    ]
    if log.torn_files:
        parts.append(f"{counted(log.torn_files, 'torn last line')} passed over")
    say(f"batch {number}: {', '.join(parts)}")


def _announced(state: Path | None, tell: Told) -> int:
    """Tells what became certain in the last run, which left this, unless that was done; how much that is.

    Once, but for a process that ends in the middle of it: rather twice than never.
    """
    assert state is not None, "a batch has been judged"
    if (state / _TOLD).exists():
        return 0
    certain = certain_now(state)
    for violation in certain:
        tell(violation)
    (state / _TOLD).touch()
    return len(certain)


def _keep_aside(rows: DataFrame, folder: Path, number: int) -> None:
    """The rows that are no events, as files of JSON."""
    # Of a batch that is repeated, over what it wrote before.
    with staged(folder / f"batch-{number:06}") as beside:
        rows.coalesce(1).write.mode("append").json(str(beside))


# --- where rows come from


def _hold(place: Path, source: Source) -> None:
    """Notes what is watched, or compares: the checkpoint knows how far it has come in that.

    Raises:
        InputError: it is another watch's.
    """
    given = {"folders": sorted({str(folder.absolute()) for folder in source.folders}),
             "topics": sorted((source.topics or {}).get("topics", "").split(","))}  # fmt: skip
    if place.exists():
        known = json.loads(place.read_text(encoding="utf-8"))
        if known != given:
            watched = ", ".join(filter(None, (*known["folders"], *known["topics"])))
            raise InputError(
                f"{place.parent}: it is of a watch of {watched}, expected the same, or another --state"
            )
        return
    with file_beside(place) as made:
        made.write_text(json.dumps(given), encoding="utf-8")
        made.replace(place)


def _stream(spark: SparkSession, wish: Watch) -> DataFrame:
    """The columns of _TAKEN, of everything that is watched.

    Raises:
        InputError: there is nothing to watch.
    """
    streams = [_files(spark, wish.source.folders, wish.batch_bytes)] if wish.source.folders else []
    if wish.source.topics:
        topics.register(spark)
        bound = {"maxOffsetsPerTrigger": str(wish.batch_messages)}
        messages = spark.readStream.format("rocketmq").options(**bound, **wish.source.topics).load()
        body = f.trim(f.col("body").cast("string"))
        place = f.concat_ws("/", "topic", "broker", "queue_id", "queue_offset").alias("file")
        streams.append(messages.select(place, f.explode(f.split(body, "\n")).alias("value")))
    if not streams:
        raise InputError("nothing to watch: no folder and no topic")
    return reduce(DataFrame.unionByName, streams)


def _files(spark: SparkSession, folders: Sequence[Path], batch_bytes: int) -> DataFrame:
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: no folder, expected one into which event logs are moved")
    # Of whose columns only the name is asked, so that nothing is read.
    listed = spark.readStream.format("binaryFile").schema(_FILES).options(**_LISTED)
    files = listed.option("maxBytesPerTrigger", batch_bytes).load(_pattern(folders))
    within = [f.col("path").startswith(f"file:{folder.absolute()}/") for folder in folders]
    files = files.where(reduce(Column.__or__, within))
    return files.select(f.col("path").alias("file"), f.lit(None).cast("string").alias("value"))


def _pattern(folders: Sequence[Path]) -> str:
    """All of them as one, and maybe others: so their files are taken in one order, by the time of their
    change."""
    given = sorted({folder.absolute() for folder in folders})
    # What is in another one is looked at with it.
    apart = [folder for folder in given if not any(other in folder.parents for other in given)]
    common = Path(os.path.commonpath(apart))
    if common in apart:
        return literal(common)
    # Hadoop loses what escapes a character between such braces.
    names = (re.sub(r"[\\{}\[\]*?,]", "?", str(folder.relative_to(common))) for folder in apart)
    return f"{literal(common)}/{{{','.join(names)}}}"


def _read(spark: SparkSession, rows: DataFrame, work: Path, *, has_lines: bool) -> Log:
    """What streamed in, as `audit run` reads it.

    Raises:
        InputError: as read_files.
    """
    shutil.rmtree(work, ignore_errors=True)
    # Read once from where it comes from.
    rows.write.parquet(str(work / "taken"))
    taken = spark.read.schema(_TAKEN).parquet(literal(work / "taken"))
    named = [row["file"].removeprefix("file:") for row in taken.where("value IS NULL").collect()]
    found = find_files(named) if named else Inputs(())
    return read_files(spark, found, work, taken.where("value IS NOT NULL") if has_lines else None)

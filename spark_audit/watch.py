"""The audit of logs that grow: each micro-batch of a stream is a night (nights.py), a short one.

So the verdicts are those of one run over all, and what is carried is what is open. A batch is in the state
once: one that Spark repeats, because it was killed before it wrote its checkpoint, is known by its number.
"""

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_audit.audit import audit
from spark_audit.checks import EVENT_CHECKS, Check
from spark_audit.evidence import Options
from spark_audit.inputs import InputError, literal
from spark_audit.nights import FORGET_US, UNREADABLE, certain_now, newest, next_state, open_night
from spark_audit.read import CORRUPT, events_of, is_event
from spark_audit.schema import EVENTS
from spark_audit.sources import topics
from spark_audit.staging import staged

_CHECKPOINT: Final = ".checkpoint"
_TOLD: Final = "told"
"""In a state, a file: its violations were told."""
_POLL_S: Final = 1
_FROM: Final = ("file", "line")
"""Beside the columns of an event: where a row came from, and what it was where it is no event."""


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


Told = Callable[[Mapping[str, Any]], None]


def watch(spark: SparkSession, wish: Watch, scratch: Path, tell: Told, say: Callable[[str], None]) -> None:
    """Judge batch after batch until the process is told to end, or, with `once`, all is judged.

    `tell` is called with each violation, a row of schema.FINDINGS, when nothing of the last `late_us` can
    change it any more; `say` with a line a batch.

    Raises:
        InputError: a folder that is none; rows that an earlier batch had. pyspark's own errors.
    """
    # What fails is told once, by whoever called; Spark and its bridge would print the stacks of both sides.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("OFF")
    stream = _stream(spark, wish.source)
    wish.state.mkdir(parents=True, exist_ok=True)
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
    night = open_night(spark, wish.state, wish.late_us, wish.forget_us)
    if night.carried and night.carried.manifest.batch >= number:
        if told := _announced(night.before, tell):
            say(f"batch {number}: {told} violations; whether they were told before it ended is not known")
        return
    # Read once from where it comes from; the audit reads it several times.
    kept = scratch / "batch"
    rows.write.mode("overwrite").parquet(str(kept))
    batch = spark.read.schema(rows.schema).parquet(literal(kept))
    corrupt = _keep_aside(batch.where("line IS NOT NULL").select(*_FROM), wish.state / UNREADABLE, number)
    log = batch.where("line IS NULL").select(*EVENTS.fieldNames())
    with next_state(night) as following:
        done = audit(
            log,
            scratch,
            options=wish.options,
            checks=wish.checks,
            unreadable_rows=corrupt,
            pictures=False,
            night=night,
            next_state=following,
            batch=number,
        )
        assert following is not None, "a state is not replayed here"
    told = _announced(newest(wish.state), tell)
    say(
        f"batch {number}: {done.overview.rows} events, {corrupt} rows that are none, {told} violations, "
        f"{done.withdrawn} taken back"
    )
    shutil.rmtree(kept, ignore_errors=True)


def _announced(state: Path | None, tell: Told) -> int:
    """Tells what became certain in the last night, which left this, unless that was done; how much that is.

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


def _keep_aside(rows: DataFrame, folder: Path, number: int) -> int:
    """The rows that are no events, as files of JSON; how many there are."""
    count = rows.count()
    if count:
        # Of a batch that is repeated, over what it wrote before.
        with staged(folder / f"batch-{number:06}") as beside:
            rows.coalesce(1).write.mode("append").json(str(beside))
    return count


# --- where rows come from


def _stream(spark: SparkSession, source: Source) -> DataFrame:
    """The columns of an event log, of everything that is watched."""
    streams = []
    for folder in source.folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: no folder, expected one into which event logs are moved")
        lines = spark.readStream.option("pathGlobFilter", "[!._]*.ndjson*").option(
            "recursiveFileLookup", "true"
        )
        streams.append(_parsed(lines.text(literal(folder)).withColumn("file", f.input_file_name())))
        tables = spark.readStream.schema(EVENTS).option("pathGlobFilter", "[!._]*.parquet")
        rows = tables.option("recursiveFileLookup", "true").parquet(literal(folder))
        whole = f.when(~is_event(), f.to_json(f.struct(*EVENTS.fieldNames())))
        streams.append(rows.select("*", f.input_file_name().alias("file"), whole.alias("line")))
    if source.topics:
        topics.register(spark)
        messages = spark.readStream.format("rocketmq").options(**source.topics).load()
        body = f.col("body").cast("string")
        place = f.concat_ws("/", "topic", "broker", "queue_id", "queue_offset").alias("file")
        streams.append(_parsed(messages.select(f.explode(f.split(f.trim(body), "\n")).alias("value"), place)))
    if not streams:
        raise InputError("nothing to watch: no folder and no topic")
    first, *others = streams
    for other in others:
        first = first.unionByName(other)
    return first


def _parsed(lines: DataFrame) -> DataFrame:
    """Events of lines, with `file`; and `line`, the line where it is none."""
    return events_of(lines.where(f.col("value").rlike(r"\S"))).withColumnRenamed(CORRUPT, "line")

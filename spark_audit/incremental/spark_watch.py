"""A watch on Spark: the batches of a stream, whose checkpoint records what was read.

For files, the stream has only their names: they are read by the same rules as in any other run
(sources/read.py). If Spark repeats a batch because it was killed before it wrote its checkpoint, its number
shows that.
"""

import logging
import os
import re
import shutil
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from mqproof.spark_audit.incremental.carried_state import Batch
from mqproof.spark_audit.incremental.state_folder import open_run
from mqproof.spark_audit.incremental.watch import (
    ReportViolation,
    Source,
    Watch,
    announce_again,
    judge_batch,
)
from mqproof.spark_audit.incremental.watched_sources import SPARK, check_sources
from mqproof.spark_audit.sources import topics
from mqproof.spark_audit.sources.inputs import SUFFIXES, Inputs, find_files, literal
from mqproof.spark_audit.sources.read import Log, read_files

_CHECKPOINT: Final = ".checkpoint"
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


def watch_on_spark(
    spark: SparkSession, request: Watch, scratch: Path, report: ReportViolation, say: Callable[[str], None]
) -> None:
    """Judge batches until the process is asked to end, or, with `once`, until all input is judged.

    `say` is called with one line per batch.

    Raises:
        InputError: not a folder; a state of another watch; rows of an earlier batch; a file that `audit run`
            refuses. Also pyspark's own errors.
    """
    # A failure is reported once, by the caller; Spark and its bridge would print stack traces of both sides.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("OFF")
    check_sources(request.state, request.source, SPARK)
    stream = _stream(spark, request)
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
        announce_again(run.before, number, report, say)
        return
    work = scratch / "batch"
    log = _read(spark, request.source, rows, work)
    judge_batch(request, run, log, Batch(number), scratch, report, say)
    shutil.rmtree(work, ignore_errors=True)


# --- input of the stream


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
    return reduce(DataFrame.unionByName, streams)


def _files(spark: SparkSession, folders: Sequence[Path], batch_bytes: int) -> DataFrame:
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

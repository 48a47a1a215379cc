"""Runs loops and queries over a whole event log, in tasks; the results are Spark tables."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from mqproof.spark_audit.scan import partition
from mqproof.spark_audit.scan.partition import Fold, RowSelection
from mqproof.spark_audit.scan.sql import Work, of_aggregates, of_files, of_rows
from mqproof.spark_audit.scan.tasks import Batches
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.splits import Tasks, by_task, splits_of

Run = Callable[[Batches], Batches]

_FILES: Final = t.StructType([t.StructField("file", t.StringType())])


def run_queries(
    log: EventLog,
    queries: Sequence[str],
    schema: t.StructType,
    tables: Mapping[str, pa.Table] | None = None,
) -> DataFrame:
    """Return the results of the queries on each split, one after the other.

    The queries are SQL over a table `log`, see sql.py. Columns of the schema that a query does not yield are
    null.
    """
    given = tuple((tables or {}).items())
    work = Work(tuple(queries), to_arrow_schema(schema), given)
    return _each(log, lambda tasks: of_files(work, tasks), of_rows(work), schema)


def parts(log: EventLog, rows: int) -> int:
    """Return the number of parts of partial aggregates, so that each covers about `rows` rows.

    All aggregates of one key are in one part, for `merged`.
    """
    most = int(log.rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    in_files = sum(split.end - split.begin for split in splits_of(log.files))
    return min(most, 1 + in_files // rows) if log.rest is None else most


def fold(
    log: EventLog, folds: Sequence[Fold], schema: t.StructType, columns: Sequence[str] = partition.WHOLE
) -> DataFrame:
    """Return the results of the folds for each partition, one after the other; missing columns are null."""
    wanted = to_arrow_schema(schema)
    return _each(
        log,
        lambda tasks: partition.of_files(folds, wanted, tasks, columns),
        partition.of_rows(folds, wanted, columns),
        schema,
    )


def extract(log: EventLog, selection: RowSelection, folder: Path) -> EventLog:
    """Write the selected rows, with all columns, to new files in the folder. Runs a job.

    Every executor must be able to access the folder.
    """
    at = folder.absolute()
    files = _each(
        log,
        lambda tasks: partition.stored(selection, at, tasks),
        partition.stored_rows(selection, at),
        _FILES,
    ).collect()
    return EventLog.in_files(log.rows.sparkSession, [Path(row["file"]) for row in files])


def _each(log: EventLog, in_files: Callable[[Tasks], Run], in_rows: Run, schema: t.StructType) -> DataFrame:
    spark = log.rows.sparkSession
    tasks = by_task(splits_of(log.files), spark.sparkContext.defaultParallelism)
    parts = []
    if tasks:
        numbers = spark.range(0, len(tasks), 1, len(tasks))
        parts.append(numbers.mapInArrow(in_files(tasks), schema))
    if log.rest is not None:
        parts.append(log.rest.mapInArrow(in_rows, schema))
    if not parts:
        return spark.createDataFrame([], schema)
    return reduce(DataFrame.unionByName, parts)


def merged(aggregates: DataFrame, work: Work) -> DataFrame:
    """Return the results of a query over PARTIAL_AGGREGATES; the query runs once in each task."""
    return aggregates.repartition("part").mapInArrow(of_aggregates(work), from_arrow_schema(work.schema))

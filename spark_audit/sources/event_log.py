"""An event log as the audit passes over it: as a table of Spark's, and as files that tasks read themselves.

Reading Parquet in the task and summing it up there costs a fraction of what Spark's own scan and aggregation
do; what comes out is small, and merged by Spark. Rows that are in no such file, such as those that an earlier
night left, are handed to the same loops and queries by Spark.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from mqproof.spark_audit.passes import partition
from mqproof.spark_audit.passes.partition import Choice, Fold
from mqproof.spark_audit.passes.split import (
    Batches,
    LogFile,
    Tasks,
    Work,
    by_task,
    of_files,
    of_partition,
    of_rows,
    shares,
)
from mqproof.spark_audit.schema import EVENTS
from mqproof.spark_audit.sources.inputs import literal

Run = Callable[[Batches], Batches]

_FILES: Final = t.StructType([t.StructField("file", t.StringType())])


@dataclass(frozen=True, slots=True)
class EventLog:
    rows: DataFrame
    """All of it: schema.EVENTS."""
    files: tuple[LogFile, ...] = ()
    """Those of its rows that tasks can read themselves."""
    rest: DataFrame | None = None
    """Those that are not in the files; None where all are."""

    @classmethod
    def of(cls, rows: DataFrame) -> "EventLog":
        """A log that Spark hands over."""
        return cls(rows, rest=rows)

    @classmethod
    def in_files(cls, spark: SparkSession, files: Sequence[Path]) -> "EventLog":
        """A log in Parquet files that have our schema."""
        if not files:
            return cls(spark.createDataFrame([], EVENTS))
        rows = spark.read.schema(EVENTS).parquet(*map(literal, files))
        return cls(rows, tuple(map(LogFile, files)))

    def plus(self, other: "EventLog") -> "EventLog":
        """Both."""
        rests = [log.rest for log in (self, other) if log.rest is not None]
        rest = reduce(DataFrame.unionByName, rests) if rests else None
        return EventLog(self.rows.unionByName(other.rows), self.files + other.files, rest)

    def only(self, row_groups: Collection[int]) -> "EventLog":
        """Of its files some row groups, by their numbers; and what is in none of them."""
        files = [LogFile(share.file.path, share.file.marks, own)
                 for share in shares(self.files)
                 if (own := tuple(group for number, group in enumerate(share.groups, share.number)
                                  if number in row_groups))]  # fmt: skip
        return EventLog(self.rows, tuple(files), self.rest)

    def count(self) -> int:
        """Rows, with those of the files that may turn out to be no events. Runs a job for the rest."""
        in_files = sum(share.end - share.begin for share in shares(self.files))
        return in_files + (self.rest.count() if self.rest is not None else 0)

    def ask(
        self,
        queries: Sequence[str],
        schema: t.StructType,
        tables: Mapping[str, pa.Table] | None = None,
    ) -> DataFrame:
        """What the queries (SQL over a table `log`, see share.py) yield on each share, one after the other.

        Columns of the schema that a query does not yield are null.
        """
        given = tuple((tables or {}).items())
        return self._done(Work(tuple(queries), to_arrow_schema(schema), given), schema)

    def parts(self, rows: int) -> int:
        """So many parts there are to be of parcels, of which each has the sums of about so many rows: all of
        one key are together, for `merged`."""
        most = int(self.rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        in_files = sum(share.end - share.begin for share in shares(self.files))
        return min(most, 1 + in_files // rows) if self.rest is None else most

    def fold(
        self, folds: Sequence[Fold], schema: t.StructType, columns: Sequence[str] = partition.WHOLE
    ) -> DataFrame:
        """What the folds yield of each piece (piece.py), one after the other; null where one has no such
        column."""
        wanted = to_arrow_schema(schema)
        return self._each(
            lambda tasks: partition.of_files(folds, wanted, tasks, columns),
            partition.of_rows(folds, wanted, columns),
            schema,
        )

    def extract(self, choice: Choice, folder: Path) -> "EventLog":
        """The rows that are chosen, with all columns, in files of their own in the folder, which every
        executor sees. Runs a job.
        """
        at = folder.absolute()
        told = self._each(
            lambda tasks: partition.stored(choice, at, tasks), partition.stored_rows(choice, at), _FILES
        ).collect()
        return EventLog.in_files(self.rows.sparkSession, [Path(row["file"]) for row in told])

    def _done(self, work: Work, schema: t.StructType) -> DataFrame:
        return self._each(lambda tasks: of_files(work, tasks), of_rows(work), schema)

    def _each(self, in_files: Callable[[Tasks], Run], in_rows: Run, schema: t.StructType) -> DataFrame:
        spark = self.rows.sparkSession
        tasks = by_task(shares(self.files), spark.sparkContext.defaultParallelism)
        parts = []
        if tasks:
            numbers = spark.range(0, len(tasks), 1, len(tasks))
            parts.append(numbers.mapInArrow(in_files(tasks), schema))
        if self.rest is not None:
            parts.append(self.rest.mapInArrow(in_rows, schema))
        if not parts:
            return spark.createDataFrame([], schema)
        return reduce(DataFrame.unionByName, parts)


def merged(
    parcels: DataFrame, query: str, schema: t.StructType, tables: Mapping[str, pa.Table] | None = None
) -> DataFrame:
    """What a query yields of the rows in PARCELS, as often as there are tasks."""
    work = Work((query,), to_arrow_schema(schema), tuple((tables or {}).items()))
    return parcels.repartition("part").mapInArrow(of_partition(work), schema)

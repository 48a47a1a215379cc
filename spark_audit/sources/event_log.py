"""An event log: a Spark table, and those of its Parquet files that tasks can read themselves.

Reading and aggregating Parquet in the task costs a fraction of Spark's own scan and aggregation. Spark passes
rows that are in no such file, such as those of an earlier run, to the tasks.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mqproof.spark_audit.sources.inputs import literal
from mqproof.spark_audit.sources.splits import LogFile, splits_of
from mqproof.spark_audit.spark_schema import EVENTS


@dataclass(frozen=True, slots=True)
class EventLog:
    rows: DataFrame
    """All rows: schema.EVENTS."""
    files: tuple[LogFile, ...] = ()
    """Files with rows that tasks can read themselves."""
    rest: DataFrame | None = None
    """Rows that are not in the files; None if all are."""

    @classmethod
    def of(cls, rows: DataFrame) -> "EventLog":
        """Return a log whose rows Spark passes to the tasks."""
        return cls(rows, rest=rows)

    @classmethod
    def in_files(cls, spark: SparkSession, files: Sequence[Path]) -> "EventLog":
        """Return a log in Parquet files that have our schema."""
        if not files:
            return cls(spark.createDataFrame([], EVENTS))
        rows = spark.read.schema(EVENTS).parquet(*map(literal, files))
        return cls(rows, tuple(map(LogFile, files)))

    def plus(self, other: "EventLog") -> "EventLog":
        """Return the union of both logs."""
        rests = [log.rest for log in (self, other) if log.rest is not None]
        rest = reduce(DataFrame.unionByName, rests) if rests else None
        return EventLog(self.rows.unionByName(other.rows), self.files + other.files, rest)

    def only(self, row_groups: Collection[int]) -> "EventLog":
        """Return the log with only the row groups of these numbers. Rows that are not in files are kept."""
        files = [LogFile(split.file.path, split.file.marks, own)
                 for split in splits_of(self.files)
                 if (own := tuple(group for number, group in enumerate(split.groups, split.number)
                                  if number in row_groups))]  # fmt: skip
        return EventLog(self.rows, tuple(files), self.rest)

    def count(self) -> int:
        """Return the number of rows, including those of files that may not be events.

        Runs a job for the rest.
        """
        in_files = sum(split.end - split.begin for split in splits_of(self.files))
        return in_files + (self.rest.count() if self.rest is not None else 0)

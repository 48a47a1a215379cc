"""The PySpark data sources: a broker's store directory as three tables, read in parallel.

    register(spark)
    spark.read.format("rocketmq-commitlog").load("/var/rocketmq/store").where("kind = 'damage'").show()

Options: `splitBytes` is about how much a task reads. For the commit log, `body` = true adds the bodies. For
the index, `slots` is maxHashSlotNum if it is not RocketMQ's default. Directories of released brokers, of our
broker and of group members are read in the same way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from mqproof.spark_audit.sources.packing import pack
from mqproof.spark_audit.sources.store import commit_log, consume_queue, index
from mqproof.spark_audit.sources.store.ranges import Range, StoreError

SPLIT_BYTES: Final = 32 << 20


def register(spark: SparkSession) -> None:
    """Register the formats with the session; repeated calls are allowed."""
    for source in (CommitLogSource, ConsumeQueueSource, IndexSource):
        spark.dataSource.register(source)


@dataclass
class Task(InputPartition):
    """The ranges that one task reads."""

    ranges: tuple[Range, ...]


class CommitLogSource(DataSource):
    """Records, and the gaps between them; see commit_log.SCHEMA."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq-commitlog"

    def schema(self) -> StructType:
        return from_arrow_schema(
            commit_log.SCHEMA.append(commit_log.BODY) if _flag(self.options, "body") else commit_log.SCHEMA
        )

    def reader(self, schema: StructType) -> "CommitLogReader":  # noqa: ARG002  # Spark\'s signature
        return CommitLogReader(self.options)


class CommitLogReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._path, self._split_bytes = _path(options), _number(options, "splitBytes", SPLIT_BYTES)
        self._with_body = _flag(options, "body")

    def partitions(self) -> list[InputPartition]:
        return _tasks(commit_log.ranges(self._path, self._split_bytes), self._split_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part in _ranges(partition):
            yield from commit_log.read_range(part, with_body=self._with_body)


class ConsumeQueueSource(DataSource):
    """Entries of all queues; see consume_queue.SCHEMA."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq-consumequeue"

    def schema(self) -> StructType:
        return from_arrow_schema(consume_queue.SCHEMA)

    def reader(self, schema: StructType) -> "ConsumeQueueReader":  # noqa: ARG002  # Spark\'s signature
        return ConsumeQueueReader(self.options)


class ConsumeQueueReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._path, self._split_bytes = _path(options), _number(options, "splitBytes", SPLIT_BYTES)

    def partitions(self) -> list[InputPartition]:
        return _tasks(consume_queue.ranges(self._path, self._split_bytes), self._split_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part in _ranges(partition):
            yield from consume_queue.read_range(part)


class IndexSource(DataSource):
    """Entries of the key index; see index.SCHEMA."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq-index"

    def schema(self) -> StructType:
        return from_arrow_schema(index.SCHEMA)

    def reader(self, schema: StructType) -> "IndexReader":  # noqa: ARG002  # Spark\'s signature
        return IndexReader(self.options)


class IndexReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._path, self._split_bytes = _path(options), _number(options, "splitBytes", SPLIT_BYTES)
        self._slots = _number(options, "slots", index.SLOTS)

    def partitions(self) -> list[InputPartition]:
        return _tasks(index.ranges(self._path, self._split_bytes, self._slots), self._split_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part in _ranges(partition):
            yield from index.read_range(part, self._slots)


def _tasks(ranges: Iterator[Range], split_bytes: int) -> list[InputPartition]:
    # Spark treats a source without partitions as having one partition, None.
    return [Task(group) for group in pack(ranges, split_bytes)] or [Task(())]


def _ranges(partition: InputPartition) -> tuple[Range, ...]:
    assert isinstance(partition, Task), f"{partition} is not a task of this reader"
    return partition.ranges


def _path(options: Mapping[str, str]) -> str:
    if not (path := options.get("path")):
        raise StoreError("no path given, expected load(DIRECTORY)")
    return path


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or not int(text):
        raise StoreError(f"option {name}: {text!r}, expected a number above 0")
    return int(text)


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise StoreError(f"option {name}: {text!r}, expected true or false")
    return text == "true"

"""The PySpark source of a running cluster's topics, as a stream and as a table.

The same format writes; see topic_writer.

    register(spark)
    spark.readStream.format("rocketmq").options(namesrv="127.0.0.1:9876", topics="T").load()

The position of the stream is kept only in Spark's checkpoint: nothing is committed at a broker. The same
positions always give the same rows, so a batch that is repeated after a failure adds no duplicates.

| option | default | |
|---|---|---|
| namesrv | | HOST:PORT, several separated by `;` |
| topics | | names, separated by commas |
| startingOffsets | earliest | or latest, or a JSON object of `TOPIC@BROKER:QUEUE` to offset |
| maxOffsetsPerTrigger | none | maximum number of messages a batch, spread over the queues |
| splitOffsets | 100000 | about how many messages a task reads |
| failOnDataLoss | true | false continues after messages that were deleted before they were read |
| group | mqproof_spark | the consumer group used for reading |
| tls | | path of a tls.properties |
| accessKey, secretKey | | sign every request |
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.message import KEYS, TAGS, StoredMessage
from mqproof.spark_audit.sources.topic_positions import (
    Ends,
    Options,
    Positions,
    Slice,
    advance,
    begin,
    offset_ranges,
    parse_queue,
    pulled,
    read_options,
)
from mqproof.spark_audit.sources.topic_writer import TopicStreamWriter, TopicWriter, read_target

SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("broker", pa.string()),
        ("queue_id", pa.int32()),
        ("queue_offset", pa.int64()),
        ("commit_offset", pa.int64()),
        ("size", pa.int32()),  # bytes of the record
        ("msg_id", pa.string()),  # the producer's unique key, else the broker's own id
        ("keys", pa.string()),
        ("tags", pa.string()),
        ("born_ms", pa.int64()),
        ("stored_ms", pa.int64()),
        ("reconsume_times", pa.int32()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("body", pa.binary()),
    ]
)

_BATCH_BYTES: Final = 16 << 20
_BATCH_ROWS: Final = 10_000


def register(spark: SparkSession) -> None:
    """Register the format with the session; repeated calls are allowed."""
    spark.dataSource.register(TopicSource)


class Task(Slice, InputPartition):
    """The slice that one task reads."""


class TopicSource(DataSource):
    """Messages of topics; see SCHEMA."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> StructType:
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: StructType) -> "TopicReader":  # noqa: ARG002  # Spark's signature
        return TopicReader(read_options(self.options))

    def streamReader(self, schema: StructType) -> "TopicStream":  # noqa: ARG002, N802  # Spark's signature
        return TopicStream(read_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> TopicWriter:
        return TopicWriter(read_target(self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> TopicStreamWriter:  # noqa: N802
        return TopicStreamWriter(read_target(self.options, schema, overwrite=overwrite))


class TopicReader(DataSourceReader):
    """Reads all messages that the topics have at the time of the read."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        ends = offset_ranges(self._options)
        return slices(begin(self._options, ends), {name: of.end for name, of in ends.items()}, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_slice(self._options, partition)


class TopicStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options) -> None:
        self._options = options
        self._target: dict[str, Ends] | None = None

    def initialOffset(self) -> Positions:  # noqa: N802  # Spark's name
        return begin(self._options, offset_ranges(self._options))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        self._target = offset_ranges(self._options)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        limit = self._options.max_offsets
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def latestOffset(self, start: Positions, limit: ReadLimit) -> Positions:  # noqa: N802  # Spark's name
        ends = self._target or offset_ranges(self._options, skip_unavailable=True)
        return advance(start, ends, limit.max_rows if isinstance(limit, ReadMaxRows) else None, self._options)

    def partitions(self, start: Positions, end: Positions) -> list[InputPartition]:
        return slices(start, end, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_slice(self._options, partition)


# --- messages


def slices(start: Positions, end: Positions, options: Options) -> list[InputPartition]:
    """Split the messages between two positions, so that several tasks read a long queue."""
    return [
        Task(name, at, min(at + options.split_offsets, last))
        for name, last in sorted(end.items())
        for at in range(start.get(name, 0), last, options.split_offsets)
    ] or [Task("", 0, 0)]  # Spark treats a source without partitions as having one partition, None


def read_slice(options: Options, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield batches of SCHEMA.

    Raises:
        StoreError: messages of the slice were deleted.
        ClientError: the broker does not answer.
    """
    assert isinstance(partition, Slice), f"{partition} is not a slice of this reader"
    if partition.start == partition.end:
        return
    with options.client() as client:
        rows = Rows(parse_queue(partition.queue))
        for messages, _ in pulled(client, partition, fail_on_loss=options.fail_on_loss):
            for message in messages:
                rows.add(message)
            if rows.is_full:
                yield rows.taken()
        yield rows.taken()


@dataclass
class Rows:
    """Collects messages of one queue for a batch."""

    queue: MessageQueue
    messages: list[StoredMessage] = field(default_factory=list)
    size: int = 0

    def add(self, message: StoredMessage) -> None:
        self.messages.append(message)
        self.size += message.size

    @property
    def is_full(self) -> bool:
        return len(self.messages) >= _BATCH_ROWS or self.size >= _BATCH_BYTES

    def taken(self) -> pa.RecordBatch:
        """Return the batch and clear the messages."""
        rows, self.messages, self.size = list(map(self._row, self.messages)), [], 0
        return pa.RecordBatch.from_pylist(rows, SCHEMA)

    def _row(self, stored: StoredMessage) -> dict[str, Any]:
        message = stored.message
        return {
            "topic": self.queue.topic,
            "broker": self.queue.broker_name,
            "queue_id": self.queue.queue_id,
            "queue_offset": stored.queue_offset,
            "commit_offset": stored.commit_offset,
            "size": stored.size,
            "msg_id": stored.message_id,
            "keys": message.properties.get(KEYS),
            "tags": message.properties.get(TAGS),
            "born_ms": message.born_timestamp_ms,
            "stored_ms": stored.store_timestamp_ms,
            "reconsume_times": message.reconsume_times,
            "properties": list(message.properties.items()),
            "body": message.body,
        }

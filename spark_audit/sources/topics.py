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

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
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

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting.message import KEYS, TAGS, StoredMessage
from mqproof.impl.remoting.signing import Credentials
from mqproof.spark_audit.sources.store.ranges import StoreError
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

_log: Final = logging.getLogger(__name__)

_BATCH_BYTES: Final = 16 << 20
_BATCH_ROWS: Final = 10_000
_PULL: Final = 32

Positions = dict[str, int]
"""Maps `TOPIC@BROKER:QUEUE` to the offset of the next message; the contents of the checkpoint."""


def register(spark: SparkSession) -> None:
    """Register the format with the session; repeated calls are allowed."""
    spark.dataSource.register(TopicSource)


@dataclass(frozen=True, slots=True)
class Ends:
    """The first readable offset of a queue, and one more than its last."""

    begin: int
    end: int


@dataclass
class Slice(InputPartition):
    """The messages [start, end) of one queue, read by one task."""

    queue: str
    start: int
    end: int


@dataclass(frozen=True)
class Options:
    """The options of the reader; `read_options` creates them, and raises StoreError if one is invalid."""

    name_servers: str
    topics: tuple[str, ...]
    starting: str | Positions
    max_offsets: int | None
    split_offsets: int
    fail_on_loss: bool
    group: str
    tls: str | None
    credentials: Credentials | None

    def client(self) -> BlockingClient:
        """Return a client, for use in `with`."""
        return BlockingClient(
            self.name_servers, consumer_group=self.group, tls=self.tls, credentials=self.credentials
        )


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


# --- options


def read_options(given: Mapping[str, str]) -> Options:
    """Parse the options of the reader.

    Raises:
        StoreError: an option is missing or has another form.
    """
    topics = tuple(name.strip() for name in given.get("topics", "").split(",") if name.strip())
    if not topics:
        raise StoreError("option topics: expected names of topics, separated by commas")
    if not (name_servers := given.get("namesrv", "")):
        raise StoreError("option namesrv: expected HOST:PORT of a name server")
    access, secret = given.get("accessKey"), given.get("secretKey")
    if (access is None) != (secret is None):
        raise StoreError("options accessKey and secretKey: expected both or neither")
    return Options(
        name_servers,
        topics,
        _starting(given.get("startingOffsets", "earliest")),
        _number(given, "maxOffsetsPerTrigger") if "maxOffsetsPerTrigger" in given else None,
        _number(given, "splitOffsets", "100000"),
        _flag(given, "failOnDataLoss", "true"),
        given.get("group", "mqproof_spark"),
        given.get("tls"),
        Credentials(access, secret) if access is not None and secret is not None else None,
    )


def _starting(text: str) -> str | Positions:
    if text in ("earliest", "latest"):
        return text
    try:
        positions = msgspec.json.decode(text, type=Positions)
    except msgspec.DecodeError as error:
        raise StoreError(
            f"option startingOffsets: {text[:40]!r}, expected earliest, latest or a JSON object of "
            f"TOPIC@BROKER:QUEUE to offset ({error})"
        ) from None
    for name in positions:
        parse_queue(name)
    return positions


def _number(given: Mapping[str, str], name: str, default: str = "") -> int:
    text = given.get(name, default)
    if not text.isdecimal() or not int(text):
        raise StoreError(f"option {name}: {text!r}, expected a number above 0")
    return int(text)


def _flag(given: Mapping[str, str], name: str, default: str) -> bool:
    text = given.get(name, default).lower()
    if text not in ("true", "false"):
        raise StoreError(f"option {name}: {text!r}, expected true or false")
    return text == "true"


def parse_queue(name: str) -> MessageQueue:
    """Return the queue of `TOPIC@BROKER:QUEUE`.

    Raises:
        StoreError: the name has another form.
    """
    topic, _, rest = name.partition("@")
    broker, _, queue_id = rest.rpartition(":")
    if not (topic and broker and queue_id.isdecimal()):
        raise StoreError(f"{name!r} names no queue, expected TOPIC@BROKER:QUEUE")
    return MessageQueue(topic, broker, int(queue_id))


# --- positions


def offset_ranges(options: Options, *, skip_unavailable: bool = False) -> dict[str, Ends]:
    """Return the current ends of each queue of the topics.

    With `skip_unavailable`, unreachable topics are left out.

    Raises:
        ClientError: a topic is unknown to the name servers, or a broker does not answer.
    """
    ends: dict[str, Ends] = {}
    with options.client() as client:
        for topic in options.topics:
            try:
                for queue in client.queues(topic):
                    ends[str(queue)] = Ends(client.min_offset(queue), client.max_offset(queue))
            except ClientError as error:
                if not skip_unavailable:
                    raise
                _log.warning("%s: skipped for now: %s", topic, error)
    return ends


def begin(options: Options, ends: Mapping[str, Ends]) -> Positions:
    """Return where a new query begins.

    If startingOffsets is a table, queues that it does not name are read from their beginning.

    Raises:
        StoreError: startingOffsets names a queue that does not exist.
    """
    starting = options.starting
    if starting == "latest":
        return {name: of.end for name, of in ends.items()}
    offsets = starting if isinstance(starting, dict) else {}
    if unknown := sorted(set(offsets) - set(ends)):
        raise StoreError(
            f"option startingOffsets: no queue {unknown[0]}; there are {', '.join(sorted(ends))}"
        )
    return {name: offsets.get(name, of.begin) for name, of in ends.items()}


def advance(start: Positions, ends: Mapping[str, Ends], most: int | None, options: Options) -> Positions:
    """Return the end of the next batch. An unreachable queue keeps its position; a new one begins at 0.

    Raises:
        StoreError: the next messages were deleted, or the queue ends before them.
    """
    places = {name: _place(name, start.get(name, 0), of, options) for name, of in ends.items()}
    # If a queue was recreated, the next batch only resets its position to the beginning.
    ahead = {
        name: max(0, ends[name].end - place) * (place >= start.get(name, 0)) for name, place in places.items()
    }
    total = sum(ahead.values())
    if most is not None and total > most:
        # Each queue gets its proportion of the limit, so that none waits; rounded up, so that all advance.
        ahead = {name: -(-count * most // total) for name, count in ahead.items()}
    return start | {name: place + ahead[name] for name, place in places.items()}


def _place(name: str, at: int, of: Ends, options: Options) -> int:
    if of.begin <= at <= of.end:
        return at
    if options.fail_on_loss:
        raise StoreError(_LOST.format(name=name, at=at, begin=of.begin, end=of.end))
    return of.begin


_LOST: Final = (
    "{name}: the next offset is {at}, but the queue has {begin} to {end}: messages were deleted before they "
    "were read, or the topic was recreated; option failOnDataLoss=false continues with the existing messages"
)


def slices(start: Positions, end: Positions, options: Options) -> list[InputPartition]:
    """Split the messages between two positions, so that several tasks read a long queue."""
    return [
        Slice(name, at, min(at + options.split_offsets, last))
        for name, last in sorted(end.items())
        for at in range(start.get(name, 0), last, options.split_offsets)
    ] or [Slice("", 0, 0)]  # Spark treats a source without partitions as having one partition, None


# --- messages


def read_slice(options: Options, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield batches of SCHEMA.

    Raises:
        StoreError: messages of the slice were deleted.
        ClientError: the broker does not answer.
    """
    assert isinstance(partition, Slice), f"{partition} is not a slice of this reader"
    if partition.start == partition.end:
        return
    queue, at = parse_queue(partition.queue), partition.start
    with options.client() as client:
        rows = Rows(queue)
        while at < partition.end:
            pulled = client.pull(queue, at, max_count=_PULL)
            if pulled.min_offset > at and options.fail_on_loss:
                raise StoreError(
                    _LOST.format(name=queue, at=at, begin=pulled.min_offset, end=pulled.max_offset)
                )
            for message in pulled.messages:
                if message.queue_offset < partition.end:
                    rows.add(message)
            if rows.is_full:
                yield rows.taken()
            if pulled.next_offset <= at:
                raise ClientError(
                    f"{queue}: no message at offset {at}, and the queue has {pulled.max_offset}"
                )
            at = pulled.next_offset
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

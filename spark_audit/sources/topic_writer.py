"""The PySpark sink of a running cluster's topics, for tables and for streams.

    register(spark)
    frame.write.format("rocketmq").mode("append").options(namesrv="127.0.0.1:9876", topic="T").save()

Delivery is at least once. A task ends after the brokers confirmed all its messages. Spark repeats a task or a
batch that failed, so messages of it may be in the topic twice, with different ids. Give each row a key of its
own, so that consumers recognise the second one. A job that fails leaves the messages of its finished tasks.

| column | type | |
|---|---|---|
| body | binary or string | required |
| topic | string | the row's topic; without it the option `topic` |
| tags | string | one tag |
| keys | string or array of strings | a string has several keys separated by spaces |
| order_key | string | rows of one key go to one queue, in the order of their partition |
| delay_s | number | delivered so many seconds later |
| properties | map of strings | properties of the application |

| option | default | |
|---|---|---|
| namesrv | | HOST:PORT, several separated by `;` |
| topic | | the topic of rows without one |
| group | mqproof_spark | the producer group |
| inFlight | 64 | messages of a task that wait for the broker's response |
| tls | | path of a tls.properties |
| accessKey, secretKey | | sign every request |
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Row
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import MessageError, Outcome, SendError, Sent
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.client.producing.queue_choice import by_hash
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import Credentials
from mqproof.spark_audit.sources.store.ranges import StoreError

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "body": ("binary", "string"),
    "topic": ("string",),
    "tags": ("string",),
    "keys": ("string", "array<string>"),
    "order_key": ("string",),
    "delay_s": ("tinyint", "smallint", "int", "bigint", "float", "double"),
    "properties": ("map<string,string>",),
}
_OPTIONS: Final = {"namesrv", "topic", "group", "inflight", "tls", "accesskey", "secretkey"}
_OF_SPARK: Final = {"path", "checkpointlocation"}
_IN_FLIGHT_MAX: Final = 10_000


@dataclass(frozen=True)
class Target:
    """Where the rows go; `read_target` creates it, and raises StoreError if an option is invalid."""

    name_servers: str
    topic: str | None
    group: str
    in_flight: int
    tls: str | None
    credentials: Credentials | None
    columns: tuple[str, ...]

    def client(self) -> BlockingClient:
        """Return a client, for use in `with`."""
        return BlockingClient(
            self.name_servers, producer=ProducerConfig(self.group), tls=self.tls, credentials=self.credentials
        )


@dataclass
class Written(WriterCommitMessage):
    """How many messages a task sent."""

    count: int


class TopicWriter(DataSourceWriter):
    """Sends the rows of a table."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[Row]) -> Written:
        return write_rows(self._target, iterator)


class TopicStreamWriter(DataSourceStreamWriter):
    """Sends the rows of each batch of a stream."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[Row]) -> Written:
        return write_rows(self._target, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: the brokers confirmed the messages of every task."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: messages that were sent stay sent."""


def read_target(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> Target:
    """Check the options and the columns of a table that is to be written.

    Raises:
        StoreError: an option or a column is missing, unknown or has another form, or messages would be
            overwritten.
    """
    if overwrite:
        raise StoreError("messages cannot be overwritten: use mode append, and outputMode append or update")
    if unknown := sorted(name for name in given if name.lower() not in _OPTIONS | _OF_SPARK):
        raise StoreError(f"option {unknown[0]}: unknown; the options are {', '.join(sorted(_OPTIONS))}")
    _check_columns(schema, has_topic="topic" in given)
    if not (name_servers := given.get("namesrv", "")):
        raise StoreError("option namesrv: expected HOST:PORT of a name server")
    access, secret = given.get("accessKey"), given.get("secretKey")
    if (access is None) != (secret is None):
        raise StoreError("options accessKey and secretKey: expected both or neither")
    text = given.get("inFlight", "64")
    if not text.isdecimal() or not 0 < int(text) <= _IN_FLIGHT_MAX:
        raise StoreError(f"option inFlight: {text!r}, expected a number from 1 to {_IN_FLIGHT_MAX}")
    return Target(
        name_servers,
        given.get("topic"),
        given.get("group", "mqproof_spark"),
        int(text),
        given.get("tls"),
        Credentials(access, secret) if access is not None and secret is not None else None,
        tuple(schema.names),
    )


def _check_columns(schema: StructType, *, has_topic: bool) -> None:
    for field in schema.fields:
        kind, allowed = field.dataType.simpleString(), COLUMNS.get(field.name)
        if allowed is None:
            raise StoreError(f"column {field.name}: unknown; the columns are {', '.join(COLUMNS)}")
        if kind not in allowed:
            raise StoreError(f"column {field.name} is {kind}, expected {' or '.join(allowed)}")
    if "body" not in schema.names:
        raise StoreError("column body is missing")
    if not has_topic and "topic" not in schema.names:
        raise StoreError("no topic: expected the option topic, or a column topic")


def write_rows(target: Target, rows: Iterable[Sequence[Any]]) -> Written:
    """Send the rows, and return after the brokers confirmed all of them.

    Raises:
        SendError: a message is not stored, or it is unknown whether it is.
        MessageError: a row cannot be a message.
    """
    count, pending = 0, deque[Future[Outcome]]()
    of_key: dict[str, Future[Outcome]] = {}
    with target.client() as client:
        for count, row in enumerate(rows, start=1):  # noqa: B007  # the last number is the count
            message, order_key = _message(target, dict(zip(target.columns, row, strict=True)))
            while len(pending) >= target.in_flight:
                _require_sent(pending.popleft())
            if order_key is None:
                pending.append(client.send_later(message))
                continue
            if order_key in of_key:
                _require_sent(of_key[order_key])  # two sends at once may be stored in either order
            if len(of_key) > target.in_flight:
                of_key = {key: future for key, future in of_key.items() if not future.done()}
            of_key[order_key] = client.send_later(message, select=by_hash(order_key))
            pending.append(of_key[order_key])
        for future in pending:
            _require_sent(future)
    return Written(count)


def _require_sent(future: Future[Outcome]) -> None:
    outcome = future.result()
    if not isinstance(outcome, Sent):
        raise SendError(outcome)


def _message(target: Target, row: Mapping[str, Any]) -> tuple[Message, str | None]:
    body, keys = row["body"], row.get("keys") or ()
    topic = row.get("topic") or target.topic
    if body is None or topic is None:
        raise MessageError(f"a row has no {'body' if body is None else 'topic'}: {dict(row)!r:.200}")
    message = new_message(
        topic,
        body.encode() if isinstance(body, str) else bytes(body),
        tag=row.get("tags"),
        keys=keys.split() if isinstance(keys, str) else keys,
        delay=None if row.get("delay_s") is None else float(row["delay_s"]),
        properties=row.get("properties"),
    )
    return message, row.get("order_key")

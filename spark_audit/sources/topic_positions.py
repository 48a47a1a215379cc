"""Where readers of topics are, and their messages: without Spark, for `topics.py` and the watch.

Positions are kept by the reader alone: nothing is committed at a broker.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.remoting.signing import Credentials
from mqproof.spark_audit.sources.store.ranges import StoreError

_log: Final = logging.getLogger(__name__)

_PULL: Final = 32

Positions = dict[str, int]
"""Maps `TOPIC@BROKER:QUEUE` to the offset of the next message; the contents of the checkpoint."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The first readable offset of a queue, and one more than its last."""

    begin: int
    end: int


@dataclass
class Slice:
    """The messages [start, end) of one queue."""

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


# --- messages


def pulled(
    client: BlockingClient, part: Slice, *, fail_on_loss: bool
) -> Iterator[tuple[Sequence[StoredMessage], int]]:
    """Yield the messages of a slice, many at a time, with the offset that follows them.

    Raises:
        StoreError: messages were deleted.
        ClientError: the broker does not answer.
    """
    queue, at = parse_queue(part.queue), part.start
    while at < part.end:
        answer = client.pull(queue, at, max_count=_PULL)
        if answer.min_offset > at and fail_on_loss:
            raise StoreError(_LOST.format(name=queue, at=at, begin=answer.min_offset, end=answer.max_offset))
        if answer.next_offset <= at:
            raise ClientError(f"{queue}: no message at offset {at}, and the queue has {answer.max_offset}")
        at = answer.next_offset
        yield [message for message in answer.messages if message.queue_offset < part.end], min(at, part.end)

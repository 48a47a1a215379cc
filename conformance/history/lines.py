"""The lines of a history file: the requests of the clients of a cluster, and the responses they received.

JSON Lines in Jepsen's terms. An operation is a line of type `invoke` and, when it ends, another line of the
same process: `ok` (it happened), `fail` (it certainly did not), `info` (unknown). An operation without a
second line is treated as if it ended with `info`.
docs/reference/history-format.md describes the format for users.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain, islice
from typing import Final, Union

import msgspec

SCHEMA: Final = 1
NEMESIS: Final = "nemesis"
"""The process that injects faults and writes `setup`."""
RETRY: Final = "%RETRY%"
DEAD: Final = "%DLQ%"


class HistoryError(ValueError):
    """A line is not of a history. The message names the file, the line and the field."""


class Type(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A message as it is sent."""

    id: str
    """The unique key; it differs for each message."""
    body: str = ""
    """Any digest of the body; equal bodies have equal digests. Empty: not recorded."""
    tag: str = ""
    key: str = ""
    """The sharding key: messages with the same key are consumed in order. Empty: no key."""
    deliver_at: int = 0
    """Earliest delivery time in nanoseconds. 0: immediately."""


class Delivered(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A message as a consumer received it."""

    id: str
    offset: int
    """Offset in the queue from which it was read."""
    body: str = ""
    tag: str = ""
    key: str = ""
    times: int = 0
    """Number of earlier returns (failed consumptions)."""
    born: int = 0
    """When the producer created it: nanoseconds on the producer's clock. 0: not recorded."""
    stored: int = 0
    """When the broker stored it: nanoseconds on the broker's clock. 0: not recorded."""
    offset_id: str = ""
    """The broker's id of the record, made of its address and its offset in the log."""
    queue: str = ""
    """The queue named in the record, if it differs from the one from which it was read."""


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """The properties of a consumer group that the rules need."""

    topics: tuple[str, ...] = ()
    broadcast: bool = False
    orderly: bool = False
    tags: tuple[str, ...] = ()
    """Tags to which the group subscribes; empty: all."""
    from_start: bool = True
    """Whether its consumers begin at a queue's first message."""
    reconsume_max: int = 16
    """After this many returns a message becomes a dead letter."""
    retry_delays_ms: tuple[int, ...] = ()
    """Delays before redelivery after the first, second, ... failure. Empty: not judged."""


class SetupValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """The properties of a run that the rules need. A bound that is None is not judged."""

    schema: int = SCHEMA
    name: str = ""
    seed: int = 0
    flush_mode: str = "SYNC_FLUSH"
    replication: str = "none"
    """Replication: none, or how the master replicates to its slaves: async | sync."""
    groups: dict[str, Group] = {}
    skew_ms: int = 0
    """Maximum difference between the clocks of two nodes."""
    visible_within_ms: int | None = None
    """Maximum time from the acknowledgement of a message until it can be read."""
    deliver_within_ms: int | None = None
    """Maximum time from a delayed message's due time until its delivery."""
    rebalance_within_ms: int | None = None
    """Maximum time for which a queue of a group may have two owners, or none."""
    serve_within_ms: int | None = None
    """Maximum time after the end of the last fault until all operations succeed again."""
    stall_within_ms: int | None = None
    """Maximum time for which an orderly queue with messages may make no progress."""
    lag_max_ms: int | None = None
    """Maximum age of the newest message of a poll while newer messages are acknowledged."""
    lock_expires_ms: int = 60_000
    """A consumer whose listener call lasts longer loses its queue's lock."""
    lock_trusted_ms: int = 30_000
    """Time after the grant for which a consumer relies on a lock, even if its broker has forgotten it."""


class SendValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: topic, messages (several form one batch), queue if the producer chose one.

    ok: the other fields.
    """

    topic: str = ""
    messages: tuple[Message, ...] = ()
    status: str = ""
    """SEND_OK | FLUSH_DISK_TIMEOUT | FLUSH_SLAVE_TIMEOUT | SLAVE_NOT_AVAILABLE"""
    queue: str = ""
    """TOPIC/BROKER/ID; empty if the response does not state it, as for a delayed message."""
    offset: int = -1
    """Offset of the first message."""
    offset_id: str = ""
    attempts: int = 1


class PollValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: group, queue, offset, client, seek. ok: the other fields."""

    group: str = ""
    queue: str = ""
    offset: int = -1
    """The requested offset."""
    client: str = ""
    """The member of the group; empty: the process is the member."""
    seek: bool = False
    """The consumer moves to this offset explicitly."""
    messages: tuple[Delivered, ...] = ()
    next: int = -1
    min: int = -1
    max: int = -1
    """One more than the last offset, as stated in this response. -1: not stated."""
    node: str = ""
    """The replica that responded."""


class ConsumeValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One call of a listener. invoke: all fields. ok: consumed; fail: the messages are to be redelivered."""

    group: str = ""
    queue: str = ""
    """The queue from which it was read; for a redelivered message, a queue of the group's retry topic."""
    client: str = ""
    messages: tuple[Delivered, ...] = ()


class PopValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: group, queue, client, invisible_ms.

    ok: messages, which are invisible to others for that time.
    """

    group: str = ""
    queue: str = ""
    client: str = ""
    invisible_ms: int = 0
    messages: tuple[Delivered, ...] = ()


class AckValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Acknowledges a popped message."""

    group: str
    queue: str
    offset: int


class CommitValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Commits that everything before `offset` is consumed."""

    group: str
    queue: str
    offset: int
    client: str = ""
    reset: bool = False
    """The offset was set explicitly, not by consuming: it may go back or ahead."""


class QueryValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: group, queue, client. ok: the committed offset, -1 if there is none."""

    group: str = ""
    queue: str = ""
    offset: int = -1
    client: str = ""


class BoundsValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: queue. ok: its first offset and one more than its last."""

    queue: str = ""
    min: int = -1
    max: int = -1
    node: str = ""


class AssignValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """From now on the client reads these queues; `left`: it is no longer a member."""

    group: str
    client: str = ""
    queues: tuple[str, ...] = ()
    left: bool = False


class RecallValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Recalls a delayed message."""

    id: str


class TopicValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    topic: str


class DrainValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """ok: after the invoke, the group read all queues of the topics to their ends."""

    group: str
    topics: tuple[str, ...] = ()


class FaultValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A fault, or the end of one.

    `start` ends `kill`, `crash_os`, `lose_power`, `lose_disk` or `shutdown`. `resume` ends `pause`. `heal`
    ends `cut`, `isolate`, `lose_requests`, `lose_answers`, `delay`, `slow_disk` or `full_disk`. `promote`
    makes the node a master.
    """

    kind: str
    node: str = ""
    failure: str = ""
    """For a start: why the node does not start."""


class _Line(msgspec.Struct, tag_field="f", frozen=True, omit_defaults=True, gc=False):
    index: int
    """Dense, from 0: the order in which the lines were written."""
    time: int
    """Nanoseconds, by one clock for the whole history."""
    process: int | str
    """The process; it has one operation at a time."""
    type: Type


class Setup(_Line, tag="setup", frozen=True, gc=False):
    value: SetupValue


class Send(_Line, tag="send", frozen=True, gc=False):
    value: SendValue = SendValue()
    error: str = ""


class Poll(_Line, tag="poll", frozen=True, gc=False):
    value: PollValue = PollValue()
    error: str = ""


class Consume(_Line, tag="consume", frozen=True, gc=False):
    value: ConsumeValue = ConsumeValue()
    error: str = ""


class Pop(_Line, tag="pop", frozen=True, gc=False):
    value: PopValue = PopValue()
    error: str = ""


class Ack(_Line, tag="ack", frozen=True, gc=False):
    value: AckValue | None = None
    error: str = ""


class Commit(_Line, tag="commit", frozen=True, gc=False):
    value: CommitValue | None = None
    error: str = ""


class Query(_Line, tag="query", frozen=True, gc=False):
    value: QueryValue = QueryValue()
    error: str = ""


class Bounds(_Line, tag="bounds", frozen=True, gc=False):
    value: BoundsValue = BoundsValue()
    error: str = ""


class Assign(_Line, tag="assign", frozen=True, gc=False):
    value: AssignValue | None = None
    error: str = ""


class Recall(_Line, tag="recall", frozen=True, gc=False):
    value: RecallValue | None = None
    error: str = ""


class DeleteTopic(_Line, tag="delete_topic", frozen=True, gc=False):
    value: TopicValue | None = None
    error: str = ""


class Drain(_Line, tag="drain", frozen=True, gc=False):
    value: DrainValue | None = None
    error: str = ""


class Fault(_Line, tag="fault", frozen=True, gc=False):
    value: FaultValue


Operation = Union[  # noqa: UP007  # msgspec wants the union's name at run time
    Send, Poll, Consume, Pop, Ack, Commit, Query, Bounds, Assign, Recall, DeleteTopic, Drain
]
Line = Union[Setup, Fault, Operation]  # noqa: UP007

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)
_BATCH: Final = 256
"""The number of lines that are decoded by one call."""


def encode(line: Line) -> bytes:
    """Return one line, with its newline. Fields with default values are omitted."""
    return _encoder.encode(line) + b"\n"


def decode(text: bytes, where: str) -> Line:
    """Return the line; `where` ("FILE:LINE") is used in error messages.

    Raises:
        HistoryError: not JSON, an unknown f, a field is missing or of the wrong type, or a newer schema.
    """
    try:
        line: Line = _decoder.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # ValueError: broken UTF-8
        raise HistoryError(f"{where}: not a line of a history: {error}") from None
    _refuse_newer(line, where)
    return line


def decode_lines(texts: Iterable[bytes], name: str) -> Iterator[Line]:
    """Return the lines of a file called `name`.

    A last line without a newline is a torn write and is skipped: the operation that it would have ended stays
    open.

    Raises:
        HistoryError: as `decode`.
    """
    return chain.from_iterable(lines for _, lines in decode_batches(texts, name))


def decode_batches(all_texts: Iterable[bytes], name: str) -> Iterator[tuple[list[bytes], list[Line]]]:
    """Yield the texts and the lines in batches: one call for each line would take a quarter longer.

    Raises:
        HistoryError: as `decode`.
    """
    texts = iter(all_texts)
    before = 0
    while batch := list(islice(texts, _BATCH)):
        if not batch[-1].endswith(b"\n"):
            batch.pop()
        try:
            lines: list[Line] = _decoder.decode_lines(b"".join(batch))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            lines = []
        if len(lines) != len(batch) or Setup in map(type, lines):
            lines = [decode(text, f"{name}:{before + place}") for place, text in enumerate(batch, start=1)]
        yield batch, lines
        before += len(batch)


def _refuse_newer(line: Line, where: str) -> None:
    if isinstance(line, Setup) and line.value.schema > SCHEMA:
        raise HistoryError(f"{where}: history schema {line.value.schema}, at most {SCHEMA} expected")


def topic_of(queue: str) -> str:
    """Return the topic of TOPIC/BROKER/ID."""
    return queue.partition("/")[0]

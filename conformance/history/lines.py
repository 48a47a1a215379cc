"""The lines of a history file: what the clients of a cluster asked, and what they were told.

JSON Lines in Jepsen's terms: an operation is a line of type `invoke` and, when it ended, one more of the same
process: `ok` (it happened), `fail` (it certainly did not), `info` (nobody knows). An operation without its
second line is as if it ended with `info`. Described for people in docs/histories.md.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, Union

import msgspec

SCHEMA: Final = 1
NEMESIS: Final = "nemesis"
"""The process that does faults and writes `setup`."""
RETRY: Final = "%RETRY%"
DEAD: Final = "%DLQ%"


class HistoryError(ValueError):
    """A line that is not of a history. The message names the file, the line and the field."""


class Type(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A message as it is sent."""

    id: str
    """The unique key, another for each message."""
    body: str = ""
    """Any digest of the body, the same wherever the body is the same. Empty: not recorded."""
    tag: str = ""
    key: str = ""
    """The sharding key: messages of one key are consumed in order. Empty: of no key."""
    deliver_at: int = 0
    """Nanoseconds; not before then. 0: at once."""


class Delivered(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A message as a consumer got it."""

    id: str
    offset: int
    """In the queue it was read from."""
    body: str = ""
    tag: str = ""
    key: str = ""
    times: int = 0
    """How often it was given back before."""
    born: int = 0
    """Nanoseconds, the producer's clock. 0: not recorded."""
    stored: int = 0
    """Nanoseconds, the broker's clock. 0: not recorded."""
    offset_id: str = ""
    """The broker's id of the record, made of its address and its place in the log."""
    queue: str = ""
    """The queue that the record names, where that is another than it was read from."""


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """A consumer group, as far as the rules need to know it."""

    topics: tuple[str, ...] = ()
    broadcast: bool = False
    orderly: bool = False
    tags: tuple[str, ...] = ()
    """It subscribes to these; empty: to all."""
    from_start: bool = True
    """Its consumers begin at a queue's first message."""
    reconsume_max: int = 16
    """After so many returns a message is a dead letter."""
    retry_delays_ms: tuple[int, ...] = ()
    """How long a message stays away after its first, second, ... failure. Empty: not judged."""


class SetupValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the rules have to know of a run. A bound that is None is not judged."""

    schema: int = SCHEMA
    name: str = ""
    seed: int = 0
    flush_mode: str = "SYNC_FLUSH"
    replication: str = "none"
    """none, or how a master treats its slaves: async | sync."""
    groups: dict[str, Group] = {}
    skew_ms: int = 0
    """How far the clocks of two nodes may be apart."""
    visible_within_ms: int | None = None
    """After its acknowledgement a message can be read, at the latest."""
    deliver_within_ms: int | None = None
    """After its time a delayed message is handed over, at the latest."""
    rebalance_within_ms: int | None = None
    """So long a queue of a group may have two owners, or none."""
    serve_within_ms: int | None = None
    """So long after the last fault ended everything works again."""
    stall_within_ms: int | None = None
    """So long an orderly queue with messages may stand still."""
    lag_max_ms: int | None = None
    """No poll's newest message is older than this while newer ones are acknowledged."""
    lock_expires_ms: int = 60_000
    """A consumer that is at work longer loses its queue's lock."""
    lock_trusted_ms: int = 30_000
    """So long after it was granted a consumer counts on a lock that its broker has forgotten."""


class SendValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: topic, messages (several: one batch), queue if the producer chose one. ok: the rest."""

    topic: str = ""
    messages: tuple[Message, ...] = ()
    status: str = ""
    """SEND_OK | FLUSH_DISK_TIMEOUT | FLUSH_SLAVE_TIMEOUT | SLAVE_NOT_AVAILABLE"""
    queue: str = ""
    """TOPIC/BROKER/ID; empty when the answer does not tell it, as for a delayed message."""
    offset: int = -1
    """Of the first message."""
    offset_id: str = ""
    attempts: int = 1


class PollValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: group, queue, offset, client, seek. ok: the rest."""

    group: str = ""
    queue: str = ""
    offset: int = -1
    """Asked for."""
    client: str = ""
    """The member of the group; empty: the process is one."""
    seek: bool = False
    """The consumer goes to this offset on purpose."""
    messages: tuple[Delivered, ...] = ()
    next: int = -1
    min: int = -1
    max: int = -1
    """One more than the last offset, as the broker said in this answer. -1: it did not."""
    node: str = ""
    """The replica that answered."""


class ConsumeValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One call of a listener. invoke: all of it. ok: done; fail: the messages are to come again."""

    group: str = ""
    queue: str = ""
    """It was read from: of a message that comes again, a queue of the group's retry topic."""
    client: str = ""
    messages: tuple[Delivered, ...] = ()


class PopValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: group, queue, client, invisible_ms. ok: messages, which nobody else gets for so long."""

    group: str = ""
    queue: str = ""
    client: str = ""
    invisible_ms: int = 0
    messages: tuple[Delivered, ...] = ()


class AckValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A popped message is done."""

    group: str
    queue: str
    offset: int


class CommitValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Everything before `offset` is done."""

    group: str
    queue: str
    offset: int
    client: str = ""
    reset: bool = False
    """It did not get there by consuming: it may go back or ahead."""


class QueryValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """invoke: group, queue, client. ok: the committed offset, -1 when there is none."""

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
    """From now on the client reads these queues; `left`: it is no member any more."""

    group: str
    client: str = ""
    queues: tuple[str, ...] = ()
    left: bool = False


class RecallValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A delayed message is taken back."""

    id: str


class TopicValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    topic: str


class DrainValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """ok: after the invoke all queues of the topics were read to their ends by the group."""

    group: str
    topics: tuple[str, ...] = ()


class FaultValue(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """kind: kill | crash_os | lose_power | lose_disk | shutdown begin a fault of the node that start ends;
    pause one that resume ends; cut | isolate | lose_requests | lose_answers | delay | slow_disk | full_disk
    one that heal ends; promote makes the node a master."""

    kind: str
    node: str = ""
    failure: str = ""
    """Of a start: why the node does not come up."""


class _Line(msgspec.Struct, tag_field="f", frozen=True, omit_defaults=True, gc=False):
    index: int
    """Dense, from 0: the order in which the lines were written."""
    time: int
    """Nanoseconds, one clock for the whole history."""
    process: int | str
    """Has one operation at a time."""
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


def encode(line: Line) -> bytes:
    """One line, with its newline. Fields with their default values are left out."""
    return _encoder.encode(line) + b"\n"


def decode(text: bytes, where: str) -> Line:
    """The line; `where` ("FILE:LINE") goes into the error.

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
    """The lines of a file called `name`. A last line without its newline is a torn write, and left out:
    the operation that it would have ended stays open.

    Raises:
        HistoryError: as `decode`.
    """
    number, read, newline = 0, _decoder.decode, b"\n"
    try:
        for number, text in enumerate(texts, start=1):  # for the errors
            if not text.endswith(newline):
                return
            line: Line = read(text)
            if type(line) is Setup:
                _refuse_newer(line, f"{name}:{number}")
            yield line
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HistoryError(f"{name}:{number}: not a line of a history: {error}") from None


def _refuse_newer(line: Line, where: str) -> None:
    if isinstance(line, Setup) and line.value.schema > SCHEMA:
        raise HistoryError(f"{where}: history schema {line.value.schema}, at most {SCHEMA} expected")


def topic_of(queue: str) -> str:
    """The topic of TOPIC/BROKER/ID."""
    return queue.partition("/")[0]

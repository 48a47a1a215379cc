"""What clients hand to and get from the application."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import KEYS, RETRY_TOPIC, TAGS, StoredMessage


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """One queue of a topic at one broker."""

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker_name}:{self.queue_id}"


class ClientError(Exception):
    """An operation other than a send did not succeed. The message says what, where and why."""


class RefusalError(ClientError):
    """A broker understood what it was asked, and said no."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
        """The response code."""


class MessageError(ValueError):
    """A message that cannot be sent as it is; nothing was sent. The message says what is wrong with it."""


class NoRouteError(ClientError):
    """No name server knows where the topic lives."""


# The outcome of a send: exactly one of three.

STORED_STATUSES: Final[dict[int, str]] = {
    ResponseCode.SUCCESS: "SEND_OK",
    ResponseCode.FLUSH_DISK_TIMEOUT: "FLUSH_DISK_TIMEOUT",
    ResponseCode.SLAVE_NOT_AVAILABLE: "SLAVE_NOT_AVAILABLE",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "FLUSH_SLAVE_TIMEOUT",
}
"""Response codes that say "stored", with the status each stands for."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Stored; `status` says what was confirmed."""

    status: str
    """SEND_OK | FLUSH_DISK_TIMEOUT | SLAVE_NOT_AVAILABLE | FLUSH_SLAVE_TIMEOUT"""
    message_id: str
    """The unique key, the same on every attempt."""
    queue: MessageQueue
    queue_offset: int
    offset_message_id: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Certainly not stored."""

    message_id: str
    status: str
    """The response code's name, or NOT_CONNECTED when nothing was ever sent."""
    remark: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """Perhaps stored, perhaps more than once: an attempt timed out, lost its connection, or failed inside."""

    message_id: str
    remark: str
    attempts: int


Outcome = Sent | Refused | Unknown


@dataclass(frozen=True, slots=True)
class PullResult:
    """`next_offset` is where to go on, whatever the status."""

    status: str
    """FOUND | NO_NEW_MESSAGE | NO_MATCHED_MESSAGE | OFFSET_ILLEGAL"""
    next_offset: int
    min_offset: int
    max_offset: int
    messages: tuple[StoredMessage, ...] = field(default=())


# What listeners of a push consumer get, and what they say.


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as its consumer sees it; one that comes again looks as it did the first time."""

    stored: StoredMessage
    queue: MessageQueue
    """Where it was read: of a message that comes again, a queue of the group's retry topic."""
    reconsume_times: int
    """How often it was given back before."""

    @property
    def body(self) -> bytes:
        return self.stored.message.body

    @property
    def topic(self) -> str:
        """The topic it was sent to."""
        return self.properties.get(RETRY_TOPIC, self.queue.topic)

    @property
    def properties(self) -> Mapping[str, str]:
        return self.stored.message.properties

    @property
    def tag(self) -> str | None:
        return self.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        return self.properties.get(KEYS, "").split()

    @property
    def message_id(self) -> str:
        """The same on every delivery: what to recognise repetitions by."""
        return self.stored.message_id

    @property
    def queue_offset(self) -> int:
        return self.stored.queue_offset


@dataclass(frozen=True, slots=True)
class RetryLater:
    """What a listener returns when messages are to come again. Returning None says that all is done."""

    delay_level: int = 0
    """1 to 18: how much later, 1 s to 2 h; 0: by the ladder, from 10 s on; -1: to the dead letters now. Not
    for orderly consumers, whose queue waits."""
    pause_ms: int = 1000
    """Orderly consumers only: how long the queue waits, 10 to 30,000."""
    done: int = 0
    """So many messages at the beginning of the batch are done all the same."""


Listener = Callable[[Sequence[ReceivedMessage]], Awaitable[RetryLater | None] | RetryLater | None]
"""Consumes a batch, of one message unless configured otherwise. A coroutine function runs in the event loop,
a plain function in a thread. What it raises is logged, and counts as RetryLater()."""

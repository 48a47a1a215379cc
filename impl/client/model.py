"""What clients hand to and get from the application."""

from dataclasses import dataclass, field
from typing import Final

from impl.message import StoredMessage
from impl.remoting.codes import ResponseCode


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

"""The types that applications pass to clients and receive from them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

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
    """An operation other than a send failed. The message says what failed, where and why."""


class RefusalError(ClientError):
    """A broker understood the request and refused it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
        """The response code of the refusal."""


class MessageError(ValueError):
    """A message that cannot be sent as it is. Nothing was sent; the error message gives the reason."""


class NoRouteError(ClientError):
    """No name server has a route for the topic."""


# The outcome of a send: exactly one of three.

STORED_STATUSES: Final[dict[int, str]] = {
    ResponseCode.SUCCESS: "SEND_OK",
    ResponseCode.FLUSH_DISK_TIMEOUT: "FLUSH_DISK_TIMEOUT",
    ResponseCode.SLAVE_NOT_AVAILABLE: "SLAVE_NOT_AVAILABLE",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "FLUSH_SLAVE_TIMEOUT",
}
"""Response codes that mean "stored", with the status of each."""


def _no_truth(outcome: object) -> NoReturn:
    raise TypeError(
        f"{type(outcome).__name__} has no truth value: test isinstance(outcome, Sent), or use send_or_raise"
    )


@dataclass(frozen=True, slots=True)
class Sent:
    """The message is stored. `status` says what the broker confirmed."""

    status: str
    """SEND_OK | FLUSH_DISK_TIMEOUT | SLAVE_NOT_AVAILABLE | FLUSH_SLAVE_TIMEOUT"""
    message_id: str
    """The unique key, which is the same for every attempt."""
    queue: MessageQueue
    queue_offset: int
    offset_message_id: str
    attempts: int
    recall_handle: str | None = None
    """The handle to recall the message while it waits for its time; None if it does not wait."""

    def __bool__(self) -> NoReturn:
        _no_truth(self)


@dataclass(frozen=True, slots=True)
class Refused:
    """The message is certainly not stored."""

    message_id: str
    status: str
    """The name of the response code, NOT_CONNECTED or NO_ROUTE."""
    remark: str
    attempts: int

    def __bool__(self) -> NoReturn:
        _no_truth(self)


@dataclass(frozen=True, slots=True)
class Unknown:
    """The message may be stored, even more than once.

    An attempt timed out or lost its connection, or the broker reported an internal error.
    """

    message_id: str
    remark: str
    attempts: int

    def __bool__(self) -> NoReturn:
        _no_truth(self)


Outcome = Sent | Refused | Unknown


class SendError(ClientError):
    """`send_or_raise` did not store the message, or it is unknown whether it did."""

    def __init__(self, outcome: Refused | Unknown) -> None:
        what = "is not stored" if isinstance(outcome, Refused) else "may be stored"
        status = f"{outcome.status}: " if isinstance(outcome, Refused) else ""
        super().__init__(f"message {outcome.message_id} {what}: {status}{outcome.remark or 'no remark'}")
        self.outcome = outcome
        """What is known: `Refused`, or `Unknown`."""


class NoReplyError(ClientError):
    """`Producer.request` received no reply in time.

    The request may have been consumed, or be consumed later.
    """

    def __init__(self, timeout_ms: int, outcome: Sent | Unknown | None) -> None:
        what = "its send has not ended" if outcome is None else "it may be stored"
        if isinstance(outcome, Sent):
            what = f"message {outcome.message_id} is stored"
        super().__init__(f"no reply to the request within {timeout_ms} ms; {what}")
        self.outcome = outcome
        """What is known about the request's message; None if its send had not ended either."""


class ReplyError(ClientError):
    """The requester did not confirm the reply. The message says why: it may be gone, or too slow."""


@dataclass(frozen=True, slots=True)
class PullResult:
    """The result of a pull. `next_offset` is the offset to continue at, whatever the status."""

    status: str
    """FOUND | NO_NEW_MESSAGE | NO_MATCHED_MESSAGE | OFFSET_ILLEGAL"""
    next_offset: int
    min_offset: int
    max_offset: int
    messages: tuple[StoredMessage, ...] = field(default=())


# What listeners of a push consumer receive and return.


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as its consumer sees it. A redelivered message looks as it did at the first delivery."""

    stored: StoredMessage
    queue: MessageQueue
    """The queue it was read from. For a redelivered message, this is a queue of the group's retry topic."""
    reconsume_times: int
    """How often it was sent back before."""
    min_offset: int = -1
    """The first offset of the queue when the message was pulled; -1 if it was not pulled from the queue."""
    max_offset: int = -1
    """The end offset of the queue when the message was pulled; -1 if it was not pulled from the queue."""

    @property
    def body(self) -> bytes:
        """The body, decompressed."""
        return self.stored.message.body

    @property
    def topic(self) -> str:
        """The topic that the producer sent it to."""
        return self.properties.get(RETRY_TOPIC, self.queue.topic)

    @property
    def properties(self) -> Mapping[str, str]:
        """All properties, those of RocketMQ included."""
        return self.stored.message.properties

    @property
    def tag(self) -> str | None:
        """The tag, or None if the message has none."""
        return self.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys by which the message can be found."""
        return self.properties.get(KEYS, "").split()

    @property
    def message_id(self) -> str:
        """The id, which is the same for every delivery. Use it to recognise duplicates."""
        return self.stored.message_id

    @property
    def queue_offset(self) -> int:
        """The offset in `queue`."""
        return self.stored.queue_offset


@dataclass(frozen=True, slots=True)
class RetryLater:
    """The result of a listener when messages must be delivered again. None means that all are consumed."""

    delay_level: int = 0
    """The delay before the redelivery. Orderly consumers ignore it, because their queue waits.

    1 to 18 are delays of 1 s to 2 h. 0 means a delay that grows with each redelivery, starting at 10 s. -1
    moves the message to the dead letter queue now.
    """
    pause_ms: int = 1000
    """For orderly consumers only: how long the queue waits, 10 to 30,000 ms."""
    done: int = 0
    """This many messages at the start of the batch are consumed and are not delivered again."""


Listener = Callable[[Sequence[ReceivedMessage]], Awaitable[RetryLater | None] | RetryLater | None]
"""The application's function that consumes a batch of messages (one message, unless configured otherwise).

A coroutine function runs in the event loop, a plain function in a thread. An exception is logged and counts
as RetryLater().
"""

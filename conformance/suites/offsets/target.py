"""The operations that an implementation must offer for the suite of pulls and offsets: one broker.

The broker is driven step by step. The suite has its own topic and group. The broker may serve other clients
at the same time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.reference.rules.pulling import Status

QUEUES: Final = 2


class Capability(StrEnum):
    """The optional operations of a target, beyond sends, pulls and offsets."""

    EXPIRE = "expire"  # `expire`: old messages are deleted
    CLOCK = "clock"  # simulated time, which passes only while nothing happens: response times can be judged
    SQL92 = "sql92"  # pulls by an SQL92 expression
    WRITE = "write"  # `write`: time passes until the broker has written its offsets


class Message(NamedTuple):
    msg_id: str
    tag: str
    """The empty string is not a tag."""
    offset: int

    def __str__(self) -> str:
        return f"{self.msg_id}{f' ({self.tag})' if self.tag else ''} at {self.offset}"


@dataclass(frozen=True, slots=True)
class Pulled:
    """The answer to a pull as it is on the wire: the client has not filtered by tags yet."""

    status: Status
    next_offset: int
    min_offset: int
    max_offset: int
    messages: tuple[Message, ...] = ()

    def __str__(self) -> str:
        found = f" {', '.join(map(str, self.messages))}" if self.messages else ""
        return f"{self.status}{found}, next {self.next_offset} of {self.min_offset}..{self.max_offset}"


@dataclass(frozen=True, slots=True)
class Held:
    """The result of a pull that may wait."""

    answer: Pulled
    sent: tuple[Message, ...]
    """The messages that were stored while the pull waited."""
    waited_s: float
    """Seconds from the last message in `sent` to the answer; 0 if the answer came before that message."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search by time."""

    times: tuple[tuple[int, int], ...]
    """The offset and storing time, in milliseconds, of all existing messages."""
    requested_ms: int
    offset: int

    def __str__(self) -> str:
        stored = ", ".join(f"{offset} at {time - self.requested_ms:+}" for offset, time in self.times)
        return f"{self.offset} (stored, in ms from then: {stored or 'nothing'})"


class OffsetsTarget(Protocol):
    """One broker under test.

    Every call except `commit_oneway` returns when its effect is visible. `open` is called first and `close`
    last. Methods of capabilities that the target does not declare are never called.
    """

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    def open(self) -> None:
        """Create a new topic of QUEUES queues and a new group.

        Raises TargetError, as all other methods may.
        """
        ...

    def send(self, queue_id: int, msg_id: str, tag: str) -> int:
        """Send a message; return the offset at which it was stored."""
        ...

    def pull(
        self, queue_id: int, offset: int, count: int, expression: str, commit: int | None = None
    ) -> Pulled:
        """Pull once; with `commit`, the pull also commits that offset.

        The expression is by tags, or by SQL92 if it begins with `sql:`.
        """
        ...

    def hold(
        self, queue_id: int, offset: int, count: int, expression: str, then: tuple[tuple[str, str], ...]
    ) -> Held:
        """Start a pull that may wait, send messages (id and tag) to the queue, and wait for the answer."""
        ...

    def commit(self, queue_id: int, offset: int) -> None: ...

    def commit_oneway(self, queue_id: int, offset: int) -> None:
        """Commit without waiting for an answer, so that the time of the commit stays unknown."""
        ...

    def query(self, queue_id: int) -> int | None:
        """Return the group's offset; None for "not found"."""
        ...

    def search(self, queue_id: int, place: int, shift_ms: int) -> Searched:
        """Search for the offset at the time when existing message number `place` was stored, plus `shift_ms`.

        If there is no message, search for the current time.
        """
        ...

    def min_offset(self, queue_id: int) -> int: ...

    def max_offset(self, queue_id: int) -> int: ...

    def expire(self) -> None:
        """Let messages grow old, so that the broker deletes the expired ones."""
        ...

    def write(self) -> None:
        """Let so much time pass that the broker has certainly written its offsets."""
        ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject a fault that is among the capabilities. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...

"""What an implementation must offer to be asked for pulls and offsets: one broker, driven step by step.

Topic and group are the suite's own. The broker may serve others at the same time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.reference.pulling import Status

QUEUES: Final = 2


class Capability(StrEnum):
    """What a target can be asked for beyond sends, pulls and offsets."""

    EXPIRE = "expire"  # `expire`: old messages are deleted
    CLOCK = "clock"  # time passes only when nothing else happens, so how long an answer took says something
    WRITE = "write"  # `write`: a while passes, in which a broker writes its offsets


class Message(NamedTuple):
    msg_id: str
    tag: str
    """"" is none."""
    offset: int

    def __str__(self) -> str:
        return f"{self.msg_id}{f' ({self.tag})' if self.tag else ''} at {self.offset}"


@dataclass(frozen=True, slots=True)
class Pulled:
    """The answer to a pull as the wire has it: a client has not yet looked at tags."""

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
    """What came of a pull that may wait."""

    answer: Pulled
    sent: tuple[Message, ...]
    """What was stored while it waited."""
    waited_s: float
    """From the last of these to the answer; 0 when it came before."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search by time came to."""

    times: tuple[tuple[int, int], ...]
    """Of all messages that are there: offset and time of storing, in milliseconds."""
    asked_ms: int
    offset: int

    def __str__(self) -> str:
        stored = ", ".join(f"{offset} at {time - self.asked_ms:+}" for offset, time in self.times)
        return f"{self.offset} (stored, in ms from then: {stored or 'nothing'})"


class OffsetsTarget(Protocol):
    """One broker under test. Every call returns when its effect is there, but for `commit_oneway`; `open` is
    the first, `close` the last. Methods of capabilities that the target does not declare are never called."""

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    def open(self) -> None:
        """A new topic of QUEUES queues and a new group. Raises TargetError, as all others may."""
        ...

    def send(self, queue_id: int, msg_id: str, tag: str) -> int:
        """Returns the offset at which the message was stored."""
        ...

    def pull(
        self, queue_id: int, offset: int, count: int, expression: str, commit: int | None = None
    ) -> Pulled:
        """With `commit`, the pull also commits that offset."""
        ...

    def hold(
        self, queue_id: int, offset: int, count: int, expression: str, then: tuple[tuple[str, str], ...]
    ) -> Held:
        """A pull that may wait; then messages (id and tag) are sent there, and the answer is awaited."""
        ...

    def commit(self, queue_id: int, offset: int) -> None: ...

    def commit_oneway(self, queue_id: int, offset: int) -> None:
        """Nobody learns when the broker has noted it."""
        ...

    def query(self, queue_id: int) -> int | None:
        """The group's offset; None for "not found"."""
        ...

    def search(self, queue_id: int, place: int, shift_ms: int) -> Searched:
        """The offset for the time when message number `place` of those that are there was stored, and so much
        later; for now, if there is none."""
        ...

    def min_offset(self, queue_id: int) -> int: ...

    def max_offset(self, queue_id: int) -> int: ...

    def expire(self) -> None:
        """Messages grow old, and the broker deletes what it may."""
        ...

    def write(self) -> None:
        """So much time passes that the broker has written its offsets, whenever it does so."""
        ...

    def befall(self, fault: BrokerFault) -> None:
        """One that is among the capabilities. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """Works in any state, also twice."""
        ...

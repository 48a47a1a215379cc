"""The operations that an implementation must offer for the retry suite: one broker, driven step by step.

The suite has its own topic and group. The broker may serve other clients at the same time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.shared_steps import Span

RETRIES_MAX: Final = 2
"""The maximum number of retries of the group."""


class Capability(StrEnum):
    """The optional operations of a target."""

    LOSE_MESSAGES = "lose_messages"


class Place(StrEnum):
    TOPIC = "topic"
    RETRY = "retry topic"
    DEAD = "dead letters"


class Answer(StrEnum):
    """The broker's answer to a message that was sent back."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "not waited for"


class Copy(NamedTuple):
    """A message as a consumer reads it."""

    msg_id: str
    times: int
    """How often it was sent back before."""
    topic: str
    """The topic to which it was first sent, according to the message."""
    origin: str
    """The offset message id of its first copy, according to the message; "" for the first copy itself."""
    handle: int
    """The commit-log offset by which it is sent back."""
    stored_s: float | None = None
    """The time when its broker stored it, by the broker's own clock; None if it is unknown."""

    def __str__(self) -> str:
        return f"{self.msg_id} (retry {self.times})" if self.times else self.msg_id


@dataclass(frozen=True, slots=True)
class Setup:
    topic: str
    """The topic name under which messages are read."""
    levels_s: tuple[float, ...]
    """The delay of each level in seconds, level 1 first."""
    slack_s: float
    """The maximum delay of a message after it is due."""
    clock_s: float
    """The maximum difference between the clocks for storing and for reading a message."""


class RetryTarget(Protocol):
    """One broker under test.

    Every call except `send_back_oneway` returns when its effect is visible. `open` is called first and
    `close` last.
    """

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    @property
    def is_simulated(self) -> bool:
        """True if waiting takes no real time."""
        ...

    def open(self, retry_queues: int) -> Setup:
        """Create a new topic, and a new group with RETRIES_MAX retries and `retry_queues` retry queues.

        Raises TargetError, as all other methods may.
        """
        ...

    def send(self, msg_id: str, level: int) -> tuple[str, Span]:
        """Send a message with a delay level, 0 for none; return its offset message id and the time span.

        The id is that of a message without delay.
        """
        ...

    def send_back(self, handle: int, level: int, times_max: int | None) -> tuple[Answer, Span]:
        """Send a message back; return the answer and the time span.

        `times_max`: the maximum number of retries in the request, None for the group's.
        """
        ...

    def send_back_oneway(self, handle: int, level: int, times_max: int | None) -> Span: ...

    def read(self, place: Place) -> tuple[tuple[Copy, ...], Span]:
        """Return the copies in the place that were not read before."""
        ...

    def now_s(self) -> float:
        """Return the current time of the clock that the spans use."""
        ...

    def wait(self, seconds: float) -> None: ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject a fault that is among the capabilities. Returns when the broker serves again."""
        ...

    def lose_messages(self) -> None:
        """Stop the broker, delete its messages but not its settings and offsets, and start it again.

        Queues begin at 0 again. Returns when the broker serves again.
        """
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...

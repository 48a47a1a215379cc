"""What an implementation must offer to be held to the delay ladder: one broker, driven step by step.

Topic and group are the suite's own. The broker may serve others at the same time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault

RETRIES_MAX: Final = 2
"""Of the group."""


class Place(StrEnum):
    TOPIC = "topic"
    RETRY = "retry topic"
    DEAD = "dead letters"


class Answer(StrEnum):
    """To a message that was sent back."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "not waited for"


class Copy(NamedTuple):
    """A message as somebody reads it."""

    msg_id: str
    times: int
    """How often it was sent back before."""
    topic: str
    """The topic it was sent to at first, as the message says."""
    origin: str
    """The offset message id of its first copy, as the message says; "" for that one itself."""
    handle: int
    """By which it is sent back: a commit-log offset."""
    stored_s: float | None = None
    """When its broker stored it, by that one's own clock, if it says so."""

    def __str__(self) -> str:
        return f"{self.msg_id} (retry {self.times})" if self.times else self.msg_id


class Span(NamedTuple):
    """When something happened: not before, and not after; in seconds of a clock that starts anywhere."""

    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Setup:
    topic: str
    """The name under which messages are read."""
    levels_s: tuple[float, ...]
    """How long messages of each delay level wait, level 1 first."""
    slack_s: float
    """Later than this after its time no message may come."""
    clock_s: float
    """How much two clocks may differ that say when a message was stored and when it was read."""


class RetryTarget(Protocol):
    """One broker under test. Every call returns when its effect is there, but for `send_back_oneway`; `open`
    is the first, `close` the last."""

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[BrokerFault]: ...

    @property
    def is_simulated(self) -> bool:
        """Waiting costs nothing."""
        ...

    def open(self, retry_queues: int) -> Setup:
        """A new topic, and a new group with RETRIES_MAX retries and so many queues for them. Raises
        TargetError, as all others may."""
        ...

    def send(self, msg_id: str, level: int) -> tuple[str, Span]:
        """With a delay level, 0 for none. Returns the offset message id, of a message without delay, and when
        that was."""
        ...

    def send_back(self, handle: int, level: int, times_max: int | None) -> tuple[Answer, Span]:
        """`times_max`: the retries that the request names, None for the group's."""
        ...

    def send_back_oneway(self, handle: int, level: int, times_max: int | None) -> Span: ...

    def read(self, place: Place) -> tuple[tuple[Copy, ...], Span]:
        """What is there and was not read before."""
        ...

    def now_s(self) -> float:
        """By the clock of the spans."""
        ...

    def wait(self, seconds: float) -> None: ...

    def befall(self, fault: BrokerFault) -> None:
        """One that is among the capabilities. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """Works in any state, also twice."""
        ...

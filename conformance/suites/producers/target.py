"""What an implementation must offer to be held to the queue choice: one producer, driven send by send, and
brokers that answer it as they are told."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

BROKERS: Final = ("a", "b", "c")
ATTEMPTS_MAX: Final = 3
"""Of one send."""


class Fate(StrEnum):
    """How a broker answers an attempt."""

    OK = "ok"
    SLOW = "ok after 0.7 s"
    BUSY = "busy"  # to be tried elsewhere
    ILLEGAL = "illegal"  # not to be tried again
    SILENT = "nothing"  # until the send's time is over


SLOW_S: Final = 0.7
SEND_S: Final = 3.0
"""All attempts of a send together take no longer."""


class Attempt(NamedTuple):
    broker: str
    queue_id: int
    at_s: float
    """When the broker got it; in seconds of a clock that starts anywhere."""
    fate: Fate

    def __str__(self) -> str:
        return f"queue {self.queue_id} of {self.broker} at {self.at_s:.3f} s: {self.fate}"


@dataclass(frozen=True, slots=True)
class Setup:
    brokers: int
    """How many of BROKERS there are."""
    queues: int
    """Of the topic, at each."""
    strategy: bool
    """sendLatencyFaultEnable"""


class ProducerTarget(Protocol):
    """One producer under test. `open` is the first call, `close` the last."""

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[str]: ...

    def open(self, setup: Setup) -> None:
        """A new producer, which has not sent yet. Raises TargetError, as all others may."""
        ...

    def route(self, brokers: tuple[str, ...]) -> None:
        """The topic's queues are at these brokers now, and the producer knows."""
        ...

    def send(self, fates: tuple[Fate, ...]) -> tuple[tuple[Attempt, ...], bool]:
        """One send, whose attempts meet these fates in turn. Returns them, and whether it succeeded."""
        ...

    def wait(self, seconds: float) -> None: ...

    def close(self) -> None:
        """Works in any state, also twice."""
        ...

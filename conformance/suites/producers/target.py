"""The operations that an implementation must offer for the producer suite: one producer, driven send by send.

The brokers are simulated; each attempt gets the answer that the suite chose.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

BROKERS: Final = ("a", "b", "c")
ATTEMPTS_MAX: Final = 3
"""The maximum number of attempts of one send."""


class Fate(StrEnum):
    """The answer of a broker to an attempt."""

    OK = "ok"
    SLOW = "ok after 0.7 s"
    BUSY = "busy"  # the producer should try another broker
    ILLEGAL = "illegal"  # the producer must not retry
    SILENT = "nothing"  # no answer until the send times out


SLOW_S: Final = 0.7
SEND_S: Final = 3.0
"""The time limit for all attempts of a send together."""


class Attempt(NamedTuple):
    broker: str
    queue_id: int
    at_s: float
    """The time when the broker received it, in seconds of a clock with any starting point."""
    fate: Fate

    def __str__(self) -> str:
        return f"queue {self.queue_id} of {self.broker} at {self.at_s:.3f} s: {self.fate}"


@dataclass(frozen=True, slots=True)
class Setup:
    brokers: int
    """The number of brokers, the first ones of BROKERS."""
    queues: int
    """The number of queues of the topic at each broker."""
    strategy: bool
    """The value of sendLatencyFaultEnable."""


class ProducerTarget(Protocol):
    """One producer under test. `open` is called first and `close` last."""

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[str]: ...

    def open(self, setup: Setup) -> None:
        """Create a new producer, which has not sent yet. Raises TargetError, as all other methods may."""
        ...

    def route(self, brokers: tuple[str, ...]) -> None:
        """Move the topic's queues to these brokers, and let the producer receive the new route."""
        ...

    def send(self, fates: tuple[Fate, ...]) -> tuple[tuple[Attempt, ...], bool]:
        """Send once; the attempts get these answers in turn.

        Return the attempts and whether the send succeeded.
        """
        ...

    def wait(self, seconds: float) -> None: ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...

"""The requests to a producer, and the brokers that it sent to."""

from dataclasses import dataclass

from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.producers.target import Attempt


@dataclass(frozen=True, slots=True)
class Send:
    attempts: tuple[Attempt, ...]
    done: bool
    """The producer reported that the message is stored."""

    def __str__(self) -> str:
        return f"send to {', then '.join(map(str, self.attempts)) or 'no broker'}"


@dataclass(frozen=True, slots=True)
class Route:
    brokers: tuple[str, ...]

    def __str__(self) -> str:
        return f"the topic is on {', '.join(self.brokers)}"


Operation = Send | Route | Wait

"""The operations that an implementation must offer for timers: one broker, driven step by step.

The suite has its own topic, of one queue. The broker may serve other clients.
"""

from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault

DELAY_MAX_S: Final = 259_200.0
"""The longest delay: `timerMaxDelaySec` of every release."""


class Capability(StrEnum):
    """The optional operations of a target."""

    LONG_WAITS = "long waits"  # the suite can wait for minutes: time is simulated
    DELETION = "deletion"  # old segments of the log can be deleted


class Answer(StrEnum):
    OK = "ok"
    REFUSED = "refused"


class Sent(NamedTuple):
    """A message that was accepted, as its producer knows it."""

    msg_id: str
    handle: str | None
    """The handle to recall it; None if the broker did not let it wait."""


class TimersTarget(Protocol):
    """One broker under test. `open` is called first and `close` last."""

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    def open(self) -> None:
        """Create a new topic.

        Raises TargetError, as all other methods may.
        """
        ...

    def send(self, msg_id: str, delay_s: float) -> Sent | None:
        """Send a message whose unique key and body are the id; None if the broker refuses the delay."""
        ...

    def recall(self, sent: Sent) -> Answer:
        """Recall a message and wait for the answer."""
        ...

    def read(self) -> tuple[str, ...]:
        """Return the bodies of all messages that are visible in the topic, in order."""
        ...

    def now_s(self) -> float: ...

    def wait(self, seconds: float) -> None: ...

    def delete_old(self) -> None:
        """Delete the segments of the log that are old enough. Only with DELETION."""
        ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject a fault that is among the capabilities. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...

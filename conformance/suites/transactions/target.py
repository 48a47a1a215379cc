"""The operations that an implementation must offer for transactions: one broker, driven step by step.

The suite has its own topic, of one queue, and its own producer group. The broker may serve other clients.
"""

from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault

IMMUNITY_S: Final = 6.0
"""No transaction is checked before this time: `transactionTimeOut` of every release."""


class Capability(StrEnum):
    """The optional operations of a target."""

    CHECKS = "checks"  # the suite can wait for checks: time is simulated


class End(StrEnum):
    COMMIT = "commit"
    ROLLBACK = "rollback"


class Answer(StrEnum):
    OK = "ok"
    REFUSED = "refused"


class Half(NamedTuple):
    """A half message, or a copy of it, as its producer knows it."""

    msg_id: str
    place: int
    """The offset in the half queue."""
    commit_offset: int


class TransactionsTarget(Protocol):
    """One broker under test. `open` is called first and `close` last."""

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    @property
    def round_s(self) -> float:
        """The pause between two rounds of checks."""
        ...

    def open(self) -> None:
        """Create a new topic and connect the producer.

        Raises TargetError, as all other methods may.
        """
        ...

    def send_half(self, msg_id: str) -> Half:
        """Send a half message whose unique key and body are the id; return its place after SEND_OK."""
        ...

    def end(self, half: Half, end: End) -> Answer:
        """Report the end of a transaction and wait for the answer."""
        ...

    def checks(self) -> tuple[Half, ...]:
        """Return the checks that the producer received since the last call."""
        ...

    def read(self) -> tuple[str, ...]:
        """Return the bodies of all messages that are visible in the topic, in order."""
        ...

    def now_s(self) -> float: ...

    def wait(self, seconds: float) -> None: ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject a fault that is among the capabilities. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...

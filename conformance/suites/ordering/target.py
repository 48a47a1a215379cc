"""The operations that an implementation must offer for queue locks: one broker, driven step by step.

The suite has its own topic and groups. The broker may serve other clients at the same time.
"""

from collections.abc import Set
from enum import StrEnum
from typing import Final, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.shared_steps import Span

QUEUES: Final = 2
GROUPS: Final = ("g", "h")
MEMBERS: Final = ("c1", "c2", "c3")
"""The members; each is a client of both groups."""


class Capability(StrEnum):
    """The optional operations of a target, beyond locking and unlocking."""

    LEASE_ENDS = "lease_ends"  # the suite can wait for the end of a lease: it is short, or time is simulated


class OrderingTarget(Protocol):
    """One broker under test.

    Every call except `lock_unheard` returns when its effect is visible. `open` is called first and `close`
    last.
    """

    @property
    def name(self) -> str:
        """The name, as passed to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    @property
    def lease_s(self) -> float:
        """The time for which the broker keeps a lock that is not renewed."""
        ...

    def open(self) -> None:
        """Create a new topic of QUEUES queues and new groups.

        Raises TargetError, as all other methods may.
        """
        ...

    def lock(self, group: str, member: str, queues: Set[int]) -> tuple[frozenset[int], Span]:
        """Request the locks; return the queues that the member holds now, and the span of the request."""
        ...

    def lock_unheard(self, group: str, member: str, queues: Set[int]) -> Span:
        """Request the locks; the answer is lost, and the time at which it would have come is unknown."""
        ...

    def unlock(self, group: str, member: str, queues: Set[int]) -> Span: ...

    def now_s(self) -> float:
        """Return the current time of the clock that the spans use."""
        ...

    def wait(self, seconds: float) -> None: ...

    def inject(self, fault: BrokerFault) -> None:
        """Inject a fault that is among the capabilities. Returns when the broker serves again."""
        ...

    def close(self) -> None:
        """Free all resources. Works in any state, and more than once."""
        ...

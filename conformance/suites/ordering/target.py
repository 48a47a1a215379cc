"""What an implementation must offer to be asked for queue locks: one broker, driven step by step.

Topic and groups are the suite's own. The broker may serve others at the same time.
"""

from collections.abc import Set
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from mqproof.conformance.engine.broker_faults import BrokerFault

QUEUES: Final = 2
GROUPS: Final = ("g", "h")
MEMBERS: Final = ("c1", "c2", "c3")
"""Each is a client of both groups."""


class Capability(StrEnum):
    """What a target can be asked for beyond locking and unlocking."""

    LEASE_ENDS = "lease_ends"  # so short is the lease, or so cheap the time, that it can be waited for


class Span(NamedTuple):
    """When something happened: not before, and not after; in seconds of a clock that starts anywhere."""

    begin_s: float
    end_s: float


class OrderingTarget(Protocol):
    """One broker under test. Every call returns when its effect is there, but for `lock_unheard`; `open` is
    the first, `close` the last."""

    @property
    def name(self) -> str:
        """As given to `--target`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability | BrokerFault]: ...

    @property
    def lease_s(self) -> float:
        """So long the broker keeps a lock that is not renewed."""
        ...

    def open(self) -> None:
        """A new topic of QUEUES queues and new groups. Raises TargetError, as all others may."""
        ...

    def lock(self, group: str, member: str, queues: Set[int]) -> tuple[frozenset[int], Span]:
        """Returns the queues that are the member's now."""
        ...

    def lock_unheard(self, group: str, member: str, queues: Set[int]) -> Span:
        """Nobody hears the answer, nor when there would have been one."""
        ...

    def unlock(self, group: str, member: str, queues: Set[int]) -> Span: ...

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

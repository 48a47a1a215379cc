"""The lock requests of group members, and the times when their listeners were active."""

from dataclasses import dataclass

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.shared_steps import Span, Wait


@dataclass(frozen=True, slots=True)
class Lock:
    group: str
    member: str
    queues: frozenset[int]
    granted: frozenset[int] | None
    """The queues that the broker granted; None if the answer was lost."""
    span: Span

    def __str__(self) -> str:
        result = "the answer is lost" if self.granted is None else f"granted {sorted(self.granted)}"
        request = f"at {self.span.begin_s:.3f} s {self.member} of {self.group} locks {sorted(self.queues)}"
        return f"{request}: {result}"


@dataclass(frozen=True, slots=True)
class Unlock:
    group: str
    member: str
    queues: frozenset[int]
    span: Span

    def __str__(self) -> str:
        return f"at {self.span.begin_s:.3f} s {self.member} of {self.group} unlocks {sorted(self.queues)}"


@dataclass(frozen=True, slots=True)
class Begin:
    """The listener of a member that trusts its lock gets a message."""

    group: str
    member: str
    queue_id: int
    at_s: float

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s {self.member} of {self.group} begins to consume queue {self.queue_id}"


@dataclass(frozen=True, slots=True)
class End:
    group: str
    member: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.member} of {self.group} finishes queue {self.queue_id}"


Operation = Lock | Unlock | Begin | End | Wait | InjectFault

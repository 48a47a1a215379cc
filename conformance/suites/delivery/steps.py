"""The operations of a consumer group, and the messages delivered to it."""

from dataclasses import dataclass
from enum import StrEnum

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.suites.delivery.target import Message


class Change(StrEnum):
    JOINS = "joins"
    LEAVES = "leaves"
    DIES = "dies"
    SILENT = "falls silent and should be removed"
    RETURNS = "reconnects and continues to read"


@dataclass(frozen=True, slots=True)
class Send:
    queue_id: int
    message: Message

    def __str__(self) -> str:
        return f"send to queue {self.queue_id}: {self.message}"


@dataclass(frozen=True, slots=True)
class Membership:
    member: str
    change: Change
    notified: frozenset[str]
    """The members that were notified of the change."""

    def __str__(self) -> str:
        return f"{self.member} {self.change}; notified: {', '.join(sorted(self.notified)) or 'none'}"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A member queries the members of the group and takes over its queues."""

    member: str
    ids: frozenset[str]
    queues: frozenset[int]
    started: tuple[tuple[int, int | None], ...]
    """(queue, committed offset returned by the broker) of the queues that are new to the member."""

    def __str__(self) -> str:
        began = "".join(f", begins queue {queue_id} at {offset}" for queue_id, offset in self.started)
        return f"{self.member} sees members {sorted(self.ids)}: its queues are {sorted(self.queues)}{began}"


@dataclass(frozen=True, slots=True)
class Deliver:
    member: str
    queue_id: int
    offset: int
    messages: tuple[Message, ...]

    def __str__(self) -> str:
        found = ", ".join(map(str, self.messages)) or "nothing"
        return f"{self.member} reads queue {self.queue_id} from {self.offset}: {found}"


@dataclass(frozen=True, slots=True)
class Commit:
    member: str
    queue_id: int
    offset: int
    oneway: bool
    only_forward: bool = False
    """The broker keeps a higher offset that it already has."""

    def __str__(self) -> str:
        unknown = ", without waiting for the answer" if self.oneway else ""
        forward = ", unless there is a higher one" if self.only_forward else ""
        return f"{self.member} commits {self.offset} of queue {self.queue_id}{forward}{unknown}"


@dataclass(frozen=True, slots=True)
class Reset:
    """An administrator moves the group to other offsets."""

    offsets: tuple[tuple[int, int], ...]
    """Each element is (queue, new offset)."""

    def __str__(self) -> str:
        return f"the group's offsets are reset to {dict(self.offsets)}"


@dataclass(frozen=True, slots=True)
class Settled:
    """All present members have rebalanced since the last membership change, and have read all messages."""

    def __str__(self) -> str:
        return "the group has settled"


Operation = Send | Membership | Rebalance | Deliver | Commit | Query | Reset | Settled | InjectFault


def faults_of_members(operation: Operation) -> tuple[FaultKind, ...]:
    """Return the faults of members in the operation, and requests whose answers were not awaited."""
    match operation:
        case Membership(change=Change.DIES):
            return (FaultKind.CLIENT,)
        case Membership(change=Change.SILENT):
            return (FaultKind.SILENCE,)
        case Commit(oneway=True):
            return (FaultKind.UNHEARD,)
    return ()

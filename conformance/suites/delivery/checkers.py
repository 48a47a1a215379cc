"""The named invariants of delivery to a group; each one is a pure function of a run.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mqproof.conformance.engine.broker_faults import CRASHES, BrokerFault, InjectFault
from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.delivery.steps import (
    Change,
    Commit,
    Deliver,
    Membership,
    Operation,
    Rebalance,
    Reset,
    Send,
    Settled,
)
from mqproof.conformance.suites.delivery.target import QUEUES, Message


@dataclass(slots=True)
class _Facts:
    """The facts that are certain before an operation."""

    sent: dict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    delivered: set[tuple[int, int]] = field(default_factory=set)
    """(queue, offset) of the delivered messages."""
    owned: dict[str, frozenset[int]] = field(default_factory=dict)
    """Present member to the queues that it took over in its last rebalance."""
    committed: dict[int, int] = field(default_factory=dict)
    """Queue to the offset that was committed and acknowledged."""
    perhaps: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Queue to offsets that may be committed: not acknowledged, or possibly lost by a crash."""
    written: dict[int, int] = field(default_factory=dict)
    """Queue to the offset that was committed when the broker last certainly wrote its offsets."""

    def reset(self, offsets: Mapping[int, int]) -> None:
        """Record an explicit reset: the offsets are committed now or later."""
        for queue_id, offset in offsets.items():
            self.perhaps[queue_id] |= {self.least(queue_id), offset}
            self.committed[queue_id] = min(offset, self.least(queue_id))
            self.written.pop(queue_id, None)

    def inject(self, fault: BrokerFault) -> None:
        if fault in CRASHES:
            for queue_id, offset in self.committed.items():
                self.perhaps[queue_id].add(offset)
            self.committed = dict(self.written)
        elif fault is BrokerFault.RESTART:
            self.written = dict(self.committed)

    def least(self, queue_id: int) -> int:
        return self.committed.get(queue_id, 0)

    def goes_back(self, queue_id: int, offset: int | None) -> bool:
        """Return whether the offset is below the committed one and no ambiguous commit explains it."""
        return (offset or 0) < self.least(queue_id) and offset not in self.perhaps[queue_id]

    def most(self, queue_id: int) -> int:
        return max({self.least(queue_id), *self.perhaps[queue_id]})


def _followed(run: Run[Operation]) -> Iterator[tuple[int, Operation, _Facts]]:
    facts = _Facts()
    for step, operation in run.numbered():
        yield step, operation, facts
        match operation:
            case Send(queue_id, message):
                facts.sent[queue_id].append(message)
            case Membership(member, change):
                if change is Change.JOINS:
                    facts.owned[member] = frozenset()
                elif change is not Change.RETURNS:
                    facts.owned.pop(member, None)
            case Rebalance(member=member, queues=queues):
                facts.owned[member] = queues
            case Reset(offsets):
                facts.reset(dict(offsets))
            case InjectFault(fault):
                facts.inject(fault)
            case Deliver(queue_id=queue_id, messages=messages):
                facts.delivered |= {(queue_id, message.offset) for message in messages}
            case Commit(queue_id=queue_id, offset=offset, oneway=oneway):
                if oneway:
                    facts.perhaps[queue_id].add(offset)
                else:
                    facts.committed[queue_id] = max(offset, facts.least(queue_id))


def no_acked_lost(run: Run[Operation]) -> Finding:
    """DELIV-1 NoAckedLost: a member that starts a queue skips no message that the group has not committed.

    A group that has settled has received every message.
    """
    tally = Tally()
    for step, operation, facts in _followed(run):
        match operation:
            case Rebalance(member=member, started=started):
                for queue_id, offset in started:
                    tally.looked += 1
                    if (offset or 0) > facts.most(queue_id):
                        tally.found(f"step {step}: {member} begins queue {queue_id} at {offset}, "
                                    f"{facts.most(queue_id)} is committed")  # fmt: skip
            case Settled() if facts.owned:
                for queue_id, messages in facts.sent.items():
                    for message in messages:
                        tally.looked += 1
                        if (queue_id, message.offset) not in facts.delivered:
                            tally.found(
                                f"step {step}: {message} of queue {queue_id} was delivered to no member"
                            )
    return tally.finding("messages")


def acked_delivered(run: Run[Operation]) -> Finding:
    """DELIV-12 AckedDelivered: a group that has settled has received every message that was sent before."""
    tally = Tally()
    for step, operation, facts in _followed(run):
        if isinstance(operation, Settled) and facts.owned:
            for queue_id, messages in facts.sent.items():
                for message in messages:
                    tally.looked += 1
                    if (queue_id, message.offset) not in facts.delivered:
                        tally.found(f"step {step}: no member has received {message} of queue {queue_id}")
    return tally.finding("messages")


def no_phantom(run: Run[Operation]) -> Finding:
    """DELIV-2 NoPhantom: every delivered message was sent to that queue."""
    tally = Tally()
    for step, operation, facts in _followed(run):
        if isinstance(operation, Deliver):
            for message in operation.messages:
                tally.looked += 1
                if message not in facts.sent[operation.queue_id]:
                    tally.found(f"step {step}: {message} was not sent to queue {operation.queue_id}")
    return tally.finding("messages")


def duplicates_explained(run: Run[Operation]) -> Finding:
    """DELIV-3 DuplicatesExplained: no committed message is delivered again.

    This is checked when a member starts to read a queue.
    """
    tally = Tally()
    for step, operation, facts in _followed(run):
        if isinstance(operation, Rebalance):
            for queue_id, offset in operation.started:
                tally.looked += 1
                if facts.goes_back(queue_id, offset):
                    text = f"{operation.member} begins queue {queue_id} at {offset}"
                    tally.found(f"step {step}: {text}, {facts.least(queue_id)} is committed")
    return tally.finding("starts")


def queue_order(run: Run[Operation]) -> Finding:
    """DELIV-4 QueueOrder: a member receives the messages of a queue in order and without gaps."""
    tally = Tally()
    for step, operation, _ in _followed(run):
        if isinstance(operation, Deliver):
            tally.looked += 1
            offsets = [message.offset for message in operation.messages]
            if offsets != list(range(operation.offset, operation.offset + len(offsets))):
                tally.found(f"step {step}: from {operation.offset} on, offsets {offsets} were delivered")
    return tally.finding("reads")


def offset_monotone(run: Run[Operation]) -> Finding:
    """DELIV-5 OffsetMonotone: a query never returns less than the committed and acknowledged offset."""
    tally = Tally()
    for step, operation, facts in _followed(run):
        if isinstance(operation, Query):
            tally.looked += 1
            if facts.goes_back(operation.queue_id, operation.offset):
                tally.found(f"step {step}: {operation}, {facts.least(operation.queue_id)} expected")
    return tally.finding("queries")


def one_owner(run: Run[Operation]) -> Finding:
    """DELIV-6 OneOwner: after all members have rebalanced, exactly one member owns each queue."""
    tally = Tally()
    for step, operation, facts in _followed(run):
        if isinstance(operation, Settled) and facts.owned:
            for queue_id in range(QUEUES):
                tally.looked += 1
                owners = sorted(member for member, queues in facts.owned.items() if queue_id in queues)
                if len(owners) != 1:
                    readers = ", ".join(owners) or "no member"
                    tally.found(f"step {step}: queue {queue_id} is read by {readers}")
    return tally.finding("queues")


CHECKERS: Final[Checkers[Operation]] = {
    "DELIV-1": no_acked_lost,
    "DELIV-2": no_phantom,
    "DELIV-3": duplicates_explained,
    "DELIV-4": queue_order,
    "DELIV-5": offset_monotone,
    "DELIV-6": one_owner,
    "DELIV-12": acked_delivered,
}

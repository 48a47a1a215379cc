"""Members lock, renew, consume, stall and unlock in any order (spec/tla/OrderLock.tla).

Faults are injected into the broker. Hypothesis draws and shrinks the examples. A rule is one step of a
session.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.broker_faults import FAULTS_MAX, BrokerFault
from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.ordering.dimensions import UNHEARD_MAX
from mqproof.conformance.suites.ordering.session import OrderingSession
from mqproof.conformance.suites.ordering.target import GROUPS, MEMBERS, QUEUES, Capability, OrderingTarget

_PARTS: Final = (0.3, 0.45, 0.6, 1.1)
"""Parts of the lease.

After these times members still trust their locks, almost no longer do, no longer do, and cannot.
"""

_faults = st.lists(st.sampled_from(BrokerFault), max_size=FAULTS_MAX)
_groups = st.sampled_from(GROUPS)
_members = st.sampled_from(MEMBERS)
_queues = st.integers(0, QUEUES - 1)
_several = st.sets(_queues, min_size=1)


class OrderingMachine(Machine[OrderingTarget, OrderingSession]):
    """One example, with new groups."""

    @initialize(group=_groups, member=_members, faults=_faults)
    def open(self, group: str, member: str, faults: list[BrokerFault]) -> None:
        self.session = OrderingSession(self.target)
        self.ahead = [each for each in faults if each in self.target.capabilities]
        self.session.lock(group, member, set(range(QUEUES)))

    @rule(group=_groups, member=_members, queues=_several, consumes=st.booleans())
    def lock(self, group: str, member: str, queues: set[int], consumes: bool) -> None:
        self.session.lock(group, member, queues)
        if consumes:
            for queue_id in sorted(queues):
                self.session.begin(group, member, queue_id)

    @rule(group=_groups, member=_members, queue=_queues, ends=st.booleans())
    def consume(self, group: str, member: str, queue: int, ends: bool) -> None:
        if ends:
            self.session.end(group, member, queue)
        else:
            self.session.begin(group, member, queue)

    @rule(group=_groups, member=_members, queues=_several)
    def unlock(self, group: str, member: str, queues: set[int]) -> None:
        self.session.unlock(group, member, queues)

    @precondition(lambda machine: machine.session.unheard < UNHEARD_MAX)
    @rule(group=_groups, member=_members, queues=_several)
    def lock_unheard(self, group: str, member: str, queues: set[int]) -> None:
        self.session.lock_unheard(group, member, queues)

    @precondition(lambda machine: Capability.LEASE_ENDS in machine.target.capabilities)
    @rule(part=st.sampled_from(_PARTS), group=_groups, renews=st.booleans(), member=_members)
    def wait(self, part: float, group: str, renews: bool, member: str) -> None:
        """Let time pass.

        One member may renew its locks in the middle. Afterwards all members request the locks.
        """
        lease_s = self.target.lease_s
        self.session.wait(round(part * lease_s, 3))
        if renews:
            self.session.lock(group, member, set(range(QUEUES)))
            self.session.wait(round(part * lease_s, 3))
        for each in MEMBERS:
            self.session.lock(group, each, set(range(QUEUES)))
            self.session.begin(group, each, 0)

    @precondition(lambda machine: bool(machine.ahead))
    @rule(group=_groups, member=_members)
    def cause_fault(self, group: str, member: str) -> None:
        """Let one member lock, inject the next fault, and let all members request the locks."""
        self.lock(group, member, set(range(QUEUES)), consumes=True)
        self.session.inject(self.ahead.pop())
        for each in MEMBERS:
            self.session.lock(group, each, set(range(QUEUES)))
            self.session.begin(group, each, 0)

    def last_look(self) -> None:
        while self.ahead:
            self.cause_fault(group=GROUPS[0], member=MEMBERS[0])

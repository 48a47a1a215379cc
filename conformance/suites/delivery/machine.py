"""Members join, leave, die and fall silent while messages are sent, read and committed (spec/tla/Group.tla).

Faults are injected into the broker. Hypothesis draws and shrinks the examples. A rule is one step of a
session.
"""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.broker_faults import FAULTS_MAX, BrokerFault
from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.delivery.dimensions import UNKNOWN_MAX
from mqproof.conformance.suites.delivery.session import DeliverySession
from mqproof.conformance.suites.delivery.steps import Change
from mqproof.conformance.suites.delivery.target import MEMBERS, QUEUES, Capability, DeliveryTarget

_faults = st.lists(st.sampled_from(BrokerFault), max_size=FAULTS_MAX)
_members = st.sampled_from(MEMBERS)
_queues = st.integers(0, QUEUES - 1)
_bursts = st.lists(_queues, min_size=1, max_size=4)


class DeliveryMachine(Machine[DeliveryTarget, DeliverySession]):
    """One example, with a new topic and a new group."""

    @initialize(first=_members, burst=_bursts, faults=_faults)
    def open(self, first: str, burst: list[int], faults: list[BrokerFault]) -> None:
        self.session = DeliverySession(self.target)
        self.ahead = [each for each in faults if each in self.target.capabilities]
        for queue in burst:
            self.session.send(queue)
        self.session.change(first, Change.JOINS)
        self.session.rebalance(first)

    @rule(burst=_bursts)
    def send(self, burst: list[int]) -> None:
        for queue in burst:
            self.session.send(queue)

    @rule(member=_members, how=st.sampled_from((Change.LEAVES, Change.DIES, Change.SILENT)))
    def come_or_go(self, member: str, how: Change) -> None:
        """Join the member if it is absent; otherwise remove it, unless it is the only member."""
        there = self.session.positions
        if member not in there:
            self.session.change(member, Change.JOINS)
        elif len(there) > 1:
            silence = Capability.SILENCE in self.target.capabilities
            self.session.change(member, Change.DIES if how is Change.SILENT and not silence else how)

    @rule(member=_members)
    def rebalance(self, member: str) -> None:
        if member in self.session.positions:
            self.session.rebalance(member)

    @rule(member=_members, count=st.integers(1, 4), commits=st.booleans(), oneway=st.booleans())
    def read(self, member: str, count: int, commits: bool, oneway: bool) -> None:
        for queue in sorted(self.session.positions.get(member, {})):
            self.session.read(member, queue, count)
            if commits:
                waits = not oneway or self.session.unknown >= UNKNOWN_MAX
                self.session.commit(member, queue, oneway=not waits)

    @precondition(lambda machine: bool(machine.ahead))
    @rule(member=_members)
    def cause_fault(self, member: str) -> None:
        """Inject the next fault, then let a member join or leave.

        Other members must then query the committed offsets.
        """
        self.session.inject(self.ahead.pop())
        self.come_or_go(member, Change.DIES)
        self.session.settle()

    @rule()
    def settle(self) -> None:
        self.session.settle()

    def last_look(self) -> None:
        while self.ahead:
            self.cause_fault(member=MEMBERS[0])
        self.session.settle()

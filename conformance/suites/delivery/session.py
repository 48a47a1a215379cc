"""One run of one group.

It simulates members that behave as clients do, records observations, and follows the model.
"""

from collections.abc import Iterable
from typing import Final

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.delivery.checkers import CHECKERS
from mqproof.conformance.suites.delivery.oracle import EXPLANATION, State, assigned_queues
from mqproof.conformance.suites.delivery.steps import (
    Change,
    Commit,
    Deliver,
    Membership,
    Operation,
    Rebalance,
    Send,
    Settled,
    faults_of_members,
)
from mqproof.conformance.suites.delivery.target import QUEUES, DeliveryTarget, Message

_COUNT: Final = 8
_READS_MAX: Final = 100


class DeliverySession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: DeliveryTarget) -> None:
        self.target = target
        self.positions: dict[str, dict[int, int]] = {}
        """Present member to the next offset in each queue that it reads."""
        self.unknown = 0
        """The number of commits that may or may not have been stored."""
        self._sent = 0
        opened = f"a broker with a new topic of {QUEUES} queues and a new group"
        super().__init__(opened, EXPLANATION, CHECKERS)
        target.open()

    def send(self, queue_id: int) -> None:
        self._sent += 1
        msg_id = f"m{self._sent}"
        offset = self.target.send(queue_id, msg_id)
        self.observe(Send(queue_id, Message(msg_id, offset)))

    def change(self, member: str, change: Change) -> None:
        """Let the member join, leave, stop without leaving, or fall silent, as `change` says."""
        acts = {
            Change.JOINS: self.target.join,
            Change.LEAVES: self.target.leave,
            Change.DIES: self.target.die,
            Change.SILENT: self.target.fall_silent,
        }
        if change is Change.LEAVES:
            for queue_id in list(self.positions[member]):
                self._commit(member, queue_id, oneway=False)
        acts[change](member)
        if change is Change.JOINS:
            self.positions[member] = {}
        else:
            del self.positions[member]
        others = frozenset(self.positions) - {member}
        self.observe(Membership(member, change, self.target.notified(others)))

    def inject(self, fault: BrokerFault) -> None:
        """Inject the fault. Members whose connections broke reconnect one after the other and read on."""
        self.target.inject(fault)
        self.observe(InjectFault(fault))
        if fault is not BrokerFault.FREEZE:
            returned: set[str] = set()
            for member in sorted(self.positions):
                self.target.join(member)
                self.observe(Membership(member, Change.RETURNS, self.target.notified(frozenset(returned))))
                returned.add(member)

    def rebalance(self, member: str) -> None:
        """Query the members of the group, and take over and release queues."""
        ids = self.target.members(member)
        mine = assigned_queues(ids, member)
        positions = self.positions[member]
        for queue_id in sorted(positions.keys() - mine):
            self._commit(member, queue_id, oneway=False)
            del positions[queue_id]
        started = []
        for queue_id in sorted(mine - positions.keys()):
            offset = self.target.query(queue_id)
            started.append((queue_id, offset))
            positions[queue_id] = offset or 0
        self.observe(Rebalance(member, ids, mine, tuple(started)))

    def read(self, member: str, queue_id: int, count: int = _COUNT) -> bool:
        """Read on at the member's position. Return False if there were no messages."""
        position = self.positions[member][queue_id]
        messages = self.target.pull(member, queue_id, position, count)
        self.positions[member][queue_id] += len(messages)
        self.observe(Deliver(member, queue_id, position, messages))
        return bool(messages)

    def commit(self, member: str, queue_id: int, *, oneway: bool) -> None:
        self._commit(member, queue_id, oneway=oneway)

    def query(self, queue_id: int) -> int:
        offset = self.target.query(queue_id)
        self.observe(Query(queue_id, offset))
        return offset or 0

    def settle(self) -> None:
        """Let all members rebalance, read all messages, and commit them.

        They rebalance twice, since the first member does not know which queues the last one released.
        """
        for member in sorted(self.positions) * 2:
            self.rebalance(member)
        for member, positions in sorted(self.positions.items()):
            for queue_id in sorted(positions):
                for _ in range(_READS_MAX):
                    if not self.read(member, queue_id):
                        break
                self._commit(member, queue_id, oneway=False)
        self.observe(Settled())

    def faults_in(self, operation: Operation) -> Iterable[FaultKind]:
        return faults_of_members(operation) or super().faults_in(operation)

    def _commit(self, member: str, queue_id: int, *, oneway: bool) -> None:
        """Commit the member's position if it is ahead of the stored offset.

        A late commit of a former owner would otherwise move the group back.
        """
        offset = self.positions[member][queue_id]
        if offset <= self.query(queue_id):
            return
        if oneway:
            self.unknown += 1
            self.target.commit_oneway(member, queue_id, offset)
        else:
            self.target.commit(member, queue_id, offset)
        self.observe(Commit(member, queue_id, offset, oneway))

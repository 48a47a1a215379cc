"""One run of one broker's locks.

It simulates members that behave as clients do, records observations, and follows the model.
"""

from collections.abc import Iterable, Set

from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault, InjectFault
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.ordering.checkers import checkers
from mqproof.conformance.suites.ordering.oracle import State, explanation
from mqproof.conformance.suites.ordering.steps import Begin, End, Lock, Operation, Unlock
from mqproof.conformance.suites.ordering.target import OrderingTarget


class OrderingSession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: OrderingTarget) -> None:
        self.target = target
        lease_s = target.lease_s
        self.trust_s = lease_s / 2
        """The time for which members trust a granted lock, as RocketMQ clients do."""
        self.unheard = 0
        self._granted_s: dict[tuple[str, int, str], float] = {}
        self._calls: set[tuple[str, int, str]] = set()
        opened = f"a broker that keeps a lock for {lease_s:g} s"
        super().__init__(opened, explanation(lease_s), checkers(lease_s))
        target.open()

    def lock(self, group: str, member: str, queues: Set[int]) -> None:
        """Request the locks, for the first time or to renew them."""
        granted, span = self.target.lock(group, member, queues)
        self.observe(Lock(group, member, frozenset(queues), granted, span))
        for queue_id in queues:
            if queue_id in granted:
                self._granted_s[group, queue_id, member] = span.begin_s
            else:
                self._granted_s.pop((group, queue_id, member), None)

    def lock_unheard(self, group: str, member: str, queues: Set[int]) -> None:
        self.unheard += 1
        span = self.target.lock_unheard(group, member, queues)
        self.observe(Lock(group, member, frozenset(queues), None, span))

    def unlock(self, group: str, member: str, queues: Set[int]) -> None:
        """Unlock the queues that the member is not consuming, including those of other members."""
        free = {queue_id for queue_id in queues if (group, queue_id, member) not in self._calls}
        if free:
            span = self.target.unlock(group, member, free)
            for queue_id in free:
                self._granted_s.pop((group, queue_id, member), None)
            self.observe(Unlock(group, member, frozenset(free), span))

    def begin(self, group: str, member: str, queue_id: int) -> None:
        """Start to consume a message, under a lock that the member trusts, and only one message at a time."""
        key = (group, queue_id, member)
        now_s = self.target.now_s()
        if key not in self._calls and now_s - self._granted_s.get(key, -self.trust_s) < self.trust_s:
            self._calls.add(key)
            self.observe(Begin(group, member, queue_id, now_s))

    def end(self, group: str, member: str, queue_id: int) -> None:
        key = (group, queue_id, member)
        if key in self._calls:
            self._calls.discard(key)
            self.observe(End(group, member, queue_id))

    def wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self.observe(Wait(seconds))

    def inject(self, fault: BrokerFault) -> None:
        """Inject the fault. If it ends the broker, members no longer trust their locks.

        They still trust them if only their connections break.
        """
        self.target.inject(fault)
        self.observe(InjectFault(fault, self.target.now_s()))
        if fault in ENDS:
            self._granted_s.clear()
            self._calls.clear()

    def faults_in(self, operation: Operation) -> Iterable[FaultKind]:
        if isinstance(operation, Lock) and operation.granted is None:
            return (FaultKind.UNHEARD,)
        return super().faults_in(operation)

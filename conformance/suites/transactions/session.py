"""One run of one broker's transactions. It simulates a producer, records observations, follows the model."""

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.transactions.checkers import checkers
from mqproof.conformance.suites.transactions.oracle import State, explanation
from mqproof.conformance.suites.transactions.steps import Checked, Operation, Read, Report, SendHalf
from mqproof.conformance.suites.transactions.target import Capability, End, Half, TransactionsTarget


class TransactionsSession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: TransactionsTarget) -> None:
        self.target = target
        self.halves: list[list[Half]] = []
        """By transaction: the original, and the copies of the checks that arrived."""
        checks_s = target.round_s if Capability.CHECKS in target.capabilities else None
        super().__init__("a broker with transactions", explanation(), checkers(checks_s))
        target.open()

    def send(self) -> None:
        half = self.target.send_half(f"t{len(self.halves)}")
        self.halves.append([half])
        self.observe(SendHalf(half.msg_id, self.target.now_s()))

    def report(self, number: int, end: End, copy: int) -> None:
        """Report the end of a transaction, by its original or by a copy that the producer knows."""
        self.collect()
        known = self.halves[number % len(self.halves)]
        place = copy % len(known)
        answer = self.target.end(known[place], end)
        self.observe(Report(known[0].msg_id, end, place, answer, self.target.now_s()))

    def collect(self) -> None:
        """Record the checks that have arrived."""
        arrived = self.target.checks()
        if arrived:
            by_id = {known[0].msg_id: known for known in self.halves}
            for half in arrived:
                if half.msg_id in by_id:
                    by_id[half.msg_id].append(half)
            self.observe(Checked(tuple(half.msg_id for half in arrived), self.target.now_s()))

    def read(self) -> None:
        self.observe(Read(self.target.read(), self.target.now_s()))

    def wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self.observe(Wait(seconds))
        self.collect()

    def inject(self, fault: BrokerFault) -> None:
        self.collect()
        self.target.inject(fault)
        self.observe(InjectFault(fault, self.target.now_s()))

"""One run of one broker's timers. It sends and recalls, records observations, follows the model."""

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.timers.checkers import CHECKERS
from mqproof.conformance.suites.timers.oracle import State, explanation
from mqproof.conformance.suites.timers.steps import DeleteOld, Operation, Read, Recall, Send
from mqproof.conformance.suites.timers.target import Answer, Sent, TimersTarget


class TimersSession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: TimersTarget) -> None:
        self.target = target
        self.sent: list[Sent] = []
        """The messages that can be recalled."""
        self.count = 0
        super().__init__("a broker with timers", explanation(), CHECKERS)
        target.open()

    def send(self, delay_s: float) -> None:
        msg_id, began_s = f"m{self.count}", self.target.now_s()
        self.count += 1
        sent = self.target.send(msg_id, delay_s)
        if sent is not None and sent.handle is not None:
            self.sent.append(sent)
        answer = Answer.REFUSED if sent is None else Answer.OK
        self.observe(Send(msg_id, delay_s, answer, began_s, self.target.now_s()))

    def recall(self, number: int) -> None:
        """Recall one of the messages, which may have been recalled or delivered before."""
        if self.sent:
            sent = self.sent[number % len(self.sent)]
            answer = self.target.recall(sent)
            self.observe(Recall(sent.msg_id, answer, self.target.now_s()))

    def read(self) -> None:
        self.observe(Read(self.target.read(), self.target.now_s()))

    def wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self.observe(Wait(seconds))

    def delete_old(self) -> None:
        self.target.delete_old()
        self.observe(DeleteOld())

    def inject(self, fault: BrokerFault) -> None:
        self.target.inject(fault)
        self.observe(InjectFault(fault, self.target.now_s()))

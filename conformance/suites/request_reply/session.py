"""One run of one broker with its clients. It requests, replies, records observations, follows the model."""

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.request_reply.checkers import checkers
from mqproof.conformance.suites.request_reply.oracle import State, explanation
from mqproof.conformance.suites.request_reply.steps import Ended, Look, Lost, Operation, Reply, Request
from mqproof.conformance.suites.request_reply.target import RequestReplyTarget


class RequestReplySession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: RequestReplyTarget) -> None:
        self.target = target
        self.calls: list[str] = []
        """The requests that are in the topic."""
        self._count = 0
        super().__init__("a broker, requesting clients and a consumer", explanation(), checkers())
        target.open()

    def request(self, client: str, limit_s: float) -> None:
        self._collect()
        call, began_s = f"r{self._count}", self.target.now_s()
        self._count += 1
        stored = self.target.request(call, client, limit_s)
        if stored:
            self.calls.append(call)
        self.observe(Request(call, client, limit_s, stored, began_s))
        self._collect()

    def reply(self, number: int) -> None:
        """Reply to a request that is in the topic, whether or not it has ended."""
        self._collect()
        call, sent_s = self.calls[number % len(self.calls)], self.target.now_s()
        answer = self.target.reply(call)
        self.observe(Reply(call, answer, sent_s, self.target.now_s()))
        self._collect()

    def lose(self, client: str) -> None:
        self._collect()
        self.target.lose(client)
        self.observe(Lost(client))

    def wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self.observe(Wait(seconds))
        self.look()

    def look(self) -> None:
        self._collect()
        self.observe(Look(self.target.now_s()))

    def inject(self, fault: BrokerFault) -> None:
        self._collect()
        self.target.inject(fault)
        self.observe(InjectFault(fault, self.target.now_s()))
        self._collect()

    def _collect(self) -> None:
        """Record the results since the last step."""
        for result in self.target.results():
            self.observe(Ended(result.call, result.end, result.body, result.at_s))

"""One run of one producer: drives it, writes down where it sent, and follows what the model allows."""

from conformance.producers.checkers import checkers
from conformance.producers.oracle import State, explanation
from conformance.producers.steps import Operation, Route, Send, Wait
from conformance.producers.target import Fate, ProducerTarget, Setup
from conformance.stepped import Stepped


class ProducerSession(Stepped[State, Operation]):
    """Opens the target. Methods are steps; each may raise TargetError, and none works after it.

    Raises:
        TargetError: the target cannot be brought up.
    """

    def __init__(self, target: ProducerTarget, setup: Setup) -> None:
        self.target = target
        self.setup = setup
        strategy = "rests brokers" if setup.strategy else "rests nobody"
        opened = f"a producer that {strategy}; {setup.brokers} brokers with {setup.queues} queues each"
        super().__init__(opened, explanation(setup), checkers(setup))
        target.open(setup)

    def send(self, fates: tuple[Fate, ...]) -> None:
        self.saw(Send(*self.target.send(fates)))

    def route(self, brokers: tuple[str, ...]) -> None:
        self.target.route(brokers)
        self.saw(Route(brokers))

    def wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self.saw(Wait(seconds))

    @property
    def faults(self) -> int:
        """Attempts that failed, or took long."""
        sends = (one for one in self.run.operations if isinstance(one, Send))
        return sum(attempt.fate is not Fate.OK for send in sends for attempt in send.attempts)

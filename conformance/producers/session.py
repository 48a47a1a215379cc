"""One run of one producer: drives it, writes down where it sent, and follows what the model allows."""

from collections import Counter

from conformance.history.finding import Finding
from conformance.producers.checkers import checkers
from conformance.producers.oracle import explanation
from conformance.producers.steps import Route, Send, Wait
from conformance.producers.target import Fate, ProducerTarget, Setup
from conformance.stepped import Stepped


class ProducerSession:
    """Opens the target. Methods are steps; each may raise TargetError, and none but `close` works after it.

    Raises:
        TargetError: the target cannot be brought up.
    """

    dead = False

    def __init__(self, target: ProducerTarget, setup: Setup) -> None:
        self.target = target
        self.setup = setup
        strategy = "rests brokers" if setup.strategy else "rests nobody"
        opened = f"a producer that {strategy}; {setup.brokers} brokers with {setup.queues} queues each"
        self._seen = Stepped(opened, explanation(setup), checkers(setup))
        target.open(setup)

    def send(self, fates: tuple[Fate, ...]) -> None:
        self._seen.saw(Send(*self.target.send(fates)))

    def route(self, brokers: tuple[str, ...]) -> None:
        self.target.route(brokers)
        self._seen.saw(Route(brokers))

    def wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self._seen.saw(Wait(seconds))

    def close(self) -> None:
        self.target.close()

    def findings(self) -> dict[str, Finding]:
        return self._seen.findings()

    @property
    def faults(self) -> int:
        """Attempts that failed, or took long."""
        sends = (one for one in self._seen.run.operations if isinstance(one, Send))
        return sum(attempt.fate is not Fate.OK for send in sends for attempt in send.attempts)

    def actions(self) -> Counter[str]:
        return self._seen.actions

    def script(self) -> list[str]:
        return self._seen.script()

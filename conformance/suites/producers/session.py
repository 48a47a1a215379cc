"""One run of one producer: drives it, records the brokers it chose, and follows the model."""

from collections.abc import Iterable
from typing import Final

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.producers.checkers import checkers
from mqproof.conformance.suites.producers.oracle import State, explanation
from mqproof.conformance.suites.producers.steps import Operation, Route, Send
from mqproof.conformance.suites.producers.target import Fate, ProducerTarget, Setup

_KINDS: Final = {
    Fate.SLOW: FaultKind.DELAY,
    Fate.BUSY: FaultKind.REFUSAL,
    Fate.ILLEGAL: FaultKind.REFUSAL,
    Fate.SILENT: FaultKind.SILENCE,
}


class ProducerSession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: ProducerTarget, setup: Setup) -> None:
        self.target = target
        self.setup = setup
        strategy = "avoids brokers" if setup.strategy else "avoids no broker"
        opened = f"a producer that {strategy}; {setup.brokers} brokers with {setup.queues} queues each"
        super().__init__(opened, explanation(setup), checkers(setup))
        target.open(setup)

    def send(self, fates: tuple[Fate, ...]) -> None:
        self.observe(Send(*self.target.send(fates)))

    def route(self, brokers: tuple[str, ...]) -> None:
        self.target.route(brokers)
        self.observe(Route(brokers))

    def wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self.observe(Wait(seconds))

    def faults_in(self, operation: Operation) -> Iterable[FaultKind]:
        attempts = operation.attempts if isinstance(operation, Send) else ()
        return (kind for attempt in attempts if (kind := _KINDS.get(attempt.fate)))

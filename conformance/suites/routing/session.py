"""One run of one name server: drives it, records observations, and checks each step with the oracle."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import SPEC_1, Finding
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.routing.checkers import CHECKERS
from mqproof.conformance.suites.routing.oracle import Oracle
from mqproof.conformance.suites.routing.steps import (
    HangUp,
    History,
    Operation,
    QueryCluster,
    QueryPublish,
    QueryRoute,
    Register,
    RegisterIsolated,
    Restart,
    Unregister,
    Wipe,
)
from mqproof.conformance.suites.routing.target import TOPICS, Broker, Capability, NameServerTarget
from mqproof.report.model import Verdict, Witness

_KINDS: Final[Mapping[type[Operation], FaultKind]] = {
    HangUp: FaultKind.CUT,
    Wait: FaultKind.SILENCE,
    Restart: FaultKind.NAME_SERVER,
    RegisterIsolated: FaultKind.NAME_SERVER_AWAY,
}


class RoutingSession:
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    dead = False
    """True if the target is permanently gone; never the case, since a name server has nothing to recover."""

    def __init__(self, target: NameServerTarget) -> None:
        self.target = target
        slave_speaks = Capability.SLAVE_SPEAKS in target.capabilities
        self.oracle = Oracle(target.times, slave_speaks=slave_speaks)
        self.unexplained: Witness | None = None
        self._operations: list[Operation] = []
        target.open()

    @property
    def history(self) -> History:
        return History(self.target.times, tuple(self._operations))

    # -- events of brokers and of the name server

    def register(self, broker: Broker, topics: Sequence[str], over: Broker | None = None) -> None:
        self.target.register(broker, topics, over)
        self._observe(Register(broker, tuple(topics), over))

    def unregister(self, broker: Broker) -> None:
        self.target.unregister(broker)
        self._observe(Unregister(broker))

    def hang_up(self, broker: Broker) -> None:
        self.target.hang_up(broker)
        self._observe(HangUp(broker))

    def wipe(self, name: str) -> None:
        self.target.wipe_write(name)
        self._observe(Wipe(name))

    def wait(self, seconds: float) -> None:
        self.target.wait(seconds)
        self._observe(Wait(seconds))

    def restart(self) -> None:
        self.target.restart()
        self._observe(Restart())

    def register_isolated(self, broker: Broker, topics: Sequence[str]) -> None:
        """Register the broker while the name server is isolated, between two registrations that arrive.

        The broker is therefore known afterwards, whatever happened to the isolated registration.
        """
        self.register(broker, TOPICS)
        self.target.register_isolated(broker, topics)
        self._observe(RegisterIsolated(broker, tuple(topics)))
        self.register(broker, topics)

    # -- observations

    def look(self) -> None:
        """Query everything that can be queried."""
        for topic in TOPICS:
            self._observe(QueryRoute(topic, self.target.route(topic)))
            if Capability.CLIENT in self.target.capabilities:
                self._observe(QueryPublish(topic, self.target.publish(topic)))
                self._observe(QueryRoute(topic, self.target.route(topic)))
            self._observe(QueryCluster(self.target.cluster()))

    # -- the verdict

    def findings(self) -> dict[str, Finding]:
        """Judge every invariant on the observations so far; return the findings by id, including SPEC-1."""
        history = self.history
        findings = {invariant: checker(history) for invariant, checker in CHECKERS.items()}
        named = any(finding.verdict is Verdict.VIOLATED for finding in findings.values())
        counts = {"observations": len(history.operations)}
        if self.unexplained and not named:
            return {**findings, SPEC_1: Finding(Verdict.VIOLATED, counts, (self.unexplained,))}
        held = history.operations and not self.unexplained
        return {**findings, SPEC_1: Finding(Verdict.HELD if held else Verdict.UNKNOWN, counts)}

    def faults(self) -> Counter[FaultKind]:
        """Return how often each kind of fault occurred."""
        return Counter(kind for one in self._operations if (kind := _KINDS.get(type(one))))

    def actions(self) -> Counter[str]:
        """Return how often each action of the model explained an observation."""
        return self.oracle.actions

    def script(self) -> list[str]:
        """Return the run as steps for people; the first step opens the target."""
        times = self.target.times
        first = f"a name server; expiry after {times.expiry_s:g} s, a scan every {times.scan_s:g} s"
        return [first, *map(str, self._operations)]

    def _observe(self, operation: Operation) -> None:
        self._operations.append(operation)
        if self.unexplained:
            return
        before = self.oracle.tables
        if not self.oracle.observe(operation):
            text = f"no state of the model explains step {len(self._operations) + 1} ({operation})"
            self.unexplained = Witness(text, {"the model allowed before": self.oracle.explain(before)})

"""Registrations, silence, closed connections and scans in any order (spec/tla/Routing.tla).

Hypothesis draws and shrinks the examples. A rule is one step of a session, followed by queries of all answers
of the name server.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.routing.oracle import BROKERS, NAMES
from mqproof.conformance.suites.routing.session import RoutingSession
from mqproof.conformance.suites.routing.target import TOPICS, Broker, Capability, NameServerTarget

_brokers = st.sampled_from(BROKERS)
_registrations = st.lists(st.tuples(_brokers, st.sampled_from((TOPICS, TOPICS[1:]))), min_size=1, max_size=4)
_PARTS: Final = (0.05, 0.5, 0.9, 1.04)
"""Parts of the time from a registration to the certain removal: below the expiry, and beyond the scan."""


def _events(machine: "RoutingMachine") -> list[str]:
    """Return the events that may happen to this name server, other than requests of brokers."""
    events = ["wipe"]
    if Capability.WAIT in machine.target.capabilities:
        events.append(Capability.WAIT)
    if Capability.SHARE in machine.target.capabilities:
        events.append(Capability.SHARE)
    if Capability.RESTART in machine.target.capabilities and not machine.restarted:
        events.append(Capability.RESTART)
    if Capability.ISOLATE in machine.target.capabilities and not machine.isolated:
        events.append(Capability.ISOLATE)
    return events


class RoutingMachine(Machine[NameServerTarget, RoutingSession]):
    """One example, with a name server that knows none of our brokers.

    There are few rules, because all are drawn with the same probability and some examples omit some rules.
    """

    restarted = False
    """At most one restart per example, because starting a process takes time."""
    isolated = False
    """At most one isolation per example, because a request without an answer takes time."""

    @initialize(registrations=_registrations)
    def open(self, registrations: list[tuple[Broker, tuple[str, ...]]]) -> None:
        self.session = RoutingSession(self.target)
        self.register(registrations)

    @rule(registrations=_registrations)
    def register(self, registrations: list[tuple[Broker, tuple[str, ...]]]) -> None:
        for broker, topics in registrations:
            self.session.register(broker, topics)
        self.session.look()

    @rule(broker=_brokers, hangs_up=st.booleans())
    def leave(self, broker: Broker, hangs_up: bool) -> None:
        if hangs_up:
            self.session.hang_up(broker)
        else:
            self.session.unregister(broker)
        self.session.look()

    @rule(
        event=st.runner().flatmap(lambda machine: st.sampled_from(_events(machine))),
        name=st.sampled_from(NAMES),
        part=st.sampled_from(_PARTS),
        then=_registrations,
    )
    def cause_fault(
        self, event: str, name: str, part: float, then: list[tuple[Broker, tuple[str, ...]]]
    ) -> None:
        """Let an event happen to the name server; then some brokers register again."""
        times = self.target.times
        match event:
            case Capability.WAIT:
                self.session.wait(round(part * (times.expiry_s + times.scan_s), 1))
            case Capability.RESTART:
                self.session.restart()
                self.restarted = True
            case Capability.ISOLATE:
                broker, topics = then[0]
                self.session.register_isolated(broker, topics)
                self.isolated = True
            case Capability.SHARE:
                self._share(*then[0])
            case _:
                self.session.wipe(name)
        self.session.look()
        self.register(then)

    def _share(self, broker: Broker, topics: tuple[str, ...]) -> None:
        """Register all brokers over the connection of one of them, and close the connection."""
        self.session.register(broker, topics)
        for other in BROKERS:
            if other != broker:
                self.session.register(other, topics, over=broker)
        self.session.look()
        self.session.hang_up(broker)

"""The named invariants of routing; each one is a pure function of a history.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.routing.steps import (
    Connections,
    HangUp,
    History,
    Operation,
    QueryCluster,
    QueryPublish,
    QueryRoute,
    Register,
    Restart,
    Unregister,
)
from mqproof.conformance.suites.routing.target import MASTER, Broker


@dataclass(slots=True)
class _Facts:
    """The facts about the brokers that are certain before an operation."""

    silent_s: dict[Broker, float] = field(default_factory=dict)
    """Registered broker to the time since its last message to the name server."""
    connected: set[Broker] = field(default_factory=set)
    """The registered brokers whose connection is open."""
    connections: Connections = field(default_factory=Connections)


def _followed(history: History) -> Iterator[tuple[int, Operation, _Facts]]:
    """Yield (step number, operation, facts that were certain before it)."""
    facts = _Facts()
    for step, operation in enumerate(history.operations, 2):
        yield step, operation, facts
        match operation:
            case Register(broker, _, over):
                facts.silent_s[broker] = 0.0
                facts.connected.add(broker)
                facts.connections.register(broker, over)
            case Unregister(broker):
                facts.silent_s.pop(broker, None)
                facts.connected.discard(broker)
            case HangUp(broker):
                for each in facts.connections.close(broker) & facts.connected:
                    del facts.silent_s[each]
                    facts.connected.discard(each)
            case Wait(seconds):
                facts.silent_s = {broker: silent + seconds for broker, silent in facts.silent_s.items()}
            case Restart():
                facts.silent_s.clear()
                facts.connected.clear()
                facts.connections = Connections()


def _named(members: dict[str, frozenset[int]]) -> Iterator[Broker]:
    return (Broker(name, broker_id) for name in members for broker_id in sorted(members[name]))


def tables_agree(history: History) -> Finding:
    """ROUTE-1 TablesAgree: every queue of a route belongs to a broker of the route.

    Every reported broker has registered, and has neither unregistered nor closed its connection since.
    """
    tally = Tally()
    for step, operation, facts in _followed(history):
        if not isinstance(operation, QueryRoute | QueryCluster) or operation.answer is None:
            continue
        tally.looked += 1
        if isinstance(operation, QueryRoute):
            members = operation.answer.members
            for name in sorted(operation.answer.queues.keys() - members.keys()):
                tally.found(f"step {step}: {operation.topic} has queues at {name}, which has no broker")
        else:
            members = operation.answer
        for broker in _named(members):
            if broker not in facts.silent_s:
                tally.found(f"step {step}: {broker} is listed, but it left or never registered")
    for (step, first, _), (_, then, _) in pairwise(_followed(history)):
        if isinstance(first, QueryRoute) and isinstance(then, QueryCluster) and first.answer:
            for name in sorted(first.answer.members.keys() - then.answer.keys()):
                tally.found(
                    f"step {step}: the route of {first.topic} has broker {name}, but the cluster does not"
                )
    return tally.finding("answers")


def live_broker_kept(history: History) -> Finding:
    """ROUTE-2 LiveBrokerKept: a connected broker that sent a message within the expiry time is known."""
    tally = Tally()
    for step, operation, facts in _followed(history):
        if isinstance(operation, QueryCluster):
            for broker in sorted(facts.connected):
                silent_s = facts.silent_s[broker]
                if silent_s <= history.times.expiry_s:
                    tally.looked += 1
                    if broker.broker_id not in operation.answer.get(broker.name, ()):
                        tally.found(f"step {step}: {broker} is not listed, last contact {silent_s:g} s ago")
    return tally.finding("live_brokers")


def dead_broker_forgotten(history: History) -> Finding:
    """ROUTE-3 DeadBrokerForgotten: a broker that is silent for the expiry time and a scan is not reported."""
    tally = Tally()
    for step, operation, facts in _followed(history):
        if isinstance(operation, QueryRoute | QueryCluster):
            route = operation.answer
            members = route if isinstance(route, dict) else route.members if route else {}
            most_s = history.times.expiry_s + history.times.scan_s
            for broker in (broker for broker, silent_s in facts.silent_s.items() if silent_s > most_s):
                tally.looked += 1
                if broker.broker_id in members.get(broker.name, ()):
                    tally.found(
                        f"step {step}: {broker} is listed, but silent for {facts.silent_s[broker]:g} s"
                    )
    return tally.finding("silent_brokers")


def master_only_writes(history: History) -> Finding:
    """ROUTE-4 MasterOnlyWrites: a client sends only to writable queues of a broker name that has a master.

    The route that the name server returned just before decides this.
    """
    tally = Tally()
    for (_, first, _), (step, then, _) in pairwise(_followed(history)):
        if isinstance(first, QueryRoute) and isinstance(then, QueryPublish) and first.topic == then.topic:
            tally.looked += 1
            queues = first.answer.queues if first.answer else {}
            members = first.answer.members if first.answer else {}
            for name in sorted(then.answer):
                if queues.get(name) != "write":
                    tally.found(f"step {step}: a client sends to {name}, which has no write permission")
                elif MASTER not in members.get(name, ()):
                    tally.found(f"step {step}: a client sends to {name}, which has no master")
    return tally.finding("publish_routes")


CHECKERS: Final[dict[str, Callable[[History], Finding]]] = {
    "ROUTE-1": tables_agree,
    "ROUTE-2": live_broker_kept,
    "ROUTE-3": dead_broker_forgotten,
    "ROUTE-4": master_only_writes,
}

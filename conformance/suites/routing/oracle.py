"""The tables of the routing model that explain the observations; when none is left, the model forbids them.

The tables are the reference's and change only by its functions. The times of a name server's scans are
unknown: from a broker's expiry to the following scan, it may be known or not. Both are kept until an answer
decides.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, combinations
from typing import Final

from mqproof.conformance.engine.shared_steps import Wait
from mqproof.conformance.suites.routing.steps import (
    Connections,
    HangUp,
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
from mqproof.conformance.suites.routing.target import MASTER, TOPICS, Broker, Route, Times
from mqproof.reference import routing
from mqproof.reference.routing import Tables

NAMES: Final = ("a", "b")
BROKERS: Final = tuple(Broker(name, broker_id) for name in NAMES for broker_id in (MASTER, 1))
CONFIG: Final = routing.Config(name_servers=("n",), clients=("c",), masters=NAMES, slaves=NAMES)
_MODEL_TOPIC: Final = dict(zip(TOPICS, routing.TOPICS, strict=True))


class Oracle:
    """The set of tables that explain the operations observed so far."""

    def __init__(self, times: Times, *, slave_speaks: bool) -> None:
        self.tables: frozenset[Tables] = frozenset({routing.empty_tables(CONFIG)})
        self.actions: Counter[str] = Counter()
        """How often each action of the model explained an observation."""
        self._times = times
        self._slave_speaks = slave_speaks
        self._connections = Connections()
        self._silent_s = dict.fromkeys(BROKERS, 0.0)

    def observe(self, operation: Operation) -> bool:
        """Keep the tables that explain the operation.

        Return False if there is none; the oracle is then finished.
        """
        match operation:
            case Register(broker, topics, over):
                self._connections.register(broker, over)
                self._silent_s[broker] = 0.0
                self._each("Register", lambda tables: self._registered(tables, broker, topics))
            case RegisterIsolated(broker, topics):
                missed = self.tables
                self._each("Register", lambda tables: self._registered(tables, broker, topics))
                self.tables |= missed
            case Unregister(broker):
                self._each("BrokerDies", lambda tables: routing.forgotten(CONFIG, tables, {broker}))
            case HangUp(broker) if gone := self._connections.close(broker):
                self._each("CloseChannel", lambda tables: routing.forgotten(CONFIG, tables, gone))
            case Wipe(name):
                self._each("WipeWrite", lambda tables: routing.wiped(CONFIG, tables, name))
            case Wait(seconds):
                self._wait(seconds)
            case Restart():
                self._connections = Connections()
                self._each("NameServerDies", lambda _: routing.empty_tables(CONFIG))
            case QueryRoute(topic, answer):
                self._keep("Poll", lambda tables: _route(tables, topic) == answer)
            case QueryCluster(known):
                self._keep("Poll", lambda tables: _members(tables) == known)
            case QueryPublish(topic, names):
                self._keep("Poll", lambda tables: _publish(tables, topic) == names)
        return bool(self.tables)

    def explain(self, tables: frozenset[Tables]) -> str:
        """Describe these tables for people; at most three are shown."""
        shown = [
            f"brokers {_members(one)}, "
            + ", ".join(f"{topic}: {_route(one, topic) or 'none'}" for topic in TOPICS)
            for one in sorted(tables, key=repr)[:3]
        ]
        return " or ".join(shown) + (f" (and {len(tables) - 3} more)" if len(tables) > 3 else "")

    # -- changes of tables

    def _registered(self, tables: Tables, broker: Broker, topics: tuple[str, ...]) -> Tables:
        after = routing.registered(CONFIG, tables, broker, tuple(_MODEL_TOPIC[topic] for topic in topics))
        if broker.broker_id == MASTER or self._slave_speaks:
            return after
        return after._replace(queues=tables.queues)

    def _wait(self, seconds: float) -> None:
        for broker in BROKERS:
            self._silent_s[broker] += seconds
        expiry_s, scan_s = self._times.expiry_s, self._times.scan_s
        gone = {broker for broker in BROKERS if self._silent_s[broker] > expiry_s + scan_s}
        doubtful = [b for b in BROKERS if b not in gone and self._silent_s[b] > expiry_s]
        self.actions["Tick"] += 1
        self.tables = frozenset(
            routing.forgotten(CONFIG, tables, gone | set(more))
            for tables in self.tables
            for more in _subsets([broker for broker in doubtful if _knows(tables, broker)])
        )

    def _each(self, action: str, change: Callable[[Tables], Tables]) -> None:
        self.actions[action] += 1
        self.tables = frozenset(map(change, self.tables))

    def _keep(self, action: str, explains: Callable[[Tables], bool]) -> None:
        self.actions[action] += 1
        self.tables = frozenset(filter(explains, self.tables))


# The answers of a name server with such tables


def _route(tables: Tables, topic: str) -> Route | None:
    route = routing.route_of(tables, _MODEL_TOPIC[topic])
    if route is None:
        return None
    return Route(
        {
            name: permission
            for name, permission in zip(NAMES, route.queues, strict=True)
            if permission != "none"
        },
        {name: ids for name, ids in zip(NAMES, route.members, strict=True) if ids},
    )


def _members(tables: Tables) -> dict[str, frozenset[int]]:
    return {name: ids for name, ids in zip(NAMES, tables.members, strict=True) if ids}


def _publish(tables: Tables, topic: str) -> frozenset[str]:
    route = routing.route_of(tables, _MODEL_TOPIC[topic])
    if route is None:
        return frozenset()
    writable = routing.publishable(route.queues, route.members)
    return frozenset(name for name, writes in zip(NAMES, writable, strict=True) if writes)


def _knows(tables: Tables, broker: Broker) -> bool:
    return broker.broker_id in tables.members[NAMES.index(broker.name)]


def _subsets(brokers: list[Broker]) -> Iterator[tuple[Broker, ...]]:
    return chain.from_iterable(combinations(brokers, count) for count in range(len(brokers) + 1))

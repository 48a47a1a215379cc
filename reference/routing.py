"""How clients discover brokers, action for action as in spec/tla/Routing.tla.

The order is the same: tables and routes, state, registration, expiry at name servers, polling, time, faults,
repairs, safety. The model makes the same abstractions as the TLA+ module. The results that a name server or
client computes are pure functions of tables; the actions only determine when and where.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, settles, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item

Broker = tuple[str, int]
"""A broker process: its name and its id; id 0 is the master."""

MASTER: Final = 0
TOPICS: Final = ("topic", "TBW102")  # TBW102 is the default topic, for topics without a route


@dataclass(frozen=True)
class Config:
    name_servers: tuple[str, ...] = ("n1", "n2")
    clients: tuple[str, ...] = ("c1",)
    masters: tuple[str, ...] = ("a",)
    """Broker names that have a master."""
    slaves: tuple[str, ...] = ("a",)
    """Broker names that have a slave."""
    holders: tuple[str, ...] = ()
    """Broker names whose brokers have the topic from the start."""
    heartbeat_every: int = 1
    """The period of registrations. This and the next three values are in ticks."""
    scan_every: int = 1
    expiry: int = 2
    poll_every: int = 1
    faults_max: int | None = 1
    """The bound of MCRouting; None for no bound."""

    # Used in every state, so computed once.

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self.masters, *self.slaves}))

    @cached_property
    def brokers(self) -> tuple[Broker, ...]:
        return tuple(sorted([(name, MASTER) for name in self.masters] + [(name, 1) for name in self.slaves]))

    @cached_property
    def each_broker(self) -> tuple[Parameters, ...]:
        return tuple((b,) for b in self.brokers)

    @cached_property
    def each_server(self) -> tuple[Parameters, ...]:
        return tuple((n,) for n in self.name_servers)

    @cached_property
    def each_client(self) -> tuple[Parameters, ...]:
        return tuple((c,) for c in self.clients)

    @cached_property
    def each_server_and_broker(self) -> tuple[Parameters, ...]:
        return tuple(product(self.name_servers, self.brokers))

    @cached_property
    def each_server_and_client(self) -> tuple[Parameters, ...]:
        return tuple(product(self.name_servers, self.clients))

    @cached_property
    def each_server_and_name(self) -> tuple[Parameters, ...]:
        return tuple(product(self.name_servers, self.names))

    @cached_property
    def each_client_and_server(self) -> tuple[Parameters, ...]:
        return tuple(product(self.clients, self.name_servers))

    @cached_property
    def each_client_and_name(self) -> tuple[Parameters, ...]:
        return tuple(product(self.clients, self.names))


# Tables and routes. A permission is none (no such queue), read, or write (read and write).

Permissions = tuple[str, ...]
"""The permission of each broker name, in the configuration's order. Members and Publish have the same."""
Members = tuple[frozenset[int], ...]
Publish = tuple[bool, ...]


class Record(NamedTuple):
    """The live record of a broker."""

    age: int  # ticks since its last registration
    version: int  # data version of its last registration


NO_RECORD: Final = Record(0, 0)
"""Marks a missing live record."""


class Tables(NamedTuple):
    """The data of one name server, all of it in memory."""

    queues: tuple[Permissions, ...]  # by topic
    members: Members  # ids that have an address
    cluster: frozenset[str]
    live: tuple[Record, ...]  # by broker


def empty_tables(config: Config) -> Tables:
    """EmptyTables: the tables of a name server that knows no broker."""
    return Tables(
        queues=(("none",) * len(config.names),) * len(TOPICS),
        members=(frozenset(),) * len(config.names),
        cluster=frozenset(),
        live=(NO_RECORD,) * len(config.brokers),
    )


class Route(NamedTuple):
    """A client's data about its topic."""

    source: str  # the origin of the route: none, topic, default
    queues: Permissions
    members: Members  # the brokers of the route: their ids by broker name


def no_route(config: Config) -> Route:
    """NoRoute: the route of a client that has none."""
    return Route("none", ("none",) * len(config.names), (frozenset(),) * len(config.names))


def long(config: Config) -> int:
    """Long: the longest silence that is distinguished from longer ones."""
    return config.expiry + config.scan_every + config.poll_every + 1


# State


class State(NamedTuple):
    """The state of the model. Tuples by broker, name server, client are in the order of the configuration.

    It is a named tuple, because the explorer copies and hashes states most often.
    """

    running: tuple[bool, ...]  # by broker
    serving: tuple[bool, ...]  # by name server
    broker_cut: frozenset[tuple[str, Broker]]  # silent partition: nothing arrives
    client_cut: frozenset[tuple[str, str]]
    tables: tuple[Tables, ...]  # by name server
    connected: tuple[frozenset[Broker], ...]  # history, by name server: registered, not closed by others
    created: frozenset[str]  # broker names whose brokers have the topic
    heartbeat_age: tuple[int, ...]  # by broker: ticks since it registered
    scan_age: tuple[int, ...]  # by name server
    poll_age: tuple[int, ...]  # by client
    server: tuple[str, ...]  # by client: the name server that it uses
    answered: frozenset[str]  # the clients whose last request was answered
    route: tuple[Route, ...]  # by client
    publish: tuple[Publish, ...]  # by client: the broker names to which it may send
    silence: tuple[tuple[int, ...], ...]  # history, by name server and broker: ticks since it registered
    faults: int  # history


def initial(config: Config) -> tuple[State, ...]:
    """Init: everything has just been started; one state for each choice of the clients' name servers."""
    servers, brokers, clients = len(config.name_servers), len(config.brokers), len(config.clients)
    return tuple(
        State(
            running=(True,) * brokers,
            serving=(True,) * servers,
            broker_cut=frozenset(),
            client_cut=frozenset(),
            tables=(empty_tables(config),) * servers,
            connected=(frozenset(),) * servers,
            created=frozenset(config.holders),
            heartbeat_age=(config.heartbeat_every,) * brokers,
            scan_age=(0,) * servers,
            poll_age=(config.poll_every,) * clients,
            server=chosen,
            answered=frozenset(),
            route=(no_route(config),) * clients,
            publish=((False,) * len(config.names),) * clients,
            silence=((long(config),) * brokers,) * servers,
            faults=0,
        )
        for chosen in product(config.name_servers, repeat=clients)
    )


# Registration


def topics_of(broker: Broker, holders: Set[str]) -> tuple[str, ...]:
    """TopicsOf: the topics that a broker registers: the default topic, and its own if it has it."""
    return TOPICS if broker[0] in holders else TOPICS[1:]


def takes_topics_from(members: Set[int], broker_id: int) -> bool:
    """TakesTopicsFrom: the master determines the queues of its name, or the slave if there is no master."""
    return all(broker_id <= member for member in members)


def registered(config: Config, table: Tables, broker: Broker, topics: Sequence[str]) -> Tables:
    """Registered: an upsert. Queues are changed only if the registration is new or the queues are missing."""
    name, broker_id = broker
    i, b = config.names.index(name), config.brokers.index(broker)
    version = len(topics)
    queues = table.queues
    if takes_topics_from(table.members[i], broker_id):
        new = table.live[b].version != version
        queues = tuple(
            with_item(permissions, i, "write")
            if topic in topics and (new or permissions[i] == "none")
            else permissions
            for topic, permissions in zip(TOPICS, queues, strict=True)
        )
    return Tables(
        queues=queues,
        members=with_item(table.members, i, table.members[i] | {broker_id}),
        cluster=table.cluster | {name},
        live=with_item(table.live, b, Record(0, version)),
    )


def reached(config: Config, state: State, broker: Broker) -> tuple[bool, ...]:
    """Reached: by name server, whether the broker's request arrives."""
    return tuple(
        serving and (n, broker) not in state.broker_cut
        for n, serving in zip(config.name_servers, state.serving, strict=True)
    )


def _register_at(
    config: Config, state: State, hearing: tuple[bool, ...], broker: Broker, topics: Sequence[str]
) -> State:
    b = config.brokers.index(broker)
    return state._replace(
        tables=tuple(
            registered(config, table, broker, topics) if hears else table
            for hears, table in zip(hearing, state.tables, strict=True)
        ),
        connected=tuple(
            connected | {broker} if hears else connected
            for hears, connected in zip(hearing, state.connected, strict=True)
        ),
        silence=tuple(
            with_item(silence, b, 0) if hears else silence
            for hears, silence in zip(hearing, state.silence, strict=True)
        ),
    )


def register(config: Config, state: State, broker: Broker) -> State | None:
    """Register: at its start, and then every registerNameServerPeriod."""
    b = config.brokers.index(broker)
    if state.heartbeat_age[b] != config.heartbeat_every or not state.running[b]:
        return None
    after = _register_at(
        config, state, reached(config, state, broker), broker, topics_of(broker, state.created)
    )
    return after._replace(heartbeat_age=with_item(state.heartbeat_age, b, 0))


def auto_create(config: Config, state: State, client: str, name: str) -> State | None:
    """AutoCreate: after a send by the default topic's route, the master creates the topic and registers."""
    c = config.clients.index(client)
    if state.route[c].source != "default" or name in state.created:
        return None
    broker = (name, MASTER)
    if not state.publish[c][config.names.index(name)] or not state.running[config.brokers.index(broker)]:
        return None
    created = state.created | {name}
    after = _register_at(config, state, reached(config, state, broker), broker, topics_of(broker, created))
    return after._replace(created=created)


# Expiry at name servers


def forgotten(config: Config, table: Tables, gone: Set[Broker]) -> Tables:
    """Forgotten: the queues of a name are removed with its last id."""
    if not gone:
        return table
    members = tuple(
        frozenset(i for i in ids if (name, i) not in gone)
        for name, ids in zip(config.names, table.members, strict=True)
    )
    return Tables(
        queues=tuple(
            tuple(p if ids else "none" for p, ids in zip(permissions, members, strict=True))
            for permissions in table.queues
        ),
        members=members,
        cluster=frozenset(
            name for name, ids in zip(config.names, members, strict=True) if ids and name in table.cluster
        ),
        live=tuple(
            NO_RECORD if b in gone else record for b, record in zip(config.brokers, table.live, strict=True)
        ),
    )


def _forget(config: Config, state: State, n: int, gone: Set[Broker]) -> State:
    """Forget: remove brokers from the tables of one name server."""
    return state._replace(tables=with_item(state.tables, n, forgotten(config, state.tables[n], gone)))


def _disconnect(config: Config, state: State, n: int, broker: Broker) -> State:
    """Disconnect: one name server detects that the broker's registration connection was closed."""
    after = _forget(config, state, n, {broker})
    return after._replace(connected=with_item(state.connected, n, state.connected[n] - {broker}))


def expired(config: Config, table: Tables) -> frozenset[Broker]:
    """Expired: the brokers whose live record is older than the expiry time."""
    return frozenset(
        b for b, record in zip(config.brokers, table.live, strict=True) if record.age > config.expiry
    )


def scan(config: Config, state: State, name_server: str) -> State | None:
    """Scan: a name server removes expired brokers."""
    n = config.name_servers.index(name_server)
    if state.scan_age[n] != config.scan_every or not state.serving[n]:
        return None
    after = _forget(config, state, n, expired(config, state.tables[n]))
    return after._replace(scan_age=with_item(state.scan_age, n, 0))


# Polling


def route_members(queues: Sequence[str], members: Sequence[frozenset[int]]) -> Members:
    """Return the brokers in the answer to a route request: all ids of the names that have a queue."""
    return tuple(
        ids if permission != "none" else frozenset() for permission, ids in zip(queues, members, strict=True)
    )


def route_of(table: Tables, topic: str) -> Route | None:
    """RouteOf: every queue of the topic, and every broker of their names; None means response code 17."""
    queues = table.queues[TOPICS.index(topic)]
    members = route_members(queues, table.members)
    return Route("topic" if topic == "topic" else "default", queues, members) if any(members) else None


def route_from(config: Config, table: Tables) -> Route:
    """RouteFrom: a topic without a route gets the default topic's, if that has one."""
    return route_of(table, "topic") or route_of(table, "TBW102") or no_route(config)


def publishable(queues: Sequence[str], members: Sequence[frozenset[int]]) -> Publish:
    """Publishable: a queue is writable if its permission allows it and the route has a master of its name."""
    return tuple(
        permission == "write" and MASTER in ids for permission, ids in zip(queues, members, strict=True)
    )


def _reaches(config: Config, state: State, c: int) -> bool:
    """Reaches: the client's requests arrive at its name server."""
    server = state.server[c]
    return (
        state.serving[config.name_servers.index(server)]
        and (server, config.clients[c]) not in state.client_cut
    )


def poll(config: Config, state: State, client: str) -> State | None:
    """Poll: a client gets its route from its name server, and with it the brokers to which it may send."""
    c = config.clients.index(client)
    if state.poll_age[c] != config.poll_every or not _reaches(config, state, c):
        return None
    route = route_from(config, state.tables[config.name_servers.index(state.server[c])])
    return state._replace(
        poll_age=with_item(state.poll_age, c, 0),
        answered=state.answered | {client},
        route=with_item(state.route, c, route),
        publish=with_item(state.publish, c, publishable(route.queues, route.members)),
    )


def poll_fails(config: Config, state: State, client: str, following: str) -> State | None:
    """PollFails: the client keeps its route, and its next request goes to the name server `following`."""
    c = config.clients.index(client)
    if state.poll_age[c] != config.poll_every or _reaches(config, state, c):
        return None
    if following == state.server[c] and len(config.name_servers) > 1:
        return None
    return state._replace(
        poll_age=with_item(state.poll_age, c, 0),
        answered=state.answered - {client},
        server=with_item(state.server, c, following),
    )


# Time passes only when no action is due


def tick(config: Config, state: State) -> State | None:
    """Tick: all ages grow by one, unless a registration, scan or poll is due."""
    if config.poll_every in state.poll_age or config.scan_every in state.scan_age:
        return None  # the age of a server that does not serve is 0
    if config.heartbeat_every in state.heartbeat_age:
        return None
    most = long(config)
    return state._replace(
        heartbeat_age=tuple(
            age + 1 if runs else 0 for runs, age in zip(state.running, state.heartbeat_age, strict=True)
        ),
        scan_age=tuple(
            age + 1 if serves else 0 for serves, age in zip(state.serving, state.scan_age, strict=True)
        ),
        poll_age=tuple(age + 1 for age in state.poll_age),
        tables=tuple(
            table._replace(
                live=tuple(r if r == NO_RECORD else Record(r.age + 1, r.version) for r in table.live)
            )
            for table in state.tables
        ),
        silence=tuple(tuple(age + 1 if age < most else most for age in silence) for silence in state.silence),
    )


# Faults


def _may_fail(config: Config, state: State) -> bool:
    return config.faults_max is None or state.faults < config.faults_max


def _stopped(config: Config, state: State, broker: Broker) -> State | None:
    b = config.brokers.index(broker)
    if not state.running[b] or not _may_fail(config, state):
        return None
    return state._replace(
        running=with_item(state.running, b, False),
        heartbeat_age=with_item(state.heartbeat_age, b, 0),
        faults=state.faults + 1,
    )


def broker_dies(config: Config, state: State, broker: Broker) -> State | None:
    """BrokerDies: the name servers that see its connection close remove it immediately."""
    after = _stopped(config, state, broker)
    if after is None:
        return None
    for n, hears in enumerate(reached(config, state, broker)):
        if hears and broker in state.connected[n]:
            after = _disconnect(config, after, n, broker)
    return after


def machine_dies(config: Config, state: State, broker: Broker) -> State | None:
    """MachineDies: no connection closes, so no name server is notified."""
    return _stopped(config, state, broker)


def close_channel(config: Config, state: State, name_server: str, broker: Broker) -> State | None:
    """CloseChannel: the connection of a running broker closes; its next registration opens another."""
    n = config.name_servers.index(name_server)
    if not _may_fail(config, state) or broker not in state.connected[n]:
        return None
    if not state.running[config.brokers.index(broker)] or not reached(config, state, broker)[n]:
        return None
    return _disconnect(config, state, n, broker)._replace(faults=state.faults + 1)


def cut_broker(config: Config, state: State, name_server: str, broker: Broker) -> State | None:
    """CutBroker: a broker's requests no longer reach a name server."""
    if not _may_fail(config, state) or (name_server, broker) in state.broker_cut:
        return None
    return state._replace(broker_cut=state.broker_cut | {(name_server, broker)}, faults=state.faults + 1)


def cut_client(config: Config, state: State, name_server: str, client: str) -> State | None:
    """CutClient: a client's requests no longer reach a name server."""
    if not _may_fail(config, state) or (name_server, client) in state.client_cut:
        return None
    return state._replace(client_cut=state.client_cut | {(name_server, client)}, faults=state.faults + 1)


def name_server_dies(config: Config, state: State, name_server: str) -> State | None:
    """NameServerDies: its tables were in memory and are lost."""
    n = config.name_servers.index(name_server)
    if not _may_fail(config, state) or not state.serving[n]:
        return None
    return state._replace(
        serving=with_item(state.serving, n, False),
        tables=with_item(state.tables, n, empty_tables(config)),
        connected=with_item(state.connected, n, frozenset()),
        scan_age=with_item(state.scan_age, n, 0),
        faults=state.faults + 1,
    )


def wipe_write(config: Config, state: State, name_server: str, name: str) -> State | None:
    """WipeWrite: one name server removes a name's write permission, until its next new registration."""
    n, i = config.name_servers.index(name_server), config.names.index(name)
    table = state.tables[n]
    if not _may_fail(config, state) or not state.serving[n]:
        return None
    if all(permissions[i] != "write" for permissions in table.queues):
        return None
    return state._replace(
        tables=with_item(state.tables, n, wiped(config, table, name)), faults=state.faults + 1
    )


def wiped(config: Config, table: Tables, name: str) -> Tables:
    """Return the tables after WipeWrite."""
    i = config.names.index(name)
    return table._replace(
        queues=tuple(with_item(p, i, "read") if p[i] == "write" else p for p in table.queues)
    )


# Repairs


def broker_starts(config: Config, state: State, broker: Broker) -> State | None:
    """BrokerStarts: a stopped broker starts, and a registration is due."""
    b = config.brokers.index(broker)
    if state.running[b]:
        return None
    return state._replace(
        running=with_item(state.running, b, True),
        heartbeat_age=with_item(state.heartbeat_age, b, config.heartbeat_every),
    )


def name_server_starts(config: Config, state: State, name_server: str) -> State | None:
    """NameServerStarts: a stopped name server starts, with empty tables."""
    n = config.name_servers.index(name_server)
    return None if state.serving[n] else state._replace(serving=with_item(state.serving, n, True))


def heal_broker(_config: Config, state: State, name_server: str, broker: Broker) -> State | None:
    """HealBroker: a broker's requests reach a name server again."""
    if (name_server, broker) not in state.broker_cut:
        return None
    return state._replace(broker_cut=state.broker_cut - {(name_server, broker)})


def heal_client(_config: Config, state: State, name_server: str, client: str) -> State | None:
    """HealClient: a client's requests reach a name server again."""
    if (name_server, client) not in state.client_cut:
        return None
    return state._replace(client_cut=state.client_cut - {(name_server, client)})


# Actions


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Register", register, lambda c: c.each_broker),
    Action("AutoCreate", auto_create, lambda c: c.each_client_and_name),
    Action("Scan", scan, lambda c: c.each_server),
    Action("Poll", poll, lambda c: c.each_client),
    Action("PollFails", poll_fails, lambda c: c.each_client_and_server),
    Action("Tick", tick, once),
    Action("BrokerDies", broker_dies, lambda c: c.each_broker),
    Action("MachineDies", machine_dies, lambda c: c.each_broker),
    Action("CloseChannel", close_channel, lambda c: c.each_server_and_broker),
    Action("CutBroker", cut_broker, lambda c: c.each_server_and_broker),
    Action("CutClient", cut_client, lambda c: c.each_server_and_client),
    Action("NameServerDies", name_server_dies, lambda c: c.each_server),
    Action("WipeWrite", wipe_write, lambda c: c.each_server_and_name),
    Action("BrokerStarts", broker_starts, lambda c: c.each_broker),
    Action("NameServerStarts", name_server_starts, lambda c: c.each_server),
    Action("HealBroker", heal_broker, lambda c: c.each_server_and_broker),
    Action("HealClient", heal_client, lambda c: c.each_server_and_client),
)


# Safety


def tables_agree(config: Config, state: State) -> bool:
    """ROUTE-1 TablesAgree: the tables of each name server list the same brokers."""
    return all(_agrees(config, table) for table in set(state.tables))


def _agrees(config: Config, table: Tables) -> bool:
    for permissions in table.queues:
        for permission, ids in zip(permissions, table.members, strict=True):
            if permission != "none" and not ids:
                return False
    for (name, broker_id), record in zip(config.brokers, table.live, strict=True):
        if (broker_id in table.members[config.names.index(name)]) != (record != NO_RECORD):
            return False
    return table.cluster == {name for name, ids in zip(config.names, table.members, strict=True) if ids}


def live_broker_kept(config: Config, state: State) -> bool:
    """ROUTE-2 LiveBrokerKept: a registered broker stays known unless another party closes its connection."""
    for connected, silence, table in zip(state.connected, state.silence, state.tables, strict=True):
        for b, age, record in zip(config.brokers, silence, table.live, strict=True):
            if record == NO_RECORD and age <= config.expiry and b in connected:
                return False
    return True


def dead_broker_forgotten(config: Config, state: State) -> bool:
    """ROUTE-3 DeadBrokerForgotten: a client's route has no broker that is long silent at its name server."""
    for client, server, route in zip(config.clients, state.server, state.route, strict=True):
        silence = state.silence[config.name_servers.index(server)]
        if client in state.answered and long(config) in silence:
            for (name, broker_id), age in zip(config.brokers, silence, strict=True):
                if age == long(config) and broker_id in route.members[config.names.index(name)]:
                    return False
    return True


def master_only_writes(_config: Config, state: State) -> bool:
    """ROUTE-4 MasterOnlyWrites: a client sends only to writable queues of names with a master."""
    return all(
        not writes or (permission == "write" and MASTER in ids)
        for publish, route in zip(state.publish, state.route, strict=True)
        for writes, permission, ids in zip(publish, route.queues, route.members, strict=True)
    )


# Liveness


FAIRNESS: Final = (
    weak("Tick", "Tick"),
    weak("Register", "Register", each=FIRST),
    weak("Scan", "Scan", each=FIRST),
    weak("Poll", "Poll", "PollFails", each=FIRST),
)


def steady(config: Config, state: State, broker: Broker, client: str) -> bool:
    """Steady: the broker serves the topic, and the client reaches all name servers but one."""
    cut = [n for n in config.name_servers if (n, client) in state.client_cut]
    return (
        state.running[config.brokers.index(broker)]
        and broker[0] in state.created
        and all(state.serving)
        and not any((n, broker) in state.broker_cut for n in config.name_servers)
        and len(cut) <= 1
        and len(cut) < len(config.name_servers)
    )


def eventually_routed(config: Config) -> Obligations[State]:
    """ROUTE-7 EventuallyRouted: while a broker is steady, a client's route eventually has it for good."""

    def routed(state: State, broker: Broker, client: str) -> bool:
        route = state.route[config.clients.index(client)]
        return route.source == "topic" and broker[1] in route.members[config.names.index(broker[0])]

    return settles(
        routed, given=lambda s, b, c: steady(config, s, b, c), of=product(config.brokers, config.clients)
    )


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints: records and functions are mappings, sequences are tuples."""

    def by(keys: Sequence[Any], function: Any) -> tuple[Any, ...]:
        return tuple(function[key] for key in keys)

    def tables(record: Any) -> Tables:
        return Tables(
            queues=tuple(by(config.names, queues) for queues in by(TOPICS, record["queues"])),
            members=by(config.names, record["members"]),
            cluster=record["cluster"],
            live=tuple(Record(r["age"], r["version"]) for r in by(config.brokers, record["live"])),
        )

    def route(record: Any) -> Route:
        members = tuple(frozenset(i for n, i in record["brokers"] if n == name) for name in config.names)
        return Route(record["source"], by(config.names, record["queues"]), members)

    return State(
        running=tuple(b in variables["running"] for b in config.brokers),
        serving=tuple(n in variables["serving"] for n in config.name_servers),
        broker_cut=variables["brokerCut"],
        client_cut=variables["clientCut"],
        tables=tuple(map(tables, by(config.name_servers, variables["tables"]))),
        connected=by(config.name_servers, variables["connected"]),
        created=variables["created"],
        heartbeat_age=by(config.brokers, variables["heartbeatAge"]),
        scan_age=by(config.name_servers, variables["scanAge"]),
        poll_age=by(config.clients, variables["pollAge"]),
        server=by(config.clients, variables["server"]),
        answered=variables["answered"],
        route=tuple(map(route, by(config.clients, variables["route"]))),
        publish=tuple(
            tuple(name in names for name in config.names)
            for names in by(config.clients, variables["publish"])
        ),
        silence=tuple(
            by(config.brokers, silence) for silence in by(config.name_servers, variables["silence"])
        ),
        faults=variables["faults"],
    )


_BOUNDED: Final = frozenset(
    {
        "BrokerDies",
        "MachineDies",
        "CloseChannel",
        "CutBroker",
        "CutClient",
        "NameServerDies",
        "WipeWrite",
    }
)


MODEL: Final = Model(
    name="Routing",
    initial=initial,
    actions=ACTIONS,
    invariants=named(tables_agree, live_broker_kept, dead_broker_forgotten, master_only_writes),
    fairness=FAIRNESS,
    liveness=named(eventually_routed),
    from_constants=configuration(
        Config,
        name_servers="NameServers",
        clients="Clients",
        masters="Masters",
        slaves="Slaves",
        holders="Holders",
        heartbeat_every="HeartbeatEvery",
        scan_every="ScanEvery",
        expiry="Expiry",
        poll_every="PollEvery",
        faults_max="MaxFaults",
    ),
    from_tla=from_tla,
    operator=operators(_BOUNDED),
)

"""Broken variants of the routing model; spec/tla/mutants explains each bug under the same name."""

from functools import partial
from typing import Final

from mqproof.reference import routing
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.routing import Broker, Config, State


def _queues_outlive_broker(config: Config, state: State, broker: Broker) -> State | None:
    after = routing.broker_dies(config, state, broker)
    return after and after._replace(
        tables=tuple(
            new._replace(queues=old.queues) for new, old in zip(after.tables, state.tables, strict=True)
        )
    )


def _only_live_record_removed(config: Config, state: State, broker: Broker) -> State | None:
    after = routing.broker_dies(config, state, broker)
    return after and after._replace(
        tables=tuple(old._replace(live=new.live) for new, old in zip(after.tables, state.tables, strict=True))
    )


def _unchanged_not_refreshed(config: Config, state: State, broker: Broker) -> State | None:
    after = routing.register(config, state, broker)
    if after is None:
        return None
    b = config.brokers.index(broker)
    version = len(routing.topics_of(broker, state.created))
    return after._replace(
        tables=tuple(
            old if old.live[b].version == version else new
            for new, old in zip(after.tables, state.tables, strict=True)
        )
    )


def _expired_too_early(config: Config, state: State, name_server: str) -> State | None:
    n = config.name_servers.index(name_server)
    after = routing.scan(config, state, name_server)
    early = {
        b
        for b, record in zip(config.brokers, state.tables[n].live, strict=True)
        if record != routing.NO_RECORD and record.age >= config.expiry
    }
    return after and after._replace(
        tables=(*after.tables[:n], routing.forgotten(config, after.tables[n], early), *after.tables[n + 1 :])
    )


def _nothing_expires(config: Config, state: State, name_server: str) -> State | None:
    after = routing.scan(config, state, name_server)
    return after and after._replace(tables=state.tables)


def _route_merged(config: Config, state: State, client: str) -> State | None:
    after = routing.poll(config, state, client)
    if after is None:
        return None
    c = config.clients.index(client)
    old, new = state.route[c], after.route[c]
    merged = (
        new._replace(members=tuple(a | b for a, b in zip(old.members, new.members, strict=True)))
        if new.source == "topic"
        else old
    )
    return after._replace(
        route=(*state.route[:c], merged, *state.route[c + 1 :]),
        publish=(
            *state.publish[:c],
            routing.publishable(merged.queues, merged.members),
            *state.publish[c + 1 :],
        ),
    )


def _slave_writable(config: Config, state: State, client: str) -> State | None:
    after = routing.poll(config, state, client)
    return after and after._replace(
        publish=tuple(
            tuple(p == "write" and bool(ids) for p, ids in zip(route.queues, route.members, strict=True))
            for route in after.route
        )
    )


def _permission_ignored(config: Config, state: State, client: str) -> State | None:
    after = routing.poll(config, state, client)
    return after and after._replace(
        publish=tuple(tuple(routing.MASTER in ids for ids in route.members) for route in after.route)
    )


def _sticky_client(config: Config, state: State, client: str, following: str) -> State | None:
    after = routing.poll_fails(config, state, client, following)
    return after and after._replace(server=state.server)


_routing = partial(Mutant, routing.MODEL, config=Config(name_servers=("n1",), holders=("a",)))

MUTANTS: Final[tuple[Mutant, ...]] = (
    _routing("QueuesOutliveBroker", "TablesAgree", "BrokerDies", _queues_outlive_broker),
    _routing("OnlyLiveRecordRemoved", "TablesAgree", "BrokerDies", _only_live_record_removed),
    _routing("UnchangedNotRefreshed", "LiveBrokerKept", "Register", _unchanged_not_refreshed),
    _routing("ExpiredTooEarly", "LiveBrokerKept", "Scan", _expired_too_early),
    _routing("NothingExpires", "DeadBrokerForgotten", "Scan", _nothing_expires),
    _routing("RouteMerged", "DeadBrokerForgotten", "Poll", _route_merged),
    _routing("SlaveWritable", "MasterOnlyWrites", "Poll", _slave_writable),
    _routing("PermissionIgnored", "MasterOnlyWrites", "Poll", _permission_ignored),
    _routing(
        "StickyClient",
        "EventuallyRouted",
        "PollFails",
        _sticky_client,
        config=Config(slaves=(), holders=("a",)),
    ),
)

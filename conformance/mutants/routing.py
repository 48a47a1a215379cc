"""Mutants of the name server and of the client's routes: each replaces one rule by a wrong one.

They judge the suite: `mqproof mutants --layer impl` runs all of them, and every one must be detected by the
invariant named for it.
"""

from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.namesrv.route_table import MASTER_ID, BrokerKey, LiveBroker, RouteTable
from mqproof.impl.remoting.bodies import PERM_WRITE, RegisterBrokerBody, TopicRoute

_TABLE: Final = "mqproof.impl.namesrv.route_table:RouteTable"

_register, _forget, _expire = RouteTable.register, RouteTable._forget, RouteTable.expire
_connection_closed, _record_queues = RouteTable.connection_closed, RouteTable._record_queues


def _ignores_hang_up(_table: RouteTable, _connection: int) -> list[LiveBroker]:
    return []


def _forgets_only_the_record(table: RouteTable, connection: int) -> list[LiveBroker]:
    gone = [live for live in table._live.values() if live.connection == connection]
    for live in gone:
        del table._live[live.key.cluster, live.key.address]
    return gone


def _forgets_one_broker(table: RouteTable, connection: int) -> list[LiveBroker]:
    gone = [live for live in table._live.values() if live.connection == connection][:1]
    for live in gone:
        _forget(table, live)
    return gone


def _queues_outlive_broker(table: RouteTable, live: LiveBroker) -> None:
    queues = {topic: dict(own) for topic, own in table._queues.items()}
    _forget(table, live)
    table._queues = queues


def _nothing_expires(_table: RouteTable, _now_ms: int) -> list[LiveBroker]:
    return []


def _expires_at_half_time(table: RouteTable, now_ms: int) -> list[LiveBroker]:
    silent = [one for one in table._live.values() if one.last_update_ms + one.expiry_ms // 2 < now_ms]
    for live in silent:
        table._forget(live)
    return silent


def _unchanged_is_no_contact(
    table: RouteTable, key: BrokerKey, body: RegisterBrokerBody | None, **args: Any
) -> LiveBroker | None:
    before = table._live.get((key.cluster, key.address))
    after = _register(table, key, body, **args)
    now = table._live[key.cluster, key.address]
    if before is not None and before.data_version == now.data_version:
        table._live[key.cluster, key.address] = replace(now, last_update_ms=before.last_update_ms)
    return after


def _wipe_undone(table: RouteTable, name: str, topics: Any, _is_changed: bool, *mask: int) -> None:
    _record_queues(table, name, topics, True, *mask)


def _slave_takes_its_master_along(table: RouteTable, key: BrokerKey) -> bool:
    live = table._live.get((key.cluster, key.address))
    if live is None or live.key != key:
        return False
    for each in [one for one in table._live.values() if one.key.broker_name == key.broker_name]:
        _forget(table, each)
    return True


def _slave_always_speaks(_table: RouteTable, _key: BrokerKey) -> bool:
    return True


def _change_is_not_taken(table: RouteTable, name: str, topics: Any, _is_changed: bool, *mask: int) -> None:
    _record_queues(table, name, topics, False, *mask)


def _permission_ignored(topic: str, route: TopicRoute) -> list[MessageQueue]:
    masters = {data.broker_name for data in route.broker_datas if MASTER_ID in data.broker_addrs}
    return [
        MessageQueue(topic, queue.broker_name, 0)
        for queue in route.queue_datas
        if queue.broker_name in masters
    ]


def _slave_is_written(topic: str, route: TopicRoute) -> list[MessageQueue]:
    return [
        MessageQueue(topic, queue.broker_name, 0) for queue in route.queue_datas if queue.perm & PERM_WRITE
    ]


MUTANTS: Final = by_name(
    Mutant(
        "hang-up-unheard", "a broker whose connection closed is kept until it expires", "ROUTE-1",
        f"{_TABLE}.connection_closed", _ignores_hang_up,
    ),
    Mutant(
        "only-live-record-removed", "the address and queues of a broker whose connection closed are kept",
        "ROUTE-1",
        f"{_TABLE}.connection_closed", _forgets_only_the_record,
    ),
    Mutant(
        "one-of-two-brokers-removed", "only one of the brokers that share a closed connection is removed",
        "ROUTE-1",
        f"{_TABLE}.connection_closed", _forgets_one_broker,
    ),
    Mutant(
        "queues-outlive-broker", "the queues of a removed broker are kept", "ROUTE-1",
        f"{_TABLE}._forget", _queues_outlive_broker,
    ),
    Mutant(
        "expired-too-early", "a broker is removed after half of its expiry time", "ROUTE-2",
        f"{_TABLE}.expire", _expires_at_half_time,
    ),
    Mutant(
        "unchanged-not-refreshed", "a registration without changes does not extend the expiry time",
        "ROUTE-2", f"{_TABLE}.register", _unchanged_is_no_contact,
    ),
    Mutant(
        "slave-unregisters-master", "a slave that unregisters also removes its master", "ROUTE-2",
        f"{_TABLE}.unregister", _slave_takes_its_master_along,
    ),
    Mutant(
        "nothing-expires", "a silent broker is kept forever", "ROUTE-3",
        f"{_TABLE}.expire", _nothing_expires,
    ),
    Mutant(
        "permission-ignored", "a client sends to queues without write permission", "ROUTE-4",
        "mqproof.conformance.adapters.routing.simulated_peers:publish_queues", _permission_ignored,
    ),
    Mutant(
        "slave-written", "a client sends to a broker name without a master", "ROUTE-4",
        "mqproof.conformance.adapters.routing.simulated_peers:publish_queues", _slave_is_written,
    ),
    Mutant(
        "wipe-undone", "a registration without changes restores the write permission", "SPEC-1",
        f"{_TABLE}._record_queues", _wipe_undone,
    ),
    Mutant(
        "change-not-taken", "a registration with a new version does not change the known queues",
        "SPEC-1",
        f"{_TABLE}._record_queues", _change_is_not_taken,
    ),
    Mutant(
        "slave-always-speaks", "a slave's queues are accepted although there is a master", "SPEC-1",
        f"{_TABLE}._is_least", _slave_always_speaks,
    ),
)  # fmt: skip
"""The mutants by name."""

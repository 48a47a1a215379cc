"""Mutants of a broker's queue locks, used to judge the suite. Each replaces one rule by a wrong one."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.state.queue_locks import QueueLockTable
from mqproof.impl.remoting.bodies import MessageQueue
from mqproof.impl.remoting.channel import Channel

Queues = Iterable[MessageQueue]

_LOCKS: Final = "mqproof.impl.broker.state.queue_locks:QueueLockTable"

_lock, _unlock, _channel_closed = QueueLockTable.lock, QueueLockTable.unlock, Broker._channel_closed


def _to_everybody(
    _table: QueueLockTable, _group: str, _client_id: str, queues: Queues, _now_ms: int
) -> list[MessageQueue]:
    return list(queues)


def _for_a_third_of_the_lease(
    table: QueueLockTable, group: str, client_id: str, queues: Queues, now_ms: int
) -> list[MessageQueue]:
    """Uses a third of the lease, as if the milliseconds of another setting were used."""
    lease_ms, table._lease_ms = table._lease_ms, table._lease_ms // 3
    try:
        return _lock(table, group, client_id, queues, now_ms)
    finally:
        table._lease_ms = lease_ms


def _not_renewed(
    table: QueueLockTable, group: str, client_id: str, queues: Queues, now_ms: int
) -> list[MessageQueue]:
    """Grants the lock to its holder without extending the lease."""
    before = dict(table._leases.get(group, {}))
    granted = _lock(table, group, client_id, queues, now_ms)
    leases = table._leases.get(group, {})
    for queue in granted:
        if queue in before and before[queue].client_id == client_id and before[queue].ends_ms >= now_ms:
            leases[queue] = before[queue]
    return granted


def _by_any_member(table: QueueLockTable, group: str, _client_id: str, queues: Queues) -> None:
    for queue in queues:
        table._leases.get(group, {}).pop(queue, None)


def _never_over(
    table: QueueLockTable, group: str, client_id: str, queues: Queues, _now_ms: int
) -> list[MessageQueue]:
    return _lock(table, group, client_id, queues, 0)


def _of_all_groups(
    table: QueueLockTable, _group: str, client_id: str, queues: Queues, now_ms: int
) -> list[MessageQueue]:
    return _lock(table, "", client_id, queues, now_ms)


def _not_given_back(_table: QueueLockTable, _group: str, _client_id: str, _queues: Queues) -> None:
    pass


def _all_or_nothing(
    table: QueueLockTable, group: str, client_id: str, queues: Queues, now_ms: int
) -> list[MessageQueue]:
    wanted = list(queues)
    granted = _lock(table, group, client_id, wanted, now_ms)
    return granted if len(granted) == len(wanted) else []


def _gone_with_a_connection(broker: Broker, channel: Channel) -> None:
    """Drops all locks when a connection closes, as if its client were gone."""
    _channel_closed(broker, channel)
    if broker.services is not None:
        broker.services.locks._leases.clear()


def _mutant(
    name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any], of: str = _LOCKS
) -> Mutant:
    return Mutant(name, defect, breaks, f"{of}.{where}", wrong)


MUTANTS: Final = by_name(
    _mutant(
        "granted-to-all", "a lock is granted to every member that requests it",
        "DELIV-13", "lock", _to_everybody,
    ),
    _mutant(
        "lease-too-short", "a lock is granted to others after a third of its lease", "DELIV-13", "lock",
        _for_a_third_of_the_lease,
    ),
    _mutant(
        "renewal-not-noted", "the renewal of a lock does not extend its lease",
        "DELIV-13", "lock", _not_renewed
    ),
    _mutant("unlocked-by-others", "any member may unlock a queue", "DELIV-13", "unlock", _by_any_member),
    _mutant("lease-never-over", "a lock that is not renewed is kept", "SPEC-1", "lock", _never_over),
    _mutant(
        "one-table-for-all-groups", "a lock of one group blocks other groups", "SPEC-1", "lock",
        _of_all_groups,
    ),
    _mutant("unlock-ignored", "a lock that is released is kept", "SPEC-1", "unlock", _not_given_back),
    _mutant(
        "all-or-nothing", "a batch is refused as a whole if another member holds one of its queues",
        "SPEC-1", "lock",
        _all_or_nothing,
    ),
    _mutant(
        "locks-end-with-connections", "a lock ends when a connection breaks", "DELIV-13",
        "_channel_closed", _gone_with_a_connection, "mqproof.impl.broker.broker:Broker",
    ),
)  # fmt: skip
"""The mutants by name."""

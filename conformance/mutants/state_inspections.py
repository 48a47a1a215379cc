"""Mutants of a broker's tables and waits that the inspections of limits and exact times detect."""

from collections.abc import Mapping
from typing import Any, Final
from unittest import mock

from mqproof.conformance.mutants.mutant import by_name, unexplained
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.state import consumer_filters, open_transactions
from mqproof.impl.broker.state.consumer_filters import ConsumerFilterTable
from mqproof.impl.broker.state.open_transactions import End, OpenTransactions
from mqproof.impl.broker.state.queue_locks import QueueLockTable
from mqproof.impl.broker.transactions import Transactions
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.replication.server import MasterServer
from mqproof.spec.events import Kind

_BROKER: Final = "mqproof.impl.broker"

_adopt, _arrived = ConsumerFilterTable.adopt, PullHolds.arrived
_end, _lock = OpenTransactions.end, QueueLockTable.lock
_end_transaction, _record = Transactions.end, MasterServer.record
_look_at = LedgerStore._look_at


def _newest_forgotten(table: OpenTransactions, original: int, end: End, log_end: int) -> None:
    _end(table, original, end, log_end)
    if len(table._known_ends) >= open_transactions._REMEMBERED_MAX:
        table._known_ends.popitem()


def _first_queue_only(holds: PullHolds, topic: str, queue_id: int, offset_next: int, code: int) -> None:
    if queue_id == 0:
        _arrived(holds, topic, queue_id, offset_next, code)


def _any_number(*arguments: Any) -> None:
    with mock.patch.object(consumer_filters, "FILTERS_MAX", 1 << 30):
        _adopt(*arguments)


def _a_millisecond_short(table: QueueLockTable, *arguments: Any) -> Any:
    table._lease_ms -= 1
    held = _lock(table, *arguments)
    table._lease_ms += 1
    return held


def _refused_without_events(transactions: Transactions, kind: Kind, _: object) -> None:
    if transactions._events is None and kind is not Kind.HALF:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "there is no event log")


def _recorded_or_ignored(server: MasterServer, *arguments: Any) -> None:
    if server._events is not None:
        _record(server, *arguments)


def _looked_at_if_recorded(store: LedgerStore, entry: Any) -> None:
    if store._events is not None:
        _look_at(store, entry)


async def _no_copies(_: object) -> None:
    """Append nothing."""


def _ended_unread(transactions: Transactions, *arguments: Any) -> None:
    transactions._is_ready = True
    _end_transaction(transactions, *arguments)


INSPECTIONS: Final[Mapping[str, str]] = {
    "newest-end-forgotten": "remembered ends",
    "arrivals-in-the-first-queue-only": "idle waits",
    "masters-expressions-without-a-limit": "limited expressions",
    "lock-a-millisecond-short": "exact leases",
    "transactions-need-an-event-log": "no event log",
    "slaves-need-an-event-log": "pair without event logs",
    "ends-before-the-start": "unread waits",
    "members-need-an-event-log": "group without event logs",
    "no-copies-of-what-waits": "expired points",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    unexplained(
        "newest-end-forgotten", "a repeated end is refused once as many as possible are remembered",
        f"{_BROKER}.state.open_transactions:OpenTransactions.end", _newest_forgotten,
    ),
    unexplained(
        "arrivals-in-the-first-queue-only", "what waits for a message of another queue looks again later",
        f"{_BROKER}.long_polling:PullHolds.arrived", _first_queue_only,
    ),
    unexplained(
        "masters-expressions-without-a-limit", "a slave keeps any number of its master's expressions",
        f"{_BROKER}.state.consumer_filters:ConsumerFilterTable.adopt", _any_number,
    ),
    unexplained(
        "lock-a-millisecond-short", "the lock of a queue ends a millisecond early",
        f"{_BROKER}.state.queue_locks:QueueLockTable.lock", _a_millisecond_short,
    ),
    unexplained(
        "transactions-need-an-event-log", "a broker without an event log cannot end transactions",
        f"{_BROKER}.transactions:Transactions._emit", _refused_without_events,
    ),
    unexplained(
        "slaves-need-an-event-log", "a master without an event log ignores what its slave acknowledges",
        "mqproof.impl.replication.server:MasterServer.record", _recorded_or_ignored,
    ),
    unexplained(
        "ends-before-the-start", "a broker ends transactions that it has not read yet",
        f"{_BROKER}.transactions:Transactions.end", _ended_unread,
    ),
    unexplained(
        "members-need-an-event-log", "a member of a group without an event log shows no message",
        "mqproof.impl.dledger.ledger_store:LedgerStore._look_at", _looked_at_if_recorded,
    ),
    unexplained(
        "no-copies-of-what-waits", "a message that waits is not copied when its segment is to be deleted",
        f"{_BROKER}.timers:Timers._roll", _no_copies,
    ),
)  # fmt: skip

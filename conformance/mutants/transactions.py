"""Mutants of a broker's transactions, used to judge the suite. Each replaces one rule by a wrong one.

Defects that the suite does not reach are detected by behaviours of Transactions (`STEPPED`).
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace as with_members

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker import half_messages
from mqproof.impl.broker.half_messages import DISCARD_TOPIC
from mqproof.impl.broker.state.open_transactions import End, HalfMessage, OpenTransactions
from mqproof.impl.broker.transactions import Transactions
from mqproof.impl.remoting.message import Address, Message, StoredMessage

_half, _final, _find = half_messages.half, half_messages.final, OpenTransactions.find
_check, _check_all = Transactions._check, Transactions._check_all


def _visible_at_once(message: Message) -> Message:
    return with_members(_half(message), topic=message.topic, queue_id=message.queue_id)


def _final_is_lost(stored: StoredMessage, store_host: Address) -> Message:
    return with_members(_final(stored, store_host), topic=DISCARD_TOPIC, queue_id=0)


def _final_of_a_copy_is_lost(stored: StoredMessage, store_host: Address) -> Message:
    is_copy = half_messages.ORIGINAL in stored.message.properties
    return _final_is_lost(stored, store_host) if is_copy else _final(stored, store_host)


def _found_although_ended(table: OpenTransactions, original: int) -> HalfMessage | None:
    return table._halves.get(original)


def _found_after_rollback(table: OpenTransactions, original: int) -> HalfMessage | None:
    if table.known_end(original) is End.ROLLBACK:
        return table._halves.get(original)
    return _find(table, original)


async def _not_scanned(_transactions: object, _position: int) -> None:
    """Takes only the operations as evidence: a crash before the next one opens the transaction again."""


async def _not_read(_transactions: object, _offsets: object, _places: object) -> int:
    """Does not read the operations after a restart (issue 8311)."""
    return 1 << 60


def _ahead(table: OpenTransactions, operations_end: int) -> tuple[int, int]:
    """Passes every half message that it has read (issue 544)."""
    return table.read_end, operations_end


def _always_due(_half: HalfMessage, _now_ms: int, _timeout_ms: int, _immunity_ms_max: int) -> bool:
    return True


async def _never_checked(*_arguments: object) -> None:
    """Stops checking (issue 9500)."""


async def _ended_checked(transactions: Transactions, *arguments: Any) -> None:
    """Checks transactions although they ended (issue 1517)."""
    ended, transactions._table._ended = transactions._table._ended, {}
    await _check_all(transactions, *arguments)
    transactions._table._ended |= ended


async def _dropped_after_exception(transactions: Transactions, half: HalfMessage, *arguments: Any) -> None:
    """Does not check a half message again after an exception (issue 9500)."""
    try:
        await _check(transactions, half, *arguments)
    except OSError:
        transactions._table.drop(half.original)


_BROKER: Final = "mqproof.impl.broker"


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, breaks, f"{_BROKER}.{where}", wrong)


_TABLE: Final = "state.open_transactions:OpenTransactions"
_WORK: Final = "transactions:Transactions"

MUTANTS: Final = by_name(
    _mutant(
        "half-dispatched", "a half message is stored in its real queue", "DELIV-9",
        "half_messages:half", _visible_at_once,
    ),
    _mutant(
        "final-lost", "the final message is stored in another topic", "DELIV-9",
        "half_messages:final", _final_is_lost,
    ),
    _mutant(
        "final-of-copy-lost", "a commit that names a copy makes nothing visible", "SPEC-1",
        "half_messages:final", _final_of_a_copy_is_lost,
    ),
    _mutant(
        "commit-repeated", "a repeated commit stores the message again (issue 8158)", "TXN-1",
        f"{_TABLE}.find", _found_although_ended,
    ),
    _mutant(
        "final-no-evidence", "a crash between final message and operation opens the transaction again",
        "TXN-1", f"{_WORK}._scan", _not_scanned,
    ),
    _mutant(
        "commit-after-rollback", "a commit is accepted after a rollback", "TXN-2",
        f"{_TABLE}.find", _found_after_rollback,
    ),
    _mutant(
        "operations-not-read", "a restart does not read the operations (issue 8311)", "TXN-2",
        f"{_WORK}._read_operations", _not_read,
    ),
    _mutant(
        "progress-ahead", "the progress passes open transactions (issue 544)", "TXN-3",
        f"{_TABLE}.progress", _ahead,
    ),
    _mutant(
        "checked-in-immunity", "a transaction is checked in its immunity time", "TXN-4",
        "transactions:is_due", _always_due,
    ),
    _mutant(
        "never-checked", "no transaction is checked (issue 9500)", "TXN-5",
        f"{_WORK}._check_all", _never_checked,
    ),
)  # fmt: skip
"""The mutants by name."""

STEPPED: Final = by_name(
    _mutant(
        "ended-checked-again", "a transaction is checked again after its end (issue 1517)", "TXN-4",
        f"{_WORK}._check_all", _ended_checked,
    ),
    _mutant(
        "dropped-after-exception", "a half message is not checked again after an exception (issue 9500)",
        "TXN-5", f"{_WORK}._check", _dropped_after_exception,
    ),
)  # fmt: skip
"""The mutants by name; stepped transactions detect them (`ended_transactions`)."""

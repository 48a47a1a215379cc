"""Mutants of a broker's timers, used to judge the suite. Each replaces one rule by a wrong one.

Defects that the suite does not reach are detected by behaviours of Timers (`STEPPED`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker import timed_messages
from mqproof.impl.broker.state.waiting_timers import Waiting, WaitingTimers
from mqproof.impl.broker.timed_messages import Point
from mqproof.impl.broker.timers import Timers
from mqproof.impl.remoting.message import Message, StoredMessage

_read, _write_point = Timers._read, Timers._write_point
_asked_due_ms, _add, _point = timed_messages.asked_due_ms, WaitingTimers.add, WaitingTimers.point

_DAYS_MS: Final = 3 * 86_400_000


def _half_a_second_early(due_ms: int, now_ms: int) -> bool:
    return due_ms - 500 <= now_ms


def _only_at_its_time(due_ms: int, now_ms: int) -> bool:
    """Skips a message whose time passed during an outage."""
    return due_ms <= now_ms < due_ms + 500


def _overflows(properties: Mapping[str, str], name: str, now_ms: int) -> int:
    due_ms = _asked_due_ms(properties, name, now_ms)
    return due_ms if due_ms - now_ms <= _DAYS_MS else 0


async def _not_scanned(_timers: object, _table: object, _scan_from: int) -> None:
    """Accepts only points as evidence. Messages delivered since the last point are delivered again."""


def _no_recall(_message: Message) -> None:
    """Does not find recalls after a restart."""


def _copies_left_out(table: WaitingTimers, waiting: Waiting) -> None:
    """Does not read the copies of rolled messages."""
    if waiting.original == waiting.place:
        _add(table, waiting)


def _copy_is_another_message(stored: StoredMessage) -> int:
    """Takes a rolled copy for another message (issue 11156)."""
    return stored.queue_offset


def _ahead(table: WaitingTimers, now_ms: int, log_end: int) -> Point:
    """Covers every message that was read, whether it is due or not."""
    return _point(table, now_ms, log_end)._replace(due_ms=now_ms + _DAYS_MS, first=table.read_end)


def _nothing_needed(_timers: object) -> None:
    """Lets the records of waiting messages be deleted."""


def _found_by_no_key(_table: object, _key: object) -> list[Waiting]:
    return []


async def _point_in_a_file(timers: Any, before: Callable[[], Point | None]) -> None:
    """Keeps the last point apart from the log, so that a crash that cuts the log does not cut it."""
    store = timers._store
    disk = store._runtime.disk
    kept = getattr(disk, "point", None)

    async def written() -> None:
        disk.point = timers._table.point(store.now_ms(), store.next_commit_offset)
        await _write_point(timers)

    timers._write_point = written
    if kept is not None:
        timers._last_point = lambda: kept
    await _read(timers, before)


_BROKER: Final = "mqproof.impl.broker"


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, breaks, f"{_BROKER}.{where}", wrong)


_TABLE: Final = "state.waiting_timers:WaitingTimers"
_WORK: Final = "timers:Timers"

MUTANTS: Final = by_name(
    _mutant(
        "timer-half-a-second-early", "a message is delivered half a second early", "DELIV-8",
        "state.waiting_timers:is_due", _half_a_second_early,
    ),
    _mutant(
        "timer-overflow-at-once", "a delay that is too long means at once (issue 10872)", "TIMER-5",
        "timed_messages:asked_due_ms", _overflows,
    ),
    _mutant(
        "timer-point-ahead", "a point covers messages that are not due", "TIMER-1",
        f"{_TABLE}.point", _ahead,
    ),
    _mutant(
        "timer-needed-deleted", "the record of a waiting message is deleted with its segment", "TIMER-1",
        f"{_WORK}._needed_from", _nothing_needed,
    ),
    _mutant(
        "timer-copy-not-read", "the copy of a rolled message is not read", "TIMER-4",
        f"{_TABLE}.add", _copies_left_out,
    ),
    _mutant(
        "timer-overdue-skipped", "a message that is due during an outage is skipped", "TIMER-4",
        "state.waiting_timers:is_due", _only_at_its_time,
    ),
    _mutant(
        "timer-final-not-sought", "a restart delivers again what was delivered since the last point",
        "TIMER-2", f"{_WORK}._scan", _not_scanned,
    ),
    _mutant(
        "timer-rolled-twice", "a copy counts as another message (issue 11156)", "TIMER-2",
        "timed_messages:original_of", _copy_is_another_message,
    ),
    _mutant(
        "timer-recall-forgotten", "a restart does not find recalls", "TIMER-3",
        "timed_messages:recalled_by", _no_recall,
    ),
    _mutant(
        "timer-recall-refused", "every recall is refused", "SPEC-1",
        f"{_TABLE}.named", _found_by_no_key,
    ),
)  # fmt: skip
"""The mutants by name."""

STEPPED: Final = by_name(
    _mutant(
        "timer-point-outlives-log", "a crash that cuts the log leaves a point about what was cut (issue"
        " 10668)", "TIMER-1", f"{_WORK}._read", _point_in_a_file,
    ),
)  # fmt: skip
"""The mutants by name; stepped timers detect them (`timed_deliveries`)."""

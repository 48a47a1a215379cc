"""Stores that an inspection writes, each with what a broker has after its start on it.

See docs/reference/protocol/recovery.md, "Recovery" and "Deleted topics", and storing.md, "Damaged files".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from mqproof.conformance.adapters.inspections.crafted_store import (
    ENTRIES,
    REBUILT,
    SEGMENT,
    CraftedStore,
    Queue,
)
from mqproof.conformance.adapters.inspections.store_damages import LOG, QUEUES
from mqproof.conformance.adapters.inspections.written_records import Form, filler

_T0, _T1, _T2, _O0 = ("t", 0), ("t", 1), ("t", 2), ("o", 0)
EVERY_QUEUE: Final[tuple[Queue, ...]] = (_T0, _T1, _T2, _O0)


@dataclass(frozen=True, slots=True)
class Left:
    """What a broker has after its start."""

    messages: Mapping[Queue, list[int]] = field(default_factory=dict)
    """The numbers of the records in the log that are delivered, by queue."""
    first: Mapping[Queue, int] = field(default_factory=dict)
    """The first offsets that are not 0."""
    next: Mapping[Queue, int] = field(default_factory=dict)
    """The next offsets that are not the one after the last message."""
    end: int | None = None
    """The commit offset of the next message, if the log ends before its files do."""
    is_whole: bool = True
    """Whether all files follow from the log."""
    refused: str = ""
    """A part of the error, if the broker does not start."""


_Build = Callable[[CraftedStore], Left]


# -- damage beside the counted position


def _both_sides(*, zeroed: bool) -> _Build:
    def build(store: CraftedStore) -> Left:
        store.add(0)
        store.add(1)
        store.add_damage(zeroed=zeroed)
        store.count(2)
        store.add_damage(zeroed=zeroed)
        store.add(2, listed=False)
        return Left({_T0: [0, 1]}, end=store.counted[1] if store.counted else 0, is_whole=False)

    return build


def _across(store: CraftedStore) -> Left:
    store.add(0)
    store.add_damage(300)
    store.count(1, position=store.end - 100)
    store.add(1, listed=False)
    return Left({_T0: [0]}, end=store.end - 100 - len(store.records[-1].raw), is_whole=False)


def _last_before(store: CraftedStore) -> Left:
    """The last record before the counted position follows damage, and so does the first one after it."""
    store.add(0, listed=False)
    store.add_damage()
    store.add(1, listed=False)
    store.count(2)
    store.add(2, listed=False)
    return Left({_T0: [0, 1, 2]}, is_whole=False)


def _record_inside(store: CraftedStore) -> Left:
    """A damaged record whose size is right has a record in its body, which is not one of the log."""
    store.add(0, listed=False)
    inside = Form("t", b"0 9 ", b"", 1).written(0, store.end + 94, store.now_ms)
    store.add_damage(94 + len(inside) + 30, inside=inside)
    store.add(1, listed=False)
    store.count(2)
    return Left({_T0: [0, 1]}, is_whole=False)


def _filler_inside(store: CraftedStore) -> Left:
    store.add(0, listed=False)
    store.add_damage(150, inside=filler(store.left - 94)[:8])
    store.add(1, listed=False)
    store.log += filler(store.left)
    store.add(2, listed=False)
    store.count(3)
    return Left({_T0: [0, 1, 2]}, is_whole=False)


def _filler_at_end(store: CraftedStore) -> Left:
    """A filler at the end of the log is overwritten."""
    store.add(0)
    end = store.end
    store.log += filler(store.left)
    return Left({_T0: [0]}, end=end)


def _filler_and_blank(store: CraftedStore) -> Left:
    store.add(0)
    store.log += filler(store.left)
    end = store.end
    store.log += bytes(SEGMENT)
    return Left({_T0: [0]}, end=end)


def _other_filler(change: int) -> _Build:
    """The size of the filler is not that of the rest of the segment."""

    def build(store: CraftedStore) -> Left:
        store.add(0)
        end, left = store.end, store.left
        store.log += filler(left + change)[:left].ljust(left, b"\0")
        store.add(1, listed=False)
        return Left({_T0: [0]}, end=end, is_whole=False)

    return build


def _counted_to(beyond: int) -> _Build:
    """The checkpoint counts up to the end of the last file, or further."""

    def build(store: CraftedStore) -> Left:
        store.add(0)
        store.log += bytes(store.left)
        store.count(1, position=SEGMENT + beyond)
        return Left({_T0: [0]}, end=SEGMENT, is_whole=False, refused=LOG if beyond else "")

    return build


def _counted_from(begin: int) -> _Build:
    def build(store: CraftedStore) -> Left:
        store.begin = SEGMENT
        store.add(0)
        store.add(1)
        store.count(1 if begin > SEGMENT else 2, begin=begin)
        store.add(2)
        return Left({_T0: [0, 1, 2]}, refused=LOG if begin < SEGMENT else "")

    return build


def _being_rebuilt(store: CraftedStore) -> Left:
    store.begin = SEGMENT
    for offset in range(3):
        store.add(offset, listed=offset == 1)
    store.add(0, topic="o", listed=False)
    store.counted = REBUILT
    store.entries.clear()
    return Left({_T0: [0, 1, 2], _O0: [3]})


def _flag(flag: int, queue: int = 0) -> _Build:
    """The system flag of the last counted record says that it takes no offset; its entry stays."""

    def build(store: CraftedStore) -> Left:
        store.add(0, topic="o")
        for offset in range(4):
            at = len(store.log)
            store.add(offset, queue)
        store.log[at + 39] = flag
        store.count(5)
        store.add(4, queue)
        return Left({("t", queue): [1, 2, 3, 4, 5], _O0: [0]}, is_whole=False)

    return build


# -- entries of queues


def _expired_entry(place: int, *, stays: bool, single: bool = False) -> _Build:
    """The last entry points before the begin of the log: it stays if it follows from the one before it."""

    def build(store: CraftedStore) -> Left:
        store.begin = SEGMENT
        store.add(0, topic="o")
        if not single:
            store.list_entry(0, 500, 100)
        at = 0 if single else 1
        store.list_entry(at, place, 100)
        end = at + stays
        return Left({_O0: [0]}, first={_T0: end}, next={_T0: end}, is_whole=False)

    return build


def _partly_zeroed(store: CraftedStore) -> Left:
    store.begin = SEGMENT
    store.list_entry(0, 700, 100)
    store.add(1)
    store.add(2)
    store.list_entry(3, 900, 100)
    return Left({_T0: [0, 1]}, first={_T0: 1}, next={_T0: 3}, is_whole=False)


def _first_offset(first: int) -> _Build:
    """The log lost its begin, and the queue its files: it begins with its first record."""

    def build(store: CraftedStore) -> Left:
        store.begin = SEGMENT
        for offset in (first, first + 1):
            store.add(offset, listed=False)
        return Left({_T0: [0, 1]}, first={_T0: first})

    return build


def _adjoining(first: int) -> _Build:
    """Entries 0 to 2 have expired; the log's first record is beside them, or not."""

    def build(store: CraftedStore) -> Left:
        store.begin = SEGMENT
        for offset in range(3):
            store.list_entry(offset, 100 * offset, 100)
        for offset in (first, first + 1):
            store.add(offset, listed=False)
        return Left({_T0: [0, 1]}, first={_T0: first}, is_whole=False)

    return build


def _gap(begin: int, listed: int) -> _Build:
    """A record of the queue is missing, and nothing says why."""

    def build(store: CraftedStore) -> Left:
        store.begin = begin
        for number, offset in enumerate((3, 4, 6) if begin else (0, 1, 3)):
            store.add(offset, listed=number < listed)
        return Left(refused=f"{QUEUES}/t/0")

    return build


def _same_offset(store: CraftedStore) -> Left:
    """Of two records with one offset, the first counts."""
    for offset in (0, 1, 1, 2):
        store.add(offset, listed=False)
    return Left({_T0: [0, 1, 3]}, is_whole=False)


def _same_offset_counted(store: CraftedStore) -> Left:
    """The first one of the two is before the start of recovery."""
    for offset in (0, 1, 2):
        store.add(offset)
    store.count(3)
    for offset in (1, 2, 3):
        store.add(offset, listed=False)
    return Left({_T0: [0, 1, 2, 5]}, is_whole=False)


def _same_offset_behind(store: CraftedStore) -> Left:
    """The second one is the first record of its queue behind the start of recovery."""
    for offset in (0, 1, 2):
        store.add(offset)
    store.add(0, topic="o")
    store.count(4)
    for offset in (1, 3):
        store.add(offset, listed=False)
    return Left({_T0: [0, 1, 2, 5], _O0: [3]}, is_whole=False)


def _again_from_0(store: CraftedStore) -> Left:
    """In a replicated log, offset 0 after others means that the topic was deleted and created again."""
    for offset in (0, 1, 2, 0, 1):
        store.add(offset, listed=False)
    return Left({_T0: [3, 4]}, is_whole=False)


def _no_queues(store: CraftedStore) -> Left:
    """Without a count and any queue, everything is dispatched again, wherever the times let it start."""
    for offset in range(4):
        store.add(offset, listed=False, body=b"x" * 1500)
    store.times = (1 << 60, 1 << 60, 0)
    return Left({_T0: [0, 1, 2, 3]})


def _lost_entries(store: CraftedStore) -> Left:
    """A queue has fewer entries than the checkpoint counts with the others."""
    for number in range(6):
        store.add(number // 2, number % 2, listed=number % 2 == 0)
    store.count(6)
    store.add(3)
    return Left({_T0: [0, 2, 4, 6], _T1: [1, 3, 5]})


# -- deleted topics


def _recreated(before: int, *, listed: bool = False) -> _Build:
    """The topic was deleted at a place beside the first record of the new one."""

    def build(store: CraftedStore) -> Left:
        store.add(0, topic="o")
        for offset in range(3):
            store.add(offset, listed=False)
        store.deleted = {"t": store.end + before}
        for offset in range(2):
            store.add(offset, listed=listed)
        return Left({_T0: [4, 5], _O0: [0]})

    return build


def _deleted_but_last(store: CraftedStore) -> Left:
    """The deletion is at the last old record, which is not deleted then."""
    store.add(0)
    last = store.add(1)
    store.entries.clear()
    store.deleted = {"t": last.commit_offset}
    return Left(refused=f"{QUEUES}/t/0")


def _queues_left(store: CraftedStore) -> Left:
    """A crash came between the deletion of the topic and that of its queues."""
    for offset in range(3):
        store.add(offset)
        store.add(offset, topic="o")
    store.deleted = {"t": store.records[-2].commit_offset + 1}
    return Left({_O0: [1, 3, 5]})


def _deleted_beyond(store: CraftedStore) -> Left:
    """A crash took the end of the log, so the places before the deletion are used again."""
    store.add(0)
    store.add(0, topic="o")
    store.entries.pop(_T0)
    store.deleted = {"t": store.end + 1000, "o": 0}
    return Left({_O0: [1]})


def _list_missing(store: CraftedStore) -> Left:
    """Without the list, the first entry of a queue shows that older records are of a deleted topic."""
    store.add(0, topic="o")
    for offset in range(3):
        store.add(offset, listed=False)
    store.add(1, topic="o")
    store.count(5)
    for offset in range(2):
        store.add(offset)
    return Left({_T0: [5, 6], _O0: [0, 4]}, is_whole=False)


CASES: Final[Mapping[str, _Build]] = {
    "damage on both sides of the position": _both_sides(zeroed=False),
    "zero bytes on both sides of the position": _both_sides(zeroed=True),
    "damage across the position": _across,
    "a record between damage and the position": _last_before,
    "a record inside a damaged one": _record_inside,
    "a filler inside a damaged record": _filler_inside,
    "a filler at the end": _filler_at_end,
    "a filler before a blank segment": _filler_and_blank,
    "a filler that is too small": _other_filler(-8),
    "a filler that is too large": _other_filler(8),
    "a count up to the end of the files": _counted_to(0),
    "a count beyond the files": _counted_to(1),
    "a count from before the log": _counted_from(0),
    "a count from the begin of the log": _counted_from(SEGMENT),
    "a count from within the log": _counted_from(SEGMENT + 1),
    "queues that are being rebuilt": _being_rebuilt,
    "a prepared record with an entry": _flag(4),
    "a rolled-back record with an entry": _flag(12, 1),
    "an expired entry after another": _expired_entry(700, stays=True),
    "an expired entry at the place of another": _expired_entry(500, stays=False),
    "an expired entry before another": _expired_entry(100, stays=False),
    "a single expired entry": _expired_entry(700, stays=True, single=True),
    "a single expired entry at 0": _expired_entry(0, stays=True, single=True),
    "a single entry of a negative place": _expired_entry(-1, stays=False, single=True),
    "a partly zeroed entry": _partly_zeroed,
    **{f"a queue that begins at {first}": _first_offset(first)
       for first in (0, 1, ENTRIES - 1, ENTRIES, ENTRIES + 1, 2 * ENTRIES)},
    "a record beside expired entries": _adjoining(3),
    "a record behind expired entries": _adjoining(4),
    "a record far behind expired entries": _adjoining(20),
    "a gap": _gap(0, 0),
    "a gap after entries": _gap(0, 2),
    "a gap behind the begin": _gap(SEGMENT, 0),
    "one offset twice": _same_offset,
    "one offset twice, once counted": _same_offset_counted,
    "one offset twice, behind another queue": _same_offset_behind,
    "offset 0 again": _again_from_0,
    "times without queues": _no_queues,
    "fewer entries than counted": _lost_entries,
    "a deletion at the new record": _recreated(0),
    "a deletion before the new record": _recreated(-1),
    "a deletion before listed records": _recreated(0, listed=True),
    "a deletion at the last record": _deleted_but_last,
    "a deletion whose queues are left": _queues_left,
    "a deletion beyond the end": _deleted_beyond,
    "a list of deletions that is missing": _list_missing,
}  # fmt: skip

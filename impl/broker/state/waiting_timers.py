"""The messages that wait for their time, ordered by it and by their place in the timer queue.

A pure table; the log is read and written elsewhere. A message is identified by the offset of its original in
the timer queue. See docs/reference/protocol/timers.md, "Points" and "Copies".
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from mqproof.impl.broker.timed_messages import Point

_STALE_MAX: Final = 1024
"""How many entries of the heap may be out of date, unless half of the heap is more."""


class Waiting(NamedTuple):
    """The latest copy of a waiting message."""

    original: int
    """The offset of the original in the timer queue."""
    place: int
    """The offset of this copy in the timer queue."""
    commit_offset: int
    due_ms: int
    key: tuple[str, str] | None
    """Topic and unique key; None if it cannot be recalled."""


def is_due(due_ms: int, now_ms: int) -> bool:
    """Return whether the time has come; a message is never delivered early."""
    return due_ms <= now_ms


class WaitingTimers:
    """The messages that are not done, in the order of the places of their latest copies."""

    def __init__(self) -> None:
        self.read_end = 0
        """The end of the part of the timer queue that the table contains."""
        self._all: dict[int, Waiting] = {}
        self._heap: list[tuple[int, int]] = []
        """When each message is due, and its original; entries of messages that are done stay for a while."""
        self._by_key: dict[tuple[str, str], tuple[int, ...]] = {}
        self._held: dict[int, int] = {}
        """By original: a commit offset at or before the record that is being put for it."""
        self._delivered: list[tuple[int, int]] = []
        """When each final was due, and a commit offset before it; those that a point covers are removed."""
        self._leaving: list[tuple[int, int]] = []
        """Commit offsets of records that are not needed once the record at the other offset is durable."""
        self.changes = 0
        """Grows with every message that is done."""

    def __len__(self) -> int:
        return len(self._all)

    def add(self, waiting: Waiting) -> None:
        """Add a message that was read from the timer queue. The copy of one that is done is left out."""
        if waiting.original in self._all or waiting.original == waiting.place:
            self.add_read(waiting)

    def add_read(self, waiting: Waiting) -> None:
        """Add a message while the queue is read for the first time: its original may be deleted already."""
        known = self._all.pop(waiting.original, None)
        if known is not None:
            self._leaving.append((known.commit_offset, waiting.commit_offset))
        self._all[waiting.original] = waiting
        self._held.pop(waiting.original, None)
        heappush(self._heap, (waiting.due_ms, waiting.original))
        if known is None and waiting.key is not None:
            self._by_key[waiting.key] = (*self._by_key.get(waiting.key, ()), waiting.original)

    def find(self, original: int) -> Waiting | None:
        return self._all.get(original)

    def all_waiting(self) -> Iterator[Waiting]:
        return iter(list(self._all.values()))

    def named(self, key: tuple[str, str]) -> list[Waiting]:
        """Return the messages with that topic and key: a repeated send has several."""
        return [self._all[original] for original in self._by_key.get(key, ())]

    # -- delivery

    def next_due_ms(self) -> int | None:
        """Return when the next message is due that is not held; None if there is none."""
        while self._heap and not self._is_current(*self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: int, count: int, log_end: int) -> list[Waiting]:
        """Return at most `count` messages that are due, and hold them."""
        found: list[Waiting] = []
        while len(found) < count:
            due_ms = self.next_due_ms()
            if due_ms is None or not is_due(due_ms, now_ms):
                break
            _, original = heappop(self._heap)
            found.append(self._all[original])
            self._held[original] = log_end
        return found

    def hold(self, original: int, log_end: int) -> bool:
        """Keep a message from delivery while a record for it is put at or after `log_end`.

        Returns False if the message is done or held already.
        """
        if original in self._held or original not in self._all:
            return False
        self._held[original] = log_end
        return True

    def release(self, original: int) -> None:
        """Let a message wait again, because no record was put for it."""
        if self._held.pop(original, None) is not None and original in self._all:
            heappush(self._heap, (self._all[original].due_ms, original))

    def finish(self, original: int, evidence: int | None) -> None:
        """Remove a message that is done; `evidence` is the commit offset of the record that shows it."""
        waiting = self._all.pop(original, None)
        before = self._held.pop(original, None)
        if waiting is None:
            return
        self.changes += 1
        if evidence is not None:
            self._leaving.append((waiting.commit_offset, evidence))
            self._delivered.append((waiting.due_ms, evidence if before is None else min(before, evidence)))
        if waiting.key is not None:
            others = tuple(other for other in self._by_key[waiting.key] if other != original)
            if others:
                self._by_key[waiting.key] = others
            else:
                del self._by_key[waiting.key]
        if len(self._heap) > 2 * max(len(self._all), _STALE_MAX):
            waiting_now = (one for one in self._all.values() if one.original not in self._held)
            self._heap = [(one.due_ms, one.original) for one in waiting_now]
            heapify(self._heap)

    def _is_current(self, due_ms: int, original: int) -> bool:
        waiting = self._all.get(original)
        return waiting is not None and waiting.due_ms == due_ms and original not in self._held

    # -- points and the deletion of old records

    def oldest(self) -> Waiting | None:
        """Return the message whose latest copy is first in the log."""
        return next(iter(self._all.values()), None)

    def older_than(self, commit_offset: int, count: int) -> list[Waiting]:
        """Return at most `count` messages whose latest copy is before that commit offset."""
        found: list[Waiting] = []
        for waiting in self._all.values():
            if waiting.commit_offset >= commit_offset or len(found) >= count:
                break
            found.append(waiting)
        return found

    def needed_from(self, flushed: int) -> int | None:
        """Return the commit offset of the first record that is needed; None if there is none.

        The record of a message that is done is needed until its end is durable.
        """
        self._leaving = [(at, evidence) for at, evidence in self._leaving if evidence >= flushed]
        oldest = self.oldest()
        needed = [at for at, _ in self._leaving] + ([oldest.commit_offset] if oldest else [])
        return min(needed, default=None)

    def point(self, now_ms: int, log_end: int) -> Point:
        """Return which messages are done, for a point that is stored at or after `log_end`."""
        held = (self._all[original].due_ms for original in self._held if original in self._all)
        next_due_ms = self.next_due_ms()
        earliest_ms = min([now_ms + 1, *held, *([] if next_due_ms is None else [next_due_ms])])
        due_ms = earliest_ms - 1
        self._delivered = [(due, before) for due, before in self._delivered if due > due_ms]
        scan_from = min([log_end, *self._held.values(), *(before for _, before in self._delivered)])
        oldest = self.oldest()
        first = self.read_end if oldest is None else min(oldest.place, self.read_end)
        return Point(first, self.read_end, max(due_ms, 0), scan_from)

"""The transactions that the broker has to end, and those that ended and have no operation record yet.

A pure table; the log is read and written elsewhere. A transaction is identified by the offset of its original
half message in the half queue. See docs/reference/protocol/transactions.md, "Operations".
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

_REMEMBERED_MAX: Final = 10_000
"""The number of ended transactions whose end is known, so that a repeated request can be answered."""

_OPERATIONS_MAX: Final = 10_000
"""The number of operations that are remembered one by one; later ones count as one."""


class End(Enum):
    COMMIT = auto()
    ROLLBACK = auto()
    DISCARD = auto()


class HalfMessage(NamedTuple):
    """The latest copy of a half message."""

    original: int
    """The offset of the original in the half queue."""
    place: int
    """The offset of this copy in the half queue."""
    commit_offset: int
    times: int
    """How often it was checked."""
    stored_ms: int
    immunity_ms: int | None
    """The message's own immunity time; None if it has the broker's."""


class OpenTransactions:
    """The half messages that are not done, ordered by the place of their latest copies."""

    def __init__(self) -> None:
        self.read_end = 0
        """The end of the part of the half queue that the table contains."""
        self._halves: dict[int, HalfMessage] = {}
        self._ending: dict[int, int] = {}
        """Half messages whose end is being put, with a commit offset before the record of that end."""
        self._ended: dict[int, int] = {}
        """Half messages that ended and have no operation record yet, with such a commit offset."""
        self._held: set[int] = set()
        self._known_ends: OrderedDict[int, End] = OrderedDict()
        self._operations: deque[tuple[int, int]] = deque()
        """Operations, by their offset, with the highest place that each of them marks as done."""

    def __len__(self) -> int:
        return len(self._halves)

    def add(self, half: HalfMessage) -> None:
        """Add a half message or a copy that was read from the half queue."""
        known = self._halves.get(half.original)
        if known is not None and known.place >= half.place:
            return
        if known is None and half.original < min(half.place, self.read_end):
            # The copy of a transaction whose end is recorded: it has ended, too.
            self._ended[half.original] = half.commit_offset
        self._halves.pop(half.original, None)
        last = next(reversed(self._halves.values()), None)
        self._halves[half.original] = half
        if last is not None and last.place > half.place:
            # A copy was added when it was put, before half messages at lower places became readable.
            self._halves = {one.original: one for one in sorted(self._halves.values(), key=_place)}

    def add_read(self, half: HalfMessage) -> None:
        """Add a half message while the queue is read for the first time: its original may be done already."""
        self._halves.pop(half.original, None)
        self._halves[half.original] = half

    def drop(self, original: int) -> None:
        """Remove a transaction: its end is recorded, or its half message is gone."""
        self._halves.pop(original, None)
        self._ended.pop(original, None)

    def find(self, original: int) -> HalfMessage | None:
        """Return the half message if its transaction is open and not about to end."""
        is_over = original in self._ended or original in self._ending
        return None if is_over else self._halves.get(original)

    def is_ending(self, original: int) -> bool:
        """Return whether a commit of the transaction is being stored."""
        return original in self._ending

    def known_end(self, original: int) -> End | None:
        return self._known_ends.get(original)

    def open_halves(self) -> list[HalfMessage]:
        """Return the half messages of all open transactions, in the order of their places."""
        return [half for original, half in self._halves.items() if self.find(original) is not None]

    def all_halves(self) -> Iterable[HalfMessage]:
        return self._halves.values()

    # -- ends

    def begin(self, original: int, log_end: int) -> None:
        """Begin to end a transaction, whose record will be at or after that end of the log."""
        self._ending[original] = log_end

    def give_back(self, original: int) -> None:
        """Reopen a transaction, because its end could not be stored."""
        self._ending.pop(original, None)

    def end(self, original: int, end: End, log_end: int) -> None:
        """Record the end of a transaction. Its operation record must be written."""
        self._ended[original] = self._ending.pop(original, log_end)
        self._known_ends[original] = end
        if len(self._known_ends) > _REMEMBERED_MAX:
            self._known_ends.popitem(last=False)

    def hold(self, original: int) -> None:
        """Delay the operation record of a transaction while a copy of it is being put."""
        self._held.add(original)

    def release(self, original: int) -> None:
        self._held.discard(original)

    @property
    def awaits_operation(self) -> bool:
        return any(original not in self._held for original in self._ended)

    @property
    def awaiting_count(self) -> int:
        """The number of ends without an operation record."""
        return len(self._ended)

    def without_operation(self, bytes_max: int) -> list[HalfMessage]:
        """Return ended transactions for one operation record of at most that size, oldest end first."""
        found, size = [], 0
        for original in self._ended:
            half = self._halves.get(original)
            if half is None or original in self._held:
                continue
            size += len(str(original)) + len(str(half.place)) + 2
            if size > bytes_max:
                break
            found.append(half)
        return found

    def scan_from(self, recorded: Sequence[HalfMessage], log_end: int) -> int:
        """Return the commit offset before all ends that these operations and earlier ones do not show."""
        shown = {half.original for half in recorded}
        others = [at for original, at in self._ended.items() if original not in shown]
        return min([*self._ending.values(), *others, log_end])

    def operation_stored(self, offset: int, recorded: Iterable[HalfMessage]) -> None:
        """Record that an operation marks these transactions as done."""
        places = []
        for half in recorded:
            places.append(half.place)
            latest = self._halves.get(half.original)
            if latest is not None and latest.place == half.place:
                self.drop(half.original)
        self.note_operation(offset, max(places, default=-1))

    def note_operation(self, offset: int, place_max: int) -> None:
        """Remember an operation, which is needed until the progress is beyond its places."""
        if len(self._operations) >= _OPERATIONS_MAX:
            first, highest = self._operations.pop()
            offset, place_max = first, max(highest, place_max)
        self._operations.append((offset, place_max))

    # -- progress

    def progress(self, operations_end: int) -> tuple[int, int]:
        """Return the offsets in the half queue and in the operation queue before which nothing is needed."""
        half = min(self.read_end, next(map(_place, self._halves.values()), self.read_end))
        while self._operations and self._operations[0][1] < half:
            self._operations.popleft()
        return half, self._operations[0][0] if self._operations else operations_end


def _place(half: HalfMessage) -> int:
    return half.place


def offsets_of(halves: Iterable[HalfMessage]) -> list[int]:
    """Return the offsets of an operation: of each transaction the original and the latest copy."""
    return [place for half in halves for place in dict.fromkeys((half.original, half.place))]

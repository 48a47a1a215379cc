"""Examines the lines of all operations together: each line belongs to one operation, and a process has one
operation at a time.

Lines are examined in windows, from the last line to the first, because operations are in the order of
their ends. In memory are one window, a block of each table, and the operations that began before the window:
at most one for each process.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from mqproof.conformance.history import lines
from mqproof.conformance.history.columns.encoding import Array
from mqproof.conformance.history.columns.tables import OPERATIONS, Columns, Table, expect_spans
from mqproof.conformance.history.lines import HistoryError, Line, Type

_WINDOW: Final = 1 << 22
_BEGIN, _END, _ALONE = 1, 2, 3


def last_time(columns: Columns, left: list[Line]) -> int:
    """Examine the lines; `left` are those that are not in columns. Return the time of the last line.

    Raises:
        HistoryError: a line is missing, or belongs to two operations; a process has several operations at a
            time; or time goes back.
    """
    check = _Check(columns, left)
    for low in reversed(range(0, columns.lines, _WINDOW)):
        check.window(low)
    return check.last_time


class _Spans(NamedTuple):
    """Operations in the order of their ends."""

    end: Array
    start: Array
    ended: Array
    began: Array
    process: Array


class _FromLast:
    """Operations that are taken from the last to the first."""

    def __init__(self, parts: Iterator[_Spans]) -> None:
        self._parts = parts
        self._rows: _Spans | None = None

    def ended_since(self, low: int) -> Iterator[_Spans]:
        """Yield the operations that ended since a line and were not taken before."""
        while rows := self._rows or next(self._parts, None):
            cut = int(np.searchsorted(rows.end, low))
            yield _Spans(*(column[cut:] for column in rows))
            self._rows = _Spans(*(column[:cut] for column in rows)) if cut else None
            if cut:
                return


class _Check:
    """What is known of the lines that follow those which are left."""

    def __init__(self, columns: Columns, left: list[Line]) -> None:
        self.folder, self.high = columns.folder, columns.lines
        rest = _Rest(columns, left)
        self.names = rest.names
        queues = map(columns.tables, range(len(columns.queues)))
        tables = (getattr(queue, name) for queue in queues for name in OPERATIONS)
        self.tables = [_FromLast(_blocks(columns, table)) for table in tables]
        self.tables.append(_FromLast(iter([rest.spans()])))
        self.single = {_ALONE: [_lines(rest.alone)], _BEGIN: [_lines(rest.unanswered.values())]}
        """By role, index and time of lines before the window: those that no operation of a table ends."""
        self.following = np.full(len(self.names), columns.lines)
        """The line at which the next operation of each process begins."""
        for process, (index, _) in rest.unanswered.items():
            self.following[process] = index
        self.first_time: int | None = None
        self.last_time = 0

    def window(self, low: int) -> None:
        """Examine the lines from this one to those that were examined."""
        size, count = self.high - low, 0
        time, begin, role = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.uint8)
        process = np.zeros(size, np.min_scalar_type(len(self.names)))  # numpy sorts 16 bits in linear time
        for table in self.tables:
            for rows in table.ended_since(low):
                place = rows.end - low
                time[place], role[place] = rows.ended, _END
                begin[place], process[place] = rows.start, rows.process
                self.single[_BEGIN].append((rows.start, rows.began))
                count += len(place)
        for what, found in self.single.items():
            early = []
            for index, at in found:
                is_early = index < low
                if is_early.any():
                    early.append((index[is_early], at[is_early]))
                    index, at = index[~is_early], at[~is_early]
                time[index - low], role[index - low] = at, what
                count += len(index)
            found[:] = early
        if sum(len(index) for index, _ in self.single[_BEGIN]) > len(self.names):
            raise HistoryError(
                f"{self.folder}: a process has several operations at a time, before index {low}"
            )
        if count != size or not role.all():
            raise HistoryError(
                f"{self.folder}: the operations have {count} lines and {np.count_nonzero(role)} different"
                f" indexes from {low} to {self.high - 1}, expected {size}"
            )
        self._expect_times(time)
        ends = np.flatnonzero(role == _END)
        self._expect_apart(ends + low, begin[ends], process[ends])
        self.high = low

    def _expect_times(self, time: Array) -> None:
        if self.first_time is None:
            self.last_time = self.first_time = int(time[-1])
        if (time[1:] < time[:-1]).any() or not 0 <= time[0] <= time[-1] <= self.first_time:
            raise HistoryError(f"{self.folder}: time goes back, before index {self.high}")
        self.first_time = int(time[0])

    def _expect_apart(self, end: Array, start: Array, process: Array) -> None:
        """Raise HistoryError unless each operation ends before the next one of its process begins."""
        order = np.argsort(process, kind="stable")
        end, start, process = end[order], start[order], process[order]
        is_last = np.append(process[1:] != process[:-1], True)[: len(process)]
        following = np.append(start[1:], 0)[: len(process)]
        following[is_last] = self.following[process[is_last]]
        if (end >= following).any():
            name = self.names[process[(end >= following).argmax()]]
            raise HistoryError(f"{self.folder}: {name} has several operations at a time")
        is_first = np.append(True, is_last[:-1])[: len(process)]
        self.following[process[is_first]] = start[is_first]


def _blocks(columns: Columns, table: Table) -> Iterator[_Spans]:
    """Yield the blocks of a table, from the last one to the first."""
    lines = columns.lines
    for block in table.blocks_from_last():
        expect_spans(block, lines, len(columns.names))
        yield _Spans(block.end, block.start, block.ended, block.began, block.process)
        lines = int(block.end[0])


class _Rest:
    """The lines that are not in columns; their processes may have other names than those of the header."""

    def __init__(self, columns: Columns, left: list[Line]) -> None:
        self.file = columns.rest
        self.alone: list[tuple[int, int]] = []
        """Index and time of setups and faults."""
        self.unanswered: dict[int, tuple[int, int]] = {}
        """By process, index and time of the last line of an operation that did not end."""
        self._spans: list[tuple[int, ...]] = []
        numbers = {name: number for number, name in enumerate(columns.names)}
        last = -1
        for line in left:
            if not last < line.index < columns.lines:
                expected = f"{last + 1} to {columns.lines - 1}"
                raise HistoryError(f"{columns.rest}: index {line.index}, expected {expected}")
            last = line.index
            self._add(line, numbers.setdefault(line.process, len(numbers)))
        self.names: list[str | int] = list(numbers)

    def _add(self, line: Line, process: int) -> None:
        place = line.index, line.time
        if isinstance(line, lines.Setup | lines.Fault):
            self.alone.append(place)
        elif (line.type is Type.INVOKE) == (process in self.unanswered):
            raise HistoryError(f"{self.file}: {line.process} has several operations at a time")
        elif line.type is Type.INVOKE:
            self.unanswered[process] = place
        else:
            start, began = self.unanswered.pop(process)
            self._spans.append((line.index, start, line.time, began, process))

    def spans(self) -> _Spans:
        return _Spans(*np.array(self._spans, np.int64).reshape(-1, 5).T)


def _lines(places: Iterable[tuple[int, int]]) -> tuple[Array, Array]:
    index, time = np.array(list(places), np.int64).reshape(-1, 2).T
    return index, time

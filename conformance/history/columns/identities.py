"""Finds the queues whose ids or offset ids occur elsewhere, too, by numbers of 64 bits.

The processes sort the numbers of each queue, in memory that they share, and then compare one range of numbers
of all queues after the other.
"""

import mmap
from typing import Final, NamedTuple

import numpy as np

from mqproof.conformance.history.columns.encoding import Array
from mqproof.conformance.history.columns.tables import Columns
from mqproof.conformance.history.parallel import mapped

_MIXED: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""The shifts and factors of SplitMix64."""
_RANGE_NUMBERS: Final = 1 << 22


class _Work(NamedTuple):
    """What all processes share."""

    columns: Columns
    table: str
    column: str
    expected: list[int]
    """For each queue, how many different texts it has if none occurs twice; -1 if it may have the same."""
    others: Array
    numbers: Array
    """The memory for the numbers of all queues."""
    starts: list[int]
    """The place of the first number of each queue."""


_work: _Work | None = None


def repeated(
    columns: Columns, table: str, column: str, expected: list[int], others: Array, processes: int
) -> set[int]:
    """Return the queues with a text that occurs twice, in these or in `others`, the texts of other lines."""
    global _work  # a fork inherits it; an argument would be sent
    rows = [getattr(columns.tables(number), table).rows for number in range(len(columns.queues))]
    starts = np.cumsum([0, *rows]).tolist()
    numbers = np.frombuffer(mmap.mmap(-1, 8 * max(1, starts[-1])), np.uint64)
    _work = _Work(columns, table, column, expected, np.unique(fingerprints(others)), numbers, starts)
    try:
        with mapped(processes) as map_:
            sizes = list(map_(_sort, range(len(rows))))
            runs = [numbers[start : start + size] for start, size in zip(starts, sizes, strict=False)]
            ranges = 1 + starts[-1] // _RANGE_NUMBERS
            tasks = [(sizes, _bound(each, ranges), _bound(each + 1, ranges)) for each in range(ranges)]
            twice = np.unique(np.concatenate(list(map_(_compare, tasks))))
    finally:
        _work = None
    found = {number for number, size in enumerate(sizes) if expected[number] not in (-1, size)}
    return found | {number for number, run in enumerate(runs) if len(twice) and np.isin(run, twice).any()}


def _bound(number: int, ranges: int) -> int:
    return (number << 64) // ranges


def _sort(number: int) -> int:
    """Write the sorted numbers of a queue to its place; return how many there are."""
    assert _work is not None, "the process was not forked by `repeated`"
    found = fingerprints(getattr(getattr(_work.columns.tables(number), _work.table), _work.column))
    found.sort()
    if len(found) != _work.expected[number]:
        found = found[np.append(True, found[1:] != found[:-1])[: len(found)]]
    start = _work.starts[number]
    _work.numbers[start : start + len(found)] = found
    return len(found)


def _compare(task: tuple[list[int], int, int]) -> Array:
    """Return the numbers of a range that occur twice."""
    assert _work is not None, "the process was not forked by `repeated`"
    sizes, low, high = task
    runs = [_work.numbers[start : start + size] for start, size in zip(_work.starts, sizes, strict=False)]
    every = np.concatenate([_between(run, low, high) for run in (_work.others, *runs)])
    every.sort(kind="stable")  # merges the sorted numbers of the queues
    found: Array = every[1:][every[1:] == every[:-1]]
    return found


def _between(run: Array, low: int, high: int) -> Array:
    last = np.searchsorted(run, np.uint64(high)) if high < 1 << 64 else len(run)
    return run[np.searchsorted(run, np.uint64(low)) : last]


def fingerprints(texts: Array) -> Array:
    """Return a number for each text: equal texts have equal numbers, whatever the width of the column."""
    width = -(-max(1, texts.dtype.itemsize) // 8) * 8
    words = (
        np.ascontiguousarray(texts.astype(f"S{width}", copy=False))
        .view(np.uint64)
        .reshape(len(texts), width // 8)
    )
    found = np.zeros(len(texts), np.uint64)
    for place in reversed(range(width // 8)):  # 0 stays 0, so that words of NUL at the end do not count
        found ^= words[:, place]
        for shift, factor in _MIXED:
            found ^= found >> np.uint64(shift)
            found *= np.uint64(factor)
        found ^= found >> np.uint64(31)
    return found

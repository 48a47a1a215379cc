"""Threads that take the steps of a level together. The compiled loops do not hold Python's global lock.

Each thread has a part of the rows, and buffers of its own, so its results do not depend on the other threads.
A thread stops when it needs results of the model's functions that are not known yet: Python evaluates them
while no loop runs.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, Self, TypeVar

import numpy as np

from mqproof.reference.explorer.spilling.loops import (
    Edges,
    Fingerprints,
    Found,
    Longs,
    Rows,
    Tree,
    expand,
    judge,
)
from mqproof.reference.explorer.spilling.shelf import Array

RECORD: Final = np.dtype([("fingerprint", np.uint64), ("source", np.uint32), ("edge", np.uint32)])
_ALL: Final = np.empty((0, 2), np.int64)
"""No pairs: evaluate every function in every row."""
_RECENT_MIN: Final = 1 << 12

_ItemT = TypeVar("_ItemT")
_ResultT = TypeVar("_ResultT")


class Taker:
    """Takes steps in one thread."""

    def __init__(self, found_max: int, recent_max: int, actions: int) -> None:
        self.found = _buffers(found_max, actions)
        self.runs: list[Array] = []
        """The successors that were found: arrays of records, each sorted by fingerprint."""
        self.recent: Fingerprints = np.zeros(min(_RECENT_MIN, recent_max), np.uint64)
        """Fingerprints that were met recently, each at the place that its lowest bits name."""
        self._recent_max = recent_max
        self._todo: list[tuple[Longs, int]] = []
        """Pairs of a row and a function, and the first of them that is to be evaluated."""

    def begin(self, rows: Rows, prints: Fingerprints, offset: int) -> Self:
        """Set the rows to look at, their fingerprints, and the number of the first in its level."""
        self.rows, self.prints, self.offset = rows, prints, offset
        self._todo = [(_ALL, 0)]
        self._judged = 0
        return self

    def judge(self, judges: Longs, tree: Tree) -> bool:
        """Evaluate predicates in the rows until some results are missing. Returns whether rows remain."""
        done = judge(self.rows, judges, self._judged, tree, self.found)
        if not self.is_missing:
            self._judged = done
        return self._judged < len(self.rows)

    def run(self, roots: Longs, tree: Tree, edges: Edges, numbers: Fingerprints) -> bool:
        """Take steps until all are taken, or results are missing. Returns whether steps remain."""
        while self._todo and not self.is_missing:
            pairs, done = self._todo.pop()
            total = len(pairs) or len(self.rows) * len(roots)
            done = expand(
                self.rows,
                self.prints,
                self.offset,
                roots,
                pairs,
                done,
                tree,
                edges,
                numbers,
                self.recent,
                self.found,
            )
            if done < total:
                self._todo.append((pairs, done))
                self.flush()
        return bool(self._todo) or self.is_missing

    @property
    def is_missing(self) -> bool:
        """Whether results must be evaluated before this can continue."""
        return bool(self.found.counts[1])

    def again(self, pairs: Longs) -> None:
        """Add pairs of a row and a function, whose result is known now."""
        self._todo.append((pairs, 0))

    def flush(self) -> None:
        """Move the found successors to a sorted run."""
        count = self.found.counts[0]
        self.found.counts[0] = 0
        if count == 0:
            return
        order = np.argsort(self.found.fingerprints[:count])
        records = np.empty(count, RECORD)
        records["fingerprint"] = self.found.fingerprints[order]
        records["source"] = self.found.sources[order]
        records["edge"] = self.found.edges[order]
        self.runs.append(records)

    def enlarge(self, states: int) -> None:
        """Enlarge the set of recent fingerprints with the number of states."""
        size = len(self.recent)
        while size < 4 * states and 2 * size <= self._recent_max:
            size *= 2
        if size > len(self.recent):
            known = self.recent[self.recent != 0]
            self.recent = np.zeros(size, np.uint64)
            self.recent[known & np.uint64(size - 1)] = known


def together(
    pool: ThreadPoolExecutor, count: int, function: Callable[[_ItemT], _ResultT], items: Iterable[_ItemT]
) -> Iterator[_ResultT]:
    """Yield the results of a function, in the order of the items, of which `count` are evaluated at once."""
    remaining = iter(items)
    while some := list(islice(remaining, count)):
        yield from pool.map(function, some)


def _buffers(size: int, actions: int) -> Found:
    return Found(
        np.empty(size, np.uint64),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.uint64),
        np.array([0, 0, -1, -1], np.int64),
        np.zeros(actions, np.int64),
    )

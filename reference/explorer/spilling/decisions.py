"""Remembers the results of a model's functions by the field values that they read.

A step of a model reads few fields, and few combinations of their values exist. Each function is evaluated
once for each combination, and `loops.py` looks up all other results. A result is a tuple of items: numbers of
edges, or ~root of another function to evaluate in the same state.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mqproof.reference.explorer.search import Label
from mqproof.reference.explorer.spilling.loops import UNKNOWN, Edges, Found, Longs, Rows, Tree, learn, rehash
from mqproof.reference.explorer.spilling.numbering import Numbering
from mqproof.reference.explorer.watched import UnsteadyError, Watch, watched

Items = tuple[int, ...]
Function = Callable[[Any], Items]
"""Maps a watched state to the items of the result."""

_FEW: Final = 1 << 10
"""The size of an array that can grow, at first."""
_FULL: Final = 0.6
"""The share of a hash table that is used before it grows."""


class EdgeList:
    """The steps that were found: their labels, what they write, and the step invariants that they violate."""

    def __init__(self, numbering: Numbering, actions: tuple[str, ...]) -> None:
        self.labels: list[Label] = []
        self.broken: list[str | None] = []
        self._numbering = numbering
        self._actions = {name: number for number, name in enumerate(actions)}
        types: tuple[Any, ...] = (np.int32, np.bool_, np.int32, np.int32, np.int32, np.uint32)
        self.arrays = Edges(*(np.zeros(_FEW, each) for each in types))
        """The edges up to the last `sync`."""
        self._synced = (0, 0)
        """The number of edges and writes in the arrays."""
        self._counts: list[int] = []
        """By new edge: the number of its writes."""
        self._writes: list[tuple[int, int]] = []
        """Of new edges: column and value."""

    def add(self, label: Label, changes: dict[int, Any], broken: str | None) -> int:
        """Return the number of a new edge that changes these columns."""
        self.labels.append(label)
        self.broken.append(broken)
        self._counts.append(len(changes))
        self._writes += [(column, self._numbering.number(column, new)) for column, new in changes.items()]
        return len(self.labels) - 1

    def sync(self) -> None:
        """Move the new edges to the arrays."""
        edge, write = self._synced
        edges, writes = self._synced = (len(self.labels), write + len(self._writes))
        old, new = self.arrays, slice(edge, edges)
        sizes = (edges, edges, edges, edges, writes, writes)
        self.arrays = arrays = Edges(*map(_with_room, old, sizes))
        arrays.action[new] = [self._actions[name] for name, _ in self.labels[edge:]]
        arrays.is_broken[new] = [broken is not None for broken in self.broken[edge:]]
        arrays.last[new] = write + np.cumsum(self._counts, dtype=np.int32)
        arrays.first[new] = arrays.last[new] - self._counts
        arrays.columns[write:writes] = [column for column, _ in self._writes]
        arrays.values[write:writes] = [value for _, value in self._writes]
        self._counts, self._writes = [], []


class Decisions:
    """The decision trees of all functions."""

    def __init__(self, numbering: Numbering, edges: EdgeList) -> None:
        self._numbering = numbering
        self._edges = edges
        self._functions: dict[int, Function] = {}
        self._nodes = 1  # node 0 is never used, so that no key is 0
        self._keys = 0
        self._items = 0
        types: tuple[Any, ...] = (np.int32, np.int32, np.int32, np.uint64, np.int32, np.int64)
        self.tree = Tree(*(np.zeros(_FEW, each) for each in types))

    def add(self, function: Function) -> int:
        """Return the root of the tree of a function whose results are not known yet."""
        root = self._nodes
        self._make_room(1, 0)
        self.tree.column[root] = UNKNOWN
        self._functions[root] = function
        self._nodes += 1
        return root

    def evaluate(self, rows: Rows, found: Found) -> Longs:
        """Evaluate the functions that a loop recorded as missing, once for each key.

        Returns the recorded pairs of a row and a root, which the loop must evaluate again.
        """
        count = found.counts[1]
        found.counts[1] = 0
        _, chosen = np.unique(found.missing_keys[:count], return_index=True)
        paths: list[tuple[int, Watch, Items]] = []
        columns, values = self._numbering.columns, self._numbering.values
        chosen_rows = rows[found.missing_rows[chosen]].tolist()
        for row, root in zip(chosen_rows, found.missing_roots[chosen].tolist(), strict=True):
            watch = Watch(row, values)
            paths.append((root, watch, self._functions[root](watched(columns, watch))))
        self._learn(paths)
        self._edges.sync()
        return np.stack((found.missing_rows[:count], found.missing_roots[:count]), axis=1)

    def bytes(self) -> int:
        """Return the size of the trees."""
        return sum(array.nbytes for array in self.tree)

    def _learn(self, paths: list[tuple[int, Watch, Items]]) -> None:
        ends = self._items + np.cumsum([len(items) for _, _, items in paths], dtype=np.int32)
        begins = np.cumsum([0, *(len(watch.read) for _, watch, _ in paths)], dtype=np.int64)
        read = [step for _, watch, _ in paths for step in watch.read.items()]
        self._make_room(len(read), int(ends[-1]) - self._items)
        self.tree.items[self._items : ends[-1]] = [item for _, _, items in paths for item in items]
        nodes = learn(
            self.tree,
            self._nodes,
            np.array([root for root, _, _ in paths], np.int64),
            begins,
            np.array([column for column, _ in read], np.int32),
            np.array([number for _, number in read], np.uint32),
            np.array([self._items, *ends[:-1]], np.int32),
            ends,
        )
        if nodes < 0:
            raise UnsteadyError
        self._keys += nodes - self._nodes
        self._nodes, self._items = nodes, int(ends[-1])

    def _make_room(self, steps: int, items: int) -> None:
        tree = self.tree
        keys, children = tree.keys, tree.children
        size = len(keys)
        while self._keys + steps > size * _FULL:
            size *= 2
        if size > len(keys):
            keys, children = np.zeros(size, np.uint64), np.zeros(size, np.int32)
            rehash(tree.keys, tree.children, keys, children)
        column, first, last = (_with_room(array, self._nodes + steps + 1) for array in tree[:3])
        self.tree = Tree(column, first, last, keys, children, _with_room(tree.items, self._items + items))


def _with_room(array: Any, size: int) -> Any:
    """Return an array of at least this size with the same beginning; it doubles if it must grow."""
    if size <= len(array):
        return array
    larger = np.zeros(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger

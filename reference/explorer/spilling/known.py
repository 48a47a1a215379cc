"""The fingerprints of all known states, as a few sorted runs, each at most half as long as the one before."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from mqproof.reference.explorer.spilling.loops import Fingerprints, Flags, mark_known
from mqproof.reference.explorer.spilling.shelf import Array, Shelf, Stored

_FENCE: Final = 256
"""Every so many items, a run keeps a fingerprint in memory, to find a range without reading the run."""


class Run:
    """Items sorted by their fingerprints: fingerprints alone, or records with a field `fingerprint`."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self._fences: list[Fingerprints] = [np.empty(0, np.uint64)]

    def append(self, items: Array) -> None:
        """Add items that are greater than all before."""
        self._fences.append(_prints(items)[-len(self.stored) % _FENCE :: _FENCE].copy())
        self.stored.append(items)

    def between(self, low: int, high: int) -> Array:
        """Return the items with fingerprints in [low, high)."""
        fences = self._fences = [np.concatenate(self._fences)]
        lowest, highest = np.uint64(low), np.uint64(high - 1)
        first, last = np.searchsorted(fences[0], lowest), np.searchsorted(fences[0], highest, "right")
        items = self.stored.read(max(int(first) - 1, 0) * _FENCE, int(last) * _FENCE)
        prints = _prints(items)
        return items[np.searchsorted(prints, lowest) : np.searchsorted(prints, highest, "right")]


def _prints(items: Array) -> Fingerprints:
    return items["fingerprint"] if items.dtype.names else items


def ranges(items: int, items_max: int) -> Iterator[tuple[int, int]]:
    """Yield ranges [low, high) of fingerprints, each with about `items_max` of so many items.

    Fingerprints are random numbers, so equally wide ranges have about equally many.
    """
    count = items // max(items_max, 1) + 1
    bounds = [(1 << 64) * number // count for number in range(count + 1)]
    return pairwise(bounds)


class Known:
    """A set of fingerprints."""

    def __init__(self, shelf: Shelf, items_max: int) -> None:
        self._shelf = shelf
        self._items_max = items_max
        """The number of fingerprints that may be merged in memory."""
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return sum(len(run.stored) for run in self._runs)

    def are_new(self, prints: Fingerprints, low: int, high: int) -> Flags:
        """Return a flag for each of the sorted fingerprints in [low, high): whether the set lacks it."""
        flags = np.ones(len(prints), np.bool_)
        for run in self._runs:
            mark_known(prints, run.between(low, high), flags)
        return flags

    def add(self, run: Run) -> None:
        """Add a run that has no known fingerprint, and merge runs until each is half as long as the last."""
        self._runs.append(run)
        while len(self._runs) > 1 and 2 * len(self._runs[-1].stored) > len(self._runs[-2].stored):
            self._merge(self._runs.pop(), self._runs.pop())

    def _merge(self, one: Run, other: Run) -> None:
        merged = Run(self._shelf.new(np.uint64))
        for low, high in ranges(len(one.stored) + len(other.stored), self._items_max):
            both = np.concatenate((one.between(low, high), other.between(low, high)))
            both.sort()
            merged.append(both)
        for run in (one, other):
            run.stored.remove()
        self._runs.append(merged)

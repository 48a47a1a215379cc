"""The set of known fingerprints agrees with Python's set, in memory and in files."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mqproof.reference.explorer.spilling.known import Known, Run, ranges
from mqproof.reference.explorer.spilling.shelf import Shelf


@pytest.mark.deep("compiles the loop; the explorer's tests use it uncompiled in every run")
@pytest.mark.parametrize("memory_bytes", [0, 3000, 1 << 20])
def test_the_set_has_exactly_what_was_added(memory_bytes: int, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    shelf = Shelf(tmp_path, memory_bytes)
    known, expected = Known(shelf, 100), set[int]()
    for size in (1, 40, 3, 700, 2000, 5, 0, 1500):
        asked = np.unique(random.integers(0, 2**64, size, np.uint64))
        asked = np.union1d(asked, random.choice(np.array([*expected, 0, 2**64 - 1], np.uint64), 5))
        run = Run(shelf.new(np.uint64))
        for low, high in ranges(len(asked), 64):
            inside = asked[(asked >= low) & (asked <= high - 1)]
            flags = known.are_new(inside, low, high)
            assert flags.tolist() == [int(each) not in expected for each in inside]
            run.append(inside[flags])
        known.add(run)
        expected |= set(asked.tolist())
        assert len(known) == len(expected)
    assert bool(shelf.disk_bytes) == (memory_bytes < 1 << 20)


def test_ranges_cover_every_fingerprint_once() -> None:
    bounds = list(ranges(1000, 300))
    assert (bounds[0][0], bounds[-1][1]) == (0, 2**64)
    assert all(before[1] == after[0] for before, after in pairwise(bounds))
    assert list(ranges(0, 300)) == [(0, 2**64)]

"""Tests the target that damages one block or file of a store at a time."""

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.store import fault_judge
from mqproof.fuzz.store.damaged_files import kind_of
from mqproof.fuzz.store.fault_judge import FaultVerdict
from mqproof.fuzz.store.single_fault import FAULTS, MOMENTS, Fault, Moment, Point, inject, written
from mqproof.fuzz.targets.store_rot import StoreRot
from mqproof.spec.catalogue import catalogue


def test_the_first_seeds_break_no_invariant_and_test_every_one() -> None:
    target = targets.load("store-rot")
    for _, seed in zip(range(150), target.seeds(), strict=False):
        assert judge(target, seed) is None, seed.hex()
        assert len(seed) <= target.input_bytes_max
    assert set(+target.checked) == set(target.invariants)


@pytest.mark.deep("all seeds; the first 150 are judged in every run")
def test_no_seed_breaks_an_invariant() -> None:
    target = targets.load("store-rot")
    for seed in target.seeds():
        assert judge(target, seed) is None, seed.hex()


def test_a_point_is_the_same_after_its_input() -> None:
    for moment in MOMENTS:
        for fault in FAULTS:
            point = Point(moment, 3, 200, fault, 77)
            assert Point.decode(point.encode()) == point
    assert Point.decode(b"") == Point(Moment.RUNNING, 0, 0, Fault.BIT_FLIP, 0)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_changes_only_files_of_one_folder(fault: Fault) -> None:
    store = written(Moment.CLOSED)
    disk = store.simulated.disk
    before = {path: store.simulated.read(path.removeprefix("store/")) for path in store.simulated.files()}
    changed: set[str] = set()
    for file in range(len(before)):
        fresh = written(Moment.CLOSED)
        path = inject(Point(Moment.CLOSED, file, 1, fault, 5), fresh.files)
        after = {each: fresh.simulated.read(each.removeprefix("store/")) for each in before}
        differing = {each for each in before if after[each] != before[each]}
        assert {each.rpartition("/")[0] for each in differing} <= {path.rpartition("/")[0]}
        changed |= {kind_of(each) for each in differing}
    assert {"commit log", "consume queue", "key index"} <= changed, fault
    assert disk is not fresh.simulated.disk


def test_the_files_of_a_store_are_of_all_types() -> None:
    kinds = {kind_of(path) for path in written(Moment.RUNNING).simulated.files()}
    assert kinds == {"abort", "checkpoint", "commit log", "config", "consume queue", "key index"}


def test_each_invariant_of_the_catalogue_has_its_function() -> None:
    known = {invariant.name: invariant for invariant in catalogue().values()}
    assert set(StoreRot.invariants) <= set(known)
    for name in StoreRot.invariants:
        assert callable(getattr(fault_judge, known[name].snake_name))


def test_a_store_without_a_fault_is_harmless() -> None:
    """An empty file has no block, so a flipped bit changes nothing."""
    store = written(Moment.RUNNING)
    abort = store.simulated.files().index("store/abort")
    point = Point(Moment.RUNNING, abort, 0, Fault.BIT_FLIP, 0)
    assert fault_judge.judge(point) == ("store/abort", FaultVerdict.HARMLESS)

"""Tests the target that damages a block or a file of a master, a slave or a member of a group."""

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.cluster import damaged_cluster
from mqproof.fuzz.cluster.damaged_cluster import KINDS, PAIR, ClusterPoint
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.store.fault_judge import FaultVerdict
from mqproof.fuzz.store.single_fault import Fault, Moment, Point
from mqproof.fuzz.target import Finding


def test_the_chosen_seeds_break_no_invariant_and_test_every_one() -> None:
    target = targets.load("cluster-rot")
    for _, seed in zip(range(6), target.seeds(), strict=False):
        assert judge(target, seed) is None, seed.hex()
        assert len(seed) <= target.input_bytes_max
    assert set(+target.checked) == set(target.invariants)


@pytest.mark.deep("20 CPU seconds; the first seeds are judged in every run")
def test_no_seed_breaks_an_invariant() -> None:
    target = targets.load("cluster-rot")
    for seed in target.seeds():
        assert judge(target, seed) is None, seed.hex()


def test_a_point_is_the_same_after_its_input() -> None:
    for kind in KINDS:
        point = ClusterPoint(kind, 5, Point(Moment.KILLED, 7, 1, Fault.GARBAGE, 12345))
        assert ClusterPoint.decode(point.encode()) == point


@pytest.mark.parametrize(
    ("data", "file", "verdict"),
    [
        ("00000008010100003039", "commitlog/00000000000000001024", FaultVerdict.REPAIRED),
        ("00010208010100003039", "commitlog/00000000000000001024", FaultVerdict.REPAIRED),
        ("0100000e010100003039", "dledger-n0/data/00000000000000001024", FaultVerdict.REPAIRED),
        ("0101001e010100003039", "dledger-n1/data/00000000000000003072", FaultVerdict.REPAIRED),
        ("0101021e010100003039", "dledger-n1/data/00000000000000003072", FaultVerdict.REFUSED),
    ],
    ids=["master", "slave at its start", "leader", "follower", "follower at its start"],
)
def test_a_record_in_the_middle_of_the_log_is_repaired_from_a_peer(
    data: str, file: str, verdict: FaultVerdict
) -> None:
    """A record is zero. `damage_settled` requires that each broker delivers all messages in the end.

    A member does not start with damage in the last three segments of its ledger that were durable.
    """
    path, seen = damaged_cluster.judge(ClusterPoint.decode(bytes.fromhex(data)))
    assert (path, seen) == (f"/store/{file}", verdict)


def test_a_message_that_is_not_repaired_is_a_finding() -> None:
    (lost,) = damaged_cluster._written(PAIR, Moment.RUNNING).truth[:1]
    with pytest.raises(Finding, match=r"master does not repair what its peers have: \('A', 0\) 0"):
        damaged_cluster.damage_settled([lost], "master")

"""Tests that every injected defect is found by the invariant that it breaks, and is removed afterwards."""

import importlib

import pytest

from mqproof.conformance.mutants.replacement import injected
from mqproof.fuzz import mutants, simulation, targets
from mqproof.fuzz.defects.defect import Mutant
from mqproof.fuzz.mutants import MUTANTS
from mqproof.fuzz.target import ENDS_IN_TIME, ONLY_DOCUMENTED_ERRORS
from mqproof.impl.store.files import record
from mqproof.report.model import Verdict

AT_A_SEED = {name for name in MUTANTS if MUTANTS[name] is simulation.MUTANTS.get(name)}
"""Mutants that test_simulation.py kills at their recorded seeds in every run."""
DEEP = pytest.mark.deep("a campaign needs up to 14 CPU seconds to find such a seed again")
DEEP_CLUSTER = pytest.mark.deep("1 CPU second; test_cluster_rot.py judges the same points in every run")
SLOW = {
    "CheckpointAhead",
    "FailedFsyncCounts",
    "FailedRestSkipped",
    "LostQueueUnnoticed",
    "MissingSegmentAccepted",
    "PositionIgnored",
}
DEEP_SLOW = pytest.mark.deep("1 to 9 CPU seconds; the same invariant detects another mutant in every run")


def _marks(name: str) -> pytest.MarkDecorator | tuple[()]:
    if MUTANTS[name].target == "cluster-rot" and name != "LedgerEndNotReported":
        return DEEP_CLUSTER
    if name in SLOW:
        return DEEP_SLOW
    return DEEP if name in AT_A_SEED else ()


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in MUTANTS])
def test_the_mutant_is_caught(name: str) -> None:
    result = mutants.judge(MUTANTS[name])
    assert result.verdict is Verdict.HELD, f"{name} survived {result.counts}"
    assert result.layer == "fuzz"


def test_only_the_chosen_mutants_are_run() -> None:
    assert mutants.names() == tuple(MUTANTS)
    (result,) = mutants.run(["EmptyFrameRefused"])
    assert (result.name, result.verdict) == ("EmptyFrameRefused", Verdict.HELD)
    assert result.replay == "mqproof mutants --layer fuzz --only EmptyFrameRefused"
    assert result.counts["executions"] > 0


UNDER_ANOTHER_NAME = {
    ("cluster", "RecoveredPrefix"): "store-recovery tears records where it hurts; a cluster seldom does",
    ("cluster", "NoAckedLost"): "what it would say of a crash FLUSH-1 and FLUSH-2 say first",
}


def test_every_invariant_of_a_target_has_a_mutant() -> None:
    known = (*MUTANTS.values(), *simulation.MUTANTS.values())
    caught = {(mutant.target, mutant.breaks) for mutant in known} | UNDER_ANOTHER_NAME.keys()
    for name in targets.NAMES:
        if name == "canary":
            continue  # it is a mutant itself
        for invariant in targets.load(name).invariants:
            assert (name, invariant) in caught
    assert ("remoting-decode", ONLY_DOCUMENTED_ERRORS) in caught


def test_mutants_name_existing_targets_and_invariants() -> None:
    for mutant in MUTANTS.values():
        known = {*targets.load(mutant.target).invariants, ONLY_DOCUMENTED_ERRORS, ENDS_IN_TIME}
        assert mutant.breaks in known
        assert importlib.import_module(mutant.where.partition(":")[0])


def test_an_injected_defect_is_removed_even_after_an_error() -> None:
    right = record.body_is_whole

    def fail() -> None:
        assert record.body_is_whole is not right
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"), injected(MUTANTS["ChecksumIgnored"]):
        fail()
    assert record.body_is_whole is right


def test_a_mutant_without_a_defect_survives() -> None:
    harmless = Mutant(
        name="Harmless",
        defect="nothing is wrong",
        target="store-recovery",
        breaks="RecoveredPrefix",
        where="mqproof.impl.store.files.record:body_is_whole",
        wrong=record.body_is_whole,
    )
    result = mutants.judge(harmless, executions_max=20)
    assert result.verdict is Verdict.VIOLATED
    assert result.witnesses[0].text == "not found: nothing is wrong"

"""Tests that every injected defect is killed at its recorded seed by the invariant that it breaks."""

from typing import Any

import pytest

from mqproof.fuzz import simulation
from mqproof.fuzz.defects.defect import Mutant
from mqproof.fuzz.simulation import DOCUMENT, MUTANTS, SEEDS_MAX, recorded, refreshed
from mqproof.report.model import Verdict

SEEDS = recorded()
_DEEP = ("consumer-groups", "routes-and-replies", "hostile-peers")
"""Targets with many clients or attacks."""
_SLOW = {
    "AckOfTheNextFlush",
    "BrokersVoteNotPersisted",
    "FsyncErrorAnsweredOk",
    "TimerFinalNotSought",
    "TimerNeededDeleted",
    "TimerOverdueSkipped",
}
"""Mutants that cost a CPU second or more; in every run, the same invariants detect others."""


def _marked(name: str) -> Any:
    deep = pytest.mark.deep("many clients or attacks; suites of conformance judge most of these in every run")
    if name in _SLOW:
        deep = pytest.mark.deep("1 to 2 CPU seconds; the same invariant detects another mutant in every run")
    return pytest.param(name, marks=deep) if name in _SLOW or MUTANTS[name].target in _DEEP else name


@pytest.mark.parametrize("name", [_marked(name) for name in SEEDS])
def test_the_mutant_is_killed_at_its_seed(name: str) -> None:
    result = simulation.judge(MUTANTS[name], first=SEEDS[name], seeds_max=1)
    assert result.verdict is Verdict.HELD, result.detail
    assert result.counts["seed"] == SEEDS[name]


def test_every_mutant_is_killed_within_the_bound_and_is_in_the_table() -> None:
    assert SEEDS.keys() == MUTANTS.keys()
    assert all(seed < SEEDS_MAX for seed in SEEDS.values())
    text = DOCUMENT.read_text(encoding="utf-8")
    assert refreshed(text, SEEDS) == text


def test_a_mutant_without_a_defect_survives() -> None:
    from mqproof.impl.dledger import rules

    harmless = Mutant(
        "Harmless",
        "nothing is wrong",
        "dledger-group",
        "LeaderCompleteness",
        "mqproof.impl.dledger.rules:may_commit",
        rules.may_commit,
    )
    result = simulation.judge(harmless, seeds_max=4)
    assert result.verdict is Verdict.VIOLATED
    assert result.witnesses[0].text == "not found: nothing is wrong"

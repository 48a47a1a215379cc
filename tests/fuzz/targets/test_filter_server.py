"""Tests filter servers under faults: the invariants hold, and each one is tested."""

from collections import Counter

import pytest

from mqproof.conformance.hosts import sandbox
from mqproof.conformance.hosts.sandbox import MISSING
from mqproof.fuzz import mutants, targets
from mqproof.fuzz.filters.program import Run, random_program
from mqproof.fuzz.targets.filter_server import TESTING_ALL
from mqproof.report.model import Verdict
from tests.fuzz.seeds import SEEDS_DEEP_OF_CLIENTS, UNBEGUN, deep_parts, hold

SEEDS = range(1, 4)


def _play(seed: int) -> Counter[str]:
    checked: Counter[str] = Counter()
    Run(random_program(seed), checked).run()
    return checked


@UNBEGUN
@pytest.mark.parametrize("seeds", [SEEDS, *deep_parts(0, SEEDS_DEEP_OF_CLIENTS)], ids=str)
def test_the_invariants_hold_whatever_faults_happen(seeds: range) -> None:
    hold(_play, seeds)


@UNBEGUN
def test_the_seeds_test_every_invariant() -> None:
    checked = hold(_play, TESTING_ALL)
    assert set(+checked) == set(targets.load("filter-server").invariants)


def test_without_the_sandbox_a_mutant_is_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "find_spec", lambda _: None)
    result = mutants.judge(mutants.MUTANTS["FailureRejects"])
    assert (result.verdict, result.detail) == (Verdict.NOT_TESTED, MISSING)

"""The suites are judged by the mutants that they detect, each by its named invariant.

Each suite's own tests run its mutants. These tests cover flush, and the properties of all mutants together.
"""

import pytest

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.mutants.flush import MUTANTS
from mqproof.conformance.pages.mutants import PAGE, page, recorded
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.registry.mutant_judge import HUNTS
from mqproof.conformance.suites.flush.checkers import CHECKERS, OF_STEPS
from mqproof.conformance.wire.catalogue import CASES
from mqproof.report.model import Result, Verdict
from mqproof.spec.catalogue import catalogue

MUTANTS_MIN = 40
SEEDS = {"ack-before-flush": 1, "commit-goes-back": 7, "not-dispatched-again": 1, "offsets-not-persisted": 2}
"""Seeds that detect a mutant by an early example; the others have the seed 0."""
SLOW = {"ack-of-the-next-flush", "torn-text-accepted", "no-room-for-a-filler", "store-time-goes-back"}
"""Rarely detected mutants: the second after 124 examples, 19 CPU seconds.

tests/impl/store/test_rules.py judges the rule that the second replaces in every run, and test_named_bugs.py
has scripts that detect the others.
"""
DEEP = pytest.mark.deep("rarely detected: up to 19 CPU seconds; other tests detect it in every run")
LIKE_OTHERS = {
    "fsync-error-answered-ok",
    "recovered-not-synced",
    "dispatch-before-flush",
    "missing-entries-refused",
}
DEEP_LIKE_OTHERS = pytest.mark.deep("1 CPU second; the same invariant detects another mutant in every run")


def _marks(name: str) -> list[pytest.MarkDecorator]:
    if name in SLOW:
        return [DEEP]
    return [DEEP_LIKE_OTHERS] if name in LIKE_OTHERS else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in MUTANTS])
def test_the_named_invariant_detects_the_mutant(name: str) -> None:
    (result,) = mutant_judge.run([name], seed=SEEDS.get(name, 0))
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed in {result.counts}"
    assert result.id == MUTANTS[name].breaks


def test_every_invariant_that_the_suite_checks_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS.values()} == {*CHECKERS, *OF_STEPS, SPEC_1}


def test_a_mutant_survives_a_search_that_is_too_short() -> None:
    (result,) = mutant_judge.run(["torn-text-accepted"], examples_max=1)
    assert result.verdict is Verdict.VIOLATED
    assert result.counts == {"examples": 1, "examples_max": 1}


def test_the_suites_have_at_least_forty_mutants_with_unique_names() -> None:
    names = mutant_judge.names()
    assert len(names) == len(set(names)) >= MUTANTS_MIN
    noticing = {*catalogue(), *(case.id for case in CASES)}
    assert all(
        mutant.name == name and mutant.breaks in noticing
        for hunt in HUNTS
        for name, mutant in hunt.mutants.items()
    )


def test_the_page_reports_the_result_of_every_mutant() -> None:
    """`python -m mqproof.conformance.pages.mutants NAME...` adds missing results."""
    kept = recorded()
    assert [result.name for result in kept] == list(mutant_judge.names())
    assert {result.verdict for result in kept} == {Verdict.HELD}
    assert PAGE.read_text(encoding="utf-8") == page(kept)


def test_the_page_marks_a_surviving_mutant() -> None:
    counts = {"examples": 600, "examples_max": 600}
    survivor = Result("FLUSH-1", "ack-before-flush", "impl", Verdict.VIOLATED, counts, detail="too early")
    assert "0 of 1 mutants are caught" in page([survivor])
    assert "| ack-before-flush | too early | **survives** | 600 | 0.0 |" in page([survivor])


@pytest.mark.deep("judges every mutant of all suites")
@pytest.mark.timeout(1800)
def test_every_mutant_of_every_suite_is_detected() -> None:
    assert [result.name for result in mutant_judge.run() if result.verdict is not Verdict.HELD] == []

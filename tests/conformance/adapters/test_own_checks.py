"""The inspections of a target run once, and each example that asks for them receives what they found."""

from collections import Counter

import pytest

from mqproof.conformance.adapters import own_checks
from mqproof.conformance.adapters.brokers.factories import EXAMINEES
from mqproof.conformance.adapters.own_checks import Inspections
from mqproof.conformance.engine.suite_run import examine
from mqproof.conformance.mutants.inspections import INSPECTIONS, MUTANTS
from mqproof.conformance.mutants.replacement import injected


def test_each_inspection_of_a_target_runs_once_in_all_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: Counter[str] = Counter()
    monkeypatch.setattr(own_checks, "inspected", lambda name: runs.update([name]) or ())
    delivery = EXAMINEES["delivery"]
    for targets in (1, 2):
        with delivery.targets("impl") as factory:
            examine(factory, 3, 0, suite=delivery.suite)
        assert runs == {"filters": targets, "held pulls": targets}


def test_a_finding_is_returned_again_and_does_not_reach_another_target() -> None:
    name = next(iter(MUTANTS))
    broken, right = Inspections(), Inspections()
    with injected(MUTANTS[name]):
        found = broken.wrong(INSPECTIONS[name])
    assert found
    assert broken.wrong(INSPECTIONS[name]) is found
    assert right.wrong(INSPECTIONS[name]) == ()

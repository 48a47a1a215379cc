"""Tests consumer groups of all kinds under faults: the invariants hold, and seeds can be replayed."""

from collections import Counter

import pytest

from mqproof.conformance.history.lines import Line, encode
from mqproof.fuzz import targets
from mqproof.fuzz.groups.program import Run, random_program
from mqproof.fuzz.targets.consumer_groups import TESTING_ALL
from tests.fuzz.seeds import SEEDS_DEEP_OF_CLIENTS, UNBEGUN, deep_parts, hold


def _play(seed: int) -> Counter[str]:
    checked: Counter[str] = Counter()
    Run(random_program(seed), checked).run()
    return checked


def _lines(seed: int) -> list[Line]:
    run = Run(random_program(seed), Counter())
    run.run()
    return run.lines


@UNBEGUN
@pytest.mark.parametrize("seeds", deep_parts(1, SEEDS_DEEP_OF_CLIENTS), ids=str)
def test_the_invariants_hold_whatever_faults_happen(seeds: range) -> None:
    checked = hold(_play, seeds)
    assert set(checked) <= set(targets.load("consumer-groups").invariants)


@UNBEGUN
def test_the_seeds_test_every_invariant() -> None:
    checked = hold(_play, TESTING_ALL)
    assert {name for name, times in checked.items() if times} == set(
        targets.load("consumer-groups").invariants
    )


@pytest.mark.deep("simulates a cluster twice; test_cluster.py replays a seed in every run")
def test_a_seed_replays() -> None:
    first, again = (b"".join(map(encode, _lines(2))) for _ in range(2))
    assert first == again

"""Tests transactions, timers and delays under faults: the invariants hold, and seeds can be replayed."""

from collections import Counter

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.deferred.program import Run, random_program
from mqproof.fuzz.targets.deferred_messages import TESTING_ALL
from mqproof.spec.events import Event, Kind
from tests.fuzz.seeds import SEEDS_DEEP_OF_CLIENTS, UNBEGUN, deep_parts, hold

SEEDS = range(4)
FOUND_ONCE = (238,)
"""Seed 238 found segments with waiting messages that a start deleted before it had read the timers."""


def _play(seed: int) -> Counter[str]:
    checked: Counter[str] = Counter()
    Run(random_program(seed), checked).run()
    return checked


def _events(seed: int) -> list[Event]:
    run = Run(random_program(seed), Counter())
    run.run()
    return run.cluster.events


@UNBEGUN
@pytest.mark.parametrize("seeds", [SEEDS, *deep_parts(SEEDS.stop, SEEDS_DEEP_OF_CLIENTS)], ids=str)
def test_the_invariants_hold_whatever_faults_happen(seeds: range) -> None:
    checked = hold(_play, seeds)
    assert set(checked) <= set(targets.load("deferred-messages").invariants)


@UNBEGUN
def test_seeds_that_once_found_a_defect_find_none() -> None:
    hold(_play, FOUND_ONCE)


def test_the_seeds_test_every_invariant() -> None:
    checked = hold(_play, TESTING_ALL)
    assert {name for name, times in checked.items() if times} == set(
        targets.load("deferred-messages").invariants
    )


def test_a_seed_replays_and_has_every_kind_of_event() -> None:
    first, again = _events(4), _events(4)
    assert first == again
    assert {Kind.HALF, Kind.COMMIT, Kind.ROLLBACK, Kind.CHECK, Kind.RECALL} <= {each.kind for each in first}


def test_no_bytes_are_a_single_broker_with_transactions() -> None:
    run = Run(b"", Counter())
    run.run()
    assert run.cluster.nodes == ("master",)
    assert run.witness.transactions
    assert run.witness.timed

"""Tests routes and requests with replies under faults: the invariants hold, and seeds can be replayed."""

from collections import Counter

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.routes.program import Run, random_program
from mqproof.fuzz.targets.routes_and_replies import TESTING_ALL
from mqproof.spec.events import Event, Kind
from tests.fuzz.seeds import SEEDS_DEEP_OF_CLIENTS, UNBEGUN, deep_parts, hold


def _play(seed: int) -> Counter[str]:
    checked: Counter[str] = Counter()
    Run(random_program(seed), checked).run()
    return checked


def _events(seed: int) -> list[Event]:
    run = Run(random_program(seed), Counter())
    run.run()
    return run.cluster.events


@UNBEGUN
@pytest.mark.parametrize("seeds", deep_parts(0, SEEDS_DEEP_OF_CLIENTS), ids=str)
def test_the_invariants_hold_whatever_faults_happen(seeds: range) -> None:
    checked = hold(_play, seeds)
    assert set(checked) <= set(targets.load("routes-and-replies").invariants)


@UNBEGUN
def test_the_seeds_test_every_invariant() -> None:
    checked = hold(_play, TESTING_ALL)
    assert {name for name, times in checked.items() if times} == set(
        targets.load("routes-and-replies").invariants
    )


@pytest.mark.deep("simulates a cluster twice; test_cluster.py replays a seed in every run")
def test_a_seed_replays_with_the_events_of_name_servers() -> None:
    first, again = _events(3), _events(3)
    assert first == again
    assert {Kind.REGISTER, Kind.EXPIRE} <= {each.kind for each in first if each.node.startswith("names")}

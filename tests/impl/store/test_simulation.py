"""Tests that random runs with random crashes break no invariant (FLUSH-1 to FLUSH-6 of the catalogue)."""

import pytest

from mqproof.impl.store.config import FlushMode
from tests.impl.store.simulation import simulate


@pytest.mark.parametrize("mode", list(FlushMode))
@pytest.mark.parametrize("batch", range(4))
def test_no_seed_breaks_an_invariant(mode: FlushMode, batch: int) -> None:
    for seed in range(batch * 20, batch * 20 + 20):
        assert simulate(seed, mode) == [], f"seed {seed}"


@pytest.mark.deep("6,000 simulations; 160 are made in every run")
@pytest.mark.parametrize("mode", list(FlushMode))
def test_no_seed_of_many_breaks_an_invariant(mode: FlushMode) -> None:
    for seed in range(1000, 4000):
        assert simulate(seed, mode) == [], f"seed {seed}"


def test_a_seed_produces_the_same_events_twice() -> None:
    assert simulate(5, FlushMode.SYNC_FLUSH) == simulate(5, FlushMode.SYNC_FLUSH)

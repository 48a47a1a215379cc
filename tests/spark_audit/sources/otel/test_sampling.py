"""Bounds from samples hold, and sampling rates are read from trace states."""

import math
import random
from functools import cache

import pytest

from mqproof.spark_audit.sources.otel.sampling import interval, lost_of_all, stated_rate

_interval = cache(interval)
"""It does not depend on the truth, so each is computed once."""


@pytest.mark.parametrize("trials", [1, 50, 200, 1000])
@pytest.mark.parametrize("truth", [0.001, 0.01, 0.05, 0.2, 0.5, 0.97])
def test_the_interval_contains_the_truth_with_a_probability_of_99_percent(trials: int, truth: float) -> None:
    covered = 0.0
    for found in range(trials + 1):
        low, high = _interval(found, trials)
        assert 0 <= low <= found / trials <= high <= 1
        if low <= truth <= high:
            chances = math.log(math.comb(trials, found))
            covered += math.exp(chances + found * math.log(truth) + (trials - found) * math.log1p(-truth))
    assert covered >= 0.99


def test_the_ends_of_the_interval_are_those_of_the_binomial_distribution() -> None:
    low, high = interval(3, 10)
    at_least_3 = sum(math.comb(10, n) * low**n * (1 - low) ** (10 - n) for n in range(3, 11))
    at_most_3 = sum(math.comb(10, n) * high**n * (1 - high) ** (10 - n) for n in range(4))
    assert at_least_3 == pytest.approx(0.005)
    assert at_most_3 == pytest.approx(0.005)
    # Of many trials it is that of the normal distribution.
    low, high = interval(500_000, 1_000_000)
    assert (low, high) == pytest.approx((0.498712, 0.501288), abs=2e-6)


def test_nothing_or_everything_in_a_sample_is_not_certain_of_all() -> None:
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(0, 100)[0] == 0.0
    assert 0.04 < interval(0, 100)[1] < 0.1
    assert interval(100, 100)[1] == 1.0
    with pytest.raises(ValueError, match="5 of 4"):
        interval(5, 4)


@pytest.mark.parametrize("consistent", [True, False])
def test_the_bounds_of_the_lost_contain_the_truth(consistent: bool) -> None:
    chance, total, rate, hits = random.Random(3), 4000, 0.2, 0
    for _ in range(100):
        lost = 120
        due = unseen = 0
        for number in range(total):
            if chance.random() < rate:
                due += 1
                is_seen = number >= lost and (consistent or chance.random() < rate)
                unseen += not is_seen
        low, high = lost_of_all(unseen, due, rate, consistent=consistent)
        hits += low <= lost <= high
    assert hits >= 96


def test_rates_are_read_from_trace_states() -> None:
    assert stated_rate([None, "", "vendor=x"]) is None
    assert stated_rate(["ot=th:c"]) == 0.25
    assert stated_rate(["vendor=1,ot=rv:0;th:8", "ot=th:0"]) == 0.5
    assert stated_rate(["ot=p:3"]) == 0.125
    assert stated_rate(["ot=th:xyz", "ot=p:99", "ot=th:" + "0" * 15]) is None

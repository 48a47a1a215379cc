"""Bounds from samples hold, and sampling rates are read from trace states."""

import random

import pytest

from mqproof.spark_audit.sources.otel.sampling import interval, lost_of_all, stated_rate


def test_the_interval_contains_the_truth_in_99_of_100_samples() -> None:
    chance = random.Random(7)
    for truth in (0.001, 0.05, 0.5):
        hits = 0
        for _ in range(1000):
            found = sum(chance.random() < truth for _ in range(400))
            low, high = interval(found, 400)
            assert 0 <= low <= found / 400 <= high <= 1
            hits += low <= truth <= high
        assert hits >= 985, truth


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

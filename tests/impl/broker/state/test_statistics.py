"""Tests counters: rates over windows, and their values at midnight."""

import pytest

from mqproof.impl.broker.state.statistics import Meter


def test_rates_cover_ten_seconds_a_minute_and_ten_minutes() -> None:
    meter = Meter()
    assert meter.rates() == (0, 0, 0)
    for second in range(601):
        meter.sample(float(second), second * 1000)
        meter.add(1 if second < 540 else 10)
    meter.sample(601.0, 601_000)
    assert meter.rates() == pytest.approx((10, 10, (539 + 610) / 600), abs=0.01)


def test_rates_of_a_short_life_cover_the_available_time() -> None:
    meter = Meter()
    meter.sample(0.0, 0)
    meter.add(6)
    meter.sample(2.0, 2000)
    assert meter.rates() == (3, 3, 3)


def test_the_count_is_recorded_each_midnight() -> None:
    meter = Meter()
    day_ms = 86_400_000
    for day, count in enumerate((5, 7, 11)):
        meter.sample(0.0, day * day_ms + 1)
        meter.add(count)
    meter.sample(0.0, 3 * day_ms)
    assert (meter.yesterday_morning, meter.this_morning, meter.total) == (12, 23, 23)

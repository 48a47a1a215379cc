"""Tests counters: rates over windows, their values at midnight, and their names."""

import pytest

from mqproof.impl.broker.state.rolling_counts import NOTHING
from mqproof.impl.broker.state.statistics import Meter, Statistics


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
    assert meter.rates() == (0, 0, 0)
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


def test_a_count_becomes_that_of_this_morning_at_midnight_and_not_at_the_start() -> None:
    meter, day_ms = Meter(), 86_400_000
    meter.add(3)
    mornings = []
    for wall_ms in (day_ms - 1, day_ms - 1, day_ms, 2 * day_ms - 1, 2 * day_ms):
        meter.sample(0.0, wall_ms)
        meter.add()
        mornings.append((meter.yesterday_morning, meter.this_morning))
    assert mornings == [(0, 0), (0, 0), (0, 5), (0, 5), (5, 7)]


def test_each_rate_covers_exactly_its_period() -> None:
    """The count is the square of the second, so the rate of each period before second 700 is another one."""
    meter = Meter()
    for second in range(701):
        meter.add(second**2 - meter.total)
        meter.sample(float(second), second * 1000)
    assert meter.rates() == (1400 - 10, 1400 - 60, 1400 - 600)
    assert len(meter._samples) == 601, "no more are kept than the longest period needs"


def test_messages_and_bytes_are_counted_under_the_names_of_rocketmq() -> None:
    statistics = Statistics("C")
    statistics.put("T", 2, 500)
    statistics.put("T", 3, 700)
    statistics.put("U", 1, 50)
    statistics.got("T", "G", 4, 900)
    statistics.got("T", "G", 1, 100)
    found = statistics.counts
    assert statistics.counts is found, "a second look counts nothing twice"
    found.roll(10.0)
    counted = {
        (name, key): (day.sum, day.times)
        for name, key in (
            *(("TOPIC_PUT_NUMS", "T"), ("TOPIC_PUT_NUMS", "U"), ("TOPIC_PUT_SIZE", "T")),
            *(("BROKER_PUT_NUMS", "C"), ("BROKER_GET_NUMS", "C")),
            *(("GROUP_GET_NUMS", "T@G"), ("GROUP_GET_SIZE", "T@G")),
        )
        for _, _, day in [found.windows(name, key, 10.0) or (NOTHING,) * 3]
    }
    assert counted == {
        ("TOPIC_PUT_NUMS", "T"): (5, 2),
        ("TOPIC_PUT_NUMS", "U"): (1, 1),
        ("TOPIC_PUT_SIZE", "T"): (1200, 2),
        ("BROKER_PUT_NUMS", "C"): (6, 3),
        ("BROKER_GET_NUMS", "C"): (5, 2),
        ("GROUP_GET_NUMS", "T@G"): (5, 2),
        ("GROUP_GET_SIZE", "T@G"): (1000, 2),
    }
    assert (statistics.puts.total, statistics.put_bytes.total, statistics.messages_got.total) == (6, 1250, 5)
    outgoing = statistics.traffic.outgoing["T", "G"]
    assert (outgoing.messages, outgoing.bytes) == (5, 1000)


def test_every_counter_is_sampled() -> None:
    statistics = Statistics("C")
    statistics.sample(0.0, 0)
    statistics.put("T", 1, 2)
    statistics.got("T", "G", 3, 9)
    for count, meter in enumerate((statistics.failed_puts, statistics.found, statistics.missed), start=4):
        meter.add(count)
    statistics.missed.add()
    statistics.sample(1.0, 1000)
    meters = (
        *(statistics.puts, statistics.put_bytes, statistics.messages_got),
        *(statistics.failed_puts, statistics.found, statistics.missed),
    )
    assert [meter.rates()[0] for meter in meters] == [1, 2, 3, 4, 5, 7]

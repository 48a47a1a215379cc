"""Tests the rates of a consumer, topic by topic."""

import pytest

from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.remoting.bodies import TopicPace


def test_rates_and_averages_cover_the_last_ten_seconds() -> None:
    rates = ConsumeRates()
    rates.pulled("T", 30, 0.02, 0.0)
    rates.pulled("T", 10, 0.04, 5.0)
    rates.consumed("T", 3, 1, 0.5, 5.0)
    rates.consumed("T", 1, 0, 0.1, 6.0)
    rates.pulled("U", 1, 0.0, 0.0)
    table = rates.table(15.0)
    assert set(table) == {"T", "U"}
    pace = table["T"]
    assert (pace.pull_tps, pace.pull_rt) == pytest.approx((40 / 15, 30.0))
    assert pace.consume_rt == pytest.approx(300.0)
    assert (pace.consume_ok_tps, pace.consume_failed_tps) == pytest.approx((4 / 15, 1 / 15))
    assert pace.consume_failed_msgs == 1
    assert rates.table(40.0)["T"] == TopicPace(consume_failed_msgs=1)


def test_the_time_of_a_call_is_per_call_and_failures_add_up() -> None:
    rates = ConsumeRates()
    rates.consumed("T", 2, 3, 0.1, 0.0)
    rates.consumed("T", 0, 4, 0.3, 1.0)
    rates.pulled("T", 5, 0.5, 1.0)
    pace = rates.table(10.0)["T"]
    assert pace.consume_failed_msgs == 7
    assert (pace.consume_rt, pace.pull_rt) == pytest.approx((200.0, 500.0))
    assert (pace.consume_ok_tps, pace.consume_failed_tps, pace.pull_tps) == pytest.approx((0.2, 0.7, 0.5))

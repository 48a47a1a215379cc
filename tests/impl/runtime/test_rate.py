"""Tests rates: events per second, over ten seconds or a little more."""

from mqproof.impl.runtime.rate import Pace


def test_a_rate_is_known_after_ten_seconds() -> None:
    pace = Pace(0.0)
    pace.add(20, 1.0)
    assert pace.rate(9.9) == 0.0
    assert pace.rate(10.0) == 2.0


def test_a_rate_drops_to_zero_when_nothing_happens() -> None:
    pace = Pace(0.0)
    pace.add(20, 1.0)
    assert pace.rate(10.0) == 2.0
    assert pace.rate(19.0) == 2.0
    assert pace.rate(20.0) == 0.0

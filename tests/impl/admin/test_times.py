"""Tests the format of times in the administration commands."""

import pytest

from mqproof.impl.admin import times


def test_a_time_is_now_or_milliseconds_or_a_date_in_local_time() -> None:
    before = times.now_ms()
    assert before <= times.parse_ms("now") <= times.now_ms()
    assert times.parse_ms("1700000000000") == 1_700_000_000_000
    assert times.parse_ms("-1") == -1
    milliseconds = times.parse_ms("2026-05-01#08:09:10:011")
    assert times.show(milliseconds) == "2026-05-01 08:09:10.011"


@pytest.mark.parametrize("text", ["", "soon", "2026-05-01", "2026-13-01#00:00:00:000", "1.5"])
def test_any_other_text_is_refused_with_the_expected_formats(text: str) -> None:
    with pytest.raises(ValueError, match="now, milliseconds or yyyy-MM-dd#HH:mm:ss:SSS expected"):
        times.parse_ms(text)


@pytest.mark.parametrize(("milliseconds", "shown"), [(0, ""), (-1, ""), (2**62, str(2**62))])
def test_a_number_outside_the_calendar_is_shown_unchanged(milliseconds: int, shown: str) -> None:
    assert times.show(milliseconds) == shown

"""Wall-clock times as text and numbers, for any time that a file may hold."""

import pytest

from mqproof.impl.runtime.clock import local_stamp


@pytest.mark.parametrize(
    "milliseconds", [-(2**63), -1, 0, 1, 1_790_000_000_123, 253_402_300_800_000, 2**63 - 1]
)
def test_a_stamp_has_17_digits_for_any_time_of_a_damaged_record(milliseconds: int) -> None:
    assert len(str(local_stamp(milliseconds))) == 17


def test_a_later_time_of_the_calendar_has_a_greater_stamp() -> None:
    times = [1_790_000_000_000 + step for step in (0, 1, 999, 1000, 3_600_000)]
    stamps = [local_stamp(at) for at in times]
    assert stamps == sorted(set(stamps))
    assert stamps[1] - stamps[0] == 1

"""Tests counters by name and key over a minute, an hour and a day."""

from typing import cast

import pytest

from mqproof.impl.broker.state import rolling_counts
from mqproof.impl.broker.state.rolling_counts import Counted, RollingCounts


def test_a_count_leaves_the_minute_then_the_hour_then_the_day() -> None:
    counts = RollingCounts()
    counts.add("N", "k", 5)
    counts.add("N", "k", 7)
    assert counts.windows("N", "k", 0) == (Counted(0, 0, 0.0),) * 3  # not rolled yet, but already known
    counts.roll(100.0)
    assert counts.windows("N", "k", 100.0) == (Counted(12, 2, 10.0),) * 3
    sums = [
        [window.sum for window in counts.windows("N", "k", now_s) or ()]
        for now_s in (159.9, 160.0, 3599.9, 3600.0, 86_399.9, 86_400.0)
    ]
    assert sums == [[12, 12, 12], [0, 12, 12], [0, 12, 12], [0, 0, 12], [0, 0, 12], [0, 0, 0]]


def test_names_and_keys_are_counted_separately() -> None:
    counts = RollingCounts()
    for name, key, count in (("N", "k", 1), ("N", "l", 2), ("M", "k", 4)):
        counts.add(name, key, count)
    counts.roll(10.0)
    for name, key, count in (("N", "k", 1), ("N", "l", 2), ("M", "k", 4)):
        assert counts.windows(name, key, 10.0) == (Counted(count, 1, 10.0),) * 3
    assert counts.windows("M", "l", 10.0) is None


def test_windows_advance_where_more_is_counted() -> None:
    counts = RollingCounts()
    for second in range(10, 130, 10):
        counts.add("N", "k", 1)
        counts.roll(float(second))
    minute, hour, day = Counted(6, 6, 60.0), Counted(12, 12, 120.0), Counted(12, 12, 120.0)
    assert counts.windows("N", "k", 120.0) == (minute, hour, day)


def test_no_more_parts_of_a_window_are_kept_than_it_has() -> None:
    counts = RollingCounts()
    for hour in range(30):
        counts.add("N", "k", 1)
        counts.roll(3600.0 * hour)
    for second in range(10, 100, 10):
        counts.add("N", "k", 1)
        counts.roll(3600.0 * 30 + second)
    assert [len(buckets) for buckets in counts._history["N", "k"].buckets] == [6, 1, 24]


def test_a_known_key_is_counted_beside_new_ones_for_which_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rolling_counts, "_KEYS_MAX", 2)
    counts = RollingCounts()
    for keys in ("ab", "ca"):
        for key in keys:
            counts.add("N", key, 1)
        counts.roll(10.0)
    assert counts.windows("N", "a", 10.0) == (Counted(2, 2, 10.0),) * 3
    assert counts.windows("N", "c", 10.0) is None


def test_a_key_without_counts_for_a_day_is_forgotten() -> None:
    counts = RollingCounts()
    counts.add("N", "k", 1)
    counts.roll(10.0)
    counts.roll(10.0 + 25 * 3600)
    assert counts.windows("N", "k", 10.0 + 25 * 3600) is None


def test_the_number_of_keys_that_peers_can_create_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling_counts, "_KEYS_MAX", 2)
    counts = RollingCounts()
    for number in range(4):
        counts.add("N", str(number), 1)
    counts.roll(10.0)
    counts.add("N", "late", 1)
    counts.roll(20.0)
    known = [key for key in ("0", "1", "2", "3", "late") if counts.windows("N", key, 20.0)]
    assert known == ["0", "1"]


def test_forgotten_keys_are_searched_once_an_hour() -> None:
    counts = RollingCounts()
    counts.add("N", "k", 1)
    counts.roll(10.0)
    day_s, hour_s = 24 * 3600, 3600
    counts.roll(day_s - 600.0)  # a search that finds nothing
    counts.roll(day_s - 600.0 + hour_s - 1)
    assert counts.windows("N", "k", day_s + hour_s) == (
        Counted(0, 0, 60.0),
        Counted(0, 0, 3600.0),
        Counted(0, 0, 86_400.0),
    )
    counts.roll(day_s - 600.0 + hour_s)
    assert counts.windows("N", "k", day_s + hour_s) is None


def test_two_hundred_thousand_keys_are_counted() -> None:
    counts = RollingCounts()
    counts._now = cast("dict[tuple[str, str], list[int]]", dict.fromkeys(range(199_999)))
    for key in ("the last one", "one more"):
        counts.add("N", key, 1)
    assert counts.windows("N", "the last one", 10.0) == (Counted(0, 0, 0.0),) * 3
    assert counts.windows("N", "one more", 10.0) is None

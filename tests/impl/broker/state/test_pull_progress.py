"""Tests the progress and the rate of groups that pull."""

import pytest

from mqproof.impl.broker.state.pull_progress import PullProgress
from mqproof.impl.runtime.rate import Pace


def test_the_rate_covers_the_last_ten_seconds_and_drops_to_zero() -> None:
    pace = Pace(0.0)
    for second in range(20):
        pace.add(3, float(second))
    assert pace.rate(20.0) == pytest.approx(3)
    assert pace.rate(25.0) == pytest.approx(3)
    assert pace.rate(40.0) == 0


def test_each_pair_of_topic_and_group_has_its_own_progress() -> None:
    pull_progress = PullProgress(pairs_max=10)
    pull_progress.note("T", "G", 0, 5, 5, 0.0)
    pull_progress.note("T", "G", 1, 7, 2, 1.0)
    pull_progress.note("T", "H", 0, 1, 1, 1.0)
    assert [
        pull_progress.end("T", group, queue) for group, queue in (("G", 0), ("G", 1), ("H", 0), ("H", 1))
    ] == [
        5,
        7,
        1,
        0,
    ]
    assert (pull_progress.rate("T", "G", 10.0), pull_progress.rate("U", "G", 10.0)) == (0.7, 0)


def test_the_number_of_remembered_pairs_is_limited() -> None:
    pull_progress = PullProgress(pairs_max=1)
    for group in "GH":
        pull_progress.note("T", group, 0, 5, 5, 0.0)
    pull_progress.note("T", "G", 0, 6, 1, 0.0)
    assert (pull_progress.end("T", "G", 0), pull_progress.end("T", "H", 0)) == (6, 0)

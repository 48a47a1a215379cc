"""A feigned crash goes back to an offset that may be on disk, and later commits count from there."""

import pytest

from mqproof.impl.chaos import committed_offsets as module
from mqproof.impl.chaos.committed_offsets import CommittedOffsets, OffsetKey

KEY = OffsetKey("G", "T", "0")


def test_without_a_crash_the_real_offset_counts() -> None:
    offsets = CommittedOffsets()
    offsets.commit(KEY, 5, 1.0)
    assert offsets.seen(KEY) is None


def test_a_crash_goes_back_to_the_last_commit_that_is_surely_on_disk() -> None:
    offsets = CommittedOffsets()
    for at, offset in ((0.0, 1), (1.0, 3), (8.0, 7), (9.0, 9)):
        offsets.commit(KEY, offset, at)
    assert offsets.crash(10.0) == 1
    assert offsets.seen(KEY) == 3


def test_a_group_that_never_committed_before_keeps_its_first_offset() -> None:
    offsets = CommittedOffsets()
    offsets.commit(KEY, 4, 9.0)
    assert offsets.crash(10.0) == 0
    assert offsets.seen(KEY) is None


def test_commits_after_a_crash_are_seen_until_they_reach_the_real_offset() -> None:
    offsets = CommittedOffsets()
    offsets.commit(KEY, 3, 0.0)
    offsets.commit(KEY, 9, 6.0)
    offsets.crash(7.0)
    # The broker itself keeps 9, because the members commit only forward.
    offsets.commit(KEY, 5, 8.0, only_forward=True)
    assert offsets.seen(KEY) == 5
    offsets.commit(KEY, 4, 8.5, only_forward=True)
    assert offsets.seen(KEY) == 5
    offsets.commit(KEY, 9, 9.0, only_forward=True)
    assert offsets.seen(KEY) is None


def test_a_plain_commit_after_a_crash_sets_the_real_offset_too() -> None:
    offsets = CommittedOffsets()
    offsets.commit(KEY, 3, 0.0)
    offsets.commit(KEY, 9, 6.0)
    offsets.crash(7.0)
    offsets.commit(KEY, 5, 8.0)
    assert offsets.seen(KEY) is None


def test_a_second_crash_does_not_go_ahead() -> None:
    offsets = CommittedOffsets()
    offsets.commit(KEY, 3, 0.0)
    offsets.commit(KEY, 9, 6.0)
    offsets.crash(7.0)
    offsets.crash(20.0)
    assert offsets.seen(KEY) == 3


def test_the_number_of_queues_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEYS_MAX", 1)
    offsets = CommittedOffsets()
    for queue in ("0", "1"):
        offsets.commit(OffsetKey("G", "T", queue), 3, 0.0)
        offsets.commit(OffsetKey("G", "T", queue), 9, 6.0)
    assert offsets.crash(7.0) == 1

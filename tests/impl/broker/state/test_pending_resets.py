"""Tests which commits carry out an offset reset after members were notified, and which do not."""

from mqproof.impl.broker.state.pending_resets import PendingResets


def test_the_first_commit_that_goes_back_carries_out_a_reset() -> None:
    resets = PendingResets()
    resets.expect("G", "T", {0: 2, 1: 3})
    assert not resets.explains("G", "T", 2, 9, 2)
    assert not resets.explains("H", "T", 0, 9, 2)
    assert not resets.explains("G", "T", 0, 9, 10)  # progress, committed before the notification arrived
    assert resets.explains("G", "T", 0, 10, 2)
    assert not resets.explains("G", "T", 0, 10, 2)  # only once
    assert resets.explains("G", "T", 1, 9, 4)  # one message was consumed before the first commit


def test_the_requested_offset_carries_out_a_reset_forward() -> None:
    resets = PendingResets()
    resets.expect("G", "T", {0: 9, 1: 9})
    assert not resets.explains("G", "T", 0, 2, 3)
    assert resets.explains("G", "T", 0, 3, 9)
    assert not resets.explains("G", "T", 1, 8, 10)  # consumed without the reset
    assert not resets.explains("G", "T", 1, 10, 9)


def test_a_group_without_members_carries_out_no_reset() -> None:
    resets = PendingResets()
    resets.expect("G", "T", {0: 2})
    resets.drop("G")
    resets.drop("G")
    assert not resets.explains("G", "T", 0, 9, 2)


def test_a_commit_of_the_known_offset_carries_out_nothing_and_the_reset_is_still_expected() -> None:
    resets = PendingResets()
    resets.expect("G", "T", {0: 3})
    assert not resets.explains("G", "T", 0, known=5, offset=5)
    assert resets.explains("G", "T", 0, known=5, offset=3)

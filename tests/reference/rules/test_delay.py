"""The delay levels of retries (docs/reference/protocol/retries-and-delays.md, "Retries")."""

from mqproof.reference.rules import delay


def test_each_of_16_retries_waits_longer_and_the_next_becomes_a_dead_letter() -> None:
    levels = [delay.send_back_level(0, times) for times in range(17)]
    waits = [delay.delay_seconds(level) for level in levels if level]
    assert waits == [10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200]
    assert levels[16] is None


def test_a_requested_delay_level_is_clamped_and_a_negative_one_is_a_dead_letter() -> None:
    assert delay.send_back_level(5, 0) == 5
    assert delay.send_back_level(40, 0) == 18
    assert delay.send_back_level(-1, 0) is None

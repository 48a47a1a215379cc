"""Tests the history of samples: rates, restarts, and bounded memory."""

from mqproof.impl.console.sample_history import Rate, Sample, SampleHistory

SUBJECT = ("topic", "T")


def test_a_rate_is_the_difference_of_two_samples_by_their_time() -> None:
    history = SampleHistory()
    assert history.last(SUBJECT) is None
    history.add(SUBJECT, Sample(10, 100, 50, 7))
    assert (history.last(SUBJECT), history.rates(SUBJECT)) == (None, [])
    history.add(SUBJECT, Sample(20, 150, 50, 57))
    history.add(SUBJECT, Sample(30, 150, 150, 0))
    assert history.rates(SUBJECT) == [Rate(20, 5.0, 0.0, 57), Rate(30, 0.0, 10.0, 0)]
    assert history.rates(SUBJECT, since_s=20) == [Rate(30, 0.0, 10.0, 0)]
    assert history.last(SUBJECT) == Rate(30, 0.0, 10.0, 0)


def test_a_count_that_goes_back_has_no_rate() -> None:
    """A broker restarts and counts from 0; an operator resets the offsets of a group."""
    history = SampleHistory()
    history.add(SUBJECT, Sample(10, 100, 50))
    history.add(SUBJECT, Sample(20, 3, 60))
    assert history.last(SUBJECT) == Rate(20, None, 1.0, None)


def test_two_samples_at_one_time_divide_by_no_zero() -> None:
    history = SampleHistory()
    history.add(SUBJECT, Sample(10, 0, 0))
    history.add(SUBJECT, Sample(10, 0, 0))
    assert history.last(SUBJECT) == Rate(10, 0.0, 0.0, None)


def test_samples_and_subjects_are_bounded() -> None:
    history = SampleHistory(points_max=3, subjects_max=2)
    for at_s in range(10):
        history.add(("topic", "old"), Sample(at_s, at_s, 0))
    assert [rate.at_s for rate in history.rates(("topic", "old"))] == [8, 9]
    history.add(("topic", "new"), Sample(10, 0, 0))
    history.add(("topic", "old"), Sample(10, 10, 0))
    history.add(("topic", "newer"), Sample(10, 0, 0))
    assert history.names("topic") == ["newer", "old"]


def test_subjects_that_no_longer_exist_are_forgotten() -> None:
    history = SampleHistory()
    for subject in (("topic", "a"), ("topic", "b"), ("broker", "a")):
        history.add(subject, Sample(1, 1, 1))
    history.keep("topic", ["b", "c"])
    assert (history.names("topic"), history.names("broker")) == (["b"], ["a"])

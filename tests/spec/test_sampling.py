"""Samples are the same on all nodes, in every language, and have the stated share."""

import pytest

from mqproof.spec.sampling import is_in_sample, sample_limit


def test_the_sample_has_the_stated_share() -> None:
    limit = sample_limit(0.01)
    assert limit == "028f5c29"
    chosen = sum(is_in_sample(f"7F{number:030X}", limit) for number in range(100_000))
    assert 900 < chosen < 1100


def test_the_choice_is_that_of_the_hooks() -> None:
    # RecorderTest.java and hooks_test.go have the same ids: their hashes begin with 02 and with 8a.
    limit = sample_limit(0.01)
    assert is_in_sample("message-99", limit)
    assert not is_in_sample("message-0", limit)


@pytest.mark.parametrize("rate", [0, 1, -0.5, 2])
def test_a_rate_that_is_no_sample_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="above 0 and below 1"):
        sample_limit(rate)

"""Tests the distribution of values over intervals."""

from mqproof.impl.metrics.families import Distribution


def test_a_value_at_a_bound_belongs_to_the_interval_below() -> None:
    sizes = Distribution((10, 20))
    for size in (10, 11, 20, 21):
        sizes.add(size)
    assert (sizes.counts, sizes.sum) == ([1, 2, 1], 62)


def test_a_copy_does_not_change_with_the_original() -> None:
    sizes = Distribution((10,))
    copied = sizes.copy()
    sizes.add(1)
    assert (copied.counts, copied.sum) == ([0, 0], 0)

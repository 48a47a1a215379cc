"""The benchmark of the checks of records compares the same broker with and without them."""

from mqproof.conformance.bench.load import Messages
from mqproof.conformance.bench.read_checks import Cost, measure
from mqproof.impl.store.files import record


def test_the_overhead_is_the_median_of_the_pairs() -> None:
    assert Cost([3.0, 2.2, 9.0], [2.0, 2.0, 10.0]).overhead == 2.2 / 2.0 - 1


def test_both_sides_are_measured_and_the_checks_are_back_afterwards() -> None:
    right = record.entry_problem
    cost = measure(Messages(size=64), 200, 1)
    assert min(*cost.checked, *cost.unchecked) > 0
    assert record.entry_problem is right

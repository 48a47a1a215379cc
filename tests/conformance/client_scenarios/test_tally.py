"""The counts of a run: each kind of difference changes its own number."""

from mqproof.conformance.client_scenarios.tally import Tally, out_of_order, tally


def test_exact_delivery_has_no_differences() -> None:
    assert tally({"a": 1, "b": 2}, ["b", "a", "b"]) == Tally(expected=3, received=3)


def test_lost_repeated_and_unexpected_messages_are_counted() -> None:
    found = tally({"a": 1, "b": 2, "c": 1}, ["a", "a", "a", "b", "x"])
    assert found == Tally(expected=4, received=5, lost=2, duplicated=2, unexpected=1)


def test_a_message_without_a_known_outcome_may_come_once_or_not_at_all() -> None:
    assert tally({}, [], ["u"]) == Tally()
    assert tally({}, ["u"], ["u"]) == Tally(received=1)
    assert tally({}, ["u", "u"], ["u"]) == Tally(received=2, duplicated=1)


def test_tallies_of_several_consumers_add_up() -> None:
    assert Tally(1, 2, 3, 4, 5) + Tally(1, 1, 1, 1, 1) == Tally(2, 3, 4, 5, 6)


def test_order_is_judged_for_each_key_and_by_first_deliveries() -> None:
    assert out_of_order(["k-0", "l-5", "k-1", "k-1", "k-0", "k-2"]) == []
    assert out_of_order(["k-1", "k-0", "k-10", "k-9"]) == ["k-0", "k-9"]

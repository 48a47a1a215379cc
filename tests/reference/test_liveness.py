"""The shapes of liveness properties and fairness clauses, on a counter that moves around a circle of four."""

from typing import Any

from mqproof.reference.liveness import FIRST, PAIR, leads_to, recurs, settles, strong, weak


def shape(obligations: Any, states: range = range(4)) -> list[tuple[Any, list[int], list[int], list[int]]]:
    """Return, for each instance, the states with `since`, `during` and `again`."""
    return [
        (
            each.of,
            [s for s in states if each.since(s)],
            [s for s in states if each.during(s)],
            [s for s in states if each.again(s)],
        )
        for each in obligations
    ]


def test_leads_to_is_violated_from_a_state_with_since_through_states_without_until() -> None:
    found = leads_to(lambda s: s == 1, lambda s: s == 3)
    assert shape(found) == [((), [1], [0, 1, 2], [0, 1, 2, 3])]


def test_each_instance_of_a_property_is_an_obligation_of_its_own() -> None:
    found = leads_to(lambda s, i: s == i, lambda s, i: s > i, of=((1,), (2,)))
    assert shape(found) == [((1,), [1], [0, 1], [0, 1, 2, 3]), ((2,), [2], [0, 1, 2], [0, 1, 2, 3])]


def test_recurs_is_violated_by_a_cycle_with_given_and_without_the_goal() -> None:
    assert shape(recurs(lambda s: s == 2, given=lambda s: s > 0)) == [((), [1, 3], [1, 3], [0, 1, 2, 3])]


def test_settles_is_violated_by_a_cycle_with_given_that_visits_a_state_without_the_goal() -> None:
    assert shape(settles(lambda s: s == 2, given=lambda s: s > 0)) == [((), [1, 2, 3], [1, 2, 3], [0, 1, 3])]
    assert shape(settles(lambda s: s == 2)) == [((), [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 3])]


def test_a_clause_selects_its_steps_and_their_instance() -> None:
    clause = weak("Deliver", "Deliver", "Skip", each=FIRST, where=lambda _config, state, *_: state > 0)
    assert clause.instance(None, 1, "Deliver", ("q0", 3)) == ("q0",)
    assert clause.instance(None, 1, "Skip", ("q1",)) == ("q1",)
    assert clause.instance(None, 0, "Deliver", ("q0", 3)) is None
    assert clause.instance(None, 1, "Crash", ()) is None
    assert strong("Start", "Start", each=PAIR).instance(None, 0, "Start", ("c1", "q0")) == ("c1", "q0")
    assert weak("Move", "Move").instance(None, 0, "Move", (4,)) == ()

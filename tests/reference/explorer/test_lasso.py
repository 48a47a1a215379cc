"""Violating infinite runs are found if and only if they exist, and are fair runs of the model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from mqproof.reference import mutants
from mqproof.reference.explorer.lasso import Lasso, find_lasso, lasso_text
from mqproof.reference.explorer.state_graph import StateGraph, state_graph
from mqproof.reference.liveness import Clause, Finite, leads_to, recurs, settles, strong, weak
from mqproof.reference.model import Action, Model, by_name
from mqproof.reference.mutants.mutant import Mutant

Jumps = Mapping[int, Mapping[str, int]]
"""By state: the next state of each action."""


def graph_of(jumps: Jumps, *fairness: Clause) -> StateGraph[int]:
    """Return the graph of a model that is a table; its initial state is 0."""
    names = dict.fromkeys(name for actions in jumps.values() for name in actions)

    def action(name: str) -> Action[None, int]:
        return Action(name, lambda _config, state: jumps[state].get(name), lambda _config: ((),))

    model: Model[None, int] = Model(
        name="Table",
        initial=lambda _config: (0,),
        actions=by_name(*map(action, names)),
        from_constants=lambda _constants: None,
        from_tla=lambda _config, variables: int(variables["state"]),
        operator=lambda _config, name, _parameters: (name, ()),
        fairness=fairness,
    )
    return state_graph(model, None)


def text(graph: StateGraph[int], obligations: Any) -> str:
    lasso = find_lasso(graph, obligations)
    return "" if lasso is None else lasso_text(lasso)


REACHES_2 = leads_to(lambda s: s == 0, lambda s: s == 2)
ASIDE: Jumps = {0: {"Aside": 1, "Go": 2}, 1: {"Back": 0}, 2: {}}
"""State 0 may go to 2, or aside and back."""


def test_without_fairness_a_state_may_remain_for_ever() -> None:
    assert text(graph_of(ASIDE), REACHES_2) == "Init, then for ever: nothing happens"


def test_weak_fairness_forbids_a_state_that_remains_but_not_a_cycle_that_disables_the_action() -> None:
    weakly = graph_of(ASIDE, weak("Go", "Go"), weak("Move", "Aside", "Back"))
    assert text(weakly, REACHES_2) == "Init, then for ever: Aside -> Back"


def test_strong_fairness_forbids_a_cycle_that_enables_the_action_again_and_again() -> None:
    strongly = graph_of(ASIDE, strong("Go", "Go"), weak("Back", "Back"))
    assert text(strongly, REACHES_2) == ""
    assert text(strongly.weakened("Go"), REACHES_2) == "Init, then for ever: Aside -> Back"


def test_states_that_enable_a_strongly_fair_action_are_removed_and_the_rest_is_searched() -> None:
    # 0 and 1 form a cycle with the cycle of 1 and 3, which does not enable Go.
    jumps: Jumps = {0: {"Aside": 1, "Go": 2}, 1: {"Back": 0, "On": 3}, 2: {}, 3: {"Off": 1}}
    found = text(
        graph_of(jumps, strong("Go", "Go"), weak("Off", "Off"), weak("Move", "On", "Back")), REACHES_2
    )
    assert found == "Init -> Aside, then for ever: On -> Off"


def test_steps_that_occur_finitely_often_are_in_no_cycle() -> None:
    finite = Finite("Aside", lambda _config, _before, action, _after: action == "Aside")
    graph = graph_of(ASIDE, weak("Go", "Go"), weak("Back", "Back"), finite)
    assert text(graph, REACHES_2) == ""
    assert text(graph.without("Aside"), REACHES_2) == "Init, then for ever: Aside -> Back"


def test_a_cycle_takes_all_weakly_fair_actions_that_it_always_enables() -> None:
    both: Jumps = {0: {"Left": 1, "Right": 2}, 1: {"Left": 0, "Right": 0}, 2: {"Left": 0, "Right": 0}, 3: {}}
    lasso = find_lasso(
        graph_of(both, weak("Left", "Left"), weak("Right", "Right")), leads_to(bool, lambda s: s == 3)
    )
    assert lasso is not None
    assert {step.action for step in lasso.cycle} == {"Left", "Right"}


def test_a_property_that_settles_is_violated_by_a_cycle_that_leaves_the_goal() -> None:
    ring: Jumps = {0: {"Up": 1}, 1: {"Up": 2}, 2: {"Up": 0}}
    graph = graph_of(ring, weak("Up", "Up"))
    assert text(graph, settles(lambda s: s != 1)) == "Init, then for ever: Up -> Up -> Up"
    assert text(graph, settles(lambda s: s < 3)) == ""
    assert text(graph, settles(lambda s: s == 1, given=lambda s: s > 0)) == ""


def test_a_property_that_recurs_is_violated_only_while_its_condition_remains() -> None:
    ring: Jumps = {0: {"Up": 1}, 1: {"Up": 2}, 2: {"Up": 1}}
    graph = graph_of(ring, weak("Up", "Up"))
    assert (
        text(graph, recurs(lambda s: s == 0, given=lambda s: s > 0)) == "Init -> Up, then for ever: Up -> Up"
    )
    assert text(graph, recurs(lambda s: s == 2, given=lambda s: s > 0)) == ""
    assert text(graph, recurs(lambda s: s == 0, given=lambda s: s == 1)) == ""


def test_the_obligation_begins_only_where_it_is_due() -> None:
    # State 0 remains for ever, but nothing is due there.
    assert (
        text(
            graph_of({0: {"Up": 1}, 1: {"Up": 2}, 2: {}}, weak("Up", "Up")),
            leads_to(lambda s: s == 1, lambda s: s == 2),
        )
        == ""
    )
    assert text(graph_of({0: {"Up": 1}, 1: {}}), leads_to(lambda s: s == 1, lambda s: s == 2)) == (
        "Init -> Up, then for ever: nothing happens"
    )


@dataclass(frozen=True)
class _Walk:
    """The states of a lasso's cycle, by number, and what its steps take."""

    nodes: frozenset[int]
    taken: int


def _walk(graph: StateGraph[Any], lasso: Lasso[Any]) -> _Walk:
    """Follow the lasso in the graph; each step must be one of its edges."""
    number = {state: i for i, state in enumerate(graph.states)}
    at = number[lasso.path[0].state]
    assert at < graph.initial
    for step in lasso.path[1:]:
        at = _follow(graph, number, at, step)
    nodes, taken, entry = {at}, 0, at
    for step in lasso.cycle:
        edge = next(
            e
            for e in graph.cyclic(at)
            if (e.label, e.target) == ((step.action, step.parameters), number[step.state])
        )
        taken |= edge.taken
        at = edge.target
        nodes.add(at)
    assert at == entry, "the cycle does not end where it began"
    return _Walk(frozenset(nodes), taken)


def _follow(graph: StateGraph[Any], number: dict[Any, int], at: int, step: Any) -> int:
    target = number[step.state]
    assert any((e.label, e.target) == ((step.action, step.parameters), target) for e in graph.edges[at])
    return target


LIVE = [m for m in mutants.MUTANTS.values() if m.invariant in m.model.liveness]


@pytest.mark.parametrize("mutant", LIVE, ids=lambda mutant: mutant.name)
def test_the_run_of_each_mutant_is_a_fair_run_that_violates_the_property(mutant: Mutant) -> None:
    model = mutant.broken()
    graph = state_graph(model, mutant.config)
    obligations = model.liveness[mutant.invariant](mutant.config)
    lasso = find_lasso(graph, obligations)
    assert lasso is not None
    walk = _walk(graph, lasso)
    for node in walk.nodes:
        assert not graph.enabled[node] & graph.strong & ~walk.taken, "a strongly fair action is never taken"
    always = -1
    for node in walk.nodes:
        always &= graph.enabled[node]
    assert not always & graph.weak & ~walk.taken, "a weakly fair action is always enabled and never taken"
    obligation = next(each for each in obligations if each.of == lasso.of)
    assert all(obligation.during(graph.states[node]) for node in walk.nodes)
    assert any(obligation.again(graph.states[node]) for node in walk.nodes)
    assert any(obligation.since(step.state) for step in (*lasso.path, *lasso.cycle))

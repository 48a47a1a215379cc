"""The graph of a model with its fairness: steps, enabled instances, and clauses taken away."""

from dataclasses import replace

import pytest

from mqproof.reference import flush, retry
from mqproof.reference.explorer.search import explore
from mqproof.reference.explorer.state_graph import state_graph

SMALL = flush.Config(messages=("m1",))


def test_the_graph_has_the_states_and_the_steps_between_different_states_of_the_explorer() -> None:
    steps: list[bool] = []
    explored = explore(
        flush.MODEL, SMALL, on_edge=lambda before, _n, _p, after: steps.append(before != after)
    )
    levels: list[int] = []
    graph = state_graph(flush.MODEL, SMALL, on_level=lambda _depth, states: levels.append(states))
    assert list(graph.states) == list(explored.parents)
    assert sum(map(len, graph.edges)) == sum(steps)
    assert levels[-1] == len(graph.states)
    assert len(levels) == explored.depth


def test_a_state_enables_exactly_the_instances_that_its_steps_take() -> None:
    graph = state_graph(flush.MODEL, SMALL)
    assert set(graph.clauses) == {"Flush", "Answer", "Dispatch", "Deliver", "Recover"}
    for mask, edges in zip(graph.enabled, graph.edges, strict=True):
        taken = 0
        for edge in edges:
            taken |= edge.taken
        assert mask == taken


def test_a_clause_can_be_removed_or_weakened() -> None:
    graph = state_graph(flush.MODEL, SMALL)
    deliver = graph.clauses["Deliver"]
    assert graph.strong == deliver
    assert graph.without("Deliver").strong == 0
    weaker = graph.weakened("Deliver")
    assert (weaker.strong, weaker.weak) == (0, graph.weak | deliver)
    with pytest.raises(KeyError):
        graph.without("Nothing")


def test_an_action_beyond_the_bounds_of_the_configuration_is_enabled_but_never_taken() -> None:
    full = retry.Config(faults_max=0, records_max=1)
    graph = state_graph(retry.MODEL, full)
    send_back = graph.clauses["SendBack"]
    assert any(mask & send_back for mask in graph.enabled)
    assert not any(edge.taken & send_back for edges in graph.edges for edge in edges)


def test_a_graph_stops_at_the_maximum_number_of_states() -> None:
    with pytest.raises(MemoryError, match="more than 100 states"):
        state_graph(flush.MODEL, flush.Config(), states_max=100)


def test_a_model_without_fairness_has_no_instances() -> None:
    graph = state_graph(replace(flush.MODEL, fairness=()), SMALL)
    assert not any(graph.enabled)
    assert not graph.weak | graph.strong | graph.finite

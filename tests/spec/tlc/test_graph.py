"""Goal: the dump of TLC's state graph is exact and deterministic. Method: Counter against Python code."""

from pathlib import Path

import pytest

from mqproof.spec.tlc import config, graph
from mqproof.spec.tlc.errors import TlcError
from mqproof.spec.tlc.graph import Label
from mqproof.spec.tlc.run import DEADLOCK, Job, Verdict, run
from mqproof.spec.tlc.values import Function, ModelValue, State
from tests.spec.tlc.counter import ACTIONS, CONFIG, DISTINCT, LIBRARIES

NODES = (ModelValue("n1"), ModelValue("n2"))
FREE = ModelValue("NoNode")


def computed_steps(state: State) -> set[tuple[Label, State]]:
    """Counter's next-state relation in Python."""
    count, owner = state["count"], state["owner"]
    assert isinstance(count, Function)
    if owner == FREE:
        return {(("Take", (node,)), Function({**state, "owner": node})) for node in NODES}
    found: set[tuple[Label, State]] = {(("Drop", ()), Function({**state, "owner": FREE}))}
    for by in (1, 2):
        held = count[owner]
        assert isinstance(held, int)
        if held + by <= 2:
            after = Function({**count, owner: held + by})
            log = (Function({"node": owner, "by": by}),)
            found.add((("Add", (owner, by)), Function({**state, "count": after, "log": log})))
    return found


@pytest.fixture(scope="module")
def counter() -> graph.Graph:
    return graph.dump_ground(graph.ground("Counter", CONFIG, ACTIONS), LIBRARIES)


def test_the_dump_has_exactly_the_labelled_edges_of_the_model(counter: graph.Graph) -> None:
    assert len(counter.states) == DISTINCT
    found = {
        (counter.states[source], label, counter.states[target]) for source, label, target in counter.edges
    }
    assert found == {
        (state, label, target) for state in counter.states for label, target in computed_steps(state)
    }


def test_the_dump_marks_the_initial_state(counter: graph.Graph) -> None:
    (initial,) = counter.initial
    zero = Function(dict.fromkeys(NODES, 0))
    assert counter.states[initial] == Function({"count": zero, "owner": FREE, "log": ()})


def test_the_enabled_actions_of_a_state_are_the_labels_of_its_edges(counter: graph.Graph) -> None:
    successors = counter.successors()
    assert sum(map(len, successors.values())) == len(counter.edges)
    assert all(counter.enabled(state) == {label for label, _ in successors[state]} for state in range(9))


def test_the_order_of_the_actions_does_not_change_the_dump(counter: graph.Graph) -> None:
    other = graph.dump_ground(graph.ground("Counter", CONFIG, dict(reversed(ACTIONS.items()))), LIBRARIES)
    assert other == counter


def test_the_listed_actions_make_exactly_the_moves_of_next(counter: graph.Graph) -> None:
    made = graph.ground("Counter", CONFIG, ACTIONS)
    assert graph.dump_moves(made, "Next", LIBRARIES) == counter.moves
    assert len(counter.moves) == len({(source, target) for source, _, target in counter.edges})
    assert graph.dump_moves(made, "TakeAny", LIBRARIES) < counter.moves


def test_a_complete_list_of_actions_is_confirmed() -> None:
    outcome = graph.check_ground_is_complete(graph.ground("Counter", CONFIG, ACTIONS), "Next", LIBRARIES)
    assert outcome.verdict is Verdict.HELD


def test_an_action_missing_from_the_list_is_found() -> None:
    without = {**ACTIONS, "Add": ACTIONS["Add"][:-1]}
    outcome = graph.check_ground_is_complete(graph.ground("Counter", CONFIG, without), "Next", LIBRARIES)
    assert outcome.violated == "GroundCovers"
    assert outcome.trace is not None
    assert outcome.trace.steps[-1].state["log"] == (Function({"node": ModelValue("n2"), "by": 2}),)


def test_a_listed_action_that_next_never_takes_is_found() -> None:
    outcome = graph.check_ground_is_complete(graph.ground("Counter", CONFIG, ACTIONS), "TakeAny", LIBRARIES)
    assert outcome.violated == "NextCovers"
    assert outcome.trace is not None
    assert len(outcome.trace) == 3, "a node takes the lock, then adds or drops it"


def test_an_edge_of_two_actions_has_both_labels_and_self_loops_are_kept(tmp_path: Path) -> None:
    source = """---- MODULE Two ----
EXTENDS Naturals
VARIABLE x
Init == x = 0
Step(n) == x' = n
Jump == x' = 1
====
"""
    actions: dict[str, list[tuple[str, ...]]] = {"Step": [("0",), ("1",)], "Jump": [()]}
    made = graph.ground("Two", "INIT Init", actions)
    assert made.labels["Ground_1"] == ("Step", (1,))
    assert "Ground_1 == TRUE /\\ Step(1)" in made.source
    (tmp_path / "Two.tla").write_text(source, encoding="utf-8")
    found = graph.dump_ground(graph.ground("Two", "", actions), (tmp_path,))
    assert found.edges == {
        (source, label, target)
        for source in (0, 1)
        for label, target in ((("Step", (0,)), 0), (("Step", (1,)), 1), (("Jump", ()), 1))
    }


def test_a_truncated_dump_is_rejected() -> None:
    with pytest.raises(TlcError, match="not written to its end"):
        graph.read_dot('strict digraph {\n1 [label="x = 1",style = filled]\n')


def test_a_deadlock_does_not_stop_a_dump_and_is_reported_on_request() -> None:
    text = config.parse(CONFIG).behaviour("Init", "TakeAny").text()
    assert run(Job("Counter", text, LIBRARIES, deadlock=True)).violated == DEADLOCK
    stuck = graph.dump_ground(graph.ground("Counter", text, {"Take": ACTIONS["Take"]}), LIBRARIES)
    assert (len(stuck.states), len(stuck.edges)) == (3, 2)

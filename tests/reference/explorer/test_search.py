"""The explorer on the flush model finds as many states as TLC, and shortest counterexamples."""

import gc
from dataclasses import replace
from itertools import pairwise

import pytest

from mqproof.reference import flush
from mqproof.reference.explorer.search import explore
from mqproof.reference.flush import Config


def test_the_explorer_finds_as_many_states_as_tlc_and_no_violation() -> None:
    exploration = explore(flush.MODEL, Config())
    assert exploration.violation is None
    # TLC's numbers, recorded in spec/models.toml.
    assert (len(exploration.parents), exploration.depth) == (32782, 21)


def test_a_path_leads_by_enabled_actions_from_an_initial_state_to_the_state() -> None:
    config = Config(messages=("m1",))
    exploration = explore(flush.MODEL, config)
    last = list(exploration.parents)[-1]
    path = exploration.path(last)
    assert path[0].action == "Init"
    for before, step in pairwise(path):
        action = flush.ACTIONS[step.action]
        assert action.apply(config, before.state, *step.parameters) == step.state
    assert path[-1].state == last


def test_exploration_stops_at_the_maximum_number_of_states() -> None:
    with pytest.raises(MemoryError, match="more than 100 states"):
        explore(flush.MODEL, Config(), states_max=100)


def test_exploration_continues_after_a_violation_on_request() -> None:
    model = replace(flush.MODEL, invariants={"Never": lambda _config, state: state.phase == "running"})
    stopped = explore(model, Config(messages=("m1",)))
    complete = explore(model, Config(messages=("m1",)), stop_at_violation=False)
    assert stopped.violation is not None
    assert complete.violation is not None
    assert [step.action for step in stopped.violation.path] == ["Init", "Shutdown"]
    assert len(stopped.parents) < len(complete.parents) == 986


def test_steps_are_counted_per_action_with_and_without_choices() -> None:
    config = Config(messages=("m1",))
    with_choices = explore(flush.MODEL, config)
    without_choices = explore(flush.MODEL.exhaustive(), config)
    assert (with_choices.edges, set(with_choices.taken)) == (1741, set(flush.ACTIONS))
    assert all(with_choices.taken.values())
    assert without_choices.taken == with_choices.taken


def test_the_garbage_collector_is_enabled_after_an_exploration() -> None:
    explore(flush.MODEL, Config(messages=("m1",)))
    assert gc.isenabled()

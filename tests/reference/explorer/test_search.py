"""The explorer on the flush model: the same numbers as TLC's, and shortest counterexamples."""

import gc
from dataclasses import replace
from itertools import pairwise

import pytest

from mqproof.reference import flush
from mqproof.reference.explorer.search import explore
from mqproof.reference.flush import Config


def test_all_states_of_the_smoke_configuration_are_found_and_hold() -> None:
    exploration = explore(flush.MODEL, Config())
    assert exploration.violation is None
    # The numbers counted by TLC, as recorded in spec/models.toml.
    assert (len(exploration.parents), exploration.depth) == (32782, 21)


def test_a_path_leads_from_init_to_the_state_by_enabled_actions() -> None:
    config = Config(messages=("m1",))
    exploration = explore(flush.MODEL, config)
    last = list(exploration.parents)[-1]
    path = exploration.path(last)
    assert path[0].action == "Init"
    for before, step in pairwise(path):
        action = flush.ACTIONS[step.action]
        assert action.apply(config, before.state, *step.parameters) == step.state
    assert path[-1].state == last


def test_too_many_states_are_refused() -> None:
    with pytest.raises(MemoryError, match="more than 100 states"):
        explore(flush.MODEL, Config(), states_max=100)


def test_exploration_continues_after_a_violation_if_requested() -> None:
    model = replace(flush.MODEL, invariants={"Never": lambda _config, state: state.phase == "running"})
    stopped = explore(model, Config(messages=("m1",)))
    whole = explore(model, Config(messages=("m1",)), stop_at_violation=False)
    assert stopped.violation is not None
    assert whole.violation is not None
    assert [step.action for step in stopped.violation.path] == ["Init", "Shutdown"]
    assert len(stopped.parents) < len(whole.parents) == 986


def test_steps_are_counted_by_action_with_choices_and_without() -> None:
    config = Config(messages=("m1",))
    chosen = explore(flush.MODEL, config)
    tried = explore(flush.MODEL.exhaustive(), config)
    assert (chosen.edges, set(chosen.taken)) == (1741, set(flush.ACTIONS))
    assert all(chosen.taken.values())
    assert tried.taken == chosen.taken


def test_the_garbage_collector_works_again_after_an_exploration() -> None:
    explore(flush.MODEL, Config(messages=("m1",)))
    assert gc.isenabled()

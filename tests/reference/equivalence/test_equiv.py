"""The comparison with TLC's state graph: equal for the flush model, and able to detect a difference."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof import reference, spec
from mqproof.reference import flush, mutants
from mqproof.reference.equivalence.equiv import Equivalence, ForgottenStepError, compare
from mqproof.reference.flush import State
from mqproof.reference.model import Action, Model
from mqproof.reference.models import MODELS

TLA = Path(spec.__file__).parent / "tla"
SMALL = """
CONSTANTS
    Messages = {"m1"}
    Queues = {"q0"}
    FlushModes = {"SYNC_FLUSH", "ASYNC_FLUSH"}
    MaxCrashes = 1
"""


TINY = SMALL.replace(', "ASYNC_FLUSH"', "")
"""A configuration with one flush mode, for the differences."""


def _compare(model: Model[flush.Config, State], config: str = TINY) -> Equivalence[State]:
    return compare(model, "MCFlush", config, (TLA,), next_name="MCNext")


def test_the_flush_model_has_the_same_state_graph_as_tlc() -> None:
    equivalence = _compare(flush.MODEL, SMALL)
    assert equivalence.equal
    assert (equivalence.states, equivalence.steps) == (986, 1741)
    assert equivalence.disabled > equivalence.steps


def test_a_difference_is_shown_with_the_shortest_path_to_it() -> None:
    mutant = mutants.MUTANTS["AckBeforeFlush"]
    actions = {
        **flush.ACTIONS,
        "AnswerOk": Action("AnswerOk", mutant.apply, flush.ACTIONS["AnswerOk"].domain),
    }
    difference = _compare(replace(flush.MODEL, actions=actions)).difference
    assert difference is not None
    assert [step.action for step in difference.path] == ["Init", "AppendRecord"]
    assert difference.only_reference == ("AnswerOk('m1',)",)
    assert difference.only_tlc == ()


def test_a_model_without_one_of_the_actions_is_rejected() -> None:
    actions = {name: action for name, action in flush.ACTIONS.items() if name != "Dispatch"}
    with pytest.raises(ForgottenStepError, match="lacks a step"):
        _compare(replace(flush.MODEL, actions=actions))


def test_each_model_has_a_tla_module_and_a_python_module_of_its_name() -> None:
    for name in MODELS:
        assert (TLA / f"{name}.tla").exists()
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        assert (Path(reference.__file__).parent / f"{snake}.py").exists()


def test_choices_that_omit_a_possible_step_are_rejected() -> None:
    crash = replace(flush.ACTIONS["OsCrash"], choices=lambda _config, _state: [(0, False, (0,))])
    with pytest.raises(ForgottenStepError, match="wrong choices of OsCrash"):
        _compare(replace(flush.MODEL, actions={**flush.ACTIONS, "OsCrash": crash}))

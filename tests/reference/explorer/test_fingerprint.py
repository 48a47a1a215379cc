"""Equal states have equal fingerprints in every process; different states have different fingerprints."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from mqproof.reference import flush
from mqproof.reference.constants import constants
from mqproof.reference.explorer.fingerprint import fingerprint, values_of
from mqproof.reference.explorer.search import explore
from mqproof.reference.explorer.survey import bounded_models
from mqproof.reference.models import MODELS
from mqproof.spec.model_file import load


class Message(NamedTuple):
    kind: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Network:
    messages: frozenset[Any]


def test_different_states_have_different_fingerprints() -> None:
    states = explore(flush.MODEL, flush.Config(messages=("m1",))).parents
    assert len({fingerprint(state) for state in states}) == len(states) == 986


def test_the_fingerprint_of_a_set_does_not_depend_on_the_order_of_its_elements() -> None:
    messages = [Message("vote", None), Message("vote", 1), Message("vote", frozenset({"n1", "n2"}))]
    first = fingerprint(Network(frozenset(messages)))
    assert first == fingerprint(Network(frozenset(reversed(messages))))
    assert first != fingerprint(Network(frozenset(messages[:2])))


def test_values_that_are_equal_in_python_have_equal_fingerprints() -> None:
    assert fingerprint(Network(frozenset({True}))) == fingerprint(Network(frozenset({1})))
    assert fingerprint(Network(frozenset({Message("a", 1)}))) == fingerprint(Network(frozenset({("a", 1)})))


def test_fingerprints_are_equal_in_processes_with_different_hash_seeds() -> None:
    program = (
        "from mqproof.reference import flush; from mqproof.reference.explorer.fingerprint import fingerprint;"
        "print([fingerprint(s) for s in flush.initial(flush.Config())])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{[fingerprint(state) for state in flush.initial(flush.Config())]}\n"}


def test_a_value_of_an_unsupported_type_is_rejected() -> None:
    with pytest.raises(TypeError, match="a state may not hold a float"):
        fingerprint(Network(frozenset({0.5})))


def test_a_state_may_be_a_named_tuple() -> None:
    states = [Message("vote", 1), Message("vote", 2), Message("append", 1), Message("append", 2)]
    assert len({fingerprint(state) for state in states}) == len(states)
    values = values_of(Message)(states[0])
    assert (type(values), Message(*values)) == (tuple, states[0])


@pytest.mark.parametrize("name", MODELS)
def test_states_of_each_model_have_distinct_fingerprints_and_can_be_rebuilt(name: str) -> None:
    model = MODELS[name]
    questions = bounded_models(load(), name, "smoke")
    assert questions, f"{name} has no smoke run"
    config = model.from_constants(constants(questions[0].config.text()))
    steps = model.under(config)
    known = dict.fromkeys(model.initial(config))
    frontier = list(known)
    while frontier and len(known) < 300:
        frontier = [after for state in frontier for _, _, after in steps(state) if after not in known]
        known |= dict.fromkeys(frontier)
    assert len({fingerprint(state) for state in known}) == len(known)
    kind: Any = type(next(iter(known)))
    assert all(kind(*values_of(kind)(state)) == state for state in known)

"""Behaviours that end with an outcome of a condition.

Each one ends as recorded, and none of a small model is missing. Our code reaches every outcome that can be
requested from it, without a difference.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from mqproof.conformance.behaviours.conditions import Conditions, Outcome
from mqproof.conformance.behaviours.corpus import bounded, read_lines
from mqproof.conformance.behaviours.outcomes import behaviours, files, lines
from mqproof.conformance.behaviours.replay import Replayed, replay
from mqproof.conformance.behaviours.subject import ReferenceTarget
from mqproof.conformance.subjects.stepped.model_targets import resolve
from mqproof.impl.dledger import rules as election_rules
from mqproof.impl.replication import rules as replication_rules
from mqproof.impl.runtime.security.peer_network import PeerNetwork
from mqproof.impl.store.message_store import MessageStore
from mqproof.reference.models import MODELS

REACHED = {"Flush": 79, "Routing": 104, "Replication": 138, "Election": 226}
"""The number of outcomes that our code reaches, by model; the others cannot be requested."""
SMALL_STATES_MAX = 5_000


class Watched(ReferenceTarget):
    """The reference, which also reports the outcomes that an action reaches in the last state."""

    def __init__(self, model: str, conditions: Conditions[Any, Any]) -> None:
        super().__init__(model)
        self._conditions = conditions

    def ends_with(self, label: Any, wanted: tuple[Outcome, ...]) -> set[Outcome]:
        name, parameters = label
        given = self._parameters[name, repr(list(parameters))]
        return set(self._conditions.reached(name, self._config, self._state, given, wanted))


@pytest.mark.parametrize("model", MODELS)
def test_each_behaviour_ends_with_its_recorded_outcomes(model: str) -> None:
    conditions = Conditions(MODELS[model])
    for script in behaviours(model):
        target = Watched(model, conditions)
        target.open(script)
        tried = script.disabled or script.steps[-1:]
        for at in range(len(script.steps) - (not script.disabled)):
            target.take(at)
        found = target.ends_with((tried[0].action, tried[0].parameters), script.outcomes)
        assert found == set(script.outcomes), (model, script.steps)


@pytest.mark.parametrize("model", MODELS)
def test_the_reference_completes_every_behaviour(model: str) -> None:
    scripts = list(behaviours(model))
    seen = replay(lambda: ReferenceTarget(model), scripts)
    assert (seen.failures, seen.impossible, seen.unasked) == ([], {}, set())
    assert seen.outcomes == {outcome for script in scripts for outcome in script.outcomes}


def kept(model: str) -> dict[str, list[str]]:
    return {file.name.partition(".")[0]: read_lines(file) for file in files(model)}


DEEP = pytest.mark.deep("4 CPU seconds; those of Replication are made in every run")


@pytest.mark.parametrize("model", ["Replication", pytest.param("Election", marks=DEEP)])
def test_outcomes_of_small_configurations_match_the_model(model: str) -> None:
    made = dict(lines(model, SMALL_STATES_MAX))
    assert made
    assert made.items() <= kept(model).items(), "mqproof behaviours --outcomes --out ..."


@pytest.mark.deep("makes the outcomes of all configurations; the small ones are made in every run")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("model", MODELS)
def test_all_outcomes_match_the_model(model: str) -> None:
    assert dict(lines(model)) == kept(model)


def on_ours(model: str) -> Replayed:
    make = resolve("impl", model)
    assert make is not None
    return replay(make, behaviours(model))


@pytest.mark.parametrize("model", REACHED)
def test_our_code_reaches_the_outcomes_without_a_difference(model: str) -> None:
    seen = on_ours(model)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.outcomes) == REACHED[model]
    assert seen.outcomes | seen.unasked == {o for script in behaviours(model) for o in script.outcomes}


@pytest.mark.parametrize(
    ("model", "where", "name", "wrong", "action"),
    [
        ("Flush", MessageStore, "confirm_offset", lambda store: store.log_end, "Dispatch"),
        ("Replication", replication_rules, "merged_offset", lambda own, _, **__: own or 0, "SyncOffsets"),
        (
            "Replication",
            PeerNetwork,
            "_challenge",
            lambda _, end, allowed: allowed(end),
            "StrangerAcknowledges",
        ),
        ("Election", election_rules, "may_commit", lambda *_: True, "AdvanceCommit"),
    ],
)
def test_a_missing_guard_is_detected(
    monkeypatch: pytest.MonkeyPatch, model: str, where: object, name: str, wrong: object, action: str
) -> None:
    """Without the guard, an action has a wrong effect.

    A record is dispatched before it is durable, a slave takes no offsets, a stranger counts as a slave, an
    older term's entry counts.
    """
    monkeypatch.setattr(where, name, wrong)
    failures = on_ours(model).failures
    failed = [f"{[step.action for step in each.script.steps][each.at :]} {each.why}" for each in failures]
    assert any(action in each for each in failed)


def outcomes_at(model: str, action: str, changes: Mapping[str, Any], *parameters: Any) -> set[Outcome]:
    """Return the outcomes that an action reaches in the smoke model's first state with these changes."""
    config = bounded(model)
    conditions = Conditions(MODELS[model])
    wanted = set(conditions.outcomes(action))
    (first, *_) = MODELS[model].initial(config)
    state = MODELS[model].actions["AppendRecord"].apply(config, first, "m1", "q0") if changes else first
    return set(conditions.reached(action, config, state, parameters, wanted))


def test_a_condition_is_reached_if_it_decides_the_result() -> None:
    """The answer waits for its fsync; the stored message and the running broker do not decide."""
    assert outcomes_at("Flush", "AnswerOk", {"log": 1}, "m1") == {
        Outcome("AnswerOk", "may_answer(state, message)", False),
        Outcome("AnswerOk", "may_answer: state.mode != SYNC_FLUSH", False),
        Outcome("AnswerOk", "may_answer: position(state, message) <= state.flushed", False),
    }


def test_a_condition_without_a_value_decides_nothing() -> None:
    """A message that was never sent has no position."""
    assert outcomes_at("Flush", "AnswerOk", {}, "m1") == set()

"""Behaviours of Selection on our broker and consumer: no difference; injected defects differ."""

from typing import Any

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.mutants import offsets, workload
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, scripts

STATES, STEPS = 3369, 12_405
EVERY = 25


def _hash_only(_: Any) -> Any:
    return lambda _stored: True


DEFECTS = [
    *(offsets.MUTANTS[name] for name in ("tags-ignored", "first-tag-only", "rest-passed-over")),
    *(offsets.MUTANTS[name] for name in ("unmatched-asked-again", "one-too-many")),
    workload.MUTANTS["wanted-messages-dropped"],
    Mutant(
        "tags-not-compared",
        "a consumer accepts a message whose tag has the hash code of another one",
        "DELIV-10",
        "mqproof.impl.client.consuming.group_requests:_filter",
        _hash_only,
    ),
]


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    """Return a sample with all behaviours that end with disabled actions, so that each can be attempted."""
    whole = scripts("Selection")
    ends = [script for script in whole if script.disabled_at == len(script.steps)]
    return [*whole[::EVERY], *ends, *behaviours("Selection")]


def test_our_broker_and_consumer_follow_the_model(sample: list[Script]) -> None:
    seen = on_ours("Selection", sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 600
    assert seen.actions.keys() == MODELS["Selection"].actions.keys()
    assert {"Subscribe", "Pull", "Answer"} <= (+seen.refused).keys()
    assert set(seen.impossible) <= {"Answer"}


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
def test_our_code_takes_nearly_every_step_of_the_model() -> None:
    """Count the reached states and steps.

    The remaining steps follow an answer that examined fewer messages than the broker had read before, or more
    after its response was full.
    """
    seen = on_ours("Selection", scripts("Selection"))
    assert not seen.failures
    assert STATES - 150 < len(seen.states) <= STATES
    assert 11_500 < len(seen.steps) < STEPS


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_of_the_filter_is_detected(defect: Mutant, sample: list[Script]) -> None:
    with injected(defect):
        assert on_ours("Selection", sample).failures

"""Behaviours of Timers on our broker: no difference; injected defects differ.

The broker restarts, or a slave takes over, between any two steps.
"""

from typing import Any

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.mutants import timers
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.impl.broker.timers import Timers
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, sample, scripts

STATES, STEPS = 9671, 42_173

_last_point, _write_point = Timers._last_point, Timers._write_point


@pytest.fixture(scope="module")
def some() -> list[Script]:
    return sample("Timers", every=250, every_tried=5)


def test_our_broker_follows_the_model(some: list[Script]) -> None:
    seen = on_ours("Timers", some)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 800
    assert seen.actions.keys() == MODELS["Timers"].actions.keys()
    assert (+seen.refused).keys() == {"Send", "Deliver", "Recall", "Delete"}
    assert set(seen.impossible) <= {"Delete", "Crash", "Recall"}


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_our_broker_takes_most_steps_of_the_model() -> None:
    """Count the reached states and steps.

    The others need the loss of what a start flushes, or the recall of a message that is due.
    """
    seen = on_ours("Timers", scripts("Timers"))
    assert not seen.failures
    assert 5900 < len(seen.states) <= STATES
    assert 21_500 < len(seen.steps) < STEPS


@pytest.mark.parametrize("defect", timers.MUTANTS.values(), ids=lambda defect: defect.name)
def test_a_defect_of_the_broker_is_detected(defect: Mutant, some: list[Script]) -> None:
    with injected(defect):
        assert on_ours("Timers", some).failures


def test_a_point_that_outlives_its_log_is_detected(
    some: list[Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep the point in a file of its own, which a crash that cuts the log does not cut (issue 10668)."""

    async def written(broker: Timers) -> None:
        _disk(broker).point = broker._table.point(broker._store.now_ms(), broker._store.next_commit_offset)
        await _write_point(broker)

    monkeypatch.setattr(Timers, "_write_point", written)
    monkeypatch.setattr(
        Timers, "_last_point", lambda broker: getattr(_disk(broker), "point", None) or _last_point(broker)
    )
    assert on_ours("Timers", some).failures


def _disk(broker: Timers) -> Any:
    return broker._store._runtime.disk

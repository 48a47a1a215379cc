"""Behaviours of QueueChoice on our producer: any difference counts, and planted defects differ."""

import itertools

import pytest

from conformance.behaviours.corpus import Script, file_of, read, read_lines
from conformance.behaviours.outcomes import behaviours
from conformance.behaviours.replay import Replayed, replay
from conformance.behaviours.target import resolve
from conformance.planting import planted
from conformance.targets.producers.mutants import MUTANTS, STEPPED
from reference.models import MODELS

STATES, STEPS = 11_598, 80_982
EVERY = 150


def scripts(every: int = EVERY) -> list[Script]:
    return list(itertools.islice(read(read_lines(file_of("QueueChoice")), "QueueChoice"), 0, None, every))


def on_ours(chosen: list[Script]) -> Replayed:
    make = resolve("impl", "QueueChoice")
    assert make is not None
    return replay(make, chosen, failures_max=1)


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    """With the behaviours of outcomes, some of which have two queues of a broker."""
    return [*scripts(), *behaviours("QueueChoice")]


def test_our_producer_does_what_the_model_does(sample: list[Script]) -> None:
    seen = on_ours(sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1000
    assert seen.actions.keys() == MODELS["QueueChoice"].actions.keys()
    assert {"Elsewhere", "RouteChanges", "Tick"} <= (+seen.refused).keys()
    assert not seen.impossible


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_it_takes_every_step_of_the_model() -> None:
    seen = on_ours(scripts(1))
    assert (len(seen.failures), len(seen.impossible)) == (0, 0)
    assert (len(seen.states), len(seen.steps)) == (STATES, STEPS)


@pytest.mark.parametrize("name", [*MUTANTS, *STEPPED])
def test_a_defect_of_the_queue_choice_is_seen(name: str, sample: list[Script]) -> None:
    with planted({**MUTANTS, **STEPPED}[name]):
        assert on_ours(sample).failures

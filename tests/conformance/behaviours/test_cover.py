"""A small number of paths through a state graph: each one is valid, and together they take every step."""

import pytest

from mqproof.conformance.behaviours.corpus import configuration
from mqproof.conformance.behaviours.cover import Path, Step, Steps, cover, graph
from mqproof.reference.constants import constants
from mqproof.reference.models import MODELS


def _steps(*edges: tuple[int, int], states: int, initial: tuple[int, ...] = (0,)) -> Steps[str]:
    out: list[list[Step]] = [[] for _ in range(states)]
    for number, (source, target) in enumerate(edges):
        out[source].append(Step((f"a{number}", ()), target))
    return Steps(tuple(map(str, range(states))), initial, tuple(map(tuple, out)), len(edges))


def _taken(steps: Steps[str], paths: tuple[Path, ...]) -> set[tuple[int, Step]]:
    taken = set()
    for path in paths:
        assert path.initial in steps.initial
        at = path.initial
        for step in path.steps:
            assert step in steps.out[at]
            taken.add((at, step))
            at = step.target
    return taken


def test_a_cycle_becomes_one_path() -> None:
    steps = _steps((0, 1), (1, 2), (2, 0), states=3)
    paths = cover(steps)
    assert len(paths) == 1
    assert len(_taken(steps, paths)) == 3


def test_a_path_takes_a_remaining_step_near_its_end() -> None:
    steps = _steps((0, 1), (1, 0), (0, 2), (2, 0), (2, 2), states=3)
    assert len(cover(steps)) == 1


def test_paths_start_from_every_initial_state() -> None:
    steps = _steps((0, 2), (1, 2), states=3, initial=(0, 1))
    paths = cover(steps)
    assert {path.initial for path in paths} == {0, 1}


@pytest.mark.parametrize("model", ["Delivery", "Election", "Routing"])
def test_the_paths_take_every_step_of_a_model(model: str) -> None:
    reference = MODELS[model]
    steps = graph(reference, reference.from_constants(constants(configuration(model))))
    assert len(_taken(steps, cover(steps))) == steps.count

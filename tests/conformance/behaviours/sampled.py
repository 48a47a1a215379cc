"""Behaviours of the corpus, and the results of replaying them on our code."""

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

from mqproof.conformance.behaviours.corpus import Script, Stimulus, bounded, file_of, read, read_lines
from mqproof.conformance.behaviours.json_values import plain
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.behaviours.replay import Replayed, replay
from mqproof.conformance.subjects.stepped.model_targets import resolve
from mqproof.reference.model import Model
from mqproof.reference.models import MODELS

FAULTS = {"Crash", "MemberEnds", "Lose"}
FAULT_CHANCE = 0.15


def scripts(model: str, every: int = 1) -> list[Script]:
    return list(itertools.islice(read(read_lines(file_of(model)), model), 0, None, every))


def sample(model: str, every: int, every_tried: int) -> list[Script]:
    """Return some behaviours, some of those with disabled actions, and those that lead to outcomes."""
    head, steps, *lines = read_lines(file_of(model))
    tried = [line for line in lines if '"disabled"' in line]
    return [*read([head, steps, *tried[::every_tried], *lines[::every]], model), *behaviours(model)]


def drawn(model: str, configuration: str, count: int, length: int = 45) -> Iterator[Script]:
    """Draw behaviours of a configuration that is too large to be covered. Faults are drawn less often."""
    reference, config, chance = MODELS[model], bounded(model, configuration), random.Random(0)
    for _ in range(count):
        state = chance.choice(reference.initial(config))
        initial, steps = plain(state), list[Stimulus]()
        while len(steps) < length and (enabled := _enabled(reference, config, state)):
            names = [name for name in enabled if name not in FAULTS or chance.random() < FAULT_CHANCE]
            name = chance.choice(names or list(enabled))
            parameters, state = chance.choice(enabled[name])
            steps.append(Stimulus(name, tuple(plain(parameters)), plain(state)))
        yield Script(initial, tuple(steps), configuration=configuration)


def _enabled(reference: Model[Any, Any], config: Any, state: Any) -> dict[str, list[tuple[Any, Any]]]:
    found: dict[str, list[tuple[Any, Any]]] = {}
    for name, action in reference.actions.items():
        choices = action.choices(config, state) if action.choices else action.domain(config)
        after = ((parameters, action.apply(config, state, *parameters)) for parameters in choices)
        if steps := [(parameters, end) for parameters, end in after if end is not None]:
            found[name] = steps
    return found


def on_ours(model: str, chosen: Iterable[Script], failures_max: int = 1) -> Replayed:
    make = resolve("impl", model)
    assert make is not None
    return replay(make, chosen, failures_max=failures_max)

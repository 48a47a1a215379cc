"""Behaviours of the corpus, and the results of replaying them on our code."""

import itertools
from collections.abc import Iterable

from mqproof.conformance.behaviours.corpus import Script, file_of, read, read_lines
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.behaviours.replay import Replayed, replay
from mqproof.conformance.subjects.stepped.model_targets import resolve


def scripts(model: str, every: int = 1) -> list[Script]:
    return list(itertools.islice(read(read_lines(file_of(model)), model), 0, None, every))


def sample(model: str, every: int, every_tried: int) -> list[Script]:
    """Return some behaviours, some of those with disabled actions, and those that lead to outcomes."""
    head, *lines = read_lines(file_of(model))
    tried = [line for line in lines if '"disabled"' in line]
    return [*read([head, *lines[::every], *tried[::every_tried]], model), *behaviours(model)]


def on_ours(model: str, chosen: Iterable[Script], failures_max: int = 1) -> Replayed:
    make = resolve("impl", model)
    assert make is not None
    return replay(make, chosen, failures_max=failures_max)

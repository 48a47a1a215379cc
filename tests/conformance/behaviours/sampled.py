"""Behaviours of the corpus, and the results of replaying them on our code."""

import itertools
from collections.abc import Iterable

from mqproof.conformance.behaviours.corpus import Script, file_of, read, read_lines
from mqproof.conformance.behaviours.replay import Replayed, replay
from mqproof.conformance.subjects.stepped.model_targets import resolve


def scripts(model: str, every: int = 1) -> list[Script]:
    return list(itertools.islice(read(read_lines(file_of(model)), model), 0, None, every))


def on_ours(model: str, chosen: Iterable[Script], failures_max: int = 1) -> Replayed:
    make = resolve("impl", model)
    assert make is not None
    return replay(make, chosen, failures_max=failures_max)

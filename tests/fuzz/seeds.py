"""The seeds of a simulation. Every test run plays the first part; the deep profile plays all.

They are divided into parts, so that several processes can play them.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from mqproof.fuzz.target import Finding

SEEDS: Final = 25
SEEDS_DEEP: Final = 10_000
SEEDS_DEEP_OF_CLIENTS: Final = 1000
"""Of targets with many clients, whose programs take longer."""
_PART: Final = 25
_PART_DEEP: Final = 200
_DEEP: Final = (
    pytest.mark.deep("many seeds; the first ones are played in every run"),
    pytest.mark.timeout(3600),
)


UNBEGUN: Final = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
"""Ignores warnings about coroutines that a killed process had created but not started."""


def parts() -> list[Any]:
    """Return ranges of seeds for `pytest.mark.parametrize`."""
    return [*(range(first, first + _PART) for first in range(0, SEEDS, _PART)), *deep_parts(SEEDS)]


def deep_parts(begin: int, end: int = SEEDS_DEEP) -> list[Any]:
    """Return the ranges that only the deep profile plays."""
    return [
        pytest.param(range(first, first + _PART_DEEP), marks=_DEEP) for first in range(begin, end, _PART_DEEP)
    ]


def hold(play: Callable[[int], Counter[str]], seeds: Iterable[int]) -> Counter[str]:
    """Play the seeds and return how often each invariant was tested. A finding fails the test."""
    checked: Counter[str] = Counter()
    for seed in seeds:
        try:
            checked.update(play(seed))
        except Finding as finding:
            pytest.fail(f"seed {seed}: {finding.invariant}: {finding}")
    return checked

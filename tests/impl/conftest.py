"""Ends a test of `impl` that computes without end: it fails, instead of the whole run."""

import math
from collections.abc import Generator
from contextlib import nullcontext
from typing import Final

import pytest

from mqproof.conformance.engine.time_bounds import bounded

_CPU_S: Final = 20.0
"""Several times what any test here needs, except the deep ones; it does not depend on the machine's load."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    is_deep = item.get_closest_marker("deep") is not None
    with nullcontext() if is_deep else bounded(_CPU_S, math.inf):
        yield

"""Ends a test of the store that computes without end: it fails, instead of the whole run."""

import math
from collections.abc import Generator
from typing import Final

import pytest

from mqproof.conformance.engine.time_bounds import bounded

_CPU_S: Final = 20.0
"""Several times what any test here needs; processor time does not depend on the load of the machine."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    with bounded(_CPU_S, math.inf):
        yield

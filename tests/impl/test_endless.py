"""Tests the bound on the processor time of each test of `impl`."""

import pytest

from mqproof.conformance.engine.targets import EndlessError
from mqproof.conformance.engine.time_bounds import OutOfTimeInterrupt
from tests.impl import conftest


def test_a_test_that_computes_without_end_fails(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(conftest, "_CPU_S", 0.02)
    call = conftest.pytest_runtest_call(request.node)
    next(call)
    with pytest.raises(OutOfTimeInterrupt) as caught:
        _compute_without_end()
    with pytest.raises(EndlessError):
        call.throw(caught.value)


def _compute_without_end() -> None:
    while True:
        pass

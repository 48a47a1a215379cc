"""Tests that repeated log lines are limited to one for each kind and interval."""

import asyncio
import logging

import pytest

from mqproof.impl.runtime import notices
from mqproof.impl.runtime.notices import Notices
from mqproof.impl.runtime.simulated_loop import run_simulated

LOG = logging.getLogger("test")


def test_a_kind_is_logged_once_per_interval_with_the_number_of_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        limited = Notices(LOG, 10.0)
        for _ in range(3):
            limited.warn("a", "a happened")
        limited.warn("b", "b happened")
        await asyncio.sleep(10)
        limited.warn("a", "a happened")

    run_simulated(main())
    again = "a happened (2 more like this since the last line)"
    assert caplog.messages == ["a happened", "b happened", again]


def test_the_number_of_kinds_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> int:
        limited = Notices(LOG)
        for kind in range(10):
            limited.warn(str(kind), "text")
        return len(limited._kinds)

    monkeypatch.setattr(notices, "_KINDS_MAX", 3)
    assert run_simulated(main()) == 3

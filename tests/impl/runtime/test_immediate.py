"""Tests that a coroutine runs without an event loop, and that one that would wait is a defect."""

import asyncio

import pytest

from mqproof.impl.runtime.immediate import result_of


def test_a_coroutine_that_never_suspends_returns_its_result() -> None:
    async def answer() -> int:
        return 42

    assert result_of(answer()) == 42


def test_a_coroutine_that_waits_for_the_event_loop_is_a_defect() -> None:
    async def wait() -> None:
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="waits for the event loop"):
        result_of(wait())

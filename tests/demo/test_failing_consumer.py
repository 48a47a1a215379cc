"""Tests the listener that makes the broker redeliver messages."""

import asyncio
from types import SimpleNamespace
from typing import Any

from mqproof.demo.failing_consumer import Listener
from mqproof.impl.client.model import RetryLater


def _message(reconsume_times: int) -> Any:
    return SimpleNamespace(reconsume_times=reconsume_times)


def test_every_tenth_message_fails_once_and_is_counted_when_it_is_redelivered() -> None:
    async def play() -> tuple[list[object], bool, bool]:
        listener = Listener(20)
        outcomes: list[object] = [await listener([_message(0)]) for _ in range(20)]
        before = listener.done.is_set()
        for _ in range(2):
            await listener([_message(1)])
        return outcomes, before, listener.done.is_set()

    outcomes, before, after = asyncio.run(play())
    failed = [number for number, outcome in enumerate(outcomes, start=1) if isinstance(outcome, RetryLater)]
    assert failed == [10, 20]
    assert not before
    assert after

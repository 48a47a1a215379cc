"""Tests the locks of a client with a scripted broker: how long they count, and what a failure changes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import cast

import pytest

from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.locks import QueueLocks
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.runtime.simulated_loop import run_simulated

A0, A1, B0 = (MessageQueue("T", *each) for each in (("a", 0), ("a", 1), ("b", 0)))


class Broker:
    """Locks the queues that are free. A broker name in `away` does not respond."""

    def __init__(self) -> None:
        self.free = {A0, A1, B0}
        self.away: set[str] = set()
        self.asked: list[tuple[str, list[MessageQueue]]] = []

    async def lock(self, queues: Collection[MessageQueue]) -> set[MessageQueue]:
        await self._respond("lock", queues)
        return set(queues) & self.free

    async def unlock(self, queues: Collection[MessageQueue]) -> None:
        await self._respond("unlock", queues)

    async def _respond(self, what: str, queues: Collection[MessageQueue]) -> None:
        self.asked.append((what, sorted(queues)))
        await asyncio.sleep(0.5)
        if {queue.broker_name for queue in queues} & self.away:
            raise ClientError("silent")


def play(scenario: Callable[[QueueLocks, Broker], Awaitable[None]]) -> None:
    async def main() -> None:
        broker = Broker()
        await scenario(QueueLocks(cast(GroupRequests, broker)), broker)

    run_simulated(main())


def test_a_lock_counts_for_30_seconds_from_its_request() -> None:
    async def scenario(locks: QueueLocks, _broker: Broker) -> None:
        assert not locks.holds(A0)
        assert locks.confirmed_s(A0) is None
        await asyncio.sleep(8)
        assert await locks.lock(A0)
        assert locks.confirmed_s(A0) == 8
        await asyncio.sleep(29.25)
        assert locks.holds(A0)
        await asyncio.sleep(0.25)
        assert not locks.holds(A0)

    play(scenario)


def test_a_queue_that_is_locked_elsewhere_or_whose_broker_is_silent_is_not_locked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(locks: QueueLocks, broker: Broker) -> None:
        broker.free = {B0}
        assert not await locks.lock(A0)
        assert caplog.messages == []
        broker.away = {"b"}
        assert not await locks.lock(B0)
        assert not locks.holds(B0)

    with caplog.at_level(logging.INFO):
        play(scenario)
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("INFO", "a queue was not locked: silent")
    ]


def test_locks_are_renewed_broker_by_broker_and_only_a_refusal_loses_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(locks: QueueLocks, broker: Broker) -> None:
        assert await locks.renew() == []
        for queue in (A1, B0, A0):
            await locks.lock(queue)
        broker.asked.clear()
        broker.free, broker.away = {A0}, {"b"}
        assert await locks.renew() == [A1]
        assert broker.asked == [("lock", [A0, A1]), ("lock", [B0])]
        assert (locks.holds(A0), locks.holds(A1), locks.holds(B0)) == (True, False, True)
        assert locks.confirmed_s(A0) == 1.5
        assert locks.confirmed_s(B0) == 0.5

    play(scenario)
    assert caplog.messages == ["locks were not renewed: silent"]


def test_only_own_locks_are_released_and_a_silent_broker_delays_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(locks: QueueLocks, broker: Broker) -> None:
        await locks.lock(A0)
        await locks.lock(B0)
        broker.asked.clear()
        broker.away = {"a"}
        await locks.unlock([A0, A1])
        assert broker.asked == [("unlock", [A0])]
        assert not locks.holds(A0)
        await locks.lock(A1)
        broker.away = set()
        await locks.lock(A0)
        broker.away = {"a"}
        broker.asked.clear()
        await locks.unlock_all()
        assert broker.asked == [("unlock", [B0]), ("unlock", [A0])]
        assert not locks.holds(B0)
        await locks.unlock_all()
        assert len(broker.asked) == 2

    with caplog.at_level(logging.INFO):
        play(scenario)
    assert "a queue was not unlocked: silent" in caplog.messages

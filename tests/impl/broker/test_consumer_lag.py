"""Tests the lag of consumer groups: in flight, ready, and the ages of the oldest messages."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from mqproof.impl.broker import consumer_lag
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.consumer_lag import Lag, lag_of, lags
from mqproof.impl.broker.services import Services
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.simulated_loop import run_simulated
from tests.impl.world import World, play

QUEUE = MessageQueue("T", BrokerConfig().name, 0)
NONE = Lag(inflight=0, ready=0, lag_ms=0, queueing_ms=0)


async def _send(world: World, count: int) -> None:
    for number in range(count):
        await world.producer.send(Message("T", b"%d" % number), QUEUE)


def test_messages_are_ready_then_in_flight_then_consumed() -> None:
    async def scenario(world: World) -> list[Lag]:
        await world.producer.send(Message("T", b"first"))
        assert world.broker is not None
        assert world.broker.services is not None
        services, seen = world.broker.services, []
        await _send(world, 4)
        services.offsets.commit("G", "T", 0, 0)
        await asyncio.sleep(2)
        end = services.store.max_offset("T", 0)
        seen.append(lag_of(services, "T", "G"))
        await world.consumer.pull(QUEUE, 0, max_count=3)
        seen.append(lag_of(services, "T", "G"))
        services.offsets.commit("G", "T", 0, end)
        seen.append(lag_of(services, "T", "G"))
        services.offsets.commit("G", "T", 0, end + 100)
        seen.append(lag_of(services, "T", "G"))
        assert (await lags(services, 1))[0] == {("T", "G"): NONE}
        assert (await lags(services, 0))[1] == 1
        return seen

    ready, half, consumed, beyond = play(scenario)
    assert (ready.inflight, ready.ready) in ((0, 4), (0, 5))
    assert 2000 <= ready.lag_ms == ready.queueing_ms < 4000
    assert (half.inflight, half.ready) == (3, ready.ready - 3)
    assert half.lag_ms == ready.lag_ms
    assert 0 < half.queueing_ms <= half.lag_ms
    assert consumed == beyond == NONE


def test_a_group_whose_messages_expired_waits_only_for_those_that_exist() -> None:
    async def scenario(world: World) -> Lag:
        assert world.broker is not None
        assert world.broker.services is not None
        await world.producer.send(Message("T", b"first"))
        await _send(world, 3)
        services = world.broker.services
        services.offsets.commit("G", "T", 0, -5)
        return lag_of(services, "T", "G")

    assert play(scenario).ready >= 3


def test_the_ages_are_those_of_the_first_message_not_consumed_and_the_first_not_received() -> None:
    """The messages of queue 1 are stored a second apart, and those of queue 2 are older."""

    async def scenario(world: World) -> list[Lag]:
        assert world.broker is not None
        assert world.broker.services is not None
        services, found = world.broker.services, []
        for number in range(8):
            await services.store.put(Message("T", b"x", queue_id=2 if number < 3 else 1))
            await asyncio.sleep(1 - services.store.now_ms() % 1000 / 1000)
        services.offsets.commit("G", "T", 1, 2)
        services.pull_progress.note("T", "G", 1, 3, 1, 0.0)
        services.pull_progress.note("G", "T", 1, 5, 1, 0.0)
        found.append(lag_of(services, "T", "G"))
        services.offsets.commit("G", "T", 2, 1)
        found.append(lag_of(services, "T", "G"))
        return found

    one, both = play(scenario)
    assert one == Lag(inflight=1, ready=2, lag_ms=one.lag_ms, queueing_ms=one.queueing_ms)
    assert (one.lag_ms // 100, one.queueing_ms // 100) == (30, 20)
    assert (both.inflight, both.ready) == (1, 4)
    assert (both.lag_ms // 100, both.queueing_ms // 100) == (70, 70)


def test_other_requests_are_served_after_each_twenty_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(consumer_lag, "lag_of", lambda _, topic, group: asked.append(f"{topic}@{group}"))

    async def main() -> list[int]:
        pairs = [("T", f"G{number}") for number in range(42)]
        services = SimpleNamespace(offsets=SimpleNamespace(pairs=lambda: pairs))
        reading = asyncio.create_task(lags(cast("Services", services), 41))
        counts = []
        while not reading.done():
            await asyncio.sleep(0)
            counts.append(len(asked))
        found, left_out = await reading
        assert (list(found), left_out) == (pairs[:41], 1)
        assert asked == [f"T@G{number}" for number in range(41)]
        assert (await lags(cast("Services", services), 42))[1] == 0
        assert (await lags(cast("Services", services), 99))[1] == 0
        return counts

    assert run_simulated(main()) == [0, 20, 40, 41]


def test_a_message_whose_time_cannot_be_read_has_the_age_0(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(topic: str, queue_id: int, offset: int) -> int | None:
        if offset:
            raise OSError(f"{topic} {queue_id}")
        return None

    async def scenario(world: World) -> list[Lag]:
        assert world.broker is not None
        assert world.broker.services is not None
        services, found = world.broker.services, []
        for _ in range(2):
            await services.store.put(Message("T", b"x"))
        monkeypatch.setattr(services.store, "store_time_ms", unreadable)
        for committed in (0, 1):
            services.offsets.commit("G", "T", 0, committed)
            found.append(lag_of(services, "T", "G"))
        return found

    assert play(scenario) == [Lag(0, 2, 0, 0), Lag(0, 1, 0, 0)]


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (0, Lag(0, 4, 5000, 5000)),
        (7, Lag(2, 2, 5000, 3000)),
        (9, Lag(4, 0, 5000, 0)),
        (99, Lag(4, 0, 5000, 0)),
    ],
)
def test_only_messages_that_exist_count(received: int, expected: Lag) -> None:
    """The queue has the messages 5 to 8, and the group committed 2. A message is stored each second."""
    store = SimpleNamespace(
        now_ms=lambda: 10_000,
        min_offset=lambda *queue: {("T", 0): 5}.get(queue, 0),
        max_offset=lambda *queue: {("T", 0): 9}.get(queue, 0),
        store_time_ms=lambda topic, queue_id, offset: 1000 * offset if (topic, queue_id) == ("T", 0) else 0,
    )
    services = SimpleNamespace(
        store=store,
        offsets=SimpleNamespace(of_group=lambda *pair: {0: 2} if pair == ("G", "T") else {}),
        pull_progress=SimpleNamespace(end=lambda *queue: received if queue == ("T", "G", 0) else 0),
    )
    assert lag_of(cast("Services", services), "T", "G") == expected

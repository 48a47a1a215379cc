"""Tests orderly consumption with a scripted listener: one batch at a time, pauses, locks, and the stop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.orderly import OrderlyConsumption
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.model import MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.simulated_loop import ManualClock, run_simulated
from mqproof.spec.events import Event, Kind

QUEUE, OTHER = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


def held_of(count: int, queue: MessageQueue = QUEUE) -> ProcessQueue:
    held = ProcessQueue(queue)
    held.put(
        [
            ReceivedMessage(StoredMessage(Message("T", b"x"), offset, 0, 0, 0, 0), queue, 0)
            for offset in range(count)
        ]
    )
    return held


class Site:
    """A consumption, and everything that it calls."""

    def __init__(
        self, *, concurrency: int = 20, batch_max: int = 1, reconsume_max: int | None = None
    ) -> None:
        self.takes_s = 1.0
        self.answers: list[RetryLater | None] = []
        """The answers of the first calls; later ones are None."""
        self.calls: list[tuple[float, int, list[int], int]] = []
        """Time, queue, offsets, and number of redeliveries of the first message of each call."""
        self.set_to: list[int] = []
        self.buried: list[int] = []
        self.accepts = True
        self.is_locked = True
        self.events: list[Event] = []
        log = EventLog(self.events.append, "c", ManualClock())
        myself = cast(Any, self)
        self.consumption = OrderlyConsumption(
            myself, myself, myself, myself, ConsumerEvents(log, "G", "c"),
            concurrency=concurrency, batch_max=batch_max, reconsume_max=reconsume_max,
        )  # fmt: skip

    async def consume(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        now_s = round(asyncio.get_running_loop().time(), 6)
        offsets = [message.queue_offset for message in messages]
        self.calls.append((now_s, messages[0].queue.queue_id, offsets, messages[0].reconsume_times))
        await asyncio.sleep(self.takes_s)
        return self.answers.pop(0) if self.answers else None

    def set(self, _queue: MessageQueue, offset: int) -> None:
        self.set_to.append(offset)

    async def bury(self, message: ReceivedMessage) -> bool:
        self.buried.append(message.queue_offset)
        return self.accepts

    def holds(self, _queue: MessageQueue) -> bool:
        return self.is_locked

    def receive(self, held: ProcessQueue) -> None:
        self.consumption.receive(held, [])


def play(scenario: Callable[[Site], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        site = Site(**options)
        async with asyncio.timeout(1000):
            await scenario(site)
            await site.consumption.stop(0)
        assert len(asyncio.all_tasks()) == 1

    run_simulated(main())


def test_each_batch_begins_after_the_one_before_it() -> None:
    async def scenario(site: Site) -> None:
        held = held_of(5)
        site.receive(held)
        site.receive(held)
        await asyncio.sleep(10)
        assert site.calls == [(0, 0, [0, 1], 0), (1, 0, [2, 3], 0), (2, 0, [4], 0)]
        assert site.set_to == [2, 4, 5]
        assert held.consumed_s == 2
        assert [event.kind for event in site.events] == [
            *[Kind.DELIVER] * 2, *[Kind.CONSUME_OK] * 2, *[Kind.DELIVER] * 2, *[Kind.CONSUME_OK] * 2,
            Kind.DELIVER, Kind.CONSUME_OK,
        ]  # fmt: skip
        held.put([ReceivedMessage(StoredMessage(Message("T", b"x"), 9, 0, 0, 0, 0), QUEUE, 0)])
        site.receive(held)
        await asyncio.sleep(0.1)
        assert site.calls[3:] == [(10, 0, [9], 0)]

    play(scenario, batch_max=2)


@pytest.mark.parametrize(
    ("pause_ms", "waited_ms"),
    [(-1, 10), (9, 10), (10, 10), (11, 11), (1000, 1000), (30_000, 30_000), (30_001, 30_000)],
)
def test_a_queue_that_fails_waits_10_ms_to_30_s(pause_ms: int, waited_ms: int) -> None:
    async def scenario(site: Site) -> None:
        site.answers = [RetryLater(pause_ms=pause_ms)]
        site.receive(held_of(1))
        await asyncio.sleep(40)
        assert site.calls == [(0, 0, [0], 0), (1 + waited_ms / 1000, 0, [0], 1)]
        assert [event.kind for event in site.events][1::2] == [Kind.CONSUME_FAIL, Kind.CONSUME_OK]

    play(scenario)


def test_the_done_part_of_a_batch_is_committed_and_the_rest_waits() -> None:
    async def scenario(site: Site) -> None:
        site.answers = [RetryLater(done=2)]
        site.receive(held_of(3))
        await asyncio.sleep(10)
        assert site.calls == [(0, 0, [0, 1, 2], 0), (2, 0, [2], 1)]
        assert site.set_to == [2, 3]

    play(scenario, batch_max=3)


def test_an_unlocked_queue_is_looked_at_every_100_ms() -> None:
    async def scenario(site: Site) -> None:
        site.is_locked = False
        asyncio.get_running_loop().call_later(0.25, setattr, site, "is_locked", True)
        site.receive(held_of(1))
        await asyncio.sleep(10)
        assert site.calls == [(0.3, 0, [0], 0)]

    play(scenario)


@pytest.mark.parametrize(
    ("reconsume_max", "accepts", "calls", "buried"),
    [
        (1, True, [(0, 0), (2, 1)], [0]),
        (0, True, [(0, 0)], [0]),
        (0, False, [(0, 0), (2, 1)], [0]),
        (None, True, [(0, 0), (2, 1), (4, 2)], []),
    ],
)
def test_a_message_that_failed_too_often_is_buried_and_the_queue_goes_on(
    reconsume_max: int | None, accepts: bool, calls: list[tuple[int, int]], buried: list[int]
) -> None:
    async def scenario(site: Site) -> None:
        site.accepts = accepts
        site.answers = [RetryLater()] * (len(calls) if buried and accepts else len(calls) - 1)
        site.receive(held_of(1))
        await asyncio.sleep(10)
        assert [(now_s, times) for now_s, _, _, times in site.calls] == calls
        assert site.buried == buried
        assert site.set_to == [1]

    play(scenario, reconsume_max=reconsume_max)


def test_a_message_behind_one_that_is_kept_is_not_buried() -> None:
    async def scenario(site: Site) -> None:
        held = held_of(2)
        held.replace([replace(held.first(2)[1], reconsume_times=1)])
        site.answers = [RetryLater()]
        site.receive(held)
        await asyncio.sleep(10)
        assert site.buried == []
        assert [offsets for _, _, offsets, _ in site.calls] == [[0, 1], [0, 1]]

    play(scenario, batch_max=2, reconsume_max=1)


def test_messages_after_the_buried_ones_are_consumed_at_once_if_none_is_left() -> None:
    async def scenario(site: Site) -> None:
        site.answers = [RetryLater(), RetryLater()]
        site.receive(held_of(3))
        await asyncio.sleep(10)
        assert site.buried == [0, 1, 2]
        assert [(now_s, offsets) for now_s, _, offsets, _ in site.calls] == [(0, [0, 1]), (1, [2])]
        assert site.set_to == [1, 2, 3]

    play(scenario, batch_max=2, reconsume_max=0)


def test_no_more_queues_than_the_limit_are_in_the_listener() -> None:
    async def scenario(site: Site) -> None:
        site.receive(held_of(2))
        site.receive(held_of(2, OTHER))
        await asyncio.sleep(1.5)
        assert [now_s for now_s, *_ in site.calls] == [0, 1]
        await site.consumption.resize(2)
        await asyncio.sleep(10)
        assert len(site.calls) == 4
        assert site.calls[2][0] == 1.5

    play(scenario, concurrency=1)


@pytest.mark.parametrize("answer", [None, RetryLater()])
def test_the_result_for_a_dropped_queue_does_not_count_and_its_end_is_awaited(
    answer: RetryLater | None,
) -> None:
    async def scenario(site: Site) -> None:
        held = held_of(2)
        site.answers = [answer]
        site.receive(held)
        await asyncio.sleep(0.5)
        held.is_dropped = True
        await site.consumption.settled(held)
        assert asyncio.get_running_loop().time() == 1
        assert not site.consumption._lanes
        await site.consumption.settled(held)
        await asyncio.sleep(5)
        assert (len(site.calls), site.set_to, len(site.events)) == (1, [], 1)

    play(scenario)


@pytest.mark.parametrize("consumed", [0, 1])
def test_a_dropped_queue_without_messages_is_settled_at_once(consumed: int) -> None:
    async def scenario(site: Site) -> None:
        held = held_of(consumed)
        site.receive(held)
        await asyncio.sleep(2)
        assert len(site.calls) == consumed
        held.is_dropped = True
        await site.consumption.settled(held)
        assert asyncio.get_running_loop().time() == 2
        assert len(asyncio.all_tasks()) == 1

    play(scenario)


def test_a_queue_that_is_dropped_while_a_message_is_buried_is_not_committed() -> None:
    async def scenario(site: Site) -> None:
        held = held_of(2)

        async def bury(message: ReceivedMessage) -> bool:  # as Redelivery has it
            held.is_dropped = True
            return True

        site.bury = bury  # type: ignore[method-assign]
        site.answers = [RetryLater()]
        site.receive(held)
        await asyncio.sleep(0.5)
        lane = site.consumption._lanes[held].task
        assert lane is not None
        await lane
        assert asyncio.get_running_loop().time() == 1  # without a pause
        assert (len(site.calls), site.set_to) == (1, [])

    play(scenario, reconsume_max=0)


@pytest.mark.parametrize(("timeout_s", "committed"), [(1.0, [1]), (0.3, [])])
def test_a_stop_waits_for_listeners_within_its_limit_and_leaves_no_task(
    timeout_s: float, committed: list[int]
) -> None:
    async def scenario(site: Site) -> None:
        site.receive(held_of(2))
        site.receive(held_of(0, OTHER))  # its task waits for messages
        await asyncio.sleep(0.5)
        await site.consumption.stop(timeout_s)
        assert asyncio.get_running_loop().time() == pytest.approx(0.5 + min(timeout_s, 0.5))
        assert len(asyncio.all_tasks()) == 1
        assert (len(site.calls), site.set_to) == (1, committed)

    play(scenario)

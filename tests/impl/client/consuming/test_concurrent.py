"""Tests concurrent consumption with a scripted listener: batches, results, and messages that fail or hang."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from mqproof.impl.client.consuming.concurrent import ConcurrentConsumption
from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.model import MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.simulated_loop import ManualClock, run_simulated
from mqproof.spec.events import Event, Kind

QUEUE = MessageQueue("T", "b", 0)


def held_of(count: int) -> tuple[ProcessQueue, list[ReceivedMessage]]:
    messages = [
        ReceivedMessage(StoredMessage(Message("T", b"x"), offset, 0, 0, 0, 0), QUEUE, 0)
        for offset in range(count)
    ]
    held = ProcessQueue(QUEUE)
    held.put(messages)
    return held, messages


def offsets_of(messages: Sequence[ReceivedMessage]) -> list[int]:
    return [message.queue_offset for message in messages]


class Site:
    """A consumption, and everything that it calls."""

    def __init__(self, *, concurrency: int = 1, batch_max: int = 1, is_broadcast: bool = False) -> None:
        self.takes_s = 1.0
        self.answer: RetryLater | None = None
        self.accepts = True
        self.calls: list[tuple[float, list[int], int]] = []
        """Time, offsets, and number of redeliveries of the first message of each call of the listener."""
        self.busy = self.busy_most = self.ended = 0
        self.advanced: list[int] = []
        self.sent_back: list[tuple[int, int]] = []
        self.events: list[Event] = []
        log = EventLog(self.events.append, "c", ManualClock())
        self.consumption = ConcurrentConsumption(
            cast(Any, self), cast(Any, self), None if is_broadcast else cast(Any, self),
            ConsumerEvents(log, "G", "c"), concurrency=concurrency, batch_max=batch_max,
        )  # fmt: skip

    async def consume(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        now_s = asyncio.get_running_loop().time()
        self.calls.append((round(now_s, 3), offsets_of(messages), messages[0].reconsume_times))
        self.busy += 1
        self.busy_most = max(self.busy_most, self.busy)
        try:
            await asyncio.sleep(self.takes_s)
            self.ended += 1
        finally:
            self.busy -= 1
        return self.answer

    def advance(self, queue: MessageQueue, offset: int) -> None:
        assert queue == QUEUE
        self.advanced.append(offset)

    async def send_back(self, message: ReceivedMessage, delay_level: int) -> bool:
        self.sent_back.append((message.queue_offset, delay_level))
        return self.accepts

    def kinds(self) -> list[tuple[Kind, int | None]]:
        return [(event.kind, event.queue_offset) for event in self.events]


def play(scenario: Callable[[Site], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        site = Site(**options)
        async with asyncio.timeout(1000):
            await scenario(site)
            await site.consumption.stop(0.1)
        assert len(asyncio.all_tasks()) == 1

    run_simulated(main())


def test_a_batch_has_at_most_the_configured_number_of_messages() -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(5)
        site.consumption.receive(held, messages)
        await asyncio.sleep(1.5)
        assert held.begun_count == 2
        assert held.consumed_s == 1.0
        await asyncio.sleep(3)
        assert site.calls == [(0, [0, 1], 0), (1, [2, 3], 0), (2, [4], 0)]
        assert site.advanced == [2, 4, 5]
        assert site.kinds()[:4] == [
            (Kind.DELIVER, 0), (Kind.DELIVER, 1), (Kind.CONSUME_OK, 0), (Kind.CONSUME_OK, 1),
        ]  # fmt: skip

    play(scenario, batch_max=2)


def test_as_many_listeners_run_as_the_limit_allows_also_after_a_change() -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(40)
        site.consumption.receive(held, messages[:8])
        await asyncio.sleep(4.5)
        assert site.busy_most == 2
        for limit, few in ((5, messages[8:20]), (1, messages[20:24]), (3, messages[24:])):
            site.busy_most, before = 0, len(site.consumption._workers)
            await site.consumption.resize(limit)
            assert len(site.consumption._workers) == max(before, limit)
            assert site.consumption._batches.qsize() == max(before - limit, 0)  # wakes those that must end
            site.consumption.receive(held, few)
            await asyncio.sleep(8)
            assert (site.busy_most, len(site.consumption._workers)) == (limit, limit)

    play(scenario, concurrency=2)


def test_messages_after_the_done_ones_are_sent_back_with_the_level_of_the_listener() -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(3)
        site.answer = RetryLater(5, done=1)
        site.consumption.receive(held, messages)
        await asyncio.sleep(1.5)
        assert site.sent_back == [(1, 5), (2, 5)]
        assert site.advanced == [1, 2, 3]
        assert site.kinds()[3:] == [(Kind.CONSUME_OK, 0), (Kind.CONSUME_FAIL, 1), (Kind.CONSUME_FAIL, 2)]

    play(scenario, batch_max=3)


def test_a_message_that_no_broker_takes_back_is_consumed_here_again_after_5_seconds() -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(1)
        site.answer, site.accepts = RetryLater(), False
        site.consumption.receive(held, messages)
        await asyncio.sleep(1.5)
        assert (site.advanced, len(held), len(site.consumption._waiting)) == ([], 1, 1)
        await asyncio.sleep(5)
        assert site.calls == [(0, [0], 0), (6, [0], 1)]
        assert not site.consumption._waiting
        await asyncio.sleep(1)
        assert len(site.consumption._waiting) == 1
        await site.consumption.stop(0.1)
        await asyncio.sleep(10)
        assert len(site.calls) == 2
        assert site.consumption._batches.empty()  # the timer is cancelled

    play(scenario)


def test_a_failed_broadcast_message_is_logged_and_counts_as_finished(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(2)
        site.answer = RetryLater()
        site.consumption.receive(held, messages)
        await asyncio.sleep(0.5)
        await site.consumption.give_back_overdue(held, 0.1)
        await asyncio.sleep(1)
        assert (site.advanced, site.sent_back) == ([1, 2], [])
        await site.consumption.settled(held)

    play(scenario, is_broadcast=True, batch_max=2)
    assert [line.split(" was ")[1] for line in caplog.messages] == [
        "not consumed; broadcast consumers do not retry"
    ] * 2


@pytest.mark.parametrize(("after_s", "sent_back"), [(15.0, []), (15.5, [(0, 3)])])
def test_a_message_is_overdue_when_its_listener_takes_longer_than_the_limit(
    after_s: float, sent_back: list[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(1)
        site.takes_s = 30
        site.consumption.receive(held, messages)
        await asyncio.sleep(after_s)
        await site.consumption.give_back_overdue(held, 15.0)
        assert site.sent_back == sent_back
        assert site.advanced == [1] * len(sent_back)
        lines = [f"{messages[0].message_id} is being consumed for more than 15 s"] * len(sent_back)
        assert caplog.messages == lines
        await asyncio.sleep(30)
        assert site.kinds()[1:] == ([] if sent_back else [(Kind.CONSUME_OK, 0)])

    play(scenario)


def test_16_overdue_messages_are_sent_back_at_once_and_a_refused_one_stays() -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(20)
        site.takes_s = 100
        site.consumption.receive(held, messages)
        await asyncio.sleep(20)
        site.accepts = False
        await site.consumption.give_back_overdue(held, 15.0)
        assert (len(site.sent_back), len(held), site.advanced) == (16, 20, [])
        site.accepts = True
        await site.consumption.give_back_overdue(held, 15.0)
        assert (len(held), site.advanced) == (4, list(range(1, 17)))

    play(scenario, batch_max=20)


@pytest.mark.parametrize("answer", [None, RetryLater()])
def test_the_result_for_a_queue_that_was_dropped_does_not_count(answer: RetryLater | None) -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(3)
        site.answer = answer
        site.consumption.receive(held, messages)
        await asyncio.sleep(0.5)
        held.is_dropped = True
        await asyncio.sleep(5)
        assert site.calls == [(0, [0], 0)]
        assert (site.advanced, site.sent_back, site.kinds()) == ([], [], [(Kind.DELIVER, 0)])

    play(scenario)


def test_messages_that_were_sent_back_meanwhile_are_left_out() -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(5)
        site.answer = RetryLater(done=2)
        site.consumption.receive(held, messages)
        await asyncio.sleep(0.5)
        held.remove([messages[0], messages[2], messages[4]])
        await asyncio.sleep(1)
        assert site.kinds()[4:6] == [(Kind.CONSUME_OK, 1), (Kind.CONSUME_FAIL, 3)]
        assert site.sent_back == [(3, 0)]
        assert site.calls == [(0, [0, 1, 2, 3], 0)]

    play(scenario, batch_max=4)


def test_a_queue_that_is_dropped_while_a_message_is_sent_back_is_not_committed() -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(1)
        site.answer = RetryLater()

        async def send_back(message: ReceivedMessage, delay_level: int) -> bool:
            held.is_dropped = True
            return True

        site.consumption._redelivery = cast(Any, site)
        site.send_back = send_back  # type: ignore[method-assign]
        site.consumption.receive(held, messages)
        await asyncio.sleep(2)
        assert site.advanced == []

    play(scenario)


@pytest.mark.parametrize(("timeout_s", "ended"), [(1.0, 1), (0.3, 0)])
def test_a_stop_waits_for_running_listeners_within_its_limit_and_starts_no_more(
    timeout_s: float, ended: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(3)
        site.consumption.receive(held, messages)
        await asyncio.sleep(0.5)
        await site.consumption.stop(timeout_s)
        assert asyncio.get_running_loop().time() == pytest.approx(0.5 + min(timeout_s, 0.5))
        await asyncio.sleep(5)
        assert (len(site.calls), site.ended, site.advanced) == (1, ended, [1] * ended)

    with caplog.at_level(logging.DEBUG, "mqproof"):
        play(scenario)
    assert caplog.messages == []


def test_a_stop_of_idle_workers_does_not_wait() -> None:
    async def scenario(site: Site) -> None:
        await asyncio.sleep(1)
        await site.consumption.stop(10)
        assert asyncio.get_running_loop().time() == 1

    play(scenario, concurrency=3)


def test_all_messages_of_a_batch_that_no_broker_takes_back_are_consumed_again() -> None:
    async def scenario(site: Site) -> None:
        held, messages = held_of(3)
        site.answer, site.accepts = RetryLater(done=1), False
        site.consumption.receive(held, messages)
        await asyncio.sleep(6.5)
        assert site.calls == [(0, [0, 1, 2], 0), (6, [1, 2], 1)]
        assert site.sent_back == [(1, 0), (2, 0)]

    play(scenario, batch_max=3)

"""Tests orderly consumption in the simulated world: each queue in order, by one member at a time."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import cast

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.locks import QueueLocks
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.model import MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.spec.events import Kind
from tests.impl.client.consuming.test_push_consumer import FIXED_PORT, refuse
from tests.impl.client.members import GROUP, Ear, committed, make_topic, member, numbers, send
from tests.impl.world import World, play

ORDERLY = PushConsumerConfig(orderly=True)
QUEUE = MessageQueue("T", "broker-a", 0)


async def send_to_queue(world: World, bodies: Sequence[bytes]) -> None:
    for body in bodies:
        await world.producer.send(Message("T", body), QUEUE)


def test_deliv_4_queue_order() -> None:
    """DELIV-4 QueueOrder: in order within each queue, however long the listener takes."""

    async def scenario(world: World) -> list[tuple[int, int]]:
        heard: list[tuple[int, int]] = []

        async def listener(messages: Sequence[ReceivedMessage]) -> None:
            await asyncio.sleep(world.runtime.random.uniform(0, 0.2))
            heard.extend((message.queue.queue_id, message.queue_offset) for message in messages)

        await send(world, numbers(0, 40))
        async with member(world, "c1", listener, ORDERLY):
            await asyncio.sleep(5)
        return heard

    by_queue = defaultdict(list)
    for queue_id, offset in play(scenario):
        by_queue[queue_id].append(offset)
    assert by_queue == {queue_id: list(range(10)) for queue_id in range(4)}


@pytest.mark.parametrize("seed", range(5))
def test_deliv_4_orderly_consumption_never_overlaps_in_a_queue_while_members_join_and_leave(
    seed: int,
) -> None:
    """DELIV-4 QueueOrder: a queue moves only after its listener has ended, and continues there."""

    async def scenario(world: World) -> tuple[list[bytes], int]:
        running: set[MessageQueue] = set()
        done: list[bytes] = []
        overlaps = 0

        async def listener(messages: Sequence[ReceivedMessage]) -> None:
            nonlocal overlaps
            queue = messages[0].queue
            overlaps += queue in running
            running.add(queue)
            await asyncio.sleep(world.runtime.random.uniform(0, 3))
            running.discard(queue)
            done.extend(message.body for message in messages)

        await send(world, numbers(0, 80))
        async with member(world, "c1", listener, ORDERLY):
            async with member(world, "c2", listener, ORDERLY), member(world, "c3", listener, ORDERLY):
                await asyncio.sleep(world.runtime.random.uniform(0, 20))
            await asyncio.sleep(90)
        return done, overlaps

    done, overlaps = play(scenario, seed=seed)
    assert overlaps == 0
    assert set(done) == set(numbers(0, 80))
    # Messages that a listener had when their queue moved are redelivered, and no others.
    assert len(done) <= 80 + 8


def test_a_message_that_fails_blocks_its_queue_and_no_other() -> None:
    async def scenario(world: World) -> list[tuple[int, bytes, int]]:
        heard: list[tuple[int, bytes, int]] = []

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            (message,) = messages
            heard.append((message.queue.queue_id, message.body, message.reconsume_times))
            failed = message.body == b"0" and message.reconsume_times < 2
            return RetryLater(pause_ms=500) if failed else None

        await send_to_queue(world, numbers(0, 2))
        await world.producer.send(Message("T", b"other"), MessageQueue("T", "broker-a", 1))
        async with member(world, "c1", listener, ORDERLY):
            await asyncio.sleep(5)
        return heard

    heard = play(scenario)
    assert [rest for queue_id, *rest in heard if queue_id == 0] == [
        [b"0", 0],
        [b"0", 1],
        [b"0", 2],
        [b"1", 0],
    ]
    assert heard.index((1, b"other", 0)) < heard.index((0, b"0", 1))


@pytest.mark.parametrize(("asked_ms", "waited_s"), [(5000, 5.0), (1, 0.01), (99_000, 30.0)])
def test_a_queue_pauses_for_the_time_that_its_listener_requests_within_bounds(
    asked_ms: int, waited_s: float
) -> None:
    async def scenario(world: World) -> list[float]:
        called_s: list[float] = []

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            called_s.append(asyncio.get_running_loop().time())
            return RetryLater(pause_ms=asked_ms) if len(called_s) == 1 else None

        await send_to_queue(world, numbers(0, 1))
        async with member(world, "c1", listener, ORDERLY):
            await asyncio.sleep(40)
        return called_s

    first, second = play(scenario)
    assert second - first == pytest.approx(waited_s, abs=0.001)


def test_a_lock_counts_from_the_time_of_its_request() -> None:
    """The broker may have granted it at once, and its answer may have taken long."""

    class Slow:
        async def lock(self, queues: Collection[MessageQueue]) -> set[MessageQueue]:
            await asyncio.sleep(20)
            return set(queues)

    async def main() -> tuple[bool, bool]:
        locks = QueueLocks(cast(GroupRequests, Slow()))
        assert await locks.lock(QUEUE)
        await asyncio.sleep(9)
        before = locks.holds(QUEUE)
        await asyncio.sleep(2)
        return before, locks.holds(QUEUE)

    assert run_simulated(main(), SimulatedLoop()) == (True, False)


def test_an_orderly_queue_may_have_gaps_of_any_length() -> None:
    async def scenario(world: World) -> int:
        ear = Ear()
        for number in range(12):
            message = Message("T", b"x", {"TAGS": "A" if number % 4 == 0 else "B"})
            await world.producer.send(message, QUEUE)
        ear.takes_s = 1000.0
        config = PushConsumerConfig(orderly=True, limits=PullLimits(span_max=3, batch=1), stop_timeout_ms=1)
        async with member(world, "c1", ear, config, tags="A") as consumer:
            (held,) = [held for held in consumer._queues.process_queues() if held.queue == QUEUE]
            return len(held)

    assert play(scenario) == 3


def test_the_consumed_part_of_a_batch_is_not_repeated() -> None:
    async def scenario(world: World) -> list[list[bytes]]:
        calls: list[list[bytes]] = []

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            calls.append([message.body for message in messages])
            return RetryLater(done=1) if len(calls) == 1 else None

        await send_to_queue(world, numbers(0, 3))
        async with member(world, "c1", listener, PushConsumerConfig(orderly=True, batch_max=2)):
            await asyncio.sleep(5)
        return calls

    assert play(scenario) == [numbers(0, 2), numbers(1, 3)]


def test_deliv_7_a_message_that_failed_too_often_is_a_dead_letter_and_the_queue_continues() -> None:
    """DELIV-7 RetryThenDeadLetter, orderly: the offset passes the message only when the broker has it."""

    async def scenario(world: World) -> tuple[list[bytes], list[bytes], int | None]:
        heard: list[bytes] = []

        async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            heard.append(messages[0].body)
            return RetryLater(pause_ms=10) if messages[0].body == b"0" else None

        await send_to_queue(world, numbers(0, 2))
        async with member(world, "c1", listener, PushConsumerConfig(orderly=True, reconsume_max=2)):
            await asyncio.sleep(6)
            dead = await world.consumer.pull(MessageQueue(f"%DLQ%{GROUP}", "broker-a", 0), 0)
            return heard, [stored.message.body for stored in dead.messages], (await committed(world))[0]

    assert play(scenario) == ([b"0", b"0", b"0", b"1"], [b"0"], 2)


def test_deliv_7_a_message_that_no_broker_accepts_stays_at_the_head_of_its_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DELIV-7 RetryThenDeadLetter: without a dead letter there is no progress."""

    async def scenario(world: World) -> tuple[set[bytes], int | None]:
        ear = Ear()
        ear.answer = RetryLater(pause_ms=100)
        await send_to_queue(world, numbers(0, 2))
        monkeypatch.setattr(Producer, "send", no_copy)
        async with member(world, "c1", ear, PushConsumerConfig(orderly=True, reconsume_max=1)):
            await asyncio.sleep(6)
            return set(ear.bodies()), (await committed(world))[0]

    async def no_copy(producer: Producer, message: Message) -> None:
        return None

    refuse(monkeypatch, RequestCode.CONSUMER_SEND_MSG_BACK, ResponseCode.SYSTEM_ERROR)
    bodies, offset = play(scenario)
    assert (bodies, offset) == ({b"0"}, 0)


def test_a_queue_is_not_unlocked_while_its_lock_is_being_renewed() -> None:
    """The broker might receive the renewal later, and our client would believe its answer."""
    reported: list[str] = []

    class Slow:
        async def lock(self, queues: Collection[MessageQueue]) -> set[MessageQueue]:
            await asyncio.sleep(1)
            reported.append("locked")
            return set(queues)

        async def unlock(self, _: Collection[MessageQueue]) -> None:
            reported.append("unlocked")

    async def main() -> float | None:
        locks = QueueLocks(cast(GroupRequests, Slow()))
        assert await locks.lock(QUEUE)
        renewal = asyncio.create_task(locks.renew())
        await asyncio.sleep(0.5)
        await locks.unlock([QUEUE])
        assert await renewal == []
        return locks.confirmed_s(QUEUE)

    assert run_simulated(main(), SimulatedLoop()) is None
    assert reported == ["locked", "locked", "unlocked"]


def test_a_lock_that_was_lost_before_reading_is_requested_again() -> None:
    """While the member requested its offset, the broker restarted and another member locked the queue."""

    async def scenario(world: World) -> list[bytes]:
        ear = Ear()
        await send_to_queue(world, numbers(0, 2))
        gained = asyncio.Event()

        async def slowly(offsets: Offsets, queue: MessageQueue) -> int:
            del offsets
            if queue == QUEUE:
                await gained.wait()
            return 0

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Offsets, "load", slowly)
            async with member(world, "c1", ear, ORDERLY) as consumer:
                assert consumer._locks is not None
                assert consumer._locks.holds(QUEUE)
                consumer._locks._confirmed_s.pop(QUEUE)  # the effect of a refused renewal
                gained.set()
                await asyncio.sleep(5)
        return ear.bodies()

    assert play(scenario) == numbers(0, 2)


def test_a_queue_locked_by_another_client_is_not_read_until_it_is_free() -> None:
    async def scenario(world: World) -> tuple[list[bytes], list[bytes]]:
        ear = Ear()
        await send_to_queue(world, numbers(0, 2))
        async with Session([world.namesrv_address], world.runtime, "other") as session:
            calls = GroupRequests(session, GROUP)
            assert await calls.lock([QUEUE]) == {QUEUE}
            async with member(world, "c1", ear, ORDERLY):
                await asyncio.sleep(30)
                early = ear.bodies()
                await calls.unlock([QUEUE])
                await asyncio.sleep(21)
                return early, ear.bodies()

    early, late = play(scenario)
    assert early == []
    assert late == numbers(0, 2)


def test_losing_a_lock_gives_up_the_queue_and_its_pulled_messages() -> None:
    async def scenario(world: World) -> tuple[set[MessageQueue], int]:
        ear = Ear()
        ear.takes_s = 30.0
        await send_to_queue(world, numbers(0, 5))
        async with member(world, "c1", ear, ORDERLY) as consumer:
            assert world.broker is not None
            assert QUEUE in consumer.owned()
            await world.stop_broker()
            await world.start_broker()  # the broker has no lock
            async with Session([world.namesrv_address], world.runtime, "other") as session:
                assert await GroupRequests(session, GROUP).lock([QUEUE]) == {QUEUE}
                await asyncio.sleep(55)
            return set(consumer.owned()), len(ear.heard)

    owned, heard = play(scenario, config=FIXED_PORT)
    assert QUEUE not in owned
    assert heard == 1


def test_consumption_stops_before_an_unrenewed_lock_expires() -> None:
    async def scenario(world: World) -> tuple[int, int]:
        ear = Ear()
        await make_topic(world)
        await send_to_queue(world, numbers(0, 100))
        ear.takes_s = 1.0
        async with member(world, "c1", ear, ORDERLY):
            world.network.silence(world.broker_address)
            await asyncio.sleep(50)
            paused = len(ear.heard)
            await asyncio.sleep(9)
            return paused, len(ear.heard)

    paused, later = play(scenario)
    assert 25 <= paused <= 45
    assert later == paused


@pytest.mark.parametrize("storing_takes_s", [0.0, 2.0])
def test_deliv_4_a_queue_that_is_reassigned_while_its_listener_runs_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, storing_takes_s: float
) -> None:
    """DELIV-4 QueueOrder: the queue is lost and regained at once, as when a member joins and leaves."""

    async def scenario(world: World) -> tuple[int, list[bytes]]:
        ear = Ear()
        ear.takes_s = 4.0
        await send_to_queue(world, numbers(0, 2))
        async with member(world, "c1", ear, ORDERLY) as consumer:
            most = ear.busy[QUEUE]
            losing = asyncio.create_task(consumer.lose(QUEUE))
            for _ in range(200):
                await asyncio.sleep(0.1)
                consumer.members_changed()
                most = max(most, ear.busy[QUEUE])
            await losing
        return most, ear.bodies()

    async def slowly(offsets: Offsets, queue: MessageQueue) -> None:
        await asyncio.sleep(storing_takes_s)

    monkeypatch.setattr(Offsets, "release", slowly)
    most, bodies = play(scenario)
    assert most == 1
    assert bodies == [b"0", b"0", b"1"]


def test_a_stop_unlocks_so_that_the_next_member_does_not_wait() -> None:
    async def scenario(world: World) -> list[bytes]:
        first, second = Ear(), Ear()
        await send_to_queue(world, numbers(0, 2))
        async with member(world, "c1", first, ORDERLY):
            pass
        await send_to_queue(world, numbers(2, 4))
        async with member(world, "c2", second, ORDERLY):
            pass
        return second.bodies()

    assert play(scenario) == numbers(2, 4)


def test_events_record_each_delivery_of_an_orderly_queue_with_its_result() -> None:
    async def scenario(world: World) -> list[tuple[Kind, int | None]]:
        await send_to_queue(world, numbers(0, 2))
        async with member(world, "c1", Ear(), ORDERLY):
            pass
        kinds = (Kind.DELIVER, Kind.CONSUME_OK)
        return [(e.kind, e.queue_offset) for e in world.events if e.node == "c1" and e.kind in kinds]

    assert play(scenario) == [
        (Kind.DELIVER, 0),
        (Kind.CONSUME_OK, 0),
        (Kind.DELIVER, 1),
        (Kind.CONSUME_OK, 1),
    ]

"""Tests polling: the result of a poll, consumed offsets, seeking, and dividing queues among the group."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming import lite_pull_consumer
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ClientError, MessageQueue, ReceivedMessage
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.clock import now_ms
from mqproof.spec.events import Kind
from tests.impl.client.members import GROUP, committed, make_topic, numbers, send
from tests.impl.world import World, play

QUEUE, OTHER = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


async def fill(world: World, queue: MessageQueue, count: int) -> None:
    for body in numbers(0, count):
        await world.producer.send(Message("T", body), queue)


def polling(world: World, config: LitePullConfig | None = None) -> LitePullConsumer:
    return LitePullConsumer(world.session, GROUP, config, world.event_log("lite"))


async def poll_all(consumer: LitePullConsumer) -> list[bytes]:
    bodies: list[bytes] = []
    while messages := await consumer.poll(2000):
        bodies += [message.body for message in messages]
    return bodies


def test_a_poll_returns_messages_of_one_queue_in_order_and_queues_take_turns() -> None:
    async def scenario(world: World) -> list[list[tuple[int, int]]]:
        for queue in (QUEUE, OTHER):
            await fill(world, queue, 3)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE, OTHER])
            await asyncio.sleep(1)
            polls = [await consumer.poll(max_count=2) for _ in range(4)]
        return [[(message.queue.queue_id, message.queue_offset) for message in poll] for poll in polls]

    assert play(scenario) == [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(0, 2)], [(1, 2)]]


def test_a_poll_waits_for_the_first_message_up_to_its_timeout() -> None:
    async def scenario(world: World) -> tuple[int, float, int, float]:
        await make_topic(world)
        loop = asyncio.get_running_loop()
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            began_s = loop.time()
            nothing = len(await consumer.poll(700))
            waited_s = loop.time() - began_s
            sending = asyncio.create_task(fill(world, QUEUE, 1))
            something = len(await consumer.poll(5000))
            await sending
            return nothing, waited_s, something, loop.time() - began_s

    nothing, waited_s, something, all_s = play(scenario)
    assert (nothing, something) == (0, 1)
    assert waited_s == pytest.approx(0.7)
    assert all_s < 1.5


def test_members_divide_the_queues_and_every_message_is_polled_once() -> None:
    async def scenario(world: World) -> tuple[list[bytes], int]:
        await send(world, numbers(0, 8))
        async with (
            polling(world) as first,
            Session([world.namesrv_address], world.runtime) as session,
            LitePullConsumer(session, GROUP) as second,
        ):
            await first.subscribe("T")
            await second.subscribe("T")
            await asyncio.sleep(3)
            assert len(first.assignment()) == len(second.assignment()) == 2
            await send(world, numbers(8, 20))
            return await poll_all(first) + await poll_all(second), len(await second.queues("T"))

    bodies, queues = play(scenario)
    assert sorted(bodies) == sorted(numbers(0, 20))
    assert queues == 4


async def _leave(consumer: LitePullConsumer) -> None:
    pass


async def _commit(consumer: LitePullConsumer) -> None:
    await consumer.commit()


async def _poll_again(consumer: LitePullConsumer) -> None:
    await consumer.poll(100, 1)
    await asyncio.sleep(6)


async def _fail(consumer: LitePullConsumer) -> None:
    raise RuntimeError("injected")


@pytest.mark.parametrize(("then", "stored"), [(_leave, 2), (_commit, 2), (_poll_again, 3), (_fail, 0)])
def test_polled_messages_are_consumed_when_the_application_commits(
    then: Callable[[LitePullConsumer], Awaitable[None]], stored: int
) -> None:
    async def scenario(world: World) -> int | None:
        await fill(world, QUEUE, 5)
        try:
            async with polling(world) as consumer:
                await consumer.assign([QUEUE])
                assert len(await consumer.poll(max_count=2)) == 2
                await then(consumer)
        except RuntimeError:
            pass
        return (await committed(world))[0]

    assert play(scenario) == stored


def test_without_auto_commit_only_a_commit_stores_offsets() -> None:
    async def scenario(world: World) -> tuple[int | None, int | None]:
        await fill(world, QUEUE, 5)
        async with polling(world, LitePullConfig(auto_commit=False)) as consumer:
            await consumer.assign([QUEUE])
            await poll_all(consumer)
            await asyncio.sleep(6)
            before = (await committed(world))[0]
            await consumer.commit()
            after = await consumer.committed(QUEUE)
            await fill(world, QUEUE, 1)
            assert len(await consumer.poll()) == 1
        assert (await committed(world))[0] == after
        return before, after

    assert play(scenario) == (0, 5)


def test_with_auto_commit_messages_of_earlier_polls_are_stored_in_time() -> None:
    async def scenario(world: World) -> int | None:
        await fill(world, QUEUE, 5)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            for _ in range(2):
                assert len(await consumer.poll(max_count=2)) == 2
            await asyncio.sleep(6)
            return (await committed(world))[0]

    assert play(scenario) == 2


def test_seeking_moves_forward_and_back_and_is_reported_as_a_reset() -> None:
    async def scenario(world: World) -> tuple[list[list[bytes]], list[int | None]]:
        await fill(world, QUEUE, 5)
        seen = []
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            seen.append(await poll_all(consumer))
            await consumer.seek(QUEUE, 3)
            seen.append(await poll_all(consumer))
            await consumer.seek_to_begin(QUEUE)
            seen.append(await poll_all(consumer))
            await consumer.seek(QUEUE, 1)
            await consumer.seek_to_end(QUEUE)
            seen.append(await poll_all(consumer))
            with pytest.raises(ClientError, match="not one of"):
                await consumer.seek(OTHER, 0)
        resets = [e.queue_offset for e in world.events if e.node == "lite" and e.attrs.get("reset")]
        return seen, resets

    assert play(scenario) == ([numbers(0, 5), numbers(3, 5), numbers(0, 5), []], [3, 0, 1, 5])


def test_deliv_5_offset_monotone_messages_polled_before_a_seek_do_not_count_after_it() -> None:
    """DELIV-5 OffsetMonotone: an explicit reset is final."""

    async def scenario(world: World) -> int | None:
        await fill(world, QUEUE, 5)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            await consumer.poll()
            await consumer.seek(QUEUE, 2)
            await consumer.commit()
            return await consumer.committed(QUEUE)

    assert play(scenario) == 2


def test_a_queue_that_is_moving_is_not_polled() -> None:
    async def scenario(world: World) -> tuple[list[bytes], list[bytes]]:
        await fill(world, QUEUE, 5)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            await consumer.poll(max_count=1)
            seeking = asyncio.create_task(consumer.seek(QUEUE, 4))
            await asyncio.sleep(0)
            meanwhile = [message.body for message in await consumer.poll(0)]
            await seeking
            return meanwhile, await poll_all(consumer)

    assert play(scenario) == ([], [b"4"])


def test_paused_queues_return_nothing_until_resumed() -> None:
    async def scenario(world: World) -> list[list[bytes]]:
        await fill(world, QUEUE, 2)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            consumer.pause([QUEUE])
            paused = await poll_all(consumer)
            consumer.resume([QUEUE])
            return [paused, await poll_all(consumer)]

    assert play(scenario) == [[], numbers(0, 2)]


def test_a_waiting_poll_returns_resumed_messages_at_once() -> None:
    async def scenario(world: World) -> tuple[int, float]:
        await fill(world, QUEUE, 2)
        loop = asyncio.get_running_loop()
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            consumer.pause([QUEUE])
            await asyncio.sleep(1)
            waiting = asyncio.create_task(consumer.poll(60_000))
            await asyncio.sleep(1)
            consumer.resume([QUEUE])
            resumed_s = loop.time()
            return len(await waiting), loop.time() - resumed_s

    assert play(scenario) == (2, 0.0)


def test_another_assignment_replaces_the_first() -> None:
    async def scenario(world: World) -> tuple[list[MessageQueue], list[bytes]]:
        await fill(world, QUEUE, 2)
        await fill(world, OTHER, 3)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            await consumer.assign([OTHER])
            return consumer.assignment(), await poll_all(consumer)

    assert play(scenario) == ([OTHER], numbers(0, 3))


def test_offsets_are_found_by_time_and_deliveries_are_logged() -> None:
    async def scenario(world: World) -> tuple[int, list[int | None]]:
        await fill(world, QUEUE, 1)
        await asyncio.sleep(60)
        now_ms = world.runtime.clock.now_us() // 1000
        await fill(world, QUEUE, 1)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            await poll_all(consumer)
            offset = await consumer.offset_for_time(QUEUE, now_ms)
        return offset, [e.queue_offset for e in world.events if e.node == "lite" and e.kind is Kind.DELIVER]

    assert play(scenario) == (1, [0, 1])


def test_a_consumer_that_is_not_started_or_has_nothing_to_poll_says_so() -> None:
    async def scenario(world: World) -> None:
        consumer = LitePullConsumer(world.session, "LG")
        for use in (consumer.poll, consumer.stop, lambda: consumer.subscribe("T")):
            with pytest.raises(ClientError, match="lite pull consumer of group LG is not started"):
                await use()
        with pytest.raises(TypeError, match="timestamp_ms is 'yesterday', milliseconds since 1970"):
            await consumer.offset_for_time(MessageQueue("T", "b", 0), "yesterday")  # type: ignore[arg-type]  # what is tested
        with pytest.raises(ValueError, match="group 'L G': 1 to 120 letters"):
            LitePullConsumer(world.session, "L G")
        with pytest.raises(TypeError, match="auto_commit is 'no', a value of the type bool expected"):
            LitePullConsumer(world.session, "LG", LitePullConfig(auto_commit="no"))  # type: ignore[arg-type]  # what is tested
        async with consumer:
            with pytest.raises(ClientError, match="neither a subscription nor assigned queues"):
                await consumer.poll()
            with pytest.raises(ClientError, match="neither a subscription nor assigned queues"):
                await anext(consumer.unacknowledged())
            with pytest.raises(ValueError, match="the topic 'T x' has a character other than"):
                await consumer.subscribe("T x")
            await consumer.subscribe("T")
            with pytest.raises(ClientError, match="either subscribe or assign"):
                await consumer.assign([])

    play(scenario)


# Iteration.


def test_an_iteration_acknowledges_a_message_when_the_next_one_is_requested() -> None:
    async def scenario(world: World) -> tuple[list[bytes], int, list[bytes], int]:
        await make_topic(world)
        first: list[bytes] = []
        again: list[bytes] = []
        with contextlib.suppress(RuntimeError):
            async with lite(world, "c1") as consumer:
                await send(world, numbers(0, 4))
                async for message in consumer:
                    first.append(message.body)
                    if len(first) == 3:
                        raise RuntimeError("the application failed")
        stored = sum(offset or 0 for offset in (await committed(world)).values())
        async with lite(world, "c2") as consumer:
            async for message in consumer:
                again.append(message.body)
                if len(again) == 2:
                    break
        return first, stored, again, sum(offset or 0 for offset in (await committed(world)).values())

    first, stored, again, at_end = play(scenario)
    assert (len(first), stored, at_end) == (3, 2, 4)
    assert sorted([*first[:2], *again]) == numbers(0, 4)


def test_messages_that_are_acknowledged_one_by_one_move_the_offset_to_the_first_one_that_is_not() -> None:
    async def scenario(world: World) -> tuple[list[bool], list[int | None], int]:
        await make_topic(world)
        queue = MessageQueue("T", "broker-a", 0)
        offsets = []
        async with lite(world, "c1") as consumer:
            for body in numbers(0, 4):
                await world.producer.send(Message("T", body), queue)
            found = []
            async for message in consumer.unacknowledged():
                found.append(message)
                if len(found) == 4:
                    break
            done = []
            for place in (1, 0, 0, 3):
                done.append(await consumer.acknowledge(found[place]))
                await consumer.commit()
                offsets.append(await consumer.committed(queue))
        return done, offsets, len({message.body for message in found})

    done, offsets, different = play(scenario)
    assert done == [True, True, False, True]
    assert offsets == [0, 2, 2, 2]
    assert different == 4


def test_an_iteration_ends_when_the_consumer_stops() -> None:
    async def scenario(world: World) -> float:
        await make_topic(world)
        async with lite(world, "c1") as consumer:
            iterating = asyncio.create_task(all_of(aiter(consumer)))
            acknowledging = asyncio.create_task(all_of(consumer.unacknowledged()))
            await asyncio.sleep(1)
        began_s = asyncio.get_running_loop().time()
        assert [await iterating, await acknowledging] == [[], []]
        return asyncio.get_running_loop().time() - began_s

    assert play(scenario) < 1


@asynccontextmanager
async def lite(world: World, name: str) -> AsyncIterator[LitePullConsumer]:
    """Run a consumer with its own connection, subscribed to topic T."""
    async with (
        Session([world.namesrv_address], world.runtime, f"127.0.0.1@{name}") as session,
        LitePullConsumer(session, GROUP, LitePullConfig(consume_from=ConsumeFrom.FIRST_OFFSET)) as consumer,
    ):
        await consumer.subscribe("T")
        yield consumer


async def all_of(messages: AsyncIterator[ReceivedMessage]) -> list[ReceivedMessage]:
    return [message async for message in messages]


def test_a_poll_without_arguments_waits_5_seconds_and_returns_10_messages() -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            begun_s = asyncio.get_running_loop().time()
            async with asyncio.timeout(6):
                assert await consumer.poll() == []
            assert asyncio.get_running_loop().time() - begun_s == pytest.approx(5.0)
            await fill(world, QUEUE, 12)
            await asyncio.sleep(1)
            assert [len(await consumer.poll()) for _ in range(2)] == [10, 2]

    play(scenario)


@pytest.mark.parametrize(
    ("config", "tasks"),
    [(None, [5.0]), (LitePullConfig(commit_interval_ms=70), [0.07]), (LitePullConfig(auto_commit=False), [])],
)
def test_offsets_are_stored_at_the_configured_interval(
    config: LitePullConfig | None, tasks: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[float] = []

    async def repeat(_work: object, seconds: float) -> None:
        found.append(seconds)

    async def scenario(world: World) -> None:
        async with polling(world, config):
            await asyncio.sleep(0.1)
        assert found == tasks

    monkeypatch.setattr(lite_pull_consumer, "repeat", repeat)
    play(scenario)


def test_the_interval_of_stores_must_be_positive() -> None:
    async def scenario(world: World) -> None:
        polling(world, LitePullConfig(commit_interval_ms=1))
        with pytest.raises(ValueError, match="commit_interval_ms is 0, at least 1 expected"):
            polling(world, LitePullConfig(commit_interval_ms=0))
        with pytest.raises(TypeError, match="strategy is 7, a function expected"):
            polling(world, LitePullConfig(strategy=7))  # type: ignore[arg-type]  # what is tested
        with pytest.raises(TypeError, match="an object with the method load expected"):
            polling(world, LitePullConfig(offset_store=7))  # type: ignore[arg-type]  # what is tested

    play(scenario)


def test_queues_that_are_given_up_store_their_offsets_and_others_are_kept() -> None:
    async def scenario(world: World) -> None:
        for queue in (QUEUE, OTHER):
            await fill(world, queue, 3)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE, OTHER])
            await asyncio.sleep(1)
            kept = consumer._queues.process_queues()[1]
            assert (await consumer.poll(max_count=2))[0].queue == QUEUE
            consumer._done()
            await consumer.assign([OTHER])
            assert (await committed(world))[0] == 2
            assert consumer._queues.process_queues() == [kept]
            assert consumer.assignment() == [OTHER]
            await consumer.lose(QUEUE)  # is no longer read
            info = consumer.running_info()
            assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
            assert [held.locked for held in info.mq_table.values()] == [False]
            await consumer.poll(max_count=1)
            await consumer.commit()
            assert consumer.progress("T") == {OTHER: 1}

    play(scenario)


def test_a_queue_whose_offset_is_not_known_is_not_read_yet(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        async def load(queue: MessageQueue) -> int | None:  # as Offsets has it
            raise ClientError("busy")

        await fill(world, QUEUE, 1)
        async with polling(world) as consumer:
            assert await consumer.gain(QUEUE)
            assert consumer.assignment() == [QUEUE]
            await consumer.lose(QUEUE)
            consumer._offsets.load = load  # type: ignore[method-assign]
            assert not await consumer.gain(QUEUE)
            assert consumer.assignment() == []

    play(scenario)
    assert "T@broker-a:0 is not read yet: busy" in caplog.messages


def test_a_seek_needs_a_queue_that_is_read() -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        async with polling(world) as consumer:
            await consumer.assign([OTHER])
            with pytest.raises(ClientError, match="T@broker-a:0 is not one of the queues being read"):
                await consumer.seek(QUEUE, 0)
            with pytest.raises(ClientError, match="has assigned queues: it can either subscribe or assign"):
                await consumer.subscribe("T")
            with pytest.raises(TypeError, match="timestamp_ms is 'now', milliseconds since 1970 expected"):
                await consumer.offset_for_time(OTHER, "now")  # type: ignore[arg-type]  # what is tested

    play(scenario)


def test_a_message_is_acknowledged_once_and_only_while_its_queue_is_read() -> None:
    async def scenario(world: World) -> None:
        await fill(world, QUEUE, 2)
        await fill(world, OTHER, 1)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE, OTHER])
            await asyncio.sleep(1)
            messages = consumer.unacknowledged()
            first, second, third = [await anext(messages) for _ in range(3)]
            assert [each.queue for each in (first, second, third)] == [QUEUE, OTHER, QUEUE]
            assert await consumer.acknowledge(second)
            assert not await consumer.acknowledge(second)
            held = consumer._queues.process_queues()[0]
            assert held.begun_count == 2
            held.is_dropped = True
            assert not await consumer.acknowledge(first)

    play(scenario)


def test_an_operators_reset_moves_a_queue_that_is_read() -> None:
    async def scenario(world: World) -> None:
        await fill(world, QUEUE, 3)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            await asyncio.sleep(1)
            consumer.reset_offsets("T", {QUEUE: 2})
            await asyncio.sleep(1)
            assert [message.queue_offset for message in await consumer.poll()] == [2]

    play(scenario)


def test_a_stop_ends_the_tasks_first_and_records_that_the_member_has_left() -> None:
    async def scenario(world: World) -> list[Kind]:
        await make_topic(world)
        consumer = polling(world)
        await consumer.start()
        await consumer.subscribe("T")
        await asyncio.sleep(3)
        tasks, ended = list(consumer._tasks), list[bool]()
        assert len(tasks) == 2
        stop = consumer._queues.stop

        def stopped() -> None:
            ended.extend(task.done() for task in tasks)
            stop()

        consumer._queues.stop = stopped  # type: ignore[method-assign]
        await consumer.stop()
        assert ended == [True, True]
        return [event.kind for event in world.events if event.node == "lite"]

    kinds = play(scenario)
    assert kinds.count(Kind.SUBSCRIBE) == kinds.count(Kind.UNSUBSCRIBE) == 1


@pytest.mark.parametrize("given_ms", [None, 5])
def test_a_group_that_starts_at_a_time_starts_at_the_given_one_or_half_an_hour_before_its_start(
    given_ms: int | None,
) -> None:
    async def scenario(world: World) -> None:
        asked_ms: list[int] = []

        async def search_offset(_queue: MessageQueue, timestamp_ms: int) -> int:
            asked_ms.append(timestamp_ms)
            return 0

        async def committed(_queue: MessageQueue) -> None:
            """Return None: the group has no offset."""

        await make_topic(world)
        await asyncio.sleep(7)
        config = LitePullConfig(consume_from=ConsumeFrom.TIMESTAMP, consume_from_ms=given_ms)
        async with polling(world, config) as consumer:
            started_ms = now_ms(world.runtime.clock)
            consumer._calls.search_offset = search_offset  # type: ignore[method-assign,assignment]
            consumer._calls.committed = committed  # type: ignore[method-assign,assignment]
            await asyncio.sleep(3)
            await consumer.assign([QUEUE])
        assert asked_ms == [started_ms - 30 * 60_000 if given_ms is None else given_ms]

    play(scenario)


def test_a_consumer_that_cannot_join_its_group_can_be_started_when_the_other_one_has_left() -> None:
    async def scenario(world: World) -> None:
        first, second = polling(world), polling(world)
        await first.start()
        with pytest.raises(ClientError, match=f"group {GROUP} already has a consumer"):
            await second.start()
        await first.stop()
        await second.start()
        await second.stop()

    play(scenario)


def test_a_second_subscription_takes_effect_at_once() -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        await world.producer.send(Message("U", b"x"))
        async with polling(world) as consumer:
            await consumer.subscribe("T")
            await asyncio.sleep(5)
            await consumer.subscribe("U")
            await asyncio.sleep(1)
            assert {queue.topic for queue in consumer.assignment()} == {"T", "U"}

    play(scenario)


class Arrived(asyncio.Event):
    """Fails a consumer that looks for messages again and again."""

    waits = 0

    async def wait(self) -> Literal[True]:
        self.waits += 1
        assert self.waits < 10
        return await super().wait()


@pytest.mark.parametrize("is_polled", [True, False])
def test_a_consumer_that_waits_looks_again_only_when_messages_arrive(is_polled: bool) -> None:
    async def scenario(world: World) -> None:
        await fill(world, QUEUE, 1)
        async with polling(world) as consumer:
            consumer._arrived = Arrived()
            await consumer.assign([QUEUE])
            await asyncio.sleep(1)
            if is_polled:
                assert [len(await consumer.poll()) for _ in range(2)] == [1, 0]
            else:
                assert await consumer._next_unbegun() is not None
                assert await consumer._next_unbegun() is None

    play(scenario)


def test_a_pull_of_a_lite_pull_consumer_is_held_20_seconds() -> None:
    async def scenario(world: World) -> None:
        held_ms: list[int] = []

        async def pull(*_: object, hold_ms: int, **__: object) -> None:
            held_ms.append(hold_ms)
            raise ClientError("ends here")

        await make_topic(world)
        async with polling(world) as consumer:
            consumer._calls.pull = pull  # type: ignore[method-assign,assignment]
            await consumer.assign([QUEUE])
            await asyncio.sleep(0.1)
        assert held_ms == [20_000]

    play(scenario)


def test_an_iteration_looks_again_after_5_seconds() -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        async with polling(world) as consumer:
            await consumer.assign([QUEUE])
            begun_s = asyncio.get_running_loop().time()
            async with asyncio.timeout(6):
                assert await consumer._next_unbegun() is None
            assert asyncio.get_running_loop().time() - begun_s == pytest.approx(5.0, abs=0.001)

    play(scenario)

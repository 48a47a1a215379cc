"""Tests the scheduled pull service: tasks are called on time and never concurrently for a queue."""

import asyncio
from collections import Counter

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting import bodies
from mqproof.impl.remoting.java_json import ObjectKey
from tests.impl.client.members import GROUP, committed, make_topic, numbers, send
from tests.impl.world import World, play


async def consume(bodies: list[bytes], consumer: PullConsumer, queue: MessageQueue) -> int | None:
    result = await consumer.pull(queue, await consumer.committed(queue) or 0)
    bodies += [stored.message.body for stored in result.messages]
    await consumer.commit(queue, result.next_offset)
    return None if result.messages else 1000


def test_members_process_their_queues_and_each_message_once() -> None:
    async def scenario(world: World) -> tuple[list[bytes], list[int], dict[int, int | None]]:
        first: list[bytes] = []
        second: list[bytes] = []
        await send(world, numbers(0, 8))
        async with (
            ScheduledPull(world.session, GROUP) as one,
            Session([world.namesrv_address], world.runtime) as session,
            ScheduledPull(session, GROUP) as two,
        ):
            await one.register("T", lambda consumer, queue: consume(first, consumer, queue))
            await asyncio.sleep(3)
            await two.register("T", lambda consumer, queue: consume(second, consumer, queue))
            await asyncio.sleep(3)
            await send(world, numbers(8, 16))
            await asyncio.sleep(3)
            assert len(one.owned()) == len(two.owned()) == 2
        return first + second, [len(first), len(second)], await committed(world)

    bodies, counts, offsets = play(scenario)
    assert sorted(bodies) == sorted(numbers(0, 16))
    assert counts == [12, 4]
    assert offsets == dict.fromkeys(range(4), 4)


def test_a_task_is_called_again_after_its_delay_even_after_a_failure_but_never_concurrently() -> None:
    async def scenario(world: World) -> tuple[Counter[int], int]:
        calls: Counter[int] = Counter()
        running: Counter[int] = Counter()
        most = 0

        async def task(consumer: PullConsumer, queue: MessageQueue) -> int | None:
            nonlocal most
            calls[queue.queue_id] += 1
            running[queue.queue_id] += 1
            most = max(most, running[queue.queue_id])
            await asyncio.sleep(0.3)
            running[queue.queue_id] -= 1
            if queue.queue_id == 1:
                raise RuntimeError("injected")
            return [700, None, 0, 60_000][queue.queue_id]

        await make_topic(world)
        async with ScheduledPull(world.session, GROUP) as service:
            await service.register("T", task)
            await asyncio.sleep(30.5)
        return calls, most

    calls, most = play(scenario)
    assert most == 1
    assert 28 <= calls[0] <= 31  # every second
    assert 55 <= calls[1] <= 61  # every half second
    assert 90 <= calls[2] <= 102
    assert calls[3] == 1


def test_a_queue_that_is_reassigned_while_its_task_runs_waits_for_it() -> None:
    async def scenario(world: World) -> int:
        running: Counter[MessageQueue] = Counter()
        most = 0

        async def task(consumer: PullConsumer, queue: MessageQueue) -> int:
            nonlocal most
            running[queue] += 1
            most = max(most, running[queue])
            await asyncio.sleep(3)
            running[queue] -= 1
            return 0

        await make_topic(world)
        async with ScheduledPull(world.session, GROUP) as service:
            await service.register("T", task)
            await asyncio.sleep(2)
            for queue in list(service.owned()):
                await service.lose(queue)
            service.members_changed()
            await asyncio.sleep(10)
            assert len(service.owned()) == 4
        return most

    assert play(scenario) == 1


def test_an_operators_reset_is_stored_for_our_queues() -> None:
    async def scenario(world: World) -> dict[int, int | None]:
        await send(world, numbers(0, 8))
        bodies: list[bytes] = []

        async def once(consumer: PullConsumer, queue: MessageQueue) -> int:
            await consume(bodies, consumer, queue)
            return 60_000

        async with ScheduledPull(world.session, GROUP) as service:
            await service.register("T", once)
            await asyncio.sleep(3)
            queue = MessageQueue("T", "broker-a", 0)
            foreign = MessageQueue("T", "broker-b", 1)
            service.reset_offsets("T", {queue: 1, foreign: 1})
            await asyncio.sleep(1)
            return await committed(world)

    assert play(scenario) == {0: 1, 1: 2, 2: 2, 3: 2}


def test_a_stop_waits_for_the_running_call() -> None:
    async def scenario(world: World) -> tuple[int, int]:
        began, ended = [], []

        async def task(consumer: PullConsumer, queue: MessageQueue) -> None:
            began.append(queue)
            await asyncio.sleep(5)
            ended.append(queue)

        await make_topic(world)
        async with ScheduledPull(world.session, GROUP) as service:
            await service.register("T", task)
            await asyncio.sleep(3)
        return len(began), len(ended)

    assert play(scenario) == (4, 4)


def test_a_stop_ends_the_division_of_queues_before_it_leaves_the_group() -> None:
    async def scenario(world: World) -> None:
        service = ScheduledPull(world.session, GROUP)
        await service.start()
        await asyncio.sleep(0.1)
        own, left = list(service._background), list[bool]()

        async def leave(group: str) -> None:
            left.append(group == GROUP and all(task.done() for task in own))

        world.session.leave_as_consumer = leave  # type: ignore[method-assign]
        await service.stop()
        assert (len(own), left) == (1, [True])

    play(scenario)


def test_a_task_that_is_no_function_is_refused() -> None:
    async def scenario(world: World) -> None:
        async with ScheduledPull(world.session, GROUP) as service:
            with pytest.raises(TypeError, match="task is None, a function expected"):
                await service.register("T", None)  # type: ignore[arg-type]  # what is tested

    play(scenario)


def test_a_service_that_is_not_started_registers_nothing_and_cannot_be_stopped() -> None:
    async def scenario(world: World) -> None:
        async def task(_consumer: PullConsumer, _queue: MessageQueue) -> None:
            """Does nothing."""

        with pytest.raises(ValueError, match="group"):
            ScheduledPull(world.session, "a group")
        service = ScheduledPull(world.session, GROUP)
        with pytest.raises(ClientError, match=f"the scheduled pull of group {GROUP} is not started"):
            await service.register("T", task)
        with pytest.raises(ClientError, match="is not started, so it cannot be stopped"):
            await service.stop()
        await service.start()
        await service.register("T", task)
        with pytest.raises(ClientError, match="can be started only once"):
            await service.start()
        await service.stop()
        await service.stop()

    play(scenario)


def test_a_call_that_cancels_itself_does_not_end_the_stop() -> None:
    async def scenario(world: World) -> list[str]:
        await make_topic(world)
        left: list[str] = []

        async def task(_consumer: PullConsumer, _queue: MessageQueue) -> int:
            await asyncio.sleep(5)
            raise asyncio.CancelledError

        async def leave(group: str) -> None:
            left.append(group)

        service = ScheduledPull(world.session, GROUP)
        await service.start()
        await service.register("T", task)
        await asyncio.sleep(3)
        world.session.leave_as_consumer = leave  # type: ignore[method-assign]
        await service.stop()
        return list(left)

    assert play(scenario) == [GROUP]


def test_a_task_runs_every_200_ms_unless_it_returns_another_delay(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        times_s: list[float] = []
        pauses = iter([None, 1000, 0, None])

        async def task(_consumer: PullConsumer, _queue: MessageQueue) -> int | None:
            times_s.append(round(asyncio.get_running_loop().time() - begun_s, 4))
            if len(times_s) == 5:
                raise RuntimeError("injected")
            return next(pauses, 100_000)

        service = ScheduledPull(world.session, GROUP)
        service._tasks["T"] = task
        begun_s = asyncio.get_running_loop().time()
        queue = MessageQueue("T", "broker-a", 0)
        assert await service.gain(queue)
        assert not await service.gain(queue)  # it is running already
        await asyncio.sleep(10)
        assert times_s == [0, 0.2, 1.2, 1.2, 1.4, 1.6]
        assert service.owned() == [queue]
        await service.lose(queue)
        await asyncio.sleep(0.1)
        assert (service.owned(), service._running) == ([], {})

    play(scenario)
    assert caplog.messages == ["the task failed on T@broker-a:0"]


def test_administrators_see_the_queues_of_the_member_and_no_progress() -> None:
    async def scenario(world: World) -> None:
        service = ScheduledPull(world.session, GROUP)
        queues = [MessageQueue("T", "broker-a", number) for number in (1, 0)]
        service._leave = {queue: asyncio.Event() for queue in queues}
        service._subscriptions.add("T")
        info = service.running_info()
        assert list(info.mq_table) == [
            ObjectKey(bodies.MessageQueue("broker-a", each, "T")) for each in (0, 1)
        ]
        assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
        assert [each.topic for each in info.subscription_set] == ["T"]
        assert service.progress("T") == {}

    play(scenario)


def test_a_reset_that_is_not_stored_is_logged_and_others_are_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        stored: list[tuple[MessageQueue, int, bool]] = []

        async def commit(queue: MessageQueue, offset: int, *, reset: bool = False) -> None:
            stored.append((queue, offset, reset))
            raise ClientError("busy")

        service = ScheduledPull(world.session, GROUP)
        service._consumer.commit = commit  # type: ignore[method-assign]
        mine, other = MessageQueue("T", "broker-a", 0), MessageQueue("U", "broker-a", 0)
        service._leave = {mine: asyncio.Event(), other: asyncio.Event()}
        service.reset_offsets("T", {mine: 7, other: 8, MessageQueue("T", "broker-a", 1): 9})
        assert len(service._background) == 1
        await asyncio.sleep(0.1)
        assert stored == [(mine, 7, True)]
        assert service._background == set()

    play(scenario)
    assert caplog.messages == ["an offset is not reset: busy"]

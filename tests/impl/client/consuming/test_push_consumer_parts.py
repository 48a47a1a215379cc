"""Tests parts of a push consumer without a broker: its tasks, its start in a queue, and its reports."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming import push_consumer
from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConsumer
from mqproof.impl.client.consuming.offset_store import FileOffsets
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ClientError, MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.remoting.bodies import ConsumedDirectly
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import EPOCH_US, SimulatedLoop, run_simulated
from mqproof.spec.events import Event

QUEUE = MessageQueue("T", "b", 0)
NOW_MS = EPOCH_US // 1000


async def no_listener(_messages: Sequence[ReceivedMessage]) -> None:
    """Never called."""


def play(
    scenario: Callable[[PushConsumer], Awaitable[None]],
    config: PushConsumerConfig | None = None,
    listener: Any = no_listener,
) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        session = Session([Address("n", 1)], simulated(loop, SimulatedNetwork()), "me")
        await scenario(PushConsumer(session, "G", listener, config))

    run_simulated(main(), loop)


def broadcast(**options: Any) -> PushConsumerConfig:
    return PushConsumerConfig(MessageModel.BROADCASTING, offsets_directory="/offsets", **options)


@pytest.mark.parametrize(
    ("config", "tasks"),
    [
        (PushConsumerConfig(), [("save", 5.0, None), ("_give_back_overdue", 900.0, None)]),
        (
            PushConsumerConfig(persist_interval_ms=70, consume_timeout_ms=90),
            [("save", 0.07, None), ("_give_back_overdue", 0.09, None)],
        ),
        (PushConsumerConfig(orderly=True), [("save", 5.0, None), ("_renew_locks", 20.0, 1.0)]),
        (broadcast(orderly=True), [("save", 5.0, None)]),
        (broadcast(), [("save", 5.0, None), ("_give_back_overdue", 900.0, None)]),
    ],
)
def test_the_periodic_tasks_have_these_intervals(
    config: PushConsumerConfig, tasks: list[tuple[str, float, float | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, float, float | None]] = []

    async def repeat(work: Any, seconds: float, first_s: float | None = None) -> None:
        found.append((work.__name__, seconds, first_s))

    async def scenario(consumer: PushConsumer) -> None:
        consumer._rebalancer = cast(Any, SimpleNamespace(run=lambda: repeat(no_listener, 0)))
        consumer._consumption = consumer._new_consumption()
        await asyncio.gather(*consumer._background())
        assert found[1:] == tasks
        await consumer._consumption.stop(0)

    monkeypatch.setattr(push_consumer, "repeat", repeat)
    play(scenario, config)


@pytest.mark.parametrize(
    ("config", "is_tried", "expected"),
    [
        (PushConsumerConfig(), True, (ConsumeFrom.LAST_OFFSET, 5)),
        (broadcast(), False, (ConsumeFrom.LAST_OFFSET, 5)),
        (broadcast(), True, (ConsumeFrom.TIMESTAMP, NOW_MS + 7000 - 60_000)),
        (broadcast(consume_from=ConsumeFrom.FIRST_OFFSET), True, (ConsumeFrom.FIRST_OFFSET, 5)),
    ],
)
def test_a_broadcast_member_begins_at_its_subscription_in_a_queue_that_it_finds_later(
    config: PushConsumerConfig, is_tried: bool, expected: tuple[ConsumeFrom, int]
) -> None:
    async def scenario(consumer: PushConsumer) -> None:
        consumer._rebalancer = cast(Any, SimpleNamespace(has_tried=lambda _: is_tried))
        consumer._since_ms = 5
        await consumer.subscribe("T")
        await consumer.unsubscribe("T")
        await consumer.unsubscribe("T")
        await asyncio.sleep(7)
        await consumer.subscribe("T")  # this subscription counts
        await asyncio.sleep(7)
        await consumer.subscribe("T", "A")  # and not this change
        assert consumer._beginning("T") == expected

    play(scenario, config)


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize(
    ("answer", "result", "remark"),
    [
        (None, "CR_SUCCESS", None),
        (RetryLater(), "CR_LATER", None),
        (RetryLater(done=1), "CR_SUCCESS", None),
        (RuntimeError("why"), "CR_THROW_EXCEPTION", "RuntimeError: why"),
        (7, "CR_THROW_EXCEPTION", "TypeError: a listener returned 7, None or RetryLater expected"),
    ],
)
def test_the_result_of_a_message_consumed_on_request(
    answer: object, result: str, remark: str | None, orderly: bool
) -> None:
    seen: list[ReceivedMessage] = []

    async def listener(messages: Sequence[ReceivedMessage]) -> Any:
        seen.extend(messages)
        await asyncio.sleep(2.0004)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def scenario(consumer: PushConsumer) -> None:
        await asyncio.sleep(5)
        stored = StoredMessage(Message("T", b"x", queue_id=3, reconsume_times=2), 9, 0, 0, 0, 0)
        found = await consumer.consume_directly(stored, "b")
        assert found == ConsumedDirectly(True, result, orderly, remark, 2000)
        (received,) = seen
        assert (received.queue, received.reconsume_times) == (MessageQueue("T", "b", 3), 2)

    play(scenario, PushConsumerConfig(orderly=orderly), listener)


@pytest.mark.parametrize(
    ("config", "properties"),
    [
        (
            PushConsumerConfig(concurrency=7, batch_max=3),
            {
                "PROP_CONSUMEORDERLY": "false", "PROP_THREADPOOL_CORE_SIZE": "7",
                "consumeMessageBatchMaxSize": "3", "messageModel": "CLUSTERING", "pullBatchSize": "32",
            },
        ),
        (
            broadcast(orderly=True),
            {
                "PROP_CONSUMEORDERLY": "true", "PROP_THREADPOOL_CORE_SIZE": "20",
                "consumeMessageBatchMaxSize": "1", "messageModel": "BROADCASTING", "pullBatchSize": "32",
            },
        ),
    ],
)  # fmt: skip
def test_administrators_see_the_configuration(config: PushConsumerConfig, properties: dict[str, str]) -> None:
    async def scenario(consumer: PushConsumer) -> None:
        consumer._started_ms = 11
        consumer._queues = cast(Any, SimpleNamespace(process_queues=list))
        found = consumer.running_info().properties
        shared = ("PROP_CLIENT_VERSION", "PROP_CONSUME_TYPE", "PROP_NAMESERVER_ADDR")
        assert found["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
        assert {name: value for name, value in found.items() if name not in shared} == {
            **properties, "PROP_CONSUMER_START_TIMESTAMP": "11",
        }  # fmt: skip

    play(scenario, config)


def test_a_queue_whose_offset_is_not_known_is_not_read_and_the_reason_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(consumer: PushConsumer) -> None:
        async def load(_queue: MessageQueue) -> int:
            raise ClientError("busy")

        consumer._since_ms = 0
        consumer._offsets = cast(Any, SimpleNamespace(load=load))
        assert not await consumer.gain(QUEUE)
        consumer._leaving[QUEUE] = cast(Any, None)
        assert not await consumer.gain(QUEUE)

    play(scenario)
    assert caplog.messages == ["T@b:0 is not read yet: busy"]


def test_a_lock_that_another_client_holds_is_logged_and_its_queue_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[object] = []

    async def scenario(consumer: PushConsumer) -> None:
        async def renew() -> list[MessageQueue]:
            return [QUEUE]

        async def lose(queue: MessageQueue) -> None:
            done.append(queue)

        consumer._locks = cast(Any, SimpleNamespace(renew=renew))
        consumer._rebalancer = cast(Any, SimpleNamespace(soon=lambda: done.append("soon")))
        consumer.lose = lose  # type: ignore[method-assign]
        await consumer._renew_locks()

    play(scenario, PushConsumerConfig(orderly=True))
    assert done == [QUEUE, "soon"]
    assert caplog.messages == ["another client holds the lock of T@b:0"]


def test_the_queue_listener_gets_the_queues_of_the_topic_and_may_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[tuple[str, list[MessageQueue]]] = []

    def changed(topic: str, queues: Sequence[MessageQueue]) -> None:
        seen.append((topic, list(queues)))
        raise RuntimeError("injected")

    async def scenario(consumer: PushConsumer) -> None:
        consumer._life.start()
        queues = [QUEUE, MessageQueue("U", "b", 0), MessageQueue("%RETRY%G", "b", 0)]
        consumer._queues = cast(Any, SimpleNamespace(queues=lambda: queues))
        consumer._queues_changed("%RETRY%G")
        consumer._queues_changed("T")

    play(scenario, PushConsumerConfig(queue_listener=changed))
    play(scenario)  # without one
    assert seen == [("T", [QUEUE])]
    assert caplog.messages == ["the queue listener failed on T"]


def test_overdue_messages_are_looked_for_in_every_queue_with_the_time_limit() -> None:
    async def scenario(consumer: PushConsumer) -> None:
        seen: list[tuple[object, float]] = []

        async def give_back_overdue(held: object, timeout_s: float) -> None:
            seen.append((held, timeout_s))

        consumer._consumption = consumer._new_consumption()
        consumer._consumption.give_back_overdue = give_back_overdue  # type: ignore
        consumer._queues = cast(Any, SimpleNamespace(process_queues=lambda: ["one", "two"]))
        await consumer._give_back_overdue()
        assert seen == [("one", 900.0), ("two", 900.0)]
        await consumer._consumption.stop(0)

    play(scenario)


@pytest.mark.parametrize(("config", "stop_s"), [(None, 5.0), (PushConsumerConfig(stop_timeout_ms=70), 0.07)])
def test_a_stop_waits_for_listeners_and_then_for_queues_that_are_given_up(
    config: PushConsumerConfig | None, stop_s: float
) -> None:
    done: list[object] = []

    async def scenario(consumer: PushConsumer) -> None:
        async def stop(timeout_s: float) -> None:
            done.append(timeout_s)

        async def leave(group: str) -> None:  # as Session has it
            done.append(asyncio.get_running_loop().time())

        async def closed() -> None:
            done.append("unlocked")

        consumer._life.start()
        consumer._queues = cast(Any, SimpleNamespace(stop=lambda: done.append("queues")))
        consumer._consumption = cast(Any, SimpleNamespace(stop=stop))
        consumer._locks = cast(Any, SimpleNamespace(unlock_all=closed))
        consumer._threads = cast(Any, SimpleNamespace(close=lambda: done.append("threads")))
        consumer._events = cast(Any, SimpleNamespace(left=lambda: done.append("left")))
        consumer._session.leave_as_consumer = leave  # type: ignore[method-assign]
        endless = consumer._leaving[QUEUE] = asyncio.create_task(asyncio.sleep(100))
        consumer._tasks = [asyncio.create_task(asyncio.sleep(100))]
        await consumer.stop()
        await consumer.stop()
        endless.cancel()
        await asyncio.sleep(0)
        assert consumer._tasks == []
        assert len(asyncio.all_tasks()) == 1

    play(scenario, config)
    assert done == ["queues", stop_s, "unlocked", "threads", "left", stop_s]


@pytest.mark.parametrize(
    "create",
    [
        lambda session, log: PushConsumer(session, "G", no_listener, None, log)._events,
        lambda session, log: LitePullConsumer(session, "G", None, log)._events,
        lambda session, log: PullConsumer(session, "G", log)._events,
        lambda session, log: ScheduledPull(session, "G", events=log)._rebalancer._events,
    ],
    ids=["push", "lite", "pull", "scheduled"],
)
def test_the_events_of_each_kind_of_consumer_name_its_group_and_its_client(
    create: Callable[[Session, EventLog], ConsumerEvents],
) -> None:
    events: list[Event] = []

    async def scenario(consumer: PushConsumer) -> None:
        session = consumer._session
        create(session, EventLog(events.append, "c", session.runtime.clock)).rebalanced("T", 1)

    play(scenario)
    assert [(event.topic, event.group, event.client) for event in events] == [("T", "G", "me")]


def test_a_broadcast_member_has_a_file_of_its_own_for_each_group() -> None:
    async def scenario(consumer: PushConsumer) -> None:
        store = consumer._offsets._store
        assert isinstance(store, FileOffsets)
        await store.save({QUEUE: 1})
        assert consumer._session.runtime.disk.exists("/offsets/me/G/offsets.json")

    play(scenario, broadcast())


@pytest.mark.parametrize("topic", [None, "Traces"])
def test_calls_of_the_listener_are_traced_only_with_a_topic_for_them(topic: str | None) -> None:
    async def scenario(consumer: PushConsumer) -> None:
        groups = list(consumer._session._producers)
        assert groups == ([] if topic is None else ["_INNER_TRACE_PRODUCER-G-CONSUME-1"])
        traced = consumer._listening._traced
        assert (traced and traced._dispatcher.topic) == topic
        if traced is not None:
            assert traced._group == "G"

    play(scenario, PushConsumerConfig(trace_topic=topic))


def test_another_concurrency_is_that_of_the_threads_too_and_only_a_started_consumer_has_it() -> None:
    done: list[object] = []

    async def scenario(consumer: PushConsumer) -> None:
        async def resize(concurrency: int) -> None:
            done.append(("calls", concurrency))

        consumer._threads = cast(Any, SimpleNamespace(resize=lambda size: done.append(("threads", size))))
        consumer._consumption = cast(Any, SimpleNamespace(resize=resize))
        with pytest.raises(ClientError, match="is not started"):
            await consumer.set_concurrency(1)
        consumer._life.start()
        with pytest.raises(ValueError, match="concurrency is 0, at least 1 expected"):
            await consumer.set_concurrency(0)
        assert done == []
        await consumer.set_concurrency(1)

    play(scenario)
    assert done == [("threads", 1), ("calls", 1)]


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("concurrency", 1), ("batch_max", 1), ("consume_timeout_ms", 1), ("persist_interval_ms", 1),
        ("stop_timeout_ms", 0), ("reconsume_max", 0),
    ],
)  # fmt: skip
def test_the_least_value_of_each_number_is_accepted(name: str, least: int) -> None:
    async def scenario(consumer: PushConsumer) -> None:
        with pytest.raises(ValueError, match=f"{name} is {least - 1}, at least {least} expected"):
            PushConsumer(
                consumer._session, "G", no_listener, PushConsumerConfig(**cast(Any, {name: least - 1}))
            )

    play(scenario, PushConsumerConfig(**cast(Any, {name: least})))


@pytest.mark.parametrize(("reconsume_max", "redeliveries"), [(None, 16), (0, 0), (3, 3)])
def test_a_message_is_redelivered_16_times_unless_configured(
    reconsume_max: int | None, redeliveries: int
) -> None:
    async def scenario(consumer: PushConsumer) -> None:
        consumption = consumer._new_consumption()
        assert consumption._redelivery is not None
        assert consumption._redelivery._reconsume_max == redeliveries
        await consumption.stop(0)

    play(scenario, PushConsumerConfig(reconsume_max=reconsume_max))

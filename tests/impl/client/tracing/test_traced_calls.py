"""Tests what producers and consumers trace, through our broker, and how an administrator reads it."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

import pytest

from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.messages import traces_of
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import MessageError, MessageQueue, ReceivedMessage, RetryLater, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.tracing.trace_dispatcher import TraceDispatcher
from mqproof.impl.client.tracing.trace_records import (
    TRACE_TOPIC,
    CallBegan,
    CallEnded,
    Context,
    Published,
    TraceRecord,
    decode,
)
from mqproof.impl.client.tracing.traced_calls import TracedCalls
from mqproof.impl.remoting.message import KEYS, UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import EPOCH_US, SimulatedLoop, run_simulated
from mqproof.impl.store.files import record
from tests.impl.world import SMALL_STORE, World, play

QUEUE = MessageQueue("T", "broker-a", 0)
CONFIG = BrokerConfig(store_directory="/store", port=0, store=SMALL_STORE, trace_topic=True)
TRACED = ProducerConfig("PG", trace_topic=TRACE_TOPIC)


def traced(world: World) -> list[TraceRecord]:
    assert world.broker is not None
    data = world.broker.store.get(TRACE_TOPIC, 0, 0).records
    return [found for one in data for found in decode(record.decode(one).message.body)]


async def sent(producer: Producer, body: bytes = b"a", **options: object) -> Sent:
    outcome = await producer.send(new_message("T", body, **options), QUEUE)  # type: ignore[arg-type]
    assert isinstance(outcome, Sent)
    return outcome


def test_a_producer_traces_stored_messages_and_batches() -> None:
    async def scenario(world: World) -> None:
        producer = Producer(world.session, TRACED)
        one = await sent(producer, b"hello", tag="t", keys=["k1", "k2"])
        later = await sent(producer, delay_level=3)
        batch = await producer.send_batch([new_message("T", b"x"), new_message("T", b"y")], QUEUE)
        await asyncio.sleep(2)
        first, delayed, both = traced(world)
        assert isinstance(first, Published)
        assert first.message_ids == (one.message_id,)
        assert (first.tag, first.keys, first.region) == ("t", "k1 k2", "DefaultRegion")
        assert (first.body_bytes, first.message_type, first.ok) == (5, 0, True)
        assert first.offset_ids == one.offset_message_id
        assert first.store_host == str(world.broker_address)
        assert isinstance(delayed, Published)
        assert (delayed.message_ids, delayed.message_type) == ((later.message_id,), 3)
        assert isinstance(both, Published)
        assert both.message_ids == tuple(each.message_id for each in batch)
        assert (both.tag, both.keys) == (None, None)

    play(scenario, config=CONFIG)


def test_a_broker_without_tracing_gets_no_traces() -> None:
    async def scenario(world: World) -> None:
        await sent(Producer(world.session, TRACED))
        await asyncio.sleep(2)
        assert traced(world) == []

    play(scenario, config=replace(CONFIG, trace_on=False))


def test_a_failed_call_a_raising_one_and_a_good_one_are_traced() -> None:
    async def scenario(world: World) -> None:
        one = await sent(world.producer, keys="k")
        ends: list[RetryLater | ValueError | None] = [RetryLater(), ValueError("bad"), None]

        async def listener(_messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            end = ends.pop(0)
            if isinstance(end, ValueError):
                raise end
            return end

        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET, trace_topic=TRACE_TOPIC)
        consumer = PushConsumer(world.session, "CG", listener, config)
        await consumer.subscribe("T")
        await consumer.start()
        await asyncio.sleep(120)
        await consumer.stop()
        records = traced(world)
        began = [each for each in records if isinstance(each, CallBegan)]
        ended = [each for each in records if isinstance(each, CallEnded)]
        assert [each.redeliveries for each in began] == [0, 1, 2]
        assert [each.context for each in ended] == [Context.FAILED, Context.EXCEPTION, Context.SUCCESS]
        assert [each.ok for each in ended] == [False, False, True]
        assert [each.request_id for each in began] == [each.request_id for each in ended]
        assert {(each.message_id, each.group, each.keys) for each in began} == {(one.message_id, "CG", "k")}
        async with Admin([world.namesrv_address], world.runtime) as admin:
            assert await traces_of(admin, one.message_id) == sorted(records, key=lambda each: each.time_ms)
            assert await traces_of(admin, "unknown") == []

    play(scenario, config=CONFIG)


def test_the_last_traces_are_sent_when_the_session_stops() -> None:
    async def scenario(world: World) -> None:
        async with Session([world.namesrv_address], world.runtime, "other") as session:
            await sent(Producer(session, TRACED))
        assert len(traced(world)) == 1

    play(scenario, config=CONFIG)


def test_a_topic_that_cannot_exist_is_refused() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(MessageError, match="character"):
            Producer(world.session, ProducerConfig("PG", trace_topic="no topic"))

    play(scenario)


class Dispatcher:
    """Collects the records of calls."""

    def __init__(self) -> None:
        self.records: list[TraceRecord] = []

    def traces(self, topic: str) -> bool:
        return topic != "untraced"

    def add(self, records: Iterable[TraceRecord]) -> None:
        self.records += records


def message(number: int, topic: str = "T", **properties: str) -> ReceivedMessage:
    own = {UNIQUE_KEY: f"m{number}", KEYS: "k", "MSG_REGION": "r", **properties}
    return ReceivedMessage(StoredMessage(Message(topic, b"x", own), number, 0, 0, 0, 0), QUEUE, number)


@pytest.mark.parametrize(
    ("raised", "context"), [(False, Context.FAILED), (True, Context.EXCEPTION)], ids=["failed", "raised"]
)
def test_the_records_of_a_call_are_exact(raised: bool, context: Context) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        dispatcher, runtime = Dispatcher(), simulated(loop, SimulatedNetwork())
        calls = TracedCalls(cast(TraceDispatcher, dispatcher), "G", runtime)
        messages = [message(1), message(2), message(3, TRACE_ON="false"), message(4, TRACE_ON="true")]
        request_id = calls.began(messages)
        assert request_id != calls.began([])
        await asyncio.sleep(10)
        calls.ended(request_id, messages, 10.0, 1, raised=raised)
        calls.ended(request_id, [], 10.0, 0, raised=raised)
        ms = EPOCH_US // 1000
        assert dispatcher.records == [
            *(CallBegan(ms, "r", "G", request_id, f"m{each}", each, "k") for each in (1, 2, 4)),
            CallEnded(request_id, "m1", 2500, True, "k", Context.SUCCESS, ms + 10_000, "G"),
            CallEnded(request_id, "m2", 2500, False, "k", context, ms + 10_000, "G"),
            CallEnded(request_id, "m4", 2500, False, "k", context, ms + 10_000, "G"),
        ]

    run_simulated(main(), loop)


def test_messages_of_the_trace_topic_itself_are_left_out() -> None:
    loop = SimulatedLoop()
    dispatcher, runtime = Dispatcher(), simulated(loop, SimulatedNetwork())
    calls = TracedCalls(cast(TraceDispatcher, dispatcher), "G", runtime)
    stored = StoredMessage(Message("untraced", b"x"), 0, 0, 0, 0, 0)
    calls.began([ReceivedMessage(stored, MessageQueue("untraced", "b", 0), 0)])
    loop.close()
    assert dispatcher.records == []

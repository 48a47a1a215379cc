"""Tests requests and replies through our broker: one result for each request, its own reply or an error.

Source: docs/reference/protocol/requests-and-replies.md. spec/tla/RequestReply.tla has the same steps.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import (
    MessageError,
    MessageQueue,
    NoReplyError,
    ReceivedMessage,
    Refused,
    ReplyError,
    SendError,
    Sent,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.request_reply import new_correlation_id, reply_to, with_request
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.message import DELAY, Message, StoredMessage
from tests.impl.world import SMALL_STORE, World, play

QUEUE = MessageQueue("T", "broker-a", 0)
QUESTION = Message("T", b"question")

Answer = Callable[[ReceivedMessage, Producer], Awaitable[None]]


class Consumer:
    """Reads the topic in a session of its own, and answers each message."""

    def __init__(self, world: World, answer: Answer) -> None:
        self._world, self._answer = world, answer
        self.errors: list[ReplyError] = []
        self.read: list[ReceivedMessage] = []

    async def run(self) -> None:
        offset = 0
        async with Session([self._world.namesrv_address], self._world.runtime, "replier") as session:
            producer = Producer(session, ProducerConfig("RG"))
            await session.routes.get("T")
            while True:
                result = await self._world.consumer.pull(QUEUE, offset)
                offset = result.next_offset
                for stored in result.messages:
                    message = ReceivedMessage(stored, QUEUE, 0)
                    self.read.append(message)
                    try:
                        await self._answer(message, producer)
                    except ReplyError as error:
                        self.errors.append(error)
                await asyncio.sleep(0.01)


async def echo(message: ReceivedMessage, producer: Producer) -> None:
    await producer.reply(message, b"re:" + message.body, properties={"mine": "1"})


async def ignore(_message: ReceivedMessage, _producer: Producer) -> None:
    pass


def playing(scenario: Callable[[World, Consumer], Awaitable[None]], answer: Answer = echo) -> None:
    async def main(world: World) -> None:
        await world.producer.send(Message("T", b"first"), QUEUE)  # creates the topic
        consumer = Consumer(world, answer)
        task = asyncio.create_task(consumer.run())
        try:
            await scenario(world, consumer)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def ignoring_the_first(message: ReceivedMessage, producer: Producer) -> None:
        if message.body != b"first":
            await answer_of(message, producer)

    answer_of, answer = answer, ignoring_the_first
    play(main)


def test_a_request_returns_the_reply_of_a_consumer() -> None:
    async def scenario(world: World, consumer: Consumer) -> None:
        reply = await world.producer.request(QUESTION, QUEUE, timeout_ms=2000)
        assert reply.body == b"re:question"
        assert reply.topic == "DefaultCluster_REPLY_TOPIC"
        names = {"CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "MSG_TYPE", "PUSH_REPLY_TIME", "ARRIVE_TIME"}
        assert names <= set(reply.properties)
        assert reply.properties["mine"] == "1"
        request = consumer.read[-1].properties
        assert (request["TTL"], request["REPLY_TO_CLIENT"]) == ("2000", world.session.client_id)
        assert consumer.errors == []

    playing(scenario)


def test_each_of_many_requests_gets_its_own_reply() -> None:
    async def scenario(world: World, _consumer: Consumer) -> None:
        asked = [Message("T", f"{number}".encode()) for number in range(20)]
        replies = await asyncio.gather(*(world.producer.request(each, QUEUE) for each in asked))
        assert [reply.body for reply in replies] == [b"re:" + each.body for each in asked]

    playing(scenario)


def test_a_large_reply_arrives_decompressed() -> None:
    async def answer(message: ReceivedMessage, producer: Producer) -> None:
        await producer.reply(message, b"x" * 100_000)

    async def scenario(world: World, _consumer: Consumer) -> None:
        reply = await world.producer.request(QUESTION, QUEUE)
        assert reply.body == b"x" * 100_000

    playing(scenario, answer)


def test_without_a_reply_the_request_ends_at_its_time_limit() -> None:
    async def scenario(world: World, _consumer: Consumer) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(
            NoReplyError, match=r"no reply to the request within 500 ms; message .* is stored"
        ) as e:
            await world.producer.request(QUESTION, QUEUE, timeout_ms=500)
        assert isinstance(e.value.outcome, Sent)
        assert loop.time() - began == pytest.approx(0.5, abs=0.05)

    playing(scenario, ignore)


def test_a_late_reply_is_confirmed_and_dropped() -> None:
    async def late(message: ReceivedMessage, producer: Producer) -> None:
        await asyncio.sleep(1)
        await producer.reply(message, b"late")

    async def scenario(world: World, consumer: Consumer) -> None:
        with pytest.raises(NoReplyError):
            await world.producer.request(QUESTION, QUEUE, timeout_ms=300)
        await asyncio.sleep(2)
        assert len(consumer.read) == 2
        assert consumer.errors == []
        assert world.session.replies._waiting == {}

    playing(scenario, late)


def test_of_two_replies_the_first_one_counts() -> None:
    async def twice(message: ReceivedMessage, producer: Producer) -> None:
        await producer.reply(message, b"first")
        await producer.reply(message, b"second")

    async def scenario(world: World, consumer: Consumer) -> None:
        assert (await world.producer.request(QUESTION, QUEUE)).body == b"first"
        await asyncio.sleep(1)
        assert consumer.errors == []

    playing(scenario, twice)


def test_a_reply_to_a_client_that_is_gone_is_an_error() -> None:
    async def slow(message: ReceivedMessage, producer: Producer) -> None:
        await asyncio.sleep(1)
        await producer.reply(message, b"too late")

    async def scenario(world: World, consumer: Consumer) -> None:
        async with Session([world.namesrv_address], world.runtime, "doomed") as session:
            with pytest.raises(NoReplyError):
                await Producer(session, ProducerConfig("PG")).request(QUESTION, QUEUE, timeout_ms=300)
        await asyncio.sleep(2)
        (error,) = consumer.errors
        assert str(error) == "SYSTEM_ERROR: client doomed is not connected"

    playing(scenario, slow)


def test_a_request_survives_a_restart_of_the_broker() -> None:
    async def main(world: World) -> None:
        await world.producer.send(Message("T", b"first"), QUEUE)
        request = asyncio.create_task(world.producer.request(QUESTION, QUEUE, timeout_ms=20_000))
        await asyncio.sleep(0.1)
        await world.stop_broker()
        await asyncio.sleep(1)
        await world.start_broker()
        await asyncio.sleep(3)
        (_, stored) = (await world.consumer.pull(QUEUE, 0)).messages
        await world.producer.reply(ReceivedMessage(stored, QUEUE, 0), b"after the restart")
        assert (await request).body == b"after the restart"

    play(main, config=BrokerConfig(store_directory="/store", port=10911, store=SMALL_STORE))


def test_a_refused_request_is_an_error_at_once() -> None:
    async def scenario(world: World, _consumer: Consumer) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        await world.broker.services.topics.put(TopicConfig("T", read_queue_nums=1, write_queue_nums=1))
        elsewhere = MessageQueue("T", "broker-b", 0)
        with pytest.raises(SendError) as e:
            await world.producer.request(QUESTION, elsewhere, timeout_ms=60_000)
        assert isinstance(e.value.outcome, Refused)

    playing(scenario)


def test_a_cancelled_request_waits_for_nothing() -> None:
    async def scenario(world: World, _consumer: Consumer) -> None:
        request = asyncio.create_task(world.producer.request(QUESTION, QUEUE))
        await asyncio.sleep(0.05)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert world.session.replies._waiting == {}

    playing(scenario, ignore)


def test_the_reply_of_an_unreachable_broker_is_an_error() -> None:
    async def scenario(world: World, consumer: Consumer) -> None:
        with pytest.raises(NoReplyError):
            await world.producer.request(QUESTION, QUEUE, timeout_ms=200)
        elsewhere = ReceivedMessage(consumer.read[-1].stored, MessageQueue("T", "broker-b", 0), 0)
        with pytest.raises(ReplyError, match="broker broker-b has no master"):
            await world.producer.reply(elsewhere, b"x")

    playing(scenario, ignore)


def received(**properties: str) -> ReceivedMessage:
    return ReceivedMessage(StoredMessage(Message("T", b"a", properties), 0, 0, 0, 0, 0), QUEUE, 0)


def test_a_message_that_requests_no_reply_cannot_be_answered() -> None:
    with pytest.raises(MessageError, match="requests no reply: it has no property CORRELATION_ID"):
        reply_to(received(CLUSTER="C", REPLY_TO_CLIENT="c"), b"x")


def test_a_reply_keeps_what_identifies_its_request() -> None:
    request = received(CLUSTER="C", REPLY_TO_CLIENT="c", CORRELATION_ID="i", TTL="7")
    reply = reply_to(request, b"x", {"CORRELATION_ID": "other", "mine": "1"})
    assert reply.topic == "C_REPLY_TOPIC"
    assert reply.properties == {
        "CORRELATION_ID": "i", "REPLY_TO_CLIENT": "c", "TTL": "7", "MSG_TYPE": "reply", "mine": "1",
    }  # fmt: skip


def test_a_delayed_message_cannot_request_a_reply() -> None:
    with pytest.raises(MessageError, match="cannot be delayed"):
        with_request(Message("T", b"a", {DELAY: "3"}), "i", "c", 1000)


def test_correlation_ids_are_random() -> None:
    class Runtime:
        random = Random(1)

    ids = {new_correlation_id(Runtime()) for _ in range(100)}  # type: ignore[arg-type]  # has what is used
    assert len(ids) == 100
    assert {len(each) for each in ids} == {36}

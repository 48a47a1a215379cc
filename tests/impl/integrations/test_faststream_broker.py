"""Handlers of FastStream consume from a broker inside the test, and their answers reach it."""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from faststream import AckPolicy, AsyncAPI, Context, FastStream, TestApp
from faststream.exceptions import FeatureNotSupportedException, RejectMessage
from pydantic import BaseModel

from mqproof.client import ConsumeFrom, NoReplyError, PushConsumerConfig
from mqproof.integrations import FastStreamBroker, FastStreamMessage, FastStreamResponse
from mqproof.testing import ThreadedBroker

SECONDS_MAX = 60
FIRST = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


class Order(BaseModel):
    number: int
    item: str


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as broker:
        yield broker


def test_a_handler_gets_a_checked_order_and_its_result_is_sent(rocketmq: ThreadedBroker) -> None:
    broker = FastStreamBroker(rocketmq.name_server)

    @broker.subscriber("Orders", group="kitchen", tags="new", config=FIRST)
    @broker.publisher("Bills", tag="paid")
    async def bill(order: Order, message: Annotated[FastStreamMessage, Context()]) -> FastStreamResponse:
        return FastStreamResponse({"of": order.number, "tag": message.tag}, keys=tuple(message.keys))

    async def run() -> None:
        async with TestApp(FastStream(broker)):
            await broker.publish(Order(number=6, item="tea"), "Orders", tag="old")
            await broker.publish(Order(number=7, item="tea"), "Orders", tag="new", keys=["k7"])
            await asyncio.to_thread(rocketmq.expect, "Bills", within_s=SECONDS_MAX)
            assert await broker.ping()

    asyncio.run(run())
    (message,) = rocketmq.messages("Bills")
    assert (message.body, message.tag, message.keys) == (b'{"of":7,"tag":"new"}', "paid", ["k7"])


def test_a_request_returns_the_reply_of_its_handler(rocketmq: ThreadedBroker) -> None:
    broker = FastStreamBroker(rocketmq.name_server)

    @broker.subscriber("Questions", group="answers", config=FIRST)
    async def answer(number: int) -> int:
        return number + 1

    async def run() -> None:
        async with TestApp(FastStream(broker)):
            reply = await broker.request(41, "Questions", timeout=SECONDS_MAX)
            assert await reply.decode() == 42
            with pytest.raises(NoReplyError):
                await broker.request(1, "Bills", timeout=0.01)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "policy", "attempts", "dead"),
    [
        (RuntimeError("a bug"), AckPolicy.NACK_ON_ERROR, 2, 0),
        (RuntimeError("a bug"), AckPolicy.REJECT_ON_ERROR, 1, 1),
        (RejectMessage(), AckPolicy.NACK_ON_ERROR, 1, 1),
        (RuntimeError("a bug"), AckPolicy.ACK, 1, 0),
    ],
    ids=["redelivered", "rejected", "rejected by the handler", "acknowledged"],
)
def test_a_handler_that_fails_once_decides_what_happens_to_the_message(
    rocketmq: ThreadedBroker, error: Exception, policy: AckPolicy, attempts: int, dead: int
) -> None:
    name = f"Failing_{attempts}_{dead}_{policy.value}_{type(error).__name__}"
    broker = FastStreamBroker(rocketmq.name_server, ack_policy=policy, logger=None)
    tried: list[str] = []

    @broker.subscriber(name, group=name, config=FIRST)
    async def handle(item: str) -> None:
        tried.append(item)
        if tried == ["first"]:
            raise error

    async def run() -> None:
        async with TestApp(FastStream(broker)), asyncio.timeout(SECONDS_MAX):
            await broker.publish("first", name)
            while not tried:
                await asyncio.sleep(0.01)
            while len(tried) < attempts or len(rocketmq.messages(f"%DLQ%{name}")) < dead:
                await asyncio.to_thread(rocketmq.advance, seconds=11)
            await broker.publish("second", name)
            while tried[-1] != "second":
                await asyncio.sleep(0.01)

    asyncio.run(run())
    assert tried == ["first"] * attempts + ["second"]
    assert len(rocketmq.messages(f"%DLQ%{name}")) == dead


def test_a_message_that_does_not_fit_the_handler_is_delivered_again(rocketmq: ThreadedBroker) -> None:
    broker = FastStreamBroker(rocketmq.name_server, logger=None)

    @broker.subscriber("Typed", group="typed", config=FIRST)
    async def handle(order: Order) -> None:
        raise AssertionError(order)

    async def run() -> None:
        async with TestApp(FastStream(broker)), asyncio.timeout(SECONDS_MAX):
            await broker.publish({"number": "no number"}, "Typed")
            while not rocketmq.messages("%RETRY%typed"):
                await asyncio.to_thread(rocketmq.advance, seconds=11)

    asyncio.run(run())


def test_the_document_has_the_topics_and_the_models(rocketmq: ThreadedBroker) -> None:
    broker = FastStreamBroker("10.0.0.1:9876")

    @broker.subscriber("Orders", group="kitchen")
    @broker.publisher("Bills")
    async def bill(order: Order) -> int:
        return order.number

    text = AsyncAPI(broker).to_specification().to_json()
    assert all(part in text for part in ('"Orders:Bill"', '"Bills:Publisher"', '"rocketmq"', '"Order"'))


def test_what_the_broker_cannot_do_is_refused() -> None:
    broker: Any = FastStreamBroker("127.0.0.1:1")
    with pytest.raises(ValueError, match="batch_max is 2, 1 expected"):
        broker.subscriber("T", group="g", config=PushConsumerConfig(batch_max=2))
    subscriber = broker.subscriber("T", group="g")
    with pytest.raises(FeatureNotSupportedException, match="LitePullConsumer"):
        asyncio.run(subscriber.get_one())
    with pytest.raises(FeatureNotSupportedException, match="LitePullConsumer"):
        aiter(subscriber)
    assert not asyncio.run(broker.ping())

"""A broker in the test's own loop: isolated, in memory or on disk, with ordered faults."""

import asyncio
from pathlib import Path

import pytest

from mqproof import Producer, Refused, Sent, connect, new_message
from mqproof.client import ConfigError, ProducerConfig
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.stored_messages import ExpectationError


def test_brokers_of_one_loop_are_isolated() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as one, EmbeddedBroker() as other, one.client() as session:
            await Producer(session).send_or_raise(new_message("T", b"x", tag="a", keys="k"))
            (message,) = await one.expect("T")
            assert (message.body, message.tag, message.keys) == (b"x", "a", ["k"])
            assert other.messages("T") == []

    asyncio.run(run())


def test_the_messages_of_all_queues_are_returned_in_order() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            producer = Producer(session)
            for number in range(100):
                await producer.send_or_raise(new_message("T", b"%d" % number))
            found = broker.messages("T")
            assert sorted(int(each.body) for each in found) == list(range(100))
            assert found == sorted(found, key=lambda each: (each.queue.queue_id, each.queue_offset))

    asyncio.run(run())


def test_too_few_and_too_many_messages_are_reported_with_their_bodies() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            for _ in range(2):
                await Producer(session).send_or_raise(new_message("T", b"tea"))
            with pytest.raises(ExpectationError, match="messages expected: 1, found: 2\n  b'tea'\n  b'tea'"):
                await broker.expect("T")
            with pytest.raises(ExpectationError, match="messages expected: 3, found: 2"):
                await broker.expect("T", 3, within_s=0.01)

    asyncio.run(run())


def test_a_refused_send_is_not_stored() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            producer = Producer(session, ProducerConfig(retries=0))
            broker.fail_next("send", code="NO_PERMISSION", remark="closed for the night")
            outcome = await producer.send(new_message("T", b"x"))
            assert isinstance(outcome, Refused)
            assert (outcome.status, outcome.remark) == ("NO_PERMISSION", "closed for the night")
            assert broker.messages("T") == []
            assert isinstance(await producer.send(new_message("T", b"x")), Sent)

    asyncio.run(run())


def test_a_send_whose_answer_is_lost_is_stored_twice_by_the_retry() -> None:
    async def run() -> None:
        async with EmbeddedBroker() as broker, broker.client() as session:
            broker.fail_next("send", executed=True)
            sent = await Producer(session).send_or_raise(new_message("T", b"x"))
            assert sent.attempts == 2
            ids = [message.message_id for message in await broker.expect("T", 2)]
            assert ids == [sent.message_id] * 2

    asyncio.run(run())


def test_a_store_on_disk_is_there_after_a_restart(tmp_path: Path) -> None:
    async def send(body: bytes) -> list[bytes]:
        async with EmbeddedBroker(store=tmp_path / "s") as broker, broker.client() as session:
            await Producer(session).send_or_raise(new_message("T", body))
            return sorted(message.body for message in broker.messages("T"))

    assert asyncio.run(send(b"1")) == [b"1"]
    assert asyncio.run(send(b"2")) == [b"1", b"2"]


def test_with_sockets_an_ordinary_session_can_connect() -> None:
    async def run() -> None:
        async with EmbeddedBroker(sockets=True) as broker, connect(broker.name_server) as session:
            await Producer(session).send_or_raise(new_message("T", b"x"))
            await broker.expect("T")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"enablePropertyFiltr": "true"}, "enablePropertyFiltr: not a key of a broker's properties file"),
        ({"listenPort": "1"}, "listenPort: the embedded broker sets it itself"),
        ({"enablePropertyFilter": "maybe"}, "enablePropertyFilter"),
    ],
)
def test_a_property_that_has_no_effect_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EmbeddedBroker(properties=properties)


def test_properties_configure_the_broker() -> None:
    async def run() -> None:
        async with EmbeddedBroker(properties={"autoCreateTopicEnable": "false"}) as broker:
            async with broker.client() as session:
                outcome = await Producer(session).send(new_message("T", b"x"))
            assert isinstance(outcome, Refused)

    asyncio.run(run())


def test_a_broker_is_used_while_it_runs_and_starts_once() -> None:
    async def run() -> None:
        broker = EmbeddedBroker()
        for use in (lambda: broker.name_server, lambda: broker.messages("T"), lambda: broker.clock):
            with pytest.raises(RuntimeError, match="not running"):
                use()
        async with broker:
            with pytest.raises(RuntimeError, match="starts once"):
                await broker.start()
        with pytest.raises(RuntimeError, match="not running"):
            broker.messages("T")

    asyncio.run(run())


def test_an_unknown_response_code_is_refused() -> None:
    with pytest.raises(ValueError, match="'BUSY' is not the name of a response code"):
        EmbeddedBroker().fail_next("send", code="BUSY")

"""Tests sends: batches, retry topics, fields from the configuration, and flow control.

Sources: docs/reference/protocol/sending.md, "Send requests", "Batches" and "Flow control";
docs/reference/protocol/retries-and-delays.md, "Retries".
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.batch import Part, encode_batch
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import SendResponse
from mqproof.impl.remoting.message import TAGS, UNIQUE_KEY, StoredMessage, offset_message_id
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.files import record
from mqproof.impl.store.flush import LogFlusher
from mqproof.impl.store.message_store import MessageStore
from mqproof.spec.events import Kind
from tests.impl.broker.test_broker import SEND, altered
from tests.impl.world import SMALL_STORE, World, play

CONFIG = BrokerConfig(store_directory="/store", port=0, store=SMALL_STORE)


async def send(world: World, body: bytes = b"x", **changes: object) -> Command:
    return await world.ask_raw(new_request(RequestCode.SEND_MESSAGE, altered(SEND, **changes), body))


async def send_batch(world: World, *parts: Part, **changes: object) -> Command:
    fields = altered(SEND, batch="true", **changes)
    header = headers.read(headers.SendRequest, fields)
    request = new_request(RequestCode.SEND_BATCH_MESSAGE, headers.write_send_v2(header), encode_batch(parts))
    return await world.ask_raw(request)


def stored(world: World, topic: str, queue_id: int = 0) -> list[StoredMessage]:
    """Return everything that can be read from a queue."""
    assert world.broker is not None
    return [record.decode(data) for data in world.broker.store.get(topic, queue_id, 0).records]


# Batches.


def test_a_batch_becomes_separate_messages_and_one_answer() -> None:
    async def scenario(world: World) -> None:
        await send(world)
        parts = (Part(b"a", {TAGS: "x", UNIQUE_KEY: "K1"}, 7), Part(b"b", {UNIQUE_KEY: "K2", "WAIT": "true"}))
        answer = await send_batch(world, *parts, properties="WAIT\x01false\x02UNIQ_KEY\x01K\x02own\x01batch")
        header = headers.read(SendResponse, answer.fields)
        await asyncio.sleep(0.1)  # no send waited for the flush, after which the message is visible
        assert (answer.code, header.queue_id, header.queue_offset) == (0, 0, 1)
        messages = stored(world, "T")[1:]
        assert header.msg_id == ",".join(
            offset_message_id(world.broker_address, message.commit_offset) for message in messages
        )
        assert [(m.message.body, m.queue_offset, m.message.flag) for m in messages] == [
            (b"a", 1, 7),
            (b"b", 2, 0),
        ]
        added = {"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
        common = {"own": "batch", **added}
        assert [dict(m.message.properties) for m in messages] == [
            {**common, UNIQUE_KEY: "K1", TAGS: "x"},
            {**common, UNIQUE_KEY: "K2"},
        ]
        acks = [event for event in world.events if event.kind is Kind.SEND_ACK]
        assert [(ack.msg_id, ack.queue_offset, ack.attrs.get("wait")) for ack in acks[1:]] == [
            ("K1", 1, "false"),
            ("K2", 2, "false"),
        ]

    play(scenario)


@pytest.mark.parametrize(
    ("body", "changes", "remark"),
    [
        (b"", {}, "empty"),
        (b"not a batch", {}, "no whole message"),
        (encode_batch([Part(b"x")]), {"topic": "%RETRY%G"}, "retry topic"),
        (encode_batch([Part(b"x", {"DELAY": "3"})]), {}, "delayed"),
        (encode_batch([Part(b"x")]), {"properties": "DELAY\x013"}, "delayed"),
        (encode_batch([Part(b"x" * 600)] * 2), {}, "at most 1000"),
        (encode_batch([Part(b"")] * 9), {}, "more than 8 messages"),
        (
            encode_batch([Part(b"x", {"k": "v" * 400})] * 2),
            {"properties": "p\x01" + "x" * 32_500},
            "properties",
        ),
    ],
)
def test_an_invalid_batch_is_refused_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, body: bytes, changes: dict[str, object], remark: str
) -> None:
    monkeypatch.setattr("mqproof.impl.broker.processors.send._BATCH_MESSAGES_MAX", 8)

    async def scenario(world: World) -> None:
        answer = await send(world, body, batch="true", **changes)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert remark in (answer.remark or "")
        assert world.broker is not None
        assert world.broker.store.log_end == 0

    play(scenario, config=replace(CONFIG, store=replace(SMALL_STORE, message_bytes_max=1000)))


# Retry topics.


def test_a_message_that_was_redelivered_too_often_becomes_a_dead_letter() -> None:
    async def scenario(world: World) -> None:
        for times in (15, 16):
            await send(world, str(times).encode(), topic="%RETRY%G", reconsumeTimes=times)
        answer = await send(
            world, b"4", topic="%RETRY%G", reconsumeTimes=4, maxReconsumeTimes=4, properties="DELAY\x015"
        )
        assert answer.fields["queueId"] == "0"
        assert [m.message.body for m in stored(world, "%RETRY%G")] == [b"15"]
        assert [m.message.body for m in stored(world, "%DLQ%G")] == [b"16", b"4"]
        assert "DELAY" not in stored(world, "%DLQ%G")[1].message.properties

    play(scenario)


def test_the_retry_topic_of_an_invalid_group_is_refused() -> None:
    async def scenario(world: World) -> int:
        return (await send(world, topic="%RETRY%G")).code

    config = replace(CONFIG, auto_create_groups=False)
    assert play(scenario, config=config) == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


# Fields from the configuration.


def test_every_answer_to_a_send_has_the_region_and_the_tracing_flag() -> None:
    async def scenario(world: World) -> list[Command]:
        return [await send(world), await send(world, topic="no name!"), await send(world, queueId=None)]

    for answer in play(scenario, config=replace(CONFIG, region="north", trace_on=False)):
        assert (answer.fields["MSG_REGION"], answer.fields["TRACE_ON"]) == ("north", "false")


def test_a_broker_without_write_permission_refuses_ordered_topics() -> None:
    async def scenario(world: World) -> list[int]:
        assert world.broker is not None
        assert world.broker.services is not None
        await world.broker.services.topics.put(TopicConfig("ordered", order=True))
        return [(await send(world, topic=topic)).code for topic in ("T", "ordered")]

    assert play(scenario, config=replace(CONFIG, permission=4)) == [0, ResponseCode.NO_PERMISSION]


def test_a_topic_with_several_tags_marks_its_messages() -> None:
    async def scenario(world: World) -> int:
        assert world.broker is not None
        assert world.broker.services is not None
        await world.broker.services.topics.put(TopicConfig("many", topic_filter_type="MULTI_TAG"))
        await send(world, topic="many")
        (one,) = stored(world, "many")
        return one.message.sys_flag

    assert play(scenario) == 2


def test_a_peer_cannot_create_topics_and_groups_without_limit() -> None:
    async def scenario(world: World) -> list[int]:
        assert world.broker is not None
        assert world.broker.services is not None
        codes = [(await send(world, topic=f"T{number}")).code for number in range(20)]
        services = world.broker.services
        assert len(services.topics.snapshot().topic_config_table) == 12
        codes.append((await send(world, topic="T0")).code)
        services.groups.find_or_make("G1", auto_create=True)
        services.groups.find_or_make("G2", auto_create=True)
        with pytest.raises(RefusedError, match="2 groups"):
            services.groups.find_or_make("G3", auto_create=True)
        with pytest.raises(RefusedError, match="2 groups"):
            await services.groups.put(SubscriptionGroup(group_name="G3"))
        return codes

    codes = play(scenario, config=replace(CONFIG, topics_max=12, groups_max=2))
    assert codes[-2:] == [ResponseCode.SYSTEM_BUSY, 0]


# Flow control.


def test_sends_above_the_limits_are_refused_before_anything_is_stored() -> None:
    async def main() -> None:
        gate = SendGate(count_max=2, bytes_max=100, busy_ms=1000, now_s=asyncio.get_running_loop().time)
        with gate.admitted(1000):  # a single send may be as large as a frame
            assert len(gate) == 1
            with pytest.raises(RefusedError, match="OVERLOAD"), gate.admitted(1):
                pass
        with (
            gate.admitted(10),
            gate.admitted(10),
            pytest.raises(RefusedError, match="OVERLOAD") as crowded,
            gate.admitted(1),
        ):
            pass
        assert crowded.value.code is ResponseCode.SYSTEM_BUSY
        with gate.admitted(10):
            await asyncio.sleep(1.0)
            with gate.admitted(10):
                assert gate.oldest_ms() == 1000
            await asyncio.sleep(0.1)
            with pytest.raises(RefusedError, match="PCBUSY") as refused, gate.admitted(10):
                pass
            assert refused.value.code is ResponseCode.SYSTEM_BUSY
        assert (len(gate), gate.oldest_ms()) == (0, 0)
        with gate.admitted(100):
            pass

    run_simulated(main(), SimulatedLoop())


def flusher_of(world: World) -> LogFlusher:
    assert world.broker is not None
    assert isinstance(world.broker.store, MessageStore)
    return world.broker.store._flusher


@contextmanager
def hanging_disk(world: World) -> Iterator[asyncio.Event]:
    """Block every fsync of the log until the event is set or the test ends."""
    released = asyncio.Event()
    flusher = flusher_of(world)
    offload = flusher._offload

    async def hanging(function):  # type: ignore[no-untyped-def]
        await released.wait()
        return await offload(function)

    flusher._offload = hanging
    try:
        yield released
    finally:
        released.set()


def test_a_message_that_does_not_wait_is_answered_while_the_disk_hangs() -> None:
    async def scenario(world: World) -> int:
        await send(world)
        with hanging_disk(world):
            async with asyncio.timeout(0.1):
                answer = await send(world, properties="WAIT\x01false")
            assert stored(world, "T")[1:] == [], "a message that a crash could remove is not visible"
        return answer.code

    assert play(scenario) == 0


def test_sends_are_refused_while_the_disk_hangs_and_accepted_afterwards() -> None:
    async def scenario(world: World) -> list[int]:
        await send(world)
        with hanging_disk(world):
            waiting = asyncio.create_task(send(world))
            await asyncio.sleep(1.5)
            refused = await send(world)
        return [(await waiting).code, refused.code, (await send(world)).code]

    assert play(scenario) == [0, ResponseCode.SYSTEM_BUSY, 0]

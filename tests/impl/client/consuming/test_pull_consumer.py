"""Tests that a pull consumer registers before it commits: 5.x accepts no offset of an unknown group."""

import asyncio
from typing import Any

import pytest

from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import ConsumerIds
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import ConsumerGroupRequest
from mqproof.impl.remoting.message import Message
from mqproof.spec.events import Event, Kind
from tests.impl.world import World, play

QUEUE = MessageQueue("T", "broker-a", 0)


def test_the_first_commit_registers_the_group_at_the_broker() -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(Message("T", b"x"), QUEUE)
        await world.session.heartbeat()
        later = PullConsumer(world.session, "Later")  # the heartbeat before did not contain this group
        await later.commit(QUEUE, 1)
        answer = await world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest("Later"))
        assert answer.code == ResponseCode.SUCCESS
        assert java_json.read(ConsumerIds, answer.body).consumer_id_list == [world.session.client_id]

    play(scenario)


def test_a_name_that_is_not_allowed_is_refused() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(ValueError, match="group 'a b': 1 to 120 letters"):
            PullConsumer(world.session, "a b")
        with pytest.raises(ValueError, match="the topic 'T x' has a character other than"):
            await PullConsumer(world.session, "G").queues("T x")

    play(scenario)


def test_what_is_read_and_committed_is_recorded_in_the_event_log() -> None:
    async def scenario(world: World) -> list[Event]:
        await world.producer.send(Message("T", b"x", {"TAGS": "A"}), QUEUE)
        await asyncio.sleep(0.1)
        consumer = PullConsumer(world.session, "G2", world.event_log("c"))
        assert len(await consumer.queues("T")) == 4
        assert len((await consumer.pull(QUEUE, 0, tags="A")).messages) == 1
        await consumer.commit(QUEUE, 1)
        await consumer.commit(QUEUE, 0, reset=True)
        return [event for event in world.events if event.node == "c"]

    events = play(scenario)
    assert [(event.kind, event.queue_offset, event.attrs.get("reset")) for event in events] == [
        (Kind.REBALANCE, None, None),
        (Kind.SUBSCRIBE, None, None),
        (Kind.DELIVER, 0, None),
        (Kind.OFFSET_COMMIT, 1, None),
        (Kind.OFFSET_COMMIT, 0, "true"),
    ]
    assert events[0].attrs["queues"] == "4"
    assert events[1].attrs["expression"] == "A"


def test_a_pull_waits_for_a_message_only_as_long_as_it_may_be_held() -> None:
    async def scenario(world: World) -> list[float]:
        await world.producer.send(Message("T", b"x"), QUEUE)
        loop, took_s = asyncio.get_running_loop(), []
        holds: list[dict[str, Any]] = [{}, {"hold_ms": 0}, {"hold_ms": 2000}]
        for held in holds:
            begun_s = loop.time()
            assert not (await world.consumer.pull(QUEUE, 1, **held)).messages
            took_s.append(loop.time() - begun_s)
        return took_s

    assert play(scenario) == pytest.approx([0, 0, 2], abs=0.1)


def test_a_pull_returns_up_to_32_messages_unless_another_number_is_given() -> None:
    async def scenario(world: World) -> list[int]:
        await world.producer.send_batch([Message("T", b"x")] * 33, QUEUE)
        pulls = [await world.consumer.pull(QUEUE, 0), await world.consumer.pull(QUEUE, 0, max_count=31)]
        return [len(each.messages) for each in pulls]

    assert play(scenario) == [32, 31]


def test_an_error_names_the_topic_whose_queues_are_not_known() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(NoRouteError, match="no name server knows topic Absent"):
            await world.consumer.queues("Absent")
        await world.namesrv.stop()
        with pytest.raises(ClientError, match="queues of Absent: "):
            await world.consumer.queues("Absent")
        with pytest.raises(TypeError, match="timestamp_ms is 'now', milliseconds since 1970 expected"):
            await world.consumer.search_offset(QUEUE, "now")  # type: ignore[arg-type]  # what is tested

    play(scenario)

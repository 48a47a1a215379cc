"""Tests messages that consumers send back.

Source: docs/reference/protocol/retries-and-delays.md, "Retries".
"""

from dataclasses import replace

import msgspec
import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.processors.retries import _again
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import SendBackRequest
from mqproof.impl.remoting.message import RETRY_PREFIX, UNIQUE_KEY
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.spec.events import Kind
from tests.impl.broker.processors.test_send import CONFIG, stored
from tests.impl.broker.test_broker import QUEUE, fail_syncs, message, sent
from tests.impl.world import World, play


async def send_back(world: World, offset: int, level: int = 0, maximum: int | None = None) -> int:
    header = SendBackRequest(offset, "G", level, max_reconsume_times=maximum)
    return (await world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)).code


def test_a_message_that_was_sent_back_waits_for_its_level_and_is_otherwise_unchanged() -> None:
    async def scenario(world: World) -> None:
        outcome = sent(await world.producer.send(message("hello", "a"), QUEUE))
        (original,) = stored(world, "T")
        assert await send_back(world, original.commit_offset) == ResponseCode.SUCCESS
        (waiting,) = stored(world, SCHEDULE_TOPIC, 2)
        assert waiting.message.properties == {
            **original.message.properties,
            "RETRY_TOPIC": "T",
            "ORIGIN_MESSAGE_ID": original.offset_message_id,
            "DELAY": "3",
            "WAIT": "false",
            "REAL_TOPIC": "%RETRY%G",
            "REAL_QID": "0",
        }
        old, new = original.message, waiting.message
        assert new.properties[UNIQUE_KEY] == outcome.message_id
        assert (new.body, new.reconsume_times) == (old.body, 1)
        assert (new.born_host, new.born_timestamp_ms) == (old.born_host, old.born_timestamp_ms)
        reported = [event for event in world.events if event.kind is Kind.RETRY]
        assert [(event.msg_id, event.topic, event.group) for event in reported] == [
            (outcome.message_id, "T", "G")
        ]

    play(scenario)


def test_a_message_that_was_sent_back_is_as_durable_as_a_sent_one() -> None:
    async def scenario(world: World) -> int:
        await world.producer.send(message("x"), QUEUE)
        assert await send_back(world, 0) == ResponseCode.SUCCESS  # the retry topic exists from now on
        world.disk.on_step = fail_syncs
        code = await send_back(world, 0)
        world.disk.on_step = None
        return code

    assert play(scenario) == ResponseCode.SYSTEM_ERROR


def test_the_level_rises_with_each_retry_and_the_original_id_and_topic_are_kept() -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(message("x"), QUEUE)
        (original,) = stored(world, "T")
        offset = original.commit_offset
        sent_back = [original]
        for level in (3, 4, 5):
            assert await send_back(world, offset) == ResponseCode.SUCCESS
            (waiting,) = stored(world, SCHEDULE_TOPIC, level - 1)
            offset = waiting.commit_offset
            sent_back.append(waiting)
            assert waiting.message.properties["ORIGIN_MESSAGE_ID"] == original.offset_message_id
            assert waiting.message.properties["RETRY_TOPIC"] == "T"
        assert await send_back(world, offset, level=7) == ResponseCode.SUCCESS
        assert stored(world, SCHEDULE_TOPIC, 6)[0].message.reconsume_times == 4
        reported = [event for event in world.events if event.kind is Kind.RETRY]
        assert [(event.topic, event.queue_id, event.queue_offset) for event in reported] == [
            (old.message.topic, old.message.queue_id, old.queue_offset) for old in sent_back
        ]

    play(scenario)


@pytest.mark.parametrize(("level", "maximum"), [(-1, None), (0, 0)])
def test_a_message_that_is_given_up_becomes_a_dead_letter_at_once(level: int, maximum: int | None) -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(message("x"), QUEUE)
        (original,) = stored(world, "T")
        assert await send_back(world, original.commit_offset, level, maximum) == ResponseCode.SUCCESS
        (dead,) = stored(world, "%DLQ%G")
        assert "DELAY" not in dead.message.properties
        assert [event.topic for event in world.events if event.kind is Kind.DEAD_LETTER] == ["T"]

    play(scenario)


def test_the_maximum_of_the_group_applies_if_the_request_has_none() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        await world.broker.services.groups.put(SubscriptionGroup(group_name="G", retry_max_times=0))
        await world.producer.send(message("x"), QUEUE)
        await send_back(world, 0)
        assert len(stored(world, "%DLQ%G")) == 1

    play(scenario)


def test_a_message_of_a_group_without_retry_queues_is_not_redelivered() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        await world.broker.services.groups.put(SubscriptionGroup(group_name="G", retry_queue_nums=0))
        await world.producer.send(message("x"), QUEUE)
        end = world.broker.store.log_end
        assert await send_back(world, 0) == ResponseCode.SUCCESS
        assert world.broker.store.log_end == end

    play(scenario)


@pytest.mark.parametrize("offset", [-1, 1, 10**15, 2**63 - 1])
def test_a_position_without_a_message_is_an_error(offset: int) -> None:
    async def scenario(world: World) -> int:
        await world.producer.send(message("x"), QUEUE)
        return await send_back(world, offset)

    assert play(scenario) == ResponseCode.SYSTEM_ERROR


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (replace(CONFIG, auto_create_groups=False), ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        (replace(CONFIG, permission=4), ResponseCode.NO_PERMISSION),
    ],
)
def test_a_message_that_the_broker_may_not_store_is_refused(config: BrokerConfig, code: ResponseCode) -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(message("x"), QUEUE)
        assert world.broker is not None
        end = world.broker.store.log_end
        assert await send_back(world, 0) == code
        assert world.broker.store.log_end == end

    play(scenario, config=config)


@pytest.mark.parametrize("changes", [{"perm": 4}, {"write_queue_nums": 0}])
def test_a_retry_topic_without_write_permission_is_not_written(changes: dict[str, int]) -> None:
    async def scenario(world: World) -> int:
        assert world.broker is not None
        assert world.broker.services is not None
        await world.broker.services.topics.put(
            msgspec.structs.replace(TopicConfig(RETRY_PREFIX + "G"), **changes)
        )
        await world.producer.send(message("x"), QUEUE)
        return await send_back(world, 0)

    assert play(scenario) == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(("level", "delay"), [(0, None), (2, "2")])
def test_a_retry_has_only_the_delay_of_its_own_level(level: int, delay: str | None) -> None:
    """The original may still have the level at which it waited before."""

    async def scenario(world: World) -> None:
        await world.producer.send(message("x"), QUEUE)
        (original,) = stored(world, "T")
        properties = {**original.message.properties, "DELAY": "1"}
        delayed = replace(original, message=msgspec.structs.replace(original.message, properties=properties))
        assert world.broker is not None
        assert world.broker.services is not None
        again = _again(world.broker.services, delayed, TopicConfig("%RETRY%G", write_queue_nums=1), level)
        assert again.properties.get("DELAY") == delay

    play(scenario)

"""Tests messages that consumers send back.

Source: docs/reference/protocol/retries-and-delays.md, "Retries".
"""

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.half_messages import HALF_TOPIC, OPERATION_TOPIC
from mqproof.impl.broker.processors import retries
from mqproof.impl.broker.processors.retries import _again
from mqproof.impl.broker.timed_messages import TIMER_TOPIC
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import SendBackRequest
from mqproof.impl.remoting.message import RETRY_PREFIX, RETRY_TOPIC, UNIQUE_KEY, Message
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.files import record
from mqproof.impl.store.results import PutResult, PutStatus
from mqproof.spec.events import Kind
from tests.impl.broker.memory_store import Events
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


class Recorded:
    """The services of a broker whose put has a result, and whose log has one message at 1000."""

    def __init__(self, original: Message, status: PutStatus = PutStatus.PUT_OK) -> None:
        data = record.encode(original)
        record.place(data, 9, 1000, 0)
        self.record = bytes(data)
        self.status = status
        self.put_messages: list[Message] = []
        self.dead_letters: list[tuple[str, str]] = []
        self.is_slave, self.events, self.address = False, Events(), Address("10.0.0.1", 10911)
        self.config = SimpleNamespace(permission=6, store=StoreConfig())
        self.groups = {"G": SubscriptionGroup(group_name="G")}
        self.topics = SimpleNamespace(ensure=self._ensured)
        self.runtime = SimpleNamespace(random=random.Random(0))
        self.store = self
        traffic = SimpleNamespace(dead_letter=lambda *which: self.dead_letters.append(which))
        self.statistics = SimpleNamespace(traffic=traffic)

    async def _ensured(self, name: str, queues: int, *, by: object) -> TopicConfig:
        assert by is CHANNEL
        return TopicConfig(name, read_queue_nums=queues, write_queue_nums=queues)

    def record_at(self, offset: int) -> bytes | None:
        return self.record if offset == 1000 else None

    async def put(self, message: Message) -> PutResult:
        self.put_messages.append(message)
        return PutResult(self.status, reason="the disk is slow")

    def send_back(self, level: int = 0, maximum: int | None = None) -> None:
        fields = headers.write(SendBackRequest(1000, "G", level, max_reconsume_times=maximum))
        request = new_request(RequestCode.CONSUMER_SEND_MSG_BACK, fields)
        answer = run_simulated(retries.send_back(cast("Any", self), request, CHANNEL))
        assert answer is not None
        assert answer.code == ResponseCode.SUCCESS


CHANNEL: Any = object()
HOST = Address("10.0.0.1", 10911)
ORIGINAL = Message("T", b"x", {UNIQUE_KEY: "k"}, queue_id=3, born_host=HOST, store_host=HOST)


@pytest.mark.parametrize(
    ("level", "maximum", "times", "is_dead", "delay"),
    [
        (0, None, 0, False, "3"),
        (0, None, 5, False, "8"),
        (7, None, 5, False, "7"),
        (0, None, 15, False, "18"),
        (0, None, 16, True, None),
        (0, 5, 4, False, "7"),
        (0, 5, 5, True, None),
        (-1, None, 0, True, None),
    ],
)
def test_a_dead_letter_is_counted_and_recorded_as_one_and_a_retry_as_one(
    level: int, maximum: int | None, times: int, is_dead: bool, delay: str | None
) -> None:
    site = Recorded(msgspec.structs.replace(ORIGINAL, reconsume_times=times))
    site.send_back(level, maximum)
    [message] = site.put_messages
    assert message.properties.get("DELAY") == delay
    assert message.topic == ("%DLQ%G" if is_dead else SCHEDULE_TOPIC)
    assert site.dead_letters == ([("T", "G")] if is_dead else [])
    place = {"msg_id": "k", "topic": "T", "queue_id": 3, "queue_offset": 9, "group": "G"}
    assert site.events.kept == [(Kind.DEAD_LETTER if is_dead else Kind.RETRY, place)]


def test_a_dead_letter_of_a_retry_counts_for_the_topic_of_the_first_message() -> None:
    site = Recorded(msgspec.structs.replace(ORIGINAL, properties={RETRY_TOPIC: "O", UNIQUE_KEY: "k"}))
    site.send_back(-1)
    assert site.dead_letters == [("O", "G")]


@pytest.mark.parametrize(
    ("status", "is_accepted"),
    [
        (PutStatus.FLUSH_SLAVE_TIMEOUT, True),
        (PutStatus.SLAVE_NOT_AVAILABLE, True),
        (PutStatus.FLUSH_DISK_TIMEOUT, False),
        (PutStatus.SERVICE_NOT_AVAILABLE, False),
    ],
)
def test_a_retry_that_is_not_on_disk_is_no_success(status: PutStatus, is_accepted: bool) -> None:
    site = Recorded(ORIGINAL, status)
    if is_accepted:
        site.send_back()
    else:
        with pytest.raises(RefusedError) as refused:
            site.send_back(-1)
        assert refused.value.code == ResponseCode.SYSTEM_ERROR
        assert refused.value.remark == f"{status.value}: the disk is slow"
        assert (site.dead_letters, site.events.kept) == ([], [])


@pytest.mark.parametrize("topic", [HALF_TOPIC, OPERATION_TOPIC, TIMER_TOPIC])
def test_a_message_that_is_not_visible_cannot_be_sent_back(topic: str) -> None:
    site = Recorded(msgspec.structs.replace(ORIGINAL, topic=topic))
    with pytest.raises(RefusedError) as refused:
        site.send_back()
    assert refused.value.code == ResponseCode.NO_PERMISSION
    assert refused.value.remark == f"the message at 1000 is of {topic}, and not visible"
    assert site.put_messages == []

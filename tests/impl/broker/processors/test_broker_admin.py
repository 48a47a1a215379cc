"""Tests the requests of administrators to a broker.

Source: docs/reference/protocol/administration.md, "Administration of a broker".
"""

import asyncio
import json
import re
from dataclasses import replace

import msgspec
import pytest

from mqproof.impl.broker import config as broker_config
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.services import Services
from mqproof.impl.remoting import bodies, headers, java_json
from mqproof.impl.remoting.bodies import (
    ConsumerData,
    ConsumerStatus,
    ConsumeStats,
    DataVersion,
    Heartbeat,
    ListedOffset,
    ListedOffsets,
    MessageQueue,
    QueueExtent,
    QueueOffsets,
    QueueProgress,
    Subscription,
    SubscriptionGroup,
    SubscriptionGroups,
    Table,
    TimeSpans,
    TopicConfig,
    TopicConfigList,
    TopicConfigs,
    TopicList,
    TopicStats,
)
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    BrokerConfigResponse,
    CloneOffsetRequest,
    ConsumerRequest,
    ConsumerStatusRequest,
    ConsumeStatsRequest,
    DeleteGroupRequest,
    GroupRequest,
    QueryOffsetRequest,
    ResetOffsetRequest,
    TopicGroupRequest,
    TopicRequest,
    UpdateOffsetRequest,
    UpdateTopicRequest,
)
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import UNIQUE_KEY
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.runtime.simulated_loop import SimulatedClock, SimulatedLoop, run_simulated
from mqproof.impl.store.files import record
from tests.impl.broker.processors.test_send import CONFIG, hanging_disk, send, stored
from tests.impl.broker.test_broker import PULL, QUEUE, altered, message, sent
from tests.impl.world import SMALL_STORE, World, play


def services(world: World) -> Services:
    assert world.broker is not None
    assert world.broker.services is not None
    return world.broker.services


async def commit(world: World, offset: int, group: str = "G", queue_id: int = 0) -> None:
    header = UpdateOffsetRequest(group, "T", queue_id, offset)
    assert (await world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)).code == 0


def key(queue_id: int = 0, topic: str = "T") -> ObjectKey:
    return ObjectKey(MessageQueue("broker-a", queue_id, topic))


# Topics.

TOPIC = UpdateTopicRequest("New", "TBW102", 3, 2, 6)


def test_a_topic_is_created_and_changed_and_the_name_server_is_notified() -> None:
    async def scenario(world: World) -> None:
        for header in (TOPIC, UpdateTopicRequest("New", "TBW102", 5, 4, 4, "MULTI_TAG", 2, True)):
            assert (await world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).code == 0
        await asyncio.sleep(1)
        route = await world.session.routes.refresh("New")
        assert route is not None
        (queues,) = route.queue_datas
        assert (queues.read_queue_nums, queues.write_queue_nums, queues.perm) == (5, 4, 4)
        expected = TopicConfig("New", True, 4, 5, "MULTI_TAG", 2, 4)
        answer = await world.ask(RequestCode.GET_TOPIC_CONFIG, TopicRequest("New"))
        assert java_json.read(TopicConfig, answer.body) == expected
        answer = await world.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
        assert java_json.read(TopicConfigs, answer.body).topic_config_table["New"] == expected

    play(scenario)


def test_fields_of_5x_in_topics_and_groups_are_preserved() -> None:
    """A directory may come from 5.x and return to it. See docs/reference/protocol/groups.md, "Subscription
    groups"."""
    topic = TopicConfig("New", attributes={"message.type": "FIFO"})
    group = SubscriptionGroup(
        group_name="G",
        attributes={"a": "b"},
        consume_message_orderly=True,
        consume_timeout_minute=15,
        group_retry_policy={"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1000, 5000]}},
        group_sys_flag=0,
        subscription_data_set=[{"topic": "New", "expressionType": "TAG", "expression": "*", "version": 1}],
    )

    async def scenario(world: World) -> None:
        await world.stop_broker()
        config = f"{world.config.store_directory}/config"
        for name, table in (
            ("topics", TopicConfigs(DataVersion(), {"New": topic})),
            ("subscriptionGroup", SubscriptionGroups(DataVersion(), {"G": group})),
        ):
            write_durably(world.disk, f"{config}/{name}.json", java_json.write(table, standard=True))
        await world.start_broker()
        # Both files are rewritten by these requests; two of them change attributes.
        assert (await world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, TOPIC)).code == 0
        listed = TopicConfigList([TopicConfig("New", perm=4, attributes={"+a": "b"})])
        body = java_json.write(listed, standard=True)
        assert (await world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)).code == 0
        changed = msgspec.structs.replace(group, attributes={"-a": ""}, retry_max_times=3)
        body = java_json.write(changed, standard=True)
        assert (await world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)).code == 0
        topics = java_json.read(TopicConfigs, read_whole(world.disk, f"{config}/topics.json"))
        assert topics.topic_config_table["New"].attributes == topic.attributes
        groups = java_json.read(
            SubscriptionGroups, read_whole(world.disk, f"{config}/subscriptionGroup.json")
        )
        assert groups.subscription_group_table["G"] == msgspec.structs.replace(group, retry_max_times=3)
        assert b"attributes" not in java_json.write(SubscriptionGroup(group_name="H"), standard=True)

    play(scenario)


def test_a_change_without_effect_makes_no_new_version() -> None:
    async def scenario(world: World) -> list[int]:
        versions = []
        for _ in range(2):
            await world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, TOPIC)
            versions.append(services(world).topics.snapshot().data_version.counter)
        return versions

    first, second = play(scenario)
    assert first == second


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"topic": "../x"}, "character"),
        ({"topic": ""}, "empty"),
        ({"topic": "TBW102"}, "system"),
        ({"topic": "broker-a"}, "system"),
        ({"topic": "rmq_sys_x"}, "system"),
        ({"perm": 8}, "permissions 8"),
        ({"perm": -1}, "permissions -1"),
        ({"topicFilterType": "X"}, "filter type"),
        ({"readQueueNums": 0}, "read and"),
        ({"readQueueNums": 1025}, "1025 read"),
        ({"writeQueueNums": 2**31 - 1}, "write queues"),
        ({"writeQueueNums": -1}, "write queues"),
    ],
)
def test_an_invalid_topic_is_refused(changes: dict[str, object], remark: str) -> None:
    async def scenario(world: World) -> None:
        before = services(world).topics.snapshot()
        fields = altered(TOPIC, **changes)
        answer = await world.ask_raw(new_request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert remark in (answer.remark or "")
        assert services(world).topics.snapshot() == before

    play(scenario)


def test_a_deleted_topic_is_gone_with_its_offsets_even_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        await send(world)
        await commit(world, 1)
        assert (await world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest("T"))).code == 0
        assert services(world).offsets.query("G", "T", 0) is None
        answer = await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, altered(PULL)))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        await world.stop_broker()
        await world.start_broker()
        assert (await world.ask(RequestCode.GET_TOPIC_CONFIG, TopicRequest("T"))).code == 17
        assert services(world).offsets.query("G", "T", 0) is None
        assert services(world).store.max_offset("T", 0) == 0
        await send(world)  # the send creates it again
        assert services(world).store.max_offset("T", 0) == 1

    play(scenario)


@pytest.mark.parametrize("topic", ["", "TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster", "broker-a"])
def test_a_system_topic_cannot_be_deleted(topic: str) -> None:
    async def scenario(world: World) -> int:
        return (await world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic))).code

    assert play(scenario) == ResponseCode.SYSTEM_ERROR


def test_the_system_topics_are_listed() -> None:
    async def scenario(world: World) -> list[str]:
        answer = await world.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
        return java_json.read(TopicList, answer.body).topic_list

    topics = play(scenario)
    assert {"TBW102", "broker-a", "DefaultCluster", "SCHEDULE_TOPIC_XXXX"} <= set(topics)


# Groups.


def test_a_group_can_be_created_changed_listed_and_deleted() -> None:
    async def scenario(world: World) -> None:
        group = SubscriptionGroup(group_name="G", retry_max_times=3, consume_enable=False)
        for one in (SubscriptionGroup(group_name="G"), group):
            body = java_json.write(one, standard=True)
            assert (await world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)).code == 0
        await world.stop_broker()
        await world.start_broker()
        answer = await world.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupRequest("G"))
        assert java_json.read(SubscriptionGroup, answer.body) == group
        answer = await world.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        assert java_json.read(SubscriptionGroups, answer.body).subscription_group_table["G"] == group
        assert (await world.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupRequest("G"))).code == 0
        answer = await world.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupRequest("G"))
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST

    play(scenario)


@pytest.mark.parametrize(
    ("header", "left"),
    [
        (DeleteGroupRequest("G"), 1),
        (DeleteGroupRequest("G", remove_offset=True), None),
        (DeleteGroupRequest("G", clean_offset=True), None),
    ],
)
def test_the_offsets_of_a_deleted_group_are_deleted_on_request(
    header: DeleteGroupRequest, left: int | None
) -> None:
    async def scenario(world: World) -> tuple[int | None, int | None]:
        await send(world)
        await commit(world, 1)
        await commit(world, 1, "H")
        await world.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)
        return services(world).offsets.query("G", "T", 0), services(world).offsets.query("H", "T", 0)

    assert play(scenario) == (left, 1)


@pytest.mark.parametrize(
    "group",
    [
        SubscriptionGroup(group_name=""),
        SubscriptionGroup(group_name="a/b"),
        SubscriptionGroup(group_name="G", retry_queue_nums=-1),
        SubscriptionGroup(group_name="G", retry_queue_nums=1025),
    ],
)
def test_an_invalid_group_is_refused(group: SubscriptionGroup) -> None:
    async def scenario(world: World) -> int:
        body = java_json.write(group, standard=True)
        return (await world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)).code

    assert play(scenario) == ResponseCode.SYSTEM_ERROR


# Offsets.


class Consumer:
    """A connected consumer of group G that answers requests."""

    def __init__(self, world: World, client_id: str = "c1", version: int = 409) -> None:
        self.world = world
        self.client_id = client_id
        self.version = version
        self.asked: list[Command] = []
        self.answers = True
        self.remoting = RemotingClient(world.network, self._asked)

    def _asked(self, request: Command, _: Channel) -> Reply:
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            return None
        self.asked.append(request)
        if request.code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT and self.answers:
            body = java_json.write(ConsumerStatus(message_queue_table={key(): 5}))
            return request.answer(ResponseCode.SUCCESS, body=body)
        if self.answers:
            return request.answer(ResponseCode.SUCCESS, body=b"{}", remark="mine")
        return None

    async def join(self, topic: str = "T") -> "Consumer":
        data = ConsumerData("G", subscription_data_set=[Subscription(topic)])
        body = java_json.write(Heartbeat(self.client_id, [data]), standard=True)
        request = replace_version(new_request(RequestCode.HEART_BEAT, body=body), self.version)
        await self.remoting.invoke(self.world.broker_address, request, 3.0)
        return self


def replace_version(request: Command, version: int, language: str = "PYTHON") -> Command:
    return Command(
        request.code, request.opaque, request.flag, request.fields, request.body, None, version, language
    )


async def three_messages(world: World) -> list[int]:
    """Send messages ten seconds apart. Returns their store times."""
    for _ in range(3):
        await send(world)
        await asyncio.sleep(10)
    return [one.store_timestamp_ms for one in stored(world, "T")]


@pytest.mark.parametrize(
    ("committed", "message_index", "force", "expected"),
    [(3, 1, False, 1), (1, 2, False, 1), (1, 2, True, 2), (1, None, True, 3), (2, None, False, 2)],
)
def test_a_reset_sends_the_new_offsets_to_the_members(
    committed: int, message_index: int | None, force: bool, expected: int
) -> None:
    async def scenario(world: World) -> None:
        times = await three_messages(world)
        for queue_id in range(4):
            await commit(world, committed if queue_id == 0 else 0, queue_id=queue_id)
        consumer = await Consumer(world).join()
        timestamp = -1 if message_index is None else times[message_index]
        header = ResetOffsetRequest("T", "G", timestamp, force)
        answer = await world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        offsets = QueueOffsets({key(0): expected, **{key(queue_id): 0 for queue_id in (1, 2, 3)}})
        assert java_json.read(QueueOffsets, answer.body) == offsets
        await asyncio.sleep(0.1)
        (reported,) = consumer.asked
        assert (reported.code, reported.is_oneway) == (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, True)
        assert java_json.read(QueueOffsets, reported.body) == offsets
        assert headers.read(ResetOffsetRequest, reported.fields) == header
        assert services(world).offsets.query("G", "T", 0) == committed
        await consumer.remoting.close()

    play(scenario)


def test_a_reset_for_clients_that_expect_lists_sends_lists() -> None:
    async def scenario(world: World) -> None:
        await send(world)
        for queue_id in range(4):
            await commit(world, 0, queue_id=queue_id)
        consumer = await Consumer(world).join()
        fields = headers.write(ResetOffsetRequest("T", "G", -1, True))
        request = new_request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields)
        answer = await world.ask_raw(replace_version(request, 409, "CPP"))
        assert java_json.read(QueueOffsets, answer.body).offset_table[key()] == 1
        await asyncio.sleep(0.1)
        listed = java_json.read(ListedOffsets, consumer.asked[0].body).offset_table
        assert listed[0] == ListedOffset("broker-a", 1, 0, "T")
        await consumer.remoting.close()

    play(scenario)


@pytest.mark.parametrize("members", [0, 1])
def test_only_the_named_queue_is_reset_with_or_without_members(members: int) -> None:
    async def scenario(world: World) -> None:
        await three_messages(world)
        for queue_id in range(4):
            await commit(world, 0, queue_id=queue_id)
        consumers = [await Consumer(world).join() for _ in range(members)]
        reset = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        answer = await world.ask(reset, ResetOffsetRequest("T", "G", 0, False, 0, 2))
        assert java_json.read(QueueOffsets, answer.body) == QueueOffsets({key(0): 2})
        for queue_id, offset in (
            (0, 4),
            (1, 1),
            (7, 0),
        ):  # an offset beyond the end, and a queue that does not exist
            refused = await world.ask(reset, ResetOffsetRequest("T", "G", 0, False, queue_id, offset))
            assert refused.code == ResponseCode.SYSTEM_ERROR
        await asyncio.sleep(0.1)
        for consumer in consumers:
            (reported,) = consumer.asked
            assert java_json.read(QueueOffsets, reported.body) == QueueOffsets({key(0): 2})
            await consumer.remoting.close()
        assert [services(world).offsets.query("G", "T", queue_id) for queue_id in range(4)] == [2, 0, 0, 0]

    play(scenario)


def test_an_invalid_reset_is_refused() -> None:
    async def scenario(world: World) -> list[int]:
        reset = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        codes = [(await world.ask(reset, ResetOffsetRequest("T", "G", -1, True))).code]
        await send(world)
        codes.append((await world.ask(reset, ResetOffsetRequest("T", "G", -1, True))).code)
        for queue_id in range(4):
            await commit(world, 0, queue_id=queue_id)
        codes.append((await world.ask(reset, ResetOffsetRequest("T", "G", -1, True))).code)
        consumer = await Consumer(world, version=27).join()
        codes.append((await world.ask(reset, ResetOffsetRequest("T", "G", -1, True))).code)
        await consumer.remoting.close()
        return codes

    assert play(scenario) == [1, 1, ResponseCode.CONSUMER_NOT_ONLINE, 1]


def test_cloned_offsets_equal_those_of_the_source_group() -> None:
    async def scenario(world: World) -> list[dict[int, int]]:
        await send(world)
        await commit(world, 1)
        offsets = services(world).offsets
        offsets.commit("G", "gone", 0, 9)
        offsets.commit("H", "T", 1, 5)
        await world.ask(RequestCode.CLONE_GROUP_OFFSET, CloneOffsetRequest("G", "H"))
        await world.ask(RequestCode.CLONE_GROUP_OFFSET, CloneOffsetRequest("G", "I", "other"))
        await world.ask(RequestCode.CLONE_GROUP_OFFSET, CloneOffsetRequest("I", "H"))
        return [offsets.of_group("H", "T"), offsets.of_group("H", "gone"), offsets.of_group("I", "T")]

    assert play(scenario) == [{0: 1}, {}, {}]


def test_the_progress_of_a_group_is_reported_queue_by_queue() -> None:
    async def scenario(world: World) -> None:
        times = await three_messages(world)
        await commit(world, 2)
        await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, altered(PULL)))
        answer = await world.ask(RequestCode.GET_CONSUME_STATS, ConsumeStatsRequest("G"))
        assert java_json.read(ConsumeStats, answer.body).consume_tps == 0
        await asyncio.sleep(10.1)
        later = await world.ask(RequestCode.GET_CONSUME_STATS, ConsumeStatsRequest("G"))
        assert java_json.read(ConsumeStats, later.body).consume_tps == pytest.approx(0.3, abs=0.01)
        stats = java_json.read(ConsumeStats, answer.body).offset_table
        assert stats[key()] == QueueProgress(3, 2, times[1], 3)
        assert stats[key(1)] == QueueProgress(0, 0, 0)
        assert len(stats) == 4
        answer = await world.ask(RequestCode.GET_CONSUME_STATS, ConsumeStatsRequest("G", "unknown"))
        assert java_json.read(ConsumeStats, answer.body).offset_table == {}
        consumer = await Consumer(world).join("other")
        answer = await world.ask(RequestCode.GET_CONSUME_STATS, ConsumeStatsRequest("G"))
        assert java_json.read(ConsumeStats, answer.body).offset_table == {}
        await consumer.remoting.close()
        answer = await world.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
        assert re.fullmatch(
            rb'\{"dataVersion":\{"counter":\d+,"timestamp":\d+\},"offsetTable":\{"T@G":\{"0":2}}}',
            answer.body,
        ), "a slave of 5.x takes no table without a version"

    play(scenario)


def test_the_extent_the_groups_and_the_times_of_a_topic_are_reported() -> None:
    async def scenario(world: World) -> None:
        times = await three_messages(world)
        await commit(world, 1)
        answer = await world.ask(RequestCode.GET_TOPIC_STATS_INFO, TopicRequest("T"))
        table = java_json.read(TopicStats, answer.body).offset_table
        assert (table[key()], table[key(3)]) == (QueueExtent(times[-1], 3, 0), QueueExtent(0, 0, 0))
        consumer = await Consumer(world).join()
        await commit(world, 1, "H")
        answer = await world.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicRequest("T"))
        assert java_json.read(bodies.GroupList, answer.body).group_list == ["G", "H"]
        await consumer.remoting.close()
        answer = await world.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, TopicGroupRequest("T", "G"))
        span, empty, *_ = java_json.read(TimeSpans, answer.body).consume_time_span_set
        assert (empty.min_time_stamp, empty.max_time_stamp, empty.delay_time) == (-1, -1, 0)
        assert (span.min_time_stamp, span.consume_time_stamp, span.max_time_stamp) == (
            times[0],
            times[0],
            times[2],
        )
        assert span.delay_time == pytest.approx(20_000, abs=1000)
        for code in (RequestCode.GET_TOPIC_STATS_INFO, RequestCode.QUERY_CONSUME_TIME_SPAN):
            assert (await world.ask(code, TopicGroupRequest("unknown", "G"))).code == 17

    play(scenario)


# Consumers.


def test_a_request_to_a_consumer_is_forwarded_unchanged() -> None:
    async def scenario(world: World) -> None:
        consumer = await Consumer(world).join()
        header = ConsumerRequest("G", "c1", jstack_enable=True)
        answer = await world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
        assert (answer.code, answer.body, answer.remark) == (0, b"{}", "mine")
        assert headers.read(ConsumerRequest, consumer.asked[0].fields) == header
        outcome = sent(await world.producer.send(message("x"), QUEUE))
        header = ConsumerRequest("G", "c1", msg_id=outcome.offset_message_id)
        assert (await world.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)).code == 0
        asked = consumer.asked[1]
        assert asked.fields["brokerName"] == "broker-a"
        assert record.decode(asked.body).message.properties[UNIQUE_KEY] == outcome.message_id
        consumer.answers = False
        answer = await world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, ConsumerRequest("G", "c1"))
        assert answer.code == ResponseCode.CONSUME_MSG_TIMEOUT
        await consumer.remoting.close()

    play(scenario)


@pytest.mark.parametrize(
    "header",
    [
        ConsumerRequest("G", "unknown"),
        ConsumerRequest("unknown", "c1"),
        ConsumerRequest("G"),
        ConsumerRequest("G", "old"),
        ConsumerRequest("G", "c1", msg_id="zz"),
        ConsumerRequest("G", "c1", msg_id="7F0000010000000100000000000F4240"),
    ],
)
def test_a_consumer_that_cannot_be_asked_is_an_error(header: ConsumerRequest) -> None:
    async def scenario(world: World) -> int:
        young, old = await Consumer(world).join(), await Consumer(world, "old", version=61).join()
        answer = await world.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
        await young.remoting.close()
        await old.remoting.close()
        return answer.code

    assert play(scenario) == ResponseCode.SYSTEM_ERROR


def test_the_status_of_consumers_is_collected_without_the_silent_ones() -> None:
    async def scenario(world: World) -> None:
        status = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
        header = ConsumerStatusRequest("T", "G")
        assert (await world.ask(status, header)).code == ResponseCode.CONSUMER_NOT_ONLINE
        first, silent = await Consumer(world, "c1").join(), await Consumer(world, "c2").join()
        silent.answers = False
        answer = await world.ask(status, header)
        assert java_json.read(ConsumerStatus, answer.body).consumer_table == {"c1": {key(): 5}}
        one = ConsumerStatusRequest("T", "G", "c3")
        assert (await world.ask(status, one)).code == ResponseCode.CONSUMER_NOT_ONLINE
        await first.remoting.close()
        await silent.remoting.close()

    play(scenario)


# The broker.


async def update(world: World, text: str) -> Command:
    return await world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())


async def shown(world: World) -> tuple[dict[str, str], int]:
    answer = await world.ask(RequestCode.GET_BROKER_CONFIG)
    version = headers.read(BrokerConfigResponse, answer.fields).version
    lines = dict(line.split("=", 1) for line in answer.body.decode().splitlines())
    return lines, java_json.read(DataVersion, version.encode()).counter


def test_a_changed_setting_is_shown_and_takes_effect() -> None:
    async def scenario(world: World) -> None:
        before, version = await shown(world)
        assert (before["autoCreateTopicEnable"], before["maxMessageSize"]) == ("true", str(4 << 20))
        host, port = world.broker_address
        assert (before["brokerIP1"], before["listenPort"]) == (host, str(port))
        await update(world, "autoCreateTopicEnable=false\nmaxMessageSize=10\ntraceOn=false\nnot.known=1\n")
        after, new_version = await shown(world)
        assert new_version == version + 1
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {"autoCreateTopicEnable", "maxMessageSize", "traceOn"}
        answer = await send(world)
        assert (answer.code, answer.fields["TRACE_ON"]) == (ResponseCode.TOPIC_NOT_EXIST, "false")
        await update(world, "autoCreateTopicEnable=true")
        assert (await send(world, b"x" * 11)).code == ResponseCode.MESSAGE_ILLEGAL
        assert (await send(world, b"x" * 10)).code == ResponseCode.SUCCESS

    play(scenario)


def test_a_change_is_written_to_the_properties_file_before_it_takes_effect() -> None:
    async def scenario(world: World) -> None:
        assert (await update(world, "traceOn=false\nregionId=r1")).code == 0
        assert (await update(world, "traceOn=false\nnot.known=1\nregionId=r 2")).code == 0
        world.disk.lose_power()
        kept = read_whole(world.disk, "/b.conf").decode()
        assert kept == "# mine\nbrokerName=x\n  # end\ntraceOn=false\nregionId=r 2\n"
        before = await shown(world)
        world.disk.on_step = no_space_left
        answer = await update(world, "regionId=r3")
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert await shown(world) == before
        assert read_whole(world.disk, "/b.conf").decode() == kept
        world.disk.on_step = lambda _: None

    def no_space_left(step: Step) -> None:
        raise OSError(28, "No space left on device")

    async def main() -> None:
        async with World(loop, config=replace(CONFIG, config_path="/b.conf")) as world:
            text = b"# mine\nregionId=one, \\\n  two\nbrokerName=x\nregionId=three\n  # end"
            write_durably(world.disk, "/b.conf", text)
            await scenario(world)

    loop = SimulatedLoop()
    run_simulated(main(), loop)


def test_automatic_creation_can_be_enabled_later() -> None:
    async def scenario(world: World) -> list[int]:
        codes = [(await send(world)).code]
        await update(world, "autoCreateTopicEnable=true")
        return [*codes, (await send(world)).code]

    config = replace(CONFIG, auto_create_topics=False)
    assert play(scenario, config=config) == [ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SUCCESS]


def test_a_broker_without_write_permission_is_not_in_routes_for_writing() -> None:
    async def scenario(world: World) -> list[int]:
        await send(world)
        perms = []
        for permission in (4, 6):
            await update(world, f"brokerPermission={permission}")
            await asyncio.sleep(1)
            route = await world.session.routes.refresh("T")
            assert route is not None
            perms.append(route.queue_datas[0].perm)
        return perms

    assert play(scenario) == [4, 6]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("brokerPermission=9", ResponseCode.SYSTEM_ERROR),
        ("traceOn=perhaps", ResponseCode.SYSTEM_ERROR),
        ("no separator", ResponseCode.SYSTEM_ERROR),
        ("listenPort=1", ResponseCode.SYSTEM_ERROR),
        ("flushDiskType=SYNC_FLUSH", ResponseCode.SYSTEM_ERROR),
        ("rocketmqHome=/", ResponseCode.NO_PERMISSION),
        ("brokerConfigPath=/etc/passwd\ntraceOn=false", ResponseCode.NO_PERMISSION),
        ("\udcff", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_an_invalid_change_changes_nothing(text: str, code: ResponseCode) -> None:
    async def scenario(world: World) -> None:
        before = await shown(world)
        body = b"traceOn=false\n" + text.encode("utf-8", "surrogateescape")
        answer = await world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=body)
        assert answer.code == code
        assert await shown(world) == before

    play(scenario)


def test_every_key_is_shown_in_the_format_that_is_accepted() -> None:
    config = BrokerConfig(advertised_host="10.0.0.1", name_servers=(Address("10.0.0.1", 9876),))
    assert broker_config.read(broker_config.show(config), "f") == (config, ())


def test_every_changeable_key_is_shown_in_the_format_that_is_accepted() -> None:
    lines = [
        line
        for line in broker_config.show(BrokerConfig()).splitlines()
        if line.split("=")[0] in broker_config.RUNNING_KEYS
    ]
    assert len(lines) == len(broker_config.RUNNING_KEYS)
    assert broker_config.updated(BrokerConfig(), "\n".join(lines)) == BrokerConfig()
    with pytest.raises(ConfigError, match="only at the start"):
        broker_config.updated(BrokerConfig(), "brokerName=x")


def test_expired_messages_are_deleted_on_request() -> None:
    async def scenario(world: World) -> int:
        for _ in range(12):
            await send(world, b"x" * 100_000)
        await asyncio.sleep(3600 + 61)
        assert services(world).store.log_begin == 0  # it is not the hour of deletion
        assert (await world.ask(RequestCode.DELETE_EXPIRED_COMMITLOG)).code == 0
        return services(world).store.log_begin

    store = replace(SMALL_STORE, file_reserved_ms=3_600_000, delete_when_hours=(12,))
    assert play(scenario, config=replace(CONFIG, store=store)) == 1 << 20


def test_the_runtime_information_has_all_values_that_admin_tables_show() -> None:
    async def scenario(world: World) -> dict[str, str]:
        for _ in range(4):
            await send(world)
        await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, altered(PULL)))
        await send(world, topic="no name!")
        await asyncio.sleep(10)
        answer = await world.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        table = java_json.read(Table, answer.body).table
        (first, *_) = stored(world, "T")
        assert table["earliestMessageTimeStamp"] == str(first.store_timestamp_ms)
        return table

    table = play(scenario)
    assert table["brokerVersionDesc"] == "V4_9_8"
    assert (table["msgPutTotalTodayNow"], table["msgGetTotalTodayNow"]) == ("4", "4")
    assert (table["putMessageSizeTotal"], table["dispatchBehindBytes"]) == ("4", "0")
    steps = dict(step.rsplit(":", 1) for step in table["putMessageDistributeTime"].split())
    first, *_, last = steps
    assert (first, last, len(steps)) == ("[<=0ms]", "[10s~]", 13)
    assert sum(map(int, steps.values())) >= 4
    assert 0 <= int(table["putMessageEntireTimeMax"]) <= 50
    assert len(table["putTps"].split()) == len(table["getTransferedTps"].split()) == 3
    assert table["getTransferredTps"] == table["getTransferedTps"]  # its name in 5.x
    assert 0 < float(table["putTps"].split()[0]) <= 4
    read_by_tools = {
        "sendThreadPoolQueueSize",
        "pullThreadPoolQueueSize",
        "sendThreadPoolQueueHeadWaitTimeMills",
        "pullThreadPoolQueueHeadWaitTimeMills",
        "pageCacheLockTimeMills",
        "msgPutTotalYesterdayMorning",
        "msgPutTotalTodayMorning",
        "msgGetTotalYesterdayMorning",
        "msgGetTotalTodayMorning",
        "commitLogDiskRatio",
    }
    assert read_by_tools <= table.keys()
    assert json.loads(json.dumps(table)) == table


def test_the_runtime_information_has_the_sends_that_wait_for_the_disk() -> None:
    async def scenario(world: World) -> None:
        await send(world)
        with hanging_disk(world):
            waiting = [asyncio.create_task(send(world)) for _ in range(3)]
            await asyncio.sleep(0.7)
            answer = await world.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
            table = java_json.read(Table, answer.body).table
            bytes_behind = services(world).store.log_end - services(world).store.log_flushed
        assert table["sendThreadPoolQueueSize"] == "3"
        assert table["sendThreadPoolQueueHeadWaitTimeMills"] == table["pageCacheLockTimeMills"] == "700"
        assert table["dispatchBehindBytes"] == table["remainHowManyDataToFlush"] == str(bytes_behind)
        assert bytes_behind > 0
        await asyncio.gather(*waiting)

    play(scenario)


def test_the_start_time_does_not_change_with_the_clock() -> None:
    async def scenario(world: World) -> tuple[str, str]:
        clock = world.runtime.clock
        assert isinstance(clock, SimulatedClock)
        answer = await world.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        before = java_json.read(Table, answer.body).table["bootTimestamp"]
        clock.skew_us -= 3_600_000_000
        answer = await world.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        return before, java_json.read(Table, answer.body).table["bootTimestamp"]

    before, after = play(scenario)
    assert before == after


@pytest.mark.parametrize(("asked", "code"), [(None, 0), (True, 0), (False, ResponseCode.QUERY_NOT_FOUND)])
def test_a_group_without_an_offset_starts_at_0_unless_it_requests_an_error(
    asked: bool | None, code: int
) -> None:
    async def scenario(world: World) -> list[int]:
        await send(world)
        question = QueryOffsetRequest("G", "T", 0, set_zero_if_not_found=asked)
        codes = [(await world.ask(RequestCode.QUERY_CONSUMER_OFFSET, question)).code]
        queue = services(world).store._queues.find("T", 0)
        assert queue is not None
        queue.first = 1  # as after the first message expired
        return [*codes, (await world.ask(RequestCode.QUERY_CONSUMER_OFFSET, question)).code]

    assert play(scenario) == [code, ResponseCode.QUERY_NOT_FOUND]


def test_a_new_group_does_not_start_at_an_offset_that_may_not_be_in_memory() -> None:
    async def scenario(world: World) -> list[int | None]:
        for _ in range(6):
            await send(world)
        found = [await world.consumer.committed(QUEUE)]
        services(world).runtime = replace(services(world).runtime, memory_bytes=1000)
        return [*found, await world.consumer.committed(QUEUE)]

    assert play(scenario) == [0, None]


# Replication and modes.


def test_a_master_without_slaves_and_a_member_of_a_group_report_no_replicas() -> None:
    async def scenario(world: World) -> None:
        answer = await world.ask(RequestCode.GET_BROKER_HA_STATUS)
        status = java_json.read(bodies.HaStatus, answer.body)
        assert (status.master, status.ha_connection_info) == (True, [])
        services(world).ha_status = lambda _: None  # as in a DLedger group
        answer = await world.ask(RequestCode.GET_BROKER_HA_STATUS)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "DLedger" in (answer.remark or "")

    play(scenario)


def test_the_mode_pull_is_accepted_and_the_mode_pop_is_refused() -> None:
    async def scenario(world: World) -> None:
        async def set_mode(mode: str) -> Command:
            body = java_json.write(bodies.RequestMode("G", "T", mode), standard=True)
            return await world.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=body)

        assert (await set_mode("PULL")).code == ResponseCode.SUCCESS
        refused = await set_mode("POP")
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert refused.remark == "mode POP of group G is not supported, PULL expected"
        answer = await world.ask(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
        assert java_json.read(bodies.RequestModes, answer.body).message_request_mode_map == {}

    play(scenario)

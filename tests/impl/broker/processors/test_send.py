"""Tests sends: batches, retry topics, fields from the configuration, and flow control.

Sources: docs/reference/protocol/sending.md, "Send requests", "Batches" and "Flow control";
docs/reference/protocol/retries-and-delays.md, "Retries".
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.flow_control import SendGate
from mqproof.impl.broker.half_messages import HALF_TOPIC
from mqproof.impl.broker.processors.send import _answer, _message_type, _Target, _unpacked, send_message
from mqproof.impl.broker.timed_messages import TIMER_TOPIC
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.batch import Part, encode_batch
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import SendResponse
from mqproof.impl.remoting.message import (
    RETRY_TOPIC,
    TAGS,
    UNIQUE_KEY,
    Message,
    StoredMessage,
    encode_properties,
    offset_message_id,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.files import record
from mqproof.impl.store.flush import LogFlusher
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import PutResult, PutStatus
from mqproof.spec.events import Kind
from tests.impl.broker.memory_store import Events
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
        (encode_batch([Part(b"x", {"TIMER_DELAY_SEC": "1"})]), {}, "delayed"),
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


def test_a_batch_may_have_the_level_0_and_the_size_of_the_largest_message() -> None:
    async def scenario(world: World) -> list[bytes]:
        body = encode_batch([Part(b"a" * 400, {"DELAY": "0"}), Part(b"b" * 549)])
        assert len(body) == 1000
        assert (await send(world, body, batch="true")).code == ResponseCode.SUCCESS
        return [one.message.body[:1] for one in stored(world, "T")]

    config = replace(CONFIG, store=replace(SMALL_STORE, message_bytes_max=1000))
    assert play(scenario, config=config) == [b"a", b"b"]


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
    async def scenario(world: World) -> list[int]:
        assert world.broker is not None
        assert world.broker.services is not None
        await world.broker.services.topics.put(TopicConfig("many", topic_filter_type="MULTI_TAG"))
        for topic in ("many", "T"):
            for flag in (0, 1):
                await send(world, topic=topic, sysFlag=flag)
        return [one.message.sys_flag for topic in ("many", "T") for one in stored(world, topic)]

    assert play(scenario) == [2, 3, 0, 1]


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


# Messages that wait.


@pytest.mark.parametrize(
    ("properties", "code", "remark"),
    [
        ({"TIMER_DELAY_SEC": "10"}, ResponseCode.SUCCESS, None),
        ({"TIMER_DELAY_MS": "10000"}, ResponseCode.SUCCESS, None),
        (
            {"TIMER_DELAY_MS": "10001"},
            ResponseCode.MESSAGE_ILLEGAL,
            "TIMER_DELAY_MS is 10001, at most 10 s are allowed",
        ),
        ({"TIMER_DELIVER_MS": "1"}, ResponseCode.SUCCESS, None),  # it is over: the message is visible at once
        ({"TIMER_DELAY_MS": "x"}, ResponseCode.MESSAGE_ILLEGAL, None),
        ({"TIMER_DELAY_MS": "x", "DELAY": "1"}, ResponseCode.SUCCESS, None),  # the level counts more
        (
            {"TIMER_DEL_UNIQKEY": "k"},
            ResponseCode.MESSAGE_ILLEGAL,
            "TIMER_DEL_UNIQKEY: a message is recalled by RECALL_MESSAGE",
        ),
    ],
)
def test_a_time_is_accepted_up_to_the_limit(
    properties: dict[str, str], code: ResponseCode, remark: str | None
) -> None:
    async def scenario(world: World) -> Command:
        return await send(world, properties=encode_properties(properties))

    answer = play(scenario, config=replace(CONFIG, timer_delay_max_s=10))
    assert answer.code == code
    assert remark in (None, answer.remark)


def test_as_many_messages_wait_as_are_allowed() -> None:
    async def scenario(world: World) -> list[tuple[int, str | None]]:
        answers = [await send(world, properties="TIMER_DELAY_SEC\x0110") for _ in range(3)]
        return [(answer.code, answer.remark) for answer in answers]

    *accepted, refused = play(scenario, config=replace(CONFIG, timers_waiting_max=2))
    assert accepted == [(0, None)] * 2
    assert refused == (ResponseCode.SYSTEM_BUSY, "2 messages wait for their time, which is the limit")


def test_a_broker_without_timers_refuses_times_and_accepts_levels() -> None:
    async def scenario(world: World) -> list[tuple[int, str | None]]:
        answers = [
            await send(world, properties=properties)
            for properties in ("TIMER_DELAY_SEC\x0110", "DELAY\x011", "DELAY\x010", "")
        ]
        return [(answer.code, answer.remark) for answer in answers]

    refused = (ResponseCode.SYSTEM_ERROR, "TIMER_DELAY_SEC: timerWheelEnable is false")
    assert play(scenario, config=replace(CONFIG, timers=False)) == [refused, *[(0, None)] * 3]


def test_a_message_without_a_delay_keeps_its_retries_and_is_visible_at_once() -> None:
    async def scenario(world: World) -> list[int]:
        await send(world, properties="DELAY\x010", reconsumeTimes=5)
        await send(world, reconsumeTimes=None)
        return [one.message.reconsume_times for one in stored(world, "T")]

    assert play(scenario) == [5, 0]


# Half messages.

HALF = {"TRAN_MSG": "true", "PGROUP": "PG", UNIQUE_KEY: "key"}


@pytest.mark.parametrize(
    ("properties", "changes", "code", "remark"),
    [
        (HALF, {"sysFlag": 4}, ResponseCode.SUCCESS, None),
        (HALF, {"sysFlag": 0}, ResponseCode.SUCCESS, None),
        ({**HALF, "TRAN_MSG": "false"}, {}, ResponseCode.SUCCESS, None),
        (HALF, {"sysFlag": 8}, ResponseCode.NO_PERMISSION, "system flag 8 in a half message, 4 expected"),
        (HALF, {"sysFlag": 12}, ResponseCode.NO_PERMISSION, "system flag 12 in a half message, 4 expected"),
        ({}, {"sysFlag": 4}, ResponseCode.NO_PERMISSION, "system flag 4 without TRAN_MSG"),
        ({}, {"sysFlag": 12}, ResponseCode.NO_PERMISSION, "system flag 12 without TRAN_MSG"),
        (
            {**HALF, "TIMER_DELAY_SEC": "1"},
            {},
            ResponseCode.MESSAGE_ILLEGAL,
            "a half message cannot ask for a time",
        ),
        (
            HALF,
            {"batch": "true"},
            ResponseCode.MESSAGE_ILLEGAL,
            "a half message in a batch or for a retry topic",
        ),
        (
            HALF,
            {"topic": "%RETRY%G"},
            ResponseCode.MESSAGE_ILLEGAL,
            "a half message in a batch or for a retry topic",
        ),
        ({**HALF, "PGROUP": ""}, {}, ResponseCode.MESSAGE_ILLEGAL, "a half message without PGROUP"),
        ({**HALF, UNIQUE_KEY: ""}, {}, ResponseCode.MESSAGE_ILLEGAL, "a half message without UNIQ_KEY"),
        (
            {**HALF, "P": "x" * 32_600},
            {},
            ResponseCode.MESSAGE_ILLEGAL,
            "the properties have no room for those of a check",
        ),
    ],
)
def test_a_half_message_is_accepted_if_it_can_be_ended(
    properties: dict[str, str], changes: dict[str, Any], code: ResponseCode, remark: str | None
) -> None:
    async def scenario(world: World) -> Command:
        return await send(world, properties=encode_properties(properties), **changes)

    answer = play(scenario)
    assert (answer.code, answer.remark) == (code, remark)


def test_a_broker_may_refuse_half_messages_and_no_others() -> None:
    async def scenario(world: World) -> list[tuple[int, str | None]]:
        answers = [await send(world, properties=encode_properties(each)) for each in (HALF, {})]
        return [(answer.code, answer.remark) for answer in answers]

    refused = (ResponseCode.NO_PERMISSION, "this broker refuses half messages")
    assert play(scenario, config=replace(CONFIG, reject_transactions=True)) == [refused, (0, None)]


def test_as_many_transactions_are_open_as_are_allowed() -> None:
    async def scenario(world: World) -> list[tuple[int, str | None]]:
        answers = [
            await send(world, properties=encode_properties({**HALF, UNIQUE_KEY: key})) for key in "abc"
        ]
        return [(answer.code, answer.remark) for answer in answers]

    *accepted, refused = play(scenario, config=replace(CONFIG, transactions_open_max=2))
    assert accepted == [(0, None)] * 2
    assert refused == (ResponseCode.SYSTEM_BUSY, "2 transactions are open, which is the limit")


# Refusals.


@pytest.mark.parametrize(
    ("is_slave", "topic", "code", "remark"),
    [
        (True, "T", ResponseCode.SERVICE_NOT_AVAILABLE, "this broker is a slave"),
        (
            False,
            "SCHEDULE_TOPIC_XXXX",
            ResponseCode.NO_PERMISSION,
            "clients may not send to topic SCHEDULE_TOPIC_XXXX",
        ),
    ],
)
def test_a_slave_refuses_sends_and_a_master_those_to_its_own_topics(
    is_slave: bool, topic: str, code: ResponseCode, remark: str
) -> None:
    services: Any = SimpleNamespace(
        is_slave=is_slave,
        store=SimpleNamespace(refusal="this broker is a slave"),
        tracing_fields=lambda: {"TRACE_ON": "true"},
    )
    request = new_request(RequestCode.SEND_MESSAGE, altered(SEND, topic=topic))
    answer = send_message(services, request, cast("Any", None))
    assert isinstance(answer, Command)
    assert (answer.code, answer.remark, answer.fields) == (code, remark, {"TRACE_ON": "true"})


def test_a_oneway_send_is_stored_and_has_no_event_of_an_answer() -> None:
    async def scenario(world: World) -> None:
        request = new_request(RequestCode.SEND_MESSAGE, altered(SEND), b"x", oneway=True)
        await world.session.remoting.send_oneway(world.broker_address, request)
        await send(world, b"y")
        assert [one.message.body for one in stored(world, "T")] == [b"x", b"y"]
        acks = [event for event in world.events if event.kind is Kind.SEND_ACK and event.node == "broker-a"]
        assert [ack.queue_offset for ack in acks] == [1]

    play(scenario)


@pytest.mark.parametrize(("maximum", "topic"), [(1, "%RETRY%G"), (0, "%DLQ%G")])
def test_a_send_without_a_number_of_retries_counts_as_the_first(maximum: int, topic: str) -> None:
    async def scenario(world: World) -> None:
        await send(world, topic="%RETRY%G", maxReconsumeTimes=maximum)
        (one,) = stored(world, topic)
        assert one.message.reconsume_times == 0

    play(scenario)


# Answers.

FIRST = Message("T", b"x", {UNIQUE_KEY: "k1", RETRY_TOPIC: "O"}, queue_id=2)
SECOND = Message("T", b"y", {}, queue_id=2)


class Counts:
    """Statistics that record each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.failed_puts = self.traffic = self

    def add(self, count: int) -> None:
        self.calls.append(("failed", count))

    def put(self, topic: str, count: int, size: int) -> None:
        self.calls.append(("put", topic, count, size))

    def stored(self, topic: str, kind: str, count: int, size: int) -> None:
        self.calls.append(("stored", topic, kind, count, size))

    def dead_letter(self, topic: str, group: str) -> None:
        self.calls.append(("dead letter", topic, group))


def answered(
    *results: PutResult,
    dead_letter_of: str | None = None,
    wait: bool = True,
    log: bool = True,
    first: Message = FIRST,
) -> tuple[Command, list[tuple[object, ...]], list[Any]]:
    """Return the answer to a send, what was counted, and the half messages and events that were recorded."""
    counts, events, halves = Counts(), Events(), list[Any]()
    services: Any = SimpleNamespace(
        tracing_fields=lambda: {"TRACE_ON": "true"},
        statistics=counts,
        events=events if log else None,
        transactions=SimpleNamespace(note_half=lambda *half: halves.append(half)),
        config=SimpleNamespace(name="broker-a"),
    )
    target = _Target(TopicConfig("T"), 2, dead_letter_of)
    messages = [first, SECOND][: len(results)]
    request = new_request(RequestCode.SEND_MESSAGE, body=b"12345")
    answer = _answer(services, request, target, first, messages, wait, list(results))
    return answer, counts.calls, [*halves, *events.kept]


def test_a_stored_message_is_counted_reported_and_answered_with_its_place() -> None:
    answer, counted, recorded = answered(PutResult(PutStatus.PUT_OK, 7, 1000, "id1", stored_bytes=155))
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
    assert answer.fields == {
        "msgId": "id1", "queueId": "2", "queueOffset": "7", "transactionId": "k1", "TRACE_ON": "true",
    }  # fmt: skip
    assert counted == [("put", "T", 1, 5), ("stored", "T", "normal", 1, 155)]
    place = {"topic": "T", "queue_id": 2, "queue_offset": 7, "commit_offset": 1000}
    event = (Kind.SEND_ACK, {"msg_id": "k1", **place, "status": "SEND_OK", "attrs": {}})
    assert recorded == [event]


def test_each_message_of_a_batch_has_its_own_event_and_its_id_in_the_answer() -> None:
    reason = "the disk is slow"
    results = [
        PutResult(PutStatus.FLUSH_DISK_TIMEOUT, 7 + at, 1000 + at, f"id{at}", reason, 100 + at)
        for at in range(2)
    ]
    answer, counted, recorded = answered(*results, wait=False)
    assert (answer.code, answer.remark) == (ResponseCode.FLUSH_DISK_TIMEOUT, reason)
    assert (answer.fields["msgId"], answer.fields["queueOffset"]) == ("id0,id1", "7")
    assert counted == [("put", "T", 2, 5), ("stored", "T", "normal", 2, 201)]
    events = [fields for _, fields in recorded]
    assert [(one["msg_id"], one["queue_offset"], one["status"], one["attrs"]) for one in events] == [
        ("k1", 7, "FLUSH_DISK_TIMEOUT", {"wait": "false"}),
        ("id1", 8, "FLUSH_DISK_TIMEOUT", {"wait": "false"}),
    ]


def test_a_dead_letter_is_counted_for_its_original_topic_and_its_group() -> None:
    _, counted, _ = answered(PutResult(PutStatus.PUT_OK, 0, 0, "id", stored_bytes=1), dead_letter_of="G")
    assert counted[-1] == ("dead letter", "O", "G")


def test_without_an_event_log_nothing_is_recorded() -> None:
    _, counted, recorded = answered(PutResult(PutStatus.PUT_OK, 0, 0, "id", stored_bytes=1), log=False)
    assert (len(counted), recorded) == (2, [])


@pytest.mark.parametrize("log", [True, False])
def test_a_half_message_is_noted_with_its_place_before_its_event(log: bool) -> None:
    half, result = Message(HALF_TOPIC, b""), PutResult(PutStatus.PUT_OK, 7, 1000, "id", stored_bytes=1)
    _, counted, recorded = answered(result, log=log, first=half)
    assert counted[1] == ("stored", HALF_TOPIC, "transaction", 1, 1)
    assert (recorded[0], len(recorded)) == ((half, result), 2 if log else 1)


def test_messages_that_were_not_stored_are_counted_as_failed() -> None:
    result = PutResult(PutStatus.SERVICE_NOT_AVAILABLE, reason="the disk is full")
    answer, counted, recorded = answered(result, result)
    assert (answer.code, answer.remark) == (ResponseCode.SERVICE_NOT_AVAILABLE, "the disk is full")
    assert (answer.fields, counted, recorded) == ({"TRACE_ON": "true"}, [("failed", 2)], [])
    assert answered(result, first=Message(HALF_TOPIC, b""))[2] == []


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (Message("T", b""), "normal"),
        (Message("T", b"", {"__SHARDINGKEY": "a"}), "fifo"),
        (Message(SCHEDULE_TOPIC, b"", {"__SHARDINGKEY": "a"}), "delay"),
        (Message(TIMER_TOPIC, b""), "delay"),
        (Message(HALF_TOPIC, b""), "transaction"),
    ],
)
def test_messages_are_counted_by_type(message: Message, kind: str) -> None:
    assert _message_type(message) == kind


# Queues.


@pytest.mark.parametrize(
    ("reads", "writes", "queue_id", "expected"),
    [
        (3, 1, 2, {2}),
        (1, 3, 2, {2}),
        (3, 1, 3, None),
        (3, 1, -1, {0}),
        (1, 3, -1, {0, 1, 2}),
        (2, 0, -1, {0, 1}),
    ],
)
def test_a_send_names_a_queue_or_gets_one_for_writing(
    reads: int, writes: int, queue_id: int, expected: set[int] | None
) -> None:
    async def scenario(world: World) -> set[int] | None:
        assert world.broker is not None
        assert world.broker.services is not None
        topic = TopicConfig("U", read_queue_nums=reads, write_queue_nums=writes)
        await world.broker.services.topics.put(topic)
        answers = [await send(world, topic="U", queueId=queue_id) for _ in range(12)]
        if answers[0].code == ResponseCode.SYSTEM_ERROR:
            assert answers[0].remark == f"queue {queue_id} of topic U, which has {max(reads, writes)} queues"
            return None
        return {int(answer.fields["queueId"]) for answer in answers}

    assert play(scenario) == expected


@pytest.mark.parametrize(("count", "code"), [(16_384, None), (16_385, ResponseCode.MESSAGE_ILLEGAL)])
def test_a_batch_has_at_most_16384_messages(count: int, code: ResponseCode | None) -> None:
    header = msgspec.structs.replace(SEND, batch=True)
    body = encode_batch([Part(b"")]) * count
    services: Any = SimpleNamespace(config=CONFIG)
    batch = Message("T", body)
    if code is None:
        assert len(_unpacked(services, header, batch)) == count
    else:
        with pytest.raises(RefusedError, match="more than 16384 messages") as refused:
            _unpacked(services, header, batch)
        assert refused.value.code == code


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

"""Tests a broker in a simulated world: answers to clients, restarts, and refusals.

Sources: docs/reference/protocol/sending.md, "Send requests"; docs/reference/protocol/pulling.md, "Pull
requests"; docs/reference/protocol/offsets.md, "Offset requests"; docs/reference/protocol/groups.md, "Client
registration".
"""

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.processors.all_processors import PROCESSORS
from mqproof.impl.broker.processors.send import _CODES as SEND_CODES
from mqproof.impl.client.model import MessageQueue, Outcome, PullResult, Sent
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerConnection, ConsumerData, Heartbeat, Subscription
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import VERSION, Command, Serialization, new_request
from mqproof.impl.remoting.headers import (
    ConsumerGroupRequest,
    PullRequest,
    QueueRequest,
    SearchOffsetRequest,
    SendRequest,
    SendResponse,
    UpdateOffsetRequest,
)
from mqproof.impl.remoting.message import TAGS, UNIQUE_KEY, Message
from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.store.results import PutStatus
from mqproof.spec.events import Kind
from tests.impl.world import SMALL_STORE, World, play

QUEUE = MessageQueue("T", "broker-a", 0)


def message(body: str, tags: str | None = None) -> Message:
    return Message("T", body.encode(), {TAGS: tags} if tags else {})


def sent(outcome: Outcome) -> Sent:
    assert isinstance(outcome, Sent), outcome
    return outcome


def bodies(result: PullResult) -> list[str]:
    return [stored.message.body.decode() for stored in result.messages]


SEND = SendRequest(
    producer_group="PG",
    topic="T",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=0,
    sys_flag=0,
    born_timestamp=1,
    flag=0,
)

PULL = PullRequest(
    consumer_group="G",
    topic="T",
    queue_id=0,
    queue_offset=0,
    max_msg_nums=32,
    sys_flag=4,
    commit_offset=0,
    suspend_timeout_millis=0,
    sub_version=0,
    subscription="*",
)


def altered(header: headers.Header, **changes: object) -> dict[str, str]:
    """Return the header's fields with some changed; None omits a field."""
    fields = headers.write(header)
    for name, value in changes.items():
        fields.pop(name, None)
        if value is not None:
            fields[name] = str(value)
    return fields


# Sending.


def test_a_message_is_returned_unchanged_with_the_fields_that_the_broker_adds() -> None:
    async def scenario(world: World) -> None:
        outcome = sent(await world.producer.send(message("hello", "a"), QUEUE))
        assert (outcome.status, outcome.queue, outcome.queue_offset) == ("SEND_OK", QUEUE, 0)
        result = await world.consumer.pull(QUEUE, 0)
        (stored,) = result.messages
        assert (result.status, result.next_offset, bodies(result)) == ("FOUND", 1, ["hello"])
        assert stored.message_id == outcome.message_id
        assert stored.offset_message_id == outcome.offset_message_id
        assert stored.message.store_host == world.broker_address
        assert stored.message.properties == {
            TAGS: "a",
            UNIQUE_KEY: outcome.message_id,
            "CLUSTER": "DefaultCluster",
            # Consumers of Java 5.5.0 trace only messages that say so themselves.
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
        }

    play(scenario)


def test_offsets_of_a_queue_have_no_gaps_and_queues_are_independent() -> None:
    async def scenario(world: World) -> list[tuple[int, int]]:
        outcomes = await asyncio.gather(*(world.producer.send(message(str(i))) for i in range(40)))
        return sorted((sent(o).queue.queue_id, sent(o).queue_offset) for o in outcomes)

    assert play(scenario) == [(queue, offset) for queue in range(4) for offset in range(10)]


def test_acknowledged_messages_survive_a_restart_and_offsets_continue() -> None:
    async def scenario(world: World) -> tuple[list[str], int, int]:
        await world.producer.send(message("before"), QUEUE)
        await world.consumer.commit(QUEUE, 1)
        await world.stop_broker()
        await world.start_broker()
        await world.session.routes.refresh("T")
        outcome = sent(await world.producer.send(message("after"), QUEUE))
        result = await world.consumer.pull(QUEUE, 0)
        return bodies(result), outcome.queue_offset, await world.consumer.committed(QUEUE) or 0

    assert play(scenario) == (["before", "after"], 1, 1)


def test_the_answer_to_each_kind_of_send_has_the_fields_that_java_clients_read() -> None:
    async def scenario(world: World) -> list[Command]:
        letters = new_request(RequestCode.SEND_MESSAGE_V2, headers.write_send_v2(SEND), b"x")
        names = new_request(RequestCode.SEND_MESSAGE, headers.write(SEND), b"x")
        return [await world.ask_raw(letters), await world.ask_raw(names)]

    for offset, answer in enumerate(play(scenario)):
        header = headers.read(SendResponse, answer.fields)
        assert (answer.code, header.queue_id, header.queue_offset) == (0, 0, offset)
        assert (answer.fields["MSG_REGION"], answer.fields["TRACE_ON"]) == ("DefaultRegion", "true")
        assert len(header.msg_id) == 32


@pytest.mark.parametrize("serialization", list(Serialization))
@pytest.mark.parametrize("version", [0, -1, 1, 32_767, -32_768])
def test_a_peer_of_an_unknown_version_and_language_is_served(
    version: int, serialization: Serialization
) -> None:
    async def scenario(world: World) -> None:
        stranger = {"version": version, "language": "KLINGON", "serialization": serialization}
        send = Command(RequestCode.SEND_MESSAGE, 1, fields=headers.write(SEND), body=b"x", **stranger)  # type: ignore[arg-type]
        beat = java_json.write(Heartbeat("c", [ConsumerData("G")]), standard=True)
        for request in (send, Command(RequestCode.HEART_BEAT, 2, body=beat, **stranger)):  # type: ignore[arg-type]
            answer = await world.ask_raw(request)
            assert (answer.code, answer.opaque, answer.serialization) == (0, request.opaque, serialization)
            assert answer.version == VERSION
        listed = await world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupRequest("G"))
        (one,) = java_json.read(ConsumerConnection, listed.body).connection_set
        assert one.version == version

    play(scenario)


def test_a_request_in_binary_is_answered_in_binary() -> None:
    async def scenario(world: World) -> Command:
        request = Command(
            RequestCode.SEND_MESSAGE_V2,
            77,
            fields=headers.write_send_v2(SEND),
            body=b"x",
            serialization=Serialization.BINARY,
        )
        return await world.ask_raw(request)

    answer = play(scenario)
    assert (answer.code, answer.serialization) == (0, Serialization.BINARY)


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"topic": "no such name!"}, ResponseCode.SYSTEM_ERROR, "character"),
        ({"topic": ""}, ResponseCode.SYSTEM_ERROR, "empty"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION, "clients may not send"),
        ({"defaultTopic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST, "does not exist"),
        ({"queueId": 4}, ResponseCode.SYSTEM_ERROR, "has 4 queues"),
        ({"queueId": None}, ResponseCode.SYSTEM_ERROR, "queueId"),
        ({"queueId": "first"}, ResponseCode.SYSTEM_ERROR, "queueId"),
        ({"batch": "true"}, ResponseCode.MESSAGE_ILLEGAL, "batch"),
        ({"properties": "DELAY\x01soon"}, ResponseCode.MESSAGE_ILLEGAL, "DELAY is 'soon'"),
        ({"properties": "TRAN_MSG\x01true"}, ResponseCode.MESSAGE_ILLEGAL, "without PGROUP"),
        ({"sysFlag": 4}, ResponseCode.NO_PERMISSION, "without TRAN_MSG"),
        ({"sysFlag": 12}, ResponseCode.NO_PERMISSION, "without TRAN_MSG"),
        ({"properties": "a\x01" + "x" * 40_000}, ResponseCode.MESSAGE_ILLEGAL, "properties"),
    ],
)
def test_an_invalid_send_is_refused_and_changes_nothing(
    changes: dict[str, object], code: ResponseCode, remark: str
) -> None:
    async def scenario(world: World) -> tuple[Command, int]:
        fields = altered(SEND, **changes)
        answer = await world.ask_raw(new_request(RequestCode.SEND_MESSAGE, fields, b"x"))
        assert world.broker is not None
        return answer, world.broker.store.log_end

    answer, log_end = play(scenario)
    assert (answer.code, log_end) == (code, 0)
    assert remark in (answer.remark or "")


def test_a_negative_queue_id_lets_the_broker_choose() -> None:
    async def scenario(world: World) -> set[str]:
        fields = altered(SEND, queueId=-1)
        answers = [
            await world.ask_raw(new_request(RequestCode.SEND_MESSAGE, fields, b"x")) for _ in range(30)
        ]
        return {answer.fields["queueId"] for answer in answers}

    assert play(scenario) == {"0", "1", "2", "3"}


def test_every_put_status_has_its_response_code() -> None:
    assert set(SEND_CODES) == set(PutStatus)


def fail_syncs(step: Step) -> None:
    if step.kind == "sync":
        raise OSError("injected")


def test_a_failing_disk_is_never_answered_with_send_ok() -> None:
    async def scenario(world: World) -> list[str]:
        await world.producer.send(message("fine"), QUEUE)
        world.disk.on_step = fail_syncs
        first = await world.producer.send(message("not durable"), QUEUE)
        second = await world.producer.send(message("refused"), QUEUE)
        world.disk.on_step = None
        return [getattr(outcome, "status", "UNKNOWN") for outcome in (first, second)]

    assert play(scenario) == ["FLUSH_DISK_TIMEOUT", "SERVICE_NOT_AVAILABLE"]


@pytest.mark.parametrize("kind", ["write", "create"])
def test_sends_to_a_full_disk_fail_and_stored_messages_stay_readable(kind: str) -> None:
    def full(step: Step) -> None:
        if step.kind == kind and "commitlog" in step.path:
            raise OSError(28, "No space left on device", step.path)

    async def scenario(world: World) -> None:
        fields = headers.write(SEND)
        for size in (1, 700_000):  # the next of that size takes a new segment of the log
            stored = await world.ask_raw(new_request(RequestCode.SEND_MESSAGE, fields, bytes(size)))
            assert stored.code == ResponseCode.SUCCESS
        world.disk.on_step = full
        request = new_request(RequestCode.SEND_MESSAGE, fields, bytes(700_000))
        codes = [(await world.ask_raw(request)).code for _ in range(3)]
        assert codes == [ResponseCode.SYSTEM_ERROR, *[ResponseCode.SERVICE_NOT_AVAILABLE] * 2]
        assert len((await world.consumer.pull(QUEUE, 0)).messages) == 1
        assert len((await world.consumer.pull(QUEUE, 1)).messages) == 1
        world.disk.on_step = None
        await world.stop_broker()
        await world.start_broker()
        await world.session.routes.refresh("T")
        outcome = sent(await world.producer.send(message("there is room"), QUEUE))
        assert (outcome.status, outcome.queue_offset) == ("SEND_OK", 2)

    play(scenario)


# Pulling.


def test_a_pull_at_the_end_waits_for_the_next_message() -> None:
    async def scenario(world: World) -> tuple[list[str], float]:
        await world.producer.send(message("first"), QUEUE)
        loop = asyncio.get_running_loop()
        began = loop.time()
        waiting = asyncio.create_task(world.consumer.pull(QUEUE, 1, hold_ms=15_000))
        await asyncio.sleep(3)
        await world.producer.send(message("second"), QUEUE)
        return bodies(await waiting), loop.time() - began

    found, seconds = play(scenario)
    assert found == ["second"]
    assert 3 <= seconds < 3.1


def test_a_held_pull_ends_empty_after_its_time() -> None:
    async def scenario(world: World) -> tuple[str, float]:
        await world.producer.send(message("first"), QUEUE)
        loop = asyncio.get_running_loop()
        began = loop.time()
        result = await world.consumer.pull(QUEUE, 1, hold_ms=15_000)
        return result.status, loop.time() - began

    status, seconds = play(scenario)
    assert status == "NO_NEW_MESSAGE"
    assert seconds == pytest.approx(15, abs=0.01)


def test_a_message_with_another_tag_does_not_wake_a_held_pull() -> None:
    async def scenario(world: World) -> list[str]:
        await world.producer.send(message("x"), QUEUE)
        waiting = asyncio.create_task(world.consumer.pull(QUEUE, 1, tags="a", hold_ms=15_000))
        await asyncio.sleep(1)
        await world.producer.send(message("other", "b"), QUEUE)
        await asyncio.sleep(1)
        assert not waiting.done()
        await world.producer.send(message("wanted", "a"), QUEUE)
        return bodies(await waiting)

    assert play(scenario) == ["wanted"]


def test_tags_select_messages_even_if_their_hash_codes_collide() -> None:
    async def scenario(world: World) -> list[str]:
        for tag in ("Aa", "BB", "C"):  # Aa and BB have the same hash code
            await world.producer.send(message(tag, tag), QUEUE)
        return bodies(await world.consumer.pull(QUEUE, 0, tags="Aa || C"))

    assert play(scenario) == ["Aa", "C"]


@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [(0, "FOUND", 2), (2, "NO_NEW_MESSAGE", 2), (3, "OFFSET_ILLEGAL", 2), (-1, "OFFSET_ILLEGAL", 0)],
)
def test_each_offset_gets_the_expected_answer(offset: int, status: str, next_offset: int) -> None:
    async def scenario(world: World) -> PullResult:
        for body in "ab":
            await world.producer.send(message(body), QUEUE)
        return await world.consumer.pull(QUEUE, offset)

    result = play(scenario)
    assert (result.status, result.next_offset) == (status, next_offset)
    assert (result.min_offset, result.max_offset) == (0, 2)


def test_offset_0_of_an_empty_queue_is_valid_and_higher_ones_are_not() -> None:
    async def scenario(world: World) -> list[str]:
        await world.producer.send(message("x"), QUEUE)
        other = replace(QUEUE, queue_id=1)
        results = [await world.consumer.pull(other, offset) for offset in (0, 5)]
        return [result.status for result in results]

    assert play(scenario) == ["NO_NEW_MESSAGE", "OFFSET_ILLEGAL"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": 4}, ResponseCode.SYSTEM_ERROR),
        ({"queueId": -1}, ResponseCode.SYSTEM_ERROR),
        ({"expressionType": "SQL92"}, ResponseCode.SYSTEM_ERROR),
        ({"consumerGroup": "no group!"}, ResponseCode.SYSTEM_ERROR),
        ({"sysFlag": 0}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ({"queueOffset": None}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_an_invalid_pull_is_refused(changes: dict[str, object], code: ResponseCode) -> None:
    async def scenario(world: World) -> int:
        await world.producer.send(message("x"), QUEUE)
        return (await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, altered(PULL, **changes)))).code

    assert play(scenario) == code


def test_a_pull_without_a_subscription_uses_that_of_the_heartbeats() -> None:
    async def scenario(world: World) -> list[int]:
        for tag in "ab":
            await world.producer.send(message(tag, tag), QUEUE)
        subscription = Subscription("T", "b", sub_version=5)
        data = ConsumerData("G", subscription_data_set=[subscription])
        beat = java_json.write(Heartbeat("c", consumer_data_set=[data]), standard=True)
        await world.ask(RequestCode.HEART_BEAT, body=beat)
        codes = []
        for version in (5, 6):
            fields = altered(PULL, sysFlag=0, subVersion=version)
            answer = await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, fields))
            codes.append(answer.code)
            if version == 5:
                assert answer.body.count(b"TAGS\x01b") == 1
                assert b"TAGS\x01a" not in answer.body
        return codes

    assert play(scenario) == [ResponseCode.SUCCESS, ResponseCode.SUBSCRIPTION_NOT_LATEST]


@pytest.mark.parametrize(
    ("expression_type", "code"),
    [("TAG", ResponseCode.SUCCESS), ("SQL92", ResponseCode.SUBSCRIPTION_NOT_LATEST)],
)
def test_a_subscription_to_all_tags_also_serves_a_newer_one_by_tags(
    expression_type: str, code: ResponseCode
) -> None:
    async def scenario(world: World) -> int:
        await world.producer.send(message("a", "a"), QUEUE)
        data = ConsumerData("G", subscription_data_set=[Subscription("T", "*", sub_version=5)])
        beat = java_json.write(Heartbeat("c", consumer_data_set=[data]), standard=True)
        await world.ask(RequestCode.HEART_BEAT, body=beat)
        fields = altered(PULL, sysFlag=0, subVersion=6, expressionType=expression_type)
        return (await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, fields))).code

    assert play(scenario) == code


def test_stopping_answers_a_held_pull() -> None:
    async def scenario(world: World) -> str:
        await world.producer.send(message("x"), QUEUE)
        waiting = asyncio.create_task(world.consumer.pull(QUEUE, 1, hold_ms=15_000))
        await asyncio.sleep(1)
        await world.stop_broker()
        return (await waiting).status

    assert play(scenario) == "NO_NEW_MESSAGE"


# Offsets.


def test_offset_queries_return_the_extent_of_the_queue() -> None:
    async def scenario(world: World) -> None:
        for body in "abc":
            await world.producer.send(message(body), QUEUE)
        consumer = world.consumer
        assert (await consumer.min_offset(QUEUE), await consumer.max_offset(QUEUE)) == (0, 3)
        assert await consumer.committed(QUEUE) == 0
        await consumer.commit(QUEUE, 2)
        assert await consumer.committed(QUEUE) == 2
        unknown = QueueRequest("nowhere", 9)
        for code, field, value in [
            (RequestCode.GET_MAX_OFFSET, "offset", "0"),
            (RequestCode.GET_MIN_OFFSET, "offset", "0"),
            (RequestCode.GET_EARLIEST_MSG_STORETIME, "timestamp", "-1"),
        ]:
            answer = await world.ask(code, unknown)
            assert (answer.code, answer.fields[field]) == (0, value)

    play(scenario)


def test_a_search_by_time_finds_the_message_stored_nearest_to_it() -> None:
    async def scenario(world: World) -> list[int]:
        for body in "abc":
            await world.producer.send(message(body), QUEUE)
            await asyncio.sleep(10)
        found = (await world.consumer.pull(QUEUE, 0)).messages
        first, second, last = (stored.store_timestamp_ms for stored in found)
        middle = (first + second) // 2
        asked = [0, first, middle - 1000, middle + 1000, second, last, last + 99_999]
        return [await world.consumer.search_offset(QUEUE, time) for time in asked]

    assert play(scenario) == [0, 0, 0, 1, 1, 2, 2]


def test_a_client_of_5x_can_choose_the_side_of_a_search_by_time() -> None:
    async def scenario(world: World) -> dict[str, list[int]]:
        for body in "abc":
            await world.producer.send(message(body), QUEUE)
            await asyncio.sleep(10)
        found = (await world.consumer.pull(QUEUE, 0)).messages
        first, second, last = (stored.store_timestamp_ms for stored in found)
        asked = [first - 1, first, first + 1, second - 1, second, last, last + 1]
        offsets: dict[str, list[int]] = {}
        for side in ("LOWER", "upper"):
            for time in asked:
                header = SearchOffsetRequest("T", 0, time, side)
                answer = await world.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
                offsets.setdefault(side, []).append(int(answer.fields["offset"]))
        return offsets

    assert play(scenario) == {"LOWER": [0, 0, 1, 1, 1, 2, 3], "upper": [0, 0, 0, 0, 1, 2, 2]}


def test_a_search_by_time_in_an_empty_queue_returns_offset_0() -> None:
    async def scenario(world: World) -> str:
        answer = await world.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, SearchOffsetRequest("nowhere", 0, 1))
        return answer.fields["offset"]

    assert play(scenario) == "0"


def test_a_pull_can_commit_an_offset_of_its_queue() -> None:
    async def scenario(world: World) -> int | None:
        await world.producer.send(message("x"), QUEUE)
        fields = altered(PULL, sysFlag=4 | 1, commitOffset=1)
        await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, fields))
        return await world.consumer.committed(QUEUE)

    assert play(scenario) == 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": 4}, ResponseCode.SYSTEM_ERROR),
        ({"commitOffset": -1}, ResponseCode.SYSTEM_ERROR),
        ({"consumerGroup": "a@b"}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_an_offset_for_an_invalid_group_or_queue_is_not_kept(
    changes: dict[str, object], code: ResponseCode
) -> None:
    async def scenario(world: World) -> tuple[int, int | None]:
        await world.producer.send(message("x"), QUEUE)
        fields = altered(UpdateOffsetRequest("G", "T", 0, 1), **changes)
        answer = await world.ask_raw(new_request(RequestCode.UPDATE_CONSUMER_OFFSET, fields))
        return answer.code, await world.consumer.committed(QUEUE)

    assert play(scenario) == (code, 0)


# Clients.


def test_members_of_a_group_are_notified_of_a_change() -> None:
    async def scenario(world: World) -> list[str]:
        await world.producer.send(message("x"), QUEUE)
        await world.session.heartbeat()
        answer = await world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest("G"))
        ids = java_json.read(dict[str, list[str]], answer.body)["consumerIdList"]
        assert ids == [world.session.client_id]
        await world.session.stop()
        return ids

    assert play(scenario)


def test_a_group_without_members_has_no_list() -> None:
    async def scenario(world: World) -> int:
        return (await world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest("unknown"))).code

    assert play(scenario) == ResponseCode.SYSTEM_ERROR


def test_a_heartbeat_creates_the_retry_topic_of_the_group() -> None:
    async def scenario(world: World) -> int:
        beat = java_json.write(Heartbeat("c", consumer_data_set=[ConsumerData("G")]), standard=True)
        await world.ask(RequestCode.HEART_BEAT, body=beat)
        await asyncio.sleep(1)
        route = await world.session.routes.refresh("%RETRY%G")
        assert route is not None
        return route.queue_datas[0].write_queue_nums

    assert play(scenario) == 1


def test_an_unknown_group_is_refused_without_automatic_creation() -> None:
    config = BrokerConfig(store_directory="/store", port=0, store=SMALL_STORE, auto_create_groups=False)

    async def scenario(world: World) -> int:
        await world.producer.send(message("x"), QUEUE)
        return (await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, altered(PULL)))).code

    assert play(scenario, config=config) == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


# The event log.


def test_the_events_of_a_send_are_logged_in_order() -> None:
    async def scenario(world: World) -> list[tuple[str, Kind]]:
        await asyncio.sleep(1)  # after the first checkpoint
        world.events.clear()
        await world.producer.send(message("x"), QUEUE)
        await world.consumer.pull(QUEUE, 0)
        await world.consumer.commit(QUEUE, 1)
        reported = [(event.node, event.kind) for event in world.events]
        keys = {event.msg_id for event in world.events if event.msg_id}
        assert len(keys) == 1
        return reported

    assert play(scenario) == [
        ("producer", Kind.SEND),
        ("broker-a", Kind.APPEND),
        ("broker-a", Kind.FLUSH),
        ("broker-a", Kind.DISPATCH),
        ("broker-a", Kind.SEND_ACK),
        ("producer", Kind.SEND_ACK),
        ("consumer", Kind.SUBSCRIBE),
        ("consumer", Kind.DELIVER),
        ("broker-a", Kind.OFFSET_COMMIT),
        ("consumer", Kind.OFFSET_COMMIT),
    ]


def test_the_same_seed_produces_the_same_events() -> None:
    async def scenario(world: World) -> list[str]:
        await asyncio.gather(*(world.producer.send(message(str(i))) for i in range(20)))
        return [repr(event) for event in world.events]

    assert play(scenario, seed=3) == play(scenario, seed=3)
    assert play(scenario, seed=3) != play(scenario, seed=4)


ASKED_WITHOUT_ANYTHING = {
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_BROKER_CONFIG,
    RequestCode.GET_BROKER_RUNTIME_INFO,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    RequestCode.GET_ALL_PRODUCER_INFO,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
    RequestCode.CLEAN_UNUSED_TOPIC,
    RequestCode.DELETE_EXPIRED_COMMITLOG,
    RequestCode.GET_BROKER_HA_STATUS,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
}


def test_topics_created_together_are_registered_together_and_completely() -> None:
    async def scenario(world: World) -> tuple[int, int]:
        registered = 0
        table = world.namesrv._services.table
        register = table.register

        def counted(*arguments: Any, **named: Any) -> Any:
            nonlocal registered
            registered += 1
            return register(*arguments, **named)

        world.network.delay_s = 0.05
        table.register = counted  # type: ignore[method-assign]
        fields = [altered(SEND, topic=f"T{number}") for number in range(40)]
        requests = [new_request(RequestCode.SEND_MESSAGE, one, b"x") for one in fields]
        await asyncio.gather(*(world.ask_raw(request) for request in requests))
        await asyncio.sleep(1)
        routes = [await world.session.routes.refresh(f"T{number}") for number in range(40)]
        return registered, sum(route is not None for route in routes)

    registered, known = play(scenario)
    assert known == 40
    assert 1 <= registered < 40


def test_requests_without_fields_or_body_get_error_answers_and_the_broker_continues() -> None:
    async def scenario(world: World) -> None:
        for code in PROCESSORS.keys() - ASKED_WITHOUT_ANYTHING:
            answer = await world.ask_raw(new_request(code, body=b"\xff{"))
            assert (code, answer.code) == (code, ResponseCode.SYSTEM_ERROR)
        sent(await world.producer.send(message("alive")))

    play(scenario)


def test_an_offset_commit_in_a_oneway_request_is_stored() -> None:
    async def scenario(world: World) -> int | None:
        await world.producer.send(message("x"), QUEUE)
        header = headers.write(UpdateOffsetRequest("G", "T", 0, 1))
        request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, header, oneway=True)
        await world.session.remoting.send_oneway(world.broker_address, request)
        return await world.consumer.committed(QUEUE)

    assert play(scenario) == 1


_OTHERS = (
    *("commitOffset", "timestamp", "clientID", "clientId", "clientAddr", "msgId", "key", "maxNum"),
    *("group", "groupName", "producerGroup", "srcGroup", "destGroup", "offset", "delayLevel", "isForce"),
    *("perm", "readQueueNums", "writeQueueNums", "topicFilterType", "order", "maxReconsumeTimes"),
)
_names = st.sampled_from(sorted({*headers.write(SEND), *headers.write(PULL), *"abcdefghijklm", *_OTHERS}))
_values = st.sampled_from(
    ["", "0", "1", "-1", "T", "G", "true", "9" * 30, str(-(2**63)), "\x00", "%", "a" * 300, "%RETRY%G"]
)
_members = ["clientID", "clientId", "group", "consumerGroup", "groupName", "mqSet", "consumerDataSet"]
_json: st.SearchStrategy[dict[str, object]] = st.dictionaries(
    st.sampled_from(_members),
    st.sampled_from([None, 0, -1, "", "G", "a/b", [], [{}], [{"groupName": "G"}], {"topic": "T"}, 1e400]),
)
_bodies = st.binary(max_size=20) | _json.map(lambda value: json.dumps(value).encode())


@settings(max_examples=150, deadline=None)
@given(
    code=st.sampled_from(sorted(PROCESSORS)),
    fields=st.dictionaries(_names, _values),
    body=_bodies,
)
def test_every_request_is_answered_and_the_broker_continues(
    code: int, fields: dict[str, str], body: bytes
) -> None:
    async def scenario(world: World) -> None:
        complete = {**headers.write_send_v2(SEND), **headers.write(SEND), **headers.write(PULL), **fields}
        for asked in (fields, complete):
            answer = await world.ask_raw(new_request(code, asked, body))
            assert answer.is_response
            # An unexpected exception would be answered with the name of its type.
            assert not re.match(r"[A-Za-z]+Error: ", answer.remark or ""), answer
        sent(await world.producer.send(Message("Other", b"alive")))

    play(scenario)


def test_a_full_disk_does_not_stop_a_broker_that_removes_expired_filters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(step: Step) -> None:
        if "consumerFilter" in step.path:
            raise OSError(28, "No space left on device", step.path)

    async def scenario(world: World) -> bool:
        assert world.broker is not None
        assert world.broker.services is not None
        filters = world.broker.services.filters
        filters.register("G", [Subscription("T", "a = 1", expression_type="SQL92", sub_version=1)], 1)
        filters.group_left("G", 2)
        world.disk.on_step = full
        await asyncio.sleep(11)
        world.disk.on_step = None
        return world.broker.is_ready and filters.get("T", "G") is not None

    assert play(scenario)
    assert "expired filters cannot be removed" in caplog.text

"""Tests pulls: permissions, filters, limits, and that no message is missed while a pull is held.

Sources: docs/reference/protocol/pulling.md, "Pull requests" and "Get statuses".
"""

import asyncio
import inspect
from dataclasses import replace

import pytest

from mqproof.impl.broker.processors.pull import _CODES as PULL_CODES
from mqproof.impl.broker.processors.pull import pull_message
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerData, Heartbeat, Subscription, SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.budget import Shares
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import PullResponse
from mqproof.impl.remoting.message import TAGS
from mqproof.impl.store.files import record
from mqproof.impl.store.results import GetStatus
from tests.impl.broker.processors.test_groups import Client, group_put
from tests.impl.broker.processors.test_send import CONFIG, send
from tests.impl.broker.test_broker import PULL, QUEUE, altered
from tests.impl.world import World, play


async def pull(world: World, **changes: object) -> Command:
    return await world.ask_raw(new_request(RequestCode.PULL_MESSAGE, altered(PULL, **changes)))


def bodies(answer: Command) -> list[bytes]:
    data, found = answer.body, []
    while data:
        size, _ = record.peek(data[:8])
        found.append(record.decode(data[:size]).message.body)
        data = data[size:]
    return found


class Peer:
    """The part of a channel that a pull uses."""

    remote = ("127.0.0.1", 1)
    is_open = True

    def __init__(self, *, takes: bool = True) -> None:
        self.takes = takes


def test_every_get_status_has_its_response_code() -> None:
    assert set(PULL_CODES) == set(GetStatus)
    # Whole requests show the other statuses. This one needs a log that lost a record of a queue.
    assert PULL_CODES[GetStatus.MESSAGE_WAS_REMOVING] is ResponseCode.PULL_RETRY_IMMEDIATELY


# Permissions.


@pytest.mark.parametrize(
    ("group", "code"),
    [
        (SubscriptionGroup(group_name="G"), ResponseCode.SUCCESS),
        (SubscriptionGroup(group_name="G", consume_enable=False), ResponseCode.NO_PERMISSION),
    ],
)
def test_a_group_can_be_forbidden_to_consume(group: SubscriptionGroup, code: ResponseCode) -> None:
    async def scenario(world: World) -> int:
        await send(world)
        await group_put(world, group)
        return (await pull(world)).code

    assert play(scenario) == code


def test_a_broker_without_read_permission_refuses_pulls() -> None:
    async def scenario(world: World) -> int:
        await send(world)
        return (await pull(world)).code

    assert play(scenario, config=replace(CONFIG, permission=2)) == ResponseCode.NO_PERMISSION


def test_a_topic_without_read_permission_cannot_be_read() -> None:
    async def scenario(world: World) -> int:
        await send(world)
        assert world.broker is not None
        assert world.broker.services is not None
        await world.broker.services.topics.put(TopicConfig("T", perm=2))
        return (await pull(world)).code

    assert play(scenario) == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(
    ("allowed", "code"), [(True, ResponseCode.SUCCESS), (False, ResponseCode.NO_PERMISSION)]
)
def test_a_group_can_be_forbidden_to_broadcast(allowed: bool, code: ResponseCode) -> None:
    async def scenario(world: World) -> int:
        await send(world)
        await group_put(world, SubscriptionGroup(group_name="G", consume_broadcast_enable=allowed))
        client = Client(world, "c1")
        await client.beat("G", model="BROADCASTING")
        answer = await pull(world, sysFlag=0)
        await client.remoting.close()
        return answer.code

    assert play(scenario) == code


# Filters.


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"subscription": "a"}, [b"a"]),
        ({"subscription": " a || c ||"}, [b"a", b"c"]),
        ({"subscription": "*"}, [b"a", b"b", b"c"]),
        ({"subscription": None}, [b"a", b"b", b"c"]),
        ({"subscription": "code of the client's", "sysFlag": 4 | 8}, [b"a", b"b", b"c"]),
        ({"subscription": "a", "expressionType": "TAG"}, [b"a"]),
        ({"subscription": " || "}, []),
        ({"subscription": " "}, []),
    ],
)
def test_the_subscription_of_a_pull_selects_messages(
    changes: dict[str, object], expected: list[bytes]
) -> None:
    async def scenario(world: World) -> list[bytes]:
        for tag in "abc":
            await send(world, tag.encode(), properties=f"{TAGS}\x01{tag}")
        return bodies(await pull(world, **changes))

    assert play(scenario) == expected


def test_a_class_filter_in_a_heartbeat_lets_every_message_through() -> None:
    async def scenario(world: World) -> list[bytes]:
        await send(world, properties=f"{TAGS}\x01a")
        subscription = Subscription("T", "code", expression_type="JAVA", class_filter_mode=True)
        beat = Heartbeat("c", [ConsumerData("G", subscription_data_set=[subscription])])
        await world.ask(RequestCode.HEART_BEAT, body=java_json.write(beat, standard=True))
        return bodies(await pull(world, sysFlag=0))

    assert play(scenario) == [b"x"]


@pytest.mark.parametrize("expression", ["a||" * 2000, "||", "||||"])
def test_an_invalid_expression_is_refused(expression: str) -> None:
    async def scenario(world: World) -> int:
        await send(world)
        return (await pull(world, subscription=expression)).code

    assert play(scenario) == ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_a_pull_without_matches_continues_after_the_messages_it_examined() -> None:
    async def scenario(world: World) -> tuple[int, int]:
        for _ in range(3):
            await send(world, properties=f"{TAGS}\x01a")
        answer = await pull(world, subscription="b", sysFlag=4 | 2, suspendTimeoutMillis=15_000)
        return answer.code, headers.read(PullResponse, answer.fields).next_begin_offset

    assert play(scenario) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 3)


def test_an_expression_without_a_tag_does_not_select_messages_without_tags() -> None:
    """Messages without tags have the code 0."""

    async def scenario(world: World) -> list[bytes]:
        await send(world)
        return bodies(await pull(world, subscription=" || "))

    assert play(scenario) == []


@pytest.mark.parametrize(
    ("length", "code"),
    [(4096, ResponseCode.PULL_RETRY_IMMEDIATELY), (4097, ResponseCode.SUBSCRIPTION_PARSE_FAILED)],
)
def test_an_expression_has_at_most_4096_characters(length: int, code: ResponseCode) -> None:
    async def scenario(world: World) -> int:
        await send(world)
        return (await pull(world, subscription="a" * length)).code

    assert play(scenario) == code


@pytest.mark.parametrize(
    ("known", "asked", "code"),
    [
        (Subscription("T", "*", sub_version=5), {}, ResponseCode.SUCCESS),
        (Subscription("T", "", sub_version=5), {}, ResponseCode.SUCCESS),
        (Subscription("T", None, sub_version=5), {}, ResponseCode.SUCCESS),
        (
            Subscription("T", "*", sub_version=5, expression_type=None),
            {"expressionType": "TAG"},
            ResponseCode.SUCCESS,
        ),
        (Subscription("T", "a", sub_version=5), {}, ResponseCode.SUBSCRIPTION_NOT_LATEST),
        (Subscription("T", "a", sub_version=6), {}, ResponseCode.PULL_RETRY_IMMEDIATELY),
        (
            Subscription("T", "*", sub_version=5),
            {"expressionType": "SQL92"},
            ResponseCode.SUBSCRIPTION_NOT_LATEST,
        ),
        (
            Subscription("T", "*", sub_version=5, expression_type="SQL92"),
            {"expressionType": "SQL92"},
            ResponseCode.SUBSCRIPTION_NOT_LATEST,
        ),
    ],
)
def test_an_older_subscription_serves_a_newer_one_if_both_are_by_tags_and_it_is_to_all(
    known: Subscription, asked: dict[str, object], code: ResponseCode
) -> None:
    async def scenario(world: World) -> int:
        await send(world)
        beat = Heartbeat("c", [ConsumerData("G", subscription_data_set=[known])])
        await world.ask(RequestCode.HEART_BEAT, body=java_json.write(beat, standard=True))
        return (await pull(world, sysFlag=0, subVersion=6, **asked)).code

    assert play(scenario) == code


@pytest.mark.parametrize("by_heartbeat", [False, True])
def test_an_sql_filter_comes_with_the_pull_or_from_the_heartbeats(by_heartbeat: bool) -> None:
    async def scenario(world: World) -> list[bytes]:
        for price in ("5", "20"):
            await send(world, price.encode(), properties=f"price\x01{price}")
        sql = {"subscription": "price > 10", "expressionType": "SQL92"}
        if not by_heartbeat:
            return bodies(await pull(world, **sql))
        subscription = Subscription("T", "price > 10", expression_type="SQL92", sub_version=1)
        beat = Heartbeat("c", [ConsumerData("G", subscription_data_set=[subscription])])
        await world.ask(RequestCode.HEART_BEAT, body=java_json.write(beat, standard=True))
        return bodies(await pull(world, sysFlag=0, subscription=None))

    assert play(scenario, config=replace(CONFIG, property_filter=True)) == [b"20"]


def test_a_pull_without_a_subscription_needs_one_of_a_heartbeat() -> None:
    async def scenario(world: World) -> Command:
        await send(world)
        return await pull(world, sysFlag=0)

    answer = play(scenario)
    assert answer.code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    assert answer.remark == "no heartbeat has subscribed group G to topic T"


# Copies of a master.


@pytest.mark.parametrize(
    ("has_all", "offset", "code", "next_offset", "broker_id"),
    [
        (True, 0, ResponseCode.SUCCESS, 1, 0),
        (True, 1, ResponseCode.PULL_NOT_FOUND, 1, 0),
        (True, 5, ResponseCode.PULL_OFFSET_MOVED, 1, 0),
        (True, -1, ResponseCode.PULL_OFFSET_MOVED, 0, 0),
        (False, 0, ResponseCode.SUCCESS, 1, 0),
        (False, 1, ResponseCode.PULL_NOT_FOUND, 1, 0),
        (False, 5, ResponseCode.PULL_RETRY_IMMEDIATELY, 5, 7),
        (False, -1, ResponseCode.PULL_RETRY_IMMEDIATELY, -1, 7),
    ],
)
def test_a_broker_that_may_lack_messages_does_not_correct_an_offset(
    monkeypatch: pytest.MonkeyPatch,
    has_all: bool,
    offset: int,
    code: ResponseCode,
    next_offset: int,
    broker_id: int,
) -> None:
    async def scenario(world: World) -> None:
        await send(world)
        await group_put(world, SubscriptionGroup(group_name="G", broker_id=7))
        assert world.broker is not None
        monkeypatch.setattr(type(world.broker.store), "has_all", has_all)
        answer = await pull(world, queueOffset=offset)
        response = headers.read(PullResponse, answer.fields)
        assert (answer.code, response.next_begin_offset) == (code, next_offset)
        assert response.suggest_which_broker_id == broker_id

    play(scenario)


# Limits.


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 4),
        ({"maxMsgNums": 2}, 2),
        ({"maxMsgNums": 0}, 1),
        ({"maxMsgNums": -5}, 1),
        ({"maxMsgBytes": 1}, 1),
        ({"maxMsgBytes": -1}, 1),
        ({"maxMsgNums": 2**31 - 1, "maxMsgBytes": 2**31 - 1}, 4),
    ],
)
def test_an_answer_has_as_many_messages_as_client_and_broker_allow(
    changes: dict[str, object], count: int
) -> None:
    async def scenario(world: World) -> int:
        for _ in range(6):
            await send(world)
        return len(bodies(await pull(world, **changes)))

    assert play(scenario, config=replace(CONFIG, pull_count_max=4)) == count


def test_messages_far_behind_come_in_smaller_answers_and_may_come_from_a_slave() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        services = world.broker.services
        services.runtime = replace(services.runtime, memory_bytes=55_000)
        await group_put(world, SubscriptionGroup(group_name="G", which_broker_when_consume_slowly=7))
        for _ in range(6):
            await send(world)
        far, near = await pull(world), await pull(world, queueOffset=3)
        assert [len(bodies(far)), len(bodies(near))] == [2, 3]
        reported = [
            headers.read(PullResponse, answer.fields).suggest_which_broker_id for answer in (far, near)
        ]
        assert reported == [7, 0]

    # Each record has about 155 bytes.
    play(scenario, config=replace(CONFIG, memory_percent=1, far_pull_count_max=2, slave_readable=True))


@pytest.mark.parametrize(("slave_readable", "reported"), [(True, [7, 5]), (False, [0, 0])])
def test_a_group_chooses_the_brokers_to_read_from_where_slaves_may_be_read(
    slave_readable: bool, reported: list[int]
) -> None:
    async def scenario(world: World) -> list[int | None]:
        assert world.broker is not None
        assert world.broker.services is not None
        services = world.broker.services
        services.runtime = replace(services.runtime, memory_bytes=40_000)
        group = SubscriptionGroup(group_name="G", broker_id=5, which_broker_when_consume_slowly=7)
        await group_put(world, group)
        for _ in range(6):
            await send(world)
        answers = [await pull(world), await pull(world, queueOffset=5)]
        return [headers.read(PullResponse, answer.fields).suggest_which_broker_id for answer in answers]

    assert play(scenario, config=replace(CONFIG, memory_percent=1, slave_readable=slave_readable)) == reported


# Offsets that come with a pull.


@pytest.mark.parametrize(
    ("changes", "committed"),
    [
        ({"sysFlag": 5, "commitOffset": 1}, 1),
        ({"sysFlag": 4, "commitOffset": 1}, 0),
        ({"sysFlag": 5, "commitOffset": -1}, 0),
        ({"sysFlag": 7, "commitOffset": 1, "queueOffset": 1, "suspendTimeoutMillis": 1000}, 1),
        ({"sysFlag": 5, "commitOffset": 1, "queueId": 9}, 0),
    ],
)
def test_a_pull_can_commit_an_offset(changes: dict[str, object], committed: int) -> None:
    async def scenario(world: World) -> int | None:
        await send(world)
        await pull(world, **changes)
        return await world.consumer.committed(QUEUE)

    assert play(scenario) == committed


@pytest.mark.parametrize(("sent_offset", "committed"), [(0, 0), (-1, 1), (2, 2)])
def test_a_pull_can_set_an_offset_back_to_0(sent_offset: int, committed: int) -> None:
    async def scenario(world: World) -> int | None:
        await send(world)
        for offset in (1, sent_offset):
            await pull(world, sysFlag=5, commitOffset=offset)
        return await world.consumer.committed(QUEUE)

    assert play(scenario) == committed


def test_a_pull_is_counted_and_its_end_is_the_progress_of_the_group() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        services = world.broker.services
        for _ in range(2):
            await send(world)
        found = await pull(world)
        await pull(world, queueOffset=2)
        statistics = services.statistics
        assert (statistics.found.total, statistics.missed.total) == (1, 1)
        assert statistics.messages_got.total == 2
        assert services.pull_progress.end("T", "G", 0) == 2
        await asyncio.sleep(10)
        now_s = world.loop.time()
        counted = [
            statistics.counts.windows(name, "T@G", now_s) for name in ("GROUP_GET_NUMS", "GROUP_GET_SIZE")
        ]
        assert [windows and windows[0].sum for windows in counted] == [2, len(found.body)]
        assert services.pull_progress.rate("T", "G", now_s) == pytest.approx(0.2, abs=0.01)

    play(scenario)


# Holding.


def test_a_pull_that_may_wait_is_answered_at_once_if_there_is_a_message_or_an_error() -> None:
    async def scenario(world: World) -> list[int]:
        await send(world)
        began_s = world.loop.time()
        answers = [
            await pull(world, queueOffset=offset, sysFlag=6, suspendTimeoutMillis=15_000)
            for offset in (0, 5, -1)
        ]
        assert world.loop.time() - began_s < 1
        return [answer.code for answer in answers]

    moved = ResponseCode.PULL_OFFSET_MOVED
    assert play(scenario) == [ResponseCode.SUCCESS, moved, moved]


def test_a_pull_that_cannot_wait_is_answered_at_once() -> None:
    async def scenario(world: World) -> tuple[int, float]:
        await send(world)
        began = asyncio.get_running_loop().time()
        answer = await pull(world, queueOffset=1, sysFlag=4, suspendTimeoutMillis=15_000)
        return answer.code, asyncio.get_running_loop().time() - began

    assert play(scenario) == (ResponseCode.PULL_NOT_FOUND, 0)


@pytest.mark.parametrize(
    ("asked_ms", "seconds"), [(15_000, 15), (60_000, 60), (60_001, 60), (3_600_000, 60), (-1, 0)]
)
def test_a_pull_is_held_for_the_requested_time_up_to_a_limit(asked_ms: int, seconds: float) -> None:
    async def scenario(world: World) -> float:
        await send(world)
        assert world.broker is not None
        assert world.broker.services is not None
        fields = altered(PULL, queueOffset=1, sysFlag=6, suspendTimeoutMillis=asked_ms)
        began = asyncio.get_running_loop().time()
        reply = pull_message(
            world.broker.services,
            new_request(RequestCode.PULL_MESSAGE, fields),
            Peer(),  # type: ignore[arg-type]
        )
        assert inspect.isawaitable(reply)
        await reply
        return asyncio.get_running_loop().time() - began

    assert play(scenario) == pytest.approx(seconds, abs=0.0005)


def test_a_pull_above_the_limit_of_held_pulls_is_refused() -> None:
    async def scenario(world: World) -> int:
        await send(world)
        assert world.broker is not None
        assert world.broker.services is not None
        world.broker.services.holds.budget.limits = Shares(0, 0, 0)
        return (await pull(world, queueOffset=1, sysFlag=6, suspendTimeoutMillis=15_000)).code

    assert play(scenario) == ResponseCode.SYSTEM_BUSY


def test_without_long_polling_a_pull_is_held_for_a_short_time() -> None:
    async def scenario(world: World) -> float:
        await send(world)
        began = asyncio.get_running_loop().time()
        answer = await pull(world, queueOffset=1, sysFlag=6, suspendTimeoutMillis=15_000)
        assert answer.code == ResponseCode.PULL_NOT_FOUND
        return asyncio.get_running_loop().time() - began

    assert play(scenario, config=replace(CONFIG, long_polling=False)) == pytest.approx(1, abs=0.1)


def test_a_held_pull_with_a_filter_moves_past_messages_that_do_not_match() -> None:
    async def scenario(world: World) -> tuple[int, int, float]:
        await send(world)
        waiting = asyncio.create_task(
            pull(world, subscription="b", queueOffset=1, sysFlag=6, suspendTimeoutMillis=15_000)
        )
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        await send(world, properties=f"{TAGS}\x01a")
        answer = await waiting
        next_offset = headers.read(PullResponse, answer.fields).next_begin_offset
        return answer.code, next_offset, asyncio.get_running_loop().time() - began

    code, next_offset, seconds = play(scenario)
    assert (code, next_offset) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 2)
    assert 0 < seconds <= 5


def test_the_held_pull_of_a_disconnected_client_is_dropped() -> None:
    async def scenario(world: World) -> list[int]:
        await send(world)
        client = Client(world, "c1")
        fields = altered(PULL, queueOffset=1, sysFlag=6, suspendTimeoutMillis=15_000)
        request = new_request(RequestCode.PULL_MESSAGE, fields)
        waiting = asyncio.create_task(client.remoting.invoke(world.broker_address, request, 30))
        await asyncio.sleep(1)
        assert world.broker is not None
        assert world.broker.services is not None
        holds = world.broker.services.holds
        counts = [len(holds)]
        await client.remoting.close()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(0.1)
        return [*counts, len(holds)]

    held, left = play(scenario)
    assert held - left == 1


def test_a_message_that_arrives_just_after_an_empty_pull_is_not_missed() -> None:
    async def scenario(world: World) -> float:
        await send(world)
        assert world.broker is not None
        assert world.broker.services is not None
        services = world.broker.services
        request = new_request(
            RequestCode.PULL_MESSAGE, altered(PULL, queueOffset=1, sysFlag=6, suspendTimeoutMillis=4000)
        )
        loop = asyncio.get_running_loop()
        began = loop.time()
        reply = pull_message(services, request, Peer())  # type: ignore[arg-type]
        # Everything before the loop's next turn happens after the pull was held.
        services.holds.arrived("T", 0, 2, 0)
        assert inspect.isawaitable(reply)
        await reply
        return loop.time() - began

    assert play(scenario) == 0


def test_a_message_is_not_sent_to_a_peer_that_does_not_read() -> None:
    async def scenario(world: World) -> list[tuple[int, int]]:
        await send(world)
        assert world.broker is not None
        assert world.broker.services is not None
        request = new_request(
            RequestCode.PULL_MESSAGE, altered(PULL, queueOffset=1, sysFlag=6, suspendTimeoutMillis=15_000)
        )
        answers = []
        for takes in (True, False):
            reply = pull_message(world.broker.services, request, Peer(takes=takes))  # type: ignore[arg-type]
            assert inspect.isawaitable(reply)
            answers.append(asyncio.ensure_future(reply))
        await send(world, b"large" * 100)
        found = [await answer for answer in answers]
        read, unread = [answer for answer in found if answer is not None]
        response = headers.read(PullResponse, unread.fields)
        extent = (response.next_begin_offset, response.min_offset, response.max_offset)
        assert extent == (1, 0, 2)
        return [(answer.code, len(bodies(answer))) for answer in (read, unread)]

    assert play(scenario) == [(ResponseCode.SUCCESS, 1), (ResponseCode.PULL_NOT_FOUND, 0)]

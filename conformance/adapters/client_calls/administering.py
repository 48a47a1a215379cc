"""Requests of brokers to consumers: offsets that an operator resets, and what a consumer reports of itself.

See docs/reference/protocol/clients.md, "Requests to clients".
"""

import asyncio
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.consuming import Listening, consuming
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import LOCK, SEND_BACK, UNLOCK, Feed, queues_in
from mqproof.conformance.adapters.client_calls.pulling import PULL, message, records
from mqproof.conformance.adapters.client_calls.scripted_servers import Answer, ScriptedServers, pulled
from mqproof.impl.client.consuming import allocation
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumerConfig
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.model import MessageQueue, RetryLater
from mqproof.impl.runtime.clock import now_ms

_RESET, _STATUS, _RUNNING, _DIRECTLY, _NOTIFY = 220, 221, 307, 309, 40
_NAMED: Final = {"brokerName": "broker-a", "queueId": 0, "topic": "A"}
_UNQUOTED: Final = re.compile(r"([{,])(\{[^{}]*\}):")
"""A key that is an object, as fastjson writes it."""
_HELD: Final = {
    "cachedMsgCount": 0, "cachedMsgMaxOffset": 0, "cachedMsgMinOffset": 0, "cachedMsgSizeInMiB": 0,
    "commitOffset": 0, "droped": False, "lastConsumeTimestamp": 0, "lastLockTimestamp": 0,
    "lastPullTimestamp": 0, "locked": False, "transactionMsgCount": 0, "transactionMsgMaxOffset": 0,
    "transactionMsgMinOffset": 0, "tryUnlockTimes": 0,
}  # fmt: skip


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    _judge_allocation(expect)
    feed = Feed(servers)
    for work in (
        _push,
        _rates,
        _direct,
        _orderly_info,
        _lite,
        _scheduled,
        _resets,
        _orderly,
        _locks,
        _no_locks,
        _dead,
    ):
        feed.clear()
        await work(expect, feed)


async def _asked(feed: Feed, code: int, **fields: str) -> tuple[int, Any, str | None]:
    """Return the code, the body and the remark of a client's answer."""
    names = {"consumerGroup": "g", "clientId": "h@i", **fields}
    answer = await feed.servers.push("a", code, names)
    text = _UNQUOTED.sub(lambda found: f"{found[1]}{json.dumps(found[2])}:", answer.body.decode())
    return answer.code, json.loads(text) if text else None, answer.remark


def _tables(body: Any, name: str) -> dict[tuple[str, int], Any]:
    """Return a table whose keys are queues, by topic and queue."""
    keys = {key: json.loads(key) for key in body[name]}
    return {(keys[key]["topic"], keys[key]["queueId"]): value for key, value in body[name].items()}


def _matches(expect: Expectations, what: str, expected: dict[str, Any], observed: Any) -> None:
    """Compare the members that both name, and those that are expected."""
    found = observed or {}
    expect.equal(what, expected, {name: found.get(name) for name in expected})


async def _push(expect: Expectations, feed: Feed) -> None:
    """What a push consumer reports while its listener works, and afterwards."""
    listening = Listening({b"1": [10.0, RetryLater()]})
    feed.put(b"0", b"1", b"2" * (3 << 20))
    config = PushConsumerConfig(concurrency=1, batch_max=1, limits=PullLimits(batch=3))
    consumer, stop = await consuming(feed, config, listening)
    begun_ms = now_ms(consumer._session.runtime.clock)
    await asyncio.sleep(4.25)
    code, body, _ = await _asked(feed, _RUNNING)
    now = now_ms(consumer._session.runtime.clock)
    held = _tables(body, "mqTable")
    expected = {
        **_HELD, "cachedMsgCount": 2, "cachedMsgMaxOffset": 2, "cachedMsgMinOffset": 1,
        "cachedMsgSizeInMiB": 3, "commitOffset": 1,
    }  # fmt: skip
    mine = dict(held.get(("A", 0), {}))
    expect.equal("the code of the running info", 0, code)
    expect.equal("the queues of the running info", {("A", 0), ("%RETRY%g", 0)}, set(held))
    times = {name: mine.get(name, 0) for name in ("lastPullTimestamp", "lastConsumeTimestamp")}
    expect.equal("the last pull", True, 0 <= now - times["lastPullTimestamp"] <= 1100)
    expect.equal("the last call", True, abs(times["lastConsumeTimestamp"] - begun_ms) <= 300)
    _matches(expect, "the queue of the running info", {**expected, **times}, mine)
    properties = {
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY", "PROP_NAMESERVER_ADDR": "127.0.0.1:9876",
        "PROP_CONSUMEORDERLY": "false", "PROP_CONSUMER_START_TIMESTAMP": str(begun_ms),
        "PROP_THREADPOOL_CORE_SIZE": "1", "consumeMessageBatchMaxSize": "1", "messageModel": "CLUSTERING",
        "pullBatchSize": "3",
    }  # fmt: skip
    _matches(expect, "the properties", properties, body["properties"])
    topics = sorted(each["topic"] for each in body["subscriptionSet"])
    expect.equal("the subscriptions", ["%RETRY%g", "A"], topics)
    await asyncio.sleep(10)
    _, body, _ = await _asked(feed, _RUNNING)
    rates = body["statusTable"]["A"]
    expect.equal("the failed messages", 1, rates["consumeFailedMsgs"])
    code, body, _ = await _asked(feed, _STATUS, topic="A", group="g")
    expect.equal("the offsets", (0, {("A", 0): 3}), (code, _tables(body, "messageQueueTable")))
    for request in (_RUNNING, _DIRECTLY):
        code, _, remark = await _asked(feed, request, consumerGroup="other", topic="A", group="other")
        expect.equal("another group", (1, True), (code, "other" in (remark or "")))
    await consumer.stop()
    await stop()


async def _rates(expect: Expectations, feed: Feed) -> None:
    """The rates of the last ten seconds: two of three messages succeed, calls take 1 s, pulls 0.5 s."""
    listening = Listening({b"0": [1.0], b"1": [2.0, RetryLater()]})
    answer = Answer(0, pulled(0, 3, 0, 3), records(*feed.put(b"0", b"1", b"2")), after_s=0.5)
    feed.servers.script("a", PULL, answer, answer)
    feed.servers.routes.pop("%RETRY%g")
    consumer, stop = await consuming(feed, PushConsumerConfig(concurrency=1), listening)
    began_s = asyncio.get_running_loop().time()
    await asyncio.sleep(11.5)
    _, body, _ = await _asked(feed, _RUNNING)
    rates = body["statusTable"]["A"]
    elapsed_s = asyncio.get_running_loop().time() - began_s - 0.5
    counts = {"consumeFailedTPS": 1.0, "consumeOKTPS": 2.0, "pullTPS": 3.0}
    expect.equal("the rates", counts, {name: round(rates[name] * elapsed_s, 2) for name in counts})
    times = {"consumeRT": 1000, "pullRT": 500, "consumeFailedMsgs": 1}
    expect.equal("the times", times, {name: round(rates[name]) for name in times})
    await consumer.stop()
    await stop()


async def _direct(expect: Expectations, feed: Feed) -> None:
    """A message that an operator passes to the listener: its result is reported, nothing is committed."""
    answers = (
        (None, "CR_SUCCESS", None), (RetryLater(), "CR_LATER", None),
        (RetryLater(done=1), "CR_SUCCESS", None),
        (ValueError("why"), "CR_THROW_EXCEPTION", "ValueError: why"),
    )  # fmt: skip
    listening = Listening({b"x": [each for answer, *_ in answers for each in (0.25, answer)]})
    consumer, stop = await consuming(feed, PushConsumerConfig(), listening)
    await asyncio.sleep(0.5)
    feed.servers.take()
    for _, result, remark in answers:
        body = records(message(b"x", "t", reconsume_times=3), queue_offset=8)
        fields = {"consumerGroup": "g", "clientId": "h@i", "brokerName": "broker-z", "msgId": "M"}
        answer = await feed.servers.push("a", _DIRECTLY, fields, body)
        expected = {
            "consumeResult": result,
            "order": False,
            "spentTimeMills": 250,
            "remark": remark,
            "autoCommit": True,
        }
        _matches(expect, f"the result {result}", expected, json.loads(answer.body) if answer.body else None)
    queue = MessageQueue("A", "broker-z", 1)
    shown = [(each.queue, each.queue_offset, each.reconsume_times) for each in listening.received]
    expect.equal("what the listener receives", [(queue, 8, 3)] * 4, shown)
    damaged = await feed.servers.push("a", _DIRECTLY, {"consumerGroup": "g", "clientId": "h@i"}, b"x")
    expect.equal("a message that is damaged", 1, damaged.code)
    await asyncio.sleep(6)
    seen = feed.servers.take()
    expect.equal(
        "what is sent back or committed of it", 0, sum(offset for _, offset, _ in feed.commits(seen))
    )
    expect.equal("send-backs of it", [], [each for each in seen if each.code == SEND_BACK])
    await consumer.stop()
    await stop()


async def _orderly_info(expect: Expectations, feed: Feed) -> None:
    listening = Listening({b"0": [10.0]})
    feed.put(b"0", b"1", b"2")
    config = PushConsumerConfig(orderly=True, batch_max=2)
    consumer, stop = await consuming(feed, config, listening)
    await asyncio.sleep(3)
    _, body, _ = await _asked(feed, _RUNNING)
    mine = _tables(body, "mqTable")[("A", 0)]
    expected = {
        "cachedMsgCount": 3, "locked": True, "transactionMsgCount": 2, "transactionMsgMinOffset": 0,
        "transactionMsgMaxOffset": 1, "commitOffset": 0,
    }  # fmt: skip
    _matches(expect, "the queue of an orderly consumer", expected, mine)
    expect.equal(
        "the time of its lock",
        True,
        0 < now_ms(consumer._session.runtime.clock) - mine["lastLockTimestamp"] <= 3000,
    )
    expect.equal("orderly", "true", body["properties"]["PROP_CONSUMEORDERLY"])
    await consumer.stop()
    await stop()


async def _lite(expect: Expectations, feed: Feed) -> None:
    feed.put(b"0", b"1")
    session = await feed.session()
    consumer = LitePullConsumer(session, "g")
    await consumer.start()
    await consumer.subscribe("A")
    await consumer.poll(max_count=1)
    _, body, _ = await _asked(feed, _RUNNING)
    expect.equal(
        "the type of a lite pull consumer", "CONSUME_ACTIVELY", body["properties"]["PROP_CONSUME_TYPE"]
    )
    mine = _tables(body, "mqTable")["A", 0]
    held = {"cachedMsgCount": 2, "cachedMsgMaxOffset": 1, "lastPullTimestamp": mine["lastPullTimestamp"]}
    _matches(expect, "its queue", {**_HELD, **held}, mine)
    code, _, _ = await _asked(feed, _DIRECTLY, brokerName="b")
    expect.equal("it refuses a damaged message", 1, code)
    answer = await feed.servers.push(
        "a", _DIRECTLY, {"consumerGroup": "g", "clientId": "h@i"}, records(message(b"x"))
    )
    expect.equal("it has no listener", (1, True), (answer.code, "no listener" in (answer.remark or "")))
    await consumer.stop()
    await session.stop()


async def _scheduled(expect: Expectations, feed: Feed) -> None:
    session = await feed.session()
    service = ScheduledPull(session, "g")

    async def task(_consumer: PullConsumer, _queue: MessageQueue) -> int:
        return 60_000

    await service.start()
    await service.register("A", task)
    await asyncio.sleep(0.5)
    _, body, _ = await _asked(feed, _RUNNING)
    expect.equal("the queues of a service", {("A", 0)}, set(_tables(body, "mqTable")))
    expect.equal("the type of a service", "CONSUME_ACTIVELY", body["properties"]["PROP_CONSUME_TYPE"])
    expect.equal("its subscriptions", ["A"], [each["topic"] for each in body["subscriptionSet"]])
    code, body, _ = await _asked(feed, _STATUS, topic="A", group="g")
    expect.equal("its offsets", (0, {}), (code, body["messageQueueTable"]))
    answer = await feed.servers.push(
        "a", _DIRECTLY, {"consumerGroup": "g", "clientId": "h@i"}, records(message(b"x"))
    )
    expect.equal("it has no listener", 1, answer.code)
    await service.stop()
    await session.stop()


async def _resets(expect: Expectations, feed: Feed) -> None:
    """The operator moves a group: the offset is committed at once, and consumption goes on there."""
    for orderly in (False, True):
        feed.clear()
        listening = Listening()
        feed.put(*(b"%d" % n for n in range(6)))
        consumer, stop = await consuming(feed, PushConsumerConfig(orderly=orderly, concurrency=1), listening)
        await asyncio.sleep(1)
        listening.calls.clear()
        feed.servers.take()
        table = f'{{"offsetTable":{{{json.dumps(_NAMED)}:4}}}}'.encode()
        fields = {"topic": "A", "group": "g", "timestamp": "0", "isForce": "true"}
        feed.servers.push_oneway("a", _RESET, {**fields, "topic": "B"}, table)
        await asyncio.sleep(0.5)
        expect.equal("a reset of another topic", [], listening.bodies)
        feed.servers.push_oneway("a", _RESET, fields, table)
        await asyncio.sleep(0.5)
        expect.equal("what is consumed after a reset", [b"4", b"5"], listening.bodies)
        commits = feed.commits(feed.servers.take())
        expect.equal("the commit of a reset", (0, 4, False), commits[0] if commits else None)
        feed.servers.script("a", 15, Answer(1), Answer(1))
        feed.servers.push_oneway("a", _RESET, fields, table.replace(b":4}", b":2}"))
        await asyncio.sleep(5.5)
        flags = feed.commits(feed.servers.take())
        expect.equal("a reset that is refused is repeated", [(0, 2, False)], flags[:1])
        expect.equal("the next commit is a reset, too", False, flags[1][2] if len(flags) > 1 else None)
        await consumer.stop()
        await stop()


async def _orderly(expect: Expectations, feed: Feed) -> None:
    """A message that fails blocks its queue, for the time that the listener says."""
    feed.clear(2)
    pauses = (
        RetryLater(),
        RetryLater(pause_ms=1),
        RetryLater(pause_ms=2500),
        RetryLater(pause_ms=60_000),
        ValueError("x"),
    )
    listening = Listening({b"1": [*pauses]})
    feed.put(b"0", b"1", b"2")
    feed.put(b"a", b"b", queue_id=1)
    consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True, concurrency=1), listening)
    await asyncio.sleep(40)
    mine = [each for each in listening.calls if each[1] == [b"1"]]
    gaps = [round(after[0] - before[0], 2) for before, after in pairwise(mine)]
    expect.equal("the pauses of a queue", [1.0, 0.01, 2.5, 30.0, 1.0], gaps)
    expect.equal("the redeliveries", list(range(6)), [times[0] for _, _, times in mine])
    order = [body for body in listening.bodies if body.isdigit()]
    expect.equal("the order of a queue", [b"0", *[b"1"] * 6, b"2"], order)
    expect.equal("the other queue goes on", True, listening.bodies.index(b"b") < listening.bodies.index(b"2"))
    expect.equal("nothing is sent back", [], feed.servers.take(SEND_BACK))
    await asyncio.sleep(5)
    commits = {queue: offset for queue, offset, _ in feed.commits(feed.servers.take())}
    expect.equal("the commits of queues", {0: 3, 1: 2}, commits)
    partly = Listening({b"3": [RetryLater(done=1)]})
    feed.put(b"3", b"4", b"5")
    await consumer.stop()
    await stop()
    consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True, batch_max=3), partly)
    await asyncio.sleep(3)
    calls = [(bodies, times) for _, bodies, times in partly.calls]
    expect.equal(
        "a batch that is consumed in part", [([b"3", b"4", b"5"], [0, 0, 0]), ([b"4", b"5"], [1, 1])], calls
    )
    await consumer.stop()
    await stop()


async def _locks(expect: Expectations, feed: Feed) -> None:
    """Locks are taken, renewed, lost and released."""
    feed.clear(2)
    listening = Listening({b"2": [3.0]})
    feed.put(b"0")
    began_s = asyncio.get_running_loop().time()
    consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True), listening)
    await asyncio.sleep(0.5)
    seen = feed.servers.take(LOCK)
    body = json.loads(seen[0].body)
    expect.equal("who locks", ("h@i", "g"), (body["clientId"], body["consumerGroup"]))
    of_topic = sorted(queue for each in seen if b'"A"' in each.body for queue in queues_in(each.body))
    expect.equal("the queues that are locked", [0, 1], of_topic)
    names = {(each["topic"], each["brokerName"]) for one in seen for each in json.loads(one.body)["mqSet"]}
    expect.equal("their names", {("A", "broker-a"), ("%RETRY%g", "broker-a")}, names)
    await asyncio.sleep(42)
    renewals = feed.servers.take(LOCK)
    times = [round(each.at_s - began_s, 1) for each in renewals]
    expect.equal("the times of renewals", [1.0, 21.0, 41.0], times)
    expect.equal("all queues are renewed", True, all(len(queues_in(each.body)) == 3 for each in renewals))
    other = json.dumps({"lockOKMQSet": [{"brokerName": "broker-a", "queueId": 1, "topic": "A"}]}).encode()
    feed.servers.replies[LOCK] = lambda seen: Answer(
        body=other if b'"A"' in seen.body else b'{"lockOKMQSet":[]}'
    )
    await asyncio.sleep(20)
    expect.equal("the queue that stays", [MessageQueue("A", "broker-a", 1)], consumer.queues())
    feed.put(b"1")
    await asyncio.sleep(3)
    expect.equal("nothing is consumed of a lost queue", [b"0"], listening.bodies)
    del feed.servers.replies[LOCK]
    await asyncio.sleep(5)
    expect.equal("the queue comes back", 2, len(consumer.queues()))
    expect.equal("it is consumed again", [b"0", b"1"], listening.bodies)
    await _unlocks(expect, feed, listening)
    feed.servers.take()
    await consumer.stop()
    released = {queue for each in feed.servers.take(UNLOCK) for queue in queues_in(each.body)}
    expect.equal("the unlocks of the stop", True, 1 in released)
    await stop()


async def _unlocks(expect: Expectations, feed: Feed, listening: Listening) -> None:
    """A lost queue is unlocked when its listener has returned; nothing is consumed with an old lock."""
    feed.put(b"2")
    await asyncio.sleep(2)
    feed.servers.take()
    feed.servers.members = ["a@b", "h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)
    expect.equal(
        "no unlock while the listener works",
        [],
        [each for each in feed.servers.take(UNLOCK) if queues_in(each.body) == [0] and b'"A"' in each.body],
    )
    await asyncio.sleep(3)
    unlocked = [queues_in(each.body) for each in feed.servers.take(UNLOCK) if b'"A"' in each.body]
    expect.equal("the unlock afterwards", [[0]], unlocked)
    feed.servers.replies[LOCK] = lambda _: Answer(1, remark="r")
    feed.put(b"z", queue_id=1)
    await asyncio.sleep(55)
    feed.put(b"y", queue_id=1)
    await asyncio.sleep(3)
    expect.equal("a lock that is too old", False, b"y" in listening.bodies)
    del feed.servers.replies[LOCK]
    await asyncio.sleep(21)
    expect.equal("it is renewed later", True, b"y" in listening.bodies)


async def _no_locks(expect: Expectations, feed: Feed) -> None:
    """Without a lock, nothing is read; members that broadcast need none."""
    feed.clear(2)
    feed.servers.script("a", LOCK, *[Answer(body=b"{")] * 4)
    consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True), Listening())
    await asyncio.sleep(0.3)
    expect.equal("queues without a lock", [], consumer.queues())
    await consumer.stop()
    await stop()
    feed.servers._scripts.clear()
    config = PushConsumerConfig(MessageModel.BROADCASTING, orderly=True, offsets_directory="/o")
    feed.servers.take()
    consumer, stop = await consuming(feed, config, Listening())
    await asyncio.sleep(2)
    expect.equal("broadcast locks nothing", [], feed.servers.take(LOCK))
    expect.equal("broadcast reads all", 2, len(consumer.queues()))
    await consumer.stop()
    await stop()


async def _dead(expect: Expectations, feed: Feed) -> None:
    """An orderly consumer with a maximum moves a message to the dead letter queue."""
    listening = Listening({b"0": [RetryLater(pause_ms=10)] * 5})
    feed.put(b"0", b"1")
    consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True, reconsume_max=2), listening)
    await asyncio.sleep(2)
    expect.equal("the calls before a dead letter", [b"0", b"0", b"0", b"1"], listening.bodies)
    back = [(each.fields["originMsgId"], each.fields["delayLevel"], each.fields["maxReconsumeTimes"])
            for each in feed.servers.take(SEND_BACK)]  # fmt: skip
    expect.equal("the request of a dead letter", [("K30", "-1", "2")], back)
    await consumer.stop()
    await stop()


def _judge_allocation(expect: Expectations) -> None:
    """Each strategy, computed by hand from the protocol reference."""
    queues = [MessageQueue("T", f"{room}@b", n) for room in ("r1", "r2") for n in range(4)]
    ids = ["a", "b", "c"]

    def shares(strategy: allocation.Strategy, of: Sequence[MessageQueue] = queues) -> list[list[int]]:
        return [[queues.index(each) for each in strategy(of, ids, one)] for one in (*ids, "other")]

    near = allocation.by_nearest_room(allocation.averagely, {"a": "r1", "b": "r2", "c": "r2"}.get)
    far = allocation.by_nearest_room(
        allocation.by_circle, lambda _: "r1", lambda each: "r2" if each.queue_id else "r1"
    )
    cases: tuple[tuple[str, allocation.Strategy, list[list[int]]], ...] = (
        ("averagely", allocation.averagely, [[0, 1, 2], [3, 4, 5], [6, 7], []]),
        ("by circle", allocation.by_circle, [[0, 3, 6], [1, 4, 7], [2, 5], []]),
        ("by config", allocation.by_config([queues[5], MessageQueue("T", "x", 0)]), [[5]] * 4),
        ("by machine room", allocation.by_machine_room(["r2"]), [[4, 7], [5], [6], []]),
        ("by two rooms", allocation.by_machine_room(["r1", "r2"]), [[0, 1, 6], [2, 3, 7], [4, 5], []]),
        ("by the nearest room", near, [[0, 1, 2, 3], [4, 5], [6, 7], []]),
        ("by another room", far, [[0, 1, 5], [4, 2, 6], [3, 7], []]),
    )
    for name, strategy, expected in cases:
        expect.equal(f"the shares {name}", expected, shares(strategy))
    few = [[0], [1], [], []]
    expect.equal("the shares of few queues", few, shares(allocation.averagely, queues[:2]))
    ring = shares(allocation.consistent_hash)
    expect.equal(
        "a ring gives each queue to one member",
        list(range(8)),
        sorted(each for share in ring for each in share),
    )
    expect.equal("others get nothing of a ring", [], ring[-1])
    expect.equal("a position on the ring", 0xD41D8CD9, allocation.ring_position(""))
    plain = MessageQueue("T", "b", 0)
    expect.equal("a broker without a room", [], allocation.by_machine_room(["b", ""])([plain], ids, "a"))

"""Rounds of a member that fail in part, brokers with locks of their own, and the replicas that it pulls from.

See docs/reference/protocol/groups.md, "Queue locks" and "Push consumers", docs/reference/protocol/pulling.md,
and docs/reference/protocol/clients.md, "Name servers and routes".
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.consuming import Listening, consuming
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import LIST, LOCK, UNLOCK, Feed, queues_in
from mqproof.conformance.adapters.client_calls.pulling import PULL, message, records
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    HOST,
    PORTS,
    SILENCE,
    Answer,
    ScriptedServers,
    Seen,
    pulled,
    route,
)
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, RetryLater
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event

_ROUTE, _CHECK, _NOTIFY, _QUERY = 105, 46, 40, 14
_Q: Final = MessageQueue("A", "broker-a", 0)
_AT_ONCE: Final = RetryLater(pause_ms=10)


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (
        _trust,
        _times,
        _in_part,
        _expressions,
        _two_brokers,
        _slots,
        _dead_batch,
        _kept_in_order,
        _suggested,
    ):
        feed.clear()
        await work(expect, feed)


async def _started(
    feed: Feed, config: PushConsumerConfig, listening: Listening, topics: Sequence[str],
    events: list[Event] | None = None,
) -> tuple[PushConsumer, Session]:  # fmt: skip
    """Return a started consumer of these topics, and its session."""
    session = await feed.session()
    log = None if events is None else EventLog(events.append, "n", session.runtime.clock)
    consumer = PushConsumer(session, "g", listening, config, log)
    for topic in topics:
        await consumer.subscribe(topic)
    await consumer.start()
    return consumer, session


async def _times(expect: Expectations, feed: Feed) -> None:
    """When a member repeats a round, and what a notification changes."""
    feed.servers.routes.pop("A")
    loop = asyncio.get_running_loop()
    feed.servers.take()
    began_s = loop.time()
    consumer, stop = await consuming(feed, PushConsumerConfig(), Listening())
    await asyncio.sleep(16)

    def times(seen: Sequence[Seen], since_s: float) -> list[float]:
        return [round(each.at_s - since_s, 3) for each in seen if each.fields.get("topic") == "A"]

    repeated = sorted(set(times(feed.servers.take(_ROUTE), began_s)))
    expect.equal("the rounds without a route", [0.0, 1.0, 3.0, 7.0, 11.0, 15.0], repeated)
    began_s = loop.time()
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "other"})
    await asyncio.sleep(8)
    repeated = sorted(set(times(feed.servers.take(_ROUTE), began_s)))
    expect.equal("the rounds after a notification", [0.0, 1.0, 3.0, 7.0], repeated)
    feed.servers.routes["A"] = route({"a": 1})
    feed.servers.offsets.pop(("A", 0))
    await asyncio.sleep(4)
    asked = [each.code for each in feed.servers.take(29, 30, 31)]
    expect.equal("where a member begins in a queue that it finds later", [30], asked)
    await asyncio.sleep(62)
    listed = sorted({round(each.at_s, 3) for each in feed.servers.take(LIST)})
    expect.equal("the rounds of a member that reads", 3, len(listed))
    pauses = {round(after - before, 3) for before, after in pairwise(listed)}
    expect.equal("the pause between them", {20}, pauses)
    answer = await feed.servers.push("a", _NOTIFY, {"consumerGroup": "g"})
    expect.equal("the answer to a notification", 0, answer.code)
    await asyncio.sleep(0.1)
    expect.equal("the round of a notification", 2, len(feed.servers.take(LIST)))
    unknown = await feed.servers.push("a", 39_999, {})
    expect.equal("the answer to another request", 3, unknown.code)
    await consumer.stop()
    await stop()


async def _in_part(expect: Expectations, feed: Feed) -> None:
    """An answer that is wrong concerns its topic alone: the other topics are read at once."""
    servers = feed.servers
    nowhere = json.loads(route({"a": 1}))
    nowhere["brokerDatas"][0]["brokerAddrs"] = {}
    cases: tuple[tuple[str, bytes, int, Answer], ...] = (
        ("a route without addresses", json.dumps(nowhere).encode(), 0, Answer()),
        ("a list that is invalid", route({"a": 1}), LIST, Answer(body=b"{")),
        ("a list that is refused", route({"a": 1}), LIST, Answer(1, remark="r")),
        ("a silent broker", route({"a": 1}), LIST, SILENCE),
        ("locks that are invalid", route({"a": 1}), LOCK, Answer(body=b"{")),
        ("locks that are refused", route({"a": 1}), LOCK, Answer(1)),
        ("silent locks", route({"a": 1}), LOCK, SILENCE),
        ("an offset that is invalid", route({"a": 1}), _QUERY, Answer(fields={"offset": "x"})),
    )  # fmt: skip
    for what, body, code, answer in cases:
        feed.clear()
        servers.routes |= {"A": body, "B": route({"b": 1}), "%RETRY%g": route({"b": 1})}
        servers.offsets["B", 0] = 0
        servers.script("a", code, *[answer] * 3)
        consumer, session = await _started(feed, PushConsumerConfig(orderly=True), Listening(), ["A", "B"])
        await asyncio.sleep(5.9)
        other = MessageQueue("B", "broker-b", 0)
        expect.equal(f"{what}: the other topic", True, other in consumer.queues())
        expect.equal(
            f"{what}: the topic", False, _Q in consumer.queues() and answer is not SILENCE and not code
        )
        await asyncio.sleep(22)
        expect.equal(f"{what}: the topic later", bool(code), _Q in consumer.queues())
        await consumer.stop()
        await session.stop()


async def _expressions(expect: Expectations, feed: Feed) -> None:
    """A broker checks an expression; a topic without brokers has none that could refuse it."""
    servers = feed.servers
    nowhere = json.loads(route({"a": 1}))
    nowhere["brokerDatas"][0]["brokerAddrs"] = {}
    servers.routes["N"] = json.dumps(nowhere).encode()
    session = await feed.session()
    consumer = PushConsumer(session, "g", Listening())
    for topic in ("N", "none"):
        await consumer.subscribe(topic, MessageSelector.sql("p > 1"))
    servers.take()
    await consumer.start()
    expect.equal("the checks without a broker", [], servers.take(_CHECK))
    await consumer.subscribe("A", MessageSelector.sql("p > 2"))
    expect.equal("the checks at a broker", ["a"], [each.server for each in servers.take(_CHECK)])
    servers.script("a", _CHECK, SILENCE)
    await consumer.subscribe("A", MessageSelector.sql("p > 3"))
    await asyncio.sleep(3)
    servers.take()
    await asyncio.sleep(1.5)
    asked = {each.fields["subscription"] for each in servers.take(PULL) if each.fields["topic"] == "A"}
    expect.equal("the expression that no broker checked", {"p > 3"}, asked)
    await consumer.stop()
    await session.stop()


async def _two_brokers(expect: Expectations, feed: Feed) -> None:
    """Each broker gets the locks of its own queues, and one that refuses loses none of the other."""
    servers, events = feed.servers, list[Event]()
    servers.routes["A"] = route({"a": 1, "b": 2})
    servers.offsets |= {("A", 1): 0}
    more = {"brokerName": "broker-b", "queueId": 7, "topic": "A"}

    def locked(seen: Seen) -> Answer:
        found = [*json.loads(seen.body)["mqSet"], more]
        return Answer(body=json.dumps({"lockOKMQSet": found}).encode())

    servers.replies[LOCK] = locked
    config = PushConsumerConfig(orderly=True)
    consumer, session = await _started(feed, config, Listening(), ["A"], events)
    await asyncio.sleep(0.5)
    shares = [each.attrs for each in events if each.kind == "rebalance"]
    expect.equal("the events of rounds", [
        {"queues": "1", "orderly": "true"}, {"queues": "3", "orderly": "true"}], shares)  # fmt: skip
    servers.take()
    await asyncio.sleep(1)
    expected = {"a": [0, 0], "b": [0, 1]}
    for _ in range(2):
        seen = servers.take(LOCK)
        renewed = {each.server: queues_in(each.body) for each in seen}
        expect.equal("the locks at each broker", (expected, 2), (renewed, len(seen)))
        await asyncio.sleep(20)
    servers.replies[LOCK] = lambda seen: Answer(1) if seen.server == "b" else locked(seen)
    await asyncio.sleep(20)
    expect.equal("the queues after a refused renewal", 3, len(consumer.queues()))
    servers.replies[LOCK] = lambda seen: (
        Answer(body=b'{"lockOKMQSet":[]}') if seen.server == "b" else locked(seen)
    )
    await asyncio.sleep(20)
    expect.equal("the queues after a lost one", [_Q], consumer.queues())
    servers.take()
    await consumer.stop()
    unlocked = [(each.server, queues_in(each.body)) for each in servers.take(UNLOCK)]
    expect.equal("the unlocks of a stop", [("a", [0, 0])], unlocked)
    del servers.replies[LOCK]
    await session.stop()


async def _trust(expect: Expectations, feed: Feed) -> None:
    """A lock is trusted for 30 s after its last renewal, and again at once after the next one."""
    servers, listening = feed.servers, Listening()
    servers.routes.pop("%RETRY%g")
    servers.script("a", PULL, Answer(19, pulled(0, 0, 0, 0), after_s=0.5))  # then each pull takes 1 s
    consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True), listening)
    began_s = asyncio.get_running_loop().time()
    await asyncio.sleep(22)
    servers.replies[LOCK] = lambda _: Answer(1)
    for body, at_s in ((b"in time", 50.2), (b"late", 51.2)):
        await asyncio.sleep(began_s + at_s - asyncio.get_running_loop().time())
        feed.put(body)
    await asyncio.sleep(6)
    expect.equal("what is consumed by an old lock", [b"in time"], listening.bodies)
    del servers.replies[LOCK]
    await asyncio.sleep(5)
    expect.equal("what is consumed by a renewed lock", [b"in time", b"late"], listening.bodies)
    times = [round(at_s - began_s, 1) for at_s, _, _ in listening.calls]
    expect.equal("when it is consumed", True, times[0] == 50.5 and 61.0 <= times[-1] <= 61.1)
    await consumer.stop()
    await stop()


async def _slots(expect: Expectations, feed: Feed) -> None:
    """So many queues are in the listener of a consumer in order at once."""
    feed.clear(4)
    listening = Listening()
    for queue_id in range(4):
        bodies = [b"%d-%d" % (queue_id, number) for number in range(20)]
        feed.put(*bodies, queue_id=queue_id)
        listening.answers |= {body: [1.0] for body in bodies}
    config = PushConsumerConfig(orderly=True, concurrency=2)
    consumer, stop = await consuming(feed, config, listening)
    for limit, calls in ((2, 2), (4, 4), (1, 1), (3, 3)):
        if limit != 2:
            await consumer.set_concurrency(limit)
        await asyncio.sleep(1.5)
        listening.most = 0
        before = len(listening.calls)
        await asyncio.sleep(3)
        expect.equal(f"the calls with {limit} slots", calls, listening.most)
        expect.equal("their number", 3 * limit, len(listening.calls) - before)
        size = consumer.running_info().properties["PROP_THREADPOOL_CORE_SIZE"]
        expect.equal("the number of slots that it reports", str(limit), size)
    await consumer.stop()
    await stop()


async def _dead_batch(expect: Expectations, feed: Feed) -> None:
    """Each message of a batch that failed too often becomes a dead letter, up to one that cannot."""
    listening = Listening({b"0": [_AT_ONCE] * 3, b"2": [_AT_ONCE]})
    feed.put(b"0", reconsume_times=1)
    feed.put(b"1", reconsume_times=2)
    feed.put(b"2")
    config = PushConsumerConfig(orderly=True, batch_max=3, reconsume_max=2)
    consumer, stop = await consuming(feed, config, listening)
    await asyncio.sleep(2)
    calls = [(bodies, times) for _, bodies, times in listening.calls]
    expected = [([b"0", b"1", b"2"], [1, 2, 0]), ([b"0", b"1", b"2"], [2, 3, 1]), ([b"2"], [2])]
    expect.equal("the calls with a batch", expected, calls)
    back = [(each.fields["originMsgId"], each.fields["delayLevel"]) for each in feed.servers.take(36)]
    expect.equal("its dead letters", [("K30", "-1"), ("K31", "-1"), ("K32", "-1")], back)
    await consumer.stop()
    await stop()


async def _kept_in_order(expect: Expectations, feed: Feed) -> None:
    """A dead letter that no broker takes stays at the front of its queue."""
    listening = Listening({b"0": [_AT_ONCE] * 2})
    feed.put(b"0", b"1")
    feed.servers.script("a", 36, Answer(1))
    feed.servers.script("a", 310, Answer(13))
    config = PushConsumerConfig(orderly=True, reconsume_max=0)
    consumer, stop = await consuming(feed, config, listening)
    await asyncio.sleep(2)
    calls = [(bodies, times) for _, bodies, times in listening.calls]
    expect.equal("the calls for a kept message", [([b"0"], [0]), ([b"0"], [1]), ([b"1"], [0])], calls)
    await consumer.stop()
    await stop()


async def _suggested(expect: Expectations, feed: Feed) -> None:
    """The replica that an answer suggests, or the one with the next id, or else the least one."""
    servers = feed.servers
    steps: tuple[tuple[Mapping[str, str], int, str], ...] = (
        ({"0": "a", "2": "a-slave"}, 1, "a-slave"), ({"0": "a", "2": "a-slave"}, 2, "a-slave"),
        ({"0": "a", "3": "a-slave"}, 1, "a"), ({"1": "a-slave", "2": "b"}, 0, "a-slave"),
        ({"1": "b", "2": "a-slave"}, 2, "a-slave"), ({"0": "b", "1": "a-slave"}, 0, "b"),
    )  # fmt: skip
    for names, suggested, server in steps:
        known = json.loads(route({"a": 1}))
        found = {number: f"{HOST}:{PORTS[name]}" for number, name in names.items()}
        known["brokerDatas"][0]["brokerAddrs"] = found
        servers.routes["A"] = json.dumps(known).encode()
        session = await feed.session()
        consumer = PullConsumer(session, "g")
        for each in PORTS:
            servers._scripts[each, PULL].clear()
            servers.script(each, PULL, *[Answer(19, pulled(suggested, 7, 0, 7))] * 2)
        await consumer.pull(_Q, 7)
        servers.take()
        await consumer.pull(_Q, 7)
        asked = [each.server for each in servers.take(PULL)]
        expect.equal(f"the pull at {names} after {suggested}", [server], asked)
        await session.stop()
    await _late_route(expect, feed)
    several = (message(b"1", "Aa"), message(b"2", "BB"))
    session = await feed.session()
    consumer = PullConsumer(session, "g")
    servers.routes["A"] = route({"a": 1})
    both = [b"1", b"2"]
    wanted = {"": both, " ": both, "||": both, " || ": both, "BB": [b"2"], "Aa": [b"1"], "BB||Aa": both}
    for tags, bodies in wanted.items():
        servers.script("a", PULL, Answer(0, pulled(0, 2, 0, 2), records(*several)))
        result = await consumer.pull(_Q, 0, tags=tags)
        expect.equal(f"the messages with {tags!r}", bodies, [one.message.body for one in result.messages])
    await session.stop()


async def _late_route(expect: Expectations, feed: Feed) -> None:
    """A broker of another topic answers; the route of the topic comes before the suggestion is used."""
    servers = feed.servers
    servers._scripts.clear()
    servers.routes = {"B": route({"a": 1}, slave=True)}
    session = await feed.session()
    consumer = PullConsumer(session, "g")
    await consumer.queues("B")
    for server in ("a", "a-slave"):
        servers.script(server, PULL, *[Answer(19, pulled(1, 7, 0, 7))] * 2)
    servers.take()
    for at, routes in (("a", {}), ("a-slave", {"A": route({"a": 1}, slave=True)})):
        servers.routes |= routes
        await consumer.pull(_Q, 7)
        seen = [(each.server, each.fields.get("topic")) for each in servers.take(PULL, _ROUTE)]
        expected: list[Any] = [("names-1", "A"), (at, "A")]
        expect.equal("the requests of a pull with a late route", expected, seen[:1] + seen[-1:])
    await expect.fails("a pull at no broker", ClientError, consumer.pull(MessageQueue("C", "x", 0), 0))
    await session.stop()
    servers._scripts.clear()

"""When a session greets brokers, what it leaves, which routes it refuses, and what it answers to a broker.

See docs/reference/protocol/groups.md, "Client registration", and docs/reference/protocol/clients.md.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.consuming import Listening
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import Feed
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    SILENCE,
    Answer,
    ScriptedServers,
    address,
    route,
)
from mqproof.impl.client.connection.request_hooks import RequestSummary
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.transaction_producer import TransactionProducer, TransactionState
from mqproof.impl.filtering.function_names import MAGIC, function_name
from mqproof.impl.remoting.channel import ConnectError, ConnectionLostError
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.clock import now_ms

_BEAT, _LEAVE, _ROUTE, _SEND, _RUNNING, _END = 34, 35, 105, 310, 307, 37
_RESET, _STATUS, _CHECK = 220, 221, 39
_MODULE: Final = MAGIC + b"\1\0\0\0"
_Q: Final = MessageQueue("A", "broker-a", 0)


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (
        _greeted,
        _reconnected,
        _left,
        _asked,
        _described,
        _restarted,
        _checked,
        _hooked,
        _blocks,
    ):
        feed.clear()
        servers.routes |= {"A": route({"a": 1}), "B": route({"b": 1})}
        await work(expect, feed)


async def _greeted(expect: Expectations, feed: Feed) -> None:
    """A greeting goes to brokers that lack the newest group, and to no others."""
    servers = feed.servers
    session = await feed.session()
    for topic in ("A", "B"):
        await session.routes.get(topic)

    async def beats() -> list[str]:
        servers.take()
        await session.greet()
        return sorted(each.server for each in servers.take(_BEAT))

    expect.equal("the first greeting", ["a", "b"], await beats())
    expect.equal("the next one", [], await beats())
    Producer(session, ProducerConfig("g1"))
    expect.equal("after a producer of a new group", ["a", "b"], await beats())
    Producer(session, ProducerConfig("g1"))
    expect.equal("after another one of this group", [], await beats())
    PullConsumer(session, "c1")
    expect.equal("after a consumer", ["a", "b"], await beats())
    servers.script("a", _BEAT, Answer(1, remark="no"), SILENCE)
    Producer(session, ProducerConfig("g2"))
    expect.equal("a greeting that is refused", ["a", "b"], await beats())
    expect.equal("it is not repeated", [], await beats())
    Producer(session, ProducerConfig("g3"))
    began_s = asyncio.get_running_loop().time()
    expect.equal("a greeting without an answer", ["a", "b"], await beats())
    expect.equal("its time", 3.0, round(asyncio.get_running_loop().time() - began_s, 2))
    expect.equal("it is repeated", ["a"], await beats())
    await servers.stop_one("b")
    await asyncio.sleep(0.1)
    Producer(session, ProducerConfig("g4"))
    expect.equal("a greeting without a broker", ["a"], await beats())
    await servers.start_one("b")
    expect.equal("when it is there again", ["b"], await beats())
    await session.stop()


async def _reconnected(expect: Expectations, feed: Feed) -> None:
    """A heartbeat comes at once on a new connection to a broker that had accepted one."""
    servers = feed.servers
    session = await feed.session()
    consumer = PullConsumer(session, "g")
    await consumer.queues("A")
    servers.take()
    await consumer.max_offset(_Q)
    await asyncio.sleep(1)
    expect.equal("heartbeats on a first connection", [], servers.take(_BEAT))
    await session.greet()
    servers.take()
    servers.hang_up("a")
    await asyncio.sleep(1)
    expect.equal("heartbeats without a connection", [], servers.take(_BEAT))
    await consumer.max_offset(_Q)
    await asyncio.sleep(0.1)
    seen = servers.take()
    expect.equal("the requests on a new connection", [30, _BEAT], sorted(each.code for each in seen))
    groups = [each["groupName"] for one in seen if one.code == _BEAT
              for each in json.loads(one.body)["consumerDataSet"]]  # fmt: skip
    expect.equal("the groups of its heartbeat", ["g"], groups)
    await consumer.max_offset(_Q)
    await asyncio.sleep(0.1)
    expect.equal("heartbeats on a known connection", [], servers.take(_BEAT))
    await session.stop()


async def _left(expect: Expectations, feed: Feed) -> None:
    """A group leaves the brokers that are connected; others have forgotten it."""
    servers = feed.servers
    for topic in ("A", "B"):
        servers.routes[f"%RETRY%{topic}"] = route({"a": 1})
    session = await feed.session()
    consumers = [ScheduledPull(session, group) for group in ("g", "h")]
    for consumer in consumers:
        await consumer.start()
        for topic in ("A", "B"):
            await consumer.register(topic, _minute)
    Producer(session, ProducerConfig("p"))
    await asyncio.sleep(0.5)
    servers.take()

    async def left(work: Any) -> list[tuple[str, dict[str, str]]]:
        await work
        return sorted((each.server, each.fields) for each in servers.take(_LEAVE))

    fields = {"clientID": "h@i", "consumerGroup": "g"}
    expect.equal("what a group leaves", [("a", fields), ("b", fields)], await left(consumers[0].stop()))
    servers.hang_up("b")
    await asyncio.sleep(0.1)
    fields = {"clientID": "h@i", "consumerGroup": "h"}
    expect.equal("what another one leaves", [("a", fields)], await left(consumers[1].stop()))
    servers.script("a", _LEAVE, SILENCE)
    began_s = asyncio.get_running_loop().time()
    fields = {"clientID": "h@i", "producerGroup": "p"}
    expect.equal("what a stop leaves", [("a", fields)], await left(session.stop()))
    expect.equal("its time", 3.0, round(asyncio.get_running_loop().time() - began_s, 2))


async def _blocks(expect: Expectations, feed: Feed) -> None:
    """A block starts a session or a consumer, and stops it in the end, also when it fails."""
    servers = feed.servers
    feed.put(b"0")
    listening = Listening()
    unnamed = [Session([address("names-1")], servers.runtime(name)).client_id for name in ("one", "other")]
    expect.equal("two ids that no application gave", 2, len(set(unnamed)))
    for each in unnamed:
        expect.equal(
            f"the form of {each}", True, re.fullmatch(r"127\.0\.0\.1@[0-9a-f]{12}", each) is not None
        )
    session = Session([address("names-1")], servers.runtime("client"), "h@i")
    makers: Sequence[Any] = (
        lambda: PushConsumer(session, "g", listening),
        lambda: ScheduledPull(session, "g"),
        lambda: LitePullConsumer(session, "g"),
    )
    async with session as whole:
        expect.equal("what the block of a session receives", True, whole is session)
        began_s = asyncio.get_running_loop().time()
        Producer(session, ProducerConfig("p"))
        await session.routes.get("A")
        servers.take()
        await asyncio.sleep(30.5)
        seen = sorted((each.code, round(each.at_s - began_s, 4)) for each in servers.take())
        expect.equal("the requests of a session in its block", [(_BEAT, 30.0), (_ROUTE, 30.0)], seen)
        for make in makers:
            one = make()
            servers.take()
            try:
                async with one as entered:
                    expect.equal("what the block receives", True, entered is one)
                    await (
                        one.register("A", _minute) if isinstance(one, ScheduledPull) else one.subscribe("A")
                    )
                    await asyncio.sleep(1)
                    raise LookupError("the application fails")
            except LookupError:
                pass
            left = [each.fields for each in servers.take(_LEAVE)]
            fields = {"clientID": "h@i", "consumerGroup": "g"}
            expect.equal(f"what {type(one).__name__} leaves", [fields], left)
        expect.equal("what was consumed", [b"0"], listening.bodies)
        servers.take()
    groups = [each.fields.get("producerGroup") for each in servers.take(_LEAVE)]
    expect.equal("what the session leaves", ["p", "CLIENT_INNER_PRODUCER"], groups)
    await expect.fails("a request after the stop", ConnectionLostError, servers.push("a", _STATUS, {}))


async def _minute(_consumer: PullConsumer, _queue: MessageQueue) -> int:
    return 60_000


async def _asked(expect: Expectations, feed: Feed) -> None:
    """A session requests no other member of its id from brokers that know its group."""
    servers = feed.servers
    session = Session([address("names-1")], servers.runtime("client"), "h@i", is_id_chosen=True)
    await session.start()
    lite = LitePullConsumer(session, "g")
    await lite.start()
    await lite.subscribe("A")
    expect.equal("the first broker with a request", ["a"], [each.server for each in servers.take(_RUNNING)])
    await lite.subscribe("B")
    expect.equal("the next broker with a request", ["b"], [each.server for each in servers.take(_RUNNING)])
    await lite.stop()
    other = LitePullConsumer(session, "g")
    await other.start()
    requested = sorted(each.server for each in servers.take(_RUNNING))
    expect.equal("the brokers with a request after a stop", ["a", "b"], requested)
    await other.stop()
    await session.stop()
    session = await feed.session()
    for group in ("g", "h"):
        lite = LitePullConsumer(session, group)
        await lite.start()
        await lite.subscribe("A")
    expect.equal("the requests for an id that is unique", [], servers.take(_RUNNING))
    await session.stop()


async def _described(expect: Expectations, feed: Feed) -> None:
    """The heartbeat of a consumer with a function, and the version of a subscription."""
    servers = feed.servers
    session = Session([address("names-1"), address("names-2")], servers.runtime("client"), "h@i")
    await session.start()
    consumer = PushConsumer(session, "g", Listening())
    await consumer.subscribe("A", MessageSelector.function(_MODULE))
    begun = now_ms(session.runtime.clock)
    await consumer.start()
    await asyncio.sleep(2)
    await consumer.subscribe("B", "x")
    later = now_ms(session.runtime.clock)
    await asyncio.sleep(2)
    servers.take()
    await session.heartbeat()
    body = json.loads(servers.take(_BEAT)[0].body)
    (group,) = [each for each in body["consumerDataSet"] if each["groupName"] == "g"]
    shown = {
        each["topic"]: (
            each["subString"],
            each["classFilterMode"],
            each["expressionType"],
            each["subVersion"],
        )
        for each in group["subscriptionDataSet"]
    }
    expected = {
        "A": (function_name(_MODULE), True, "TAG", begun), "B": ("x", False, "TAG", later),
        "%RETRY%g": ("*", False, "TAG", begun),
    }  # fmt: skip
    expect.equal("the subscriptions", expected, shown)
    known = consumer.running_info().properties["PROP_NAMESERVER_ADDR"]
    expect.equal("the name servers", {"127.0.0.1:9876", "127.0.0.1:9877"}, set(known.split(";")))
    for code, fields in (
        (_RESET, {"topic": "A", "timestamp": "0", "isForce": "true"}),
        (_STATUS, {"topic": "A"}),
    ):
        for name, refused in (("g", 0), ("x", 1)):
            answer = await servers.push("a", code, {**fields, "group": name}, b'{"offsetTable":{}}')
            expect.equal(f"the answer {code} for group {name}", refused, answer.code)
            if refused:
                remark = "this client has no consumer of group x"
                expect.equal("its remark", remark, answer.remark)
    await consumer.stop()
    await session.stop()


async def _restarted(expect: Expectations, feed: Feed) -> None:
    """A consumer that was stopped does not start again, and its group is free."""
    session = await feed.session()
    makers: Sequence[Any] = (
        lambda: LitePullConsumer(session, "g"),
        lambda: PushConsumer(session, "g", Listening()),
        lambda: ScheduledPull(session, "g"),
    )
    for make in makers:
        one = make()
        await one.start()
        await expect.fails("a second start", ClientError, one.start())
        await one.stop()
        error = await expect.fails("a start after the stop", ClientError, one.start())
        expect.equal("its text", True, str(error).endswith("is stopped, and can be started only once"))
        other = LitePullConsumer(session, "g")
        await other.start()
        await other.stop()
    lite = LitePullConsumer(session, "g")
    await lite.start()
    for call in (lite.poll, lite.unacknowledged().__anext__):
        error = await expect.fails("a call without queues", ClientError, call())
        text = "this consumer has neither a subscription nor assigned queues to poll"
        expect.equal("its text", text, str(error))
    await lite.assign([])
    expect.equal("a poll without messages", [], await lite.poll(50))
    await lite.stop()
    error = await expect.fails("a call after the stop", ClientError, lite.poll())
    text = "the lite pull consumer of group g is stopped: use it between start and stop, or in `async with`"
    expect.equal("its text", text, str(error))
    await session.stop()


async def _checked(expect: Expectations, feed: Feed) -> None:
    """A producer that stopped before does not end the checks of its successor."""
    session = await feed.session()

    async def check(*_: object) -> TransactionState:
        return TransactionState.COMMIT

    async def local(*_: object) -> TransactionState:
        return TransactionState.UNKNOWN

    first = TransactionProducer(session, check, ProducerConfig("tg"))
    await first.stop()
    second = TransactionProducer(session, check, ProducerConfig("tg"))
    await first.stop()
    expect.refused(
        "a third one", ClientError, lambda: TransactionProducer(session, check, ProducerConfig("tg"))
    )
    half = await second.send(Message("A", b"1"), local)
    expect.equal("the state of a half message", TransactionState.UNKNOWN, half.state)
    await second.stop()
    await session.stop()


class _Hook:
    """Keeps the order of the calls of several hooks."""

    calls: list[tuple[str, str, str]]

    def __init__(self, name: str, calls: list[tuple[str, str, str]]) -> None:
        self._name, self.calls = name, calls

    def before(self, request: RequestSummary) -> None:
        self.calls.append((self._name, "before", request.name))

    def after(self, request: RequestSummary, outcome: str, seconds: float) -> None:  # noqa: ARG002
        self.calls.append((self._name, outcome.partition(":")[0], request.name))


async def _hooked(expect: Expectations, feed: Feed) -> None:
    """Each hook sees a request in turn, also one that cannot be sent."""
    servers, calls = feed.servers, list[tuple[str, str, str]]()
    hooks = [_Hook("one", calls), _Hook("two", calls)]
    session = Session([address("names-1")], servers.runtime("client"), "h@i", hooks=hooks)
    producer = Producer(session, ProducerConfig("g", retries=0))
    await producer.send(Message("B", b"1"))
    await servers.stop_one("b")
    await asyncio.sleep(0.1)
    calls.clear()
    await producer.send(Message("B", b"1"))
    await expect.fails("one-way without a broker", ConnectError, producer.send_oneway(Message("B", b"1")))
    sent = [call for call in calls if call[2] == "SEND_MESSAGE_V2"]
    each = [(name, what, "SEND_MESSAGE_V2") for what in ("before", "ConnectError") for name in ("one", "two")]
    expect.equal("the calls of both hooks", each * 2, sent)
    await servers.start_one("b")
    await session.stop()

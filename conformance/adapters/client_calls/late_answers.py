"""Servers that answer late, with errors, or not at all: what the client asks next, of which server, and when.

See docs/reference/protocol/clients.md, "Name servers and routes", "Send attempts" and "Queue choice",
docs/reference/protocol/filters.md, and docs/reference/protocol/groups.md, "Queue locks".
"""

import asyncio
import json
from functools import partial
from typing import Final

from mqproof.conformance.adapters.client_calls.consuming import Listening, consuming
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import LOCK, Feed
from mqproof.conformance.adapters.client_calls.pulling import PULL, message, records
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    PORTS,
    SILENCE,
    Answer,
    ScriptedServers,
    address,
    pulled,
    route,
    stored,
)
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, MessageError, MessageQueue, RefusalError, Refused
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.filtering.function_names import MAGIC, function_name
from mqproof.impl.remoting.channel import ConnectError, RequestTimeoutError
from mqproof.impl.remoting.message import Message

_ROUTE, _SEND, _UPLOAD, _RUNNING, _OFFSET = 105, 310, 302, 307, 14
_NO_FUNCTION: Final = 27
_MODULE: Final = MAGIC + b"\1\0\0\0"
_Q: Final = MessageQueue("A", "broker-a", 0)
_OUTSTANDING: Final = 64
_LIMITS_S: Final = ((0.04, 0.0), (0.3, 0.0), (0.6, 2.0), (2.0, 5.0), (4.0, 6.0), (6.0, 10.0), (16.0, 30.0))
"""The time of an answer, and how long the broker is avoided after it."""


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    servers.routes |= {"A": route({"a": 1}), "AB": route({"a": 1, "b": 1})}
    for work in (_name_servers, _doubts, _late_route, _functions, _outstanding, _slow_brokers, _delays):
        session = Session([address("names-1"), address("names-2")], servers.runtime("client"), "h@i")
        await session.start()
        servers.take()
        await work(expect, servers, session)
        await session.stop()
    feed = Feed(servers)
    for case in (_lock_errors, _silent_members):
        feed.clear()
        await case(expect, feed)


async def _name_servers(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Each name server has one attempt in a request; the next request begins where the last one ended."""
    await session.routes.refresh("A")
    (used,) = (each.server for each in servers.take(_ROUTE))
    other = "names-2" if used == "names-1" else "names-1"
    for name in (used, other):
        servers.script(name, _ROUTE, SILENCE)
    began_s = asyncio.get_running_loop().time()
    error = await expect.fails("two silent name servers", RequestTimeoutError, session.routes.refresh("A"))
    took_s = asyncio.get_running_loop().time() - began_s
    expect.equal("the time of both", (6.0, True), (round(took_s, 2), "3000 ms" in str(error)))
    expect.equal("the attempts", [used, other], [each.server for each in servers.take(_ROUTE)])
    await session.routes.refresh("A")
    expect.equal("the next request", [used], [each.server for each in servers.take(_ROUTE)])
    servers.script(used, _ROUTE, Answer(1, remark="r"))
    expect.equal("the route after an error", True, await session.routes.refresh("A") is not None)
    expect.equal("an error is an answer", [used], [each.server for each in servers.take(_ROUTE)])
    for name in (used, other):
        await servers.stop_one(name)
    await asyncio.sleep(0.1)
    await expect.fails("no name server", ConnectError, session.routes.refresh("A"))
    in_turn = (await session.name_servers.known())[0].port
    for name in (used, other):
        await servers.start_one(name)
    servers.take()
    await session.routes.refresh("A")
    asked = [PORTS[each.server] for each in servers.take(_ROUTE)]
    expect.equal("the name server after a failure of both", [in_turn], asked)


async def _doubts(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """A doubted route is requested once in half a second, and not while a request waits for its answer."""
    await session.routes.refresh("A")
    servers.take()
    times = [0.0, 0.3, 0.45, 0.6, 0.7, 1.0, 1.05, 1.7, 2.0, 2.5]
    begun = asyncio.get_running_loop().time()
    for name in ("names-1", "names-2"):
        servers.script(name, _ROUTE, Answer(body=servers.routes["A"], after_s=0.8))
    for at_s in times:
        await asyncio.sleep(begun + at_s - asyncio.get_running_loop().time())
        session.routes.doubt("A")
        session.routes.doubt("unknown")
    await asyncio.sleep(1)
    asked = [(each.fields["topic"], round(each.at_s - begun, 2)) for each in servers.take(_ROUTE)]
    expect.equal("requests for a doubted route", [("A", 0.6), ("A", 1.7), ("A", 2.5)], asked)


async def _late_route(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """A send fails at its time limit if the route has not arrived; nothing is sent then."""
    loop = asyncio.get_running_loop()
    producer = Producer(session, ProducerConfig("g"))
    for limit_ms, late_s, found in (
        (500, 0.6, "Refused"),
        (500, 0.4, "Sent"),
        (2500, float("inf"), "Refused"),
    ):
        topic = f"L{limit_ms}{late_s}".replace(".", "-")
        servers.routes[topic] = route({"a": 1})
        for name in ("names-1", "names-2"):
            servers._scripts[name, _ROUTE].clear()
            servers.script(name, _ROUTE, Answer(body=servers.routes[topic], after_s=late_s))
        began_s = loop.time()
        servers.take()
        outcome = await producer.send(Message(topic, b"1"), timeout_ms=limit_ms)
        took_s = round(loop.time() - began_s, 2)
        expect.equal("a send with a late route", found, type(outcome).__name__)
        expect.equal("its time", min(late_s, limit_ms / 1000), took_s)
        if isinstance(outcome, Refused):
            expect.equal("its status", ("NO_ROUTE", True), (outcome.status, topic in outcome.remark))
        await asyncio.sleep(5)
        expect.equal("what is sent", int(found == "Sent"), len(servers.take(_SEND)))


async def _functions(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Pulls with a function go to a filter server, which may lack the function."""
    consumer, selector = PullConsumer(session, "g"), MessageSelector.function(_MODULE)
    body = json.loads(servers.routes["A"])
    body["filterServerTable"] = {str(address("a")): [str(address("a-slave"))]}
    servers.routes["A"] = json.dumps(body).encode()
    await session.routes.refresh("A")
    servers.take()
    found = Answer(0, pulled(0, 1, 0, 1), records(message(b"x", topic="A", queue_id=0)))
    missing = Answer(_NO_FUNCTION, remark="no function")
    pull = {
        "consumerGroup": "g", "topic": "A", "queueId": "0", "queueOffset": "7", "maxMsgNums": "32",
        "sysFlag": "12", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0",
        "subscription": function_name(_MODULE), "expressionType": selector.expression_type,
    }  # fmt: skip
    upload = {"consumerGroup": "g", "topic": "A", "className": function_name(_MODULE)}
    servers.script("a-slave", PULL, found, missing, found)
    for uploads in (0, 1):
        result = await consumer.pull(_Q, 7, tags=selector)
        expect.equal("what a function selects", [b"x"], [each.message.body for each in result.messages])
        seen = [(each.server, each.code, each.fields, each.body) for each in servers.take()]
        asked = ("a-slave", PULL, pull, b"")
        sent = [("a-slave", _UPLOAD, upload, _MODULE), asked] * uploads
        expect.equal("the requests for a function", [asked, *sent], seen)
    servers.script("a-slave", PULL, missing, missing)
    await expect.fails("a function that stays missing", RefusalError, consumer.pull(_Q, 7, tags=selector))
    servers.script("a-slave", PULL, missing)
    servers.script("a-slave", _UPLOAD, Answer(1, remark="no room"))
    error = await expect.fails("an upload that is refused", RefusalError, consumer.pull(_Q, 7, tags=selector))
    expect.equal("its reason", True, "no room" in str(error))
    servers.script("a", PULL, missing)
    servers.take()
    await expect.fails("no such answer to other pulls", RefusalError, consumer.pull(_Q, 7))
    expect.equal("no upload for them", [], servers.take(_UPLOAD))
    servers.routes["A"] = route({"a": 1})
    await session.routes.refresh("A")
    await asyncio.sleep(1)
    servers.take()
    error = await expect.fails("no filter server", ClientError, consumer.pull(_Q, 7, tags=selector))
    expect.equal("its text", True, str(address("a")) in str(error) and "filter server" in str(error))
    await asyncio.sleep(1)
    seen_codes = [each.code for each in servers.take(PULL, _ROUTE)]
    expect.equal("the route is doubted, and nothing is pulled", [_ROUTE], seen_codes)


async def _outstanding(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """`send_many` has a bounded number of sends without an answer."""
    producer = Producer(session, ProducerConfig("g"))
    await producer.send(Message("A", b"0"))
    for options, most in (({}, _OUTSTANDING), ({"outstanding": 3}, 3), ({"outstanding": 1}, 1)):
        servers.take()
        servers.script("a", _SEND, *[Answer(0, stored(0, n).fields, after_s=1.0) for n in range(most + 2)])
        work = asyncio.create_task(producer.send_many([Message("A", b"1")] * (most + 2), **options))
        await asyncio.sleep(0.5)
        expect.equal("the sends without an answer", most, len(servers.take(_SEND)))
        outcomes = await work
        expect.equal("the later ones", 2, len(servers.take(_SEND)))
        expect.equal("all outcomes", ["Sent"] * (most + 2), [type(each).__name__ for each in outcomes])


async def _slow_brokers(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """A broker is avoided after a slow answer, for a time that depends on it."""
    loop = asyncio.get_running_loop()
    for took_s, rest_s in _LIMITS_S:
        producer = Producer(session, ProducerConfig("g", latency_fault_strategy=True))
        servers.take()
        servers.script("a", _SEND, Answer(0, stored(0, 1).fields, after_s=took_s))
        for _ in range(2):
            await producer.send(Message("AB", b"1"), timeout_ms=20_000)
        answered_s = next(each.at_s for each in servers.take(_SEND) if each.server == "a") + took_s
        for after_s, avoided in ((rest_s - 0.01, True), (rest_s + 0.01, False)):
            if after_s > 0:
                await asyncio.sleep(max(0.0, answered_s + after_s - loop.time()))
            for _ in range(2):
                await producer.send(Message("AB", b"1"))
            used = {each.server for each in servers.take(_SEND)}
            expect.equal(
                f"the brokers {after_s:g} s after {took_s:g} s",
                {"b"} if avoided and rest_s else {"a", "b"},
                used,
            )


async def _delays(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """The numbers of seconds of a message, at their limits."""
    producer = Producer(session, ProducerConfig("g"))
    for seconds, expected in ((0, "0"), (0.0001, "1"), (1.5, "1500"), (10**12 - 1, str((10**12 - 1) * 1000))):
        servers.take()
        await producer.send(new_message("A", b"1", delay=seconds))
        (seen,) = servers.take(_SEND)
        expect.equal(f"a delay of {seconds} s", True, f"\1{expected}" in seen.fields["i"])
    for wrong in (10**12, -1, True, float("nan"), float("inf")):
        expect.refused(f"a delay of {wrong} s", MessageError, partial(new_message, "A", b"", delay=wrong))


async def _lock_errors(expect: Expectations, feed: Feed) -> None:
    """A queue whose lock is refused with an error is not read; it is asked for again."""
    listening = Listening()
    feed.put(b"0")
    servers = feed.servers
    servers.replies[LOCK] = lambda _: Answer(1, remark="no lock")
    consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True), listening)
    await asyncio.sleep(5)
    expect.equal("the queues without locks", [], consumer.queues())
    seen = servers.take()
    asked = {each.fields.get("topic") for each in seen if each.code in (_OFFSET, PULL)}
    expect.equal("requests for queues that are not locked", set(), asked)
    expect.equal("locks are asked for again", True, len([each for each in seen if each.code == LOCK]) > 2)
    del servers.replies[LOCK]
    await asyncio.sleep(25)
    expect.equal("what is consumed when the lock is there", [b"0"], listening.bodies)
    servers.script("a", LOCK, *[Answer(1, remark="no lock")] * 2)
    await asyncio.sleep(20)
    feed.put(b"1")
    await asyncio.sleep(2)
    expect.equal("a renewal that fails does not lose a lock", [b"0", b"1"], listening.bodies)
    await consumer.stop()
    await stop()


async def _silent_members(expect: Expectations, feed: Feed) -> None:
    """A member of the same client id that does not answer is gone: the consumer starts."""
    loop, listening, servers = asyncio.get_running_loop(), Listening(), feed.servers
    feed.put(b"0")
    servers.routes["A"] = route({"a": 1}, slave=True)
    session = Session([address("names-1")], servers.runtime("client"), "h@i", is_id_chosen=True)
    await session.start()
    consumer = PushConsumer(session, "g", listening, PushConsumerConfig())
    await consumer.subscribe("A")
    servers.script("a", _RUNNING, SILENCE)
    servers.script("a-slave", _RUNNING, Answer(1, remark="no such consumer", after_s=1.0))
    began_s = loop.time()
    servers.take()
    await consumer.start()
    expect.equal("the wait for another member", 3.0, round(loop.time() - began_s, 1))
    asked = [each.server for each in servers.take(_RUNNING)]
    expect.equal("the brokers that are asked", ["a", "a-slave"], sorted(asked))
    await asyncio.sleep(2)
    expect.equal("what it consumes", [b"0"], listening.bodies)
    await consumer.stop()
    await session.stop()

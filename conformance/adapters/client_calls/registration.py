"""How a session registers its groups: heartbeats, routes, name servers, and the requests of an orderly end.

See docs/reference/protocol/groups.md, "Client registration", and docs/reference/protocol/clients.md.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    PORTS,
    SILENCE,
    Answer,
    ScriptedServers,
    Seen,
    address,
    route,
)
from mqproof.impl.client.connection.group_claims import GroupClaims
from mqproof.impl.client.connection.request_hooks import RequestSummary
from mqproof.impl.client.connection.session import Session, SessionConfig
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, RefusalError
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.address_server import AddressServer
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address, Connection

_BEAT, _LEAVE, _ROUTE, _CHECK, _RUNNING, _SEND = 34, 35, 105, 46, 307, 310
_WEB: Final = Address("127.0.0.1", 8080)


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    servers.routes |= {"A": route({"a": 1}, slave=True), "B": route({"b": 1})}
    servers.members = ["h@i"]
    await _judge_heartbeats(expect, servers)
    await _judge_times(expect, servers)
    await _judge_name_servers(expect, servers)
    await _judge_address_server(expect, servers)
    await _judge_members(expect, servers)
    await _judge_hooks(expect, servers)


def _bodies(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    return [json.loads(each.body) for each in seen]


def _subscription(topic: str, since: int, **more: Any) -> dict[str, Any]:
    return {
        "classFilterMode": False, "codeSet": [], "expressionType": "TAG", "subString": "*",
        "subVersion": since, "tagsSet": [], "topic": topic, **more,
    }  # fmt: skip


def _consumer(
    group: str, kind: str, begin: str, model: str, subscriptions: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "consumeFromWhere": begin, "consumeType": kind, "groupName": group, "messageModel": model,
        "subscriptionDataSet": subscriptions, "unitMode": False,
    }  # fmt: skip


async def _judge_heartbeats(expect: Expectations, servers: ScriptedServers) -> None:
    """Each kind of client describes itself, and leaves each broker that it is connected to."""
    session = Session([address("names-1")], servers.runtime("client"), "h@i")
    await session.start()
    since = now_ms(session.runtime.clock)

    async def listen(_messages: object) -> None: ...

    push = PushConsumer(session, "push", listen, PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET))
    await push.subscribe("A", "y || x||y")
    await push.subscribe("B", MessageSelector.sql("p > 1"))
    casting = PushConsumer(
        session, "cast", listen, PushConsumerConfig(MessageModel.BROADCASTING, offsets_directory="/o")
    )
    await casting.subscribe("A")
    lite = LitePullConsumer(session, "lite", LitePullConfig(ConsumeFrom.TIMESTAMP))
    service = ScheduledPull(session, "scheduled")
    PullConsumer(session, "pull")
    Producer(session, ProducerConfig("g"))
    servers.take()
    await push.start()
    (checked,) = servers.take(_CHECK)
    sql = _subscription("B", since, subString="p > 1", expressionType="SQL92")
    body = {"clientId": "h@i", "group": "push", "namespace": "", "subscriptionData": sql}
    found = json.loads(checked.body)
    expect.equal("the check of an expression", body, {name: found.get(name, "") for name in body})
    await casting.start()
    await lite.start()
    await lite.subscribe("B", "z")
    await service.start()

    async def work(_consumer: object, _queue: object) -> int:
        return 60_000

    await service.register("A", work)
    servers.take()
    await session.heartbeat()
    seen = servers.take(_BEAT)
    expect.equal("the receivers of heartbeats", ["a", "a-slave", "b"], sorted(each.server for each in seen))
    _compare_heartbeats(expect, seen, since, sql)
    await _judge_leaving(expect, servers, session, push, (casting, lite, service))


def _compare_heartbeats(expect: Expectations, seen: Sequence[Seen], since: int, sql: dict[str, Any]) -> None:
    tags = _subscription("A", since, subString="x || y", codeSet=[120, 121], tagsSet=["x", "y"])
    first, last, timed = (f"CONSUME_FROM_{name}" for name in ("FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP"))
    active, passive, shared = "CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CLUSTERING"
    groups = [
        _consumer("push", passive, first, shared, [tags, sql, _subscription("%RETRY%push", since)]),
        _consumer("cast", passive, last, "BROADCASTING", [_subscription("A", since)]),
        _consumer("lite", active, timed, shared,
                  [_subscription("B", since, subString="z", codeSet=[122], tagsSet=["z"])]),
        _consumer("scheduled", active, last, shared, [_subscription("A", since)]),
        _consumer("pull", active, last, shared, []),
    ]  # fmt: skip
    producers = ["CLIENT_INNER_PRODUCER", "g"]
    for each in _bodies(seen):
        expect.equal("the client id", "h@i", each["clientID"])
        expect.equal("the producers", producers, sorted(one["groupName"] for one in each["producerDataSet"]))
        named = {one["groupName"]: one for one in each["consumerDataSet"]}
        for group in groups:
            expect.equal(f"the group {group['groupName']}", group, named.pop(group["groupName"], None))
        expect.equal("other groups", {}, named)


async def _judge_leaving(
    expect: Expectations,
    servers: ScriptedServers,
    session: Session,
    push: PushConsumer,
    others: Sequence[Any],
) -> None:
    """Topics and groups are left one by one, and the rest with the session."""
    await push.unsubscribe("B")
    await asyncio.sleep(0.1)
    topics = [
        each["topic"] for one in _bodies(servers.take(_BEAT))[-1]["consumerDataSet"]
        if one["groupName"] == "push" for each in one["subscriptionDataSet"]
    ]  # fmt: skip
    expect.equal("the topics after unsubscribe", ["A", "%RETRY%push"], topics)
    servers.script("a", _CHECK, Answer(23, remark="r"))
    await expect.fails(
        "a refused expression", RefusalError, push.subscribe("A", MessageSelector.sql("q > 1"))
    )
    servers.take()
    for member in (push, *others):
        await member.stop()
    left = sorted(
        (each.fields["consumerGroup"], each.server, each.fields["clientID"]) for each in servers.take(_LEAVE)
    )
    all_brokers = ("a", "a-slave", "b")
    expected = [
        (group, server, "h@i") for group in ("cast", "lite", "push", "scheduled") for server in all_brokers
    ]
    expect.equal("the groups that are left", expected, left)
    await session.stop()
    requests = servers.take(_LEAVE)
    names = sorted(
        {each.fields.get("producerGroup") or each.fields.get("consumerGroup") or "" for each in requests}
    )
    expect.equal("the groups that a stop leaves", ["CLIENT_INNER_PRODUCER", "g", "pull"], names)
    await asyncio.sleep(70)
    expect.equal("requests after the stop", [], servers.take())


async def _judge_times(expect: Expectations, servers: ScriptedServers) -> None:
    """Heartbeats and routes have their intervals; a connection that is lost gets a heartbeat again."""
    for beat_s, route_s, config in ((30, 30, None), (5, 7, SessionConfig(7000, 5000))):
        session = Session([address("names-1")], servers.runtime("client"), "h@i", config)
        await session.start()
        await session.routes.get("B")
        servers.take()
        began_s = asyncio.get_running_loop().time()
        await asyncio.sleep(3 * beat_s + 0.5)
        seen = servers.take()
        beats = [round(each.at_s - began_s) for each in seen if each.code == _BEAT]
        expect.equal("the times of heartbeats", [beat_s, 2 * beat_s, 3 * beat_s], beats)
        asked = [round(each.at_s - began_s) for each in seen if each.code == _ROUTE]
        expect.equal("the times of routes", list(range(route_s, 3 * beat_s + 1, route_s)), asked)
        expect.equal(
            "the topics of routes", {"B"}, {each.fields["topic"] for each in seen if each.code == _ROUTE}
        )
        servers.hang_up("b")
        await asyncio.sleep(0.1)
        await session.greet()
        await asyncio.sleep(0.1)
        expect.equal("heartbeats on a new connection", {"b"}, {each.server for each in servers.take(_BEAT)})
        await session.greet()
        expect.equal("heartbeats on a known connection", [], servers.take(_BEAT))
        await session.stop()


async def _judge_name_servers(expect: Expectations, servers: ScriptedServers) -> None:
    """One name server is used until it fails; then the next one is."""
    loop = asyncio.get_running_loop()
    session = Session([address("names-1"), address("names-2")], servers.runtime("client"), "h@i")
    expect.equal("the name servers", {9876, 9877}, {each.port for each in session.name_servers.addresses})
    servers.take()
    for _ in range(3):
        await session.routes.refresh("A")
    used = [each.server for each in servers.take(_ROUTE)]
    expect.equal("the name server stays", 1, len(set(used)))
    first = used[0]
    other = next(name for name in ("names-1", "names-2") if name != first)
    await servers.stop_one(first)
    await asyncio.sleep(0.1)
    await session.routes.refresh("A")
    expect.equal("the name server after a failure", [other], [each.server for each in servers.take(_ROUTE)])
    await servers.start_one(first)
    await session.routes.refresh("A")
    expect.equal("it stays after the first is back", [other], [each.server for each in servers.take(_ROUTE)])
    servers.script(other, _ROUTE, SILENCE)
    began_s = loop.time()
    await session.routes.refresh("B")
    expect.equal("the time limit of a name server", 3.0, round(loop.time() - began_s, 2))
    expect.equal("the order of attempts", [other, first], [each.server for each in servers.take(_ROUTE)])
    servers.script(first, _ROUTE, Answer(17, remark="r"))
    known = await session.routes.refresh("B")
    expect.equal("a route that is forgotten stays", True, known is not None)
    known_servers = await session.name_servers.known()
    expect.equal("the name server in use comes first", PORTS[first], known_servers[0].port)
    await servers.stop_one(first)
    await servers.stop_one(other)
    await asyncio.sleep(0.1)
    error = await _error(session.routes.refresh("B"))
    expect.equal("no name server", "ConnectError", type(error).__name__)
    for name in (first, other):
        await servers.start_one(name)
    await session.stop()


async def _error(work: Any) -> Exception | None:
    try:
        await work
    except Exception as error:  # returned
        return error
    return None


class _Web:
    """A web server that answers each request with one text."""

    def __init__(self, texts: list[str], connection: Connection, asked: list[bytes]) -> None:
        self._texts, self._connection, self._asked = texts, connection, asked

    def received(self, data: bytes) -> None:
        self._asked.append(data)
        text = self._texts[0]
        self._connection.write(f"HTTP/1.0 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        self._connection.close()

    def write_paused(self) -> None: ...

    def write_resumed(self) -> None: ...

    def closed(self) -> None: ...


async def _judge_address_server(expect: Expectations, servers: ScriptedServers) -> None:
    texts, asked = [f"127.0.0.1:{PORTS['names-1']}"], list[bytes]()
    listener = await servers.network.listen(_WEB.host, _WEB.port, lambda each: _Web(texts, each, asked))
    session = Session(AddressServer(_WEB, "/list?x=1"), servers.runtime("client"), "h@i")
    await session.start()
    servers.take()
    await session.routes.get("A")
    expect.equal("the first name server", ["names-1"], [each.server for each in servers.take(_ROUTE)])
    lines = asked[0].decode().split("\r\n")
    expect.equal("the request for addresses", ["GET /list?x=1 HTTP/1.0", f"Host: {_WEB}"], lines[:2])
    texts[0] = f"127.0.0.1:{PORTS['names-2']}"
    before = len(asked)
    await asyncio.sleep(119)
    expect.equal("addresses before the interval", before, len(asked))
    await asyncio.sleep(2)
    expect.equal("addresses after the interval", before + 1, len(asked))
    servers.take()
    await session.routes.refresh("A")
    expect.equal("the next name server", ["names-2"], [each.server for each in servers.take(_ROUTE)])
    texts[0] = "no address"
    await asyncio.sleep(121)
    await session.routes.refresh("A")
    expect.equal("it stays", {"names-2"}, {each.server for each in servers.take(_ROUTE)})
    texts[0] = f"127.0.0.1:{PORTS['names-1']};127.0.0.1:{PORTS['names-2']}"
    await asyncio.sleep(121)
    servers.take()
    await session.routes.refresh("A")
    expect.equal("the one in use stays", {"names-2"}, {each.server for each in servers.take(_ROUTE)})
    await session.stop()
    asked.clear()
    await asyncio.sleep(130)
    expect.equal("addresses after the stop", [], asked)
    listener.close()


async def _judge_members(expect: Expectations, servers: ScriptedServers) -> None:
    """A group has one member of a client id, in this process and in others; a consumer starts once."""
    claims = GroupClaims()
    one, other = (
        Session([address("names-1")], servers.runtime(name), "h@i", claims=claims, is_id_chosen=True)
        for name in ("one", "other")
    )

    async def listen(_messages: object) -> None: ...

    first, second = PushConsumer(one, "g", listen), PushConsumer(other, "g", listen)
    for consumer in (first, LitePullConsumer(one, "l"), ScheduledPull(one, "s")):
        await expect.fails("a stop before the start", ClientError, consumer.stop())
    lite = LitePullConsumer(one, "l")
    await expect.fails("a poll before the start", ClientError, lite.poll())
    await expect.fails("subscribe before the start", ClientError, lite.subscribe("A"))
    await expect.fails("assign before the start", ClientError, lite.assign([]))
    service = ScheduledPull(one, "s")
    await expect.fails("register before the start", ClientError, service.register("A", lambda *_: None))  # type: ignore[arg-type]
    for call in (first.queues, first.suspend, first.resume):
        expect.refused("a use before the start", ClientError, call)
    await expect.fails("resize before the start", ClientError, first.set_concurrency(1))
    await first.subscribe("A")
    await second.subscribe("A")
    servers.take()
    await first.start()
    asked = servers.take(_RUNNING)
    fields = {"clientId": "h@i", "consumerGroup": "g", "jstackEnable": "false"}
    expect.equal("the question for another member", {"a", "a-slave"}, {each.server for each in asked})
    expect.equal("its fields", [fields] * len(asked), [each.fields for each in asked])
    await expect.fails("a second start", ClientError, first.start())
    await expect.fails("a second member", ClientError, second.start())
    await first.set_concurrency(3)
    for bad, kind in ((0, ValueError), ("1", TypeError)):
        await expect.fails(f"concurrency {bad!r}", kind, first.set_concurrency(bad))  # type: ignore[arg-type]
    await first.stop()
    await first.stop()
    await expect.fails("a start after the stop", ClientError, first.start())
    third = PushConsumer(other, "g", listen)
    await third.subscribe("A")
    for server in ("a", "a-slave"):
        servers.script(server, _RUNNING, Answer(body=b"{}"))
    await expect.fails("a member in another process", ClientError, third.start())
    for server in ("a", "a-slave"):
        servers._scripts[server, _RUNNING].clear()
    await third.start()
    for server in ("b",):
        servers.script(server, _RUNNING, Answer(body=b"{}"))
    await expect.fails("another process at another broker", ClientError, third.subscribe("B"))
    await third.stop()
    await one.stop()
    await other.stop()


class _Hook:
    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def before(self, request: RequestSummary) -> None:
        self.seen.append((request.address, request.name, dict(request.fields), request.body_bytes))

    def after(self, request: RequestSummary, outcome: str, seconds: float) -> None:
        self.seen.append((request.address, request.name, outcome, round(seconds, 3)))


class _Failing:
    def before(self, _request: RequestSummary) -> None:
        raise ValueError("a hook fails")

    def after(self, _request: RequestSummary, _outcome: str, _seconds: float) -> None:
        raise ValueError("a hook fails")


async def _judge_hooks(expect: Expectations, servers: ScriptedServers) -> None:
    """A hook sees each request and its end, without the signature; requests are signed."""
    hook = _Hook()
    session = Session(
        [address("names-1")], servers.runtime("client"), "h@i", hooks=[_Failing(), hook],
        credentials=Credentials("key", "secret", "token"),
    )  # fmt: skip
    producer = Producer(session, ProducerConfig("g", retries=0))
    servers.take()
    servers.script("b", _SEND, Answer(13, remark="r", after_s=0.25), SILENCE)
    await producer.send(Message("B", b"12345"))
    seen = servers.take()
    for each in seen:
        signed = (each.fields.get("AccessKey"), each.fields.get("SecurityToken"), "Signature" in each.fields)
        expect.equal("the signature", ("key", "token", True), signed)
    await producer.send(Message("B", b"12"))
    await producer.send_oneway(Message("B", b"1"))
    b, names = str(address("b")), str(address("names-1"))
    ends = [each for each in hook.seen if isinstance(each[2], str)]
    expected = [
        (names, "GET_ROUTEINFO_BY_TOPIC", "SUCCESS", 0.0), (b, "SEND_MESSAGE_V2", "MESSAGE_ILLEGAL", 0.25),
        (b, "SEND_MESSAGE_V2", "RequestTimeoutError", 3.0), (b, "SEND_MESSAGE_V2", "SENT", 0.0),
    ]  # fmt: skip
    expect.equal("the ends", expected, [(*each[:2], each[2].partition(":")[0], each[3]) for each in ends])
    begins = [(*each[:2], each[3]) for each in hook.seen if not isinstance(each[2], str)]
    sizes = (0, 5, 2, 1)
    expect.equal("the begins", [(*one[:2], size) for one, size in zip(expected, sizes, strict=True)], begins)
    route_fields = next(iter(each[2] for each in hook.seen))
    expect.equal(
        "the fields that a hook sees", {"topic": "B"}, {n: v for n, v in route_fields.items() if n == "topic"}
    )
    await session.stop()

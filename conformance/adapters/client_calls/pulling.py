"""The calls of a pull consumer: each request, each result, and each error.

See docs/reference/protocol/pulling.md, docs/reference/protocol/offsets.md, "Offset requests".
"""

import asyncio
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    SILENCE,
    Answer,
    ScriptedServers,
    address,
    pulled,
    route,
)
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.messages import compression
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, RefusalError
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.store.files import record
from mqproof.spec.events import Event

PULL: Final = 11
_ROUTE: Final = 105
_Q: Final = MessageQueue("A", "broker-a", 1)


def records(*messages: Message, queue_offset: int = 0, commit_offset: int = 1000) -> bytes:
    """Return the messages as the records in the answer to a pull, at consecutive offsets."""
    found = b""
    for place, message in enumerate(messages):
        encoded = record.encode(message)
        record.place(encoded, queue_offset + place, commit_offset + 100 * place, 1_700_000_000_000)
        found += bytes(encoded)
    return found


def message(body: bytes, tag: str = "", topic: str = "A", **more: Any) -> Message:
    """Return a message as a broker stored it."""
    properties = {"UNIQ_KEY": f"K{body[:8].hex()}", **({"TAGS": tag} if tag else {})}
    more.setdefault("queue_id", 1)
    own = more.pop("properties", {})
    return Message(topic, body, {**properties, **own}, store_host=("127.0.0.1", 10911), **more)


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    """Call each method with each kind of answer."""
    servers.routes |= {
        "A": route({"a": 2}, slave=True), "B": route({"b": 1}), "half": route({"a": 3}, read=1, slave=True),
        "write": route({"a": 1}, 2), "slave": route({"a": 1}, slave=True, masters=False),
    }  # fmt: skip
    session = Session([address("names-1")], servers.runtime("client"), "h@i")
    await session.start()
    events: list[Event] = []
    consumer = PullConsumer(session, "g", EventLog(events.append, "n", session.runtime.clock))
    await _judge_queues(expect, servers, consumer)
    await _judge_pulls(expect, servers, consumer, events)
    await _judge_replicas(expect, servers, consumer)
    await _judge_bodies(expect, servers, consumer)
    await _judge_offsets(expect, servers, consumer)
    await _judge_silence(expect, servers, consumer)
    await session.stop()


async def _judge_queues(expect: Expectations, servers: ScriptedServers, consumer: PullConsumer) -> None:
    both = [MessageQueue("A", "broker-a", 0), _Q]
    expect.equal("the queues", both, await consumer.queues("A"))
    expect.equal("the readable queues", 1, len(await consumer.queues("half")))
    expect.equal("the queues of a slave", 1, len(await consumer.queues("slave")))
    expect.equal("the queues that cannot be read", [], await consumer.queues("write"))
    await expect.fails("the queues of no topic", NoRouteError, consumer.queues("none"))
    await expect.fails("the queues of a name that is not allowed", ValueError, consumer.queues("a b"))
    servers.script("names-1", _ROUTE, Answer(body=b"{"))
    await expect.fails("a route that is damaged", ClientError, consumer.queues("A"))
    requests = servers.take(_ROUTE)
    topics = ["A", "half", "slave", "write", "none", "A"]
    expect.equal("the requests for routes", topics, [each.fields["topic"] for each in requests])


async def _judge_pulls(
    expect: Expectations, servers: ScriptedServers, consumer: PullConsumer, events: list[Event]
) -> None:
    usual: dict[str, Any] = {
        "consumerGroup": "g", "topic": "A", "queueId": "1", "queueOffset": "7", "maxMsgNums": "32",
        "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0",
        "subscription": "*", "expressionType": "TAG",
    }  # fmt: skip
    cases: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
        ({}, {}),
        ({"max_count": 5}, {"maxMsgNums": "5"}),
        ({"tags": "X || Y"}, {"subscription": "X || Y"}),
        ({"tags": MessageSelector.sql("p > 1")}, {"subscription": "p > 1", "expressionType": "SQL92"}),
        ({"hold_ms": 2000}, {"suspendTimeoutMillis": "2000", "sysFlag": "6"}),
    )
    for options, changed in cases:
        servers.take()
        result = await consumer.pull(_Q, 7, **options)
        (seen,) = servers.take(PULL)
        expect.equal(f"a pull with {options}", {**usual, **changed}, seen.fields)
        shown = (result.status, result.next_offset, result.min_offset, result.max_offset, result.messages)
        expect.equal("its result", ("NO_NEW_MESSAGE", 7, 0, 7, ()), shown)
    codes = {0: "FOUND", 19: "NO_NEW_MESSAGE", 20: "NO_MATCHED_MESSAGE", 21: "OFFSET_ILLEGAL"}
    events.clear()
    for code, status in codes.items():
        servers.script("a", PULL, Answer(code, pulled(0, 9, 3, 20)))
        result = await consumer.pull(_Q, 7)
        places = (result.status, result.next_offset, result.min_offset, result.max_offset)
        expect.equal(f"the result of code {code}", (status, 9, 3, 20), places)
    for code in (1, 2, 16, 24, 26, 215, 999):
        servers.script("a", PULL, Answer(code, remark="why"))
        error = await expect.fails(f"a pull with code {code}", RefusalError, consumer.pull(_Q, 7))
        expect.equal("its code", code, getattr(error, "code", None))
        expect.equal(
            "its remark", True, str(error).endswith(": why") and str(error).startswith("A@broker-a:1")
        )
    servers.script("a", PULL, Answer(1))
    error = await expect.fails("a refusal without a remark", RefusalError, consumer.pull(_Q, 7))
    expect.equal("its text", "A@broker-a:1: SYSTEM_ERROR: no remark", str(error))
    damaged = (
        Answer(0), Answer(0, {"nextBeginOffset": "x"}), Answer(0, pulled(0, 9, 3, 20), b"\0\0"),
        Answer(0, pulled(0, 9, 3, 20), b"\0\0\1\0" + b"x" * 99),
    )  # fmt: skip
    for answer in damaged:
        servers.script("a", PULL, answer)
        await expect.fails("a damaged answer to a pull", ClientError, consumer.pull(_Q, 7))
    await expect.fails("tags that are none", ValueError, consumer.pull(_Q, 7, tags="a = 1"))
    await expect.fails("an unknown broker", ClientError, consumer.pull(MessageQueue("A", "broker-x", 0), 7))
    await _judge_tags(expect, servers, consumer, events)


async def _judge_tags(
    expect: Expectations, servers: ScriptedServers, consumer: PullConsumer, events: list[Event]
) -> None:
    """Tags with equal hash codes: the broker returns both, the client only the wanted one."""
    several = (message(b"1", "Aa", queue_id=1), message(b"2", "BB"), message(b"3"))
    cases: tuple[tuple[str | MessageSelector, list[bytes]], ...] = (
        ("Aa", [b"1"]), ("*", [b"1", b"2", b"3"]), (" * ", [b"1", b"2", b"3"]), ("Aa || BB", [b"1", b"2"]),
        ("Aa|| ", [b"1"]), ("Zz", []), (MessageSelector.sql("a > 1"), [b"1", b"2", b"3"]),
    )  # fmt: skip
    for tags, bodies in cases:
        events.clear()
        servers.script("a", PULL, Answer(0, pulled(0, 8, 0, 20), records(*several, queue_offset=5)))
        result = await consumer.pull(_Q, 5, tags=tags)
        expect.equal(f"the messages with {tags}", bodies, [each.message.body for each in result.messages])
        expect.equal("the next offset", 8, result.next_offset)
        delivered = [event for event in events if event.kind == "deliver"]
        places = [
            (each.msg_id, each.topic, each.queue_id, each.queue_offset, each.commit_offset, each.group,
             each.client, each.tags, each.attrs["broker"])
            for each in delivered
        ]  # fmt: skip
        all_places = {
            b"1": ("K31", "A", 1, 5, 1000, "g", "h@i", "Aa", "broker-a"),
            b"2": ("K32", "A", 1, 6, 1100, "g", "h@i", "BB", "broker-a"),
            b"3": ("K33", "A", 1, 7, 1200, "g", "h@i", "", "broker-a"),
        }
        expect.equal("the events", [all_places[body] for body in bodies], places)
        text = tags if isinstance(tags, str) else tags.expression
        subscribed = [(each.topic, each.attrs["expression"]) for each in events if each.kind == "subscribe"]
        expect.equal("the event of the subscription", [("A", text)], subscribed)


async def _judge_replicas(expect: Expectations, servers: ScriptedServers, consumer: PullConsumer) -> None:
    """An answer suggests the replica of the next pull of its queue."""
    other = MessageQueue("A", "broker-a", 0)
    steps = ((1, _Q, "a"), (1, _Q, "a-slave"), (0, _Q, "a-slave"), (0, _Q, "a"), (1, other, "a"),
             (5, _Q, "a"), (0, _Q, "a"), (0, other, "a-slave"))  # fmt: skip
    for number, (suggested, queue, server) in enumerate(steps):
        servers.take()
        for each in ("a", "a-slave"):
            servers._scripts[each, PULL].clear()
            servers.script(each, PULL, Answer(19, pulled(suggested, 7, 0, 7)))
        await consumer.pull(queue, 7)
        expect.equal(f"the replica of pull {number}", [server], [each.server for each in servers.take(PULL)])
    for each in ("a", "a-slave"):
        servers._scripts[each, PULL].clear()
    servers.take()
    await consumer.pull(MessageQueue("slave", "broker-a", 0), 7)
    expect.equal("the replica without a master", ["a-slave"], [each.server for each in servers.take(PULL)])


async def _judge_bodies(expect: Expectations, servers: ScriptedServers, consumer: PullConsumer) -> None:
    """Compressed bodies, of each size around the steps, and bodies that are no streams."""
    plain = [b"a" * size for size in (1, 4096, 1 << 20, (1 << 20) + 1, 3 << 20)]
    flags = (1, 0x301)
    for flag in flags:
        packed = [message(zlib.compress(body), sys_flag=flag) for body in plain]
        servers.script("a", PULL, Answer(0, pulled(0, 5, 0, 5), records(*packed)))
        result = await consumer.pull(_Q, 0)
        bodies = [each.message.body for each in result.messages]
        expect.equal(
            f"the sizes with flag {flag}", [len(body) for body in plain], [len(body) for body in bodies]
        )
        expect.equal(f"the bodies with flag {flag}", True, plain == bodies)
    for library, flag in (("LZ4FrameDecompressor", 0x101), ("zstd", 0x201)):
        await _judge_extra(expect, servers, consumer, plain, library, flag)
    damaged = (b"no stream", zlib.compress(b"a" * 5000)[:-6], zlib.compress(b"")[:3])
    servers.script(
        "a", PULL, Answer(0, pulled(0, 3, 0, 3), records(*(message(b, sys_flag=1) for b in damaged)))
    )
    result = await consumer.pull(_Q, 0)
    expect.equal("bodies that are no streams", list(damaged), [each.message.body for each in result.messages])
    servers.script(
        "a", PULL, Answer(0, pulled(0, 1, 0, 1), records(message(zlib.compress(b"x"), sys_flag=0)))
    )
    result = await consumer.pull(_Q, 0)
    expect.equal("a stream without the flag", zlib.compress(b"x"), result.messages[0].message.body)
    many = [message(b"%d" % number) for number in range(300)]
    servers.script("a", PULL, Answer(0, pulled(0, 300, 0, 300), records(*many)))
    result = await consumer.pull(_Q, 0)
    expect.equal(
        "many messages", [each.body for each in many], [each.message.body for each in result.messages]
    )


async def _judge_extra(
    expect: Expectations, servers: ScriptedServers, consumer: PullConsumer, plain: list[bytes], library: str,
    flag: int,
) -> None:  # fmt: skip
    """Bodies of LZ4 and ZSTD are decompressed with the extra, and stay compressed without it."""
    has_library = getattr(compression, library) is not None
    packed = list(map(_PACKED[library], plain)) if has_library else plain
    found = Answer(0, pulled(0, 5, 0, 5), records(*(message(body, sys_flag=flag) for body in packed)))
    for is_there in {False, has_library}:
        servers.script("a", PULL, found)
        with nullcontext() if is_there else _without(library):
            result = await consumer.pull(_Q, 0)
        bodies = [each.message.body for each in result.messages]
        expect.equal(f"bodies of {library}: {is_there}", True, bodies == (plain if is_there else packed))


def _lz4(body: bytes) -> bytes:
    packed: bytes = import_module("lz4.frame").compress(body)
    return packed


def _zstd(body: bytes) -> bytes:
    packed: bytes = vars(compression)["zstd"].compress(body)
    return packed


_PACKED: Final = {"LZ4FrameDecompressor": _lz4, "zstd": _zstd}


@contextmanager
def _without(library: str) -> Iterator[None]:
    """Let the client run as if the extra were not installed."""
    found = getattr(compression, library)
    setattr(compression, library, None)
    try:
        yield
    finally:
        setattr(compression, library, found)


async def _judge_offsets(expect: Expectations, servers: ScriptedServers, consumer: PullConsumer) -> None:
    calls: tuple[tuple[str, int, Any, dict[str, str]], ...] = (
        ("min_offset", 31, consumer.min_offset, {}),
        ("max_offset", 30, consumer.max_offset, {}),
        ("search_offset", 29, lambda queue: consumer.search_offset(queue, 12345), {"timestamp": "12345"}),
        ("committed", 14, consumer.committed, {"consumerGroup": "g"}),
    )
    for name, code, call, more in calls:
        servers.take()
        servers.script("a", code, Answer(fields={"offset": "42"}))
        expect.equal(name, 42, await call(_Q))
        (seen,) = servers.take(code)
        expect.equal(
            f"the request of {name}",
            ("a", {"topic": "A", "queueId": "1", **more}),
            (seen.server, seen.fields),
        )
        for answer in (
            Answer(1, remark="r"),
            Answer(2, {"offset": "1"}),
            Answer(),
            Answer(fields={"offset": "x"}),
        ):
            servers.script("a", code, answer)
            kind = RefusalError if answer.code else ClientError
            await expect.fails(f"{name} with {answer}", kind, call(_Q))
        servers.script("a-slave", code, Answer(fields={"offset": "43"}))
        expect.equal(f"{name} at a slave", 43, await call(MessageQueue("slave", "broker-a", 0)))
        await expect.fails(f"{name} at no broker", ClientError, call(MessageQueue("A", "broker-x", 0)))
        await expect.fails(f"{name} of no topic", ClientError, call(MessageQueue("none", "broker-x", 0)))
    servers.script("a", 14, Answer(22))
    expect.equal("no committed offset", None, await consumer.committed(_Q))
    servers.script("a-slave", 14, Answer(22))
    on_slave = MessageQueue("slave", "broker-a", 0)
    await expect.fails("no committed offset at a slave", ClientError, consumer.committed(on_slave))
    await expect.fails("a search at no time", TypeError, consumer.search_offset(_Q, 1.5))  # type: ignore[arg-type]
    await expect.fails("a search before 1970", ValueError, consumer.search_offset(_Q, -1))
    servers.take()
    await consumer.commit(_Q, 5)
    (seen,) = servers.take(15)
    fields = {"consumerGroup": "g", "topic": "A", "queueId": "1", "commitOffset": "5"}
    expect.equal("a commit", ("a", fields), (seen.server, seen.fields))
    servers.script("a", 15, Answer(1, remark="r"))
    await expect.fails("a commit that is refused", RefusalError, consumer.commit(_Q, 5))


async def _judge_silence(expect: Expectations, servers: ScriptedServers, consumer: PullConsumer) -> None:
    """The time limit of each request, and the route that is requested again after it."""
    loop = asyncio.get_running_loop()
    b = MessageQueue("B", "broker-b", 0)
    await consumer.queues("B")
    calls: Sequence[tuple[str, int, Any, float]] = (
        ("pull", PULL, lambda: consumer.pull(b, 0), 10.0),
        ("a pull that may wait", PULL, lambda: consumer.pull(b, 0, hold_ms=3000), 13.0),
        ("min_offset", 31, lambda: consumer.min_offset(b), 5.0),
        ("commit", 15, lambda: consumer.commit(b, 1), 5.0),
        ("committed", 14, lambda: consumer.committed(b), 5.0),
    )
    for name, code, call, seconds in calls:
        servers.script("b", code, SILENCE)
        servers.take()
        began_s = loop.time()
        await expect.fails(f"no answer: {name}", ClientError, call())
        expect.equal(f"the time of {name}", seconds, round(loop.time() - began_s, 2))
        await asyncio.sleep(0.1)
        topics = [each.fields["topic"] for each in servers.take(_ROUTE)]
        expect.equal(f"the route after {name} is requested", True, "B" in topics)
    servers.script("b", 31, Answer(14, remark="r"), Answer(1, remark="r"))
    for code, again in ((14, ["B"]), (1, [])):
        await asyncio.sleep(0.6)
        servers.take()
        await expect.fails(f"code {code}", RefusalError, consumer.min_offset(b))
        await asyncio.sleep(0.1)
        expect.equal(
            f"the routes after code {code}", again, [each.fields["topic"] for each in servers.take(_ROUTE)]
        )

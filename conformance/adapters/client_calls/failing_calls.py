"""Requests that fail: the error with its text, the time until it, and the route that is requested again.

See docs/reference/protocol/clients.md, "Name servers and routes", and docs/reference/protocol/groups.md.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import COMMIT, LIST, LOCK, SEND, SEND_BACK, UNLOCK, Feed
from mqproof.conformance.adapters.client_calls.pulling import PULL, message
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    SILENCE,
    Answer,
    ScriptedServers,
    address,
    route,
)
from mqproof.impl.client.connection.session import Session, SessionConfig
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.message_selector import SQL92, MessageSelector
from mqproof.impl.client.model import (
    ClientError,
    MessageQueue,
    NoRouteError,
    ReceivedMessage,
    RefusalError,
    ReplyError,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.filtering.function_names import MAGIC
from mqproof.impl.remoting.bodies import Subscription
from mqproof.impl.remoting.channel import RequestTimeoutError
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.recall_handle import RecallHandle

_ROUTE, _CHECK, _UPLOAD, _QUERY, _RECALL, _REPLY = 105, 46, 302, 14, 370, 325
_Q: Final = MessageQueue("A", "broker-a", 0)
_QUEUE, _LOCKS, _TOPIC = "A@broker-a:0", "locks at broker-a", "A"
_Call = Callable[[GroupRequests], Awaitable[Any]]
_FUNCTION: Final = MessageSelector.function(MAGIC + b"\1\0\0\0")
_MISSING: Final = Answer(27)
_QUIET: Final = SessionConfig(10**9, 10**9)
"""No route is refreshed, and no heartbeat is sent, by its time."""


def _message() -> ReceivedMessage:
    return ReceivedMessage(StoredMessage(message(b"x", queue_id=0), 1, 2, 3, 4, 5), _Q, 0)


_CALLS: Final[tuple[tuple[str, int, str, float, _Call], ...]] = (
    ("members", LIST, _TOPIC, 5, lambda calls: calls.members("A")),
    ("lock", LOCK, _LOCKS, 1, lambda calls: calls.lock([_Q])),
    ("unlock", UNLOCK, _LOCKS, 1, lambda calls: calls.unlock([_Q])),
    ("check", _CHECK, "subscription to A", 5,
     lambda calls: calls.check(Subscription("A", "p > 1", expression_type=SQL92))),
    ("send back", SEND_BACK, _QUEUE, 5, lambda calls: calls.send_back(_message(), 0, 16)),
    ("commit", COMMIT, _QUEUE, 5, lambda calls: calls.commit(_Q, 1)),
    ("committed", _QUERY, _QUEUE, 5, lambda calls: calls.committed(_Q)),
    ("least offset", 31, _QUEUE, 5, lambda calls: calls.min_offset(_Q)),
    ("end", 30, _QUEUE, 5, lambda calls: calls.max_offset(_Q)),
    ("search", 29, _QUEUE, 5, lambda calls: calls.search_offset(_Q, 1)),
    ("pull", PULL, _QUEUE, 10, lambda calls: calls.pull(_Q, 0)),
    ("held pull", PULL, _QUEUE, 11.5, lambda calls: calls.pull(_Q, 0, hold_ms=1500)),
    ("pull with a function", PULL, _QUEUE, 10, lambda calls: calls.pull(_Q, 0, tags=_FUNCTION)),
)  # fmt: skip
"""Each request of a member: its code, what its errors name, its time limit, and its call."""


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (_members, _uploads, _without_names, _outcomes, _producers):
        feed.clear()
        await work(expect, feed)


def _with_filter_server() -> bytes:
    known = json.loads(route({"a": 1}))
    return json.dumps({**known, "filterServerTable": {str(address("a")): [str(address("a"))]}}).encode()


async def _failure(
    expect: Expectations, servers: ScriptedServers, what: str, kind: type[Exception], call: Awaitable[Any]
) -> tuple[str, float, list[str]]:
    """Return the text of an error, the time until it, and the topics whose routes are requested after it."""
    await asyncio.sleep(0.6)
    servers.take()
    began_s = asyncio.get_running_loop().time()
    error = await expect.fails(what, kind, call)
    took_s = round(asyncio.get_running_loop().time() - began_s, 2)
    await asyncio.sleep(0.1)
    return str(error), took_s, [each.fields["topic"] for each in servers.take(_ROUTE)]


async def _members(expect: Expectations, feed: Feed) -> None:
    """Each request of a member of a group, without an answer, refused, and to a broker that is no master."""
    servers = feed.servers
    servers.routes["A"] = _with_filter_server()
    session = Session([address("names-1")], servers.runtime("quiet"), "h@i", _QUIET)
    calls = GroupRequests(session, "g")
    await calls.members("A")
    for what, code, named, limit_s, call in _CALLS:
        servers.script("a", code, SILENCE)
        found = await _failure(expect, servers, f"{what} without an answer", ClientError, call(calls))
        asked = "A" if named == "subscription to A" else named
        text = f"{asked}: no answer from {address('a')} within {round(limit_s * 1000)} ms"
        expect.equal(f"{what} without an answer: text, time, routes", (text, limit_s, ["A"]), found)
        for answer, why, routes in (
            (Answer(1, remark="r"), "SYSTEM_ERROR: r", []),
            (Answer(14), "SERVICE_NOT_AVAILABLE: no remark", ["A"]),
        ):  # fmt: skip
            servers.script("a", code, answer)
            refused = await _failure(expect, servers, f"{what} that is refused", RefusalError, call(calls))
            expect.equal(f"{what} that is refused", (f"{named}: {why}", 0.0, routes), refused)
    await session.stop()


async def _uploads(expect: Expectations, feed: Feed) -> None:
    """The upload of a function, and the pull after it."""
    servers = feed.servers
    servers.routes["A"] = _with_filter_server()
    session = Session([address("names-1")], servers.runtime("quiet"), "h@i", _QUIET)
    calls = GroupRequests(session, "g")
    await calls.members("A")
    upload = f"{_QUEUE}: upload of the function"
    late = f"no answer from {address('a')} within"
    cases: tuple[tuple[tuple[Answer, ...], Answer, type[ClientError], tuple[str, float, list[str]]], ...] = (
        ((_MISSING,), SILENCE, ClientError, (f"{upload}: {late} 5000 ms", 5.0, ["A"])),
        ((_MISSING,), Answer(1), RefusalError, (f"{upload}: SYSTEM_ERROR: no remark", 0.0, [])),
        ((_MISSING, SILENCE), Answer(), ClientError, (f"{_QUEUE}: {late} 10000 ms", 10.0, ["A"])),
        ((_MISSING, Answer(2)), Answer(), RefusalError, (f"{_QUEUE}: SYSTEM_BUSY: no remark", 0.0, [])),
    )
    for pulls, uploaded, kind, expected in cases:
        servers.script("a", PULL, *pulls)
        servers.script("a", _UPLOAD, uploaded)
        call = calls.pull(_Q, 0, tags=_FUNCTION)
        expect.equal("a failed upload", expected, await _failure(expect, servers, "an upload", kind, call))
    await session.stop()


async def _without_names(expect: Expectations, feed: Feed) -> None:
    """A request finds the route by itself; without a name server its error names the topic."""
    servers = feed.servers
    for what, _, _, _, call in _CALLS[:-1]:
        session = await feed.session()
        began_s = asyncio.get_running_loop().time()
        try:
            await call(GroupRequests(session, "g"))
        except ClientError as error:
            expect.equal(f"{what} in a new session", None, error)
        expect.equal(f"the time of {what}", True, asyncio.get_running_loop().time() - began_s <= 1.5)
        await session.stop()
    await servers.stop_one("names-1")
    await asyncio.sleep(0.1)
    session = Session([address("names-1")], servers.runtime("without"), "h@i")
    calls = GroupRequests(session, "g")
    for what, _, _, _, call in _CALLS:
        failed = await expect.fails(f"{what} without a name server", ClientError, call(calls))
        expect.equal("its text", True, str(failed).startswith(f"A: no connection to {address('names-1')}"))
    await session.stop()
    await servers.start_one("names-1")


async def _outcomes(expect: Expectations, feed: Feed) -> None:
    """The outcomes of sends that are refused, with their remarks and attempts."""
    servers = feed.servers
    servers.routes |= {"R": route({"a": 1}, 4), "TBW102": route({"a": 1})}
    session = await feed.session()
    producer = Producer(session, ProducerConfig("g", send_timeout_ms=800))
    other = Producer(session, ProducerConfig("g", default_topic="none"))
    nowhere = MessageQueue("A", "broker-x", 0)
    outcomes = (
        (producer, Message("R", b"1"), None, "topic R has no writable queue", 0),
        (producer, Message("A", b"1"), nowhere, "broker broker-x has no master", 1),
        (other, Message("no-topic", b"1"), None, "no name server knows topic no-topic", 0),
    )
    for sender, sent, queue, remark, attempts in outcomes:
        outcome: Any = await sender.send(sent, queue)
        shown = outcome.status, outcome.remark, outcome.attempts
        expect.equal("an outcome", ("NO_ROUTE", remark, attempts), shown)
    remark = "AclException: no"
    refusals: tuple[tuple[int, str, int], ...] = (
        (1, "NO_PERMISSION", 1), (16, "NO_PERMISSION", 1), (2, "SYSTEM_BUSY", 3), (13, "MESSAGE_ILLEGAL", 1),
    )  # fmt: skip
    for code, status, attempts in refusals:
        for select, most in ((None, attempts), (lambda queues: queues[0], 1)):
            servers._scripts["a", SEND].clear()
            servers.script("a", SEND, *[Answer(code, remark=remark)] * 3)
            refused: Any = await producer.send(Message("A", b"1"), select=select)
            shown = refused.status, refused.remark, refused.attempts
            expect.equal(f"the refusal {code} of access control", (status, remark, most), shown)
    servers._scripts["a", SEND].clear()
    for codes, last in (
        ((1, 1, 1), "SYSTEM_ERROR: 2"), ((2, 2, 2), "2"), ((1, 1, 13), "SYSTEM_ERROR: 1"),
        ((2, 1, 2), "SYSTEM_ERROR: 1"),
    ):  # fmt: skip
        answers = [Answer(code, remark=str(number)) for number, code in enumerate(codes)]
        servers.script("a", SEND, *answers)
        ended: Any = await producer.send(Message("A", b"1"))
        expect.equal(f"the remark after {codes}", (last, 3), (ended.remark, ended.attempts))
    await session.stop()


async def _producers(expect: Expectations, feed: Feed) -> None:
    """The errors of recalls, replies and one-way sends, and the times of a producer's requests."""
    servers = feed.servers
    session = await feed.session()
    await session.routes.get("A")
    producer = Producer(session, ProducerConfig("g", send_timeout_ms=800))
    nowhere = MessageQueue("A", "broker-x", 0)
    handle = RecallHandle("A", "broker-a", 5, "K").encode()
    elsewhere = RecallHandle("A", "broker-x", 5, "K").encode()
    own = {"CLUSTER": "c", "CORRELATION_ID": "C", "REPLY_TO_CLIENT": "x"}
    request = ReceivedMessage(StoredMessage(Message("A", b"q", own), 1, 2, 3, 4, 5), _Q, 0)
    at_none = ReceivedMessage(request.stored, nowhere, 0)
    text = f"no answer from {address('a')} within 800 ms"
    unknown = "it is unknown whether the requester received the reply"
    cases: tuple[tuple[str, int, Answer, type[Exception], Callable[[], Awaitable[Any]], str, float], ...] = (
        ("a recall", _RECALL, SILENCE, RequestTimeoutError, lambda: producer.recall("A", handle), text, 0.8),
        ("a refused recall", _RECALL, Answer(1), RefusalError, lambda: producer.recall("A", handle),
         "the recall of a message in A failed: SYSTEM_ERROR: no remark", 0.0),
        ("a recall elsewhere", 0, Answer(), NoRouteError, lambda: producer.recall("A", elsewhere),
         "broker broker-x has no master", 0.0),
        ("a reply elsewhere", 0, Answer(), ReplyError, lambda: producer.reply(at_none, b"r"),
         "broker broker-x has no master", 0.0),
        ("one-way elsewhere", 0, Answer(), NoRouteError,
         lambda: producer.send_oneway(Message("A", b"1"), nowhere), "broker broker-x has no master", 0.0),
        ("a reply", _REPLY, SILENCE, ReplyError, lambda: producer.reply(request, b"r"),
         f"{unknown}: {text}", 0.8),
        ("a refused reply", _REPLY, Answer(14), ReplyError, lambda: producer.reply(request, b"r"),
         "SERVICE_NOT_AVAILABLE: no remark", 0.0),
    )  # fmt: skip
    for what, code, answer, kind, call, expected, limit_s in cases:
        servers.script("a", code, answer)
        found, took_s, _ = await _failure(expect, servers, what, kind, call())
        expect.equal(f"{what}: its text and time", (expected, limit_s), (found, took_s))
    servers.script("a", SEND, SILENCE)
    late: Any = await producer.send(Message("A", b"1"))
    expect.equal("a send without an answer", (text, 1), (late.remark, late.attempts))
    await session.stop()

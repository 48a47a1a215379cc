"""Message trace: how a producer collects and sends its records, and which records an administrator reads.

See docs/reference/protocol/event-log.md, "Message trace".
"""

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.pulling import message, records
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    SILENCE,
    Answer,
    ScriptedServers,
    Seen,
    address,
    route,
    stored,
)
from mqproof.conformance.answers.stored_record import properties_of
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.messages import traces_of
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.tracing.trace_records import CallBegan, CallEnded, Published
from mqproof.impl.remoting.message import SYS_COMPRESSED, Message

_SEND, _QUERY = 310, 12
_TOPIC: Final = "TR"
_WAITING_MAX: Final = 1024
_BATCH_MAX: Final = 100
_BODY_BYTES_MAX: Final = 128_000
_KEYS_BYTES_MAX: Final = 16_000
_LATE_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""

_READ: Final[tuple[tuple[str, Any], ...]] = (
    (
        "Pub 5 R g A M,N t k 1.2.3.4:5 6 7 3 OFFSET true",
        Published(5, "R", "g", "A", ("M", "N"), "t", "k", "1.2.3.4:5", 6, 7, 3, "OFFSET", True),
    ),
    (
        "Pub 6 null g A M null null 1.2.3.4:5 6 7 0 OFFSET false",
        Published(6, None, "g", "A", ("M",), None, None, "1.2.3.4:5", 6, 7, 0, "OFFSET", False),
    ),
    (
        "Pub 7 R g A M t k 1.2.3.4:5 6 7 0 true",
        Published(7, "R", "g", "A", ("M",), "t", "k", "1.2.3.4:5", 6, 7, 0, "", True),
    ),
    ("SubBefore 8 R g call M 2 k", CallBegan(8, "R", "g", "call", "M", 2, "k")),
    (f"SubBefore {_LATE_MS} null g call M 0 null", CallBegan(_LATE_MS, None, "g", "call", "M", 0, None)),
    ("SubAfter call M 9 true k 0 10 g", CallEnded("call", "M", 9, True, "k", 0, 10, "g")),
    ("SubAfter call M 9 false k 2 0 g", CallEnded("call", "M", 9, False, "k", 2, 0, "g")),
    ("SubAfter call M 11 false k 2 12", CallEnded("call", "M", 11, False, "k", 2, 0, "")),
    ("SubAfter call M 12 false k 2", CallEnded("call", "M", 12, False, "k", 2, 0, "")),
    ("SubAfter call M 13 true k", CallEnded("call", "M", 13, True, "k", 0, 0, "")),
    ("SubAfter call M 14 false null", CallEnded("call", "M", 14, False, None, 4, 0, "")),
    ("SubAfter call M 15 true", None),
    ("Pub 7 R g A M t k 1.2.3.4:5 6 7 0", None),
    ("SubBefore 8 R g call M 2", None),
    ("Pub -1 R g A M t k 1.2.3.4:5 6 7 0 OFFSET true", None),
    (f"SubBefore {_LATE_MS + 1} R g call M 2 k", None),
    ("SubBefore x R g call M 2 k", None),
    ("SubBefore 8 R g call OTHER 2 k", None),
    ("EndTransaction 1 R g A M t k 1.2.3.4:5 0 M 0 COMMIT false", None),
)
"""Fields of records, and what a query by the message id M returns."""


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    """Send traces in every situation, and read records of every kind."""
    servers.routes |= {"A": route({"a": 1}), _TOPIC: route({"b": 1})}
    await _judge_read(expect, servers)
    session = Session([address("names-1")], servers.runtime("client"), "h@i")
    await session.start()
    for work in (_judge_intervals, _judge_sizes, _judge_full, _judge_failures):
        await work(expect, servers, Producer(session, ProducerConfig("g", trace_topic=_TOPIC)))
    await _judge_stop(expect, servers, session)


async def _judge_read(expect: Expectations, servers: ScriptedServers) -> None:
    async with Admin([address("names-1")], servers.runtime("admin")) as admin:
        body = "".join(text.replace(" ", "\1") + "\2" for text, _ in _READ)
        stored_one = message(body.encode(), topic=_TOPIC, properties={"KEYS": "M k"})
        other = message(b"SubBefore\x018\1R\1g\1call\1M\x019\1k\2", topic=_TOPIC, properties={"KEYS": "N"})
        servers.script("b", _QUERY, *[Answer(body=records(stored_one, stored_one, other))] * 2, Answer(22))
        expected = sorted((each for _, each in _READ if each is not None), key=lambda each: each.time_ms)
        expect.equal("the traces of a message", expected, await traces_of(admin, "M", _TOPIC))
        servers.take()
        await traces_of(admin, "M", _TOPIC, begin_ms=3, end_ms=4)
        asked = [
            [each.fields[name] for name in ("topic", "key", "maxNum", "beginTimestamp", "endTimestamp")]
            for each in servers.take(_QUERY)
        ]
        expect.equal("the query for traces", [[_TOPIC, "M", "64", "3", "4"]], asked)
        expect.equal("the traces of no message", [], await traces_of(admin, "M", _TOPIC))


def _traces(seen: Sequence[Seen]) -> list[tuple[Seen, list[str]]]:
    """Return each trace message, and its records."""
    found = [each for each in seen if each.fields["b"] == _TOPIC]
    bodies = [
        zlib.decompress(each.body) if int(each.fields["f"]) & SYS_COMPRESSED else each.body for each in found
    ]
    return [
        (replace(each, body=body), body.decode().split("\2")[:-1])
        for each, body in zip(found, bodies, strict=True)
    ]


async def _judge_intervals(expect: Expectations, servers: ScriptedServers, producer: Producer) -> None:
    """Records are collected for half a second."""
    servers.take()
    for _ in range(20):
        await producer.send(Message("A", b"1"))
        await asyncio.sleep(0.11)
    await asyncio.sleep(2)
    seen = servers.take(_SEND)
    begin_s = min(each.at_s for each in seen)
    traces = _traces(seen)
    times_s = [round(each.at_s - begin_s, 2) for each, _ in traces]
    expect.equal("the first trace", 0.5, times_s[0] if times_s else None)
    pauses_s = [after - before for before, after in pairwise(times_s)]
    expect.equal("half a second between traces", [], [each for each in pauses_s if not 0.49 < each < 0.62])
    expect.equal("the records of all traces", 20, sum(len(lines) for _, lines in traces))
    expect.equal("when the last record is sent", True, 2.0 < max(times_s, default=0) < 2.7)


async def _judge_sizes(expect: Expectations, servers: ScriptedServers, producer: Producer) -> None:
    """A trace message has at most 100 records, a body of 128,000 bytes and keys of 16,000 bytes."""
    servers.take()
    for count, properties in ((250, {}), (14, {"TAGS": "t" * 30_000}), (6, {"KEYS": "k" * 6000})):
        await asyncio.gather(*(producer.send(Message("A", b"1", properties)) for _ in range(count)))
        await asyncio.sleep(2)
        found = _traces(servers.take(_SEND))
        sizes = [len(lines) for _, lines in found]
        expect.equal("records that are sent", count, sum(sizes))
        expect.equal("the sizes of full traces", {250: [100, 100, 50], 14: [4, 4, 4, 2], 6: [2, 2, 2]}[count],
                     sorted(sizes, reverse=True))  # fmt: skip
        for each, _ in found:
            keys = dict(properties_of(each.fields["i"])).get("KEYS", "")
            expect.equal("the size of a trace", True, len(each.body) <= _BODY_BYTES_MAX)
            expect.equal("the size of its keys", True, len(keys) <= _KEYS_BYTES_MAX)


async def _judge_full(expect: Expectations, servers: ScriptedServers, producer: Producer) -> None:
    """While the broker is silent, 1024 records wait; later ones are dropped."""
    servers.take()
    servers.script("b", _SEND, Answer(0, stored(0, 1).fields, after_s=2.0))
    await producer.send(Message("A", b"1"))
    await asyncio.sleep(1)
    for _ in range(11):
        await asyncio.gather(*(producer.send(Message("A", b"2")) for _ in range(_WAITING_MAX // 10)))
        await asyncio.sleep(0.01)
    await asyncio.sleep(4)
    sizes = [len(lines) for _, lines in _traces(servers.take(_SEND))]
    expect.equal("the traces after a silence", [1, *[_BATCH_MAX] * 10, 24], sizes)


async def _judge_failures(expect: Expectations, servers: ScriptedServers, producer: Producer) -> None:
    """A trace that is refused is not sent again; the next one is sent."""
    servers.take()
    servers.script("b", _SEND, Answer(13, remark="no"))
    outcomes = []
    for body in (b"1", b"2"):
        outcomes.append(type(await producer.send(Message("A", body))).__name__)
        await asyncio.sleep(1)
    expect.equal("the traced sends", ["Sent", "Sent"], outcomes)
    expect.equal("the traces after a failure", 2, len(_traces(servers.take(_SEND))))


async def _judge_stop(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """A stop sends what waits, and takes a second at most."""
    loop = asyncio.get_running_loop()
    for silent, took_s in ((False, 0.0), (True, 1.0)):
        producer = Producer(session, ProducerConfig("g", trace_topic=_TOPIC))
        await producer.send(Message("A", b"1"))
        servers.take()
        if silent:
            servers.script("b", _SEND, SILENCE)
        began_s = loop.time()
        await session.stop()
        expect.equal("the time of a stop", took_s, round(loop.time() - began_s, 1))
        expect.equal("the records that it sends", 1, len(_traces(servers.take(_SEND))))
        session = Session([address("names-1")], servers.runtime("client-2"), "h@j")
        await session.start()
    await session.stop()

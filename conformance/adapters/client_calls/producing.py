"""Requests of a producer at the edges: streams, counts, handles, traces, transactions, replies.

See docs/reference/protocol/messages.md, docs/reference/protocol/clients.md, "Queue choice",
docs/reference/protocol/transactions.md, and docs/reference/protocol/requests-and-replies.md.
"""

import asyncio
import random
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.consuming import Listening
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import Feed
from mqproof.conformance.adapters.client_calls.pulling import message as stored_message
from mqproof.conformance.adapters.client_calls.pulling import records
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    MESSAGE_ID,
    SILENCE,
    Answer,
    ScriptedServers,
    address,
    route,
    stored,
)
from mqproof.conformance.answers.stored_record import properties_of
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import (
    MessageError,
    MessageQueue,
    NoReplyError,
    NoRouteError,
    RetryLater,
    Sent,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.queue_choice import LEVELS_4_9, LEVELS_5
from mqproof.impl.client.producing.transaction_producer import TransactionProducer, TransactionState
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.recall_handle import RecallHandle
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event

_ROUTE, _SEND, _BATCH, _END, _CHECK, _PUSH_REPLY, _BEAT = 105, 310, 320, 37, 39, 326, 34
_REMARK_MAX: Final = 1000
_THRESHOLDS: Final = (
    (LEVELS_4_9, (50, 100, 550, 1000, 2000, 3000, 15_000), (0, 0, 30, 60, 120, 180, 600), 600),
    (LEVELS_5, (50, 100, 550, 1800, 3000, 5000, 15_000), (0, 0, 2, 5, 6, 10, 30), 10),
)
"""The tables of the protocol reference, and the penalty in seconds after an attempt that failed."""


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (
        _streams,
        _batches,
        _delayed,
        _penalties,
        _doubts,
        _untraced,
        _calls,
        _transactions,
        _replies,
        _first,
    ):
        feed.clear()
        servers.routes |= {"AB": route({"a": 1, "b": 1}), "TR": route({"b": 1}), "TBW102": route({"b": 1})}
        session = await feed.session()
        await work(expect, servers, session)
        await session.stop()


async def _streams(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """The bytes of a compressed body, and the count of a message to a retry topic."""
    producer = Producer(session, ProducerConfig("g"))
    chance = random.Random(1)
    body = b" ".join(chance.choices([b"one", b"other", b"another", b"none", b"no other"], k=2000))
    streams = {zlib.compress(body, level) for level in (4, 5, 6)}
    expect.equal("whether the level of a stream can be seen", 3, len(streams))
    for flag in (0, 0x100, 0x700):
        await producer.send(Message("A", body, sys_flag=flag))
        (seen,) = servers.take(_SEND)
        expect.equal("a stream", (zlib.compress(body, 5), str(0x301)), (seen.body, seen.fields["f"]))
    for flag in (1, 0x101):
        await producer.send(Message("A", body, sys_flag=flag))
        (seen,) = servers.take(_SEND)
        expect.equal("a stream of the application", (body, str(flag)), (seen.body, seen.fields["f"]))
    cases = (("%RETRY%g", "4", "4"), ("%RETRY%g", "x", None), ("%RETRY%g", "-1", None), ("A", "4", None))
    for topic, text, count in cases:
        await producer.send(Message(topic, b"1", {"MAX_RECONSUME_TIMES": text}))
        (seen,) = servers.take(_SEND)
        expect.equal(f"the count {text} of a message to {topic}", count, seen.fields.get("l"))


async def _batches(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Batches that are allowed, the events of a batch, and its size at the limit."""
    events: list[Event] = []
    log = EventLog(events.append, "n", session.runtime.clock)
    producer = Producer(session, ProducerConfig("g", body_bytes_max=300), log)
    servers.script("a", _BATCH, stored(0, 5))
    batch = [
        Message("A", b"1", {"DELAY": "0", "KEYS": "k"}),
        Message("A", b"2", {"WAIT": "true", "TAGS": "t"}),
    ]
    outcomes = await producer.send_batch(batch)
    (seen,) = servers.take(_BATCH)
    expect.equal("the flag of a batch", {"WAIT": "true"}, dict(properties_of(seen.fields["i"])))
    ids = [each.message_id for each in outcomes]
    shown = [
        (each.kind, each.msg_id, each.queue_offset, each.keys, each.tags, each.attempt) for each in events
    ]
    expected = [
        ("send", ids[0], None, "k", "", 1), ("send", ids[1], None, None, "t", 1),
        ("send_ack", ids[0], 5, "k", None, 1), ("send_ack", ids[1], 6, None, None, 1),
    ]  # fmt: skip
    expect.equal("the events of a batch", expected, shown)
    places = [each.offset_message_id for each in outcomes if isinstance(each, Sent)]
    expect.equal("the ids of a batch with one id", [MESSAGE_ID, ""], places)
    events.clear()
    servers.script("a", _SEND, stored(0, 7))
    await producer.send(Message("A", b"1", {"DELAY": "2"}))
    expect.equal("the place of a delayed message", [None, None], [each.queue_offset for each in events])
    size = len(seen.body) - len(b"1") - len(b"2")
    for more in (0, 1):
        rest = Message("A", b"x" * (300 - size - 1 + more), {"TAGS": "t"})
        work = producer.send_batch([Message("A", b"1", {"DELAY": "0", "KEYS": "k"}), rest])
        if more:
            await expect.fails("a batch with 301 bytes", MessageError, work)
        else:
            expect.equal("a batch with 300 bytes", True, isinstance((await work)[0], Sent))


async def _delayed(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Times of delivery to the millisecond, rounded up, and what names a message may have."""
    times = ((0.001, "1"), (0.0011, "2"), (0.0010001, "1"), (2.0004, "2001"), (59.9999, "60000"))
    for seconds, text in times:
        for name, option in (("TIMER_DELAY_MS", "delay"), ("TIMER_DELIVER_MS", "deliver_at")):
            values: dict[str, Any] = {option: seconds}
            message: Any = expect.accepted(f"{values}", partial(new_message, "A", b"1", **values))
            expect.equal(f"the time of {values}", text, message and message.properties.get(name))
    producer = Producer(session, ProducerConfig("g"))
    await producer.send(new_message("A", b"1", delay_level=18, wait_for_flush=False))
    (seen,) = servers.take(_SEND)
    shown = dict(properties_of(seen.fields["i"]))
    expect.equal("a delayed message", ("18", "false"), (shown["DELAY"], shown["WAIT"]))


async def _penalties(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """The tables of both generations, and the penalty of a broker that failed."""
    for levels, thresholds, rests, failure in _THRESHOLDS:
        expect.equal("no penalty", 0, levels.rest_ms(thresholds[0] - 0.01))
        following = (*thresholds[1:], 10**9)
        for least, end, rest in zip(thresholds, following, rests, strict=True):
            for took_ms in (least, end - 0.01):
                expect.equal(f"the penalty of {took_ms} ms", rest * 1000, levels.rest_ms(took_ms))
        expect.equal("the penalty of a failure", failure * 1000, levels.rest_ms(levels.failure_ms))
        config = ProducerConfig("g", latency_fault_strategy=True, latency_levels=levels, retries=0)
        producer = Producer(session, config)
        servers.script("a", _SEND, Answer(2, remark="busy"))
        for _ in range(2):
            await producer.send(Message("AB", b"1"))
        for pause_s, used in ((failure - 0.1, {"b"}), (0.2, {"a", "b"})):
            await asyncio.sleep(pause_s)
            servers.take()
            for _ in range(2):
                await producer.send(Message("AB", b"1"))
            seen = {each.server for each in servers.take(_SEND)}
            expect.equal(f"the brokers {pause_s} s after a failure", used, seen)


async def _doubts(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Which route is requested again when a broker is not known, or has no queue that can be written."""
    producer = Producer(session, ProducerConfig("g"))
    for topic in ("A", "TBW102", "R"):
        servers.routes |= {"R": route({"a": 1}, 4)}
        await session.routes.get(topic)
    handle = RecallHandle("A", "broker-x", 5, "K").encode()
    message = Message("A", b"1")
    nowhere, unknown = MessageQueue("A", "broker-x", 0), MessageQueue("new", "broker-x", 0)
    calls: Sequence[tuple[str, Any, str]] = (
        ("a recall", lambda: expect.fails("a recall", NoRouteError, producer.recall("A", handle)), "A"),
        ("a send", lambda: producer.send(message, nowhere), "A"),
        ("a send to a new topic", lambda: producer.send(Message("new", b"1"), unknown), "TBW102"),
        ("a topic to read", lambda: producer.send(Message("R", b"1")), "R"),
        (
            "one-way",
            lambda: expect.fails("one-way", NoRouteError, producer.send_oneway(message, nowhere)), "A",
        ),
    )  # fmt: skip
    for what, call, doubted in calls:
        await asyncio.sleep(0.6)
        servers.take()
        await call()
        await asyncio.sleep(0.1)
        topics = [each.fields["topic"] for each in servers.take(_ROUTE) if each.fields["topic"] != "new"]
        expect.equal(f"the route after {what}", [doubted], topics)


async def _untraced(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Messages of the trace topic, and of topics whose names begin with its name, are not traced."""
    servers.routes |= {"TR2": route({"b": 1}), "T": route({"b": 1})}
    producer = Producer(session, ProducerConfig("g", trace_topic="TR"))
    for topic, count in (("TR", 0), ("TR2", 0), ("T", 1)):
        servers.take()
        await producer.send(Message(topic, b"1"))
        await asyncio.sleep(1)
        traces = [each for each in servers.take(_SEND) if each.fields["a"].startswith("_INNER")]
        expect.equal(f"the traces of {topic}", count, len(traces))


async def _calls(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """A call with several messages: each has its part of the time, and its own result."""
    feed = Feed(servers, {("A", 0): []})
    servers.take()
    listening = Listening({b"0": [0.9, RetryLater(done=1)]})
    feed.put(b"0", b"1", b"2")
    config = PushConsumerConfig(concurrency=1, batch_max=3, trace_topic="TR")
    consumer = PushConsumer(session, "g", listening, config)
    await consumer.subscribe("A")
    await consumer.start()
    await asyncio.sleep(4)
    traces = [each.body.decode() for each in servers.take(_SEND) if each.fields["b"] == "TR"]
    lines = [line.split("\1") for text in traces for line in text.split("\2") if line]
    ended = [line[2:7] for line in lines if line[0] == "SubAfter"]
    expected = [["K30", "300", "true", "null", "0"], ["K31", "300", "false", "null", "4"],
                ["K32", "300", "false", "null", "4"]]  # fmt: skip
    expect.equal("the ends of a call", expected, ended)
    await consumer.stop()


async def _transactions(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """The remark of an end is cut; a half message without a key is named by the broker's id."""
    error: Exception = ValueError("x" * _REMARK_MAX)
    received: list[str] = []

    async def fail(_message: Any, transaction_id: str) -> TransactionState:
        received.append(transaction_id)
        raise error

    config = ProducerConfig("tg", retry_unconfirmed=True)
    producer = TransactionProducer(session, fail, config)
    servers.script("a", _SEND, stored(0, 1, 10), stored(0, 2, 0))
    outcome = await producer.send(Message("A", b"1"), fail)
    expect.equal(
        "an unconfirmed half message", (1, TransactionState.ROLLBACK), (outcome.sent.attempts, outcome.state)
    )
    await producer.send(Message("A", b"1"), fail)
    await asyncio.sleep(0.1)
    remark = f"ValueError: {'x' * _REMARK_MAX}"[:_REMARK_MAX]
    expect.equal("the remarks of ends", [None, remark], [each.remark for each in servers.take(_END)])
    for fields, key in (({"msgId": "M1"}, "M1"), ({}, "")):
        half = Message("A", b"h", {"PGROUP": "tg"}, store_host=("127.0.0.1", 10911))
        numbers = {"tranStateTableOffset": "5", "commitLogOffset": "6", "transactionId": "T1", **fields}
        servers.push_oneway("a", _CHECK, numbers, records(half))
        await asyncio.sleep(0.1)
        (end,) = servers.take(_END)
        expect.equal("the ids of a check", (key, key or None, "T1"), (
            received[-1], end.fields.get("msgId") or None, end.fields["transactionId"]))  # fmt: skip
    damaged = records(stored_message(b"h", properties={"PGROUP": "tg"})) * 2
    servers.push_oneway("a", _CHECK, {"tranStateTableOffset": "5", "commitLogOffset": "6"}, damaged)
    await asyncio.sleep(0.1)
    expect.equal("the end of two half messages", [], servers.take(_END))
    await producer.stop()


async def _replies(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """A reply with unusual hosts, and without optional fields; a request without an answer."""
    producer = Producer(session, ProducerConfig("rg"))
    hosts = (("/1.2.3.4:5", ("1.2.3.4", 5)), ("nowhere", ("0.0.0.0", 0)), ("1.2.3.4", ("0.0.0.0", 0)))
    for text, host in hosts:
        servers.take()
        asking = asyncio.create_task(producer.request(Message("A", b"q", {"DELAY": "0"}), timeout_ms=900))
        await asyncio.sleep(0.1)
        correlation = dict(properties_of(servers.take(_SEND)[0].fields["i"]))["CORRELATION_ID"]
        fields = {
            "producerGroup": "x", "topic": "t", "defaultTopic": "d", "defaultTopicQueueNums": "4",
            "queueId": "2", "sysFlag": "0", "bornTimestamp": "123", "flag": "9", "bornHost": text,
            "storeHost": text, "storeTimestamp": "124", "properties": f"CORRELATION_ID\1{correlation}\2",
        }  # fmt: skip
        without = {name: value for name, value in fields.items() if name != "properties"}
        answer = await servers.push("a", _PUSH_REPLY, without, b"r")
        expect.equal("a reply without properties", 0, answer.code)
        await servers.push("a", _PUSH_REPLY, fields, b"r")
        reply = await asking
        shown = (tuple(reply.born_host), tuple(reply.store_host), reply.reconsume_times)
        expect.equal(f"a reply from {text}", (host, host, 0), shown)
    await _greeted(expect, servers, producer)
    servers.script("a", _SEND, SILENCE)
    began_s = asyncio.get_running_loop().time()
    error: Any = await expect.fails(
        "a request without an answer", NoReplyError, producer.request(Message("A", b"q"), timeout_ms=900)
    )
    took_s = round(asyncio.get_running_loop().time() - began_s, 2)
    expect.equal("its time and text", (0.9, True), (took_s, "within 900 ms" in str(error)))


async def _greeted(expect: Expectations, servers: ScriptedServers, producer: Producer) -> None:
    """While a request waits, each second ends with a heartbeat on a new connection, and on no other one."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(2)
    began_s = loop.time()
    asking = [asyncio.create_task(producer.request(Message("A", b"q"), timeout_ms=5000)) for _ in range(2)]
    for number in range(3):
        await asyncio.sleep(began_s + number + 0.3 - loop.time())
        servers.hang_up("a")
        servers.take()
        await asyncio.sleep(began_s + number + 1.2 - loop.time())
        beats = {round(each.at_s - began_s, 3) for each in servers.take(_BEAT) if each.server == "a"}
        expect.equal(f"the heartbeats after {number + 0.3} s", {number + 1.0}, beats)
    await asyncio.gather(*asking, return_exceptions=True)
    await asyncio.sleep(1.5)
    servers.hang_up("a")
    servers.take()
    await asyncio.sleep(3)
    expect.equal("the heartbeats when no request waits", [], servers.take(_BEAT))


async def _first(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """The first requests of a session: a producer finds the route, and greets the broker before it asks."""
    runtime = session.runtime
    handle = RecallHandle("A", "broker-a", 5, "K").encode()
    calls: tuple[tuple[str, list[int], Any], ...] = (
        ("a recall", [_ROUTE, 370], lambda producer: producer.recall("A", handle)),
        ("a send", [_ROUTE, _SEND], lambda producer: producer.send(Message("A", b"1"))),
        ("one-way", [_ROUTE, _SEND], lambda producer: producer.send_oneway(Message("A", b"1"))),
        ("a batch", [_ROUTE, _BATCH], lambda producer: producer.send_batch([Message("A", b"1")])),
        ("a request", [_ROUTE, _BEAT, _SEND], lambda producer: expect.fails(
            "a request without a reply", NoReplyError, producer.request(Message("A", b"1"), timeout_ms=400))),
    )  # fmt: skip
    for what, codes, call in calls:
        fresh = Session([address("names-1")], runtime, "h@j")
        producer = Producer(fresh)
        servers.take()
        await call(producer)
        await asyncio.sleep(0.1)
        seen = servers.take()
        expect.equal(f"the requests of {what} in a new session", codes, [each.code for each in seen])
        groups = {each.fields.get("a") or each.fields.get("producerGroup") for each in seen} - {None}
        expect.equal("the group that no application gave", {"mqproof_producer"}, groups)
        await fresh.stop()
    ended = TransactionState.ROLLBACK
    given: list[tuple[str, bool]] = []

    def plain(message: Any, transaction_id: str) -> TransactionState:
        body = message.body if isinstance(message, Message) else message.message.body
        given.append((body.decode(), isinstance(transaction_id, str)))
        return ended

    transactions = TransactionProducer(session, plain)
    outcome = await transactions.send(Message("A", b"1"), plain)
    half = stored_message(b"2", properties={"PGROUP": "mqproof_producer"})
    numbers = {"tranStateTableOffset": "5", "commitLogOffset": "6", "transactionId": "T1"}
    servers.push_oneway("a", _CHECK, numbers, records(half))
    await asyncio.sleep(0.1)
    expect.equal("what plain functions receive", [("1", True), ("2", True)], given)
    groups = {each.fields["a"] for each in servers.take(_SEND)}
    expect.equal("a transaction of that group", (ended, {"mqproof_producer"}), (outcome.state, groups))
    await transactions.stop()

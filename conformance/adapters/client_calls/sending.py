"""Every kind of send, and every answer to it: the requests, the outcome and the events.

See docs/reference/protocol/sending.md, docs/reference/protocol/clients.md, "Send attempts", and
docs/reference/protocol/event-log.md, "Events of a client".
"""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    MESSAGE_ID,
    SILENCE,
    Answer,
    ScriptedServers,
    Seen,
    address,
    route,
    stored,
)
from mqproof.conformance.answers.stored_record import properties_of
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import (
    MessageError,
    MessageQueue,
    NoRouteError,
    RefusalError,
    SendError,
    Sent,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.queue_choice import by_hash
from mqproof.impl.remoting.batch import decode_batch
from mqproof.impl.remoting.channel import ConnectError, RequestTimeoutError
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.recall_handle import RecallHandle
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event

SEND: Final = 310
_BATCH: Final = 320
_ROUTE: Final = 105
_RECALL: Final = 370
_QUEUE: Final = MessageQueue("A", "broker-a", 0)
_FINAL: Final = {3: "REQUEST_CODE_NOT_SUPPORTED", 13: "MESSAGE_ILLEGAL", 26: "SUBSCRIPTION_GROUP_NOT_EXIST",
                 215: "FLOW_CONTROL", 999: "CODE_999"}  # fmt: skip
_RETRIED: Final = {2: "SYSTEM_BUSY", 14: "SERVICE_NOT_AVAILABLE", 16: "NO_PERMISSION", 17: "TOPIC_NOT_EXIST",
                   204: "NO_BUYER_ID", 205: "NOT_IN_CURRENT_UNIT", 1500: "GO_AWAY"}  # fmt: skip
_UNCONFIRMED: Final = {10: "FLUSH_DISK_TIMEOUT", 11: "SLAVE_NOT_AVAILABLE", 12: "FLUSH_SLAVE_TIMEOUT"}
_ACL: Final = "org.apache.rocketmq.acl.common.AclException: no"

_Case = tuple[str, Sequence[Answer], tuple[str, str, str, int], dict[str, Any]]
"""The answers to the attempts; the kind, status, remark and attempts of the outcome; options."""


def _cases() -> list[_Case]:
    busy, failed, ok = Answer(2, remark="b"), Answer(1, remark="f"), stored(0, 5)
    cases: list[_Case] = [
        ("code 0", (ok,), ("Sent", "SEND_OK", "", 1), {}),
        *(
            (f"code {code}", (stored(0, 5, code),), ("Sent", name, "", 1), {})
            for code, name in _UNCONFIRMED.items()
        ),
        *(
            (f"code {code}", (Answer(code, remark="r"),), ("Refused", name, "r", 1), {})
            for code, name in _FINAL.items()
        ),
        *(
            (f"code {code}", (Answer(code, remark="r"),) * 3, ("Refused", name, "r", 3), {})
            for code, name in _RETRIED.items()
        ),
        ("code 1", (failed,) * 3, ("Unknown", "", "SYSTEM_ERROR: f", 3), {}),
        ("code 1 of access control", (Answer(1, remark=_ACL),), ("Refused", "NO_PERMISSION", _ACL, 1), {}),
        ("code 16 of access control", (Answer(16, remark=_ACL),), ("Refused", "NO_PERMISSION", _ACL, 1), {}),
        ("busy, then stored", (busy, ok), ("Sent", "SEND_OK", "", 2), {}),
        ("failed, then stored", (failed, ok), ("Sent", "SEND_OK", "", 2), {}),
        ("failed, then refused", (failed, Answer(13, remark="r")), ("Unknown", "", "SYSTEM_ERROR: f", 2), {}),
        ("no remark", (Answer(13),), ("Refused", "MESSAGE_ILLEGAL", "", 1), {}),
        ("no retries", (busy,), ("Refused", "SYSTEM_BUSY", "b", 1), {"retries": 0}),
        ("one retry", (busy,) * 2, ("Refused", "SYSTEM_BUSY", "b", 2), {"retries": 1}),
        ("failed without retry", (failed,), ("Unknown", "", "SYSTEM_ERROR: f", 1), {"retry_unknown": False}),
        ("busy although unknown ends", (busy, ok), ("Sent", "SEND_OK", "", 2), {"retry_unknown": False}),
        ("unconfirmed once", (stored(0, 4, 10), ok), ("Sent", "SEND_OK", "", 2), {"retry_unconfirmed": True}),
        (
            "unconfirmed always", (stored(0, 5, 10), stored(0, 6, 11), stored(0, 7, 12)),
            ("Sent", "FLUSH_DISK_TIMEOUT", "", 3), {"retry_unconfirmed": True},
        ),
        ("stored at once", (ok,), ("Sent", "SEND_OK", "", 1), {"retry_unconfirmed": True}),
    ]  # fmt: skip
    return cases


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    """Send in every way."""
    servers.routes |= {"A": route({"a": 1}), "T": route({"a": 2, "b": 1}), "TBW102": route({"b": 8})}
    session = Session([address("names-1")], servers.runtime("client"), "h@i")
    await session.start()
    events: list[Event] = []
    log = EventLog(events.append, "n", session.runtime.clock)
    for what, answers, (kind, status, remark, attempts), options in _cases():
        producer = Producer(session, ProducerConfig("g", **options), log)
        servers.take()
        servers.script("a", SEND, *answers)
        message = Message("A", b"body", {"TAGS": "t", "KEYS": "k l", "own": "ü"}, flag=7)
        outcome = await producer.send(message)
        expect.equal(f"{what}: the outcome", kind, type(outcome).__name__)
        seen = servers.take(SEND)
        expect.equal(f"{what}: the attempts", (attempts, attempts), (outcome.attempts, len(seen)))
        expect.equal(f"{what}: the status", status, getattr(outcome, "status", ""))
        expect.equal(f"{what}: the remark", remark, getattr(outcome, "remark", ""))
        if isinstance(outcome, Sent):
            place = (outcome.queue, outcome.queue_offset, outcome.offset_message_id, outcome.recall_handle)
            expect.equal(f"{what}: the place", (_QUEUE, 5, MESSAGE_ID, None), place)
        for request in seen:
            _judge_request(expect, what, request, message, outcome.message_id, now_ms(session.runtime.clock))
        _judge_events(expect, what, events, outcome.message_id, answers, attempts)
        events.clear()
    await _judge_failures(expect, servers, session)
    await _judge_kinds(expect, servers, session, Producer(session, ProducerConfig("g")))
    await _judge_routes(expect, servers, session)
    await _judge_recalls(expect, servers, Producer(session, ProducerConfig("g")))
    await session.stop()


def _judge_request(
    expect: Expectations, what: str, request: Seen, message: Message, message_id: str, born_ms: int,
    **more: str,
) -> None:  # fmt: skip
    expected = {
        "a": "g", "b": message.topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": str(born_ms),
        "h": str(message.flag), "j": "0", "k": "false", "m": "false", **more,
    }  # fmt: skip
    fields = dict(request.fields)
    properties = properties_of(fields.pop("i", ""))
    expect.equal(f"{what}: the fields", expected, fields)
    own = {"UNIQ_KEY": message_id, "WAIT": "true", **message.properties}
    expect.equal(f"{what}: the properties", own, dict(properties))
    expect.equal(f"{what}: the body", message.body, request.body)


def _judge_events(
    expect: Expectations, what: str, events: Sequence[Event], message_id: str, answers: Sequence[Answer],
    attempts: int,
) -> None:  # fmt: skip
    """Each attempt has an event before it, and one with its end."""
    expected = []
    for attempt in range(1, attempts + 1):
        common = {
            "msg_id": message_id, "topic": "A", "queue_id": 0, "group": "g", "client": "h@i", "keys": "k l",
            "attempt": attempt, "attrs": {"broker": "broker-a"},
        }  # fmt: skip
        answer = answers[attempt - 1]
        is_stored = "msgId" in answer.fields
        offset = int(answer.fields["queueOffset"]) if is_stored else None
        expected.append({**common, "kind": "send", "tags": "t", "queue_offset": None})
        kind = "send_ack" if is_stored else "send_fail"
        expected.append({**common, "kind": kind, "tags": None, "queue_offset": offset})
    names = expected[0] if expected else ()
    observed = [{name: getattr(event, name) for name in names} for event in events]
    for each in observed:  # the first event of a log names its schema too
        each["attrs"] = {name: value for name, value in each["attrs"].items() if name != "schema"}
    expect.equal(f"{what}: the number of events", len(expected), len(observed))
    for one, other in zip(expected, observed, strict=False):
        expect.equal(f"{what}: an event", one, other)
    expect.equal(f"{what}: events with a time of birth", True, all(event.born_ts for event in events))


async def _judge_failures(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Attempts without an answer, or with an invalid one."""
    loop = asyncio.get_running_loop()
    producer = Producer(session, ProducerConfig("g"))
    message = Message("A", b"x")
    for limit_ms, timeout_ms in ((3000, None), (700, 700)):
        servers.script("a", SEND, SILENCE)
        began_s = loop.time()
        outcome = await producer.send(message, timeout_ms=timeout_ms)
        took_ms = round((loop.time() - began_s) * 1000)
        expect.equal("silence: kind, attempts, time", ("Unknown", 1, limit_ms),
                     (type(outcome).__name__, outcome.attempts, took_ms))  # fmt: skip
    servers.script("a", SEND, Answer(2, after_s=2.0), Answer(2, after_s=0.9), SILENCE)
    began_s = loop.time()
    outcome = await producer.send(message)
    took_ms = round((loop.time() - began_s) * 1000)
    shown = (type(outcome).__name__, outcome.attempts, took_ms)
    expect.equal("slow refusals, then silence", ("Unknown", 3, 3000), shown)
    servers.script("a", SEND, Answer(0, {"queueId": "0"}))
    outcome = await producer.send(message)
    expect.equal("stored without a place", ("Unknown", 1), (type(outcome).__name__, outcome.attempts))
    servers.script("a", SEND, SILENCE, stored(0, 9))
    sending = asyncio.create_task(producer.send(message))
    await asyncio.sleep(0.5)
    servers.hang_up("a")
    outcome = await sending
    expect.equal("lost, then stored", ("Sent", 2), (type(outcome).__name__, outcome.attempts))
    await servers.stop_one("a")
    await asyncio.sleep(1.0)
    servers.take()
    outcome = await producer.send(message)
    expect.equal("no broker", ("Refused", "NOT_CONNECTED", 3),
                 (type(outcome).__name__, getattr(outcome, "status", ""), outcome.attempts))  # fmt: skip
    await asyncio.sleep(0.1)
    expect.equal(
        "the doubted route is requested", ["A"], [each.fields["topic"] for each in servers.take(_ROUTE)]
    )
    await expect.fails("one-way without a broker", ConnectError, producer.send_oneway(message))
    error = await expect.fails("send_or_raise without a broker", SendError, producer.send_or_raise(message))
    expect.equal("its outcome", "Refused", type(getattr(error, "outcome", None)).__name__)
    outcome = await producer.send(message, _QUEUE)
    expect.equal("a chosen queue", 1, outcome.attempts)
    await servers.start_one("a")


async def _judge_kinds(
    expect: Expectations, servers: ScriptedServers, session: Session, producer: Producer
) -> None:
    """Each way to send, and each limit of a message."""
    clock = session.runtime.clock
    servers.take()
    key = await producer.send_oneway(Message("A", b"x"))
    await asyncio.sleep(0.01)
    (seen,) = servers.take(SEND)
    expect.equal("one-way: kind and server", (True, "a"), (seen.is_oneway, seen.server))
    _judge_request(expect, "one-way", seen, Message("A", b"x"), key, now_ms(clock) - 10)
    sent = await producer.send_or_raise(Message("A", b"x", {"UNIQ_KEY": "own"}, born_timestamp_ms=5))
    expect.equal(
        "a key and a birth of the application",
        ("own", "5"),
        (sent.message_id, servers.take(SEND)[0].fields["g"]),
    )
    servers.script("b", SEND, stored(2, 4, transactionId="t", recallHandle="h"))
    queue = MessageQueue("T", "broker-b", 0)
    sent = await producer.send_or_raise(Message("T", b"x"), queue)
    place = (sent.queue, sent.queue_offset, sent.recall_handle)
    expect.equal("the queue of the answer", (MessageQueue("T", "broker-b", 2), 4, "h"), place)
    queues: list[Sequence[MessageQueue]] = []

    def select(known: Sequence[MessageQueue]) -> MessageQueue:
        queues.append(known)
        return known[1]

    sent = await producer.send_or_raise(Message("T", b"x"), select=select)
    all_of_t = [MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1), queue]
    expect.equal("the queues of a selector", (all_of_t, all_of_t[1]), (list(queues[0]), sent.queue))
    expect.equal("the queue by hash", all_of_t[ord("b") % 3], by_hash("b")(all_of_t))
    expect.equal(
        "the queue by a negative hash", all_of_t[-_java_hash("zzzzzzz") % 3], by_hash("zzzzzzz")(all_of_t)
    )
    sent_to = {(await producer.send_or_raise(Message("T", b"x"))).queue for _ in range(3)}
    expect.equal("the queues of three sends", set(all_of_t), sent_to)
    await _judge_batches(expect, servers, session, producer)
    servers.replies[SEND] = lambda request: Answer(0, stored(0, int(request.body)).fields, after_s=0.1)
    for outstanding, seconds in ((64, 0.1), (2, 0.3), (5, 0.1)):
        began_s = asyncio.get_running_loop().time()
        outcomes = await producer.send_many(
            [Message("A", b"%d" % n) for n in range(5)], outstanding=outstanding
        )
        took_s = asyncio.get_running_loop().time() - began_s
        expect.equal("many sends", list(range(5)), [getattr(each, "queue_offset", None) for each in outcomes])
        expect.equal("the time of many sends", seconds, round(took_s, 3))
    del servers.replies[SEND]
    await expect.fails("none outstanding", ValueError, producer.send_many([], outstanding=0))
    await _judge_sizes(expect, servers, session)


async def _judge_batches(
    expect: Expectations, servers: ScriptedServers, session: Session, producer: Producer
) -> None:
    servers.take()
    ids = f"{MESSAGE_ID},X"
    servers.script("a", _BATCH, Answer(0, {"msgId": ids, "queueId": "0", "queueOffset": "5"}))
    messages = [
        Message("A", b"1" * 5000, {"TAGS": "t", "WAIT": "false"}, flag=1),
        Message("A", b"2", {"WAIT": "false"}, flag=2),
    ]
    outcomes = await producer.send_batch(messages)
    (seen,) = servers.take(_BATCH)
    places = [(each.queue_offset, each.offset_message_id) for each in outcomes if isinstance(each, Sent)]
    expect.equal("the places of a batch", [(5, MESSAGE_ID), (6, "X")], places)
    expected = {
        "a": "g", "b": "A", "c": "TBW102", "d": "4", "e": "0", "f": "0", "h": "1", "j": "0", "k": "false",
        "m": "true", "g": str(now_ms(session.runtime.clock)),
    }  # fmt: skip
    fields = dict(seen.fields)
    expect.equal("the properties of a batch", {"WAIT": "false"}, dict(properties_of(fields.pop("i", ""))))
    expect.equal("the fields of a batch", expected, fields)
    parts = [(part.body, part.flag, dict(part.properties)) for part in decode_batch(seen.body, 2)]
    ids_of = [each.message_id for each in outcomes]
    inside = [
        (b"1" * 5000, 1, {"TAGS": "t", "UNIQ_KEY": ids_of[0]}), (b"2", 2, {"UNIQ_KEY": ids_of[1]}),
    ]  # fmt: skip
    expect.equal("the messages of a batch", inside, parts)
    refused = Answer(13, remark="r")
    servers.script("a", _BATCH, refused)
    outcomes = await producer.send_batch([Message("A", b"1"), Message("A", b"2")], _QUEUE)
    shown = [(type(each).__name__, each.attempts, getattr(each, "remark", "")) for each in outcomes]
    expect.equal("a batch that is refused", [("Refused", 1, "r")] * 2, shown)
    bad: tuple[list[Message], ...] = (
        [], [Message("A", b"1"), Message("T", b"2")],
        [Message("A", b"1"), Message("A", b"2", {"WAIT": "false"})],
        [Message("A", b"1", {"DELAY": "1"})], [Message("A", b"1", {"TIMER_DELAY_SEC": "1"})],
        [Message("A", b"1"), Message("A", b"")], [Message("%RETRY%g", b"1")],
    )  # fmt: skip
    for batch in bad:
        await expect.fails(f"a batch of {batch}", MessageError, producer.send_batch(batch))


async def _judge_sizes(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    usual, own = (
        Producer(session, ProducerConfig("g")),
        ProducerConfig("g", body_bytes_max=100, compress_from_bytes=50),
    )
    for producer, sizes in ((usual, (4095, 4096)), (Producer(session, own), (49, 50))):
        for size, flag in zip(sizes, (0, 0x301), strict=True):
            servers.take()
            await producer.send(Message("A", b"z" * size))
            (seen,) = servers.take(SEND)
            body = zlib.decompress(seen.body) if flag else seen.body
            expect.equal(f"{size} bytes", (str(flag), size), (seen.fields["f"], len(body)))
    small = Producer(session, own)
    compressed = Message("A", b"z" * 60, sys_flag=1)
    await small.send(compressed)
    expect.equal("a compressed body", b"z" * 60, servers.take(SEND)[-1].body)
    at_limit = await small.send(Message("A", b"z" * 100))
    expect.equal("a body at the limit", "Sent", type(at_limit).__name__)
    most = 32_767 - len("a\1\2UNIQ_KEY\1\2WAIT\1true") - 32
    bad = (
        Message("A", b"z" * 101), Message("A", b""), Message("A", "text"),  # type: ignore[arg-type]
        Message("a b", b"x"), Message("SCHEDULE_TOPIC_XXXX", b"x"), Message("A", b"x", {"a": "b\1"}),
        Message("A", b"x", {"a": 1}), Message("A", b"x", {"a": "v" * (most + 1)}),  # type: ignore[dict-item]
    )  # fmt: skip
    for message in bad:
        await expect.fails("a message that is not allowed", MessageError, small.send(message))
        await expect.fails("the same, one-way", MessageError, small.send_oneway(message))
        await expect.fails("the same among many", MessageError, small.send_many([message]))
    await expect.fails("a batch that is too long", MessageError, small.send_batch([Message("A", b"z" * 90)]))
    longest = await small.send(Message("A", b"x", {"a": "v" * most}))
    expect.equal("the longest properties", "Sent", type(longest).__name__)
    retry = Message("%RETRY%g", b"x", {"MAX_RECONSUME_TIMES": "4"}, reconsume_times=2)
    servers.routes["%RETRY%g"] = route({"a": 1})
    servers.take()
    await usual.send(retry)
    (seen,) = servers.take(SEND)
    expect.equal("the counts of a retry", ("2", "4"), (seen.fields["j"], seen.fields.get("l")))


async def _judge_routes(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Topics that do not exist, and queues that cannot be written."""
    producer = Producer(session, ProducerConfig("g"))
    new_queues = {(await producer.send_or_raise(Message("new", b"x"))).queue.queue_id for _ in range(8)}
    expect.equal("the queues of a new topic", {0, 1, 2, 3}, new_queues)
    few = Producer(session, ProducerConfig("g", default_topic_queues=2))
    servers.take()
    few_queues = {(await few.send_or_raise(Message("few", b"x"))).queue.queue_id for _ in range(4)}
    expect.equal(
        "the queues of another new topic", ({0, 1}, "2"), (few_queues, servers.take(SEND)[0].fields["d"])
    )
    other = Producer(session, ProducerConfig("g", default_topic="none"))
    outcome = await other.send(Message("nowhere", b"x"))
    expect.equal("a topic without a route", ("Refused", "NO_ROUTE", 0),
                 (type(outcome).__name__, getattr(outcome, "status", ""), outcome.attempts))  # fmt: skip
    await expect.fails("one-way without a route", NoRouteError, other.send_oneway(Message("nowhere", b"x")))
    servers.routes |= {
        "read-only": route({"a": 1}, 4), "no-master": route({"a": 1}, slave=True, masters=False),
        "ordered": route({"a": 1}, order="broker-b:2;broker-a:1;x"), "halves": route({"a": 3}, read=1),
    }  # fmt: skip
    for topic in ("read-only", "no-master"):
        outcome = await producer.send(Message(topic, b"x"))
        shown = (type(outcome).__name__, getattr(outcome, "status", ""))
        expect.equal(f"a topic that is {topic}", ("Refused", "NO_ROUTE"), shown)
    await expect.fails(
        "one-way without a master", NoRouteError,
        producer.send_oneway(Message("no-master", b"x"), MessageQueue("no-master", "broker-x", 0)),
    )  # fmt: skip
    for topic, count in (("ordered", 3), ("halves", 3)):
        queues: list[Sequence[MessageQueue]] = []

        def first(
            known: Sequence[MessageQueue], queues: list[Sequence[MessageQueue]] = queues
        ) -> MessageQueue:
            queues.append(known)
            return known[0]

        await producer.send(Message(topic, b"x"), select=first)
        expect.equal(f"the queues of the topic {topic}", count, len(queues[0]) if queues else 0)
        expect.equal("they are sorted", sorted(queues[0]), list(queues[0]))


async def _judge_recalls(expect: Expectations, servers: ScriptedServers, producer: Producer) -> None:
    handle = RecallHandle("T", "broker-a", 5, "K").encode()
    servers.take()
    await producer.recall("A", handle)
    (seen,) = servers.take(_RECALL)
    expected: Mapping[str, str] = {"topic": "A", "recallHandle": handle, "producerGroup": "g"}
    expect.equal("a recall", ("a", expected), (seen.server, seen.fields))
    servers.script("a", _RECALL, Answer(604, remark="gone"))
    error = await expect.fails("a recall that is refused", RefusalError, producer.recall("A", handle))
    expect.equal(
        "its code", (604, True), (getattr(error, "code", 0), "ILLEGAL_OPERATION: gone" in str(error))
    )
    await expect.fails("a recall with other text", MessageError, producer.recall("A", "x"))
    elsewhere = RecallHandle("T", "broker-x", 5, "K").encode()
    await expect.fails("a recall at no broker", NoRouteError, producer.recall("A", elsewhere))
    for options, seconds in (({}, 3.0), ({"timeout_ms": 500}, 0.5)):
        servers.script("a", _RECALL, SILENCE)
        began_s = asyncio.get_running_loop().time()
        await expect.fails(
            "no answer to a recall", RequestTimeoutError, producer.recall("A", handle, **options)
        )
        expect.equal("its time", seconds, round(asyncio.get_running_loop().time() - began_s, 3))


def _java_hash(text: str) -> int:
    value = 0
    for letter in text:
        value = (value * 31 + ord(letter)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value

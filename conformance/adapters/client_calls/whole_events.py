"""The events of clients with all of their fields: each send, and what a consumer does with messages.

See docs/reference/protocol/event-log.md, "Events of a client".
"""

import asyncio
from typing import Any, Final

import msgspec

from mqproof.conformance.adapters.client_calls.consuming import Listening
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import COMMIT, SEND, SEND_BACK, Feed
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    SILENCE,
    Answer,
    ScriptedServers,
    route,
    stored,
)
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import MessageQueue, RetryLater, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event

_BORN_MS: Final = 1_650_000_000_123
_Q: Final = MessageQueue("A", "broker-a", 0)


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (_sends, _ordered, _consumed, _pulled):
        feed.clear()
        session = await feed.session()
        events: list[Event] = []
        log = EventLog(events.append, "n", session.runtime.clock)
        await work(expect, feed, session, log, events)
        await session.stop()


def _taken(events: list[Event]) -> list[dict[str, Any]]:
    """Return the events without the fields of their log, and forget them."""
    found = [msgspec.to_builtins(each) for each in events]
    events.clear()
    for each in found:
        for name in ("ts", "seq", "node"):
            del each[name]
        each.get("attrs", {}).pop("schema", None)
    return found


async def _sends(
    expect: Expectations, feed: Feed, session: Session, log: EventLog, events: list[Event]
) -> None:
    """Each end of an attempt has its status; one-way has none."""
    producer = Producer(session, ProducerConfig("pg", retries=0), log)
    own = {"UNIQ_KEY": "U1", "KEYS": "k l", "TAGS": "t"}
    message = Message("A", b"1", own, born_timestamp_ms=_BORN_MS)
    common = {
        "msg_id": "U1", "topic": "A", "queue_id": 0, "group": "pg", "client": "h@i", "attempt": 1,
        "keys": "k l", "born_ts": _BORN_MS * 1000, "attrs": {"broker": "broker-a"},
    }  # fmt: skip
    begun = {**common, "kind": "send", "tags": "t"}
    ends: tuple[tuple[Answer, dict[str, Any]], ...] = (
        (stored(0, 9), {"kind": "send_ack", "status": "SEND_OK", "queue_offset": 9}),
        (stored(3, 9, 11),
         {"kind": "send_ack", "status": "SLAVE_NOT_AVAILABLE", "queue_offset": 9, "queue_id": 3}),
        (Answer(2), {"kind": "send_fail", "status": "SYSTEM_BUSY"}),
        (Answer(1), {"kind": "send_fail", "status": "unknown"}),
        (Answer(16, remark="AclException: no"), {"kind": "send_fail", "status": "NO_PERMISSION"}),
        (SILENCE, {"kind": "send_fail", "status": "unknown"}),
    )  # fmt: skip
    for answer, end in ends:
        feed.servers.script("a", SEND, answer)
        await producer.send(message, timeout_ms=200)
        expect.equal(f"the events of a send with {answer}", [begun, {**common, **end}], _taken(events))
    await producer.send_oneway(message)
    expect.equal("the events of one-way", [begun], _taken(events))
    await feed.servers.stop_one("a")
    await asyncio.sleep(0.1)
    await producer.send(message)
    lost = {**common, "kind": "send_fail", "status": "NOT_CONNECTED"}
    expect.equal("the events without a broker", [begun, lost], _taken(events))
    await feed.servers.start_one("a")
    await producer.send(message, MessageQueue("A", "broker-x", 0))
    expect.equal("the events without a master", [], _taken(events))


async def _ordered(
    expect: Expectations, feed: Feed, session: Session, log: EventLog, events: list[Event]
) -> None:
    """A queue in the order of a topic whose broker is away is tried, and then another one."""
    feed.servers.routes["O"] = route({"a": 1}, order="broker-a:1;broker-b:1")
    producer = Producer(session, ProducerConfig("pg"), log)
    outcomes = [await producer.send(Message("O", b"1")) for _ in range(4)]
    shown = [(each.queue, each.attempts) for each in outcomes if isinstance(each, Sent)]
    there = MessageQueue("O", "broker-a", 0)
    expect.equal("the queues of ordered sends", [there] * 4, [queue for queue, _ in shown])
    expect.equal("their attempts", {1, 2}, {attempts for _, attempts in shown})
    kinds = [(each["kind"], each["attempt"]) for each in _taken(events)]
    expected = [(kind, attempts) for _, attempts in shown for kind in ("send", "send_ack")]
    expect.equal("their events", expected, kinds)
    for retries, attempts in ((0, 1), (1, 2)):
        feed.servers.routes["P"] = route({"a": 1}, order="broker-b:1;broker-x:1")
        absent = Producer(session, ProducerConfig("pg", retries=retries))
        outcome: Any = await absent.send(Message("P", b"1"))
        expect.equal("a send to absent brokers", ("NO_ROUTE", attempts), (outcome.status, outcome.attempts))


async def _consumed(
    expect: Expectations, feed: Feed, session: Session, log: EventLog, events: list[Event]
) -> None:
    """What happens to three messages: one is consumed, one comes again, one is dead."""
    listening = Listening({b"1": [RetryLater()], b"2": [RetryLater(-1)]})
    feed.put(b"0", b"1", b"2", properties={"KEYS": "k"}, born_timestamp_ms=_BORN_MS)
    consumer = PushConsumer(session, "g", listening, PushConsumerConfig(concurrency=1), log)
    await consumer.subscribe("A", "t || u")
    await consumer.start()
    await asyncio.sleep(1)
    member = {"group": "g", "client": "h@i"}
    every = {"type": "TAG", "expression": "*"}
    begin: list[dict[str, Any]] = [
        {**member, "kind": "subscribe", "topic": "A", "attrs": {"type": "TAG", "expression": "t || u"}},
        {**member, "kind": "subscribe", "topic": "%RETRY%g", "attrs": every},
        {**member, "kind": "rebalance", "topic": "%RETRY%g", "attrs": {"queues": "1"}},
        {**member, "kind": "rebalance", "topic": "A", "attrs": {"queues": "1"}},
    ]
    ends = (("consume_ok",), ("consume_fail", "retry"), ("consume_fail", "dead_letter"))
    for number, kinds in enumerate(ends):
        common = {
            **member, "msg_id": f"K3{number}", "topic": "A", "queue_id": 0, "queue_offset": number,
            "commit_offset": 1000 + 100 * number, "keys": "k", "born_ts": _BORN_MS * 1000,
            "attrs": {"broker": "broker-a"},
        }  # fmt: skip
        begin += [{**common, "kind": "deliver", "tags": "t"}, *({**common, "kind": kind} for kind in kinds)]
    expect.equal("the events of a consumer", begin, _taken(events))
    feed.servers.take(SEND_BACK)
    await asyncio.sleep(4.2)
    committed = {
        **member, "kind": "offset_commit", "topic": "A", "queue_id": 0, "queue_offset": 3,
        "attrs": {"broker": "broker-a"},
    }  # fmt: skip
    of_topic = [each for each in _taken(events) if each["topic"] == "A"]
    expect.equal("the event of a commit", [committed], of_topic)
    feed.servers.script("a", COMMIT, Answer(1), Answer(1))
    await asyncio.sleep(5)
    expect.equal("the events of a refused commit", [], _taken(events))
    await consumer.unsubscribe("A")
    left = {**member, "kind": "unsubscribe", "topic": "A"}
    expect.equal("the event of unsubscribe", [left], _taken(events))
    await consumer.stop()
    found = [each for each in _taken(events) if each["kind"] == "unsubscribe"]
    expect.equal("the events of a stop", [{**left, "topic": "%RETRY%g"}], found)


async def _pulled(
    expect: Expectations, feed: Feed, session: Session, log: EventLog, events: list[Event]
) -> None:
    """A pull consumer records its selectors when they change, and its commits with the mark of a reset."""
    feed.put(b"0")
    consumer = PullConsumer(session, "g", log)
    member = {"group": "g", "client": "h@i", "topic": "A"}
    await consumer.queues("A")
    read = {**member, "kind": "rebalance", "attrs": {"queues": "1"}}
    expect.equal("the event of queues", [read], _taken(events))
    sql = MessageSelector.sql("p > 1")
    for tags, kind, text in (("x", "TAG", "x"), ("x", "", ""), (sql, "SQL92", "p > 1"), ("x", "TAG", "x")):
        await consumer.pull(_Q, 9, tags=tags)
        selected = {**member, "kind": "subscribe", "attrs": {"type": kind, "expression": text}}
        expect.equal(f"the events of a pull with {tags}", [selected] if kind else [], _taken(events))
    for reset in (False, True):
        await consumer.commit(_Q, 5, reset=reset)
        attrs = {"broker": "broker-a", **({"reset": "true"} if reset else {})}
        committed = {**member, "kind": "offset_commit", "queue_id": 0, "queue_offset": 5, "attrs": attrs}
        expect.equal(f"the event of a commit, reset {reset}", [committed], _taken(events))

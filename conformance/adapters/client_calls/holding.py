"""What a consumer holds: large answers, messages that take too long, and acknowledgements.

See docs/reference/protocol/messages.md, "Compression", and docs/reference/protocol/groups.md, "Push
consumers" and "Lite pull consumers".
"""

import asyncio
import zlib
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.consuming import Listening, consuming
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import COMMIT, SEND, SEND_BACK, Feed
from mqproof.conformance.adapters.client_calls.pulling import PULL, message, records
from mqproof.conformance.adapters.client_calls.scripted_servers import Answer, ScriptedServers, pulled, route
from mqproof.conformance.answers.stored_record import properties_of
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.model import MessageQueue, ReceivedMessage
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event

_MIB: Final = 1 << 20
_Q, _R = (MessageQueue("A", "broker-a", number) for number in (0, 1))
_NOTIFY, _PUSH_REPLY = 40, 326
_COUNT_MAX: Final = 4096


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (
        _many,
        _rooms,
        _overdue,
        _overdue_kept,
        _acknowledged,
        _in_turn,
        _assigned,
        _moving,
        _held_pull,
        _full,
    ):
        feed.clear()
        await work(expect, feed)


async def sizes(expect: Expectations, servers: ScriptedServers) -> None:
    """Answers with few bytes that have many when they are decompressed."""
    feed = Feed(servers)
    feed.clear()
    session = await feed.session()
    consumer = PullConsumer(session, "g")
    zeros = {count: zlib.compress(bytes(count), 1) for count in (32 * _MIB - 1, 32 * _MIB, 32 * _MIB + 1, 1)}
    cases: tuple[tuple[tuple[int, ...], int, int], ...] = (
        ((32 * _MIB + 1, 1), 2, 9), ((32 * _MIB, 32 * _MIB, 1), 2, 2), ((32 * _MIB, 32 * _MIB - 1, 1), 3, 9),
    )  # fmt: skip
    for counts, count, following in cases:
        packed = [message(zeros[each], sys_flag=1) for each in counts]
        servers.script("a", PULL, Answer(0, pulled(0, 9, 0, 9), records(*packed)))
        result = await consumer.pull(_Q, 0)
        held = [len(each.message.body) for each in result.messages]
        expected = [each if each <= 32 * _MIB else len(zeros[each]) for each in counts[:count]]
        expect.equal(f"the bodies of {counts}", (expected, following), (held, result.next_offset))
    several = [message(zeros[each], sys_flag=1) for each in (32 * _MIB, 32 * _MIB, 1)]
    expect.equal("the most bytes that are read at once", 2, len(list(read_records(records(*several[:2])))))
    expect.refused("one byte more", ValueError, lambda: list(read_records(records(*several))))
    producer = Producer(session, ProducerConfig("rg"))
    for count in (32 * _MIB, 32 * _MIB + 1):
        servers.take()
        asking = asyncio.create_task(producer.request(Message("A", b"q"), timeout_ms=900))
        await asyncio.sleep(0.1)
        correlation = dict(properties_of(servers.take(SEND)[0].fields["i"]))["CORRELATION_ID"]
        fields = {
            "producerGroup": "x", "topic": "t", "defaultTopic": "d", "defaultTopicQueueNums": "4",
            "queueId": "2", "sysFlag": "1", "bornTimestamp": "123", "flag": "9", "bornHost": "1.2.3.4:5",
            "storeHost": "1.2.3.4:5", "storeTimestamp": "124",
            "properties": f"CORRELATION_ID\1{correlation}\2",
        }  # fmt: skip
        await servers.push("a", _PUSH_REPLY, fields, zeros[count])
        whole = count if count <= 32 * _MIB else len(zeros[count])
        expect.equal(f"a reply with {count} bytes", whole, len((await asking).body))
    await session.stop()


async def _many(expect: Expectations, feed: Feed) -> None:
    """An answer with more messages than a consumer takes from one."""
    session = await feed.session()
    consumer = PullConsumer(session, "g")
    for count, taken, following in ((_COUNT_MAX, _COUNT_MAX, 9999), (_COUNT_MAX + 1, _COUNT_MAX, _COUNT_MAX)):
        many = records(*[message(b"x")] * count)
        feed.servers.script("a", PULL, Answer(0, pulled(0, 9999, 0, 9999), many))
        result = await consumer.pull(_Q, 0)
        expect.equal(
            f"the messages of {count}", (taken, following), (len(result.messages), result.next_offset)
        )
    await session.stop()


async def _rooms(expect: Expectations, feed: Feed) -> None:
    """A pull returns what there is room for, at least one message, and waits while there is none."""
    session = await feed.session()
    calls, loop = GroupRequests(session, "g"), asyncio.get_running_loop()
    packed = records(*[message(zlib.compress(b"abc"), sys_flag=1)] * 4)
    for room, count, following in ((1, 1, 1), (3, 1, 1), (5, 1, 1), (6, 2, 2), (9, 3, 3), (12, 4, 9)):
        feed.servers.script("a", PULL, Answer(0, pulled(0, 9, 0, 9), packed))
        result = await calls.pull(_Q, 0, room=lambda room=room: room)  # type: ignore[misc]
        expect.equal(
            f"the messages for {room} bytes", (count, following), (len(result.messages), result.next_offset)
        )
    began_s = loop.time()
    feed.servers.script("a", PULL, Answer(0, pulled(0, 9, 0, 9), packed))
    result = await calls.pull(_Q, 0, room=lambda: 1 if loop.time() - began_s > 0.22 else 0)
    expect.equal("the time until there is room", 0.25, round(loop.time() - began_s, 3))
    expect.equal("what there is room for", 1, len(result.messages))
    await session.stop()


async def _overdue(expect: Expectations, feed: Feed) -> None:
    """At most 16 messages of a queue are sent back at once because their listener takes too long."""
    listening = Listening({b"%d" % number: [100.0] for number in range(18)})
    loop = asyncio.get_running_loop()
    consumer, stop = await consuming(feed, PushConsumerConfig(consume_timeout_ms=10_000), listening)
    began_s = loop.time()
    await asyncio.sleep(0.5)
    feed.put(*(b"%d" % number for number in range(18)))
    await asyncio.sleep(36.5)
    seen = feed.servers.take()
    times = [round((each.at_s - began_s) / 10) for each in seen if each.code == SEND_BACK]
    expect.equal("when overdue messages are sent back", [2] * 16 + [3] * 2, times)
    expect.equal("the last commit", (0, 18, True), feed.commits(seen)[-1])
    await consumer.set_concurrency(1)
    began_s = loop.time()
    await consumer.stop()
    expect.equal("the time of a stop", 5.0, round(loop.time() - began_s, 3))
    await stop()


async def _overdue_kept(expect: Expectations, feed: Feed) -> None:
    """An overdue message that no broker takes stays, and is sent back again; its result counts."""
    listening = Listening({b"0": [35.0]})
    feed.servers.replies[SEND_BACK] = lambda _: Answer(1)
    feed.servers.replies[SEND] = lambda _: Answer(13)
    consumer, stop = await consuming(feed, PushConsumerConfig(consume_timeout_ms=10_000), listening)
    await asyncio.sleep(0.5)
    feed.put(b"0", b"1")
    await asyncio.sleep(33)
    seen = feed.servers.take()
    back = [each.fields["originMsgId"] for each in seen if each.code == SEND_BACK]
    expect.equal("the attempts to send it back", ["K30", "K30"], back)
    copies = [each for each in seen if each.code == SEND]
    expect.equal("the attempts to send a copy", 2, len(copies))
    expect.equal("the commits before its result", {0}, {offset for _, offset, _ in feed.commits(seen)})
    await asyncio.sleep(9)
    seen = feed.servers.take()
    expect.equal("the commit after its result", (0, 2, True), feed.commits(seen)[-1])
    expect.equal("the calls", [[b"0"], [b"1"]], [bodies for _, bodies, _ in listening.calls])
    feed.servers.replies.pop(SEND_BACK)
    feed.servers.replies.pop(SEND)
    await consumer.stop()
    await stop()


async def _lite(
    feed: Feed, events: list[Event] | None = None, **options: Any
) -> tuple[LitePullConsumer, Any]:
    session = await feed.session()
    log = None if events is None else EventLog(events.append, "n", session.runtime.clock)
    consumer = LitePullConsumer(session, "g", LitePullConfig(**options), log)
    await consumer.start()
    return consumer, session.stop


async def _acknowledged(expect: Expectations, feed: Feed) -> None:
    """Each acknowledgement counts for its queue; none counts for a queue that was lost or moved."""
    feed.clear(2)
    feed.put(b"0", b"1", b"2")
    feed.put(b"a", b"b", queue_id=1)
    events: list[Event] = []
    consumer, stop = await _lite(feed, events, limits=PullLimits(hold_ms=1000))
    await consumer.subscribe("A")
    got: dict[bytes, ReceivedMessage] = {}

    async def take() -> None:
        async for each in consumer.unacknowledged():
            got[each.body] = each

    taking = asyncio.create_task(take())
    await asyncio.sleep(7)  # the iteration goes on after a time without messages
    feed.put(b"3")
    await asyncio.sleep(2)
    expect.equal("what is yielded", [b"0", b"1", b"2", b"3", b"a", b"b"], sorted(got))
    expect.equal("the order", [b"0", b"a", b"1", b"b", b"2", b"3"], list(got))
    places = [(each.queue_id, each.queue_offset) for each in events if each.kind == "deliver"]
    expect.equal("the events", [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (0, 3)], places)
    await consumer.acknowledge(got[b"a"])
    feed.servers.take()
    await consumer.commit()
    expect.equal("the commit of one queue", [(1, 1, True)], feed.commits(feed.servers.take()))
    for body in (b"0", b"1"):
        await consumer.acknowledge(got[body])
    await consumer.commit()
    expect.equal(
        "the commits of both", [(0, 2, True), (1, 1, True)], sorted(feed.commits(feed.servers.take()))
    )
    old = got.pop(b"2")
    await consumer.seek(_Q, 3)
    await asyncio.sleep(1)
    expect.equal("an acknowledgement after a seek", False, await consumer.acknowledge(old))
    expect.equal("one of a message that is there again", True, await consumer.acknowledge(got[b"3"]))
    feed.servers.members = ["h@i", "x@y"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)
    expect.equal("the queues beside another member", [_Q], consumer.assignment())
    expect.equal("an acknowledgement of a lost queue", False, await consumer.acknowledge(got[b"b"]))
    await consumer.stop()
    await asyncio.sleep(0.1)
    expect.equal("the iteration ends", True, taking.done())
    await stop()


async def _in_turn(expect: Expectations, feed: Feed) -> None:
    """Topics are read soon after their subscription; polls take turns, and leave out paused queues."""
    feed.clear(2)
    feed.servers.routes["B"] = route({"b": 1})
    feed.servers.offsets["B", 0] = 0
    feed.put(b"0", b"1", b"2")
    feed.put(b"a", b"b", b"c", queue_id=1)
    events: list[Event] = []
    consumer, stop = await _lite(feed, events)
    for topic, queues in (("A", [_Q, _R]), ("B", [_Q, _R, MessageQueue("B", "broker-b", 0)])):
        await consumer.subscribe(topic)
        await asyncio.sleep(0.5)
        expect.equal(f"the queues after {topic}", queues, consumer.assignment())

    async def polled(count: int = 1) -> bytes:
        return b"".join(each.body for each in await consumer.poll(200, count))

    consumer.pause([_R])
    first = [await polled(), await polled()]
    expect.equal("the polls beside a paused queue", [b"0", b"1"], first)
    polling = asyncio.create_task(consumer.poll(3000, 5))
    await asyncio.sleep(0.1)
    expect.equal("a poll that has messages", [b"2"], [each.body for each in await polling])
    polling = asyncio.create_task(consumer.poll(3000, 2))
    await asyncio.sleep(0.5)
    consumer.resume([_R])
    await asyncio.sleep(0.01)
    expect.equal("whether a poll ends with a resume", True, polling.done())
    expect.equal("what it returns", [b"a", b"b"], [each.body for each in await polling])
    expect.equal("the next poll", b"c", await polled())
    expect.equal("the last poll", b"", await polled())
    kinds = [(each.kind, each.topic) for each in events if each.kind in ("subscribe", "unsubscribe")]
    expect.equal("the events of subscriptions", [("subscribe", "A"), ("subscribe", "B")], kinds)
    feed.servers.take()
    await consumer.stop()
    expect.equal(
        "the commits of a stop", [(0, 3, True), (1, 3, True)], sorted(feed.commits(feed.servers.take()))
    )
    await stop()


async def _moving(expect: Expectations, feed: Feed) -> None:
    """While the commit of a seek waits for its answer, nothing of the queue is delivered or acknowledged."""
    feed.put(*(b"%d" % number for number in range(8)))
    consumer, stop = await _lite(feed, commit_interval_ms=10**8)
    await consumer.subscribe("A")
    await asyncio.sleep(0.5)
    (first,) = await consumer.poll(500, 1)
    feed.servers.script("a", COMMIT, Answer(after_s=1.0))
    seeking = asyncio.create_task(consumer.seek(_Q, 5))
    await asyncio.sleep(0.1)
    expect.equal("an acknowledgement during a seek", False, await consumer.acknowledge(first))
    expect.equal("a poll during a seek", [], await consumer.poll(500, 1))
    await seeking
    expect.equal("a poll after it", [b"5"], [each.body for each in await consumer.poll(500, 1)])
    feed.servers.script("a", COMMIT, Answer(after_s=1.0))
    seeking = asyncio.create_task(consumer.seek(_Q, 2))
    await asyncio.sleep(0.1)
    feed.servers.members = ["a@b", "h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await seeking
    await asyncio.sleep(0.5)
    expect.equal("the queues after a loss during a seek", [], consumer.assignment())
    expect.equal("a poll after it", [], await consumer.poll(500, 1))
    await consumer.stop()
    await stop()


async def _held_pull(expect: Expectations, feed: Feed) -> None:
    """The answer to a pull that was held before a seek back moves no offset."""
    feed.put(b"0", b"1", b"2")
    consumer, stop = await _lite(feed, commit_interval_ms=10**8)
    await consumer.subscribe("A")
    await asyncio.sleep(0.5)
    await consumer.poll(500, 3)
    await consumer.commit()
    await consumer.seek(_Q, 1)
    feed.servers.take()
    await asyncio.sleep(2.5)
    await consumer.commit()
    expect.equal("the commit after a held pull", [(0, 1, True)], feed.commits(feed.servers.take()))
    await consumer.stop()
    await stop()


async def _full(expect: Expectations, feed: Feed) -> None:
    """While a queue is full, pulling pauses, also after a message of it was consumed."""
    listening = Listening({b"%d" % number: [0.5] for number in range(9)})
    feed.put(*(b"%d" % number for number in range(9)))
    config = PushConsumerConfig(concurrency=1, limits=PullLimits(batch=4, messages_max=1))
    consumer, stop = await consuming(feed, config, listening)
    feed.servers.take()
    await asyncio.sleep(1.25)
    expect.equal("the pulls while it is full", 1, _pulls(feed))
    await asyncio.sleep(0.5)
    expect.equal("the pulls when there is room", 1, _pulls(feed))
    await asyncio.sleep(4)
    expect.equal("what is consumed", [b"%d" % number for number in range(9)], listening.bodies)
    await consumer.stop()
    await stop()


def _pulls(feed: Feed) -> int:
    return len([each for each in feed.servers.take(PULL) if each.fields["topic"] == "A"])


async def _assigned(expect: Expectations, feed: Feed) -> None:
    """Queues that the application takes away are committed; those that stay go on where they are."""
    feed.clear(2)
    feed.put(b"0", b"1", b"2")
    feed.put(b"a", b"b", queue_id=1)
    events: list[Event] = []
    consumer, stop = await _lite(feed, events, commit_interval_ms=10**8)
    await consumer.assign([_R, _Q])
    await asyncio.sleep(0.5)
    for body in (b"0", b"a", b"1", b"b"):
        expect.equal("a poll", [body], [each.body for each in await consumer.poll(500, 1)])
    feed.servers.take()
    await consumer.assign([_Q])
    expect.equal(
        "the commit of a queue that is taken away", [(1, 1, True)], feed.commits(feed.servers.take())
    )
    expect.equal("the next poll", [b"2"], [each.body for each in await consumer.poll(500, 1)])
    await consumer.assign([_Q])
    await consumer.assign([_Q, _R])
    await asyncio.sleep(0.5)
    expect.equal("a queue that is back", [b"b"], [each.body for each in await consumer.poll(500, 1)])
    kinds = [(each.kind, each.topic, each.attrs.get("expression")) for each in events
             if each.kind in ("subscribe", "unsubscribe")]  # fmt: skip
    expect.equal("the events of assigned queues", [("subscribe", "A", "*")], kinds)
    await consumer.stop()
    await stop()

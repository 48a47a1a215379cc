"""Lite pull consumers and scheduled pulls at a scripted broker: what a poll returns, and what is committed.

See docs/reference/protocol/groups.md, "Lite pull consumers".
"""

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import Feed
from mqproof.conformance.adapters.client_calls.pulling import PULL
from mqproof.conformance.adapters.client_calls.scripted_servers import Answer, ScriptedServers
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, ReceivedMessage, RefusalError
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event

_Q: Final = MessageQueue("A", "broker-a", 0)
_R: Final = MessageQueue("A", "broker-a", 1)
_NOTIFY: Final = 40


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (
        _polls,
        _seeks,
        _assigns,
        _iterates,
        _acknowledges,
        _commits,
        _subscribes,
        _stores,
        _schedules,
    ):
        feed.clear(2)
        await work(expect, feed)


def bodies(messages: list[ReceivedMessage]) -> list[bytes]:
    return [each.body for each in messages]


async def _polls(expect: Expectations, feed: Feed) -> None:
    """Polls take turns between queues, each in its order; a poll commits the one before."""
    loop = asyncio.get_running_loop()
    feed.put(b"0", b"1", b"2", b"3")
    feed.put(b"a", b"b", queue_id=1)
    events: list[Event] = []
    session = await feed.session()
    consumer = LitePullConsumer(session, "g", events=EventLog(events.append, "n", session.runtime.clock))
    await consumer.start()
    await expect.fails("a poll without a subscription", ClientError, consumer.poll())
    expect.equal("no queues", [], consumer.assignment())
    await consumer.subscribe("A")
    await expect.fails("assign after subscribe", ClientError, consumer.assign([_Q]))
    await asyncio.sleep(1)
    expect.equal("the queues", [_Q, _R], consumer.assignment())
    expect.equal("the queues of the topic", [_Q, _R], await consumer.queues("A"))
    pulls = {
        (each.fields["maxMsgNums"], each.fields["suspendTimeoutMillis"]) for each in feed.servers.take(PULL)
    }
    expect.equal("the size and time of pulls", {("32", "20000")}, pulls)
    polls = [bodies(await consumer.poll(max_count=count)) for count in (1, 1, 2, 5, 5)]
    expect.equal("the polls", [[b"0"], [b"a"], [b"1", b"2"], [b"b"], [b"3"]], polls)
    delivered = [(each.queue_id, each.queue_offset) for each in events if each.kind == "deliver"]
    expect.equal("the events of deliveries", [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3)], delivered)
    await asyncio.sleep(5)
    committed = {each[0]: each for each in feed.commits(feed.servers.take())}
    expect.equal("the periodic commits", {0: (0, 3, True), 1: (1, 2, True)}, committed)
    began_s = loop.time()
    expect.equal("an empty poll", [], await consumer.poll(700))
    expect.equal("its time", 0.7, round(loop.time() - began_s, 2))
    began_s = loop.time()
    await consumer.poll()
    expect.equal("the usual time of a poll", 5.0, round(loop.time() - began_s, 2))
    polling = asyncio.create_task(consumer.poll(9000))
    await asyncio.sleep(0.1)
    feed.put(b"4")
    expect.equal("a poll that waits", [b"4"], bodies(await polling))
    feed.put(*(b"%d" % n for n in range(10, 25)))
    await asyncio.sleep(2)
    expect.equal("the usual size of a poll", 10, len(await consumer.poll()))
    feed.servers.take()
    await consumer.commit()
    expect.equal("a commit", [(0, 15, True), (1, 2, True)], sorted(feed.commits(feed.servers.take())))
    await consumer.poll(max_count=2)
    await consumer.stop()
    expect.equal("a stop commits no polled messages", [(0, 15, True), (1, 2, True)],
                 sorted(feed.commits(feed.servers.take())))  # fmt: skip
    await expect.fails("a poll after the stop", ClientError, consumer.poll())
    await session.stop()


async def _seeks(expect: Expectations, feed: Feed) -> None:
    feed.put(*(b"%d" % n for n in range(6)))
    session = await feed.session()
    consumer = LitePullConsumer(session, "g")
    await consumer.start()
    await consumer.subscribe("A")
    await asyncio.sleep(1)
    first = await consumer.poll(max_count=2)
    expect.equal("the first poll", [b"0", b"1"], bodies(first))
    for offset in (1, 4, 0):
        feed.servers.take()
        await consumer.seek(_Q, offset)
        expect.equal(
            f"the commit of a seek to {offset}", [(0, offset, False)], feed.commits(feed.servers.take())
        )
        expect.equal(
            f"the poll after a seek to {offset}", [b"%d" % offset], bodies(await consumer.poll(max_count=1))
        )
    await consumer.seek_to_end(_Q)
    expect.equal("a poll at the end", [], await consumer.poll(300))
    feed.servers.take()
    await consumer.seek_to_begin(_Q)
    asked = [each for each in feed.servers.take() if each.code == 31]
    expect.equal(
        "the request of the begin", [{"topic": "A", "queueId": "0"}], [each.fields for each in asked]
    )
    expect.equal("a poll at the begin", [b"0", b"1", b"2"], bodies(await consumer.poll(max_count=3)))
    await expect.fails(
        "a seek of another queue", ClientError, consumer.seek(MessageQueue("A", "broker-a", 7), 0)
    )
    feed.servers.script("a", 29, Answer(fields={"offset": "4"}))
    expect.equal("the offset for a time", 4, await consumer.offset_for_time(_Q, 123))
    asked = [each for each in feed.servers.take() if each.code == 29]
    expect.equal("its request", "123", asked[0].fields["timestamp"] if asked else None)
    await expect.fails("the offset for no time", TypeError, consumer.offset_for_time(_Q, 1.5))  # type: ignore[arg-type]
    feed.servers.offsets["A", 1] = 17
    expect.equal("the committed offset", 17, await consumer.committed(_R))
    await consumer.poll(100)
    consumer.pause([_Q])
    await consumer.seek(_Q, 2)
    expect.equal("a poll of a paused queue", [], await consumer.poll(300))
    consumer.resume([_R])
    expect.equal("a poll after another queue resumed", [], await consumer.poll(300))
    consumer.resume([_Q])
    expect.equal("a poll after it resumed", [b"2"], bodies(await consumer.poll(300, 1)))
    await consumer.stop()
    await consumer.stop()
    await session.stop()


async def _assigns(expect: Expectations, feed: Feed) -> None:
    feed.put(b"0", b"1")
    feed.put(b"a", b"b", queue_id=1)
    session = await feed.session()
    consumer = LitePullConsumer(session, "g", LitePullConfig(ConsumeFrom.FIRST_OFFSET))
    await consumer.start()
    await consumer.assign([_R])
    await expect.fails("subscribe after assign", ClientError, consumer.subscribe("A"))
    expect.equal("the assigned queue", [_R], consumer.assignment())
    expect.equal("its messages", [b"a"], bodies(await consumer.poll(max_count=1)))
    await consumer.commit()
    await consumer.assign([_Q, _R])
    expect.equal("both queues", [_Q, _R], consumer.assignment())
    await asyncio.sleep(0.5)
    got = [bodies(await consumer.poll(max_count=9)), bodies(await consumer.poll(max_count=9))]
    expect.equal("the messages of both", [[b"0", b"1"], [b"b"]], sorted(got))
    feed.servers.take()
    await consumer.assign([_Q])
    expect.equal("one queue", [_Q], consumer.assignment())
    expect.equal("no rebalance takes it back", [_Q], await _later(consumer, 45))
    await consumer.assign([])
    expect.equal("no queue", [], consumer.assignment())
    feed.servers.script("a", 14, Answer(2))
    await expect.fails("a queue whose offset is not known", RefusalError, consumer.assign([_Q]))
    await consumer.stop()
    await session.stop()


async def _later(consumer: LitePullConsumer, seconds: float) -> list[MessageQueue]:
    await asyncio.sleep(seconds)
    return consumer.assignment()


async def _iterates(expect: Expectations, feed: Feed) -> None:
    feed.put(b"0", b"1", b"2")
    session = await feed.session()
    got: list[bytes] = []
    async with LitePullConsumer(session, "g") as consumer:
        await consumer.subscribe("A")
        async for each in consumer:
            got.append(each.body)
            if len(got) == 2:
                break
        feed.servers.take()
    commits = [each for each in feed.commits(feed.servers.take()) if each[0] == 0]
    expect.equal("what an iteration yields", [b"0", b"1"], got)
    expect.equal("what the block commits", [(0, 2, True)], commits[-1:])
    again = LitePullConsumer(session, "g")
    try:
        async with again as consumer:
            await consumer.subscribe("A")
            async for _ in consumer:
                raise ValueError("the application fails")
    except ValueError:
        pass
    commits = [each for each in feed.commits(feed.servers.take()) if each[0] == 0]
    expect.equal("what a block that fails commits", [2], sorted({each[1] for each in commits} or {2}))
    expect.equal("the block stopped the consumer", "ClientError", await _kind(again.poll()))
    ended = LitePullConsumer(session, "g")
    await ended.start()
    await ended.subscribe("A")
    feed.servers.take()

    async def iterate() -> int:
        return len([each async for each in ended])

    iterating = asyncio.create_task(iterate())
    await asyncio.sleep(12)
    expect.equal("the iteration goes on", False, iterating.done())
    await ended.stop()
    await asyncio.sleep(0.1)
    expect.equal(
        "the iteration ends with the stop",
        (True, 1),
        (iterating.done(), iterating.done() and iterating.result()),
    )
    await session.stop()


async def _kind(work: Any) -> str:
    try:
        await work
    except Exception as error:  # returned
        return type(error).__name__
    return ""


async def _acknowledges(expect: Expectations, feed: Feed) -> None:
    """The committed offset stays at the first message that is not acknowledged."""
    feed.put(b"0", b"1", b"2", b"3")
    session = await feed.session()
    consumer = LitePullConsumer(session, "g", LitePullConfig(limits=PullLimits(hold_ms=1000)))
    await consumer.start()
    await consumer.subscribe("A")
    got: list[ReceivedMessage] = []

    async def take() -> None:
        async for each in consumer.unacknowledged():
            got.append(each)  # noqa: PERF401  # compared while it goes on

    taking = asyncio.create_task(take())
    await asyncio.sleep(2)
    expect.equal("what is not acknowledged", [b"0", b"1", b"2", b"3"], bodies(got))
    for place, offset in ((1, 0), (2, 0), (0, 3), (3, 4)):
        expect.equal("an acknowledgement", True, await consumer.acknowledge(got[place]))
        expect.equal("a second one", False, await consumer.acknowledge(got[place]))
        feed.servers.take()
        await consumer.commit()
        expect.equal(
            "its commit",
            [(0, offset, True)],
            [each for each in feed.commits(feed.servers.take()) if each[0] == 0],
        )
    await consumer.stop()
    await asyncio.sleep(0.1)
    expect.equal("the iteration ended", True, taking.done())
    await session.stop()


async def _commits(expect: Expectations, feed: Feed) -> None:
    """The interval of commits, and a consumer that commits on request only."""
    for auto, interval_ms, times in ((True, 2000, 5), (False, 2000, 0), (True, 5000, 2)):
        feed.clear(1)
        feed.put(b"0", b"1", b"2")
        session = await feed.session()
        config = LitePullConfig(auto_commit=auto, commit_interval_ms=interval_ms)
        consumer = LitePullConsumer(session, "g", config)
        await consumer.start()
        await consumer.subscribe("A")
        await consumer.poll(max_count=1)
        await consumer.poll(max_count=1)
        feed.servers.take()
        await asyncio.sleep(11)
        expect.equal("the number of commits", times, len(feed.commits(feed.servers.take())))
        await consumer.stop()
        expect.equal("commits of the stop", auto, (0, 1, True) in feed.commits(feed.servers.take()))
        await session.stop()


async def _subscribes(expect: Expectations, feed: Feed) -> None:
    """Another member takes queues; a refused expression leaves the subscription as it was."""
    feed.put(b"0")
    feed.put(b"a", queue_id=1)
    session = await feed.session()
    consumer = LitePullConsumer(session, "g")
    await consumer.start()
    await consumer.subscribe("A", "t || u")
    await asyncio.sleep(1)
    await consumer.poll()
    seen = {each.fields["subscription"] for each in feed.servers.take(PULL)}
    expect.equal("the expression of pulls", {"t || u"}, seen)
    feed.servers.script("a", 46, Answer(23, remark="r"))
    await expect.fails(
        "a refused expression", RefusalError, consumer.subscribe("A", MessageSelector.sql("p > 1"))
    )
    await expect.fails("tags that are none", ValueError, consumer.subscribe("A", "a = 1"))
    await asyncio.sleep(1.5)
    feed.servers.take()
    await asyncio.sleep(2)
    expect.equal(
        "the expression stays", {"t || u"}, {each.fields["subscription"] for each in feed.servers.take(PULL)}
    )
    feed.servers.members = ["a@b", "h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)
    expect.equal("the queues beside another member", [_R], consumer.assignment())
    feed.servers.members = ["h@i", "x@y"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)
    expect.equal("the queues beside yet another", [_Q], consumer.assignment())
    await consumer.stop()
    await session.stop()


class _Store:
    """A store of offsets that an application provides."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails = False

    async def load(self, queue: MessageQueue) -> int | None:
        self.calls.append(("load", queue.queue_id))
        if self.fails:
            raise OSError("no disk")
        return 1 if queue == _Q else None

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        self.calls.append(("save", {queue.queue_id: offset for queue, offset in offsets.items()}, reset))
        if self.fails:
            raise OSError("no disk")

    async def release(self, queue: MessageQueue, offset: int) -> None:
        self.calls.append(("release", queue.queue_id, offset))


async def _stores(expect: Expectations, feed: Feed) -> None:
    """Offsets in a store of the application, also one that fails."""
    feed.put(b"0", b"1", b"2")
    session = await feed.session()
    store = _Store()
    consumer = LitePullConsumer(session, "g", LitePullConfig(ConsumeFrom.FIRST_OFFSET, offset_store=store))
    await consumer.start()
    await consumer.subscribe("A")
    await asyncio.sleep(0.5)
    calls = sorted(map(str, store.calls))
    expect.equal("the calls at the start", ["('load', 0)", "('load', 1)", "('save', {1: 0}, False)"], calls)
    expect.equal("the first message", [b"1"], bodies(await consumer.poll(max_count=1)))
    store.calls.clear()
    await consumer.commit()
    expect.equal("the call of a commit", [("save", {1: 0, 0: 2}, False)], store.calls)
    store.calls.clear()
    await consumer.seek(_Q, 0)
    expect.equal("the call of a seek", [("save", {0: 0}, True)], store.calls)
    store.fails = True
    await consumer.seek(_Q, 1)
    store.calls.clear()
    await consumer.commit()
    store.fails = False
    await consumer.commit()
    await consumer.commit()
    expected = [("save", {0: 1}, True), ("save", {1: 0}, False)]
    both = ("save", {1: 0, 0: 1}, False)
    expect.equal("the calls after a failure", [*expected, expected[0], both, both], store.calls)
    store.calls.clear()
    feed.servers.members = ["a@b", "h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)
    expect.equal("the call for a lost queue", [("release", 0, 1)], store.calls)
    store.fails = True
    feed.servers.members = ["h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)
    expect.equal("a queue whose offset cannot be loaded", [_R], consumer.assignment())
    store.fails = False
    await asyncio.sleep(4)
    expect.equal("it is read later", [_Q, _R], consumer.assignment())
    expect.equal("commits at the broker", [], feed.commits(feed.servers.take()))
    await consumer.stop()
    push = PushConsumer(session, "g", lambda _: None, PushConsumerConfig(offset_store=store, concurrency=1))
    await push.subscribe("A")
    store.calls.clear()
    await push.start()
    await asyncio.sleep(6)
    expect.equal(
        "the last call of a push consumer",
        {0: 3, 1: 0},
        {q: o for q, o in store.calls[-1][1].items() if q in (0, 1)},
    )
    await push.stop()
    await session.stop()


async def _schedules(expect: Expectations, feed: Feed) -> None:
    """Tasks run for each queue, with the pause that they return, and end with the queue."""
    session = await feed.session()
    service = ScheduledPull(session, "g")
    calls: list[tuple[float, int]] = []
    pauses: dict[int, list[Any]] = {0: [300, None, ValueError("x"), 1000], 1: [60_000]}

    async def task(consumer: PullConsumer, queue: MessageQueue) -> int | None:
        calls.append((asyncio.get_running_loop().time(), queue.queue_id))
        pause = pauses[queue.queue_id].pop(0) if pauses[queue.queue_id] else 60_000
        if isinstance(pause, Exception):
            raise pause
        await consumer.committed(queue)
        return pause

    await service.start()
    await expect.fails("a second start", ClientError, service.start())
    await expect.fails("a task that is none", TypeError, service.register("A", 1))  # type: ignore[arg-type]
    await expect.fails("a topic that is not allowed", ValueError, service.register("a b", task))
    await service.register("A", task)
    await asyncio.sleep(5)
    times = [at_s for at_s, queue_id in calls if queue_id == 0]
    gaps = [round(after - before, 2) for before, after in pairwise(times)]
    expect.equal("the pauses of a task", [0.3, 0.2, 0.2, 1.0], gaps)
    expect.equal("the calls of the other queue", 1, len([each for each in calls if each[1] == 1]))
    feed.servers.members = ["a@b", "h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(61)
    expect.equal("calls for a lost queue", 5, len([each for each in calls if each[1] == 0]))
    expect.equal("calls for a kept queue", 2, len([each for each in calls if each[1] == 1]))
    feed.servers.take()
    service.reset_offsets("A", {_R: 5, _Q: 6})
    service.reset_offsets("B", {_R: 7})
    await asyncio.sleep(0.1)
    expect.equal("the commits of a reset", [(1, 5, False)], feed.commits(feed.servers.take()))
    await service.stop()
    await service.stop()
    count = len(calls)
    await asyncio.sleep(70)
    expect.equal("calls after the stop", count, len(calls))
    await expect.fails("register after the stop", ClientError, service.register("A", task))
    await session.stop()

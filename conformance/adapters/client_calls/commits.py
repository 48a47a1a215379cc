"""Offsets that a member commits: at which broker, when, and what follows if the broker refuses them.

See docs/reference/protocol/offsets.md, "Offset requests", and docs/reference/protocol/groups.md, "Push
consumers".
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.consuming import Listening, consuming
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import COMMIT, LOCK, UNLOCK, Feed, queues_in
from mqproof.conformance.adapters.client_calls.scripted_servers import Answer, ScriptedServers, Seen, route
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event

_QUERY, _NOTIFY, _BEAT, _ROUTE = 14, 40, 34, 105
_Q: Final = MessageQueue("A", "broker-a", 0)
_NEVER_MS: Final = 10**8


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (
        _pull_commits,
        _without_master,
        _no_locks,
        _released,
        _unconfirmed,
        _of_the_application,
        _beside,
        _stopped_in_order,
    ):
        feed.clear()
        await work(expect, feed)


async def _pull_commits(expect: Expectations, feed: Feed) -> None:
    """A pull consumer greets the broker before its first commit; no slave receives a commit."""
    session = await feed.session()
    consumer = PullConsumer(session, "g")
    await consumer.queues("A")
    for codes in ([_BEAT, COMMIT], [COMMIT]):
        feed.servers.take()
        await consumer.commit(_Q, 1)
        expect.equal("the requests of a commit", codes, [each.code for each in feed.servers.take()])
    await session.stop()
    feed.servers.routes["A"] = route({"a": 1}, slave=True, masters=False)
    session = await feed.session()
    consumer = PullConsumer(session, "g")
    await consumer.queues("A")
    await asyncio.sleep(1)
    feed.servers.take()
    error = await expect.fails("a commit without a master", ClientError, consumer.commit(_Q, 2))
    expect.equal("its text", "A@broker-a:0: no master of that name is known", str(error))
    await asyncio.sleep(0.1)
    seen = [(each.server, each.code) for each in feed.servers.take()]
    expect.equal("its requests", [("a-slave", _BEAT), ("names-1", _ROUTE)], seen)
    elsewhere = MessageQueue("A", "broker-x", 0)
    error = await expect.fails("an offset at no broker", ClientError, consumer.min_offset(elsewhere))
    expect.equal("its text", "A@broker-x:0: no broker of that name is known", str(error))
    await session.stop()


async def _without_master(expect: Expectations, feed: Feed) -> None:
    """A member reads from a slave, and keeps its offset until there is a master."""
    listening = Listening()
    feed.put(b"0", b"1")
    usual = feed.servers.routes
    feed.servers.routes = {topic: route({"a": 1}, slave=True, masters=False) for topic in usual}
    consumer, stop = await consuming(feed, PushConsumerConfig(), listening)
    await asyncio.sleep(6)
    expect.equal("what is read from a slave", [b"0", b"1"], listening.bodies)
    seen = feed.servers.take()
    expect.equal("the commits without a master", [], [each for each in seen if each.code == COMMIT])
    feed.servers.routes = usual
    await asyncio.sleep(10)
    committed = [(each.server, each.fields["commitOffset"]) for each in feed.servers.take(COMMIT)
                 if each.fields["topic"] == "A"]  # fmt: skip
    expect.equal("the first commit to the master", ("a", "2"), next(iter(committed), None))
    await consumer.stop()
    await stop()


async def _no_locks(expect: Expectations, feed: Feed) -> None:
    """Only a master manages locks; while there is none, no queue is read in order."""
    listening = Listening()
    feed.put(b"0")
    usual = feed.servers.routes
    feed.servers.routes = {topic: route({"a": 1}, slave=True, masters=False) for topic in usual}
    consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True), listening)
    await asyncio.sleep(6)
    expect.equal("what is read in order from a slave", [], listening.bodies)
    expect.equal("the locks without a master", [], feed.servers.take(LOCK, UNLOCK))
    feed.servers.routes = usual
    await asyncio.sleep(10)
    expect.equal("what is read in order from the master", [b"0"], listening.bodies)
    locking = {each.server for each in feed.servers.take(LOCK)}
    expect.equal("the brokers that receive requests for locks", {"a"}, locking)
    feed.servers.routes = {topic: route({"a": 1}, slave=True, masters=False) for topic in usual}
    await asyncio.sleep(31)
    feed.servers.take()
    await consumer.stop()
    expect.equal("the unlocks without a master", [], feed.servers.take(COMMIT, UNLOCK))
    await stop()


async def _released(expect: Expectations, feed: Feed) -> None:
    """The last offset of a lost queue is stored only if it is ahead of the broker's."""
    cases: tuple[tuple[Answer, list[tuple[int, int, bool]]], ...] = (
        (Answer(fields={"offset": "0"}), [(0, 1, True)]), (Answer(fields={"offset": "1"}), []),
        (Answer(fields={"offset": "2"}), []), (Answer(22), [(0, 1, True)]), (Answer(2), []),
    )  # fmt: skip
    for known, commits in cases:
        feed.clear()
        feed.put(b"0", b"1", b"2")
        config = PushConsumerConfig(concurrency=1)
        consumer, stop = await consuming(feed, config, Listening({b"1": [5.0]}))
        await asyncio.sleep(1)
        feed.servers.take()

        def answered(seen: Seen, known: Answer = known) -> Answer:
            return known if seen.fields["topic"] == "A" else Answer(fields={"offset": "0"})

        feed.servers.replies[_QUERY] = answered
        await _lose(feed)
        seen = feed.servers.take()
        expect.equal(f"the commits of a lost queue at {known}", commits, feed.commits(seen))
        asked = [each.fields for each in seen if each.code == _QUERY and each.fields["topic"] == "A"]
        fields = {"consumerGroup": "g", "topic": "A", "queueId": "0"}
        expect.equal("the query before", [fields], asked)
        del feed.servers.replies[_QUERY]
        await consumer.stop()
        await stop()


async def _lose(feed: Feed) -> None:
    """Let another member get the queue."""
    feed.servers.members = ["a@b", "h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)


async def _regain(feed: Feed) -> None:
    feed.servers.members = ["h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)


async def _lite(session: Session, config: LitePullConfig, events: EventLog | None = None) -> LitePullConsumer:
    consumer = LitePullConsumer(session, "g", config, events)
    await consumer.start()
    await consumer.subscribe("A")
    await asyncio.sleep(1)
    return consumer


async def _unconfirmed(expect: Expectations, feed: Feed) -> None:
    """A seek is sent as a reset until the broker confirms it, or until the queue is lost."""
    servers = feed.servers
    feed.put(*(b"%d" % number for number in range(8)))
    session = await feed.session()
    seen_events: list[Event] = []
    log = EventLog(seen_events.append, "n", session.runtime.clock)
    consumer = await _lite(session, LitePullConfig(commit_interval_ms=_NEVER_MS), log)

    async def commits() -> list[tuple[int, int, bool]]:
        servers.take()
        await consumer.commit()
        return feed.commits(servers.take())

    expect.equal("the commits of a queue that is read first", [], await commits())
    await consumer.poll(max_count=6)
    servers.script("a", COMMIT, Answer(1, remark="r"), Answer(1, remark="r"))
    servers.take()
    await consumer.seek(_Q, 2)
    expect.equal("the commit of a seek", [(0, 2, False)], feed.commits(servers.take()))
    for offset, forward in ((2, False), (2, False), (2, True)):
        expect.equal("a commit after a refused seek", [(0, offset, forward)], await commits())
    marks = [(each.queue_offset, each.attrs.get("reset")) for each in seen_events
             if each.kind == "offset_commit"]  # fmt: skip
    expect.equal("the events of commits", [(2, "true"), (2, None)], marks)
    servers.script("a", COMMIT, Answer(1), Answer(1))
    await consumer.seek(_Q, 3)
    await consumer.poll(max_count=4)
    expect.equal("a refused commit", [(0, 7, False)], await commits())
    servers.take()
    await _lose(feed)
    expect.equal("the commit of a lost queue", [(0, 7, True)], feed.commits(servers.take()))
    last = [each for each in seen_events if each.kind == "offset_commit"][-1]
    expect.equal("the event of it", (7, None), (last.queue_offset, last.attrs.get("reset")))
    expect.equal("the commits without a queue", [], await commits())
    await consumer.stop()
    await session.stop()


class _Store:
    """A store of an application that can fail."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails = False

    async def load(self, _queue: MessageQueue) -> int | None:
        return 2

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        self.calls.append((dict(offsets), reset))
        if self.fails:
            raise OSError("no disk")

    async def release(self, queue: MessageQueue, offset: int) -> None:
        self.calls.append((queue, offset))


async def _of_the_application(expect: Expectations, feed: Feed) -> None:
    """A reset that could not be stored is forgotten with its queue."""
    store = _Store()
    feed.put(*(b"%d" % number for number in range(8)))
    session = await feed.session()
    config = LitePullConfig(ConsumeFrom.FIRST_OFFSET, offset_store=store, commit_interval_ms=_NEVER_MS)
    consumer = await _lite(session, config)
    expect.equal("the calls before a poll", [], store.calls)
    expect.equal("the first message", [b"2"], [each.body for each in await consumer.poll(max_count=1)])
    store.fails = True
    await consumer.seek(_Q, 5)
    await _lose(feed)
    store.fails = False
    await consumer.commit()
    expect.equal("the calls for a lost queue", [({_Q: 5}, True), (_Q, 5)], store.calls)
    store.calls.clear()
    await _regain(feed)
    await consumer.poll(max_count=1)
    await consumer.commit()
    expect.equal("the calls when it is back", [({_Q: 3}, False)], store.calls)
    store.calls.clear()
    await consumer.stop()
    expect.equal("the calls of a stop", [({_Q: 3}, False)], store.calls)
    await session.stop()


async def _stopped_in_order(expect: Expectations, feed: Feed) -> None:
    """A stop waits for the listener of a queue, for a time, and then passes it no further message."""
    loop = asyncio.get_running_loop()
    for listen_s, committed, took_s in ((3.0, 2, 2.0), (30.0, 1, 5.0)):
        feed.clear()
        listening = Listening({b"1": [listen_s]})
        feed.put(b"0", b"1", b"2")
        consumer, stop = await consuming(feed, PushConsumerConfig(orderly=True), listening)
        await asyncio.sleep(1)
        feed.servers.take()
        began_s = loop.time()
        await consumer.stop()
        expect.equal("the time of a stop in order", took_s, round(loop.time() - began_s, 2))
        seen = feed.servers.take()
        expect.equal("the commit of a stop in order", (0, committed, True), feed.commits(seen)[-1])
        unlocked = [queues_in(each.body) for each in seen if each.code == UNLOCK]
        expect.equal("the unlocks of a stop in order", [[0, 0]], unlocked)
        expect.equal("what it consumes", [b"0", b"1"], listening.bodies)
        await stop()
        await asyncio.sleep(40)
        expect.equal("what it consumes later", [b"0", b"1"], listening.bodies)


async def _beside(expect: Expectations, feed: Feed) -> None:
    """A consumer that stops ends its pulls, its commits and its rounds; the others of its session go on."""
    servers = feed.servers
    feed.put(b"0")
    session = await feed.session()
    push, lite = PushConsumer(session, "g", Listening()), LitePullConsumer(session, "h")
    service, stays = ScheduledPull(session, "i"), PushConsumer(session, "j", Listening())
    for consumer in (push, lite, service, stays):
        if not isinstance(consumer, LitePullConsumer | ScheduledPull):
            await consumer.subscribe("A")
        await consumer.start()
    await lite.subscribe("A")
    await service.register("A", _minute)
    await asyncio.sleep(2)
    for stopped, group in ((push, "g"), (lite, "h"), (service, "i")):
        await stopped.stop()
        await asyncio.sleep(0.1)
        servers.take()
        await asyncio.sleep(31)
        groups = {each.fields["consumerGroup"] for each in servers.take() if "consumerGroup" in each.fields}
        expect.equal(f"whether {group} sends requests", (False, True), (group in groups, "j" in groups))
        again = LitePullConsumer(session, group)
        await again.start()
        await again.stop()
    await stays.stop()
    await session.stop()


async def _minute(_consumer: PullConsumer, _queue: MessageQueue) -> int:
    return 60_000

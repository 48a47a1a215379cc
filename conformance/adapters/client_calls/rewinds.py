"""Lite pull consumers whose queue moves, or leaves them, between two polls: what is delivered and committed.

See docs/reference/protocol/groups.md, "Lite pull consumers".
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import Feed
from mqproof.conformance.adapters.client_calls.scripted_servers import ScriptedServers
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.bodies import QueueOffsets
from mqproof.impl.remoting.java_json import ObjectKey, write

_Q: Final = MessageQueue("A", "broker-a", 0)
_NOTIFY, _RESET = 40, 220
_COUNT: Final = 8

_Move = Callable[[LitePullConsumer, int], Awaitable[None]]


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for move in (_seek, _reset(feed)):
        for offset in (0, 1, 4, 6):
            feed.clear(1)
            await _moved(expect, feed, move, offset)
    feed.clear(1)
    await _lost(expect, feed)


async def _seek(consumer: LitePullConsumer, offset: int) -> None:
    await consumer.seek(_Q, offset)


def _reset(feed: Feed) -> _Move:
    async def reset(_consumer: LitePullConsumer, offset: int) -> None:
        table = {ObjectKey({"topic": "A", "brokerName": "broker-a", "queueId": 0}): offset}
        fields = {"topic": "A", "group": "g", "timestamp": "0", "isForce": "true"}
        feed.servers.push_oneway("a", _RESET, fields, write(QueueOffsets(table)))
        await asyncio.sleep(0.5)

    return reset


async def _moved(expect: Expectations, feed: Feed, move: _Move, offset: int) -> None:
    """Poll, move, poll: the messages of the first poll count no more, those of the second one as always."""
    feed.put(*(b"%d" % number for number in range(_COUNT)))
    session = await feed.session()
    consumer = LitePullConsumer(session, "g", LitePullConfig(commit_interval_ms=1000))
    await consumer.start()
    await consumer.subscribe("A")
    await asyncio.sleep(1)
    first = await consumer.poll(max_count=3)
    expect.equal("the first poll", [b"0", b"1", b"2"], [each.body for each in first])
    await move(consumer, offset)
    for at in (offset, offset + 1):
        polled = await consumer.poll(max_count=1)
        expect.equal(f"a poll after a move to {offset}", [b"%d" % at], [each.body for each in polled])
        feed.servers.take()
        await asyncio.sleep(2)
        expect.equal(f"the commit after a move to {offset}", (0, at), _last_commit(feed))
    await consumer.stop()
    expect.equal(f"the commit of a stop after a move to {offset}", (0, offset + 1), _last_commit(feed))
    await session.stop()


def _last_commit(feed: Feed) -> tuple[int, int] | None:
    """Return the queue and the offset of the last commit."""
    commits = feed.commits(feed.servers.take())
    return commits[-1][:2] if commits else None


async def _lost(expect: Expectations, feed: Feed) -> None:
    """Another member gets the queue after a poll: the next poll commits nothing of it."""
    feed.put(*(b"%d" % number for number in range(_COUNT)))
    session = await feed.session()
    consumer = LitePullConsumer(session, "g")
    await consumer.start()
    await consumer.subscribe("A")
    await asyncio.sleep(1)
    for count in (2, 3):
        await consumer.poll(max_count=count)
    feed.servers.members = ["a@b", "h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(0.5)
    expect.equal("the queues after a member joined", [], consumer.assignment())
    expect.equal("the last commit", (0, 2), _last_commit(feed))
    expect.equal("a poll without a queue", [], await consumer.poll(500))
    await consumer.commit()
    await asyncio.sleep(6)
    expect.equal("commits of a queue that was lost", [], feed.commits(feed.servers.take()))
    feed.servers.members = ["h@i"]
    feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
    await asyncio.sleep(1)
    again = await consumer.poll(max_count=1)
    expect.equal("the poll when it is back", [b"2"], [each.body for each in again])
    await consumer.stop()
    expect.equal("the stored offset after the stop", 2, feed.servers.offsets["A", 0])
    await session.stop()

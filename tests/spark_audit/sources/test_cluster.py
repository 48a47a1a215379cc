"""A running cluster is read within bounds; what cannot be read is named and never taken as empty."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqproof.client import ConsumeFrom, Producer, PushConsumer, PushConsumerConfig, new_message
from mqproof.impl.admin.admin import Admin
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.runtime.network import Address
from mqproof.spark_audit.sources.cluster import Bounds, Collected, collect
from mqproof.spec.events import Event, EventError, Kind, decode

Work = Callable[[EmbeddedBroker, Admin], Awaitable[None]]


async def _prepared(broker: EmbeddedBroker, admin: Admin) -> None:
    """Send 40 messages, of which a group has consumed all, and then 10 more."""
    async with broker.client() as session, broker.client() as other:
        producer = Producer(session)
        for number in range(40):
            await producer.send_or_raise(new_message("Orders", b"x", tag="ab"[number % 2], keys="k"))
        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET, trace_topic="RMQ_SYS_TRACE_TOPIC")
        consumer = PushConsumer(other, "billing", lambda _: None, config)
        async with consumer:
            await consumer.subscribe("Orders", "a")
            await broker.clock.advance(seconds=40)
        for _ in range(10):
            await producer.send_or_raise(new_message("Orders", b"x", tag="a"))


def _collected(
    folder: Path,
    bounds: Bounds | None = None,
    *,
    before: Work | None = None,
    during: Callable[[EmbeddedBroker, str], None] = lambda *_: None,
) -> Collected:
    async def main() -> Collected:
        async with EmbeddedBroker() as broker:
            runtime = broker._runtime
            assert runtime is not None
            async with Admin([Address.parse(broker.name_server)], runtime) as admin:
                await _prepared(broker, admin)
                if before:
                    await before(broker, admin)
                return await collect(admin, bounds or Bounds(), folder, lambda text: during(broker, text))

    return asyncio.run(main())


def _events(collected: Collected) -> tuple[list[Event], list[bytes]]:
    """Return the events, and the lines that are none."""
    events, others = [], []
    for line in collected.events.read_bytes().splitlines():
        try:
            events.append(decode(line, "line"))
        except EventError:
            others.append(line)
    return events, others


def test_messages_offsets_and_traces_are_read(tmp_path: Path) -> None:
    collected = _collected(tmp_path)
    events, others = _events(collected)
    appended = [event for event in events if event.kind is Kind.APPEND and event.topic == "Orders"]
    assert (len(appended), others, collected.missing) == (50, [], ())
    assert {(event.tags, event.keys) for event in appended} == {("a", "k"), ("b", "k"), ("a", None)}
    assert [event.seq for event in events] == list(range(1, len(events) + 1))  # the beginning is not known
    assert [event.ts for event in events] == sorted(event.ts for event in events)
    assert sum(event.kind is Kind.OFFSET_COMMIT and event.topic == "Orders" for event in events) == 4
    assert ("billing", "Orders", 10, 0, 0) in collected.waiting
    assert collected.traces is not None
    assert collected.traces.read_bytes().count(b"SubAfter") == 20
    assert collected.settings["flushDiskType"] == "ASYNC_FLUSH"
    assert (
        collected.origins[1]
        == "50 messages, the newest of each queue; 0 older ones were not read (--messages)"
    )


def test_the_newest_messages_are_read_within_bounds(tmp_path: Path) -> None:
    collected = _collected(tmp_path, Bounds(messages_max=12))
    events, _ = _events(collected)
    offsets = [event.queue_offset for event in events if event.kind is Kind.APPEND]
    assert (len(offsets), min(offset or 0 for offset in offsets) > 5) == (12, True)
    assert "38 older ones were not read" in collected.origins[1]
    nothing = _collected(tmp_path, Bounds(topics=("Tea*",)))
    assert [event.kind for event in _events(nothing)[0]] == []


def test_the_subscriptions_of_members_are_read(tmp_path: Path) -> None:
    async def join(broker: EmbeddedBroker, admin: Admin) -> None:
        session = await broker.client().__aenter__()
        consumer = await PushConsumer(session, "billing", lambda _: None).__aenter__()
        await consumer.subscribe("Orders", "a || b")
        await broker.clock.advance(seconds=20)

    events, _ = _events(_collected(tmp_path, before=join))
    (event,) = [each for each in events if each.kind is Kind.SUBSCRIBE and each.topic == "Orders"]
    assert (event.group, event.attrs["expression"]) == ("billing", "a || b")


def test_a_broker_that_goes_away_is_named_and_its_queues_decide_nothing(tmp_path: Path) -> None:
    def stop(broker: EmbeddedBroker, text: str) -> None:
        if text.startswith("reading 50 messages"):
            broker.fail_next("pull", 100, executed=True)  # its connections close

    collected = _collected(tmp_path, during=stop)
    events, others = _events(collected)
    (missing,) = collected.missing
    assert missing.startswith("broker broker-a does not answer since messages of Orders@broker-a:")
    assert len(others) == 1  # the audit counts it as a missing row, so that no verdict is held
    assert b"does not answer" in others[0]
    assert collected.origins[-1] == f"not read: {missing}"
    commits = [event for event in events if event.kind is Kind.OFFSET_COMMIT]
    assert [event for event in commits if event.topic == "Orders"] == []


@pytest.mark.deep("as the test before it, with another answer")
def test_a_refused_request_is_named(tmp_path: Path) -> None:
    def refuse(broker: EmbeddedBroker, text: str) -> None:
        if text.startswith("reading 50 messages"):
            broker.fail_next("pull", 1, code="NO_PERMISSION", remark="not allowed")

    collected = _collected(tmp_path, during=refuse)
    (missing,) = collected.missing
    assert "refused" in missing
    assert "not allowed" in missing


@pytest.mark.deep("command/test_cluster_command.py judges such an offset in every run")
def test_an_offset_beyond_its_queue_is_in_the_events(tmp_path: Path) -> None:
    async def commit(broker: EmbeddedBroker, admin: Admin) -> None:
        await GroupRequests(admin.session, "billing").commit(MessageQueue("Orders", "broker-a", 0), 99)

    events, _ = _events(_collected(tmp_path, before=commit))
    assert any(event.kind is Kind.OFFSET_COMMIT and event.queue_offset == 99 for event in events)

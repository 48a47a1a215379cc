"""Incidents at Apache's broker are diagnosed, and a cluster of Apache's is collected for the audit."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from mqproof.client import (
    ClientError,
    ConsumeFrom,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
    ReceivedMessage,
    RetryLater,
    Session,
    TransactionProducer,
    TransactionState,
    new_message,
)
from mqproof.conformance.adapters.apache.servers import ApacheServer
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.groups import progress, update_group
from mqproof.impl.admin.topics import update_topic
from mqproof.impl.diagnosis.question import Question, answers
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import Runtime, production
from mqproof.spark_audit.sources.cluster import Bounds, collect
from mqproof.spec.events import Kind, read_log

pytestmark = pytest.mark.apache

_WITHIN_S = 90.0
_FIRST = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET, persist_interval_ms=500)
Apache = tuple[ApacheServer, ApacheServer]


class _Site:
    """A topic and a group of their own at Apache's broker."""

    def __init__(self, admin: Admin, runtime: Runtime, address: Address) -> None:
        self.admin, self.runtime, self.address = admin, runtime, address
        name = uuid.uuid4().hex[:8]
        self.topic, self.group = f"diagnosed-{name}", f"group-{name}"

    async def prepare(self) -> None:
        masters = await self.admin.masters("DefaultCluster")
        await update_topic(
            self.admin, masters, TopicConfig(self.topic, read_queue_nums=1, write_queue_nums=1)
        )
        await update_group(self.admin, masters, SubscriptionGroup(group_name=self.group, retry_max_times=1))
        for _ in range(100):
            if self.topic in [each.topic_name for each in await self._topics()]:
                return
            await asyncio.sleep(0.2)

    async def _topics(self) -> list[TopicConfig]:
        from mqproof.impl.admin.topics import topic_names

        return [TopicConfig(name) for name in await topic_names(self.admin)]

    def session(self) -> Session:
        return Session([self.address], self.runtime)

    async def until(self, cause: str, message_id: str | None, group: str | None) -> None:
        """Diagnose until the cause is named: brokers answer from state that they update in the background."""
        question = Question(message_id, topic=self.topic, group=group)
        found: list[str] = []
        for _ in range(round(_WITHIN_S / 0.5)):
            found = [each.cause.name for each in await answers(question, self.admin, [], self.runtime)]
            if found == [cause]:
                return
            await asyncio.sleep(0.5)
        assert found == [cause]

    async def until_committed(self, offset: int) -> None:
        """Wait until the broker has the group's offset in the only queue of the topic."""
        async with asyncio.timeout(_WITHIN_S):
            while True:
                with suppress(ClientError):  # the broker does not know the group yet
                    found = (await progress(self.admin, self.group, self.topic)).queues.values()
                    if [each.consumer_offset for each in found] == [offset]:
                        return
                await asyncio.sleep(0.5)


def _at(apache: Apache, work: Callable[[_Site], Awaitable[None]]) -> None:
    async def main() -> None:
        runtime = production(AsyncioNetwork(), None)
        address = apache[0].address
        async with Admin([address], runtime) as admin:
            site = _Site(admin, runtime, address)
            await site.prepare()
            await work(site)

    asyncio.run(main())


def test_a_message_that_waits_for_a_consumer_and_is_consumed(apache: Apache) -> None:
    async def work(site: _Site) -> None:
        async with site.session() as session, site.session() as other:
            producer = Producer(session)
            sent = await producer.send_or_raise(new_message(site.topic, b"x", tag="a", keys="k"))
            dropped = await producer.send_or_raise(new_message(site.topic, b"x", tag="b"))
            await site.until("no_group", sent.message_id, None)
            await site.until("no_members", sent.message_id, site.group)
            async with PushConsumer(other, site.group, lambda _: None, _FIRST) as consumer:
                await consumer.subscribe(site.topic, "a")
                await site.until("passed", sent.message_id, site.group)
                await site.until("filtered_by_subscription", dropped.message_id, site.group)
                await site.until("caught_up", None, site.group)
            await site.until("not_found", "7F0000019DC71A6E04307C2B66C20001", None)

    _at(apache, work)


def test_a_message_that_fails_becomes_a_dead_letter(apache: Apache) -> None:
    async def listener(_: Sequence[ReceivedMessage]) -> RetryLater:
        return RetryLater(delay_level=1)

    async def work(site: _Site) -> None:
        async with site.session() as session, site.session() as other:
            sent = await Producer(session).send_or_raise(new_message(site.topic, b"x"))
            async with PushConsumer(other, site.group, listener, _FIRST) as consumer:
                await consumer.subscribe(site.topic)
                await site.until("dead_lettered", sent.message_id, site.group)

    _at(apache, work)


def test_delayed_and_transactional_messages(apache: Apache) -> None:
    async def work(site: _Site) -> None:
        async def unknown(*_: object) -> TransactionState:
            return TransactionState.UNKNOWN

        async def roll_back(*_: object) -> TransactionState:
            return TransactionState.ROLLBACK

        async with site.session() as session:
            late = await Producer(session).send_or_raise(new_message(site.topic, b"x", delay_level=18))
            await site.until("waiting_for_its_time", late.message_id, None)
            producer = TransactionProducer(session, unknown, ProducerConfig(group=f"p-{site.group}"))
            opened = await producer.send(new_message(site.topic, b"x"), unknown)
            ended = await producer.send(new_message(site.topic, b"x"), roll_back)
            await site.until("transaction_open", opened.sent.message_id, None)
            await site.until("rolled_back", ended.sent.message_id, None)
            await producer.stop()

    _at(apache, work)


def test_a_cluster_is_collected(apache: Apache, tmp_path: Path) -> None:
    async def work(site: _Site) -> None:
        async with site.session() as session, site.session() as other:
            producer = Producer(session)
            for _ in range(9):
                await producer.send_or_raise(new_message(site.topic, b"x"))
            async with PushConsumer(other, site.group, lambda _: None, _FIRST) as consumer:
                await consumer.subscribe(site.topic)
                # A broker that has not built its queue yet reports that the group has caught up with nothing.
                await site.until_committed(9)
                await site.until("caught_up", None, site.group)
                found = await collect(site.admin, Bounds((site.topic,)), tmp_path, lambda _: None)
        assert found.missing == ()
        events = [event for event in read_log(found.events) if event.topic == site.topic]
        kinds = [event.kind for event in events if event.kind is not Kind.SUBSCRIBE]
        assert kinds.count(Kind.APPEND) == 9
        (commit,) = [event for event in events if event.kind is Kind.OFFSET_COMMIT]
        assert (commit.group, commit.queue_offset) == (site.group, 9)
        assert any(event.kind is Kind.SUBSCRIBE and event.group == site.group for event in events)

    _at(apache, work)

"""A cluster in the test's own loop: replicated stores, and another master when the first one stops."""

import asyncio
from collections.abc import Sequence

import pytest

from mqproof import Producer, PushConsumer, ReceivedMessage, Refused, Sent, connect, new_message
from mqproof.client import ConfigError, ConsumeFrom, ProducerConfig, PushConsumerConfig
from mqproof.impl.embedded.embedded_cluster import ClusterError, EmbeddedCluster

FROM_START = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


def test_an_acknowledged_message_is_on_the_slave_when_its_master_has_crashed() -> None:
    async def run() -> None:
        async with EmbeddedCluster() as cluster, cluster.client() as session:
            producer = Producer(session, ProducerConfig(retries=0))
            assert (await producer.send_or_raise(new_message("T", b"x"))).status == "SEND_OK"
            assert await cluster.stop_master(kill=True) == "master"
            left = cluster.master, cluster.running
            assert left == (None, ["slave"])
            assert [each.body for each in cluster.messages("T")] == [b"x"]
            assert not isinstance(await producer.send(new_message("T", b"y")), Sent)
            with pytest.raises(ClusterError, match="no broker takes messages; running: slave"):
                await cluster.stop_master()
            with pytest.raises(ClusterError, match="master does not run; running: slave"):
                cluster.messages("T", member="master")

    asyncio.run(run())


def test_a_consumer_continues_at_the_slave() -> None:
    arrived = asyncio.Queue[bytes]()

    async def listener(messages: Sequence[ReceivedMessage]) -> None:
        for message in messages:
            arrived.put_nowait(message.body)

    async def run() -> None:
        async with EmbeddedCluster() as cluster, cluster.client() as session:
            await Producer(session).send_or_raise(new_message("T", b"x"))
            await cluster.in_sync()
            await cluster.stop_master()
            async with PushConsumer(session, "G", listener, FROM_START) as consumer:
                await consumer.subscribe("T")
                await cluster.clock.advance(minutes=1)
                async with asyncio.timeout(60):
                    assert await arrived.get() == b"x"

    asyncio.run(run())


def test_three_members_elect_another_master_that_has_all_acknowledged_messages() -> None:
    async def run() -> None:
        async with EmbeddedCluster("dledger") as cluster, cluster.client() as session:
            producer = Producer(session)
            await producer.send_or_raise(new_message("T", b"1"))
            stopped = await cluster.stop_master(kill=True)
            assert cluster.master not in (None, stopped)
            await producer.send_or_raise(new_message("T", b"2"))
            await cluster.start_member(stopped)
            await cluster.in_sync()
            for member in ("n0", "n1", "n2"):
                bodies = sorted(each.body for each in cluster.messages("T", member=member))
                assert bodies == [b"1", b"2"], member
            await cluster.stop_master()
            await cluster.stop_master()  # one of three is left: no majority, so no master
            assert len(cluster.running) == 1
            assert cluster.master is None

    asyncio.run(run())


def test_time_that_passes_does_not_end_a_leadership() -> None:
    async def run() -> None:
        async with EmbeddedCluster("dledger") as cluster, cluster.client() as session:
            before = cluster.master
            await Producer(session).send_or_raise(new_message("T", b"later", delay_level=9))  # five minutes
            await cluster.clock.advance(minutes=4)
            assert cluster.messages("T") == []
            await cluster.clock.advance(minutes=2)
            assert len(cluster.messages("T")) == 1
            assert cluster.master == before

    asyncio.run(run())


def test_a_fault_hits_the_current_master() -> None:
    async def run() -> None:
        async with EmbeddedCluster("dledger") as cluster, cluster.client() as session:
            producer = Producer(session, ProducerConfig(retries=0))
            await cluster.stop_master()
            cluster.fail_next("send", code="NO_PERMISSION")
            assert isinstance(await producer.send(new_message("T", b"x")), Refused)
            assert isinstance(await producer.send(new_message("T", b"x")), Sent)
            await cluster.expect("T")

    asyncio.run(run())


def test_with_sockets_an_ordinary_session_sends_to_the_next_master() -> None:
    async def run() -> None:
        async with EmbeddedCluster("dledger", sockets=True) as cluster, connect(cluster.name_server) as own:
            producer = Producer(own)
            await producer.send_or_raise(new_message("T", b"1"))
            await cluster.stop_master()
            await producer.send_or_raise(new_message("T", b"2"))
            await cluster.expect("T", 2)

    asyncio.run(run())


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ValueError, match="kind 'raft': expected master-slave or dledger"):
        EmbeddedCluster("raft")
    with pytest.raises(ConfigError, match="brokerRole: the embedded broker sets it itself"):
        EmbeddedCluster("dledger", properties={"brokerRole": "SYNC_MASTER"})
    with pytest.raises(ConfigError, match="brokerRole SLAVE: only a master has id 0"):
        EmbeddedCluster(properties={"brokerRole": "SLAVE"})

    async def run() -> None:
        cluster = EmbeddedCluster()
        with pytest.raises(RuntimeError, match="not running"):
            _ = cluster.name_server
        async with cluster:
            with pytest.raises(RuntimeError, match="starts once"):
                await cluster.start()
            with pytest.raises(ClusterError, match="slave runs already"):
                await cluster.start_member("slave")
            with pytest.raises(ValueError, match="'n0' is not a broker"):
                await cluster.start_member("n0")

    asyncio.run(run())

"""Tests REPL-3 StatusHonest end to end: the status of a send when flush or slave is slow or down.

Method: whole brokers on simulated machines. A disk is blocked, so that no sync ends; a slave's data is
delayed on its way, or the slave is killed.
"""

import asyncio
from dataclasses import replace

import pytest

from mqproof.conformance.hosts.simulated import BROKER_NAMES, MASTER, SLAVE, STORE, Cluster, Setup
from mqproof.impl.client.model import MessageQueue, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.message import UNIQUE_KEY, WAIT, Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode

TOPIC = "BenchmarkTest"
FLUSH_MS, SLAVE_MS = 1000, 2000


async def reported(
    loop: SimulatedLoop, flush: FlushMode, role: Role, disk: str, slave: str, wait: bool
) -> tuple[str, set[str]]:
    """Return the status of one send, and the brokers that have the message then."""
    store = replace(STORE, sync_flush_timeout_ms=FLUSH_MS)
    replication = ReplicationConfig(role, slave_timeout_ms=SLAVE_MS)
    cluster = Cluster(loop, 0, Setup(flush, replication, store=store))
    await cluster.start_all()
    session = cluster.session("producer")
    await session.start()
    producer = Producer(session, ProducerConfig("PG"))
    queue = MessageQueue(TOPIC, BROKER_NAMES[MASTER], 0)
    async with asyncio.timeout(60):
        while not cluster.has_caught_up():
            await asyncio.sleep(0.1)
        assert isinstance(await producer.send(Message(TOPIC, b"first", {}), queue), Sent)
        if disk == "late":
            cluster.machines[MASTER].fsync.hold()
        if slave == "late":
            cluster.internet.cut(cluster.links(SLAVE, MASTER)[:1])
        if slave == "away":
            cluster.kill(SLAVE)
            await asyncio.sleep(1)
        properties = {UNIQUE_KEY: "m"} | ({} if wait else {WAIT: "false"})
        outcome = await producer.send(Message(TOPIC, b"m", properties), queue, timeout_ms=20_000)
    has = {node for node in cluster.brokers if "m" in {each.message_id for each in cluster.log(node)}}
    return outcome.status if isinstance(outcome, Sent) else repr(outcome), has


def play(flush: FlushMode, role: Role, disk: str, slave: str, *, wait: bool = True) -> tuple[str, set[str]]:
    loop = SimulatedLoop()
    return run_simulated(reported(loop, flush, role, disk, slave, wait), loop)


@pytest.mark.parametrize(
    ("disk", "slave", "status"),
    [
        ("well", "well", "SEND_OK"),
        ("late", "well", "FLUSH_DISK_TIMEOUT"),
        ("well", "late", "FLUSH_SLAVE_TIMEOUT"),
        ("late", "late", "FLUSH_SLAVE_TIMEOUT"),
        ("well", "away", "SLAVE_NOT_AVAILABLE"),
        ("late", "away", "SLAVE_NOT_AVAILABLE"),
    ],
)
def test_repl_3_the_status_of_a_synchronous_master_covers_disk_and_slave(
    disk: str, slave: str, status: str
) -> None:
    seen, has = play(FlushMode.SYNC_FLUSH, Role.SYNC_MASTER, disk, slave)
    assert seen == status
    # A slave that has not confirmed may still have the message.
    assert has == ({MASTER} if slave == "away" else {MASTER, SLAVE})


@pytest.mark.parametrize("slave", ["well", "late", "away"])
def test_repl_3_the_status_of_an_asynchronous_master_covers_only_its_disk(slave: str) -> None:
    assert play(FlushMode.SYNC_FLUSH, Role.ASYNC_MASTER, "well", slave)[0] == "SEND_OK"
    assert play(FlushMode.SYNC_FLUSH, Role.ASYNC_MASTER, "late", slave)[0] == "FLUSH_DISK_TIMEOUT"


@pytest.mark.parametrize(("slave", "status"), [("well", "SEND_OK"), ("late", "FLUSH_SLAVE_TIMEOUT")])
def test_repl_3_with_asynchronous_flush_a_slow_disk_is_not_waited_for(slave: str, status: str) -> None:
    assert play(FlushMode.ASYNC_FLUSH, Role.SYNC_MASTER, "late", slave)[0] == status


@pytest.mark.parametrize("slave", ["late", "away"])
def test_repl_3_the_status_of_a_send_that_does_not_wait_covers_neither(slave: str) -> None:
    assert play(FlushMode.SYNC_FLUSH, Role.SYNC_MASTER, "late", slave, wait=False)[0] == "SEND_OK"

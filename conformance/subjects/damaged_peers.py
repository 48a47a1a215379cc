"""One damaged record in one of our brokers that share a log, and what becomes of it.

The brokers are a master and its slave, or a group that elects its master. All run on simulated machines.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from mqproof.conformance.damage.checkers import PeersSeen
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.simulated import MASTER, MEMBERS, SLAVE, Cluster, Setup
from mqproof.impl.broker.broker import Broker
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.damage import DamageKind, Outcome
from mqproof.impl.store.files.consume_queue import Unit

_TOPIC: Final = "BenchmarkTest"
_PAIR: Final = (MASTER, SLAVE)
_MESSAGES: Final = 4
_SETTLED_S: Final = 60.0
"""The time after a report by which the record is repaired."""
_UNTIL_S: Final = 120.0
_POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class PeerPoint:
    """One damage. All numbers are taken modulo the number of choices."""

    is_group: bool
    node: int
    record: int
    byte: int
    is_lost_write: bool
    """Whether the record has the bytes that were there before; otherwise one bit of it is flipped."""
    is_copied: bool
    """Whether the other brokers had the record before the damage; in a group they always had."""
    reconnects: bool
    """Whether the slave is away during the damage of its master, and then compares its log with it."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the point of an input of 4 bytes; missing bytes are zero."""
        kind, node, number, byte = data[:4].ljust(4, b"\0")
        return cls(bool(kind & 1), node, number, byte, bool(kind & 2), bool(kind & 5), bool(kind & 8))


def point(seed: int) -> PeerPoint:
    """Return the damage of a seed. Consecutive seeds visit all kinds of brokers in turn."""
    chance = random.Random(f"damaged peers {seed}")
    return PeerPoint.decode(bytes([seed % 16, *chance.randbytes(3)]))


def live(point: PeerPoint) -> PeersSeen:
    """Damage a record, read it, wait, and read it again."""
    loop = SimulatedLoop()
    setup = (
        Setup(elected=True)
        if point.is_group
        else Setup(replication=ReplicationConfig(Role.ASYNC_MASTER), queues=1)
    )

    async def main() -> PeersSeen:
        cluster = Cluster(loop, 1, setup)
        await cluster.start_all()
        session = cluster.session("client")
        await session.start()
        try:
            return await _live(cluster, session, point)
        finally:
            await session.stop()
            for node in tuple(cluster.brokers):
                await cluster.stop(node)

    with expected_warnings("mqproof.impl"):  # every damage is intended, and each causes a warning
        return run_simulated(main(), loop)


async def _live(cluster: Cluster, session: Session, point: PeerPoint) -> PeersSeen:
    nodes = MEMBERS if point.is_group else _PAIR
    reconnects = point.reconnects and not point.is_group
    node = nodes[point.node % len(nodes)] if point.is_copied and not reconnects else MASTER
    await _until(lambda: cluster.master is not None)
    producer = Producer(session, ProducerConfig("PG"))
    for _ in range(_MESSAGES):
        await producer.send(Message(_TOPIC, b"a message for all".ljust(60, b"."), queue_id=0))
    await _until(lambda: all(_count(cluster.brokers[each]) == _MESSAGES for each in nodes))
    number = point.record % _MESSAGES
    if reconnects and point.is_copied:
        await cluster.stop(SLAVE)
    if not point.is_copied:
        await cluster.stop(SLAVE)
        await producer.send(Message(_TOPIC, b"a message for the master".ljust(60, b"."), queue_id=0))
        number = _MESSAGES
    broker = cluster.brokers[node]
    places = _places(broker)
    good = {broker.store.record_at(each.commit_offset) for _, each in places}
    where, unit = places[number]
    before = broker.store.record_at(unit.commit_offset)
    _damage(cluster, node, unit, point)
    first = broker.store.get(_TOPIC, *where, 1).records
    if SLAVE in nodes and SLAVE not in cluster.brokers:
        await cluster.start(SLAVE)
    await asyncio.sleep(_SETTLED_S)
    last = broker.store.get(_TOPIC, *where, 1).records
    counts = broker.store.damage.counts
    client = None if point.is_group else cluster.brokers[SLAVE].replicas.client
    return PeersSeen(
        node=node,
        peer_had=point.is_copied,
        is_wrong=not good.issuperset((*first, *last)),
        is_repaired=last == (before,),
        is_reported=counts[DamageKind.RECORD, Outcome.SKIPPED] > 0,
        is_logged=counts[DamageKind.RECORD, Outcome.REPAIRED] > 0,
        follows=client is None or client.is_following,
    )


def _damage(cluster: Cluster, node: str, unit: Unit, point: PeerPoint) -> None:
    """Damage bytes that a checksum or a rule of the format covers."""
    store = cluster.brokers[node].store
    path = store.log_path(unit.commit_offset)
    disk = cluster.machines[node].disk
    at = unit.commit_offset % store.config.commit_log_segment_bytes
    if point.is_lost_write:
        disk.damage(path, at, bytes(unit.size))
        return
    covered = (*range(8), *range(12, 16), *range(20, 36), *range(88, 148))  # size, queue, places, body
    byte = at + covered[point.byte % len(covered)]
    file = disk.open(path)
    (value,) = file.read(byte, 1)
    file.close()
    disk.damage(path, byte, bytes([value ^ (1 << point.byte % 8)]))


def _count(broker: Broker) -> int:
    return len(_places(broker))


def _places(broker: Broker) -> list[tuple[tuple[int, int], Unit]]:
    """Return queue, offset and entry of all messages, in the order of the log."""
    store = broker.store
    found = [
        ((queue, offset), store.units(_TOPIC, queue, offset, 1)[0])
        for queue in range(1024)
        for offset in range(store.max_offset(_TOPIC, queue))
    ]
    return sorted(found, key=lambda each: each[1].commit_offset)


async def _until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(_UNTIL_S):
        while not is_true():
            await asyncio.sleep(_POLL_S)

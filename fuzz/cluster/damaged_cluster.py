"""Single faults in brokers that share a log: a master and its slave, or a group that elects its master.

The machines of a cluster are written once, as those of a single store (fuzz/store/single_fault.py). Then a
block or a file of one machine changes, at a start of all or while they run. Afterwards the broker is read,
has time to repair what its peers have, is killed and started once more, and new messages are sent.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final, Self

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.simulated import MASTER, NAME_SERVERS, SLAVE, STORE, Cluster, Setup
from mqproof.fuzz.store import fault_judge
from mqproof.fuzz.store.damaged_files import DiskFiles
from mqproof.fuzz.store.fault_judge import FaultVerdict, Seen
from mqproof.fuzz.store.simulated_store import QUEUES, Appended
from mqproof.fuzz.store.single_fault import Moment, Point, inject
from mqproof.fuzz.target import Finding
from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.base import Store
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.results import PutStatus

PAIR: Final = "pair"
GROUP: Final = "group"
KINDS: Final = (PAIR, GROUP)
"""A master with its slave, and a group that elects its master."""

_DIRECTORY: Final = "/store"
_CONSUMERS: Final = "G"
_STORE: Final = replace(
    STORE, commit_log_segment_bytes=1024, consume_queue_segment_bytes=60, index_slots=3, index_entries=8
)
_QUIET_S: Final = 20.0
"""The time in which tables, checkpoints and copies of the master's tables are written."""
_SETTLED_S: Final = 30.0
"""The time in which a broker repairs what its peers have."""


@dataclass(frozen=True, slots=True)
class ClusterPoint:
    """One fault of one machine. All numbers are taken modulo the number of choices."""

    kind: str
    node: int
    fault: Point

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the point of an input of 10 bytes; missing bytes are zero."""
        kind, node = data[:2].ljust(2, b"\0")
        return cls(KINDS[kind % len(KINDS)], node, Point.decode(data[2:]))

    def encode(self) -> bytes:
        """Return the input that decodes to this point."""
        return bytes((KINDS.index(self.kind), self.node % 256)) + self.fault.encode()


@dataclass(frozen=True, slots=True)
class _Written:
    """The disks of a cluster before a fault, and what was stored there."""

    disks: Mapping[str, SimulatedDisk]
    older: Mapping[str, SimulatedDisk]
    truth: tuple[Appended, ...]


def judge(point: ClusterPoint) -> tuple[str, FaultVerdict]:
    """Return the file of a point, and what its fault did. Raises Finding when an invariant is violated."""
    with expected_warnings("mqproof.impl"):  # the faults cause them on purpose
        loop = SimulatedLoop()
        written = _written(point.kind, point.fault.moment)
        cluster = _cluster(point.kind, loop)
        for node, disk in written.disks.items():
            cluster.machines[node].disk = disk.copy()
        return run_simulated(_Life(cluster, point, written).run(), loop)


def damage_settled(lost: list[Appended], node: str) -> None:
    """Check that a broker repairs its damaged records and entries, because its peers have them."""
    if lost:
        words = ", ".join(f"{each.queue} {each.queue_offset}" for each in lost)
        raise Finding("DamageSettled", f"{node} does not repair what its peers have: {words}")


@dataclass
class _Life:
    """What happens to a cluster after one fault."""

    cluster: Cluster
    point: ClusterPoint
    written: _Written
    seen: Seen = field(default_factory=Seen)

    async def run(self) -> tuple[str, FaultVerdict]:
        try:
            path = await self._begin()
            if self.node in self.cluster.brokers:
                self._observe(self.node)
                await asyncio.sleep(_SETTLED_S)
                self._judge_all()
                self.cluster.kill(self.node)
                await self._start(self.node)
            await asyncio.sleep(_SETTLED_S)
            self._judge_all()
            if not self._may_be_cut:
                await self._offsets_not_reused()
            return path, self._verdict
        finally:
            for node in tuple(self.cluster.brokers):
                self.cluster.kill(node)

    @property
    def _verdict(self) -> FaultVerdict:
        """What the fault did in the end: most of what is first left out and reported is repaired later."""
        if self.seen.repaired and not self.seen.refused and not self.seen.lost:
            return FaultVerdict.REPAIRED
        return self.seen.verdict

    @property
    def node(self) -> str:
        nodes = self.cluster.nodes
        return nodes[self.point.node % len(nodes)]

    @property
    def _may_be_cut(self) -> bool:
        """Whether a start may cut what no checkpoint counts, of a log that decides what the others have."""
        return self.point.fault.moment is Moment.UNCOUNTED and self.node != SLAVE

    async def _begin(self) -> str:
        """Start all brokers, before the fault or after it; return the path of the damaged file."""
        cluster, node = self.cluster, self.node
        files = DiskFiles(cluster.machines[node].disk, self.written.older[node], _DIRECTORY, is_sparse=True)
        if self.point.fault.moment is not Moment.RUNNING:
            path = inject(self.point.fault, files)
        for each in _all(cluster):
            await self._start(each)
        await cluster.until(lambda: cluster.master is not None)
        if self.point.fault.moment is Moment.RUNNING:
            path = inject(self.point.fault, files)
        return path

    async def _start(self, node: str) -> None:
        try:
            await self.cluster.start(node)
        except (StoreError, OSError) as error:
            if node != self.node:
                raise Finding("DamageSettled", f"{node} does not start: {error}") from None
            fault_judge.refused_by_name(str(error), _DIRECTORY)
            self.seen.refused = str(error)

    def _observe(self, node: str) -> list[Appended]:
        """Return the messages that a broker does not deliver. Raises Finding if one is wrong."""
        return fault_judge.observe(self._store(node), self.written.truth, self.seen)

    def _judge_all(self) -> None:
        for node in self.cluster.brokers:
            lost = self._observe(node)
            self.seen.lost += lost
            if self._store(node).failure:
                continue  # its process ends, and its log says why
            if self._may_be_cut:
                fault_judge.never_silently_lost(lost, self.seen)
            else:
                self._offsets_continue(node)
                damage_settled(lost, node)
            self._tables_are_kept(node)

    def _tables_are_kept(self, node: str) -> None:
        """Check that the topics exist, and that no group continues after messages that it did not read."""
        services = self.cluster.brokers[node].services
        assert services is not None, "it was started"
        for topic in {queue[0] for queue in QUEUES}:
            if services.topics.get(topic) is None:
                raise Finding("NeverSilentlyLost", f"{node} does not know the topic {topic}")
        offset = services.offsets.query(_CONSUMERS, *QUEUES[0])
        if offset not in (1, 2):
            raise Finding("NeverSilentlyLost", f"{node} has the offset {offset} for a group that committed 2")

    def _offsets_continue(self, node: str) -> None:
        """Check that no queue continues before its last message."""
        for queue in QUEUES:
            count = sum(each.queue == queue for each in self.written.truth)
            following = self._store(node).next_queue_offset(*queue)
            if node == self.cluster.master and following < count:
                text = f"{queue} had {count} messages and continues at {following}"
                raise Finding("OffsetsNotReused", text)

    async def _offsets_not_reused(self) -> None:
        """Check that new messages follow all earlier ones, and are delivered."""
        master = self.cluster.master
        if master is None or self._store(master).failure:
            return
        store = self._store(master)
        for queue in QUEUES:
            count = sum(each.queue == queue for each in self.written.truth)
            message = Message(queue[0], b"after the fault", {"UNIQ_KEY": "n"}, queue[1])
            (put,) = await store.put_batch([message])
            got = [record.decode(each).message.body for each in store.get(*queue, count).records]
            if put.queue_offset != count or got != [message.body]:
                text = f"{queue} had {count} messages, the new one has offset {put.queue_offset}"
                raise Finding("OffsetsNotReused", f"{text}, and {len(got)} are delivered at {count}")

    def _store(self, node: str) -> Store:
        return self.cluster.brokers[node].store


def _cluster(kind: str, loop: SimulatedLoop) -> Cluster:
    setup = Setup(
        flush=FlushMode.SYNC_FLUSH,
        replication=ReplicationConfig(Role.SYNC_MASTER),
        elected=kind == GROUP,
        queues=2,
        store=_STORE,
    )
    return Cluster(loop, 1, setup)


def _all(cluster: Cluster) -> tuple[str, ...]:
    return *NAME_SERVERS, *cluster.nodes


@cache
def _written(kind: str, moment: Moment) -> _Written:
    """Write the disks of a cluster, part of it later than the rest."""
    loop = SimulatedLoop()
    return run_simulated(_write(_cluster(kind, loop), moment), loop)


async def _write(cluster: Cluster, moment: Moment) -> _Written:
    await cluster.start_all()
    await cluster.until(lambda: cluster.master is not None and (cluster.setup.elected or cluster.follows()))
    await _put(cluster, range(8))
    await _commit(cluster, 1)
    await asyncio.sleep(_QUIET_S)
    older = _disks(cluster)
    await _commit(cluster, 2)
    if moment is Moment.UNCOUNTED and cluster.setup.elected:
        # A member is behind, so the disks of the other two are the only ones with the last messages.
        cluster.kill(next(node for node in reversed(cluster.nodes) if node != cluster.master))
    await _put(cluster, range(8, 14))
    if moment is not Moment.UNCOUNTED:
        await cluster.until(lambda: all(_has(broker.store, 14) for broker in cluster.brokers.values()))
    truth = _truth(cluster.brokers[cluster.master or MASTER].store)
    if moment is not Moment.UNCOUNTED:
        await asyncio.sleep(_QUIET_S)
    for node in reversed(cluster.nodes):
        if moment in (Moment.KILLED, Moment.UNCOUNTED):
            cluster.kill(node)
        else:
            await cluster.stop(node)
    return _Written(_disks(cluster), older, truth)


async def _put(cluster: Cluster, numbers: range) -> None:
    broker = cluster.brokers[cluster.master or MASTER]
    assert broker.services is not None, "it was started"
    for number in numbers:
        topic, queue_id = QUEUES[number % len(QUEUES)]
        await broker.services.topics.ensure(topic, 2)
        body = f"m{number}".encode().ljust((10, 60, 200)[number % 3], b".")
        (put,) = await broker.store.put_batch([Message(topic, body, {"UNIQ_KEY": f"k{number}"}, queue_id)])
        assert put.status is PutStatus.PUT_OK, put


async def _commit(cluster: Cluster, offset: int) -> None:
    services = cluster.brokers[cluster.master or MASTER].services
    assert services is not None, "it was started"
    services.offsets.commit(_CONSUMERS, *QUEUES[0], offset)


def _has(store: Store, count: int) -> bool:
    return sum(store.max_offset(*queue) for queue in QUEUES) == count


def _truth(store: Store) -> tuple[Appended, ...]:
    found = []
    for queue in QUEUES:
        for offset in range(store.max_offset(*queue)):
            (data,) = store.get(*queue, offset, 1).records
            stored = record.decode(data)
            key = stored.message.properties["UNIQ_KEY"]
            found.append(Appended(queue, offset, stored.commit_offset, data, stored.message.body, key))
    return tuple(sorted(found, key=lambda each: each.commit_offset))


def _disks(cluster: Cluster) -> dict[str, SimulatedDisk]:
    return {node: cluster.machines[node].disk.copy() for node in cluster.nodes}

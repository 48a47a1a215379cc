"""Tests one cell of the guarantee matrix on our brokers.

There are a master, an optional slave, and another healthy master. A producer sends messages, and the faults
of the cell are injected. `replay` takes the steps of a counterexample of the model one by one: links and
fsyncs are held, and released when the model says so. `live` injects faults at random times while messages are
sent. Both return the worst outcome for a message, in the model's terms.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.simulated import (
    BROKER_NAMES,
    MASTER,
    NAME_SERVERS,
    OTHER,
    SLAVE,
    STORE,
    Cluster,
    Setup,
)
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, Outcome, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_disk import Image
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.base import Store
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.files.record import decode
from mqproof.spec.guarantee.matrix import DAMAGE, Cell
from mqproof.spec.guarantee.matrix import Outcome as Became
from mqproof.spec.tlc.trace import Step, Trace

T = TypeVar("T")

TOPIC: Final = "BenchmarkTest"
"""Every broker has this topic from its first start, with many queues; one of them is used here."""
_PRODUCER: Final = "producer"
_WARM_UP: Final = "warm-up"
_BODY_AT: Final = 88
"""The place of the body in a record whose hosts are IPv4 addresses."""
_WAIT_MS: Final = 1000
"""syncFlushTimeout and slaveTimeout; short, so that timeouts come soon."""
_SEND_MS: Final = 3000
_STEP_S_MAX: Final = 60.0
_SETTLED_S: Final = 3.0
_REPAIRED_S: Final = 12.0
"""The time in which a broker requests a damaged record from its peers."""
_MESSAGES: Final = 8
_REPLICATION: Final = {
    "none": None,
    "ASYNC_MASTER": ReplicationConfig(Role.ASYNC_MASTER, slave_timeout_ms=_WAIT_MS),
    "SYNC_MASTER_5X": ReplicationConfig(Role.SYNC_MASTER, in_sync_replicas=1, slave_timeout_ms=_WAIT_MS),
    "SYNC_MASTER": ReplicationConfig(Role.SYNC_MASTER, slave_timeout_ms=_WAIT_MS),
}


@dataclass(frozen=True, slots=True)
class Played:
    """The observations of one run."""

    became: Became
    """The worst outcome of any message."""
    message: str
    """The message with the outcome `became`."""
    send_result: str
    """The result that its sender received: a status, silence for a oneway send, or an error."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A record in a log, by commit offset and size."""

    begin: int
    size: int

    @property
    def end(self) -> int:
        return self.begin + self.size


class ReplayError(Exception):
    """The brokers do not take the model's step; the message is one line that names the step."""


def replay(cell: Cell, trace: Trace) -> Played:
    """Take the steps of a counterexample. Raises ReplayError."""
    return _play(cell, 0, lambda stage: stage.replay(trace))


def live(cell: Cell, seed: int) -> Played:
    """Send a few messages while the faults of the cell are injected; the seed determines everything."""
    return _play(cell, seed, lambda stage: stage.live())


def _play(cell: Cell, seed: int, scenario: Callable[["_Stage"], Coroutine[Any, Any, Played]]) -> Played:
    loop = SimulatedLoop()

    async def main() -> Played:
        stage = _Stage(loop, cell, seed)
        await stage.begin()
        return await scenario(stage)

    with expected_warnings("mqproof.impl", "asyncio"):
        return run_simulated(main(), loop)


class _Stage:
    """The brokers of one cell, and its producer."""

    def __init__(self, loop: SimulatedLoop, cell: Cell, seed: int) -> None:
        setup = cell.setup
        store = replace(STORE, sync_flush_timeout_ms=_WAIT_MS)
        flush, replication = FlushMode(setup.flush), _REPLICATION[setup.replication]
        self.cluster = Cluster(loop, seed, Setup(flush, replication, other=True, store=store))
        self.chance = random.Random(seed)
        self._cell = cell
        self._is_sync = setup.producer == "sync"
        self._is_oneway = setup.producer == "oneway"
        self._gone: set[str] = set()
        self._send_results: dict[str, str] = {}
        """Message to the result that its sender received."""

    async def begin(self) -> None:
        """Start everything, and wait until the slave follows."""
        cluster = self.cluster
        await cluster.start_all()
        session = cluster.session(_PRODUCER)
        await session.start()
        self.producer = Producer(session, ProducerConfig("PG"))
        await session.routes.refresh(TOPIC)
        if SLAVE in cluster.nodes:
            await self._until(cluster.has_caught_up, "the slave follows", every_s=0.1)

    @property
    def _pair(self) -> list[str]:
        return [node for node in self.cluster.nodes if node != OTHER]

    # -- the model's steps

    async def replay(self, trace: Trace) -> Played:
        await self._connect()
        for node in self._pair:
            self.cluster.machines[node].fsync.hold()
        self._hold(_PRODUCER, MASTER)
        if SLAVE in self._pair:
            self._hold(MASTER, SLAVE)
            self._hold(SLAVE, MASTER)
        for step in trace.steps[1:]:
            await self._take(step)
        await self._until(lambda: "m1" in self._send_results, "the sender receives a result")
        return await self._settle()

    async def _take(self, step: Step) -> None:
        try:
            async with asyncio.timeout(_STEP_S_MAX):
                await self._STEPS[step.action.removeprefix("MC")](self, step)
        except TimeoutError:
            for node in self._pair:  # else a task that waits for its fsync could not be cancelled
                self.cluster.machines[node].fsync.release()
            raise ReplayError(
                f"{self._cell}: {step.action} did not end within {_STEP_S_MAX:.0f} simulated s"
            ) from None

    async def _connect(self) -> None:
        """Connect the producer to the master: held links delay data, but not new connections."""
        producer, queue = self.producer, _queue(BROKER_NAMES[MASTER])
        await producer.send(Message(TOPIC, b"warm up", {UNIQUE_KEY: _WARM_UP}), queue)
        for node in self._pair:
            await self._flushed(node)
        if SLAVE in self._pair:
            await self._until(self._has_reported, "the slave has all records")

    async def _send(self, _: Step) -> None:
        self._sending = asyncio.create_task(self._send_one("m1", BROKER_NAMES[MASTER]))
        await asyncio.sleep(0.05)

    async def _append(self, step: Step) -> None:
        state: Any = step.state
        end = self.cluster.brokers[MASTER].store.log_end
        with self._let(_PRODUCER, MASTER):
            await self._until(lambda: self.cluster.brokers[MASTER].store.log_end > end, "the master appends")
        if state["answer"]["m1"] == "SLAVE_NOT_AVAILABLE":
            await self._answered(step)

    async def _flush(self, step: Step) -> None:
        state: Any = step.state
        for node in self._pair:
            if self._is_running(node) and state["flushed"][node] == len(state["log"][node]):
                await self._flushed(node)

    async def _flushed(self, node: str) -> None:
        machine, store = self.cluster.machines[node], self.cluster.brokers[node].store
        machine.fsync.release()
        await store.flush_log()  # an asynchronous flush would come on its own, but late
        machine.fsync.hold()

    async def _transfer(self, _: Step) -> None:
        with self._let(MASTER, SLAVE):
            await self._until(self.cluster.has_caught_up, "the slave has its master's records")

    async def _report(self, _: Step) -> None:
        with self._let(SLAVE, MASTER):
            await self._until(self._has_reported, "the master receives the report")

    def _has_reported(self) -> bool:
        server = self.cluster.brokers[MASTER].replicas.server
        return server is not None and server.acks.highest == self.cluster.brokers[SLAVE].store.log_end

    async def _answered(self, step: Step) -> None:
        state: Any = step.state
        wanted = state["answer"]["m1"]
        await self._until(lambda: "m1" in self._send_results, f"the send is answered {wanted}")
        send_result = self._send_results["m1"]
        # If disk and slave are both late, either timeout may be returned.
        if (send_result == "SEND_OK") != (wanted == "SEND_OK") or send_result == "error":
            raise ReplayError(f"the send was answered {send_result}, {wanted} expected")

    async def _gave_up(self, _: Step) -> None:
        await self._until(lambda: "m1" in self._send_results, "the sender receives an error")

    async def _fault(self, step: Step) -> None:
        state: Any = step.state
        struck = state["struck"][-1]
        node, fault = struck["node"], struck["fault"]
        if fault == "clean":
            self.cluster.machines[node].fsync.release()
        keeps_all = fault == "os" and len(state["log"][node]) > state["flushed"][node]
        await self._strike(node, fault, keeps_all=keeps_all)

    async def _damage(self, step: Step) -> None:
        state: Any = step.state
        struck = state["struck"][-1]
        if SLAVE in self._pair and not state["log"][SLAVE]:
            # What the master has sent was read before the damage; in the model it was not sent yet.
            self.cluster.internet.forget_connections(*self.cluster.links(MASTER, SLAVE)[0])
        self._damage_record(struck["node"], struck["fault"], "m1")

    async def _repair(self, step: Step) -> None:
        state: Any = step.state
        for node in self._pair:
            if not state["damaged"][node]:
                self._ids(node)  # a read finds the damage
                is_sound = partial(_has_lost_nothing, self.cluster.brokers[node].store)
                await self._until(is_sound, "the record is repaired")

    async def _restart(self, step: Step) -> None:
        state: Any = step.state
        for node in self._pair:
            if state["up"][node] == "running" and not self._is_running(node):
                fsync = self.cluster.machines[node].fsync
                fsync.release()  # a broker writes its tables before it serves
                await self.cluster.start(node)
                fsync.hold()

    _STEPS: Final = {
        "Send": _send,
        "AppendRecord": _append,
        "FlushLog": _flush,
        "Transfer": _transfer,
        "Report": _report,
        "AnswerOk": _answered,
        "AnswerDiskTimeout": _answered,
        "AnswerSlaveTimeout": _answered,
        "GiveUp": _gave_up,
        "CleanStop": _fault,
        "ProcessCrash": _fault,
        "OsCrash": _fault,
        "PowerLoss": _fault,
        "DiskLost": _fault,
        "MachineLost": _fault,
        "DamageBlock": _damage,
        "RepairRecord": _repair,
        "Restart": _restart,
    }

    # -- at random

    async def live(self) -> Played:
        """Inject the faults at random times, also before the first message and after the last one."""
        cluster, chance = self.cluster, self.chance
        low_s = chance.choice((0.0002, 0.001, 0.01))
        cluster.internet.delay_s = (low_s, 4 * low_s)
        for node in self._pair:
            cluster.machines[node].fsync.slowness = chance.choice((1.0, 20.0, 600.0))
        sending = asyncio.create_task(self._send_all())
        faults = list(self._cell.faults)
        chance.shuffle(faults)
        for fault in faults:
            await asyncio.sleep(chance.choice((0.01, 0.1, 0.5)) * chance.random())
            struck = [node for node in self._pair if self._may_strike(node, fault)]
            if struck:
                node = chance.choice(struck)
                await self._strike(node, fault, keeps_all=None)
                if node not in self._gone and chance.random() < 0.7:
                    await asyncio.sleep(0.3 * chance.random())
                    await cluster.start(node)
        for node in self._pair:
            cluster.machines[node].fsync.slowness = 1.0
            if node not in self._gone:
                await cluster.start(node)
        await sending
        return await self._settle()

    def _may_strike(self, node: str, fault: str) -> bool:
        needs_process = fault in ("clean", "process", *DAMAGE)
        return node not in self._gone and (self._is_running(node) or not needs_process)

    async def _send_all(self) -> None:
        for number in range(_MESSAGES):
            await self._send_one(f"m{number}", BROKER_NAMES[MASTER])
            await asyncio.sleep(0.05 * self.chance.random())

    # -- common parts

    def _is_running(self, node: str) -> bool:
        return node in self.cluster.brokers

    async def _strike(self, node: str, fault: str, *, keeps_all: bool | None) -> None:
        """Inject a fault.

        `keeps_all`: whether the system writes out all data before it crashes; None is random.
        """
        cluster = self.cluster
        match fault:
            case "clean":
                await cluster.stop(node)
            case "process":
                cluster.kill(node)
            case "os" if keeps_all is None:
                cluster.crash(node)
            case "os":
                disk = cluster.machines[node].disk
                cluster.crash(node, disk.unsynced() if keeps_all else Image())
            case "power":
                cluster.lose_power(node)
            case "disk" | "machine":
                cluster.lose_disk(node)
            case "flip" | "lost":
                store = cluster.brokers[node].store
                durable = [name for name, unit in self._units(node).items() if unit.end <= store.log_flushed]
                if durable:
                    self._damage_record(node, fault, self.chance.choice(durable))
        if fault == "machine":
            self._gone.add(node)

    async def _send_one(self, name: str, broker: str) -> None:
        """Send a message to this broker.

        A synchronous producer retries with the other broker until the message is stored.
        """
        message = Message(TOPIC, name.encode(), {UNIQUE_KEY: name})
        if self._is_oneway:
            self._send_results[name] = await self._send_oneway(message, _queue(broker))
            return
        outcome = await self._attempt(message, _queue(broker))
        while self._is_sync and not isinstance(outcome, Sent):
            await asyncio.sleep(0.1)
            outcome = await self._attempt(message, _queue(BROKER_NAMES[OTHER]))
        self._send_results[name] = outcome.status if isinstance(outcome, Sent) else "error"

    async def _attempt(self, message: Message, queue: MessageQueue) -> Outcome:
        return await self.producer.send(message, queue, timeout_ms=_SEND_MS)

    async def _send_oneway(self, message: Message, queue: MessageQueue) -> str:
        try:
            await self.producer.send_oneway(message, queue)
        except (NoRouteError, RemotingError):
            return "error"
        return "silence"

    async def _settle(self) -> Played:
        """Restart everything that is left, and return the worst outcome of the messages."""
        cluster = self.cluster
        cluster.internet.heal()
        cluster.internet.delay_s = (0.0002, 0.001)
        for node in self._pair:
            cluster.machines[node].fsync.release()
            if node not in self._gone and not self._is_running(node):
                await cluster.start(node)
        for node in self._gone:
            for names in NAME_SERVERS:  # so that they need not wait until it has been silent for long
                cluster.internet.reset(cluster.machines[names].host, cluster.machines[node].host)
        await asyncio.sleep(_SETTLED_S)
        read = await self._read()
        if set(self._cell.faults) & set(DAMAGE):  # the first reads find the damage
            kept = {name for node in self._pair for name in self._ids(node)}
            await asyncio.sleep(_REPAIRED_S)
            read = await self._read()
        else:
            kept = {stored.message_id for node in cluster.brokers for stored in cluster.log(node)}
        fates = [
            Played(fate(send_result, name in read, name in kept), name, send_result)
            for name, send_result in self._send_results.items()
        ]
        return max(fates, key=lambda played: played.became.badness)

    async def _read(self) -> set[str]:
        """Return the ids of the messages that a consumer can read now."""
        session = self.cluster.session("consumer")
        consumer = PullConsumer(session, "G")
        read: set[str] = set()
        for broker in sorted(set(BROKER_NAMES.values())):
            queue, offset = _queue(broker), 0
            with suppress(ClientError, NoRouteError):  # a message that is not read is lost
                while messages := (result := await consumer.pull(queue, offset)).messages:
                    read |= {stored.message_id for stored in messages}
                    offset = result.next_offset
        return read

    def _units(self, node: str) -> dict[str, "_Place"]:
        """Return where the records of the test's messages are in the log of a running broker."""
        store = self.cluster.brokers[node].store
        found = {}
        for offset in range(store.max_offset(TOPIC, 0)):
            (unit,) = store.units(TOPIC, 0, offset, 1)
            data = store.record_at(unit.commit_offset)
            if data is not None and (name := decode(data).message_id) != _WARM_UP:
                found[name] = _Place(unit.commit_offset, unit.size)
        return found

    def _ids(self, node: str) -> set[str]:
        """Return the ids of the messages that a consumer would receive from this broker."""
        if not self._is_running(node):
            return set()
        store = self.cluster.brokers[node].store
        return {
            decode(data).message_id
            for offset in range(store.max_offset(TOPIC, 0))
            for data in store.get(TOPIC, 0, offset, 1).records
        }

    def _damage_record(self, node: str, fault: str, name: str) -> None:
        """Flip a bit of a record's body, or zero the record, on the disk and in the page cache."""
        place = self._units(node)[name]
        path = self.cluster.brokers[node].store.log_path(place.begin)
        at = place.begin % self.cluster.setup.store.commit_log_segment_bytes
        disk = self.cluster.machines[node].disk
        if fault == "lost":
            disk.damage(path, at, bytes(place.size))
            return
        file = disk.open(path)
        (value,) = file.read(at + _BODY_AT, 1)
        file.close()
        disk.damage(path, at + _BODY_AT, bytes([value ^ 1]))

    def _hold(self, source: str, target: str) -> None:
        """Hold everything that is sent in this direction."""
        self.cluster.internet.cut(self.cluster.links(source, target)[:1])

    @contextmanager
    def _let(self, source: str, target: str) -> Iterator[None]:
        link = self.cluster.links(source, target)[:1]
        self.cluster.internet.heal(link)
        yield
        self.cluster.internet.cut(link)

    async def _until(self, condition: Callable[[], bool], what: str, every_s: float = 0.002) -> None:
        end_s = asyncio.get_running_loop().time() + _STEP_S_MAX
        while not condition():
            if asyncio.get_running_loop().time() > end_s:
                raise ReplayError(f"{self._cell}: not reached: {what}")
            await asyncio.sleep(every_s)


def _has_lost_nothing(store: Store) -> bool:
    return not store.lost_records()


def _queue(broker: str) -> MessageQueue:
    return MessageQueue(TOPIC, broker, 0)


def fate(send_result: str, is_read: bool, is_kept: bool) -> Became:
    """Return the outcome of a message.

    It depends on the result that its sender received, on whether consumers can read it, and on whether a log
    has it.
    """
    if is_read:
        return Became.SAFE
    if send_result == "error":
        return Became.ERROR
    if send_result != "SEND_OK":
        return Became.SILENT
    return Became.SLAVE if is_kept else Became.GONE

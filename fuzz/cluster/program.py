"""Programs for a whole cluster: a seed, the configuration, and timed faults, as bytes.

The first six bytes describe the cluster. Each fault is four bytes: kind, target, start time and duration (in
quarters of a second). Missing bytes are read as zeros, so any bytes are a valid program. A shorter program
has fewer faults, nodes or messages, so findings are made small by shortening. After the faults comes the
calm: the faults have ended and the cluster must make progress. Name servers, brokers and clients are the real
ones; their environment is simulated.
"""

import asyncio
import errno
import gc
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, Final

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.simulated import MASTER, NAME_SERVERS, SLAVE, STORE, Cluster, Setup
from mqproof.conformance.subjects.released_consumer import ReleasedPushConsumer
from mqproof.conformance.suites.flush.steps import End
from mqproof.fuzz.cluster import judge
from mqproof.fuzz.cluster.group_witness import GroupWitness
from mqproof.fuzz.cluster.witness import GROUP, RESERVED_MS, Topic, Witness
from mqproof.fuzz.target import Finding
from mqproof.impl.client.connection.session import Session, SessionConfig
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, ReceivedMessage
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, Step
from mqproof.impl.runtime.simulated_internet import Link
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.errors import StoreError

HEAD_BYTES: Final = 6
FAULT_BYTES: Final = 4
FAULTS_MAX: Final = 14
_RANDOM_FAULTS_MAX: Final = 12
CALM_S: Final = 120.0
"""The time limit of each check in the calm.

A master serves, its slave catches up, and the group receives its messages.
"""
_QUARTER_S: Final = 0.25
_KNOWN_S: Final = 35.0
"""Long enough for the brokers to be known to each other and to clients.

Brokers register every 30 s, and a slave asks for topics every 10 s.
"""
_AFTER_S: Final = 8.0
"""Simulated time between the start of the last fault and the calm."""
_STEP_S: Final = 5.0
_FORKED_SENDS: Final = 30
_PRODUCER: Final = "producer"
_QUEUES: Final = 2
_BODY_BYTES: Final = 150
_SEND_MS: Final = 4000
_ORDER_S: Final = 4.0
_EXPIRY_S: Final = 3.0
_ROOM: Final = Space(1 << 40, 1 << 39)
_FULL: Final = Space(1 << 40, 1 << 30)
_SHAPES: Final = (
    None,
    ReplicationConfig(Role.ASYNC_MASTER),
    ReplicationConfig(Role.SYNC_MASTER),
    ReplicationConfig(Role.SYNC_MASTER, in_sync_replicas=2),
)
_ELECTED: Final = 192
"""A shape byte of at least this value means a group of three that elects its master."""
_SMALL_STORE: Final = replace(STORE, commit_log_segment_bytes=1 << 12, file_reserved_ms=RESERVED_MS)
"""The store configuration of programs in which old data is deleted."""
_SESSION: Final = SessionConfig(route_refresh_ms=5000, heartbeat_ms=10_000)


def random_program(seed: int) -> bytes:
    """Return the program of a seed: any cluster, network conditions, load and faults."""
    chance = Random(seed)
    faults = chance.randint(1, _RANDOM_FAULTS_MAX)
    drawn = bytearray(seed.to_bytes(8, "little")[:4] + chance.randbytes(2 + FAULT_BYTES * faults))
    for at in range(HEAD_BYTES, len(drawn), FAULT_BYTES):
        if drawn[at] in _UPKEEP:
            drawn[at] %= len(_FAULTS)
    return bytes(drawn) + _random_upkeep(Random(f"upkeep {seed}"))


def _random_upkeep(chance: Random) -> bytes:
    """Return one or two upkeep operations for half of all programs, and none for the rest.

    They are drawn from a separate generator, so that they do not change the other faults of the seed.
    """
    kinds = chance.choices(tuple(_UPKEEP), k=chance.choice((0, 0, 1, 2)))
    return b"".join(bytes((kind, *chance.randbytes(FAULT_BYTES - 1))) for kind in kinds)


def is_elected(data: bytes) -> bool:
    """Return whether the program's cluster is a group that elects its master."""
    return data[4:5] >= bytes((_ELECTED,))


class Run:
    """One run of a program."""

    def __init__(self, data: bytes, checked: Counter[str]) -> None:
        head = data[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0")
        shape, sky = head[4], head[5]
        elected = is_elected(data)
        self._faults = [
            tuple(data[at : at + FAULT_BYTES].ljust(FAULT_BYTES, b"\0"))
            for at in range(HEAD_BYTES, min(len(data), HEAD_BYTES + FAULTS_MAX * FAULT_BYTES), FAULT_BYTES)
        ]
        setup = Setup(
            FlushMode.SYNC_FLUSH if shape // 4 % 2 else FlushMode.ASYNC_FLUSH,
            None if elected else _SHAPES[shape % 4],
            elected=elected,
            queues=_QUEUES,
            store=_SMALL_STORE if any(kind == _EXPIRE for kind, *_ in self._faults) else STORE,
        )
        self._members = 1 + shape // 32 % 2
        self._topics = 1 + shape // 8 % 4
        self._sky = sky
        self._pause_s = (2.0, 1.0, 0.5, 0.3)[sky // 16 % 4]
        self._alike = sky // 128
        """Whether all messages have one size.

        Logs with different content then have records at the same positions.
        """
        self._checked = checked
        self._loop = SimulatedLoop()
        self._failures: list[BaseException] = []
        self._sends = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = True
        self._operator: Session | None = None
        self.cluster = Cluster(self._loop, int.from_bytes(head[:4], "little"), setup)
        self.witness = Witness(self.cluster, self._topics, self._members, checked, self._failures.append)
        self._group = GroupWitness(self.cluster, checked, self._failures.append) if elected else None

    @property
    def seconds(self) -> float:
        """The simulated time that has passed, in seconds."""
        return self._loop.time()

    @property
    def sends(self) -> int:
        return self._sends

    def run(self) -> None:
        """Run the faults, then the calm. Raises Finding, or any unexpected exception of a background task."""
        self._loop.set_exception_handler(self._surprised)
        gc.disable()  # almost every object lives until the run ends, so collection finds little
        try:
            with expected_warnings("mqproof.impl", "asyncio"):
                run_simulated(self._play(), self._loop)
        except Finding as finding:
            self._failures.append(finding)
        finally:
            gc.enable()
        if self._failures:  # the first one: the others may be consequences of it
            raise self._failures[0]

    def _surprised(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and not isinstance(error, SimulatedCrashError | OSError):
            self._failures.append(error)

    async def _play(self) -> None:
        cluster = self.cluster
        await cluster.start_all()
        internet = cluster.internet
        internet.loss = (0.0, 0.02, 0.1, 0.2)[self._sky % 4]
        internet.delay_s = ((0.0002, 0.001), (0.02, 0.1), (0.0002, 0.001), (0.001, 0.5))[self._sky // 4 % 4]
        producing = cluster.session(_PRODUCER, _SESSION)
        await producing.start()
        producer = Producer(producing, ProducerConfig("PG", retries=0))
        consuming = []
        for number in range(self._members):
            session = cluster.session(f"consumer-{number}", _SESSION)
            await session.start()
            # The first consumer also commits to a slave when there is no master.
            make = PushConsumer if number else ReleasedPushConsumer
            consumer = make(
                session, GROUP, self._consume, PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
            )
            await consumer.start()
            for topic in self.witness.topics:
                await consumer.subscribe(topic.name)
            consuming.append(consumer)
        for topic in self.witness.topics:
            self.do(self._produce(producer, topic))
        for fault in self._faults:
            self.do(self._strike(*fault))
        last = max((at * _QUARTER_S for _, _, at, _ in self._faults), default=0.0)
        end_s = self._loop.time() + last + _AFTER_S
        while self._loop.time() < end_s:
            if self._failures:
                return
            await asyncio.sleep(min(_STEP_S, end_s - self._loop.time()))
            self.witness.look()
        await self._calm(producer)
        self.witness.judge()

    async def _consume(self, messages: Sequence[ReceivedMessage]) -> None:
        for message in messages:
            self.witness.delivered(message.stored)

    async def _produce(self, producer: Producer, topic: Topic) -> None:
        while self._sending:
            await asyncio.sleep(self._pause_s)
            await self._send(producer, topic, self._sends % _QUEUES)

    async def _send(self, producer: Producer, topic: Topic, queue_id: int) -> str:
        """Send one message and return its status."""
        self._sends += 1
        name = f"m{self._sends:05}"
        body = name.encode() + b"." * (_BODY_BYTES if self._alike else self._sends % _BODY_BYTES)
        sending = self.witness.begins(topic, queue_id, name, body)
        queue = MessageQueue(topic.name, "broker-a", queue_id)
        outcome = await producer.send(
            Message(topic.name, body, {UNIQUE_KEY: name}), queue, timeout_ms=_SEND_MS
        )
        self.witness.ended(topic, sending, outcome)
        return getattr(outcome, "status", "unknown")

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine as a background task."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._failures.append(error)

    # -- the calm

    async def _calm(self, producer: Producer) -> None:
        """End all faults, start all nodes, and check that the cluster keeps its promises."""
        cluster, witness = self.cluster, self.witness
        for task in list(self._tasks):
            if task.get_name() == "fault":
                task.cancel()
        cluster.internet.loss, cluster.internet.delay_s = 0.0, (0.0002, 0.001)
        cluster.internet.heal()
        for machine in cluster.machines.values():
            machine.disk.on_step, machine.disk.room = None, _ROOM
            machine.fsync.slowness = 1.0
        self._sending = False
        for node in cluster.nodes:
            cluster.go_on(node)
            if node in cluster.brokers and cluster.brokers[node].store.failure:
                self.end(node, End.KILL)  # the operator starts it again
        for node in (*NAME_SERVERS, *cluster.nodes):
            cluster.go_on(node)
            await self.start(node)
        began_s = self._loop.time()
        if self._group:
            await self._group.calm(CALM_S)
        if SLAVE in cluster.nodes and not witness.is_apart:
            witness.calm(caught_up=await cluster.until(cluster.has_caught_up, CALM_S))
        # If the slave cannot follow, it may do so after its master's log has grown.
        for _ in range(_FORKED_SENDS if witness.is_apart else 1):
            for topic in witness.topics:
                await self._is_served(producer, topic)
        while (left := witness.undelivered()) and self._loop.time() < began_s + CALM_S:
            await asyncio.sleep(0.5)
        judge.acked_delivered(left, CALM_S, self._checked)
        if self._group:
            await self._group.judge(witness.promised_of, CALM_S)
        if cluster.is_serving(SLAVE) and not witness.is_apart:
            await self._read_the_slave()

    async def _is_served(self, producer: Producer, topic: Topic) -> None:
        """Check that a send is answered SEND_OK within CALM_S."""
        end_s = self._loop.time() + CALM_S
        while (status := await self._send(producer, topic, 0)) != "SEND_OK":
            if self.witness.is_apart and status in ("SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT"):
                return
            if self._loop.time() >= end_s:
                break
            await asyncio.sleep(1)
        judge.send_answered(status, CALM_S, self._checked)

    async def _read_the_slave(self) -> None:
        """Stop the master and check that the slave serves reads."""
        cluster = self.cluster
        await cluster.until(cluster.has_caught_up, CALM_S)
        await asyncio.sleep(_KNOWN_S)
        self.end(MASTER, End.KILL)
        await asyncio.sleep(1)
        session = cluster.session("reader", _SESSION)
        consumer = PullConsumer(session, "R")
        for topic in self.witness.topics:
            for queue_id in range(_QUEUES):
                held = self.witness.held(SLAVE, topic, queue_id)
                if held:
                    queue = MessageQueue(topic.name, "broker-a", queue_id)
                    read = await _read(consumer, queue, held[0].queue_offset)
                    self.witness.read(tuple(stored.message_id for stored in held), read)
        await self.start(MASTER)

    # -- upkeep

    async def order(self, node: str, code: RequestCode, fields: dict[str, str]) -> None:
        """Send an operator's request to a broker. The broker may not answer."""
        cluster = self.cluster
        if self._operator is None:
            self._operator = cluster.session("operator", _SESSION)
            await self._operator.start()
        address = Address(cluster.machines[node].host, cluster.config(node).port)
        with suppress(RemotingError):
            await self._operator.remoting.invoke(address, new_request(code, fields), _ORDER_S)

    # -- faults

    async def _strike(self, kind: int, selector: int, at: int, length: int) -> None:
        task = asyncio.current_task()
        assert task is not None, "faults are tasks"
        task.set_name("fault")
        await asyncio.sleep(at * _QUARTER_S)
        strike = _UPKEEP.get(kind) or _FAULTS[kind % len(_FAULTS)]
        await strike(self, selector, (1 + length % 80) * _QUARTER_S)

    def node(self, selector: int) -> str:
        """Return the master for odd `selector`, otherwise any other machine."""
        nodes = [node for node in (*self.cluster.nodes, *NAME_SERVERS) if node != self.master]
        return self.master if selector % 2 else nodes[selector // 2 % len(nodes)]

    @property
    def master(self) -> str:
        """The current master, or the node configured as master if none serves."""
        return self.cluster.master or self.cluster.nodes[0]

    def broker(self, selector: int) -> str:
        nodes = self.cluster.nodes
        return nodes[selector % len(nodes)]

    def end(self, node: str, how: End) -> None:
        """End a node's process or its machine."""
        cluster = self.cluster
        if node in cluster.nodes:
            self.witness.dies(node, how)  # also for a machine whose broker is down: it may lose stored data
        cluster.machines[node].disk.on_step = None
        {End.KILL: cluster.kill, End.OS_CRASH: cluster.crash, End.POWER_LOSS: cluster.lose_power}[how](node)

    async def start(self, node: str) -> None:
        """Start a node that is not running. A broker whose disk fails stays down. Raises Finding."""
        cluster = self.cluster
        if node in NAME_SERVERS:
            await cluster.start(node)
            return
        disk = cluster.machines[node].disk
        try:
            await cluster.start(node)
        except SimulatedCrashError:
            self.end(node, End.OS_CRASH)
        except (StoreError, OSError) as error:
            if disk.on_step is None:
                raise Finding("RecoveryEnds", f"{node} does not restart: {error}") from None
            self.end(node, End.KILL)

    async def cut(self, links: set[Link], seconds: float) -> None:
        self.cluster.internet.cut(links)
        await asyncio.sleep(seconds)
        self.cluster.internet.heal(links)

    def around(self, node: str) -> list[tuple[Link, Link]]:
        """Return the links between a machine and each other machine, as pairs (outgoing, incoming)."""
        return [self.cluster.links(node, other) for other in self.cluster.machines if other != node]


async def _read(consumer: PullConsumer, queue: MessageQueue, begin: int) -> tuple[str, ...]:
    read: list[str] = []
    with suppress(ClientError, NoRouteError):  # messages that were not read are missing from the result
        while messages := (await consumer.pull(queue, begin + len(read))).messages:
            read += [stored.message_id for stored in messages]
    return tuple(read)


async def _down(run: Run, node: str, how: End, seconds: float) -> None:
    run.end(node, how)
    await asyncio.sleep(seconds)
    await run.start(node)


async def _kill(run: Run, selector: int, seconds: float) -> None:
    await _down(run, run.node(selector), End.KILL, seconds)


async def _lose_power(run: Run, selector: int, seconds: float) -> None:
    await _down(run, run.broker(selector), End.POWER_LOSS, seconds)


async def _crash(run: Run, selector: int, seconds: float) -> None:
    await _down(run, run.broker(selector), End.OS_CRASH, seconds)


async def _crash_all(run: Run, selector: int, seconds: float) -> None:
    """Fail all machines at the same time, by crash or power loss. Each restarts after its own delay."""
    how = End.POWER_LOSS if selector % 2 else End.OS_CRASH
    await asyncio.gather(
        *(
            _down(run, node, how, seconds + 0.1 * (number * selector % 7))
            for number, node in enumerate(run.cluster.nodes)
        )
    )


async def _restart(run: Run, selector: int, _seconds: float) -> None:
    """Restart a broker within milliseconds, before other nodes can notice."""
    how = End.OS_CRASH if selector // 2 % 2 else End.KILL
    await _down(run, run.broker(selector), how, 0.005 * (1 + selector % 16))


async def _stop(run: Run, selector: int, seconds: float) -> None:
    """Shut a broker down cleanly, and start it again later."""
    node = run.broker(selector)
    if not run.cluster.is_serving(node) or run.cluster.is_paused(node):
        return
    # Answers that the broker sends while it is still starting belong to the life that ends here.
    await run.cluster.stop(node, lambda: run.witness.dies(node, End.SHUTDOWN))
    await asyncio.sleep(seconds)
    await run.start(node)


async def _crash_at_step(run: Run, selector: int, seconds: float) -> None:
    """Crash the machine at one of the next steps of its disk."""
    node = run.broker(selector)
    done = asyncio.Event()
    left = selector % 23

    def on_step(_: Step) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            done.set()
            run.cluster.pause(node)  # no part of the node runs after this point
            raise SimulatedCrashError("at this step")

    run.cluster.machines[node].disk.on_step = on_step
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), seconds)
    await _down(run, node, End.OS_CRASH, seconds / 4)


async def _disk_fails(run: Run, selector: int, seconds: float) -> None:
    """Make a broker's disk fail at one of its next steps, and at every later one until the fault ends.

    For some values of `selector` only syncs fail.
    """
    node = run.broker(selector)
    syncs_only = selector // 4 % 2
    disk = run.cluster.machines[node].disk
    left = selector % 23
    error = OSError(errno.ENOSPC if selector % 2 else errno.EIO, "the disk failed")

    def on_step(step: Step) -> None:
        nonlocal left
        left -= 1
        if left < 0 and (step.kind == "sync" or not syncs_only):
            raise error

    disk.on_step = on_step
    await asyncio.sleep(seconds)
    if disk.on_step is on_step:
        disk.on_step = None
        await _down(run, node, End.POWER_LOSS if syncs_only else End.KILL, 0.5)


async def _disk_full(run: Run, selector: int, seconds: float) -> None:
    disk = run.cluster.machines[run.broker(selector)].disk
    disk.room = _FULL
    await asyncio.sleep(seconds)
    disk.room = _ROOM


async def _slow_disk(run: Run, selector: int, seconds: float) -> None:
    machine = run.cluster.machines[run.broker(selector)]
    machine.fsync.slowness = 2000.0 if selector // 2 % 2 else 100.0
    await asyncio.sleep(seconds)
    machine.fsync.slowness = 1.0


async def _isolate(run: Run, selector: int, seconds: float) -> None:
    await run.cut({link for pair in run.around(run.node(selector)) for link in pair}, seconds)


async def _deafen(run: Run, selector: int, seconds: float) -> None:
    """Cut all incoming links of a node: it can send but not receive."""
    await run.cut({back for _, back in run.around(run.node(selector))}, seconds)


async def _mute(run: Run, selector: int, seconds: float) -> None:
    """Cut all outgoing links of a node: it can receive but not send."""
    await run.cut({there for there, _ in run.around(run.node(selector))}, seconds)


async def _cut_link(run: Run, selector: int, seconds: float) -> None:
    """Cut the link between two machines, in one direction or both.

    In half of the cases they are master and slave.
    """
    machines = list(run.cluster.machines)
    one, other = run.master, machines[selector // 4 % len(machines)]
    if SLAVE in machines and selector // 2 % 2:
        other = SLAVE
    links = run.cluster.links(one, other)
    await run.cut(set(links) if selector % 2 else {links[selector // 8 % 2]}, seconds)


async def _reset(run: Run, selector: int, _seconds: float) -> None:
    """Break the connections between two machines. They can be opened again."""
    machines = list(run.cluster.machines)
    one, other = (
        run.cluster.machines[name].host for name in (run.master, machines[selector % len(machines)])
    )
    run.cluster.internet.reset(one, other)


async def _pause(run: Run, selector: int, seconds: float) -> None:
    """Suspend a node's process and continue it later."""
    node = run.node(selector)
    run.cluster.pause(node)
    await asyncio.sleep(seconds)
    run.cluster.go_on(node)


async def _step_clock(run: Run, selector: int, seconds: float) -> None:
    run.witness.clocks_agree = False
    clock = run.cluster.machines[run.node(selector)].clock
    clock.skew_us += int(seconds * 1_000_000) * (1 if selector // 2 % 2 else -1)


async def _delete_topic(run: Run, selector: int, _seconds: float) -> None:
    """Delete a topic. The next send to it creates it again."""
    topics = run.witness.topics
    topic = topics[selector % len(topics)]
    topic.is_deleted = True
    await run.order(run.master, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic.name})


async def _expire(run: Run, selector: int, seconds: float) -> None:
    """Delete the old segments of a broker's log, repeatedly."""
    end_s = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end_s:
        await run.order(run.broker(selector), RequestCode.DELETE_EXPIRED_COMMITLOG, {})
        await asyncio.sleep(_EXPIRY_S)


_FAULTS: Final[tuple[Callable[[Run, int, float], Coroutine[Any, Any, None]], ...]] = (
    _kill,
    _lose_power,
    _crash,
    _crash_all,
    _restart,
    _stop,
    _crash_at_step,
    _disk_fails,
    _disk_full,
    _slow_disk,
    _isolate,
    _deafen,
    _mute,
    _cut_link,
    _reset,
    _step_clock,
    _pause,
)
_EXPIRE: Final = 255
_UPKEEP: Final = {254: _delete_topic, _EXPIRE: _expire}
"""Operations that are not faults have fixed numbers, so that the numbers of the faults do not change."""


def fault(name: str, selector: int, at: int, length: int) -> bytes:
    """Encode one fault or upkeep operation as bytes; `at` and `length` are quarters of a second."""
    numbered = (*enumerate(_FAULTS), *_UPKEEP.items())
    number = next(number for number, each in numbered if each.__name__ == f"_{name}")
    return bytes((number, selector, at, length))

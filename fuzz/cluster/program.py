"""Programs for a whole cluster: a seed, the configuration, and timed faults, as bytes.

The first six bytes describe the cluster. Each fault is four bytes: kind, target, start time and duration (in
quarters of a second). Missing bytes are read as zeros, so any bytes are a valid program. A shorter program
has fewer faults, nodes or messages, so findings are made small by shortening. After the faults comes the
calm: the faults have ended and the cluster must make progress. Name servers, brokers and clients are the real
ones; their environment is simulated.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, Final

from mqproof.conformance.hosts.simulated import MASTER, SLAVE, STORE, Cluster, Setup
from mqproof.conformance.subjects.released_consumer import ReleasedPushConsumer
from mqproof.conformance.suites.flush.steps import End
from mqproof.fuzz.cluster import judge
from mqproof.fuzz.cluster.background import Background
from mqproof.fuzz.cluster.faults import (
    FAULT_BYTES,
    FAULTS,
    HEAD_BYTES,
    QUARTER_S,
    SESSION,
    FaultInjector,
    expire,
    faults_of,
    head_of,
    seconds_of,
)
from mqproof.fuzz.cluster.group_witness import GroupWitness
from mqproof.fuzz.cluster.witness import GROUP, RESERVED_MS, Topic, Witness
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, ReceivedMessage
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.store.config import FlushMode

FAULTS_MAX: Final = 14
_RANDOM_FAULTS_MAX: Final = 12
CALM_S: Final = 120.0
"""The time limit of each check in the calm.

A master serves, its slave catches up, and the group receives its messages.
"""
_KNOWN_S: Final = 35.0
"""Long enough for the brokers to be known to each other and to clients.

Brokers register every 30 s, and a slave asks for topics every 10 s.
"""
_AFTER_S: Final = 8.0
"""Simulated time between the start of the last fault and the calm."""
_LATEST: Final = 255
"""The last quarter of a second in which a fault can begin."""
_STEP_S: Final = 5.0
_FORKED_SENDS: Final = 30
_PRODUCER: Final = "producer"
_QUEUES: Final = 2
_BODY_BYTES: Final = 150
_SEND_MS: Final = 4000
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


def random_program(seed: int) -> bytes:
    """Return the program of a seed: any cluster, network conditions, load and faults."""
    chance = Random(seed)
    faults = chance.randint(1, _RANDOM_FAULTS_MAX)
    drawn = bytearray(seed.to_bytes(8, "little")[:4] + chance.randbytes(2 + FAULT_BYTES * faults))
    for at in range(HEAD_BYTES, len(drawn), FAULT_BYTES):
        if drawn[at] in _UPKEEP:
            drawn[at] %= len(FAULTS)
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

    def __init__(self, data: bytes, checked: Counter[str], stretch: int = 1) -> None:
        """Create a run. Its faults begin `stretch` times as late; if stretched, it is as long as any."""
        seed, shape, sky = head_of(data)
        self._stretch = stretch
        elected = is_elected(data)
        self._faults = faults_of(data, FAULTS_MAX)
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
        self._background = Background()
        self._loop = self._background.loop
        self._failures = self._background.failures
        self._sends = 0
        self._sending = True
        self.cluster = Cluster(self._loop, seed, setup)
        self.witness = Witness(self.cluster, self._topics, self._members, checked, self._failures.append)
        self.faults = FaultInjector(self.cluster, self.witness.dies, self.witness.clock_was_set)
        self._group = GroupWitness(self.cluster, checked, self._failures.append) if elected else None

    @property
    def seconds(self) -> float:
        """The simulated time that has passed, in seconds."""
        return self._loop.time()

    @property
    def sends(self) -> int:
        return self._sends

    @property
    def faults_drawn(self) -> int:
        """The number of faults in the program."""
        return len(self._faults)

    def run(self) -> None:
        """Run the faults, then the calm. Raises Finding, or any unexpected exception of a background task."""
        self._background.run(self._play())

    async def _play(self) -> None:
        cluster = self.cluster
        await cluster.start_all()
        internet = cluster.internet
        internet.loss = (0.0, 0.02, 0.1, 0.2)[self._sky % 4]
        internet.delay_s = ((0.0002, 0.001), (0.02, 0.1), (0.0002, 0.001), (0.001, 0.5))[self._sky // 4 % 4]
        producing = cluster.session(_PRODUCER, SESSION)
        await producing.start()
        producer = Producer(producing, ProducerConfig("PG", retries=0))
        consuming = []
        for number in range(self._members):
            session = cluster.session(f"consumer-{number}", SESSION)
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
            self._background.do(self._produce(producer, topic))
        for fault in self._faults:
            self._background.inject(self._strike(*fault))
        end_s = self._loop.time() + self._last_fault_s() + _AFTER_S
        while self._loop.time() < end_s:
            if self._failures:
                return
            await asyncio.sleep(min(_STEP_S * self._stretch, end_s - self._loop.time()))
            self.witness.look()
        await self._calm(producer)
        self.witness.judge()

    def _last_fault_s(self) -> float:
        """Return when the last fault begins. In a stretched run this is when the latest one could."""
        if self._stretch > 1:
            return _LATEST * QUARTER_S * self._stretch
        return max((at * QUARTER_S for _, _, at, _ in self._faults), default=0.0)

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

    # -- the calm

    async def _calm(self, producer: Producer) -> None:
        """End all faults, start all nodes, and check that the cluster keeps its promises."""
        cluster, witness = self.cluster, self.witness
        self._background.end_faults()
        self._sending = False
        await self.faults.end_all()
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
        self.faults.end(MASTER, End.KILL)
        await asyncio.sleep(1)
        session = cluster.session("reader", SESSION)
        consumer = PullConsumer(session, "R")
        for topic in self.witness.topics:
            for queue_id in range(_QUEUES):
                held = self.witness.held(SLAVE, topic, queue_id)
                if held:
                    queue = MessageQueue(topic.name, "broker-a", queue_id)
                    read = await _read(consumer, queue, held[0].queue_offset)
                    self.witness.read(tuple(stored.message_id for stored in held), read)
        await self.faults.start(MASTER)

    # -- faults

    async def _strike(self, kind: int, selector: int, at: int, length: int) -> None:
        await asyncio.sleep(at * QUARTER_S * self._stretch)
        if work := _UPKEEP.get(kind):
            await work(self, selector, seconds_of(length))
        else:
            await self.faults.strike(kind, selector, length)


async def _read(consumer: PullConsumer, queue: MessageQueue, begin: int) -> tuple[str, ...]:
    read: list[str] = []
    with suppress(ClientError, NoRouteError):  # messages that were not read are missing from the result
        while messages := (await consumer.pull(queue, begin + len(read))).messages:
            read += [stored.message_id for stored in messages]
    return tuple(read)


async def _delete_topic(run: Run, selector: int, _seconds: float) -> None:
    """Delete a topic. The next send to it creates it again."""
    topics = run.witness.topics
    topic = topics[selector % len(topics)]
    topic.is_deleted = True
    await run.faults.order(run.faults.master, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic.name})


async def _expire(run: Run, selector: int, seconds: float) -> None:
    await expire(run.faults, selector, seconds)


_EXPIRE: Final = 255
_UPKEEP: Final[dict[int, Callable[[Run, int, float], Coroutine[Any, Any, None]]]] = {
    254: _delete_topic,
    _EXPIRE: _expire,
}
"""Operations that are not faults have fixed numbers, so that the numbers of the faults do not change."""


def upkeep(name: str, selector: int, at: int, length: int) -> bytes:
    """Encode one upkeep operation as bytes; `at` and `length` are quarters of a second."""
    number = next(number for number, each in _UPKEEP.items() if each.__name__ == f"_{name}")
    return bytes((number, selector, at, length))

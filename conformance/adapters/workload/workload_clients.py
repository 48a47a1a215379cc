"""Concurrent clients of all kinds on a cluster, and their observations as a history.

Producers send single messages, batches, delayed messages and messages with sharding keys; they also continue
while faults are injected. Consumer groups poll, poll by tag, or receive pushed messages. The pushed ones are
concurrent, orderly or broadcast, and their listeners fail from time to time. If the cluster allows SQL92
expressions, one group polls by an expression and another receives pushed messages by it.
"""

import asyncio
import hashlib
import logging
import random
import zlib
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Final, Protocol

from msgspec.structs import replace

from mqproof.conformance.adapters.workload.offset_requests import (
    RecordingPushConsumer,
    queue_name,
    record_commit,
    record_query,
)
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.history.lines import (
    DEAD,
    AssignValue,
    BoundsValue,
    CommitValue,
    ConsumeValue,
    Delivered,
    DrainValue,
    Group,
    PollValue,
    QueryValue,
    SendValue,
    Type,
)
from mqproof.conformance.history.lines import Message as LineMessage
from mqproof.conformance.history.recorder import Historian
from mqproof.conformance.history.workload import Workload
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, ReceivedMessage, RetryLater, Sent, Unknown
from mqproof.impl.client.model import Outcome as SendOutcome
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.message import DELAY, KEYS, TAGS, UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.spec.events import Event, Kind

_log: Final = logging.getLogger("mqproof.impl")

_MS: Final = 1_000_000
_LEVEL_MS: Final = (1000, 5000)
_FAILS: Final = 0.2
_POISON: Final = 10
_RETURNS: Final = 2
_AGAIN_S: Final = 0.5
_PAUSE_S: Final = 0.05


_EXPRESSION: Final = "region IN ('eu', 'us') AND price > 10.5 AND urgent IS NULL"
"""It selects the messages with the tag A: a rule about tags then judges the expression."""
_PROPERTIES: Final[dict[str, tuple[dict[str, str], ...]]] = {
    "A": ({"region": "eu", "price": "11"}, {"region": "us", "price": "10.75"}),
    "B": (
        {"region": "eu", "price": "10.5"},
        {"region": "eu", "price": "cheap"},
        {"region": "asia", "price": "11"},
        {"region": "eu", "price": "11", "urgent": "yes"},
        {"region": "us"},
        {"price": "11"},
    ),
}
"""By tag: the properties of messages. A message of B fails one condition, or lacks a value or a number."""


def groups(prefix: str, *, filters: bool = False) -> dict[str, Group]:
    """Return the consumer groups of a workload; topics and groups begin with the prefix.

    With `filters` there are also the groups with an SQL92 expression.
    """
    plain, orders, later = (f"{prefix}-{name}" for name in ("plain", "orders", "later"))
    delays = (_LEVEL_MS[0],) * _RETURNS
    by_sql = {f"{prefix}-{name}": Group(topics=(plain,), tags=("A",)) for name in ("sql", "select")}
    return {
        f"{prefix}-pull": Group(topics=(plain,)),
        f"{prefix}-tags": Group(topics=(plain,), tags=("A",)),
        f"{prefix}-orderly": Group(topics=(orders,), orderly=True, reconsume_max=1 << 30),
        f"{prefix}-retry": Group(topics=(plain,), reconsume_max=_RETURNS, retry_delays_ms=delays),
        f"{prefix}-all": Group(topics=(plain,), broadcast=True),
        f"{prefix}-later": Group(topics=(later,)),
        f"{prefix}-drain": Group(topics=(plain, orders, later)),
        **(by_sql if filters else {}),
    }


class Nemesis(Protocol):
    """Injects faults into the cluster."""

    async def strike(self, historian: Historian, chance: random.Random) -> None:
        """Inject one fault, from its beginning to its end."""
        ...


class Clients:
    """All clients of the cluster."""

    def __init__(
        self, name_server: Address, runtime: Runtime, historian: Historian, workload: Workload, prefix: str,
        directory: str, *, same_clock: bool, filters: bool = False,
    ) -> None:  # fmt: skip
        self._name_server = name_server
        self._runtime = runtime
        self._historian = historian
        self._workload = workload
        self._prefix = prefix
        self._directory = directory
        self._same_clock = same_clock
        """True if the broker uses our clock, so that the times of creating and storing can be compared."""
        self._filters = filters
        """Whether the cluster allows SQL92 expressions."""
        self._sending = True
        self._striking = False
        self._sessions: list[Session] = []
        self._pushed: list[PushConsumer] = []

    async def run(self, nemesis: Nemesis | None, progress: Callable[[str], None]) -> None:
        """Run the workload.

        Raises:
            TargetError: the cluster does not accept a first message for each topic.
        """
        workload = self._workload
        first = await self._producer("p0")
        for topic in ("plain", "orders", "later"):
            await self._first(first, topic)
        pulling = [asyncio.create_task(each) for each in await self._pulling()]
        changing = await self._push()
        progress("sending")
        self._striking = nemesis is not None and workload.faults > 0
        names = [f"p{number}" for number in range(1, workload.producers + 1)]
        sending = [asyncio.create_task(self._produce(name, await self._producer(name))) for name in names]
        sending += [asyncio.create_task(each) for each in changing]
        if nemesis is not None:
            chance = random.Random(f"{workload.seed} faults")
            for number in range(workload.faults):
                await asyncio.sleep(chance.uniform(0.5, 4))
                progress(f"fault {number + 1} of {workload.faults}")
                await nemesis.strike(self._historian, chance)
        self._striking = False
        await asyncio.gather(*sending)
        progress("settling")
        await asyncio.sleep(workload.settle_s)
        self._sending = False
        await asyncio.gather(*pulling)
        for consumer in self._pushed:
            await consumer.stop()
        progress("reading everything")
        await self._drain()
        for session in self._sessions:
            await session.stop()

    def _name(self, short: str) -> str:
        return f"{self._prefix}-{short}"

    async def _session(self, client: str) -> Session:
        session = Session([self._name_server], self._runtime, f"{client}@{self._prefix}")
        await session.start()
        self._sessions.append(session)
        return session

    # Producers.

    async def _producer(self, name: str) -> Producer:
        config = ProducerConfig(self._name("producers"), default_topic_queues=2)
        return Producer(await self._session(name), config)

    async def _first(self, producer: Producer, topic: str) -> None:
        chance = random.Random(f"{self._workload.seed} {topic}")
        for _ in range(20):
            outcome = await self._send(producer, "p0", topic, [self._message("p0", topic, 0, chance)])
            if isinstance(outcome, Sent):
                return
            await asyncio.sleep(_AGAIN_S)
        raise TargetError(f"no message of {topic} was stored")

    async def _produce(self, name: str, producer: Producer) -> None:
        chance = random.Random(f"{self._workload.seed} {name}")
        number = 0
        while number < self._workload.messages or self._striking:
            number += 1
            topic = chance.choices(("plain", "orders", "later"), (8, 4, 1))[0]
            count = chance.choice((2, 3)) if topic == "plain" and chance.random() < 0.1 else 1
            batch = [self._message(name, topic, f"{number}.{place}", chance) for place in range(count)]
            outcome = await self._send(producer, name, topic, batch)
            await asyncio.sleep(chance.uniform(0, 2 * _PAUSE_S) if isinstance(outcome, Sent) else _AGAIN_S)

    def _message(self, name: str, topic: str, number: object, chance: random.Random) -> Message:
        properties = {UNIQUE_KEY: f"{self._prefix}-{topic}-{name}-{number}", TAGS: chance.choice("AB")}
        if topic == "plain" and self._filters:
            known = _PROPERTIES[properties[TAGS]]
            properties |= known[zlib.crc32(properties[UNIQUE_KEY].encode()) % len(known)]
        if topic == "orders":
            properties[KEYS] = f"k{chance.randrange(6)}"
        if topic == "later":
            properties[DELAY] = str(chance.randrange(len(_LEVEL_MS)) + 1)
        body = f"{properties[UNIQUE_KEY]} ".encode() * chance.randrange(1, 20)
        return Message(self._name(topic), body, properties)

    async def _send(self, producer: Producer, name: str, topic: str, batch: list[Message]) -> SendOutcome:
        now = self._historian.now()
        messages = tuple(_line_message(message, now) for message in batch)
        self._historian.begin(name, SendValue(self._name(topic), messages))
        if topic == "orders":
            place = int(batch[0].properties[KEYS][1:])
            outcome = await producer.send(batch[0], select=lambda queues: queues[place % len(queues)])
        elif len(batch) > 1:
            outcome = (await producer.send_batch(batch))[0]
        else:
            outcome = await producer.send(batch[0])
        attempts = outcome.attempts
        if isinstance(outcome, Sent):
            placed = {} if topic == "later" else {
                "queue": queue_name(outcome.queue), "offset": outcome.queue_offset,
                "offset_id": outcome.offset_message_id,
            }  # fmt: skip
            self._historian.end(name, SendValue(status=outcome.status, attempts=attempts, **placed))  # type: ignore[arg-type]
        elif isinstance(outcome, Unknown):
            self._historian.end(name, SendValue(attempts=attempts), Type.INFO, outcome.remark[:200])
        else:
            error = f"{outcome.status} {outcome.remark}"[:200]
            self._historian.end(name, SendValue(attempts=attempts), Type.FAIL, error)
        return outcome

    # Groups that poll.

    async def _pulling(self) -> list[Coroutine[None, None, None]]:
        tasks: list[Coroutine[None, None, None]] = []
        polled: list[tuple[str, str, str | MessageSelector, int]] = [
            ("pull", "plain", "*", 2),
            ("tags", "plain", "A", 1),
            ("later", "later", "*", 1),
        ]
        if self._filters:
            polled.append(("sql", "plain", MessageSelector.sql(_EXPRESSION), 1))
        for group, topic, tags, members in polled:
            session = await self._session(f"{group}0")
            queues = sorted(await _until_known(session, self._name(group), self._name(topic)))
            for number in range(members):
                client = f"{group}{number}"
                consumer = PullConsumer(await self._session(client), self._name(group))
                mine = queues[number::members]
                assigned = AssignValue(self._name(group), client, tuple(map(queue_name, mine)))
                self._historian.did(client, assigned)
                tasks.append(self._pull(client, self._name(group), consumer, mine, tags))
        return tasks

    async def _pull(
        self,
        client: str,
        group: str,
        consumer: PullConsumer,
        queues: Sequence[MessageQueue],
        tags: str | MessageSelector,
    ) -> None:
        """Read the queues in turn from the committed offsets, and commit the progress."""
        position: dict[MessageQueue, int] = {}
        chance = random.Random(f"{self._workload.seed} {client}")
        while self._sending:
            for queue in queues:
                try:
                    if queue not in position:
                        position[queue] = await self._committed(client, group, consumer, queue)
                    position[queue] = await self._poll(client, group, consumer, queue, position[queue], tags)
                    if chance.random() < 0.2:
                        await self._commit(client, group, consumer, queue, position[queue])
                except ClientError:
                    await asyncio.sleep(_AGAIN_S)
            await asyncio.sleep(self._workload.poll_pause_s)

    async def _poll(
        self,
        client: str,
        group: str,
        consumer: PullConsumer,
        queue: MessageQueue,
        offset: int,
        tags: str | MessageSelector = "*",
    ) -> int:
        """Poll once; return the next offset. Raises ClientError."""
        self._historian.begin(client, PollValue(group, queue_name(queue), offset, client))
        try:
            result = await consumer.pull(queue, offset, tags=tags)
        except ClientError as error:
            self._historian.end(client, PollValue(), Type.FAIL, str(error)[:200])
            raise
        found = tuple(self._polled(queue, stored) for stored in result.messages)
        answer = PollValue(
            messages=found, next=result.next_offset, min=result.min_offset, max=result.max_offset
        )
        self._historian.end(client, answer)
        return result.next_offset

    async def _commit(
        self, client: str, group: str, consumer: PullConsumer, queue: MessageQueue, offset: int
    ) -> None:
        value = CommitValue(group, queue_name(queue), offset, client)
        await record_commit(self._historian, client, value, consumer.commit(queue, offset))

    async def _committed(self, client: str, group: str, consumer: PullConsumer, queue: MessageQueue) -> int:
        value = QueryValue(group, queue_name(queue))
        return await record_query(self._historian, client, value, consumer.committed(queue)) or 0

    # Groups with push consumers.

    async def _push(self) -> list[Coroutine[None, None, None]]:
        """Start the push consumers.

        Return the coroutines that change the members of the shared groups while messages come.
        """
        first = ConsumeFrom.FIRST_OFFSET
        everybody = PushConsumerConfig(
            MessageModel.BROADCASTING, consume_from=first, offsets_directory=self._directory
        )
        for client in ("all0", "all1"):
            await self._push_to(client, "all", "plain", everybody)
        if self._filters:
            select = MessageSelector.sql(_EXPRESSION)
            await self._push_to("select0", "select", "plain", PushConsumerConfig(consume_from=first), select)
        orderly = PushConsumerConfig(orderly=True, consume_from=first)
        retry = PushConsumerConfig(consume_from=first, reconsume_max=_RETURNS)
        return [
            await self._shared("orderly", "orders", orderly),
            await self._shared("retry", "plain", retry),
        ]

    async def _shared(
        self, group: str, topic: str, config: PushConsumerConfig
    ) -> Coroutine[None, None, None]:
        """Start the group with one member; return the coroutine that changes its members."""
        first = await self._push_to(f"{group}2", group, topic, config)
        return self._come_and_go(first, group, topic, config)

    async def _come_and_go(
        self, first: PushConsumer, group: str, topic: str, config: PushConsumerConfig
    ) -> None:
        """Let a second member join, the first leave and a third join while messages come.

        Each of them takes over queues that the group has partly read. The names of later members come first,
        so that each takes the single retry queue from a member that has no share of it afterwards.
        """
        chance = random.Random(f"{self._workload.seed} members of {group}")
        while_s = self._workload.messages * _PAUSE_S
        await asyncio.sleep(chance.uniform(0.2, 1) * while_s)
        await self._push_to(f"{group}1", group, topic, config)
        await asyncio.sleep(chance.uniform(0.2, 1) * while_s)
        await first.stop()
        self._pushed.remove(first)
        client = f"{group}2"
        self._historian.did(client, AssignValue(self._name(group), client, left=True))
        await asyncio.sleep(chance.uniform(0.2, 1) * while_s)
        await self._push_to(f"{group}0", group, topic, config)

    async def _push_to(
        self,
        client: str,
        short: str,
        topic: str,
        config: PushConsumerConfig,
        tags: str | MessageSelector = "*",
    ) -> PushConsumer:
        group = self._name(short)
        listener = _Listener(self, client, group, random.Random(f"{self._workload.seed} {client}"))
        listener.may_fail = short in ("orderly", "retry")  # few returns, or no copies
        listener.poison = 0 if config.orderly else _POISON
        consumer: PushConsumer | None = None

        def rebalanced(event: Event) -> None:
            if event.kind is Kind.REBALANCE and consumer is not None:
                owned = tuple(sorted(queue_name(queue) for queue in consumer.owned()))
                self._historian.did(client, AssignValue(group, client, owned))

        events = EventLog(rebalanced, client, self._runtime.clock)
        session = await self._session(client)
        consumer = RecordingPushConsumer(self._historian, client, session, group, listener, config, events)
        self._pushed.append(consumer)
        await consumer.start()
        await consumer.subscribe(self._name(topic), tags)
        return consumer

    # At the end.

    async def _drain(self) -> None:
        """Read everything with one more group. A topic that cannot be read is not recorded as drained."""
        session = await self._session("drain")
        group = self._name("drain")
        consumer = PullConsumer(session, group)
        dead = f"{DEAD}{self._name('retry')}"
        for topic in (*(self._name(short) for short in ("plain", "orders", "later")), dead):
            value = DrainValue(group, (topic,))
            self._historian.begin("drained", value)
            try:
                for queue in await consumer.queues(topic):
                    await self._drain_queue(group, consumer, queue)
            except (ClientError, RemotingError) as error:
                self._historian.end("drained", value, Type.INFO, str(error)[:200])
            else:
                self._historian.end("drained", value)

    async def _drain_queue(self, group: str, consumer: PullConsumer, queue: MessageQueue) -> None:
        name = queue_name(queue)
        self._historian.begin("drain", BoundsValue(name))
        low, high = await consumer.min_offset(queue), await consumer.max_offset(queue)
        self._historian.end("drain", BoundsValue(name, low, high))
        offset = low
        while offset < high:
            after = await self._poll("drain", group, consumer, queue, offset)
            if after <= offset:
                break
            offset = after

    def _polled(self, queue: MessageQueue, stored: StoredMessage) -> Delivered:
        delivered = self._delivered(stored)
        named = MessageQueue(stored.message.topic, queue.broker_name, stored.message.queue_id)
        return delivered if named == queue else replace(delivered, queue=queue_name(named))

    def _delivered(self, stored: StoredMessage) -> Delivered:
        message = stored.message
        clock = self._same_clock
        return Delivered(
            stored.message_id,
            stored.queue_offset,
            _digest(message.body),
            message.properties.get(TAGS, ""),
            message.properties.get(KEYS, ""),
            0,
            message.born_timestamp_ms * _MS if clock else 0,
            stored.store_timestamp_ms * _MS,
            stored.offset_message_id,
        )

    def received(self, message: ReceivedMessage) -> Delivered:
        delivered = self._delivered(message.stored)
        return Delivered(
            delivered.id,
            delivered.offset,
            delivered.body,
            delivered.tag,
            delivered.key,
            message.reconsume_times,
        )

    @property
    def historian(self) -> Historian:
        return self._historian


class _Listener:
    """A listener that takes some time and fails from time to time.

    Each concurrent call is a process of its own in the history.
    """

    may_fail = True
    poison = 0
    """One in `poison` messages is never consumed; 0 means that all are."""

    def __init__(self, clients: Clients, client: str, group: str, chance: random.Random) -> None:
        self._clients = clients
        self._client = client
        self._group = group
        self._chance = chance
        self._free: list[int] = []
        self._most = 0

    async def __call__(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        if not self._free:
            self._most += 1
            self._free.append(self._most)
        slot = self._free.pop()
        process = f"{self._client}#{slot}"
        historian = self._clients.historian
        delivered = tuple(map(self._clients.received, messages))
        value = ConsumeValue(self._group, queue_name(messages[0].queue), self._client, delivered)
        historian.begin(process, value)
        try:
            await asyncio.sleep(self._chance.uniform(0, _PAUSE_S))
        except asyncio.CancelledError:
            historian.end(process, ConsumeValue(), Type.INFO, "cancelled")
            raise
        fails = self.may_fail and (self._chance.random() < _FAILS or self._poisoned(messages[0]))
        historian.end(process, ConsumeValue(), Type.FAIL if fails else Type.OK)
        self._free.append(slot)
        return RetryLater(delay_level=1, pause_ms=100) if fails else None

    def _poisoned(self, message: ReceivedMessage) -> bool:
        return bool(self.poison) and int(_digest(message.body), 16) % self.poison == 0


async def _until_known(session: Session, group: str, topic: str) -> list[MessageQueue]:
    consumer = PullConsumer(session, group)
    for _ in range(60):
        with suppress(ClientError):
            return await consumer.queues(topic)
        await asyncio.sleep(_AGAIN_S)
    raise TargetError(f"no name server has a route of {topic}")


def _line_message(message: Message, now: int) -> LineMessage:
    properties = message.properties
    level = int(properties.get(DELAY, "0"))
    return LineMessage(
        properties[UNIQUE_KEY],
        _digest(message.body),
        properties.get(TAGS, ""),
        properties.get(KEYS, ""),
        now + _LEVEL_MS[level - 1] * _MS if level else 0,
    )


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=8).hexdigest()

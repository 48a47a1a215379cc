"""Uses each kind of client once on one topic: what producers send, each kind of consumer receives.

The rules for the requests of clients (`conformance/answers`) judge what they send.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

from mqproof.conformance.adapters.brokers.environments import SimulatedEnvironment
from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.wire import chapters
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import MessageQueue, ReceivedMessage, RefusalError, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.transaction_producer import TransactionProducer, TransactionState
from mqproof.impl.remoting.message import DELAY, TAGS, Message, StoredMessage

QUEUES: Final = 2
_FIRST: Final = ConsumeFrom.FIRST_OFFSET
_CHECKED_S: Final = 80.0
"""The time until a transaction without an end was checked, and a delayed message was delivered."""
_CONSUMED_S: Final = 20.0
"""The time until a consumer has received everything: a rebalance and the first level of retries."""
_POLLS: Final = 20
_FAILED: Final = "m0"
"""The message that a push consumer fails to consume once."""


class Tour:
    """One topic, and the messages that were sent to it."""

    def __init__(self, environment: SimulatedEnvironment, caller: Caller) -> None:
        self._environment = environment
        self._caller = caller
        self._topic = f"{caller.prefix}_tour"
        self._sent: set[str] = set()
        self._clients = 0

    async def run(self) -> None:
        """Send, and let each kind of consumer receive. Report what is wrong to the watch."""
        await self._caller.make_topic(self._topic, QUEUES)
        await self._produce()
        for consume in (self._poll, self._pull, self._pull_by_schedule, self._push, self._push_in_order):
            session = await self._session()
            received = await consume(session)
            self._compare(consume.__name__.strip("_"), received)
            await session.stop()
        await self._broadcast()

    async def _session(self) -> Session:
        self._clients += 1
        name = f"tour-{self._clients}"
        session = Session([self._environment.name_server], self._environment.machine(name), f"{name}@tour")
        await session.start()
        return session

    def _compare(self, what: str, received: Iterable[str]) -> None:
        counts = Counter(received)
        expected = Counter(self._sent)
        if counts != expected:
            text = f"more: {sorted((counts - expected).elements())}, less: {sorted(expected - counts)}"
            self._found(what, [Wrong(chapters.DELIVERY, text)])

    def _found(self, what: str, wrong: Iterable[Wrong]) -> None:
        self._environment.watch.found(f"{what} of all messages", wrong)

    # Producers

    def _message(self, number: int, **properties: str) -> Message:
        return Message(self._topic, f"m{number}".encode(), {TAGS: f"t{number % 2}", **properties})

    async def _produce(self) -> None:
        session = await self._session()
        producer = Producer(session, ProducerConfig(f"{self._caller.prefix}_tourists"))
        outcomes = [
            await producer.send(self._message(0)),
            *await producer.send_batch([self._message(number) for number in (1, 2, 3)]),
            *await producer.send_many([self._message(number) for number in (4, 5)]),
            await producer.send(self._message(6, **{DELAY: "1"})),
        ]
        await producer.send_oneway(self._message(7))
        self._sent |= {f"m{number}" for number in range(8)}
        if not all(isinstance(outcome, Sent) for outcome in outcomes):
            self._found("sending", [Wrong(chapters.SEND_ATTEMPTS, f"the outcomes {outcomes}")])
        await self._transact(session)
        await session.stop()

    async def _transact(self, session: Session) -> None:
        """Commit, roll back, and leave to a check; the check commits."""
        config = ProducerConfig(f"{self._caller.prefix}_transactors")
        producer = TransactionProducer(session, _committed, config)
        for number, state in enumerate(TransactionState, start=8):
            await producer.send(self._message(number), _ending(state))
            if state is not TransactionState.ROLLBACK:
                self._sent.add(f"m{number}")
        await asyncio.sleep(_CHECKED_S)
        await producer.stop()

    # Consumers, each in a group of its own

    def _group(self, kind: str) -> str:
        return f"{self._caller.prefix}_{kind}"

    async def _poll(self, session: Session) -> list[str]:
        """Poll everything, and again after the group has committed and a queue was rewound."""
        group = self._group("lite")
        received: list[str] = []
        first = LitePullConsumer(session, group, LitePullConfig(_FIRST))
        await first.start()
        await first.subscribe(self._topic)
        received += _texts(await _polled(first))
        await first.commit()
        await first.stop()
        second = LitePullConsumer(session, group, LitePullConfig(_FIRST))
        await second.start()
        await second.subscribe(self._topic)
        received += _texts(await _polled(second))
        queue = min(second.assignment())
        expected = _bodies(await self._read(session, queue))
        await second.seek_to_begin(queue)
        again = _texts(await _polled(second))
        if again != expected:
            text = f"after a seek to the beginning {again}, expected {expected}"
            self._found("polling", [Wrong(chapters.LITE_PULL, text)])
        await second.stop()
        return received

    async def _pull(self, session: Session) -> list[str]:
        """Pull each queue from its beginning, and commit; compare what is committed."""
        consumer = PullConsumer(session, self._group("pull"))
        received: list[str] = []
        for queue in await consumer.queues(self._topic):
            found = await self._read(session, queue)
            received += _bodies(found)
            end = await consumer.max_offset(queue)
            await consumer.commit(queue, end)
            last = found[-1].store_timestamp_ms if found else 0
            values = (
                ("committed offset", end, await consumer.committed(queue)),
                ("beginning", 0, await consumer.min_offset(queue)),
                ("end", len(found), end),
                ("offset of the last time", max(0, end - 1), await consumer.search_offset(queue, last + 1)),
            )
            self._found("pulling", _different(values))
        return received

    async def _read(self, session: Session, queue: MessageQueue) -> Sequence[StoredMessage]:
        try:
            result = await PullConsumer(session, self._group("pull")).pull(queue, 0)
        except RefusalError as error:
            self._found("pulling", [Wrong(chapters.PULL_REQUESTS, f"a pull is refused: {error}")])
            return ()
        return result.messages

    async def _pull_by_schedule(self, session: Session) -> list[str]:
        received: list[str] = []
        following: defaultdict[MessageQueue, int] = defaultdict(int)

        async def work(consumer: PullConsumer, queue: MessageQueue) -> int | None:
            result = await consumer.pull(queue, following[queue])
            received.extend(_bodies(result.messages))
            following[queue] = result.next_offset
            return None

        service = ScheduledPull(session, self._group("scheduled"))
        await service.start()
        await service.register(self._topic, work)
        await asyncio.sleep(_CONSUMED_S)
        await service.stop()
        return received

    async def _push(self, session: Session) -> list[str]:
        """Receive everything; one message fails once, and is delivered again with its topic."""
        received: list[ReceivedMessage] = []

        async def listen(messages: Sequence[ReceivedMessage]) -> None:
            for message in messages:
                if message.body == _FAILED.encode() and not message.reconsume_times:
                    raise ValueError("fails once")
                received.append(message)

        await self._consume(session, "push", listen, PushConsumerConfig(consume_from=_FIRST))
        again = [message for message in received if message.reconsume_times]
        values = (
            ("redelivered messages", [_FAILED], _texts(again)),
            ("topics", {self._topic}, {message.topic for message in received}),
            ("times", [1], [message.reconsume_times for message in again]),
        )
        self._found("pushing", _different(values))
        return _texts(received)

    async def _push_in_order(self, session: Session) -> list[str]:
        received: list[ReceivedMessage] = []

        async def listen(messages: Sequence[ReceivedMessage]) -> None:
            received.extend(messages)

        await self._consume(
            session, "orderly", listen, PushConsumerConfig(orderly=True, consume_from=_FIRST, batch_max=2)
        )
        for queue in {message.queue for message in received}:
            offsets = [message.stored.queue_offset for message in received if message.queue == queue]
            if offsets != sorted(offsets):
                text = f"the offsets {offsets} of queue {queue.queue_id}"
                self._found("orderly pushing", [Wrong(chapters.ORDERLY, text)])
        return _texts(received)

    async def _consume(
        self,
        session: Session,
        kind: str,
        listen: Callable[[Sequence[ReceivedMessage]], Awaitable[None]],
        config: PushConsumerConfig,
    ) -> None:
        consumer = PushConsumer(session, self._group(kind), listen, config)
        await consumer.subscribe(self._topic)
        await consumer.start()
        await asyncio.sleep(_CONSUMED_S)
        await consumer.stop()

    async def _broadcast(self) -> None:
        """Each of two members receives everything, and nothing again after its restart."""
        received: defaultdict[int, list[str]] = defaultdict(list)
        members = []
        for member in range(2):
            session = await self._session()

            async def listen(messages: Sequence[ReceivedMessage], member: int = member) -> None:
                received[member] += _texts(messages)

            config = PushConsumerConfig(
                MessageModel.BROADCASTING, consume_from=_FIRST, offsets_directory=f"/offsets-{member}"
            )
            members.append((session, listen, config))
        for _ in range(2):
            await asyncio.gather(
                *(self._consume(session, "broadcast", listen, config) for session, listen, config in members)
            )
        for member, (session, _, _) in enumerate(members):
            self._compare(f"broadcast to member {member}", received[member])
            await session.stop()


async def _committed(_message: object, _transaction_id: str) -> TransactionState:
    return TransactionState.COMMIT


def _ending(state: TransactionState) -> Callable[[Message, str], Awaitable[TransactionState]]:
    async def run(_message: Message, _transaction_id: str) -> TransactionState:
        return state

    return run


async def _polled(consumer: LitePullConsumer) -> list[ReceivedMessage]:
    """Poll until nothing arrives any more."""
    received: list[ReceivedMessage] = []
    for _ in range(_POLLS):
        messages = await consumer.poll()
        received += messages
        if received and not messages:
            break
        if not messages and len(consumer.assignment()) == QUEUES:
            break
    return received


def _texts(messages: Iterable[ReceivedMessage]) -> list[str]:
    return [message.body.decode() for message in messages]


def _bodies(messages: Iterable[StoredMessage]) -> list[str]:
    return [stored.message.body.decode() for stored in messages]


def _different(values: Iterable[tuple[str, object, object]]) -> Iterator[Wrong]:
    for name, expected, observed in values:
        if expected != observed:
            yield Wrong(chapters.DELIVERY, f"{name} {observed}, expected {expected}")

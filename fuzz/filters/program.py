"""Programs of filter servers: a seed, the configuration, and timed faults, as bytes.

The form is that of fuzz/cluster/program.py: six bytes, then four for each fault. There are two name servers,
one broker with SYNC_FLUSH, and its filter server. A stranger uploads damaged modules. A group consumes with a
function that fails at some messages. After the faults, its consumer restarts with a correct function, and
must receive all messages that this one selects.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final

from mqproof.conformance.hosts.simulated import MASTER, Cluster, Setup
from mqproof.fuzz.cluster.background import Background
from mqproof.fuzz.cluster.faults import (
    FAULTS,
    QUARTER_S,
    SESSION,
    FaultInjector,
    faults_of,
    head_of,
    seconds_of,
)
from mqproof.fuzz.filters import judge
from mqproof.fuzz.filters.functions import FIRST, LETTERS, SECOND, SELECTED, damaged
from mqproof.fuzz.target import Finding
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ReceivedMessage, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.filtering.function_names import function_name
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.config import FlushMode

if TYPE_CHECKING:
    from mqproof.impl.filter_server.server import FilterServer

FAULTS_MAX: Final = 8
RESTART: Final = 255
"""The number of the fault that stops the filter server, and starts it again."""
UPLOAD: Final = 254
"""The number of the upload of a damaged module."""
_RANDOM_FAULTS_MAX: Final = 3
_RANDOM_UPLOADS_MAX: Final = 2
_TOPIC, _GROUP = "T", "G"
_FILTERING: Final = "filtering"
_PORT: Final = 10950
_QUEUES: Final = 2
_WEIGHTS: Final = (8, 8, 1, 1)
"""How often each letter is sent: a queue stops at the first message at which the function fails."""
_SEND_S: Final = 0.5
_SETTLED_S: Final = 20.0
_DELIVERED_S: Final = 90.0
_LOOK_S: Final = 1.0
_UPLOAD_S: Final = 5.0
_SEND_OK: Final = "SEND_OK"


def random_program(seed: int) -> bytes:
    """Return the program of a seed: any faults of the cluster, restarts of the filter server, and uploads."""
    chance = Random(f"filters {seed}")
    drawn = bytearray(seed.to_bytes(8, "little")[:4] + chance.randbytes(2))
    for _ in range(chance.randint(0, _RANDOM_FAULTS_MAX)):
        kind = chance.choice((*range(len(FAULTS)), RESTART, RESTART, RESTART))
        drawn += bytes((kind, chance.randrange(256), chance.randrange(40), chance.randrange(20)))
    for _ in range(chance.randint(0, _RANDOM_UPLOADS_MAX)):
        drawn += bytes((UPLOAD, *chance.randbytes(3)))
    return bytes(drawn)


class Run:
    """One run of a program."""

    def __init__(self, data: bytes, checked: Counter[str]) -> None:
        seed, shape, self._sky = head_of(data)
        self._faults = faults_of(data, FAULTS_MAX)
        self._messages = 16 + shape % 32
        self._chance = Random(f"{seed} clients")
        self._checked = checked
        self._background = Background()
        setup = Setup(FlushMode.SYNC_FLUSH, None, queues=_QUEUES, filter_servers=True)
        self.cluster = Cluster(self._background.loop, seed, setup)
        self._injector = FaultInjector(self.cluster)
        self._filter_server: FilterServer | None = None
        self._restarting = asyncio.Lock()
        self._acknowledged: dict[str, judge.Stored] = {}
        self._received: set[str] = set()
        self._is_sending = True

    def run(self) -> None:
        """Run the faults, then the calm. Raises Finding, or an unexpected exception of a background task."""
        self._background.run(self._play())

    async def _play(self) -> None:
        cluster, background = self.cluster, self._background
        cluster.add_machine(_FILTERING)
        await cluster.start_all()
        await self._start_filter_server()
        background.do(self._send())
        session = cluster.session("reader", SESSION)
        await session.start()
        consumer = await self._consumer(session, FIRST)
        cluster.internet.loss = (0.0, 0.0, 0.02, 0.1)[self._sky % 4]
        for fault in self._faults:
            background.inject(self._strike(*fault))
        ends = (_begin_s(at) + seconds_of(length) for _, _, at, length in self._faults)
        await asyncio.sleep(max(ends, default=0.0))
        await self._end_faults()
        await asyncio.sleep(_SETTLED_S)
        self._is_sending = False
        await consumer.stop()
        await self._calm(await self._consumer(session, SECOND))

    async def _end_faults(self) -> None:
        self._background.end_faults()
        await self._injector.end_all()
        async with self._restarting:
            await asyncio.sleep(0)  # a restart that began has ended

    async def _calm(self, consumer: PushConsumer) -> None:
        """Wait until the consumer with the correct function has received everything."""
        selected = SELECTED[SECOND]
        due = {body: at for body, at in self._acknowledged.items() if body[0] in selected}
        end_s = self.cluster.now_s + _DELIVERED_S
        while (
            not due.keys() <= self._received and self.cluster.now_s < end_s and not self._background.failures
        ):
            await asyncio.sleep(_LOOK_S)
        if not self._background.failures:
            judge.none_skipped(due, self._received, consumer.progress(_TOPIC), self._checked)
            judge.all_delivered(due, self._received, _DELIVERED_S, self._checked)

    # -- clients

    async def _send(self) -> None:
        session = self.cluster.session("sender", SESSION)
        await session.start()
        producer = Producer(session, ProducerConfig("P", default_topic_queues=_QUEUES))
        for number in range(self._messages):
            letter = self._chance.choices(LETTERS, _WEIGHTS)[0]
            await self._send_one(producer, f"{letter}{number:02}")
            await asyncio.sleep(self._chance.uniform(0, _SEND_S))

    async def _send_one(self, producer: Producer, body: str) -> None:
        """Send a message until it is acknowledged, or the faults are over."""
        while self._is_sending:
            sent = await producer.send(Message(_TOPIC, body.encode()), timeout_ms=4000)
            if isinstance(sent, Sent) and sent.status == _SEND_OK:
                self._acknowledged[body] = judge.Stored(sent.queue, sent.queue_offset)
                return
            await asyncio.sleep(_SEND_S)

    async def _consumer(self, session: Session, function: bytes) -> PushConsumer:
        selected = SELECTED[function]

        async def listen(messages: Sequence[ReceivedMessage]) -> None:
            for body in (message.body.decode() for message in messages):
                self._received.add(body)
                try:
                    judge.filter_sound(body, selected, self._checked)
                except Finding as finding:  # a consumer would take it for a failure of its listener
                    self._background.failures.append(finding)

        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        consumer = PushConsumer(session, _GROUP, listen, config)
        await consumer.start()
        await consumer.subscribe(_TOPIC, MessageSelector.function(function))
        return consumer

    # -- faults

    async def _strike(self, kind: int, selector: int, at: int, length: int) -> None:
        await asyncio.sleep(_begin_s(at))
        if kind == RESTART:
            self._background.do(self._restart(seconds_of(length)))
        elif kind == UPLOAD:
            await self._upload(damaged(selector, at, length))
        else:
            await self._injector.strike(kind, selector, length)

    async def _start_filter_server(self) -> None:
        from mqproof.impl.filter_server.server import FilterServer, FilterServerConfig  # it needs an extra

        machine, broker = self.cluster.machines[_FILTERING], self.cluster.machines[MASTER].host
        address = Address(broker, self.cluster.config(MASTER).port)
        config = FilterServerConfig(address, machine.host, _PORT)
        self._filter_server = FilterServer(config, machine.runtime())
        await self._filter_server.start()

    async def _restart(self, seconds: float) -> None:
        """Stop the filter server, which forgets all functions, and start it later."""
        async with self._restarting:
            assert self._filter_server is not None, "it was started at the beginning"
            await self._filter_server.stop()
            await asyncio.sleep(seconds)
            await self._start_filter_server()

    async def _upload(self, module: bytes) -> None:
        """Upload a module as a stranger, and pull with it."""
        session = self.cluster.session("stranger", SESSION)
        await session.start()
        address = Address(self.cluster.machines[_FILTERING].host, _PORT)
        name = function_name(module)
        upload = headers.RegisterFunctionRequest(_GROUP, _TOPIC, name)
        pull = headers.PullRequest(_GROUP, _TOPIC, 0, 0, 32, 12, 0, 0, 0, name)
        with suppress(RemotingError):
            code = RequestCode.REGISTER_MESSAGE_FILTER_CLASS
            await session.remoting.invoke(
                address, new_request(code, headers.write(upload), module), _UPLOAD_S
            )
            code = RequestCode.PULL_MESSAGE
            await session.remoting.invoke(address, new_request(code, headers.write(pull)), _UPLOAD_S)
        await session.stop()


def _begin_s(at: int) -> float:
    """Return the time at which a fault begins."""
    return at % 80 * QUARTER_S

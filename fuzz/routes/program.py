"""Programs of routes and requests: a seed, the configuration, and timed faults, as bytes.

The form is that of fuzz/cluster/program.py: six bytes, then four for each fault. There are two name servers,
a master with or without a slave, and another master. Producers send to any queue; requesters request, and a
consumer replies. After the faults, each client must have all brokers in its route.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Final

from mqproof.conformance.hosts.simulated import BROKER_NAMES, MASTER, OTHER, Cluster, Setup
from mqproof.fuzz.cluster.background import Background
from mqproof.fuzz.cluster.faults import (
    QUARTER_S,
    SESSION,
    FaultInjector,
    faults_of,
    head_of,
    seconds_of,
    with_random_faults,
)
from mqproof.fuzz.routes import judge
from mqproof.fuzz.routes.witness import Witness
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ClientError, NoReplyError, ReceivedMessage, ReplyError
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import PERM_READ_WRITE
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.message import CORRELATION_ID, REPLY_TO_CLIENT, Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.config import FlushMode

FAULTS_MAX: Final = 10
_RANDOM_FAULTS_MAX: Final = 6
_READ_ONLY: Final = 255
"""The number of the operation that makes a broker read-only for some time."""
_UNREACHABLE: Final = 254
"""The number of the fault that cuts the links from all brokers to a requester."""
_SENT, _ASKED = "S", "R"
"""The topics of sends and of requests."""
_ROUTED_S: Final = 60.0
_AFTER_S: Final = 12.0
_LOOK_S: Final = 1.0
_REQUEST_S: Final = 3.0
_QUEUES: Final = 2
_PRODUCERS: Final = 2
_REQUESTERS: Final = 2
_LANES: Final = 2
_SLOW: Final = 0.05
"""The share of replies that come after the time limit of their request."""
_REGISTER_MS: Final = 2000
_EXPIRY_MS: Final = 7000
_SCAN_MS: Final = 3000
_OPERATOR_S: Final = 3.0


def random_program(seed: int) -> bytes:
    """Return the program of a seed: any cluster and faults. Many make a broker read-only."""
    chance = Random(f"routes {seed}")
    drawn = with_random_faults(seed, chance, _RANDOM_FAULTS_MAX)
    for kind in (_READ_ONLY, _UNREACHABLE):
        if chance.randrange(2):
            drawn += bytes((kind, *chance.randbytes(2), 40))
    return drawn


class Run:
    """One run of a program."""

    def __init__(self, data: bytes, checked: Counter[str]) -> None:
        seed, shape, self._sky = head_of(data)
        self._faults = faults_of(data, FAULTS_MAX)
        setup = Setup(
            FlushMode.ASYNC_FLUSH,
            ReplicationConfig(Role.ASYNC_MASTER) if shape % 2 else None,
            other=True,
            queues=_QUEUES,
            register_interval_ms=_REGISTER_MS,
            broker_expiry_ms=_EXPIRY_MS,
            scan_interval_ms=_SCAN_MS,
            name_server_events=True,
        )
        self._checked = checked
        self._background = Background()
        self._chance = Random(f"{seed} clients")
        self.cluster = Cluster(self._background.loop, seed, setup)
        self.witness = Witness(self.cluster, (_SENT, _ASKED), checked, self._background.failures.append)
        self._injector = FaultInjector(self.cluster)
        self._is_sending = True
        self._open: dict[str, float] = {}
        """The requests that have not ended, with the time of their beginning."""
        self._sessions: dict[str, Session] = {}

    def run(self) -> None:
        """Run the faults, then the calm. Raises Finding, or an unexpected exception of a background task."""
        self._background.run(self._play())

    async def _play(self) -> None:
        cluster, background = self.cluster, self._background
        await cluster.start_all()
        operator = await self._session("operator")
        for node in (MASTER, OTHER):
            for topic in (_SENT, _ASKED):
                await self._make_topic(operator, node, topic)
        cluster.internet.loss = (0.0, 0.0, 0.02, 0.1)[self._sky % 4]
        for number in range(_PRODUCERS):
            background.do(self._send(f"producer-{number}", has_strategy=number % 2 == 1))
        await self._reply()
        for number in range(_REQUESTERS):
            background.do(self._request(f"requester-{number}"))
        for fault in self._faults:
            background.inject(self._strike(*fault))
        last = max((at * QUARTER_S for _, _, at, _ in self._faults), default=0.0)
        await self._look_until(cluster.now_s + last + _AFTER_S)
        if not background.failures:
            await self._calm()

    async def _look_until(self, end_s: float) -> None:
        while self.cluster.now_s < end_s and not self._background.failures:
            await asyncio.sleep(_LOOK_S)
            self.witness.look()
            open_s = {name: self.cluster.now_s - began_s for name, began_s in self._open.items()}
            self.witness.check(lambda: judge.request_ends(open_s, _REQUEST_S, self._checked))  # noqa: B023

    async def _calm(self) -> None:
        self._background.end_faults()
        await self._injector.end_all()
        end_s = self.cluster.now_s + _ROUTED_S
        while any(self._lacking().values()) and self.cluster.now_s < end_s:
            await self._look_until(self.cluster.now_s + _LOOK_S)
        judge.eventually_routed(self._lacking(), _ROUTED_S, self._checked)
        await self._look_until(self.cluster.now_s + _AFTER_S)
        self._is_sending = False

    def _lacking(self) -> dict[str, set[str]]:
        """Return the brokers that are in no route of a client, by client."""
        expected = {BROKER_NAMES[MASTER], BROKER_NAMES[OTHER]}
        return {
            name: expected - judge.writable(session.routes.known(_SENT))
            for name, session in self._sessions.items()
            if name.startswith("producer")
        }

    # -- faults

    async def _strike(self, kind: int, selector: int, at: int, length: int) -> None:
        await asyncio.sleep(at * QUARTER_S)
        if kind == _READ_ONLY:
            await self._read_only((MASTER, OTHER)[selector % 2], seconds_of(length))
        elif kind == _UNREACHABLE:
            requester = f"requester-{selector % _REQUESTERS}"
            links = {self.cluster.links(node, requester)[0] for node in self.cluster.nodes}
            await self._injector.cut(links, seconds_of(length))
        else:
            await self._injector.strike(kind, selector, length)

    async def _read_only(self, node: str, seconds: float) -> None:
        operator = self._sessions["operator"]
        await self._set_permission(operator, node, 4)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._background.do(self._set_permission(operator, node, 6))

    async def _make_topic(self, operator: Session, node: str, topic: str) -> None:
        header = headers.UpdateTopicRequest(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=_QUEUES,
            write_queue_nums=_QUEUES,
            perm=PERM_READ_WRITE,
        )
        await self._order(
            operator, node, new_request(RequestCode.UPDATE_AND_CREATE_TOPIC, headers.write(header))
        )

    async def _set_permission(self, operator: Session, node: str, permission: int) -> None:
        body = f"brokerPermission={permission}".encode()
        await self._order(operator, node, new_request(RequestCode.UPDATE_BROKER_CONFIG, {}, body))

    async def _order(self, operator: Session, node: str, request: Command) -> None:
        """Send an operator's request to a broker, again if it does not answer."""
        address = Address(self.cluster.machines[node].host, self.cluster.config(node).port)
        for _ in range(20):
            try:
                await operator.remoting.invoke(address, request, _OPERATOR_S)
            except RemotingError:
                await asyncio.sleep(1)
            else:
                return

    # -- clients

    async def _session(self, client: str) -> Session:
        session = self._sessions[client] = self.cluster.session(client, SESSION)
        self.witness.listen(session)
        await session.start()
        return session

    async def _send(self, client: str, *, has_strategy: bool) -> None:
        session = await self._session(client)
        config = ProducerConfig("SG", default_topic_queues=_QUEUES, latency_fault_strategy=has_strategy)
        events = self.witness.events_of(client, session, has_strategy=has_strategy)
        producer = Producer(session, config, events)
        number = 0
        while self._is_sending:
            await asyncio.sleep(self._chance.uniform(0, 1.0))
            number += 1
            await producer.send(Message(_SENT, f"{client} {number}".encode()), timeout_ms=6000)

    async def _request(self, client: str) -> None:
        """Start the lanes of a requester: it has several open requests at a time."""
        session = await self._session(client)
        producer = Producer(session, ProducerConfig("QG", default_topic_queues=_QUEUES))
        for lane in range(_LANES):
            self._background.do(self._ask(f"{client}.{lane}", producer))

    async def _ask(self, lane: str, producer: Producer) -> None:
        number = 0
        while self._is_sending:
            await asyncio.sleep(self._chance.uniform(0, 2.0))
            number += 1
            name = f"{lane} {number}"
            self._open[name] = began_s = self.cluster.now_s
            with suppress(NoReplyError, ClientError, RemotingError):
                message = Message(_ASKED, name.encode())
                reply = await producer.request(message, timeout_ms=round(1000 * _REQUEST_S))
                took_s = self.cluster.now_s - began_s
                text = reply.body.decode(errors="replace")
                judge.reply_to_its_requester(name, text, self._checked)
                judge.request_ends_once(name, took_s, _REQUEST_S, self._checked)
            del self._open[name]

    async def _reply(self) -> None:
        """Start the consumer that replies to all requests."""
        session = await self._session("replier")
        producer = Producer(session, ProducerConfig("RG"))

        async def listen(messages: Sequence[ReceivedMessage]) -> None:
            for message in messages:
                properties = message.properties
                correlation_id = properties.get(CORRELATION_ID, "")
                self.witness.requesters[correlation_id] = properties.get(REPLY_TO_CLIENT, "")
                if self._chance.random() < _SLOW:
                    await asyncio.sleep(_REQUEST_S + 1)
                with suppress(ReplyError):
                    await producer.reply(message, b"re:" + message.body)
                    self.witness.reply_is_confirmed(correlation_id)

        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        consumer = PushConsumer(session, "CG", listen, config)
        await consumer.start()
        await consumer.subscribe(_ASKED)

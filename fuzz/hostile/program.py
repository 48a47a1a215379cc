"""Programs of attacks: a seed, the shape of the cluster, and attacks one after the other, as bytes.

The first five bytes are the seed and the shape: one broker with small limits, one broker with accounts, a
synchronous master with its slave, or a group that elects its master. Each attack is six bytes: its kind, four
choices, and the pause after it (in quarters of a second). Missing bytes are read as zeros, so any bytes are a
valid program. Meanwhile honest clients send and read. After the attacks comes the calm: the cluster must
serve, with strangers still connected, and have every acknowledged message.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Final

from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.fuzz.cluster.background import Background
from mqproof.fuzz.hostile import judge
from mqproof.fuzz.hostile.attacked_cluster import OWN_TOPIC, AttackedCluster, Shape
from mqproof.fuzz.hostile.attackers import Attackers
from mqproof.fuzz.target import Finding
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import MessageQueue, Outcome, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.message import UNIQUE_KEY, Message, parse_offset_message_id
from mqproof.impl.store.message_store import MessageStore

HEAD_BYTES: Final = 5
ATTACK_BYTES: Final = 6
ATTACKS_MAX: Final = 12
_RANDOM_ATTACKS_MAX: Final = 10
_PAUSE_S: Final = 0.25
_PAUSES: Final = 12
_SEND_S: Final = 0.5
_SEND_MS: Final = 4000
_CALM_S: Final = 120.0
_SEND_OK: Final = "SEND_OK"


def random_program(seed: int) -> bytes:
    """Return the program of a seed: the shapes in turn, and any attacks."""
    chance = Random(f"hostile {seed}")
    attacks = chance.randint(1, _RANDOM_ATTACKS_MAX)
    return seed.to_bytes(8, "little")[:4] + bytes([seed % 4]) + chance.randbytes(ATTACK_BYTES * attacks)


def shape_of(data: bytes) -> Shape:
    """Return the shape of the program's cluster."""
    return Shape(data[4] % len(Shape)) if len(data) > 4 else Shape.BROKER


class Run:
    """One run of a program."""

    def __init__(self, data: bytes, checked: Counter[str]) -> None:
        seed = int.from_bytes(data[:4], "little")
        end = min(len(data), HEAD_BYTES + ATTACKS_MAX * ATTACK_BYTES)
        self._attacks = [
            data[at : at + ATTACK_BYTES].ljust(ATTACK_BYTES, b"\0")
            for at in range(HEAD_BYTES, end, ATTACK_BYTES)
        ]
        self._checked = checked
        self._background = Background()
        self.cluster = AttackedCluster(self._background.loop, seed, shape_of(data))
        self.attackers = Attackers(self.cluster, checked)
        self._acknowledged: dict[str, bytes] = {}
        """The messages that were answered with SEND_OK."""
        self._sends = 0
        self._is_sending = True

    def run(self) -> None:
        """Run the attacks, then the calm. Raises Finding."""
        try:
            self._background.run(self._play())
        except Finding:
            raise
        except Exception as error:  # a server that fails because of a request does not go on
            raise Finding("FieldsWithinLimits", f"a server failed: {error!r}") from error

    async def _play(self) -> None:
        cluster = self.cluster
        await cluster.start_all()
        await cluster.until(lambda: cluster.master is not None, _CALM_S)
        if cluster.shape is Shape.SLAVE:
            await cluster.until(cluster.follows, _CALM_S)
        session = cluster.own_session()
        await session.start()
        producer = Producer(session, ProducerConfig("honest_producer", retries=0))
        self.attackers.consumer = consumer = PullConsumer(session, "honest_consumer")
        await self._send_until_ok(producer)
        # Its group must exist: with limits this small, the share of one address is the total.
        await consumer.pull(self._queue(), 0)
        self._background.do(self._produce(producer))
        for attack in self._attacks:
            await self.attackers.attack(attack[0], attack[1:5])
            await asyncio.sleep(_PAUSE_S * (1 + attack[5] % _PAUSES))
            judge.shares_kept(cluster.uses(), self._checked)
            if self._background.failures:
                return
        self._is_sending = False
        await self._calm(producer)

    async def _produce(self, producer: Producer) -> None:
        while self._is_sending:
            await asyncio.sleep(_SEND_S)
            outcome = await self._send(producer)
            self._judge_service(outcome)

    def _queue(self) -> MessageQueue:
        """Return the queue of the honest clients."""
        return MessageQueue(OWN_TOPIC, self.cluster.config(self.cluster.nodes[0]).name, 0)

    def _judge_service(self, outcome: Outcome) -> None:
        """A single broker serves during attacks; a group may elect a master meanwhile."""
        shape = self.cluster.shape
        is_ok = isinstance(outcome, Sent) and (shape is Shape.SLAVE or outcome.status == _SEND_OK)
        if shape is not Shape.GROUP:
            judge.others_served("a send", "" if is_ok else str(outcome), self._checked)

    async def _send(self, producer: Producer) -> Outcome:
        self._sends += 1
        name = f"m{self._sends:04}"
        body = name.encode() * (1 + self._sends % 20)
        message = Message(OWN_TOPIC, body, {UNIQUE_KEY: name})
        outcome = await producer.send(message, self._queue(), timeout_ms=_SEND_MS)
        if isinstance(outcome, Sent):
            position = parse_offset_message_id(outcome.offset_message_id)[1]
            self.attackers.place = position
            if outcome.status == _SEND_OK:
                self._acknowledged[name] = body
                self._judge_acknowledgement(name, position)
        return outcome

    def _judge_acknowledgement(self, name: str, position: int) -> None:
        if self.cluster.shape is Shape.SLAVE:
            store = self.cluster.brokers[SLAVE].store
            assert isinstance(store, MessageStore), "a slave has a log of its own"
            judge.stranger_not_counted(
                name,
                is_on_slave=store.log_end > position,
                streamed_bytes=self.attackers.streamed_bytes,
                checked=self._checked,
            )

    async def _send_until_ok(self, producer: Producer) -> bool:
        end_s = self.cluster.now_s + _CALM_S
        while self.cluster.now_s < end_s:
            outcome = await self._send(producer)
            if isinstance(outcome, Sent) and outcome.status == _SEND_OK:
                return True
            await asyncio.sleep(_SEND_S)
        return False

    # -- the calm

    async def _calm(self, producer: Producer) -> None:
        """Check that the cluster serves, with strangers connected, and has every acknowledged message."""
        cluster = self.cluster
        cluster.internet.heal()
        is_served = await self._send_until_ok(producer)
        problem = "" if is_served else f"no send returns SEND_OK within {_CALM_S:.0f} s after the last attack"
        judge.others_served("a send", problem, self._checked)
        self.attackers.leave()
        nodes = (MASTER,) if cluster.shape in (Shape.BROKER, Shape.ACCOUNTS) else cluster.nodes
        await cluster.until(
            lambda: all(self._acknowledged.keys() <= self._kept(node).keys() for node in nodes)
        )
        for node in nodes:
            judge.no_acked_lost(self._acknowledged, self._kept(node), node, self._checked)
        judge.shares_kept(cluster.uses(), self._checked)

    def _kept(self, node: str) -> dict[str, bytes]:
        return {stored.message_id: stored.message.body for stored in self.cluster.log(node)}

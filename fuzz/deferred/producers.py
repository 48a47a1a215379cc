"""The producers of a run: they send half messages and timed messages, end and recall them, and stop."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Final

from mqproof.conformance.hosts.simulated import Cluster
from mqproof.conformance.suites.transactions.target import End
from mqproof.fuzz.cluster.faults import SESSION
from mqproof.fuzz.deferred.judge import DELAY_MAX_S
from mqproof.fuzz.deferred.observations import TOPIC, Timed, Transaction, body_of, name_of
from mqproof.fuzz.deferred.witness import Witness
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.transaction_producer import TransactionProducer, TransactionState
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import EndTransactionRequest
from mqproof.impl.remoting.message import (
    DELAY,
    TIMER_DELAY_MS,
    TIMER_DELAY_S,
    TIMER_DELIVER_MS,
    UNIQUE_KEY,
    Message,
    StoredMessage,
    parse_offset_message_id,
)

_GROUP: Final = "DG"
_QUEUE: Final = MessageQueue(TOPIC, "broker-a", 0)
_SEND_MS: Final = 4000
_LEVELS_S: Final = (1, 5, 10, 30)
_LIFE_S: Final = (4.0, 25.0)
"""The time after which a producer of transactions disappears, at least and at most."""
_CODES: Final = {End.COMMIT: 8, End.ROLLBACK: 12}
_STATES: Final = {
    None: TransactionState.UNKNOWN,
    End.COMMIT: TransactionState.COMMIT,
    End.ROLLBACK: TransactionState.ROLLBACK,
}
_BEHAVIOURS: Final = ("report", "report", "ask", "ask", "open", "again", "differ")
"""What a producer does after a half message.

It reports the end; lets the broker ask; lets the transaction stay open; reports the end several times; or
reports a rollback and then a commit, which is an error of the application.
"""


class Producers:
    """The producers of one run. They send until `is_sending` is False."""

    def __init__(self, cluster: Cluster, witness: Witness, chance: Random, pause_s: float) -> None:
        self.is_sending = True
        self._cluster = cluster
        self._witness = witness
        self._chance = chance
        self._pause_s = pause_s
        self._sent = 0

    async def send_transactions(self) -> None:
        """Run one producer of transactions after another. Each answers checks while it lives."""
        number = 0
        while self.is_sending:
            session = self._cluster.session(f"transactions-{number}", SESSION)
            await session.start()
            producer = TransactionProducer(session, self._checked, ProducerConfig(_GROUP, retries=0))
            end_s = self._cluster.now_s + self._chance.uniform(*_LIFE_S)
            while self.is_sending and self._cluster.now_s < end_s:
                await self._pause()
                await self._send_half(producer, session)
            if self.is_sending:  # the last one goes on answering checks
                await producer.stop()
                await session.stop()
            number += 1

    async def send_timed(self) -> None:
        """Send messages with a delay, and recall some of them."""
        session = self._cluster.session("timers", SESSION)
        await session.start()
        producer = Producer(session, ProducerConfig(_GROUP, retries=0))
        recalls: set[asyncio.Task[None]] = set()
        while self.is_sending:
            await self._pause()
            one, handle = await self._send_timed(producer)
            if handle is not None and self._chance.random() < 0.3:
                recalls.add(asyncio.create_task(self._recall(producer, one, handle)))
        await asyncio.gather(*recalls)

    async def is_served(self) -> str:
        """Send a message without a delay, and return its status."""
        session = self._cluster.session("probe", SESSION)
        producer = Producer(session, ProducerConfig(_GROUP, retries=0))
        outcome = await producer.send(Message(f"{TOPIC}-probe", b"probe"), timeout_ms=_SEND_MS)
        await session.stop()
        return getattr(outcome, "status", "unknown")

    async def end_by_request(self, one: Transaction, end: End, session: Session | None = None) -> str:
        """Send the end of a transaction. Return "" after SUCCESS, "unknown", or the remark of the refusal."""
        if one.half is None:
            return "unknown"
        own = session or self._cluster.session("finisher", SESSION)
        with suppress(NoRouteError, RemotingError, ClientError):
            await own.routes.get(TOPIC)
        address = own.routes.address(TOPIC, one.half.queue.broker_name)
        if address is None:
            return "unknown"
        _, commit_offset = parse_offset_message_id(one.half.offset_message_id)
        header = EndTransactionRequest(
            _GROUP, one.half.queue_offset, commit_offset, _CODES[end], one.half.message_id
        )
        one.requested.add(end)
        before, losses = self._witness.leadership(address), self._witness.losses
        request = new_request(RequestCode.END_TRANSACTION, headers.write(header))
        try:
            answer = await own.remoting.invoke(address, request, _SEND_MS / 1000)
        except RemotingError:
            return "unknown"
        if answer.code == ResponseCode.SLAVE_NOT_AVAILABLE:  # its route is old
            return "unknown"
        if answer.code != ResponseCode.SUCCESS:
            return f"{answer.code} {answer.remark}"
        after = self._witness.leadership(address)
        self._witness.end_is_answered(one, end, after if after == before else None, losses)
        return ""

    async def _pause(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, 2 * self._pause_s))

    def _next_name(self, letter: str) -> str:
        self._sent += 1
        return f"{letter}{self._sent:04}"

    # -- transactions

    async def _send_half(self, producer: TransactionProducer, session: Session) -> None:
        chance, witness = self._chance, self._witness
        name, behaviour = self._next_name("t"), chance.choice(_BEHAVIOURS)
        end = End.ROLLBACK if chance.random() < 0.3 else End.COMMIT
        one = Transaction(name, None if behaviour in ("open", "differ") else end)
        witness.transactions[name] = one
        losses = witness.losses

        async def local(_message: Message, _id: str) -> TransactionState:
            if behaviour not in ("report", "again"):
                return TransactionState.UNKNOWN
            one.requested.add(end)
            return _STATES[end]

        message = Message(TOPIC, body_of(name, chance.randrange(100)))
        outcome = await producer.send(message, local, _QUEUE, timeout_ms=_SEND_MS)
        witness.half_is_answered(one, outcome.sent, losses)
        if isinstance(outcome.sent, Sent) and outcome.sent.status != "SEND_OK":
            one.requested.add(End.ROLLBACK)
        if behaviour == "again":
            for _ in range(chance.randint(1, 3)):
                await self.end_by_request(one, end, session)
        elif behaviour == "differ":
            await self.end_by_request(one, End.ROLLBACK, session)
            await asyncio.sleep(chance.uniform(0, 2))
            await self.end_by_request(one, End.COMMIT, session)

    async def _checked(self, message: StoredMessage, _id: str) -> TransactionState:
        """Answer the check of a broker."""
        one = self._witness.transactions.get(name_of(message.message))
        if one is None:
            return TransactionState.UNKNOWN
        if one.decision is not None:
            one.requested.add(one.decision)
        return _STATES[one.decision]

    # -- timed messages

    async def _send_timed(self, producer: Producer) -> tuple[Timed, str | None]:
        chance, witness = self._chance, self._witness
        name = self._next_name("d")
        property_name = chance.choice(
            (DELAY, TIMER_DELAY_S, TIMER_DELAY_MS, TIMER_DELAY_MS, TIMER_DELIVER_MS)
        )
        now_ms = witness.now_ms
        if property_name == DELAY:
            level = chance.randint(1, len(_LEVELS_S))
            delay_s, value = float(_LEVELS_S[level - 1]), level
        else:
            delay_s = float(chance.randint(1, 40))
            if chance.random() < 0.1:
                delay_s += DELAY_MAX_S
            value = round(delay_s * (1 if property_name == TIMER_DELAY_S else 1000))
            if property_name == TIMER_DELIVER_MS:
                value += now_ms
                delay_s += 1 if delay_s > DELAY_MAX_S else -1  # the broker receives it later
        due_ms = now_ms + round(1000 * delay_s)
        one = Timed(name, due_ms, due_ms, property_name == DELAY)
        witness.timed[name] = one
        losses = witness.losses
        message = Message(
            TOPIC, body_of(name, chance.randrange(100)), {UNIQUE_KEY: name, property_name: str(value)}
        )
        outcome = await producer.send(message, _QUEUE, timeout_ms=_SEND_MS)
        witness.timed_is_answered(one, outcome, delay_s, losses)
        return one, outcome.recall_handle if isinstance(outcome, Sent) else None

    async def _recall(self, producer: Producer, one: Timed, handle: str) -> None:
        await asyncio.sleep(self._chance.uniform(0, 10))
        one.recall_asked = True
        losses = self._witness.losses
        with suppress(ClientError, NoRouteError, RemotingError):
            await producer.recall(TOPIC, handle, timeout_ms=_SEND_MS)
            self._witness.recall_is_answered(one, losses)

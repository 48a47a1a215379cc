"""Tests the transaction producer against our broker, and against broker answers of each status.

Source: docs/reference/protocol/transactions.md.
"""

import asyncio
from dataclasses import replace

import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import ClientError, MessageError, MessageQueue, Sent
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.client.producing.transaction_producer import (
    LocalTransaction,
    TransactionProducer,
    TransactionState,
)
from mqproof.impl.remoting.message import DELAY, Message, StoredMessage
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.store.files import record
from tests.impl.world import SMALL_STORE, World, play

QUEUE = MessageQueue("T", "broker-a", 0)
CONFIG = BrokerConfig(
    store_directory="/store", port=0, store=SMALL_STORE, transaction_check_interval_ms=10_000
)
MESSAGE = Message("T", b"a")


class Table:
    """A durable table of the ends of transactions, and the check listener that reads it."""

    def __init__(self) -> None:
        self.rows: dict[str, TransactionState] = {}
        self.checked: list[str] = []

    def local(self, state: TransactionState) -> LocalTransaction:
        async def run(_message: Message, transaction_id: str) -> TransactionState:
            self.rows[transaction_id] = state
            return state

        return run

    async def check(self, _message: StoredMessage, transaction_id: str) -> TransactionState:
        self.checked.append(transaction_id)
        return self.rows.get(transaction_id, TransactionState.ROLLBACK)


def producer(world: World, table: Table, session: Session | None = None) -> TransactionProducer:
    return TransactionProducer(session or world.session, table.check, ProducerConfig("TG"))


def bodies(world: World) -> list[bytes]:
    assert world.broker is not None
    return [record.decode(data).message.body for data in world.broker.store.get("T", 0, 0).records]


@pytest.mark.parametrize(
    ("state", "expected"), [(TransactionState.COMMIT, [b"a"]), (TransactionState.ROLLBACK, [])]
)
def test_the_message_is_visible_if_and_only_if_the_local_transaction_committed(
    state: TransactionState, expected: list[bytes]
) -> None:
    async def scenario(world: World) -> None:
        table = Table()
        outcome = await producer(world, table).send(MESSAGE, table.local(state), QUEUE)
        assert isinstance(outcome.sent, Sent)
        assert outcome.state is state
        assert list(table.rows) == [outcome.sent.message_id]
        await asyncio.sleep(60)
        assert bodies(world) == expected
        assert table.checked == []

    play(scenario, config=CONFIG)


def test_an_unknown_end_is_found_by_a_check() -> None:
    async def scenario(world: World) -> None:
        table = Table()

        async def slow(_message: Message, transaction_id: str) -> TransactionState:
            table.rows[transaction_id] = TransactionState.COMMIT
            return TransactionState.UNKNOWN

        outcome = await producer(world, table).send(MESSAGE, slow, QUEUE)
        assert outcome.state is TransactionState.UNKNOWN
        assert bodies(world) == []
        await asyncio.sleep(15)
        assert table.checked == [outcome.sent.message_id]
        assert bodies(world) == [b"a"]

    play(scenario, config=CONFIG)


def test_a_local_transaction_that_raises_is_resolved_by_a_check() -> None:
    async def scenario(world: World) -> None:
        table = Table()

        async def fails(_message: Message, _transaction_id: str) -> TransactionState:
            raise RuntimeError("constraint failed")

        outcome = await producer(world, table).send(MESSAGE, fails, QUEUE)
        assert outcome.state is TransactionState.UNKNOWN
        assert str(outcome.error) == "constraint failed"
        await asyncio.sleep(60)
        assert len(table.checked) == 1
        assert bodies(world) == []

    play(scenario, config=CONFIG)


def test_another_producer_of_the_group_answers_the_check_after_a_crash() -> None:
    async def scenario(world: World) -> None:
        table = Table()
        session = Session([world.namesrv_address], world.runtime, "doomed")
        await session.start()
        doomed = producer(world, table, session)

        async def dies(_message: Message, transaction_id: str) -> TransactionState:
            table.rows[transaction_id] = TransactionState.COMMIT
            await asyncio.sleep(1000)
            raise AssertionError

        sending = asyncio.create_task(doomed.send(MESSAGE, dies, QUEUE))
        await asyncio.sleep(1)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await session.stop()
        await world.session.routes.get("T")
        producer(world, table)
        await world.session.greet()
        await asyncio.sleep(15)
        assert len(table.checked) == 1
        assert bodies(world) == [b"a"]

    play(scenario, config=CONFIG)


def test_the_local_transaction_does_not_run_when_no_slave_has_the_half_message() -> None:
    async def scenario(world: World) -> None:
        table = Table()
        outcome = await producer(world, table).send(MESSAGE, table.local(TransactionState.COMMIT), QUEUE)
        assert isinstance(outcome.sent, Sent)
        assert outcome.sent.status == "SLAVE_NOT_AVAILABLE"
        assert outcome.state is TransactionState.ROLLBACK
        assert table.rows == {}
        await asyncio.sleep(60)
        assert bodies(world) == []
        assert table.checked == []

    replication = ReplicationConfig(role=Role.SYNC_MASTER, ha_port=0)
    play(scenario, config=replace(CONFIG, replication=replication))


def test_a_plain_function_runs_in_a_thread_and_must_return_a_state() -> None:
    async def scenario(world: World) -> None:
        table = Table()
        outcome = await producer(world, table).send(MESSAGE, lambda _m, _t: TransactionState.COMMIT, QUEUE)
        assert outcome.state is TransactionState.COMMIT
        wrong = await producer_of(world, "TG2").send(MESSAGE, lambda _m, _t: True, QUEUE)  # type: ignore[arg-type]
        assert wrong.state is TransactionState.UNKNOWN
        assert isinstance(wrong.error, TypeError)

    play(scenario, config=CONFIG)


def producer_of(world: World, group: str) -> TransactionProducer:
    return TransactionProducer(world.session, Table().check, ProducerConfig(group))


def test_a_refused_half_message_runs_no_local_transaction() -> None:
    async def scenario(world: World) -> None:
        table = Table()
        outcome = await producer(world, table).send(MESSAGE, table.local(TransactionState.COMMIT))
        assert outcome.state is TransactionState.ROLLBACK
        assert outcome.sent.attempts == 3  # such a refusal may be of one broker only
        assert table.rows == {}

    play(scenario, config=replace(CONFIG, reject_transactions=True))


def test_wrong_uses_are_refused() -> None:
    async def scenario(world: World) -> None:
        table = Table()
        one = producer(world, table)
        with pytest.raises(MessageError, match="delay"):
            await one.send(Message("T", b"a", {DELAY: "3"}), table.local(TransactionState.COMMIT))
        with pytest.raises(TypeError, match="local is None, a function expected"):
            await one.send(MESSAGE, None)  # type: ignore[arg-type]  # what is tested
        with pytest.raises(TypeError, match="check is None, a function expected"):
            TransactionProducer(world.session, None)  # type: ignore[arg-type]  # what is tested
        with pytest.raises(ClientError, match="TG"):
            producer(world, table)
        await one.stop()
        producer(world, table)
        await one.stop()  # a second stop does not affect the other producer
        with pytest.raises(ClientError, match="TG"):
            producer(world, table)

    play(scenario, config=CONFIG)

"""Tests the transaction producer against our broker, and against broker answers of each status.

Source: docs/reference/protocol/transactions.md.
"""

import asyncio
import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import (
    ClientError,
    MessageError,
    MessageQueue,
    Outcome,
    Refused,
    Sent,
    Unknown,
)
from mqproof.impl.client.producing.producer import ProducerConfig
from mqproof.impl.client.producing.transaction_producer import (
    LocalTransaction,
    TransactionProducer,
    TransactionState,
    _is_async,
)
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import CheckTransactionRequest
from mqproof.impl.remoting.message import DELAY, Message, StoredMessage
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.files import record
from tests.impl.client.producing.test_producer import Script
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


class _Async:
    async def __call__(self) -> None: ...


class _Plain:
    def __call__(self) -> None: ...


async def _coroutine_function() -> None: ...


@pytest.mark.parametrize(
    ("function", "expected"),
    [(_coroutine_function, True), (_Async(), True), (_Plain(), False), (lambda: None, False), (7, False)],
)
def test_a_coroutine_function_is_recognised_also_as_the_call_of_an_object(
    function: object, expected: bool
) -> None:
    assert _is_async(function) is expected


class Calls:
    """Stands for the session: a broker, and the reports of ends that it receives."""

    def __init__(self) -> None:
        self.reports: list[Command] = []
        self.lost: RemotingError | None = None
        self.address_of: list[tuple[str, str]] = []
        self.address: Address | None = Address("b", 1)
        self.greeted = 0

    @property
    def session(self) -> Any:
        async def send_oneway(_address: Address, request: Command) -> None:
            self.reports.append(request)
            if self.lost:
                raise self.lost

        async def greet() -> None:
            self.greeted += 1

        def address(topic: str, broker: str) -> Address | None:
            self.address_of.append((topic, broker))
            return self.address

        routes, remoting = SimpleNamespace(address=address), SimpleNamespace(send_oneway=send_oneway)
        return SimpleNamespace(routes=routes, remoting=remoting, greet=greet, leave_checks=lambda *_: None)


def scripted(check: Any, sent: Outcome | None = None) -> tuple[TransactionProducer, Calls, list[Message]]:
    """Return a producer whose half messages have this outcome."""
    halves: list[Message] = []

    async def send(half: Message, *_: object, **__: object) -> Outcome | None:
        halves.append(half)
        return sent

    calls, made = Calls(), TransactionProducer.__new__(TransactionProducer)
    made._session, made._config, made._check = calls.session, ProducerConfig("TG"), check
    made._producer, made._answering = cast(Any, SimpleNamespace(send=send)), set()
    return made, calls, halves


OFFSET_ID = "7F00000100002A9F" + "0000000000000400"
HALF = Sent("SEND_OK", "m", MessageQueue("T", "b", 2), 7, OFFSET_ID, 1)


@pytest.mark.parametrize(
    ("state", "value"),
    [(TransactionState.COMMIT, "8"), (TransactionState.ROLLBACK, "12"), (TransactionState.UNKNOWN, "0")],
)
def test_the_end_is_reported_field_by_field(state: TransactionState, value: str) -> None:
    async def local(_message: Message, transaction_id: str) -> TransactionState:
        assert transaction_id == "m"
        return state

    made, calls, halves = scripted(None, HALF)
    outcome = run_simulated(made.send(Message("T", b"a", {"UNIQ_KEY": "own", "a": "b"}, sys_flag=1), local))
    assert (outcome.state, outcome.error, calls.greeted) == (state, None, 1)
    (half,) = halves
    assert half.properties == {"a": "b", "TRAN_MSG": "true", "PGROUP": "TG"}
    assert half.sys_flag == 5
    (report,) = calls.reports
    assert dict(report.fields) == {
        "producerGroup": "TG", "tranStateTableOffset": "7", "commitLogOffset": "1024",
        "commitOrRollback": value, "fromTransactionCheck": "false", "msgId": "m", "transactionId": "m",
        "topic": "T",
    }  # fmt: skip
    assert (report.code, report.remark) == (RequestCode.END_TRANSACTION, None)
    assert calls.address_of == [("T", "b")]


def test_a_local_transaction_that_fails_is_logged_and_its_error_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def local(_message: Message, _transaction_id: str) -> TransactionState:
        raise RuntimeError("x" * 2000)

    made, calls, _ = scripted(None, HALF)
    outcome = run_simulated(made.send(MESSAGE, local))
    assert outcome.state is TransactionState.UNKNOWN
    assert isinstance(outcome.error, RuntimeError)
    (report,) = calls.reports
    assert report.remark == "RuntimeError: " + "x" * 986
    assert caplog.messages == ["the local transaction of m failed"]


@pytest.mark.parametrize(
    ("half", "address", "lost", "line"),
    [
        (
            replace(HALF, offset_message_id="zz"),
            Address("b", 1),
            None,
            "the broker's id of half message m is invalid",
        ),
        (HALF, None, None, ""),
        (
            HALF,
            Address("b", 1),
            RemotingError("lost"),
            "the end of m is not reported, the broker will ask: lost",
        ),
    ],
)
def test_an_end_that_cannot_be_reported_is_left_to_a_check(
    half: Sent,
    address: Address | None,
    lost: RemotingError | None,
    line: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def local(_message: Message, _transaction_id: str) -> TransactionState:
        return TransactionState.COMMIT

    made, calls, _ = scripted(None, half)
    calls.address, calls.lost = address, lost
    with caplog.at_level(logging.INFO):
        assert run_simulated(made.send(MESSAGE, local)).state is TransactionState.COMMIT
    assert len(calls.reports) == (1 if lost else 0)
    assert [each[: len(line)] for each in caplog.messages] == ([line] if line else [])


@pytest.mark.parametrize(
    ("properties", "in_header", "expected"),
    [({"UNIQ_KEY": "m"}, "h", "m"), ({}, "h", "h"), ({}, None, "")],
)
@pytest.mark.parametrize("is_failing", [False, True])
def test_a_check_is_answered_field_by_field(
    properties: dict[str, str], in_header: str | None, expected: str, is_failing: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    asked: list[str] = []

    async def check(_message: StoredMessage, transaction_id: str) -> TransactionState:
        asked.append(transaction_id)
        if is_failing:
            raise RuntimeError("injected")
        return TransactionState.COMMIT

    header = CheckTransactionRequest(
        tran_state_table_offset=7, commit_log_offset=1024, msg_id=in_header, transaction_id="t", topic="T"
    )

    async def main() -> Calls:
        made, calls, _ = scripted(check)
        stored = StoredMessage(Message("T", b"a", properties), 0, 0, 0, 0, 0)
        made._checked(Address("b", 1), header, stored)
        assert len(made._answering) == 1
        await asyncio.gather(*made._answering)
        await asyncio.sleep(0)
        assert not made._answering
        return calls

    (report,) = run_simulated(main()).reports
    assert asked == [expected]
    fields = {
        "producerGroup": "TG", "tranStateTableOffset": "7", "commitLogOffset": "1024",
        "commitOrRollback": "0" if is_failing else "8", "fromTransactionCheck": "true", "msgId": expected,
        "transactionId": "t", "topic": "T",
    }  # fmt: skip
    assert dict(report.fields) == fields
    assert report.remark == ("RuntimeError: injected" if is_failing else None)
    assert caplog.messages == ([f"the check of transaction {expected} failed"] if is_failing else [])


@pytest.mark.parametrize(("answer", "outcome"), [("cut", Unknown), (10, Sent), (14, Refused)])
def test_a_half_message_that_may_be_stored_is_not_sent_again_whatever_the_configuration(
    answer: int | str, outcome: type[Outcome]
) -> None:
    async def local(_message: Message, _transaction_id: str) -> TransactionState:
        raise AssertionError

    async def main() -> None:
        async with Script(loop, [answer, ResponseCode.MESSAGE_ILLEGAL]) as script:
            config = ProducerConfig("TG", retry_unknown=True, retry_unconfirmed=True)
            made = TransactionProducer(script.session, Table().check, config)
            found = await made.send(MESSAGE, local)
            assert found.state is TransactionState.ROLLBACK
            assert isinstance(found.sent, outcome)
            assert len(script.attempts) == (2 if outcome is Refused else 1)

    loop = SimulatedLoop()
    run_simulated(main(), loop)


def test_64_checks_are_answered_at_once_and_a_stop_ends_them() -> None:
    async def check(_message: StoredMessage, _transaction_id: str) -> TransactionState:
        await asyncio.sleep(100)
        return TransactionState.COMMIT

    header = CheckTransactionRequest(tran_state_table_offset=7, commit_log_offset=1024, topic="T")

    async def main() -> None:
        made, calls, _ = scripted(check)
        for expected in [*range(1, 65), 64, 64]:
            made._checked(Address("b", 1), header, StoredMessage(MESSAGE, 0, 0, 0, 0, 0))
            assert len(made._answering) == expected
        await asyncio.sleep(1)
        await made.stop()
        assert len(asyncio.all_tasks()) == 1
        assert calls.reports == []

    run_simulated(main())

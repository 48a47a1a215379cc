"""Tests transactions through a broker: visible if and only if committed, once, across restarts and checks.

Source: docs/reference/protocol/transactions.md. spec/tla/Transactions.tla has the same steps.
"""

import asyncio
from dataclasses import replace

import pytest

from mqproof.impl.broker import half_messages
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.half_messages import DISCARD_TOPIC, HALF_TOPIC, OPERATION_TOPIC, PROGRESS_GROUP
from mqproof.impl.client.model import MessageQueue, Outcome, Refused, Sent
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import (
    CheckTransactionRequest,
    EndTransactionRequest,
    ResumeCheckRequest,
    SendBackRequest,
)
from mqproof.impl.remoting.message import Message, StoredMessage, parse_offset_message_id
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.files import record
from mqproof.spec.events import Kind
from tests.impl.broker.group import Group
from tests.impl.broker.group import play as play_group
from tests.impl.world import SMALL_STORE, World, play

QUEUE = MessageQueue("T", "broker-a", 0)
CONFIG = BrokerConfig(
    store_directory="/store",
    port=0,
    store=SMALL_STORE,
    transaction_check_interval_ms=10_000,
    transaction_checks_max=2,
)
COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


async def half(world: World, body: str = "a", **properties: str) -> Sent:
    message = Message("T", body.encode(), {"TRAN_MSG": "true", "PGROUP": "PG", **properties}, sys_flag=4)
    outcome = await world.producer.send(message, QUEUE)
    assert isinstance(outcome, Sent), outcome
    return outcome


def request(sent: Sent, code: int = COMMIT) -> EndTransactionRequest:
    _, commit_offset = parse_offset_message_id(sent.offset_message_id)
    return EndTransactionRequest("PG", sent.queue_offset, commit_offset, code, sent.message_id)


async def end(world: World, sent: Sent, code: int = COMMIT) -> int:
    answer = await world.ask(RequestCode.END_TRANSACTION, request(sent, code))
    return answer.code


def messages(world: World, topic: str = "T") -> list[StoredMessage]:
    assert world.broker is not None
    return [record.decode(data) for data in world.broker.store.get(topic, 0, 0).records]


def bodies(world: World, topic: str = "T") -> list[str]:
    return [stored.message.body.decode() for stored in messages(world, topic)]


def progress(world: World, topic: str = HALF_TOPIC) -> int | None:
    assert world.broker is not None
    assert world.broker.services is not None
    return world.broker.services.offsets.query(PROGRESS_GROUP, topic, 0)


async def crash(world: World) -> None:
    """Kill the process of the broker and start it again: memory is lost, the log is not."""
    assert world.broker is not None
    world.broker.kill()
    world.disk.crash_process()
    await world.start_broker()


def test_a_half_message_is_visible_only_after_its_commit() -> None:
    async def scenario(world: World) -> None:
        sent = await half(world)
        await asyncio.sleep(1)
        assert bodies(world) == []
        assert await end(world, sent) == ResponseCode.SUCCESS
        (stored,) = messages(world)
        message = stored.message
        assert (message.body, message.sys_flag & 12, message.queue_id) == (b"a", 8, 0)
        assert message.prepared_transaction_offset == request(sent).commit_log_offset
        assert not {"TRAN_MSG", "REAL_TOPIC", "REAL_QID"} & message.properties.keys()
        kinds = [event.kind for event in world.events if event.msg_id == sent.message_id]
        assert Kind.HALF in kinds
        assert kinds.index(Kind.COMMIT) < max(i for i, kind in enumerate(kinds) if kind is Kind.DISPATCH)

    play(scenario, config=CONFIG)


def test_a_message_that_is_rolled_back_is_never_visible_and_not_checked() -> None:
    async def scenario(world: World) -> None:
        sent = await half(world)
        assert await end(world, sent, ROLLBACK) == ResponseCode.SUCCESS
        assert await end(world, sent, COMMIT) == ResponseCode.SYSTEM_ERROR
        await asyncio.sleep(60)
        assert bodies(world) == []
        assert len(messages(world, HALF_TOPIC)) == 1
        assert [stored.message.body for stored in messages(world, OPERATION_TOPIC)] == [b"0"]
        assert progress(world) == 1

    play(scenario, config=CONFIG)


def test_a_repeated_commit_makes_the_message_visible_once() -> None:
    async def scenario(world: World) -> None:
        sent = await half(world)
        answers = await asyncio.gather(*(end(world, sent) for _ in range(3)))
        assert ResponseCode.SUCCESS in answers
        await asyncio.sleep(10)
        assert await end(world, sent) == ResponseCode.SUCCESS
        assert await end(world, sent, ROLLBACK) == ResponseCode.SYSTEM_ERROR
        assert bodies(world) == ["a"]

    play(scenario, config=CONFIG)


@pytest.mark.parametrize("wait_s", [0.0, 5.0])
def test_a_crash_after_the_commit_does_not_repeat_it(wait_s: float) -> None:
    async def scenario(world: World) -> None:
        sent = await half(world)
        await end(world, sent)
        await asyncio.sleep(wait_s)
        await crash(world)
        await asyncio.sleep(0.1)
        assert await end(world, sent) in (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR)
        await asyncio.sleep(60)
        assert bodies(world) == ["a"]
        assert len(messages(world, HALF_TOPIC)) == 1

    play(scenario, config=CONFIG)


def test_an_open_transaction_can_be_ended_after_a_crash() -> None:
    async def scenario(world: World) -> None:
        first, second = await half(world, "a"), await half(world, "b")
        await crash(world)
        await asyncio.sleep(0.1)
        assert await end(world, second) == ResponseCode.SUCCESS
        assert await end(world, first, ROLLBACK) == ResponseCode.SUCCESS
        assert bodies(world) == ["b"]

    play(scenario, config=CONFIG)


def test_an_unknown_end_is_not_answered_and_changes_nothing() -> None:
    async def scenario(world: World) -> None:
        sent = await half(world)
        with pytest.raises(Exception, match="30"):
            await end(world, sent, UNKNOWN)
        assert await end(world, sent) == ResponseCode.SUCCESS

    play(scenario, config=replace(CONFIG, transaction_timeout_ms=1_000_000))


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        ({"producer_group": "other"}, "group PG"),
        ({"tran_state_table_offset": 7}, "offset 0"),
        ({"commit_log_offset": 1}, "no half message"),
        ({"commit_log_offset": -1}, "no half message"),
        ({"msg_id": "other"}, "key"),
        ({"commit_or_rollback": 3}, "0, 8 or 12"),
    ],
)
def test_an_end_that_names_no_half_message_is_refused(change: dict[str, object], remark: str) -> None:
    async def scenario(world: World) -> None:
        named = request(await half(world))
        for name, value in change.items():
            setattr(named, name, value)
        answer = await world.ask(RequestCode.END_TRANSACTION, named)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert remark in (answer.remark or "")
        assert bodies(world) == []

    play(scenario, config=CONFIG)


class Checks:
    """The checks that a client receives."""

    def __init__(self, world: World) -> None:
        self.headers: list[CheckTransactionRequest] = []
        self.messages: list[StoredMessage] = []
        world.session.join_as_producer("PG", self._checked)

    def _checked(self, _broker: object, header: CheckTransactionRequest, message: StoredMessage) -> None:
        self.headers.append(header)
        self.messages.append(message)


def test_an_open_transaction_is_checked_and_can_be_ended_through_its_copy() -> None:
    async def scenario(world: World) -> None:
        checks = Checks(world)
        sent = await half(world)
        await world.session.heartbeat()
        await asyncio.sleep(5)
        assert checks.headers == []
        await asyncio.sleep(6)
        (header,), (message,) = checks.headers, checks.messages
        assert (header.msg_id, header.tran_state_table_offset) == (sent.message_id, 1)
        assert (message.message.topic, message.message.queue_id) == ("T", 0)
        named = request(sent)
        named.tran_state_table_offset, named.commit_log_offset = 1, header.commit_log_offset
        answer = await world.ask(RequestCode.END_TRANSACTION, named)
        assert answer.code == ResponseCode.SUCCESS
        await asyncio.sleep(60)
        assert bodies(world) == ["a"]
        assert [s.message.body for s in messages(world, OPERATION_TOPIC)] == [b"0,1"]
        assert progress(world) == 2

    play(scenario, config=CONFIG)


def test_an_end_that_names_the_original_ends_the_copies_too() -> None:
    async def scenario(world: World) -> None:
        sent = await half(world)
        await asyncio.sleep(11)
        assert len(messages(world, HALF_TOPIC)) == 2
        assert await end(world, sent) == ResponseCode.SUCCESS
        await asyncio.sleep(60)
        assert bodies(world) == ["a"]
        assert len(messages(world, HALF_TOPIC)) == 2

    play(scenario, config=CONFIG)


def test_a_message_is_discarded_after_the_last_check_and_can_be_resumed() -> None:
    async def scenario(world: World) -> None:
        sent = await half(world)
        await asyncio.sleep(45)
        times = [s.message.properties.get(half_messages.CHECK_TIMES) for s in messages(world, HALF_TOPIC)]
        assert times == [None, "1", "2"]
        (discarded,) = messages(world, DISCARD_TOPIC)
        assert await end(world, sent) == ResponseCode.SYSTEM_ERROR
        assert progress(world) == 3
        resume = ResumeCheckRequest(discarded.offset_message_id)
        assert (await world.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, resume)).code == ResponseCode.SUCCESS
        await asyncio.sleep(0.1)
        again = messages(world, HALF_TOPIC)[-1]
        assert half_messages.CHECK_TIMES not in again.message.properties
        named = request(sent)
        named.tran_state_table_offset, named.commit_log_offset = 3, again.commit_offset
        assert (await world.ask(RequestCode.END_TRANSACTION, named)).code == ResponseCode.SUCCESS
        assert bodies(world) == ["a"]

    play(scenario, config=CONFIG)


def test_the_number_of_checks_survives_crashes() -> None:
    async def scenario(world: World) -> None:
        await half(world)
        for _ in range(4):
            await asyncio.sleep(11)
            await crash(world)
        await asyncio.sleep(30)
        assert len(messages(world, HALF_TOPIC)) == 3
        assert len(messages(world, DISCARD_TOPIC)) == 1
        assert bodies(world) == []

    play(scenario, config=CONFIG)


def test_a_committed_message_that_was_sent_back_ends_no_other_transaction() -> None:
    """It keeps the flag of a commit, and names the begin of the log as its half message."""

    async def scenario(world: World) -> None:
        first = await half(world, "first")
        assert request(first).commit_log_offset == 0
        await end(world, await half(world, "second"))
        (second,) = messages(world)
        header = SendBackRequest(second.commit_offset, "G", 0)
        answer = await world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        assert answer.code == ResponseCode.SUCCESS
        await crash(world)
        await asyncio.sleep(0.1)
        assert await end(world, first) == ResponseCode.SUCCESS
        assert bodies(world) == ["second", "first"]

    play(scenario, config=CONFIG)


def test_a_progress_beyond_the_queue_is_not_believed() -> None:
    """A slave that takes over may know the progress of a master that had more of the log."""

    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        done, left = await half(world, "done"), await half(world, "open")
        await end(world, done)
        await asyncio.sleep(5)
        offsets = world.broker.services.offsets
        offsets.commit(PROGRESS_GROUP, HALF_TOPIC, 0, 9)
        offsets.commit(PROGRESS_GROUP, OPERATION_TOPIC, 0, 9)
        await offsets.persist()
        await crash(world)
        await asyncio.sleep(0.1)
        assert progress(world) == 0
        assert await end(world, left) == ResponseCode.SUCCESS
        await asyncio.sleep(5)
        assert bodies(world) == ["done", "open"]
        assert progress(world) == 2

    play(scenario, config=CONFIG)


def test_nothing_is_checked_while_the_store_accepts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        await half(world)
        world.broker.store._writable = False
        await asyncio.sleep(11)
        assert "the check of half message" not in caplog.text
        world.broker.store._writable = True
        await asyncio.sleep(11)
        assert len(messages(world, HALF_TOPIC)) == 2

    play(scenario, config=CONFIG)


def test_a_half_message_that_is_sent_back_stays_invisible() -> None:
    async def scenario(world: World) -> None:
        sent = await half(world)
        header = SendBackRequest(request(sent).commit_log_offset, "G", -1)
        answer = await world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        assert answer.code == ResponseCode.NO_PERMISSION
        assert bodies(world, "%DLQ%G") == []

    play(scenario, config=CONFIG)


def test_the_immunity_time_of_a_message_delays_its_check_and_others_advance() -> None:
    """Issue 544: the message must not be passed over."""

    async def scenario(world: World) -> None:
        slow = await half(world, "slow", CHECK_IMMUNITY_TIME_IN_SECONDS="100")
        await end(world, await half(world, "b"))
        await asyncio.sleep(90)
        assert len(messages(world, HALF_TOPIC)) == 2
        assert (progress(world) or 0) == 0
        await asyncio.sleep(25)
        assert len(messages(world, HALF_TOPIC)) == 3
        await crash(world)
        await asyncio.sleep(0.1)
        assert await end(world, slow) == ResponseCode.SUCCESS
        await asyncio.sleep(10)
        assert bodies(world) == ["b", "slow"]
        assert progress(world) == 3

    play(scenario, config=CONFIG)


def test_a_half_message_that_cannot_be_read_does_not_stop_the_checks_of_others() -> None:
    """Issue 9500."""

    async def scenario(world: World) -> None:
        assert world.broker is not None
        bad = Message(HALF_TOPIC, b"no real topic", {"PGROUP": "PG"})
        await world.broker.store.put(bad)
        await half(world)
        await asyncio.sleep(11)
        assert [s.message.body for s in messages(world, HALF_TOPIC)].count(b"a") == 2

    play(scenario, config=CONFIG)


@pytest.mark.parametrize(
    ("properties", "sys_flag", "code"),
    [
        ({"TRAN_MSG": "true", "PGROUP": ""}, 4, ResponseCode.MESSAGE_ILLEGAL),
        ({"TRAN_MSG": "true", "PGROUP": "PG"}, 8, ResponseCode.NO_PERMISSION),
        ({}, 4, ResponseCode.NO_PERMISSION),
        ({}, 8, ResponseCode.NO_PERMISSION),
    ],
)
def test_flags_that_do_not_belong_to_a_half_message_are_refused(
    properties: dict[str, str], sys_flag: int, code: ResponseCode
) -> None:
    async def scenario(world: World) -> Outcome:
        return await world.producer.send(Message("T", b"a", properties, sys_flag=sys_flag), QUEUE)

    outcome = play(scenario, config=CONFIG)
    assert getattr(outcome, "status", None) == code.name


def test_a_client_cannot_make_a_half_message_look_like_a_copy_of_another() -> None:
    async def scenario(world: World) -> None:
        first = await half(world, "first")
        second = await half(world, "second", TRAN_PREPARED_QUEUE_OFFSET="0", TRANSACTION_CHECK_TIMES="9")
        await end(world, second, ROLLBACK)
        assert await end(world, first) == ResponseCode.SUCCESS
        assert bodies(world) == ["first"]

    play(scenario, config=CONFIG)


def test_a_half_message_without_room_for_the_properties_of_its_copies_is_refused() -> None:
    async def scenario(world: World) -> list[str]:
        outcomes = []
        for padding in range(32_450, 32_650, 10):
            properties = {"TRAN_MSG": "true", "PGROUP": "PG", "P": "x" * padding}
            outcome = await world.producer.send(Message("T", b"a", properties, sys_flag=4), QUEUE)
            outcomes.append(outcome.status if isinstance(outcome, (Sent, Refused)) else "")
        await asyncio.sleep(60)
        assert world.broker is not None
        assert world.broker.services is not None
        assert world.broker.services.transactions.open_count == 0, "each was checked, and then discarded"
        return outcomes

    assert set(play(scenario, config=CONFIG)) == {"SEND_OK", "MESSAGE_ILLEGAL"}


def test_half_messages_beyond_the_limit_are_refused_until_others_end() -> None:
    async def scenario(world: World) -> None:
        first = await half(world)
        refused = await world.producer.send(
            Message("T", b"b", {"TRAN_MSG": "true", "PGROUP": "PG"}, sys_flag=4), QUEUE
        )
        assert getattr(refused, "status", None) == "SYSTEM_BUSY"
        await end(world, first)
        await asyncio.sleep(4)
        await half(world)

    play(scenario, config=replace(CONFIG, transactions_open_max=1))


def test_a_broker_may_refuse_half_messages() -> None:
    async def scenario(world: World) -> Outcome:
        return await world.producer.send(Message("T", b"b", {"TRAN_MSG": "true", "PGROUP": "PG"}), QUEUE)

    outcome = play(scenario, config=replace(CONFIG, reject_transactions=True))
    assert getattr(outcome, "status", None) == "NO_PERMISSION"


def test_a_loss_of_the_end_of_the_log_reopens_the_transaction() -> None:
    """TXN-3 HalfKept: the progress never passes what a crash of the machine can take back."""

    async def scenario(world: World) -> None:
        sent = await half(world)
        assert world.broker is not None
        await world.broker.store.flush_log()
        await end(world, sent)
        world.broker.kill()
        world.disk.lose_power()
        await world.start_broker()
        await asyncio.sleep(0.5)
        if not bodies(world):
            assert await end(world, sent) == ResponseCode.SUCCESS
        assert bodies(world) == ["a"]

    store = replace(SMALL_STORE, flush_mode=FlushMode.ASYNC_FLUSH)
    play(scenario, config=replace(CONFIG, store=store))


def test_a_slave_refuses_ends_and_takes_over_open_transactions() -> None:
    """The slave has the log, and an older progress; as master it reads its transactions."""

    async def scenario(world: World) -> None:
        disk = SimulatedDisk()
        runtime = replace(world.runtime, disk=disk)
        role = ReplicationConfig(role=Role.SLAVE, ha_port=0)
        slave_config = replace(CONFIG, broker_id=1, name_servers=(world.namesrv_address,), replication=role)
        slave = Broker(slave_config, runtime)
        address = await slave.start()
        await asyncio.sleep(35)
        ended, open_one = await half(world, "ended"), await half(world, "open")
        await end(world, ended)
        await asyncio.sleep(5)
        command = new_request(RequestCode.END_TRANSACTION, headers.write(request(open_one)))
        answer = await world.session.remoting.invoke(address, command, 3.0)
        assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE
        await world.stop_broker()
        await slave.stop()
        world.disk = disk
        world.runtime = runtime
        world.config = replace(CONFIG, broker_id=0)
        await world.start_broker()
        await asyncio.sleep(0.5)
        assert bodies(world) == ["ended"]
        assert await end(world, ended) in (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR)
        assert await end(world, open_one) == ResponseCode.SUCCESS
        await asyncio.sleep(30)
        assert bodies(world) == ["ended", "open"]

    role = ReplicationConfig(role=Role.ASYNC_MASTER, ha_port=0)
    play(scenario, config=replace(CONFIG, replication=role))


@pytest.mark.parametrize("pause_s", [0.0, 4.0])
def test_a_new_leader_of_a_group_ends_the_transactions_of_the_last_one(pause_s: float) -> None:
    async def scenario(group: Group) -> None:
        marks = {"TRAN_MSG": "true", "PGROUP": "PG"}
        await group.master()
        first = await group.send("first", **marks)
        second = await group.send("second", **marks)

        async def end_at(sent: Sent) -> int:
            services = group.brokers[await group.master()].services
            assert services is not None
            command = new_request(RequestCode.END_TRANSACTION, headers.write(request(sent)))
            return (await group.session.remoting.invoke(services.address, command, 30.0)).code

        assert await end_at(first) == ResponseCode.SUCCESS
        await asyncio.sleep(pause_s)
        group.kill(await group.master())
        await group.master()
        await asyncio.sleep(1)
        assert await end_at(first) in (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR)
        assert await end_at(second) == ResponseCode.SUCCESS
        await asyncio.sleep(5)
        store = group.brokers[await group.master()].store
        found = [
            record.decode(data).message.body
            for queue_id in range(store.topics()["T"])
            for data in store.get("T", queue_id, 0).records
        ]
        assert sorted(found) == [b"first", b"second"]

    play_group(scenario)

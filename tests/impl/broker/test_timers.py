"""Tests messages that wait for a time: not early, once, not lost, across restarts, recalls and deletion.

Source: docs/reference/protocol/timers.md. spec/tla/Timers.tla has the same steps.
"""

import asyncio
import struct
from dataclasses import replace

import pytest

from mqproof.impl.broker import timed_messages
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.timed_messages import POINT_QUEUE, TIMER_TOPIC
from mqproof.impl.client.model import MessageQueue, RefusalError, Refused, Sent
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import RecallMessageRequest, SendBackRequest
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.recall_handle import parse_handle
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedClock
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.files import record
from mqproof.impl.store.message_store import MessageStore
from mqproof.spec.events import Kind
from tests.impl.broker.group import Group
from tests.impl.broker.group import play as play_group
from tests.impl.world import SMALL_STORE, World, play

QUEUE = MessageQueue("T", "broker-a", 0)
CONFIG = BrokerConfig(store_directory="/store", port=10911, store=SMALL_STORE)
LATE_MS = 1000
"""The bound of lateness that the broker states."""


async def send(world: World, body: str = "a", **properties: str) -> Sent:
    outcome = await world.producer.send(Message("T", body.encode(), properties), QUEUE)
    assert isinstance(outcome, Sent), outcome
    return outcome


async def after(world: World, seconds: float, body: str = "a") -> Sent:
    return await send(world, body, TIMER_DELAY_MS=str(int(seconds * 1000)))


def messages(world: World, topic: str = "T", queue_id: int = 0) -> list[StoredMessage]:
    assert world.broker is not None
    store = world.broker.store
    first = store.min_offset(topic, queue_id)
    return [record.decode(data) for data in store.get(topic, queue_id, first).records]


def bodies(world: World, topic: str = "T") -> list[str]:
    return [stored.message.body.decode() for stored in messages(world, topic)]


def now(world: World) -> int:
    return now_ms(world.runtime.clock)


def waiting(world: World) -> int:
    assert world.broker is not None
    assert world.broker.services is not None
    return world.broker.services.timers.waiting_count


async def crash(world: World) -> None:
    """Kill the process of the broker and start it again: memory is lost, the log is not."""
    assert world.broker is not None
    world.broker.kill()
    world.disk.crash_process()
    await world.start_broker()


async def lose_power(world: World) -> None:
    assert world.broker is not None
    world.broker.kill()
    world.disk.lose_power()
    await world.start_broker()


@pytest.mark.parametrize(
    ("name", "value", "delay_ms"),
    [
        ("TIMER_DELAY_SEC", "2", 2000),
        ("TIMER_DELAY_MS", "1500", 1500),
        ("TIMER_DELAY_MS", "+70", 70),
        ("TIMER_DELIVER_MS", "at", 2345),
    ],
)
def test_a_message_is_delivered_at_its_time(name: str, value: str, delay_ms: int) -> None:
    async def scenario(world: World) -> None:
        began_ms = now(world)
        await send(world, **{name: str(began_ms + delay_ms) if value == "at" else value})
        assert bodies(world) == []
        await asyncio.sleep(delay_ms / 1000 + LATE_MS / 1000)
        (stored,) = messages(world)
        assert 0 <= stored.store_timestamp_ms - began_ms - delay_ms < 100
        names = stored.message.properties.keys()
        assert not {"REAL_TOPIC", "REAL_QID", name} & names, "it would wait again when it is sent on"
        assert waiting(world) == 0

    play(scenario, config=CONFIG)


@pytest.mark.parametrize("value", ["0", "-5", "-9223372036854775808"])
def test_a_time_that_is_over_means_at_once(value: str) -> None:
    async def scenario(world: World) -> None:
        sent = await send(world, TIMER_DELAY_SEC=value)
        assert bodies(world) == ["a"]
        assert sent.recall_handle is None

    play(scenario, config=CONFIG)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"TIMER_DELAY_SEC": "259201"}, "at most 259200 s"),
        ({"TIMER_DELAY_SEC": "9223372036854775807"}, "at most 259200 s"),
        ({"TIMER_DELAY_MS": "9223372036854775807"}, "at most 259200 s"),
        ({"TIMER_DELIVER_MS": "9" * 40}, "at most 259200 s"),
        ({"TIMER_DELAY_SEC": "9" * 41}, "a number expected"),
        ({"TIMER_DELAY_SEC": "abc"}, "a number expected"),
        ({"TIMER_DELAY_MS": "1.5"}, "a number expected"),
        ({"TIMER_DEL_UNIQKEY": "A", "TIMER_DELAY_SEC": "5"}, "RECALL_MESSAGE"),
        ({"TIMER_DELAY_SEC": "5", "TRAN_MSG": "true", "PGROUP": "PG"}, "half message"),
        ({"TIMER_DELAY_SEC": "5", "P": "x" * 32_560}, "no room"),
    ],
)
def test_an_invalid_time_is_refused(properties: dict[str, str], words: str) -> None:
    """Issue 10872: in released brokers, a delay that overflows means at once."""

    async def scenario(world: World) -> None:
        outcome = await world.producer.send(Message("T", b"a", properties), QUEUE)
        assert isinstance(outcome, Refused), outcome
        assert outcome.status == "MESSAGE_ILLEGAL"
        assert words in outcome.remark
        await asyncio.sleep(10)
        assert bodies(world) == []

    play(scenario, config=CONFIG)


def test_the_longest_delay_and_the_number_of_waiting_messages_are_limited() -> None:
    async def scenario(world: World) -> None:
        assert isinstance(
            await world.producer.send(Message("T", b"a", {"TIMER_DELAY_SEC": "11"}), QUEUE), Refused
        )
        await after(world, 10)
        busy = await world.producer.send(Message("T", b"b", {"TIMER_DELAY_SEC": "5"}), QUEUE)
        assert getattr(busy, "status", None) == "SYSTEM_BUSY"
        await asyncio.sleep(11)
        await after(world, 1)

    play(scenario, config=replace(CONFIG, timer_delay_max_s=10, timers_waiting_max=1))


def test_a_broker_may_refuse_times_and_recalls() -> None:
    async def scenario(world: World) -> None:
        outcome = await world.producer.send(Message("T", b"a", {"TIMER_DELAY_SEC": "5"}), QUEUE)
        assert "timerWheelEnable" in getattr(outcome, "remark", "")
        answer = await world.ask(RequestCode.RECALL_MESSAGE, RecallMessageRequest("T", "x"))
        assert answer.code == ResponseCode.NO_PERMISSION

    play(scenario, config=replace(CONFIG, timers=False, recalls=False))


def test_a_delay_level_counts_more_than_a_time() -> None:
    async def scenario(world: World) -> None:
        await send(world, TIMER_DELAY_SEC="100", DELAY="1")
        await asyncio.sleep(3)
        assert bodies(world) == ["a"]

    play(scenario, config=CONFIG)


def test_a_delay_level_above_the_last_one_counts_as_the_last_and_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        for level in ("1", "2", "99", "99"):
            await send(world, DELAY=level)
        await asyncio.sleep(61)
        await send(world, DELAY="3")
        assert [len(messages(world, "SCHEDULE_TOPIC_XXXX", queue)) for queue in range(3)] == [1, 4, 0]

    with caplog.at_level("WARNING"):
        play(scenario, config=replace(CONFIG, store=replace(SMALL_STORE, delay_levels_ms=(1000, 600_000))))
    logged = [record.message for record in caplog.records if "delay level" in record.message]
    assert logged == [
        "a message to T has delay level 99, which counts as 2, the last one",
        "a message to T has delay level 3, which counts as 2, the last one",
    ]


def test_a_broker_that_is_no_master_any_more_keeps_what_the_last_point_needs() -> None:
    async def scenario(world: World) -> None:
        await after(world, 10)
        assert world.broker is not None
        store, services = world.broker.store, world.broker.services
        assert services is not None
        work = asyncio.ensure_future(services.timers.run(services.address, lambda: None))
        await asyncio.sleep(1)
        assert store._cleaner.needed_from() == 0
        await asyncio.sleep(5)
        work.cancel()
        await asyncio.sleep(1)
        assert store._cleaner.needed_from() == 0
        await asyncio.sleep(10)
        assert store._cleaner.needed_from() is None

    play(scenario, config=CONFIG)


def test_messages_are_delivered_in_the_order_of_their_times() -> None:
    async def scenario(world: World) -> None:
        for number in range(50):
            await after(world, 10 + (number * 7 % 50) / 10, str(number * 7 % 50))
        await asyncio.sleep(20)
        assert bodies(world)[:32] == [str(number) for number in range(32)]
        assert world.broker is not None
        assert world.broker.store.max_offset("T", 0) == 50

    play(scenario, config=CONFIG)


@pytest.mark.parametrize("wait_s", [0.0, 2.5, 4.0, 60.0])
def test_a_crash_neither_loses_nor_repeats_a_message(wait_s: float) -> None:
    async def scenario(world: World) -> None:
        for number in range(6):
            await after(world, number + 1, str(number))
        await asyncio.sleep(wait_s)
        await crash(world)
        await asyncio.sleep(1.5)
        await crash(world)
        await asyncio.sleep(10)
        assert bodies(world) == list("012345")
        assert waiting(world) == 0

    play(scenario, config=CONFIG)


def test_a_message_whose_time_passed_during_an_outage_is_delivered_at_the_start() -> None:
    async def scenario(world: World) -> None:
        await after(world, 5)
        await world.stop_broker()
        await asyncio.sleep(100)
        await world.start_broker()
        await asyncio.sleep(1)
        assert bodies(world) == ["a"]

    play(scenario, config=CONFIG)


def test_messages_that_cannot_be_read_when_they_are_due_are_delivered_once_the_disk_works_again() -> None:
    async def scenario(world: World) -> None:
        for number in range(3):
            await after(world, 5, str(number))
        failures = 2

        def fail(path: str) -> None:
            nonlocal failures
            if failures and "/commitlog/" in path:
                failures -= 1
                raise OSError("the disk failed")

        await asyncio.sleep(4.9)
        world.disk.on_read = fail
        await asyncio.sleep(4)
        assert bodies(world) == list("012")

    play(scenario, config=CONFIG)


def test_a_loss_of_the_end_of_the_log_delivers_the_message_again() -> None:
    """Issue 10668: the table is never ahead of the log, because it is read from the log."""

    async def scenario(world: World) -> None:
        await after(world, 2, "kept")
        assert world.broker is not None
        await world.broker.store.flush_log()
        for number in range(3):
            await after(world, 3, f"lost {number}")
        await asyncio.sleep(0.001)
        await lose_power(world)
        await asyncio.sleep(0.5)
        await after(world, 1, "later")
        await asyncio.sleep(6)
        found = bodies(world)
        assert found.count("kept") == 1
        assert found.count("later") == 1

    store = replace(SMALL_STORE, flush_mode=FlushMode.ASYNC_FLUSH)
    play(scenario, config=replace(CONFIG, store=store))


def test_a_restart_reads_only_the_log_after_the_last_point(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        await after(world, 1, "early")
        await after(world, 100, "late")
        await asyncio.sleep(10)
        (point,) = (
            timed_messages.point_of(one.message) for one in messages(world, TIMER_TOPIC, POINT_QUEUE)[-1:]
        )
        assert point is not None
        assert (point.first, point.read_end) == (1, 2)
        monkeypatch.setattr(MessageStore, "records_from", lambda *_: iter(()))
        await crash(world)
        await asyncio.sleep(1)
        assert bodies(world) == ["early"]
        assert waiting(world) == 1

    play(scenario, config=CONFIG)


# Recalls.


async def recall(world: World, handle: str | None, topic: str = "T") -> int:
    answer = await world.ask(RequestCode.RECALL_MESSAGE, RecallMessageRequest(topic, handle or "", "PG"))
    return answer.code


def test_a_recalled_message_is_never_delivered_also_after_a_crash() -> None:
    async def scenario(world: World) -> None:
        sent, other = await after(world, 5, "recalled"), await after(world, 5, "other")
        assert sent.recall_handle is not None
        await world.producer.recall("T", sent.recall_handle)
        assert await recall(world, sent.recall_handle) == ResponseCode.ILLEGAL_OPERATION
        await crash(world)
        await asyncio.sleep(10)
        assert bodies(world) == ["other"]
        assert other.recall_handle is not None
        with pytest.raises(RefusalError, match="timestamp invalid"):
            await world.producer.recall("T", other.recall_handle)
        assert [event.msg_id for event in world.events if event.kind is Kind.RECALL] == [sent.message_id]

    play(scenario, config=CONFIG)


def test_the_handle_names_the_message_and_the_broker() -> None:
    async def scenario(world: World) -> None:
        began_ms = now(world)
        sent = await after(world, 5)
        handle = parse_handle(sent.recall_handle or "")
        assert handle == ("T", "broker-a", handle.due_ms, sent.message_id)
        assert 0 <= handle.due_ms - began_ms - 5000 < 100
        for wrong in (
            handle._replace(topic="Other"),
            handle._replace(broker="broker-b"),
            handle._replace(key="unknown"),
            handle._replace(due_ms=began_ms),
        ):
            assert await recall(world, wrong.encode()) == ResponseCode.ILLEGAL_OPERATION
        assert await recall(world, "garbage") == ResponseCode.ILLEGAL_OPERATION
        assert await recall(world, sent.recall_handle, "Missing") == ResponseCode.TOPIC_NOT_EXIST
        await asyncio.sleep(7)
        assert bodies(world) == ["a"]

    play(scenario, config=CONFIG)


def test_a_recall_withdraws_all_copies_of_a_repeated_send() -> None:
    async def scenario(world: World) -> None:
        for _ in range(2):
            sent = await send(world, TIMER_DELAY_SEC="5", UNIQ_KEY="K1")
        assert await recall(world, sent.recall_handle) == ResponseCode.SUCCESS
        await asyncio.sleep(10)
        assert bodies(world) == []

    play(scenario, config=CONFIG)


def test_a_client_cannot_write_into_the_timer_queue_or_send_a_waiting_message_back() -> None:
    """In 5.5.0 any client may, and a message without a time ends the delivery of all others."""

    async def scenario(world: World) -> None:
        sent = await after(world, 5)
        offset = int(sent.offset_message_id[-16:], 16)
        answer = await world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, SendBackRequest(offset, "G", 1))
        assert answer.code == ResponseCode.NO_PERMISSION
        request = RecallMessageRequest(TIMER_TOPIC, sent.recall_handle or "")
        assert (await world.ask(RequestCode.RECALL_MESSAGE, request)).code != ResponseCode.SUCCESS
        assert world.broker is not None
        illegal = Message(TIMER_TOPIC, b"without a time", {"UNIQ_KEY": "K"})
        await world.broker.store.put(illegal)  # as a released broker may have stored it
        await after(world, 1, "b")
        await crash(world)
        await asyncio.sleep(10)
        assert bodies(world) == ["b", "a"]

    play(scenario, config=CONFIG)


def test_a_client_cannot_pretend_that_a_message_was_delivered() -> None:
    async def scenario(world: World) -> None:
        sent = await after(world, 5)
        forged = {
            "TIMER_OUT_MS": "1",
            "TIMER_DUE_MS": "1",
            "UNIQ_KEY": sent.message_id,
            "TIMER_ORIGINAL": "0",
        }
        await send(world, "forged", **forged)
        await send(world, "b", TIMER_DELAY_SEC="6", TIMER_ORIGINAL="0", TIMER_DUE_MS="1")
        await crash(world)
        await asyncio.sleep(10)
        assert bodies(world) == ["forged", "a", "b"]

    play(scenario, config=CONFIG)


# The clock, the deletion of old segments, and takeovers.


def test_a_clock_that_is_set_back_does_not_deliver_early() -> None:
    async def scenario(world: World) -> None:
        await after(world, 5)
        clock = world.runtime.clock
        assert isinstance(clock, SimulatedClock)
        clock.skew_us -= 60_000_000
        await asyncio.sleep(4.5)
        assert bodies(world) == []
        await asyncio.sleep(61.5)
        assert bodies(world) == ["a"]

    play(scenario, config=CONFIG)


def test_a_waiting_message_is_rolled_before_its_segment_is_deleted() -> None:
    """Issue 11156: the copy replaces the message, so it is delivered once."""

    async def scenario(world: World) -> None:
        await after(world, 300, "long")
        assert world.broker is not None
        store = world.broker.store
        for _ in range(30):
            await store.put(Message("Other", b"x" * 90_000))
            await asyncio.sleep(5)
        begins = [store.log_begin]
        for _ in range(4):
            await store.clean(manually=True)
            await asyncio.sleep(2)
            begins.append(store.log_begin)
        assert begins[0] == 0 < begins[-1], "the segment with the message was deleted"
        copies = messages(world, TIMER_TOPIC)
        assert [one.message.properties.get("TIMER_ORIGINAL") for one in copies][-1] == "0"
        await crash(world)
        await asyncio.sleep(160)
        assert bodies(world) == ["long"]
        assert waiting(world) == 0

    store = replace(SMALL_STORE, file_reserved_ms=60_000)
    play(scenario, config=replace(CONFIG, store=store))


def test_a_start_deletes_no_segment_before_the_timers_are_read() -> None:
    """An operator deletes old segments while the broker still waits for a silent name server."""

    async def scenario(world: World) -> None:
        assert world.broker is not None
        await after(world, 30)
        for _ in range(30):
            await world.broker.store.put(Message("Other", b"x" * 90_000))
        world.broker.kill()
        world.disk.crash_process()
        await asyncio.sleep(100)
        world.network.silence(world.namesrv_address)
        start = asyncio.create_task(world.start_broker())
        await asyncio.sleep(1)
        is_registering = not start.done()
        await world.broker.store.clean(manually=True)
        world.network.heal(world.namesrv_address)
        await start
        assert is_registering
        await asyncio.sleep(2)
        assert bodies(world) == ["a"]

    play(scenario, config=replace(CONFIG, store=replace(SMALL_STORE, file_reserved_ms=60_000)))


def test_a_clock_that_is_set_forward_delivers_at_the_new_time() -> None:
    async def scenario(world: World) -> None:
        await after(world, 3600)
        clock = world.runtime.clock
        assert isinstance(clock, SimulatedClock)
        clock.skew_us += 3_600_000_000
        await asyncio.sleep(1.5)
        assert bodies(world) == ["a"]

    play(scenario, config=CONFIG)


def test_a_slave_takes_over_what_waits() -> None:
    """The slave has the log; as master it reads its timers."""

    async def scenario(world: World) -> None:
        disk = SimulatedDisk()
        runtime = replace(world.runtime, disk=disk)
        role = ReplicationConfig(role=Role.SLAVE, ha_port=0)
        names = (world.namesrv_address,)
        slave_config = replace(CONFIG, port=10921, broker_id=1, name_servers=names, replication=role)
        slave = Broker(slave_config, runtime)
        await slave.start()
        await asyncio.sleep(35)
        await after(world, 1, "before")
        await after(world, 20, "after")
        recalled = await after(world, 20, "recalled")
        assert await recall(world, recalled.recall_handle) == ResponseCode.SUCCESS
        await asyncio.sleep(10)
        await world.stop_broker()
        await slave.stop()
        world.disk, world.runtime = disk, runtime
        world.config = replace(CONFIG, broker_id=0)
        await world.start_broker()
        await asyncio.sleep(30)
        assert bodies(world) == ["before", "after"]

    role = ReplicationConfig(role=Role.ASYNC_MASTER, ha_port=0)
    play(scenario, config=replace(CONFIG, replication=role))


@pytest.mark.parametrize("is_rolled", [False, True])
def test_a_slave_keeps_the_segments_of_messages_that_wait_until_its_master_has_rolled_them(
    is_rolled: bool,
) -> None:
    """A slave deletes by its own clock. It may look for old segments before the copy of a message arrives."""

    async def scenario(world: World) -> None:
        disk = SimulatedDisk()
        slave = await _slave_of(world, disk)
        await asyncio.sleep(35)
        await after(world, 400, "long")
        assert world.broker is not None
        for _ in range(30):
            await world.broker.store.put(Message("Other", b"x" * 90_000))
            await asyncio.sleep(5)
        for _ in range(2 if is_rolled else 0):
            await world.broker.store.clean(manually=True)
            await asyncio.sleep(10)  # a copy, and then a point
        await slave.store.clean(manually=True)
        begin = slave.store.log_begin
        await world.stop_broker()
        await slave.stop()
        world.disk, world.runtime = disk, replace(world.runtime, disk=disk)
        world.config = replace(CONFIG, broker_id=0)
        await world.start_broker()
        await asyncio.sleep(260)
        assert bodies(world) == ["long"]
        assert (begin > 0) is is_rolled

    role = ReplicationConfig(role=Role.ASYNC_MASTER, ha_port=0)
    store = replace(SMALL_STORE, file_reserved_ms=60_000)
    play(scenario, config=replace(CONFIG, replication=role, store=store))


async def _slave_of(world: World, disk: SimulatedDisk) -> Broker:
    role = ReplicationConfig(role=Role.SLAVE, ha_port=0)
    names = (world.namesrv_address,)
    config = replace(world.config, port=10921, broker_id=1, name_servers=names, replication=role)
    slave = Broker(config, replace(world.runtime, disk=disk))
    await slave.start()
    return slave


def test_a_new_leader_of_a_group_delivers_what_waits() -> None:
    async def scenario(group: Group) -> None:
        await group.master()
        for seconds in (1, 20, 40):
            await group.send(str(seconds), TIMER_DELAY_SEC=str(seconds))
        await asyncio.sleep(5)
        group.kill(await group.master())
        store = group.brokers[await group.master()].store
        await asyncio.sleep(60)
        found = [
            record.decode(data).message.body.decode()
            for queue_id in range(store.topics()["T"])
            for data in store.get("T", queue_id, 0).records
        ]
        assert sorted(found) == ["1", "20", "40"]

    play_group(scenario)


def test_the_progress_of_a_released_broker_is_read_once() -> None:
    async def scenario(world: World) -> None:
        started_ms = now(world)
        await after(world, 2, "done before")
        await after(world, 20, "waits")
        assert world.broker is not None
        world.broker.kill()
        path = "/store/config/timercheck"
        checkpoint = struct.pack(">qqqq", started_ms + 5000, 0, 2, 2)
        write_durably(world.disk, path, checkpoint)
        world.disk.crash_process()
        await world.start_broker()
        await asyncio.sleep(60)
        assert bodies(world) == ["waits"]
        await crash(world)
        await asyncio.sleep(60)
        assert bodies(world) == ["waits"]

    play(scenario, config=CONFIG)

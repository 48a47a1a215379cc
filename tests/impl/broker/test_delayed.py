"""Tests delayed messages through a broker: never early, in time, across restarts, and normally once.

Source: docs/reference/protocol/retries-and-delays.md, "Delayed messages".
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from mqproof.impl.broker import delayed
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.client.model import MessageQueue, Sent
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.disk import Space, read_whole, write_durably
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedClock
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.files import record
from mqproof.impl.store.files.consume_queue import Unit
from mqproof.impl.store.group_commit import Done
from mqproof.impl.store.results import PERHAPS_STORED, PutResult, PutStatus
from mqproof.spec.events import Kind
from tests.impl.broker.memory_store import Events
from tests.impl.world import SMALL_STORE, World, play

QUEUE = MessageQueue("T", "broker-a", 0)
CONFIG = BrokerConfig(store_directory="/store", port=0, store=SMALL_STORE)
FILE = "/store/config/delayOffset.json"


async def send(world: World, body: str, level: int) -> None:
    outcome = await world.producer.send(Message("T", body.encode(), {"DELAY": str(level)}), QUEUE)
    assert isinstance(outcome, Sent), outcome
    assert outcome.status == "SEND_OK"


def delivered(world: World) -> list[str]:
    """Return the bodies in queue 0 of the topic."""
    assert world.broker is not None
    result = world.broker.store.get("T", 0, 0)
    return [record.decode(data).message.body.decode() for data in result.records]


def test_a_delayed_message_is_delivered_when_it_is_due_and_not_before() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 2)
        await asyncio.sleep(4.9)
        assert delivered(world) == []
        await asyncio.sleep(0.2)
        assert delivered(world) == ["a"]

    play(scenario)


def test_a_waiting_pull_receives_the_message_unchanged() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 1)
        result = await world.consumer.pull(QUEUE, 0, hold_ms=10_000)
        (stored,) = result.messages
        message = stored.message
        assert (message.topic, message.queue_id, message.body) == ("T", 0, b"a")
        assert "DELAY" not in message.properties
        assert message.properties["REAL_TOPIC"] == "T"

    play(scenario)


def test_levels_do_not_wait_for_each_other() -> None:
    async def scenario(world: World) -> None:
        for body, level in (("minute", 5), ("ten", 3), ("one", 1), ("last", 18)):
            await send(world, body, level)
        await asyncio.sleep(1.1)
        assert delivered(world) == ["one"]
        await asyncio.sleep(10)
        assert delivered(world) == ["one", "ten"]
        await asyncio.sleep(50)
        assert delivered(world) == ["one", "ten", "minute"]
        await asyncio.sleep(7140)
        assert delivered(world) == ["one", "ten", "minute", "last"]

    play(scenario)


def test_configured_levels_are_used() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 7)
        await asyncio.sleep(2.9)
        assert delivered(world) == []
        await asyncio.sleep(0.2)
        assert delivered(world) == ["a"], "the last level is used for higher ones"

    play(scenario, config=replace(CONFIG, store=replace(SMALL_STORE, delay_levels_ms=(1000, 3000))))


@pytest.mark.parametrize("seed", range(5))
def test_no_message_is_early_or_late_or_out_of_the_order_of_its_level(seed: int) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        chance = random.Random(seed)
        loop = asyncio.get_running_loop()
        due_s: dict[str, float] = {}
        came_s: dict[str, float] = {}
        store, levels_ms = world.broker.store, SMALL_STORE.delay_levels_ms
        arrived = store.on_arrival
        assert arrived is not None

        def note(topic: str, queue_id: int, offset_next: int, tags_code: int) -> None:
            arrived(topic, queue_id, offset_next, tags_code)
            if topic == "T":
                data = store.get("T", 0, offset_next - 1).records[0]
                came_s[record.decode(data).message.body.decode()] = loop.time()

        store.on_arrival = note
        for number in range(60):
            level = chance.randint(1, 6)
            due_s[f"m{number}-{level}"] = loop.time() + levels_ms[level - 1] / 1000
            await send(world, f"m{number}-{level}", level)
            await asyncio.sleep(chance.choice((0, 0.01, 1.3)))
        await asyncio.sleep(130)
        assert came_s.keys() == due_s.keys()
        for body, time_s in came_s.items():
            assert due_s[body] - 0.001 <= time_s < due_s[body] + 0.2, body  # times are whole milliseconds
        for level in range(1, 7):
            order = [body for body in came_s if body.endswith(f"-{level}")]
            assert order == [body for body in due_s if body.endswith(f"-{level}")]

    play(scenario, seed=seed)


def test_without_the_rule_is_due_messages_would_be_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayed, "is_due", lambda *_: True)
    with pytest.raises(AssertionError):
        test_a_delayed_message_is_delivered_when_it_is_due_and_not_before()


@pytest.mark.parametrize(("step_s", "late_s"), [(-3600, 0), (-5, 5)])
def test_setting_the_clock_back_makes_no_message_early_and_few_late(step_s: int, late_s: int) -> None:
    async def scenario(world: World) -> None:
        clock = world.runtime.clock
        assert isinstance(clock, SimulatedClock)
        await send(world, "before", 3)
        clock.skew_us += step_s * 1_000_000
        await send(world, "after", 3)
        await asyncio.sleep(9.9)
        assert delivered(world) == []
        await asyncio.sleep(0.3 + late_s)
        assert delivered(world) == ["before", "after"]

    play(scenario)


def test_setting_the_clock_forward_is_noticed_while_a_message_waits() -> None:
    async def scenario(world: World) -> None:
        clock = world.runtime.clock
        assert isinstance(clock, SimulatedClock)
        await send(world, "a", 18)
        clock.skew_us += 7_200_000_000
        await asyncio.sleep(1.1)
        assert delivered(world) == ["a"]

    play(scenario)


@pytest.mark.parametrize("away_s", [1, 100])
def test_a_restart_neither_loses_nor_repeats_messages(away_s: int) -> None:
    async def scenario(world: World) -> None:
        await send(world, "first", 1)
        await send(world, "second", 4)
        await asyncio.sleep(5)
        await world.stop_broker()
        assert world.disk.names("/store/config").count("delayOffset.json") == 1
        await asyncio.sleep(away_s)
        await world.start_broker()
        await asyncio.sleep(31)
        assert delivered(world) == ["first", "second"]

    play(scenario)


def test_after_a_crash_messages_delivered_since_the_last_write_are_repeated() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 1)
        await asyncio.sleep(2)
        before = world.disk.copy()
        await asyncio.sleep(10)
        after = world.disk.copy()
        for disk, expected in ((before, ["a", "a"]), (after, ["a"])):
            await world.stop_broker()
            disk.lose_power()
            world.disk = disk
            world.runtime = replace(world.runtime, disk=disk)
            await world.start_broker()
            await asyncio.sleep(2)
            assert delivered(world) == expected

    play(scenario)


def test_the_file_never_counts_a_delivery_that_a_crash_undoes() -> None:
    """Under ASYNC_FLUSH too, the log is flushed before the file is written."""

    async def scenario(world: World) -> None:
        await send(world, "a", 1)
        await asyncio.sleep(10.5)
        assert world.broker is not None
        assert world.broker.services is not None
        await send(world, "b", 1)
        await asyncio.sleep(2)
        await world.broker.services.delays.persist()
        disk = world.disk.copy()
        disk.lose_power()
        await world.stop_broker()
        world.disk = disk
        world.runtime = replace(world.runtime, disk=disk)
        await world.start_broker()
        await asyncio.sleep(2)
        assert delivered(world) == ["a", "b"]

    store = replace(SMALL_STORE, flush_mode=FlushMode.ASYNC_FLUSH, flush_log_interval_ms=3_600_000)
    play(scenario, config=replace(CONFIG, store=store))


def test_an_offset_beyond_the_queue_is_its_end_and_a_broken_file_is_read_from_its_backup() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 1)
        await asyncio.sleep(2)
        await world.stop_broker()
        file = world.disk.open(FILE)
        file.write(0, b"{" * 10)
        file.close()
        backup = b'{"offsetTable":{1:99}}'
        write_durably(world.disk, f"{FILE}.bak", backup)
        await world.start_broker()
        await send(world, "b", 1)
        await asyncio.sleep(2)
        assert delivered(world) == ["a", "b"]

    play(scenario)


def test_an_offset_beyond_the_queue_is_corrected_in_the_file_before_messages_arrive() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 1)
        await asyncio.sleep(2)
        await world.stop_broker()
        write_durably(world.disk, FILE, b'{"offsetTable":{1:99}}')
        await world.start_broker()
        assert b"{1:1}" in read_whole(world.disk, FILE)

    play(scenario)


def test_a_failing_disk_stops_delivery_and_nothing_counts_as_delivered() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 1)

        def fail(step: Step) -> None:
            if step.kind == "write" and "commitlog" in step.path:
                raise OSError(28, "No space left on device", step.path)

        world.disk.on_step = fail
        await asyncio.sleep(20)
        world.disk.on_step = None
        assert delivered(world) == []
        await world.stop_broker()
        await world.start_broker()
        await asyncio.sleep(1)
        assert delivered(world) == ["a"]

    play(scenario)


def test_a_message_that_a_full_disk_refuses_is_delivered_when_there_is_space() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 3)
        world.disk.room = Space(100, 5)
        await asyncio.sleep(25)
        assert delivered(world) == []
        world.disk.room = Space(100, 50)
        await asyncio.sleep(15)
        assert delivered(world) == ["a"]

    play(scenario, config=replace(CONFIG, store=replace(SMALL_STORE, clean_forcibly=False)))


def test_an_idle_broker_with_a_waiting_message_uses_little_time() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        looks = 0
        units = world.broker.store.units

        def counted(topic: str, queue_id: int, offset: int, count: int) -> object:
            nonlocal looks
            looks += topic == SCHEDULE_TOPIC
            return units(topic, queue_id, offset, count)

        world.broker.store.units = counted  # type: ignore[method-assign, assignment]
        await asyncio.sleep(600)
        assert looks <= 18 * 11, "once a minute and level"
        looks = 0
        await send(world, "a", 14)
        await asyncio.sleep(600)
        assert looks <= 18 * 11 + 610, "and once a second for the message that waits"

    play(scenario)


def test_the_queue_of_each_of_18_levels_is_looked_at_once_a_minute_without_messages() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        looks_s: list[float] = []
        units = world.broker.store.units

        def counted(topic: str, queue_id: int, offset: int, count: int) -> list[Unit]:
            if topic == SCHEDULE_TOPIC:
                looks_s.append(world.loop.time())
            return units(topic, queue_id, offset, count)

        world.broker.store.units = counted  # type: ignore[method-assign]
        await asyncio.sleep(130)
        first_s = looks_s[0]
        assert [round(at_s - first_s, 1) for at_s in looks_s] == [0] * 18 + [60] * 18 + [120] * 18

    play(scenario)


def test_the_progress_of_each_level_can_be_queried() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 1)
        await send(world, "b", 1)
        await send(world, "c", 3)
        await asyncio.sleep(2)
        answer = await world.ask(RequestCode.GET_ALL_DELAY_OFFSET)
        assert answer.body == b'{"offsetTable":{1:2}}'
        info = await world.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        assert b'"scheduleMessageOffset_1":"2,2"' in info.body

    play(scenario)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"REAL_TOPIC": "../T", "REAL_QID": "0"}, "a delayed message for topic ../T is dropped: "),
        ({"REAL_TOPIC": "T", "REAL_QID": "-1"}, "the delayed message at 0 is dropped: REAL_TOPIC is 'T'"),
        ({"REAL_TOPIC": SCHEDULE_TOPIC, "REAL_QID": "1"}, ""),
        ({}, "the delayed message at 0 is dropped: REAL_TOPIC is ''"),
    ],
)
def test_a_message_that_cannot_be_delivered_is_skipped(
    properties: dict[str, str], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        await world.broker.store.put(Message(SCHEDULE_TOPIC, b"bad", {"DELAY": "1", **properties}))
        await send(world, "good", 1)
        await asyncio.sleep(3)
        assert delivered(world) == ["good"]
        assert world.disk.names("/store/consumequeue") == [SCHEDULE_TOPIC, "T"]
        assert words in caplog.text

    play(scenario)


async def _log_begins(world: World) -> list[int]:
    """Store more than one segment, then delete what may be deleted; return where the log began each time."""
    assert world.broker is not None
    store = world.broker.store
    for _ in range(15):
        await store.put(Message("Other", b"x" * 90_000))
    begins = []
    for _ in range(3):
        await asyncio.sleep(40)  # longer than a segment is kept
        await store.put(Message("Other", b"x"))
        await store.clean(manually=True)
        begins.append(store.log_begin)
    return begins


def test_a_message_waits_longer_than_segments_are_kept() -> None:
    async def scenario(world: World) -> None:
        await send(world, "a", 1)
        await send(world, "b", 2)
        assert await _log_begins(world) == [0, 0, 0]
        await world.stop_broker()
        await world.start_broker()
        await asyncio.sleep(200)
        assert delivered(world) == ["a", "b"]
        assert (await _log_begins(world))[-1] > 0, "a delivered message is not kept"

    store = replace(SMALL_STORE, file_reserved_ms=30_000, delay_levels_ms=(1000, 150_000))
    play(scenario, config=replace(CONFIG, store=store))


def test_a_broker_that_does_not_deliver_keeps_what_is_not_due() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        delays, store = world.broker.services.delays, world.broker.store
        for level in (1, 2, 2):
            await send(world, "a", level)
        delays.follow()
        first_of = [store.commit_offset_at(SCHEDULE_TOPIC, level, 0) for level in range(2)]
        assert delays._needed_from() == first_of[0]
        await asyncio.sleep(2)
        assert delays._needed_from() == first_of[1]
        await asyncio.sleep(150)
        assert delays._needed_from() is None

    store = replace(SMALL_STORE, delay_levels_ms=(1000, 150_000))
    play(scenario, config=replace(CONFIG, store=store))


def test_a_message_that_arrives_during_a_start_is_not_passed_over() -> None:
    """The file may be ahead of a queue that lost its end, and the name server may be silent."""

    async def scenario(world: World) -> None:
        await world.producer.send(Message("T", b"first"), MessageQueue("T", "broker-a", 1))
        assert world.broker is not None
        world.broker.kill()
        write_durably(world.disk, FILE, b'{"offsetTable":{"1":9}}')
        world.disk.crash_process()
        world.network.silence(world.namesrv_address)
        start = asyncio.create_task(world.start_broker())
        await asyncio.sleep(1)
        is_registering = not start.done()
        waits = {"REAL_TOPIC": "T", "REAL_QID": "0", "DELAY": "1"}
        await world.broker.store.put(Message(SCHEDULE_TOPIC, b"a", waits))
        world.network.heal(world.namesrv_address)
        await start
        assert is_registering
        await asyncio.sleep(3)
        assert delivered(world) == ["a"]

    play(scenario, config=CONFIG)


def test_a_slave_keeps_the_offsets_of_its_master_also_while_its_log_is_behind() -> None:
    async def scenario(world: World) -> None:
        disk, role = SimulatedDisk(), ReplicationConfig(role=Role.SLAVE, ha_port=0)
        write_durably(disk, FILE, b'{"offsetTable":{"1":9}}')
        config = replace(CONFIG, broker_id=1, name="b-x", replication=role)
        slave = Broker(config, replace(world.runtime, disk=disk))
        await slave.start()
        assert slave.services is not None
        delays = slave.services.delays
        assert delays.offsets().offset_table == {1: 9}
        delays.adopt({})
        delays.adopt({1: 9})
        disk.lose(FILE)
        await delays.persist()
        assert not disk.exists(FILE), "nothing has changed"
        delays.adopt({1: 10})
        await delays.persist()
        assert b'{"offsetTable":{1:10}' in read_whole(disk, FILE)
        await slave.stop()

    play(scenario, config=CONFIG)


def test_a_message_that_is_perhaps_stored_twice_is_an_event() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        events, runtime, path = Events(), world.runtime, "/offsets"
        message = Message("T", b"a", {"UNIQ_KEY": "K"}, queue_id=3)
        for log in (None, cast("EventLog", events)):
            delays = delayed.DelayedDelivery(path, world.broker.store, PullHolds(), runtime, log)
            delays._emit_retry(message, PutStatus.UNKNOWN_ERROR)
        fields = {"msg_id": "K", "topic": "T", "queue_id": 3, "status": "UNKNOWN_ERROR"}
        assert events.kept == [(Kind.RETRY, fields)]

    play(scenario, config=CONFIG)


def test_delivery_sleeps_until_a_message_is_due_or_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept_s: list[float] = []
    until_due = upkeep.until_due

    async def noted(woken: asyncio.Future[None], seconds: float) -> None:
        slept_s.append(seconds)
        await until_due(woken, seconds)

    monkeypatch.setattr(upkeep, "until_due", noted)

    async def scenario(world: World) -> None:
        await send(world, "a", 2)
        await asyncio.sleep(6)
        assert delivered(world) == ["a"]
        left_s = slept_s[0]
        assert 4.9 < left_s <= 5.0
        assert slept_s == [round(left_s - second, 3) for second in range(5)]

    play(scenario, config=CONFIG)


async def _put_together(world: World, bodies: str) -> None:
    """Store messages of one letter each that are due in the same millisecond."""
    assert world.broker is not None
    waits = {"REAL_TOPIC": "T", "REAL_QID": "0", "DELAY": "1"}
    messages = [Message(SCHEDULE_TOPIC, body.encode(), {**waits, "UNIQ_KEY": body}) for body in bodies]
    await world.broker.store.put_batch(messages)


def _progress(world: World) -> dict[int, int]:
    assert world.broker is not None
    assert world.broker.services is not None
    return world.broker.services.delays.offsets().offset_table


@pytest.mark.parametrize(("bytes_max", "writes"), [(1 << 20, 1), (1, 5)])
def test_messages_that_are_due_together_are_stored_with_one_write(
    bytes_max: int, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed, "_BATCH_BYTES", bytes_max)

    async def scenario(world: World) -> None:
        await _put_together(world, "abcde")
        assert await _log_writes(world) == writes
        assert delivered(world) == list("abcde")

    play(scenario)


@pytest.mark.parametrize(("count", "writes"), [(64, 1), (65, 2)])
def test_sixty_four_messages_are_stored_with_one_write(count: int, writes: int) -> None:
    async def scenario(world: World) -> None:
        await _put_together(world, "a" * count)
        assert await _log_writes(world) == writes
        assert _progress(world) == {1: count}

    play(scenario)


def test_a_write_ends_with_the_message_that_fills_one_mebibyte() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        store = world.broker.store
        waits = {"REAL_TOPIC": "T", "REAL_QID": "0", "DELAY": "1"}
        await store.put(Message(SCHEDULE_TOPIC, b"", waits))
        found = store.entry(SCHEDULE_TOPIC, 0, 0)
        assert found is not None
        body = b"a" * ((1 << 18) - found[1].size)
        await asyncio.sleep(2)
        await store.put_batch([Message(SCHEDULE_TOPIC, body, waits) for _ in range(5)])
        assert await _log_writes(world) == 2, "four messages of 256 KiB, and one"
        assert _progress(world) == {1: 6}

    play(scenario, config=replace(CONFIG, store=replace(SMALL_STORE, commit_log_segment_bytes=1 << 24)))


async def _log_writes(world: World) -> int:
    """Return how many writes to the log the next two seconds make."""
    seen: list[Step] = []
    world.disk.on_step = seen.append
    await asyncio.sleep(2)
    world.disk.on_step = None
    return sum(step.kind == "write" and "commitlog" in step.path for step in seen)


class _Puts:
    """Puts of delayed messages in a world, whose statuses a test chooses."""

    def __init__(self, world: World) -> None:
        assert world.broker is not None
        store = world.broker.store
        self.statuses: dict[str, PutStatus] = {}
        """The statuses of the next puts by body. Those that perhaps store the message store it."""
        self.tried: list[str] = []
        self._put_soon = store.put_soon
        store.put_soon = self._answer  # type: ignore[method-assign]

    def _answer(self, messages: Sequence[Message], done: Done, *, wait: bool = True) -> None:
        body = messages[0].body.decode()
        if messages[0].topic != "T":
            self._put_soon(messages, done, wait=wait)
            return
        self.tried.append(body)
        status = self.statuses.pop(body, None)
        if status is None:
            self._put_soon(messages, done, wait=wait)
        elif status in PERHAPS_STORED:
            self._put_soon(messages, lambda _: done([PutResult(status)]), wait=wait)
        else:
            done([PutResult(status)])


def _retried(world: World) -> list[tuple[str | None, str | None]]:
    """Return the unique keys and the statuses of the events of messages that are stored once more."""
    return [(event.msg_id, event.status) for event in world.events if event.kind is Kind.RETRY]


def test_after_a_refused_put_the_next_ones_wait_until_it_succeeds() -> None:
    async def scenario(world: World) -> None:
        puts = _Puts(world)
        puts.statuses = {"c": PutStatus.OS_PAGECACHE_BUSY}
        await _put_together(world, "abcde")
        await asyncio.sleep(1.5)
        assert (delivered(world), puts.tried) == (["a", "b"], ["a", "b", "c"])
        assert _progress(world) == {1: 2}
        await asyncio.sleep(1)
        assert (delivered(world), puts.tried) == (list("abcde"), list("abccde"))
        assert _progress(world) == {1: 5}
        assert _retried(world) == []

    play(scenario)


def test_after_a_put_that_failed_late_it_and_the_next_ones_are_stored_once_more() -> None:
    async def scenario(world: World) -> None:
        puts = _Puts(world)
        puts.statuses = {"b": PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH}
        await _put_together(world, "abc")
        await asyncio.sleep(1.5)
        assert _progress(world) == {1: 1}
        await asyncio.sleep(1)
        assert delivered(world) == list("abcbc")
        assert _progress(world) == {1: 3}
        assert _retried(world) == [("b", "IN_SYNC_REPLICAS_NOT_ENOUGH"), ("c", "PUT_OK")]

    play(scenario)


def test_an_illegal_message_among_others_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        puts = _Puts(world)
        puts.statuses = {"a": PutStatus.MESSAGE_ILLEGAL, "c": PutStatus.MESSAGE_ILLEGAL}
        await _put_together(world, "abcd")
        await asyncio.sleep(1.5)
        assert (delivered(world), puts.tried) == (["b", "d"], list("abcd"))
        assert _progress(world) == {1: 4}
        assert caplog.text.count("a delayed message for topic T is dropped") == 2

    play(scenario)


def test_a_delivery_that_is_cancelled_counts_what_it_stores() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        store, put_soon = world.broker.store, world.broker.store.put_soon
        stopping: list[asyncio.Task[None]] = []

        def stop(messages: Sequence[Message], done: Done, *, wait: bool = True) -> None:
            put_soon(messages, done, wait=wait)
            if messages[0].body == b"b" and not stopping:
                stopping.append(asyncio.create_task(world.stop_broker()))

        await _put_together(world, "abc")
        store.put_soon = stop  # type: ignore[method-assign]
        await asyncio.sleep(2)
        await stopping[0]
        await world.start_broker()
        await asyncio.sleep(2)
        assert delivered(world) == list("abc")

    play(scenario)


def test_a_level_that_cannot_be_read_is_tried_again_each_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        tries_s: list[float] = []
        entry = world.broker.store.entry

        def broken(topic: str, queue_id: int, offset: int) -> object:
            if topic == SCHEDULE_TOPIC and len(tries_s) < 3:
                tries_s.append(world.loop.time())
                raise OSError("of the test")
            return entry(topic, queue_id, offset)

        monkeypatch.setattr(world.broker.store, "entry", broken)
        await send(world, "a", 1)
        await asyncio.sleep(4)
        first_s = tries_s[0]
        assert [round(at_s - first_s, 2) for at_s in tries_s] == [0, 1, 2]
        assert caplog.text.count("the delivery of delay level 1 has stopped: of the test") == 3
        assert delivered(world) == ["a"]

    play(scenario)


def test_a_damaged_message_is_left_out_and_the_next_one_delivered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        store = world.broker.store
        await _put_together(world, "abc")
        entry = store.entry
        monkeypatch.setattr(store, "entry", lambda *place: None if place[2] == 1 else entry(*place))
        await asyncio.sleep(2)
        assert delivered(world) == ["a", "c"]
        assert _progress(world) == {1: 3}
        assert caplog.text.count("the delayed message at offset 1 of level 1 is damaged and left out") == 1

    play(scenario)


def test_offsets_that_cannot_be_written_at_the_start_do_not_stop_the_delivery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        delays = world.broker.services.delays
        delays._unwritten.is_any = True

        def refuse(step: Step) -> None:
            raise OSError("of the test")

        world.disk.on_step = refuse
        running = asyncio.create_task(delays.run(Address("10.0.0.9", 7)))
        await asyncio.sleep(1)
        world.disk.on_step = None
        assert not running.done()
        assert "the offsets of delayed messages cannot be written to disk: of the test" in caplog.text
        running.cancel()
        await asyncio.wait([running])

    play(scenario)


def test_a_delivered_message_names_the_broker_as_its_store() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        await send(world, "a", 1)
        await asyncio.sleep(2)
        (data,) = world.broker.store.get("T", 0, 0).records
        assert record.decode(data).message.store_host == world.broker_address

    play(scenario)


def test_a_broker_that_starts_keeps_what_its_file_does_not_count_also_if_it_is_due() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        store, path = world.broker.store, "/offsets"
        await _put_together(world, "ab")
        await asyncio.sleep(2)
        places = [store.commit_offset_at(SCHEDULE_TOPIC, 0, offset) for offset in range(2)]
        for counted, needed in ((0, places[0]), (1, places[1]), (2, None)):
            write_durably(world.disk, path, b'{"offsetTable":{1:%d}}' % counted)
            delays = delayed.DelayedDelivery(path, store, PullHolds(), world.runtime)
            delays.load()
            assert delays._needed_from() == needed
            delays.cut()
            world.disk.lose(path)
            await delays.persist()
            assert not world.disk.exists(path), "no offset is beyond its queue"
            delays.follow()
            assert delays._needed_from() is None

    play(scenario)


def test_while_a_broker_delivers_it_keeps_what_its_file_does_not_count_and_afterwards_what_is_not_due() -> (
    None
):
    async def scenario(world: World) -> None:
        assert world.broker is not None
        store = world.broker.store
        await _put_together(world, "ab")
        await asyncio.sleep(2)
        holds = PullHolds()
        delays = delayed.DelayedDelivery("/offsets", store, holds, world.runtime)
        delays.load()
        delays.follow()
        assert delays._needed_from() is None
        running = asyncio.create_task(delays.run(world.broker_address))
        await asyncio.sleep(1)
        assert delays.offsets().offset_table == {1: 2}
        assert delays._needed_from() == store.commit_offset_at(SCHEDULE_TOPIC, 0, 0)
        await delays.persist()
        assert delays._needed_from() is None
        running.cancel()
        await asyncio.wait([running])
        await _put_together(world, "c")
        assert delays._needed_from() == store.commit_offset_at(SCHEDULE_TOPIC, 0, 2)
        await asyncio.sleep(2)
        assert delays._needed_from() is None, "it is due"
        holds.close()

    play(scenario)


def test_a_broker_that_becomes_the_master_lowers_offsets_beyond_its_queues() -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        await _put_together(world, "ab")
        await asyncio.sleep(2)
        holds = PullHolds()
        write_durably(world.disk, "/offsets", b'{"offsetTable":{1:99}}')
        delays = delayed.DelayedDelivery("/offsets", world.broker.store, holds, world.runtime)
        delays.load()
        running = asyncio.create_task(delays.run(world.broker_address))
        await asyncio.sleep(0.5)
        assert b"{1:2}" in read_whole(world.disk, "/offsets")
        running.cancel()
        await asyncio.wait([running])
        holds.close()

    play(scenario)


def test_the_messages_of_the_last_level_are_kept_and_none_that_was_deleted_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        store = world.broker.store
        for level in (18, 2, 2):
            await send(world, "a", level)
        delays = delayed.DelayedDelivery("/offsets", store, PullHolds(), world.runtime)
        delays.load()
        assert delays._needed_from() == store.commit_offset_at(SCHEDULE_TOPIC, 17, 0) == 0
        begins = {(SCHEDULE_TOPIC, 17): 1, (SCHEDULE_TOPIC, 1): 1}
        monkeypatch.setattr(store, "min_offset", lambda *queue: begins.get(queue, 0))
        assert delays._needed_from() == store.commit_offset_at(SCHEDULE_TOPIC, 1, 1)

    play(scenario)


def test_offsets_are_not_written_while_the_log_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        delays = delayed.DelayedDelivery("/offsets", world.broker.store, PullHolds(), world.runtime)
        delays.load()
        delays.adopt({1: 5})
        with monkeypatch.context() as change:
            change.setattr(world.broker.store, "failure", "the disk failed")
            with pytest.raises(OSError, match="the disk failed"):
                await delays.persist()
        assert not world.disk.exists("/offsets")
        await delays.persist()
        assert b"{1:5}" in read_whole(world.disk, "/offsets")

    play(scenario)


def test_a_broker_that_does_not_deliver_needs_the_first_message_that_is_not_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        store = world.broker.store
        for _ in range(3):
            await send(world, "a", 2)
            await asyncio.sleep(2)
        places = [store.commit_offset_at(SCHEDULE_TOPIC, 1, offset) for offset in range(3)]
        delays = delayed.DelayedDelivery("/offsets", store, PullHolds(), world.runtime)
        delays.follow()
        assert delays._needed_from() == places[1]
        begins = {(SCHEDULE_TOPIC, 1): 1}
        monkeypatch.setattr(store, "min_offset", lambda *queue: begins.get(queue, 0))
        await asyncio.sleep(2)
        assert delays._needed_from() == places[2]

    play(scenario)


def test_messages_that_were_deleted_before_their_time_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        await _put_together(world, "abc")
        begins = {(SCHEDULE_TOPIC, 0): 2}
        monkeypatch.setattr(world.broker.store, "min_offset", lambda *queue: begins.get(queue, 0))
        await asyncio.sleep(2)
        assert (delivered(world), _progress(world)) == (["c"], {1: 3})

    play(scenario)

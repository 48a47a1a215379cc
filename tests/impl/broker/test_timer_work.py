"""Tests each work on timers step by step: deliveries, recalls, copies and points, also those that fail.

Source: docs/reference/protocol/timers.md. The store is in memory, and the test sets its answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import cast

import pytest
from msgspec.structs import replace

from mqproof.impl.broker import timed_messages
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.state.waiting_timers import Waiting, WaitingTimers
from mqproof.impl.broker.timed_messages import POINT_QUEUE, TIMER_TOPIC, Point
from mqproof.impl.broker.timers import LOG_READER, Timers
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.recall_handle import RecallHandle
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.base import Store
from mqproof.impl.store.results import PutResult, PutStatus
from mqproof.spec.events import Kind
from tests.impl.broker.memory_store import Events, MemoryStore

BEGIN_MS = 1_000_000
HANDLE = RecallHandle("T", "b", BEGIN_MS + 5000, "K")


class Site:
    """Timers whose work does not run by itself."""

    def __init__(self) -> None:
        self.store, self.events, self.holds = MemoryStore(), Events(), PullHolds()
        self.timers = Timers(cast("Store", self.store), self.holds, cast("EventLog", self.events))

    async def read(self, before: Point | None = None) -> None:
        """Read the queue, as at a start."""
        await self.timers._read(lambda: before)
        self.timers._is_ready = True

    def send(self, seconds: float = 5, properties: Mapping[str, str] | None = None) -> None:
        message = Message("T", b"a", {"UNIQ_KEY": "K"})
        waits = timed_messages.waiting(message, BEGIN_MS + int(1000 * seconds))
        self.store.add(replace(waits, properties={**waits.properties, **(properties or {})}))

    async def deliver_at(self, seconds: float) -> None:
        self.store.clock_ms = BEGIN_MS + int(1000 * seconds)
        await self.timers._deliver()

    @property
    def delivered(self) -> int:
        return len(self.store.messages("T"))

    def found(self, original: int = 0) -> Waiting | None:
        return self.timers._table.find(original)


def play(scenario: Callable[[Site], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(Site())

    run_simulated(main())


# Reading.


def test_a_first_start_reads_no_record_that_does_not_exist(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        assert site.timers.waiting_count == 0
        assert site.store.readers == {}
        assert caplog.text == ""

    play(scenario)


def test_the_last_valid_point_is_used_and_without_one_the_progress_of_a_released_broker() -> None:
    async def scenario(site: Site) -> None:
        for seconds in (1, 2, 9):
            site.send(seconds)
        await site.read(Point(0, 3, BEGIN_MS + 2000, 0))
        assert [one.place for one in site.timers._table.all_waiting()] == [2]
        for text in ("1 3 0 0", "0 0 0 0 0"):
            site.store.add(Message(TIMER_TOPIC, b"", {"TIMER_POINT": text}, POINT_QUEUE))
        await site.read(Point(3, 3, BEGIN_MS + 9000, 0))
        assert [one.place for one in site.timers._table.all_waiting()] == [1, 2]

    play(scenario)


def test_a_final_in_the_log_ends_its_message_and_that_of_another_queue_does_not() -> None:
    async def scenario(site: Site) -> None:
        for seconds in (1, 2):
            site.send(seconds)
        await site.read()
        await site.deliver_at(1)
        (final,) = site.store.messages("T")
        forged = replace(final.message, queue_id=1, prepared_transaction_offset=1001)
        site.store.add(forged)  # it names message 1
        await site.read()
        assert [one.place for one in site.timers._table.all_waiting()] == [1]

    play(scenario)


def test_messages_that_were_not_read_yet_are_counted() -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        counts = [site.timers.waiting_count]
        for _ in range(2):
            site.send()
            counts.append(site.timers.waiting_count)
        site.timers._catch_up()
        assert [*counts, site.timers.waiting_count] == [0, 1, 2, 2]

    play(scenario)


@pytest.mark.parametrize(("invalid", "is_found"), [(63, True), (64, False)])
def test_the_last_point_is_sought_in_64_records(invalid: int, is_found: bool) -> None:
    async def scenario(site: Site) -> None:
        site.store.add(timed_messages.point(Point(0, 0, 7, 0), 0, ("10.0.0.1", 1)))
        for _ in range(invalid):
            site.store.add(Message(TIMER_TOPIC, b"", {"TIMER_POINT": "?"}, POINT_QUEUE))
        assert (site.timers._last_point() is not None) is is_found

    play(scenario)


def test_the_start_reads_32_records_before_other_coroutines_run() -> None:
    async def scenario(site: Site) -> None:
        scanned = 0

        def records_from(commit_offset: int) -> Iterator[StoredMessage]:
            nonlocal scanned
            for stored in MemoryStore.records_from(site.store, commit_offset):
                scanned += 1
                yield stored

        site.store.records_from = records_from  # type: ignore[method-assign]
        for _ in range(66):
            site.send()
        reading = asyncio.create_task(site.read())
        seen = []
        while not reading.done():
            await asyncio.sleep(0)
            seen.append((site.timers._table.read_end, scanned))
        assert seen == [(32, 0), (64, 0), (66, 0), (66, 1), (66, 33), (66, 65), (66, 66)]

    play(scenario)


def test_a_start_seeks_no_point_among_deleted_records(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(site: Site) -> None:
        for _ in range(2):
            site.store.add(Message(TIMER_TOPIC, b"", {"TIMER_POINT": "?"}, POINT_QUEUE))
        site.store.lost.add(0)
        first = {(TIMER_TOPIC, POINT_QUEUE): 1}
        monkeypatch.setattr(site.store, "min_offset", lambda *queue: first.get(queue, 0))
        await site.read()
        assert caplog.text == ""

    play(scenario)


def test_a_start_reads_no_record_that_was_deleted_and_the_copy_of_such_a_one(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        site.store.log_wanted_before = 1000
        await site.timers._roll()
        site.store.lost.add(0)
        first = {(TIMER_TOPIC, 0): 1}
        monkeypatch.setattr(site.store, "min_offset", lambda *queue: first.get(queue, 0))
        await site.read()
        copied = site.found()
        assert copied is not None
        assert (copied.place, caplog.text) == (1, "")

    play(scenario)


def test_a_queue_that_cannot_be_read_is_tried_again_each_second_and_recalls_wait_for_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Exception] = [OSError("disk"), ValueError("number")]

    async def scenario(site: Site) -> None:
        def record_at(commit_offset: int) -> bytes | None:
            if errors:
                raise errors.pop(0)
            return MemoryStore.record_at(site.store, commit_offset)

        site.send(90)
        site.send(1)
        monkeypatch.setattr(site.store, "record_at", record_at)
        address = Address("10.0.0.9", 7)
        running = asyncio.create_task(site.timers.run(address, lambda: None))
        unknown = HANDLE._replace(key="unknown")
        for seconds, code in (
            (1.99, ResponseCode.SERVICE_NOT_AVAILABLE),
            (0.02, ResponseCode.ILLEGAL_OPERATION),
        ):
            await asyncio.sleep(seconds)
            assert (await refusal(site, unknown)).code == code
        site.store.clock_ms += 1000
        assert caplog.text.count("the timer queue cannot be read, and is tried again") == 2
        await asyncio.sleep(1)
        assert [one.message.store_host for one in site.store.messages("T")] == [address]
        running.cancel()
        await asyncio.wait([running])
        assert (await refusal(site)).code == ResponseCode.SERVICE_NOT_AVAILABLE

    play(scenario)


def test_a_recall_in_the_queue_ends_the_messages_before_it_and_not_those_after_it() -> None:
    async def scenario(site: Site) -> None:
        for _ in range(2):
            site.send()
        recall = timed_messages.recall(HANDLE, None, BEGIN_MS, ("10.0.0.1", 1))
        at = site.store.add(recall).commit_offset
        site.send()
        await site.read()
        assert [one.place for one in site.timers._table.all_waiting()] == [3]
        assert site.timers._table.needed_from(at) == 0, "the recall is not durable yet"
        assert site.timers._table.needed_from(at + 1) == 3000

    play(scenario)


def test_a_point_covers_no_message_that_was_stored_after_it() -> None:
    async def scenario(site: Site) -> None:
        for seconds in (1, 2):
            site.send(seconds)
        await site.read(Point(0, 1, BEGIN_MS + 9000, 0))
        assert [one.place for one in site.timers._table.all_waiting()] == [1]

    play(scenario)


def test_a_message_that_names_a_record_of_another_topic_ends_nothing() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        names = {"REAL_TOPIC": "T", "REAL_QID": "0", "UNIQ_KEY": "K", "TIMER_ORIGINAL": "0"}
        site.store.add(Message("T", b"", names))
        forged = {"UNIQ_KEY": "K", "TIMER_OUT_MS": "0"}
        site.store.add(Message("T", b"", forged, prepared_transaction_offset=1001))
        await site.read()
        assert site.timers.waiting_count == 1

    play(scenario)


# Delivery.


def test_32_messages_that_are_due_are_stored_in_one_step() -> None:
    async def scenario(site: Site) -> None:
        for _ in range(33):
            site.send()
        await site.read()
        counts = []
        for _ in range(2):
            await site.deliver_at(5)
            counts.append(site.delivered)
        assert counts == [32, 33]

    play(scenario)


def test_delivery_sleeps_exactly_until_the_next_message_is_due() -> None:
    async def scenario(site: Site) -> None:
        site.send(5)
        await site.read()
        await site.deliver_at(4.5)
        assert asyncio.get_running_loop().time() == pytest.approx(0.5, abs=1e-4)

    play(scenario)


def test_a_final_does_not_wait_for_the_disk_or_a_slave(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[bool] = []

    async def scenario(site: Site) -> None:
        monkeypatch.setattr(site.store, "put_soon", lambda *_, wait=True: waits.append(wait))
        site.send()
        await site.read()
        await site.deliver_at(5)

    play(scenario)
    assert waits == [False]


def test_messages_that_cannot_be_read_from_the_disk_are_delivered_when_they_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(site: Site) -> None:
        def record_at(commit_offset: int) -> bytes | None:
            if commit_offset == 1000:
                raise OSError("disk")
            return MemoryStore.record_at(site.store, commit_offset)

        for _ in range(3):
            site.send()
        await site.read()
        with monkeypatch.context() as broken:
            broken.setattr(site.store, "record_at", record_at)
            with pytest.raises(OSError, match="disk"):
                await site.deliver_at(5)
            assert site.delivered == 1
        await site.deliver_at(5)
        assert (site.delivered, site.timers.waiting_count) == (3, 0)

    play(scenario)


def test_delivery_looks_again_when_a_message_arrives_in_its_queue() -> None:
    async def scenario(site: Site) -> None:
        site.send(90)
        await site.read()
        delivering = asyncio.create_task(site.deliver_at(5))
        await asyncio.sleep(0.1)
        for topic, queue_id, offset_next in ((TIMER_TOPIC, 0, 1), (TIMER_TOPIC, 1, 9), ("T", 0, 9)):
            site.holds.arrived(topic, queue_id, offset_next, 0)
            await asyncio.sleep(0.1)
            assert not delivering.done()
        site.holds.arrived(TIMER_TOPIC, 0, 2, 0)
        await asyncio.sleep(0.1)
        assert delivering.done()

    play(scenario)


@pytest.mark.parametrize(("others", "delivered", "waited_s"), [(1023, 1, 0), (1024, 0, 0.001)])
def test_a_final_waits_a_millisecond_while_the_status_of_1024_others_is_not_known(
    others: int, delivered: int, waited_s: float
) -> None:
    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        site.timers._puts = others
        await site.deliver_at(5)
        assert (site.delivered, site.timers._puts) == (delivered, others)
        assert asyncio.get_running_loop().time() == pytest.approx(waited_s, abs=1e-4)

    play(scenario)


@pytest.mark.parametrize(("messages", "waited_s"), [(0, 60.0), (1, 1.0)])
def test_delivery_looks_again_each_second_while_a_message_waits_and_each_minute_before_the_first(
    messages: int, waited_s: float
) -> None:
    async def scenario(site: Site) -> None:
        for _ in range(messages):
            site.send(90)
        await site.read()
        await site.deliver_at(5)
        assert asyncio.get_running_loop().time() == pytest.approx(waited_s, abs=0.02)

    play(scenario)


@pytest.mark.parametrize(
    ("properties", "answers", "is_lost", "words"),
    [
        ({"REAL_QID": "x"}, [], False, "message 0 of the timer queue is dropped: REAL_TOPIC is 'T'"),
        ({"REAL_TOPIC": TIMER_TOPIC}, [], False, ""),
        ({}, [PutStatus.MESSAGE_ILLEGAL], False, "queue is dropped: as the test says"),
        ({}, [], True, "the message at 0, which waits for its time, is gone"),
    ],
)
def test_a_message_that_cannot_be_delivered_does_not_wait_any_more(
    properties: dict[str, str],
    answers: list[PutStatus],
    is_lost: bool,
    words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(site: Site) -> None:
        site.send(5, properties)
        await site.read()
        site.store.answers.extend(answers)
        site.store.lost |= {0} if is_lost else set()
        await site.deliver_at(5)
        assert (site.timers.waiting_count, site.timers._puts, site.delivered) == (0, 0, 0)
        assert (words in caplog.text) is bool(words or not caplog.text)
        assert site.events.kept == []

    play(scenario)


@pytest.mark.parametrize(
    ("status", "events"),
    [
        (PutStatus.SERVICE_NOT_AVAILABLE, []),
        (PutStatus.UNKNOWN_ERROR, [(Kind.RETRY, {"msg_id": "K", "topic": "T", "status": "UNKNOWN_ERROR"})]),
    ],
)
def test_a_final_that_could_not_be_stored_is_tried_again_a_second_later(
    status: PutStatus, events: list[object]
) -> None:
    async def scenario(site: Site) -> None:
        loop = asyncio.get_running_loop()
        site.send()
        await site.read()
        site.store.answers.append(status)
        await site.deliver_at(5)
        assert (site.delivered, site.timers.waiting_count) == (0, 1)
        assert site.events.kept == events
        began = loop.time()
        await site.deliver_at(5)
        assert (site.delivered, loop.time() - began) == (0, 1.0)
        await site.deliver_at(5)
        assert (site.delivered, site.timers.waiting_count, loop.time() - began) == (1, 0, 1.0)

    play(scenario)


def test_a_message_is_delivered_at_its_millisecond_and_nothing_while_the_store_refuses() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        task = asyncio.create_task(site.deliver_at(4.999))
        await asyncio.sleep(0.5)
        assert (site.delivered, task.done()) == (0, True), "it sleeps for the millisecond that is left"
        site.store.writable = False
        await site.deliver_at(5)
        assert site.delivered == 0
        site.store.writable = True
        await site.deliver_at(5)
        assert site.delivered == 1

    play(scenario)


# Recalls.


async def refusal(site: Site, handle: RecallHandle = HANDLE) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        await site.timers.recall(handle, None)
    return refused.value


def test_a_recall_is_refused_before_the_queue_is_read_and_after_the_message_is_done() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        assert (await refusal(site)).code == ResponseCode.SERVICE_NOT_AVAILABLE
        await site.read()
        result = await site.timers.recall(HANDLE, "PG")
        assert result.status is PutStatus.PUT_OK
        assert site.events.kept == [(Kind.RECALL, {"msg_id": "K", "topic": "T", "status": "PUT_OK"})]
        assert (await refusal(site)).code == ResponseCode.ILLEGAL_OPERATION
        task = asyncio.create_task(site.deliver_at(5))
        await asyncio.sleep(0.5)
        task.cancel()
        assert (site.delivered, site.timers.waiting_count) == (0, 0)

    play(scenario)


def test_a_message_that_was_just_stored_can_be_recalled() -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        site.send()
        assert (await site.timers.recall(HANDLE, None)).status is PutStatus.PUT_OK
        assert site.found() is None

    play(scenario)


def test_a_recalled_message_is_done_also_before_the_recall_is_readable() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        site.store.unreadable_from = site.store.next_commit_offset
        await site.timers.recall(HANDLE, None)
        assert site.found() is None
        assert site.timers.waiting_count == 0

    play(scenario)


def test_a_recall_that_is_not_stored_leaves_all_messages_of_the_key_waiting() -> None:
    async def scenario(site: Site) -> None:
        for _ in range(2):
            site.send()
        await site.read()
        assert site.timers._table.hold(1, 0)
        busy = await refusal(site)
        assert (busy.code, "is being moved" in busy.remark) == (ResponseCode.SYSTEM_BUSY, True)
        site.timers._table.release(1)
        site.store.answers.append(PutStatus.SERVICE_NOT_AVAILABLE)
        await site.timers.recall(HANDLE, None)
        assert site.events.kept == []
        await site.deliver_at(5)
        assert site.delivered == 2

    play(scenario)


# Copies.


def test_copies_are_appended_of_the_messages_in_old_segments_and_known_at_once() -> None:
    async def scenario(site: Site) -> None:
        for seconds in (9, 8, 7):
            site.send(seconds)
        await site.read()
        await site.timers._roll()
        assert len(site.store.messages(TIMER_TOPIC)) == 3, "no segment is to be deleted"
        site.store.log_wanted_before = 2000
        site.store.writable = False
        await site.timers._roll()
        site.store.writable = True
        assert site.timers._table.hold(1, 0)  # it is being delivered
        await site.timers._roll()
        assert len(site.store.messages(TIMER_TOPIC)) == 4
        copied = site.found()
        assert copied is not None
        assert (copied.original, copied.place, copied.commit_offset) == (0, 3, 3000)
        await site.deliver_at(9)
        assert site.delivered == 2, "the copy is not held"

    play(scenario)


def test_no_copy_is_appended_of_a_message_that_was_recalled_in_the_meantime() -> None:
    """After the recall, the copy would be another message, which a start would find."""

    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        site.store.add(timed_messages.recall(HANDLE, None, BEGIN_MS, ("10.0.0.1", 1)))
        site.store.log_wanted_before = 1000
        await site.timers._roll()
        assert len(site.store.messages(TIMER_TOPIC)) == 2

    play(scenario)


def test_a_message_that_is_being_delivered_does_not_stop_the_copies_of_others() -> None:
    async def scenario(site: Site) -> None:
        for _ in range(2):
            site.send()
        await site.read()
        site.store.log_wanted_before = 2000
        assert site.timers._table.hold(0, 0)
        await site.timers._roll()
        copied = site.found(1)
        assert copied is not None
        assert copied.place == 2

    play(scenario)


def test_at_most_1024_copies_are_appended_by_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def older_than(_: WaitingTimers, commit_offset: int, count: int) -> list[Waiting]:
        asked.append((commit_offset, count))
        return []

    monkeypatch.setattr(WaitingTimers, "older_than", older_than)

    async def scenario(site: Site) -> None:
        site.store.log_wanted_before = 7
        await site.timers._roll()

    play(scenario)
    assert asked == [(7, 1024)]


def test_a_point_is_written_three_seconds_after_a_change_and_copies_one_second_after_they_are_due() -> None:
    async def scenario(site: Site) -> None:
        site.send(90)
        site.store.log_wanted_before = 1000
        running = asyncio.create_task(site.timers.run(("127.0.0.1", 1), lambda: None))  # type: ignore[arg-type]
        counts = []
        for seconds in (0.99, 0.02, 1.98, 0.02):
            await asyncio.sleep(seconds)
            counts.append([len(site.store.messages(TIMER_TOPIC, queue)) for queue in (0, POINT_QUEUE)])
            site.store.log_wanted_before = 0 if counts[-1][0] == 2 else 1000
        running.cancel()
        await asyncio.wait([running])
        assert counts == [[1, 0], [2, 0], [2, 0], [2, 1]]

    play(scenario)


def test_a_message_whose_copy_could_not_be_stored_is_still_delivered() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        site.store.log_wanted_before = 1000
        site.store.answers.append(PutStatus.SERVICE_NOT_AVAILABLE)
        with pytest.raises(OSError, match="no copy could be stored: SERVICE_NOT_AVAILABLE as the test says"):
            await site.timers._roll()
        await site.deliver_at(5)
        assert (site.delivered, site.timers.waiting_count) == (1, 0)

    play(scenario)


def test_a_message_that_is_gone_is_not_copied_and_the_others_are(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        for _ in range(2):
            site.send()
        await site.read()
        site.store.log_wanted_before = 2000
        site.store.lost.add(0)
        await site.timers._roll()
        assert "the message at 0, which waits for its time, is gone" in caplog.text
        assert (site.found(0), site.timers.waiting_count) == (None, 1)
        assert len(site.store.messages(TIMER_TOPIC)) == 3

    play(scenario)


# Points.


def test_a_point_is_written_after_each_change_and_for_the_deletion_of_segments_only() -> None:
    async def scenario(site: Site) -> None:
        points = []

        async def write() -> None:
            await site.timers._write_point()
            points.append(len(site.store.messages(TIMER_TOPIC, POINT_QUEUE)))

        await site.read()
        await write()  # nothing was ever read
        site.send()
        await write()
        await write()  # nothing has changed
        await site.deliver_at(5)
        await write()
        at = site.store.next_commit_offset - 1000
        site.store.log_wanted_before = at
        await write()
        site.store.log_wanted_before = at + 1
        await write()
        site.store.log_wanted_before = 0
        site.send()
        site.store.writable = False
        await write()
        assert points == [0, 1, 1, 2, 2, 3, 3]
        site.store.writable = True
        site.store.answers.append(PutStatus.SERVICE_NOT_AVAILABLE)
        with pytest.raises(OSError, match="no point could be stored: SERVICE_NOT_AVAILABLE"):
            await site.timers._write_point()
        await write()
        assert points[-1] == 4
        await write()
        await site.read()
        await write()
        assert points[-2:] == [4, 5], "each start is followed by a point"

    play(scenario)


def test_a_point_says_until_when_and_from_where_in_the_log_and_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(site: Site) -> None:
        waits: list[bool] = []

        async def put(message: Message, *, wait: bool = True) -> PutResult:
            waits.append(wait)
            return site.store.add(message)

        monkeypatch.setattr(site.store, "put", put)
        site.send()
        await site.read()
        site.store.clock_ms += 7
        await site.timers._write_point()
        (stored,) = site.store.messages(TIMER_TOPIC, POINT_QUEUE)
        assert timed_messages.point_of(stored.message) == Point(0, 1, BEGIN_MS + 7, 1000)
        assert (stored.message.born_timestamp_ms, waits) == (BEGIN_MS + 7, [False])

    play(scenario)


def test_delivery_reports_the_other_work_when_it_is_due() -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        due = (site.timers._point_due, site.timers._roll_due)
        site.timers._notice_due_work()
        assert [each.is_set() for each in due] == [False, False]
        site.send()
        site.timers._catch_up()
        site.timers._notice_due_work()
        assert [each.is_set() for each in due] == [True, False]
        site.store.log_wanted_before = 1
        site.timers._notice_due_work()
        assert [each.is_set() for each in due] == [True, True]

    play(scenario)


def test_work_is_done_once_some_time_after_each_time_it_became_due() -> None:
    async def scenario(site: Site) -> None:
        due, done_s = asyncio.Event(), list[float]()

        async def work() -> None:
            done_s.append(asyncio.get_running_loop().time())

        running = asyncio.create_task(site.timers._whenever(due, work, 3))
        for _ in range(2):
            await asyncio.sleep(10)
            due.set()
        await asyncio.sleep(10)
        running.cancel()
        assert done_s == pytest.approx([13, 23], abs=0.05)

    play(scenario)


@pytest.mark.parametrize("error", [OSError("disk"), ValueError("number")])
def test_work_that_fails_is_logged_and_tried_again_each_second(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> None:
        tries_s = []

        async def work() -> None:
            tries_s.append(asyncio.get_running_loop().time())
            if len(tries_s) < 3:
                raise error
            await asyncio.sleep(60)

        running = asyncio.create_task(site.timers._forever(work))
        await asyncio.sleep(9)
        running.cancel()
        assert tries_s == pytest.approx([0, 1, 2])
        assert caplog.text.count(f"the work on timers failed, and is tried again: {error}") == 2

    play(scenario)


# The records that are needed.


def test_the_log_is_kept_from_the_first_message_that_waits_or_was_not_read() -> None:
    async def scenario(site: Site) -> None:
        site.send(1)
        site.send(9)
        running = asyncio.create_task(site.timers.run(("127.0.0.1", 1), lambda: None))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        needed = site.store.readers[LOG_READER]
        await asyncio.sleep(0.1)
        assert needed() == 0
        site.store.clock_ms += 1000
        await asyncio.sleep(3)
        assert (site.delivered, needed()) == (1, 1000)
        recalled = await site.timers.recall(HANDLE, None)
        assert needed() == recalled.commit_offset, "the recall was not read yet"
        await asyncio.sleep(3)
        assert needed() is None
        end = site.store.next_commit_offset
        site.send(90)
        assert needed() == end, "a message that was not read yet"
        running.cancel()
        await asyncio.wait([running])
        assert site.store.readers[LOG_READER] != needed

    play(scenario)


def test_a_broker_that_does_not_deliver_keeps_what_the_last_durable_point_needs() -> None:
    async def scenario(site: Site) -> None:
        site.timers.follow()
        needed = site.store.readers[LOG_READER]
        for _ in range(3):
            site.send()
        assert needed() is None
        site.store.add(timed_messages.point(Point(1, 3, 0, 0), 0, ("10.0.0.1", 1)))
        assert needed() == 1000
        site.store.add(timed_messages.point(Point(2, 3, 0, 0), 0, ("10.0.0.1", 1)))
        assert needed() == 2000

    play(scenario)


def test_the_last_durable_point_counts_and_only_records_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(site: Site) -> None:
        site.timers.follow()
        needed = site.store.readers[LOG_READER]
        for _ in range(3):
            site.send()
        for first in (1, 2):
            site.store.add(timed_messages.point(Point(first, 3, 0, 0), 0, ("10.0.0.1", 1)))
        for flushed, expected in ((3000, None), (3001, 1000), (4000, 1000), (4001, 2000)):
            monkeypatch.setattr(MemoryStore, "log_flushed", flushed)
            assert needed() == expected
        begins = {(TIMER_TOPIC, 0): 2}
        monkeypatch.setattr(MemoryStore, "log_flushed", 4000)
        monkeypatch.setattr(site.store, "min_offset", lambda *queue: begins.get(queue, 0))
        assert needed() == 2000, "the record at 1000 is deleted"

    play(scenario)

"""Tests each work on transactions step by step: ends, checks, discards, operations, also those that fail.

Source: docs/reference/protocol/transactions.md. The store is in memory, and the test sets its answers.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
from msgspec.structs import replace

from mqproof.impl.broker import half_messages
from mqproof.impl.broker.half_messages import DISCARD_TOPIC, HALF_TOPIC, OPERATION_TOPIC, PROGRESS_GROUP
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.open_transactions import End, HalfMessage
from mqproof.impl.broker.transactions import Transactions, is_due
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.base import Store
from mqproof.impl.store.results import PutResult, PutStatus
from mqproof.spec.events import Kind
from tests.impl.broker.memory_store import Events, MemoryStore

TIMEOUT_MS = 6000
HOST = Address("10.0.0.9", 7)


class Site:
    """Transactions whose work does not run by itself."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.store, self.events = MemoryStore(), Events()
        self.offsets = OffsetTable("/offsets", simulated(loop, SimulatedNetwork()))
        self.asked: list[StoredMessage] = []
        self.restart()

    def restart(self) -> None:
        self.work = Transactions(cast("Store", self.store), cast("EventLog", self.events))

    async def read(self) -> None:
        """Read the state, as at a start."""
        await self.work._read(self.offsets)
        self.work._is_ready = True

    def send(self, key: str = "K", **properties: str) -> StoredMessage:
        """Store a half message, and return it."""
        names = {"TRAN_MSG": "true", "PGROUP": "PG", "UNIQ_KEY": key, **properties}
        self.store.add(half_messages.half(Message("T", key.encode(), names)))
        return self.store.messages(HALF_TOPIC)[-1]

    def note(self, key: str, **properties: str) -> StoredMessage:
        """Store a half message, and note it as a send does. Return it as it is in the log."""
        names = {"TRAN_MSG": "true", "PGROUP": "PG", "UNIQ_KEY": key, **properties}
        message = half_messages.half(Message("T", key.encode(), names))
        self.work.note_half(message, self.store.add(message))
        self.events.kept.clear()
        return self.store.messages(HALF_TOPIC)[-1]

    def end(self, half: StoredMessage, how: End = End.COMMIT) -> list[tuple[PutStatus | None, str]]:
        found: list[tuple[PutStatus | None, str]] = []
        self.work.end(half, how, lambda *result: found.append(result))
        return found

    async def check(self, checks_max: int = 2) -> None:
        async def discard() -> None:
            pass

        await self.work._check_all(TIMEOUT_MS, checks_max, self.asked.append, discard)

    async def write(self) -> None:
        await self.work._write_and_advance(self.offsets)

    def progress(self) -> tuple[int | None, int | None]:
        half, operation = (
            self.offsets.query(PROGRESS_GROUP, topic, 0) for topic in (HALF_TOPIC, OPERATION_TOPIC)
        )
        return half, operation

    def is_operation_due(self) -> bool:
        return self.work._operation_due._is_set

    def bodies(self, topic: str = "T") -> list[str]:
        return [stored.message.body.decode() for stored in self.store.messages(topic)]

    def open(self) -> list[str]:
        halves = self.work._table.open_halves()
        found = [self.work.half_at(half.commit_offset) for half in halves]
        return [stored.message.body.decode() for stored in found if stored is not None]


def play(scenario: Callable[[Site], Awaitable[None]]) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        await scenario(Site(loop))

    run_simulated(main(), loop)


def half_message(times: int, immunity_ms: int | None) -> HalfMessage:
    return HalfMessage(0, 0, 0, times, stored_ms=1000, immunity_ms=immunity_ms)


@pytest.mark.parametrize(
    ("times", "immunity_ms", "age_ms", "expected"),
    [
        (0, None, 5999, False),
        (0, None, 6000, True),
        (1, None, 0, True),
        (0, 7000, 6999, False),
        (0, 7000, 7000, True),
        (0, 0, 0, True),
        (0, 90_000, 49_999, False),
        (0, 90_000, 50_000, True),
        (1, 90_000, 0, True),
    ],
)
def test_a_half_message_is_checked_after_its_immunity_and_a_copy_at_once(
    times: int, immunity_ms: int | None, age_ms: int, expected: bool
) -> None:
    """The longest immunity is 50 s here: the record of the message must not expire before it is checked."""
    assert is_due(half_message(times, immunity_ms), 1000 + age_ms, TIMEOUT_MS, 50_000) is expected


# Ends.


def test_a_broker_that_has_not_read_its_transactions_ends_none() -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        with pytest.raises(RefusedError) as refused:
            site.end(half)
        assert refused.value.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert site.work.open_count == 1
        await site.read()
        assert site.end(half) == [(PutStatus.PUT_OK, "")]
        assert (site.bodies(), site.events.kept) == (["K"], [(Kind.COMMIT, {"msg_id": "K", "topic": "T"})])

    play(scenario)


@pytest.mark.parametrize("first", [End.COMMIT, End.ROLLBACK])
def test_the_same_end_is_answered_again_and_another_one_is_refused(first: End) -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.end(half, first)
        events = list(site.events.kept)
        assert site.end(half, first) == [(None, "")]
        other = End.ROLLBACK if first is End.COMMIT else End.COMMIT
        with pytest.raises(RefusedError, match="the transaction has ended already") as refused:
            site.end(half, other)
        assert refused.value.code == ResponseCode.SYSTEM_ERROR
        assert site.bodies() == ["K"] * (first is End.COMMIT)
        assert site.events.kept == events

    play(scenario)


@pytest.mark.parametrize(
    ("status", "is_open"),
    [
        (PutStatus.FLUSH_DISK_TIMEOUT, False),
        (PutStatus.UNKNOWN_ERROR, False),
        (PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH, False),
        (PutStatus.SERVICE_NOT_AVAILABLE, True),
        (PutStatus.MESSAGE_ILLEGAL, True),
    ],
)
def test_a_commit_that_is_perhaps_stored_has_ended_and_one_that_is_not_is_open(
    status: PutStatus, is_open: bool
) -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.store.answers.append(status)
        ((answered, _),) = site.end(half)
        assert answered is status
        assert site.open() == ["K"] * is_open
        assert site.work._table.awaiting_count == (not is_open)

    play(scenario)


def test_a_commit_without_a_real_queue_is_refused_and_leaves_the_transaction_open() -> None:
    async def scenario(site: Site) -> None:
        site.store.add(Message(HALF_TOPIC, b"K", {"REAL_QID": "0"}))
        await site.read()
        with pytest.raises(RefusedError) as refused:
            site.end(site.store.messages(HALF_TOPIC)[0])
        assert refused.value.code == ResponseCode.MESSAGE_ILLEGAL
        assert site.open() == ["K"]

    play(scenario)


def test_a_commit_that_the_store_refuses_is_no_event() -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.store.writable = False
        site.store.answers.append(PutStatus.SERVICE_NOT_AVAILABLE)
        site.end(half)
        assert site.events.kept == []

    play(scenario)


@pytest.mark.parametrize(("ends", "is_due"), [(511, False), (512, True)])
def test_512_ends_are_recorded_before_the_next_interval(ends: int, is_due: bool) -> None:
    """512 ends have the 4096 bytes of one operation, if each has 8."""

    async def scenario(site: Site) -> None:
        for original in range(ends):
            site.work._ended(site.work._table, original, End.COMMIT)
        assert site.is_operation_due() is is_due

    play(scenario)


def test_an_operation_has_at_most_4096_bytes() -> None:
    """The estimate of an end with two numbers of three digits is eight bytes."""

    async def scenario(site: Site) -> None:
        await site.read()
        for original in range(100, 613):
            site.work._table.add(half_message(0, None)._replace(original=original, place=original))
            site.work._table.end(original, End.ROLLBACK, 0)
        for _ in range(2):
            await site.work._write_operation()
        assert [len(body.split(",")) for body in site.bodies(OPERATION_TOPIC)] == [512, 1]

    play(scenario)


def test_ends_that_were_recorded_early_are_not_recorded_again() -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.end(half, End.ROLLBACK)
        site.work._operation_due.set()
        await site.write()
        assert (site.is_operation_due(), site.progress()[0]) == (False, 1)

    play(scenario)


def test_a_rollback_is_answered_without_a_status_and_logged_as_an_event() -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        assert site.end(half, End.ROLLBACK) == [(None, "")]
        assert (site.bodies(), site.open()) == ([], [])
        assert site.events.kept == [(Kind.ROLLBACK, {"msg_id": "K", "topic": "T"})]

    play(scenario)


def test_a_transaction_does_not_end_twice_while_its_commit_is_being_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        pending: list[tuple[Message, Callable[[list[PutResult]], None]]] = []

        def put_soon(messages: list[Message], done: Callable[[list[PutResult]], None]) -> None:
            pending.extend((message, done) for message in messages)

        monkeypatch.setattr(site.store, "put_soon", put_soon)
        found: list[tuple[PutStatus | None, str]] = []
        site.work.end(half, End.COMMIT, lambda *result: found.append(result))
        for how in (End.COMMIT, End.ROLLBACK):
            with pytest.raises(RefusedError, match="the transaction is ending already"):
                site.end(half, how)
        assert site.work._table.scan_from([], 9000) == 1000, "its record may be at 1000 or later"
        ((message, done),) = pending
        done([site.store.add(message)])
        assert (found, site.open()) == ([(PutStatus.PUT_OK, "")], [])

    play(scenario)


def test_a_transaction_that_was_just_stored_can_end() -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        assert site.end(site.send()) == [(PutStatus.PUT_OK, "")]

    play(scenario)


def test_the_storing_of_a_half_message_is_an_event() -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        site.work.note_half(half.message, PutResult(PutStatus.PUT_OK, 0, 0))
        assert site.events.kept == [(Kind.HALF, {"msg_id": "K", "topic": "T"})]

    play(scenario)


# Half messages that are kept in memory.


@pytest.mark.parametrize("how", [End.COMMIT, End.ROLLBACK])
def test_a_transaction_that_was_noted_ends_without_a_read_of_its_record(how: End) -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        half = site.note("K")
        site.store.lost.add(half.commit_offset)
        assert site.work.half_at(half.commit_offset) == dataclasses.replace(half, body_crc=0)
        assert site.work._table.find(0) == HalfMessage(0, 0, 0, 0, half.store_timestamp_ms, None)
        found = site.end(half, how)
        assert found == [(PutStatus.PUT_OK if how is End.COMMIT else None, "")]
        assert site.bodies() == (["K"] if how is End.COMMIT else [])
        assert site.work.half_at(half.commit_offset) is None, "it is forgotten with its end"

    play(scenario)


def test_a_commit_of_a_kept_half_message_stores_the_same_message_as_one_that_is_read() -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        properties = {"KEYS": "a b", "TAGS": "t", "CHECK_IMMUNITY_TIME_IN_SECONDS": "9"}
        kept, read = site.note("K", **properties), site.send("K", **properties)
        for half in (kept, read):
            found = site.work.half_at(half.commit_offset)
            assert found is not None
            assert site.end(found) == [(PutStatus.PUT_OK, "")]
        first, second = (stored.message for stored in site.store.messages("T"))
        assert replace(second, prepared_transaction_offset=first.prepared_transaction_offset) == first

    play(scenario)


def test_a_half_message_that_could_not_be_committed_is_still_kept() -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        half = site.note("K")
        site.store.lost.add(half.commit_offset)
        site.store.answers = [PutStatus.SERVICE_NOT_AVAILABLE]
        site.end(half)
        assert site.open() == ["K"]

    play(scenario)


def test_a_half_message_is_read_if_one_before_it_was_not_noted_or_none_is_readable_yet() -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        site.send("first")
        second = site.note("second")
        assert (site.work._table.read_end, site.work.open_count) == (0, 2)
        site.end(second)
        assert (site.work._table.read_end, site.open()) == (2, ["first"])
        site.store.unreadable_from = site.store.next_commit_offset
        site.note("third")
        assert (site.work._table.read_end, site.open()) == (2, ["first"])

    play(scenario)


def test_a_checked_half_message_and_those_of_an_earlier_leadership_are_not_kept() -> None:
    async def scenario(site: Site) -> None:
        site.note("before the start")
        assert len(site.work._kept) == 0
        await site.read()
        site.note("K")
        site.store.clock_ms += TIMEOUT_MS
        assert len(site.work._kept) == 1
        await site.check()
        assert len(site.work._kept) == 0
        site.note("K")
        await site.read()
        assert len(site.work._kept) == 0

    play(scenario)


# Running.


@asynccontextmanager
async def running(site: Site, discards: list[float]) -> AsyncIterator[None]:
    """Run the work of a master: checks each 30 s after 5 s, two of them, and operations each 3 s."""

    async def discard() -> None:
        discards.append(round(asyncio.get_running_loop().time(), 1))

    task = asyncio.create_task(
        site.work.run(
            HOST, site.offsets, site.asked.append, discard,
            check_interval_ms=lambda: 30_000, timeout_ms=lambda: 5000, checks_max=lambda: 2,
            operation_interval_ms=3000,
        )
    )  # fmt: skip
    await asyncio.sleep(0.1)
    yield
    task.cancel()
    await asyncio.wait([task])


def test_a_half_message_is_checked_in_each_round_then_discarded() -> None:
    async def scenario(site: Site) -> None:
        discards, counts = list[float](), []
        site.send()
        async with running(site, discards):
            site.store.clock_ms += 5000
            for until_s in (29.99, 30.01, 59.98, 60.02, 89.9):
                await asyncio.sleep(until_s - asyncio.get_running_loop().time())
                counts.append(len(site.asked))
            assert (counts, discards) == ([0, 1, 1, 2, 2], [])
            await asyncio.sleep(0.2)
        assert (len(site.asked), discards, site.bodies(DISCARD_TOPIC)) == (2, [90], ["K"])
        copies = site.store.messages(HALF_TOPIC)[1:]
        assert [copy.message.store_host for copy in copies] == [HOST] * 2

    play(scenario)


def test_a_younger_half_message_is_not_checked() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        async with running(site, []):
            site.store.clock_ms += 4999
            await asyncio.sleep(31)
        assert site.asked == []

    play(scenario)


def test_ends_are_recorded_every_three_seconds_while_the_work_runs() -> None:
    async def scenario(site: Site) -> None:
        half, other = site.send(), site.send("other")
        counts = []
        async with running(site, []):
            site.end(half, End.ROLLBACK)
            for until_s in (2.999, 3.001):
                await asyncio.sleep(until_s - asyncio.get_running_loop().time())
                counts.append(len(site.bodies(OPERATION_TOPIC)))
        assert counts == [0, 1]
        with pytest.raises(RefusedError, match="the broker is reading its transactions"):
            site.end(other)

    play(scenario)


def test_the_progress_of_a_master_that_has_just_started_is_stored_without_a_new_record() -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.end(half)
        await site.work._write_operation()
        site.restart()
        await site.read()
        await site.work._advance(site.offsets)
        assert site.progress() == (1, 1)

    play(scenario)


# Checks.


def test_a_half_message_that_was_just_stored_is_checked() -> None:
    async def scenario(site: Site) -> None:
        await site.read()
        site.send()
        site.store.clock_ms += TIMEOUT_MS
        await site.check()
        assert len(site.asked) == 1

    play(scenario)


@pytest.mark.parametrize(("age_ms", "checks"), [(4999, 0), (5000, 1)])
def test_a_half_message_is_checked_after_half_the_time_for_which_records_are_kept(
    age_ms: int, checks: int
) -> None:
    async def scenario(site: Site) -> None:
        site.store.config = dataclasses.replace(site.store.config, file_reserved_ms=10_000)
        site.send(CHECK_IMMUNITY_TIME_IN_SECONDS="100")
        await site.read()
        site.store.clock_ms += age_ms
        await site.check()
        assert len(site.asked) == checks

    play(scenario)


def test_a_half_message_that_is_not_due_does_not_stop_the_checks_of_others() -> None:
    async def scenario(site: Site) -> None:
        site.send("later", CHECK_IMMUNITY_TIME_IN_SECONDS="100")
        site.send("due")
        await site.read()
        site.store.clock_ms += TIMEOUT_MS
        await site.check()
        assert [stored.message.body for stored in site.asked] == [b"due"]

    play(scenario)


def test_a_transaction_that_ends_during_the_check_of_another_is_not_checked() -> None:
    async def scenario(site: Site) -> None:
        site.send("first")
        second = site.send("second")
        await site.read()
        site.store.clock_ms += TIMEOUT_MS

        async def discard() -> None:
            pass

        def ask(stored: StoredMessage) -> None:
            site.asked.append(stored)
            site.end(second, End.ROLLBACK)

        await site.work._check_all(TIMEOUT_MS, 2, ask, discard)
        assert site.bodies(HALF_TOPIC) == ["first", "second", "first"]
        assert len(site.asked) == 1

    play(scenario)


def test_a_transaction_that_ends_while_its_copy_is_stored_is_recorded_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.store.clock_ms += TIMEOUT_MS

        async def put(message: Message) -> PutResult:
            site.end(half, End.ROLLBACK)
            assert not site.work._table.awaits_operation
            return site.store.add(message)

        with monkeypatch.context() as change:
            change.setattr(site.store, "put", put)
            await site.check()
        assert (site.asked, site.work._table.awaits_operation) == ([], True)
        await site.write()
        assert site.bodies(OPERATION_TOPIC) == ["0,1"]

    play(scenario)


def test_a_copy_is_known_before_it_is_readable() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        site.store.clock_ms += TIMEOUT_MS
        site.store.unreadable_from = site.store.next_commit_offset
        await site.check()
        clock_ms = site.store.clock_ms
        assert site.work._table.find(0) == HalfMessage(0, 1, 1000, 1, clock_ms, None)
        (asked,) = site.asked
        assert asked == StoredMessage(asked.message, 1, 1000, clock_ms, 0, 0)

    play(scenario)


def test_a_transaction_cannot_end_while_it_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.store.clock_ms += TIMEOUT_MS

        async def put(message: Message) -> PutResult:
            with pytest.raises(RefusedError, match="is ending already"):
                site.end(half)
            return site.store.add(message)

        monkeypatch.setattr(site.store, "put", put)
        await site.check(checks_max=0)
        assert (site.bodies(DISCARD_TOPIC), site.bodies()) == (["K"], [])

    play(scenario)


def test_a_check_appends_a_copy_and_asks_with_its_place() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        site.store.clock_ms += TIMEOUT_MS - 1
        await site.check()
        assert (site.asked, site.events.kept) == ([], [])
        site.store.clock_ms += 1
        await site.check()
        (copy,) = site.asked
        assert (copy.queue_offset, copy.commit_offset) == (1, 1000)
        assert copy.store_timestamp_ms == site.store.clock_ms
        assert copy.message.properties[half_messages.CHECK_TIMES] == "1"
        assert site.events.kept == [(Kind.CHECK, {"msg_id": "K", "topic": "T"})]
        await site.check()
        assert [one.message.properties[half_messages.CHECK_TIMES] for one in site.asked] == ["1", "2"]

    play(scenario)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (PutStatus.SERVICE_NOT_AVAILABLE, "the check of half message 0 failed: no copy could be stored"),
        (None, "half message 0 does not exist any more"),
    ],
)
def test_a_check_that_fails_is_logged_and_does_not_stop_the_others(
    answer: PutStatus | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> None:
        for key in ("K0", "K1"):
            site.send(key)
        await site.read()
        site.store.clock_ms += TIMEOUT_MS
        if answer is None:
            site.store.lost.add(0)
        else:
            site.store.answers.append(answer)
        await site.check()
        assert [one.message.body for one in site.asked] == [b"K1"]
        assert words in caplog.text
        assert site.work.open_count == (1 if answer is None else 2)
        await site.check()
        assert len(site.asked) == (2 if answer is None else 3)

    play(scenario)


@pytest.mark.parametrize(
    ("status", "is_discarded", "is_retried"),
    [
        (PutStatus.PUT_OK, True, False),
        (PutStatus.UNKNOWN_ERROR, False, False),
        (PutStatus.SERVICE_NOT_AVAILABLE, False, True),
    ],
)
def test_a_half_message_is_discarded_after_the_last_check(
    status: PutStatus, is_discarded: bool, is_retried: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.store.clock_ms += TIMEOUT_MS
        for _ in range(2):
            await site.check()
        site.store.answers.append(status)
        await site.check()
        assert len(site.asked) == 2
        assert site.bodies(DISCARD_TOPIC) == ["K"] * is_discarded
        assert "half message 2 is not checked any more, after 2 checks" in caplog.text
        assert ("it could not be discarded: SERVICE_NOT_AVAILABLE" in caplog.text) is is_retried
        await site.check()
        assert site.bodies(DISCARD_TOPIC) == ["K"] * (is_discarded or is_retried)
        with pytest.raises(RefusedError, match="has ended already"):
            site.end(half)

    play(scenario)


# Operations, and what a start reads.


def test_a_start_reads_the_first_operation_also_without_a_stored_progress() -> None:
    """The progress is not stored while the first half message is open."""

    async def scenario(site: Site) -> None:
        site.send("open")
        for key in ("first", "second"):
            half = site.send(key)
            await site.read()
            site.end(half)
            await site.write()
        assert (site.bodies(OPERATION_TOPIC), site.progress()) == (["1", "2"], (None, None))
        site.restart()
        await site.read()
        assert site.open() == ["open"]

    play(scenario)


def test_a_start_reads_only_the_operations_that_the_progress_needs(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        for key in ("first", "second"):
            half = site.send(key)
            await site.read()
            site.end(half)
            await site.write()
        assert site.progress() == (2, 2)
        assert site.store.flushed == 2
        await site.write()
        assert site.store.flushed == 2, "the progress is the same"
        half = site.send("third")
        site.store.lost.add(site.store.messages(OPERATION_TOPIC)[0].commit_offset)
        site.restart()
        await site.read()
        assert site.open() == ["third"]
        assert caplog.text == "", "the first operation is not read"
        site.end(half, End.ROLLBACK)
        await site.write()
        assert site.progress() == (3, 3)

    play(scenario)


def test_a_start_reads_32_records_before_other_coroutines_run() -> None:
    async def scenario(site: Site) -> None:
        read, scanned = 0, 0

        def records_from(commit_offset: int) -> Iterator[StoredMessage]:
            nonlocal scanned
            for stored in MemoryStore.records_from(site.store, commit_offset):
                scanned += 1
                yield stored

        def commit_offset_at(topic: str, queue_id: int, offset: int) -> int | None:
            nonlocal read
            read += topic == OPERATION_TOPIC
            return MemoryStore.commit_offset_at(site.store, topic, queue_id, offset)

        for number in range(34):
            site.send(f"K{number}")
        for place in range(33):
            site.store.add(half_messages.operation([place], 33_000, 0, ("10.0.0.1", 1)))
        site.store.records_from = records_from  # type: ignore[method-assign]
        site.store.commit_offset_at = commit_offset_at  # type: ignore[method-assign]
        reading = asyncio.create_task(site.read())
        seen = []
        while not reading.done():
            await asyncio.sleep(0)
            seen.append((site.work._table.read_end, read, scanned))
        assert seen == [
            *((32, 0, 0), (34, 0, 0)),  # the half messages
            *((34, 1, 0), (34, 33, 0)),  # the operations
            *((34, 33, 1), (34, 33, 33), (34, 33, 34)),  # the log
        ]
        assert site.open() == ["K33"]

    play(scenario)


@pytest.mark.parametrize(
    "error", [OSError("disk"), ValueError("number"), RefusedError(ResponseCode.SYSTEM_BUSY, "full")]
)
def test_work_that_fails_is_logged_and_tried_again_each_second(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: Site) -> None:
        tries_s = []

        async def work() -> None:
            tries_s.append(asyncio.get_running_loop().time())
            if len(tries_s) < 3:
                raise error

        await site.work._retried(work)
        assert tries_s == pytest.approx([0, 1, 2])
        assert caplog.text.count(f"the work on transactions failed, and is tried again: {error}") == 2

    play(scenario)


def test_a_start_reads_no_half_message_that_was_deleted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(site: Site) -> None:
        for key in ("deleted", "open"):
            site.send(key)
        site.store.lost.add(0)
        begins = {(HALF_TOPIC, 0): 1}
        monkeypatch.setattr(site.store, "min_offset", lambda *queue: begins.get(queue, 0))
        await site.read()
        assert (site.open(), caplog.text) == (["open"], "")

    play(scenario)


def test_a_start_reads_no_operation_that_was_deleted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(site: Site) -> None:
        site.send()
        for _ in range(2):
            site.store.add(half_messages.operation([0], 0, 0, HOST))
        site.store.lost.add(1000)
        begins = {(OPERATION_TOPIC, 0): 1}
        monkeypatch.setattr(site.store, "min_offset", lambda *queue: begins.get(queue, 0))
        await site.read()
        assert (site.open(), caplog.text) == ([], "")

    play(scenario)


@pytest.mark.parametrize("operations", [[], [Message(OPERATION_TOPIC, b"9", {"TAGS": "d"})]])
def test_without_a_position_in_an_operation_the_log_is_scanned_from_the_first_open_half_message(
    operations: list[Message],
) -> None:
    """Operations of released brokers have no position."""

    async def scenario(site: Site) -> None:
        site.send()
        for operation in operations:
            site.store.add(operation)
        await site.read()
        assert (site.store.scanned, site.open()) == ([0], ["K"])

    play(scenario)


@pytest.mark.parametrize(("body", "needed"), [(b"1", (0, 0)), (b"x", (0, 1))])
def test_an_operation_that_is_read_is_needed_until_the_progress_is_beyond_its_places(
    body: bytes, needed: tuple[int, int]
) -> None:
    async def scenario(site: Site) -> None:
        for key in ("open", "done"):
            site.send(key)
        site.store.add(Message(OPERATION_TOPIC, body, {"TAGS": "d"}))
        await site.read()
        assert site.work._table.progress(1) == needed

    play(scenario)


def test_an_operation_that_names_only_a_copy_ends_its_transaction() -> None:
    async def scenario(site: Site) -> None:
        site.send()
        await site.read()
        site.store.clock_ms += TIMEOUT_MS
        await site.check()
        site.store.add(half_messages.operation([1], 0, 0, HOST))
        site.restart()
        await site.read()
        assert (site.open(), site.work.open_count) == ([], 0)

    play(scenario)


def test_only_a_record_of_the_half_topic_is_a_half_message() -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.end(half)
        (final,) = site.store.messages("T")
        assert site.work.half_at(half.commit_offset) == half
        assert site.work.half_at(final.commit_offset) is None
        assert site.work.half_at(final.commit_offset, "T") == final

    play(scenario)


def test_a_start_scans_the_log_from_where_the_last_operation_says() -> None:
    async def scenario(site: Site) -> None:
        first = site.send("first")
        site.send("open")
        await site.read()
        site.end(first)
        await site.write()
        assert site.progress() == (1, 1)
        (operation,) = site.store.messages(OPERATION_TOPIC)
        site.restart()
        await site.read()
        assert site.store.scanned[-1] == operation.commit_offset > 1000

    play(scenario)


def test_a_final_without_an_operation_ends_its_transaction_and_that_of_another_queue_does_not() -> None:
    async def scenario(site: Site) -> None:
        committed, other = site.send("committed"), site.send("open")
        discarded = site.send("discarded")
        await site.read()
        site.end(committed)
        final = half_messages.final(other, ("10.0.0.1", 1))
        site.store.add(replace(final, properties={"UNIQ_KEY": "another one"}))
        site.store.add(half_messages.discarded(discarded, ("10.0.0.1", 1)))
        site.store.add(Message("T", b"", {}, sys_flag=8, prepared_transaction_offset=999_000))
        site.restart()
        await site.read()
        assert site.open() == ["open"]
        assert site.work._table.known_end(0) is End.COMMIT
        assert site.work._table.known_end(2) is End.DISCARD
        assert site.work._table.scan_from([], 99_000) == 3000, "where the first of these ends is"

    play(scenario)


def test_a_progress_beyond_the_half_queue_begins_again() -> None:
    async def scenario(site: Site) -> None:
        site.send("first")
        site.offsets.commit(PROGRESS_GROUP, HALF_TOPIC, 0, 1)
        await site.read()
        assert (site.open(), site.progress()) == ([], (1, None)), "as many as the queue has"
        site.offsets.commit(PROGRESS_GROUP, HALF_TOPIC, 0, 2)
        site.restart()
        await site.read()
        assert (site.open(), site.progress()) == (["first"], (0, 0))

    play(scenario)


def test_the_progress_is_stored_only_after_a_confirmed_record_and_a_flush() -> None:
    async def scenario(site: Site) -> None:
        first, second = site.send("first"), site.send("second")
        await site.read()
        site.end(first)
        site.store.answers.append(PutStatus.FLUSH_SLAVE_TIMEOUT)
        await site.write()
        assert (site.progress(), site.store.flushed) == ((None, None), 0)
        site.end(second)
        site.store.failure = "the disk failed"
        with pytest.raises(OSError, match="the disk failed"):
            await site.write()
        assert site.progress() == (None, None)
        site.store.failure = ""
        await site.write()
        assert site.progress() == (2, 2)

    play(scenario)


def test_operations_that_could_not_be_stored_are_written_the_next_time() -> None:
    async def scenario(site: Site) -> None:
        half = site.send()
        await site.read()
        site.end(half, End.ROLLBACK)
        site.store.answers.append(PutStatus.SERVICE_NOT_AVAILABLE)
        with pytest.raises(OSError, match="operations could not be stored: SERVICE_NOT_AVAILABLE as the"):
            await site.write()
        await site.write()
        assert (site.bodies(OPERATION_TOPIC), site.progress()) == (["0"], (1, 1))
        assert site.events.kept == [(Kind.ROLLBACK, {"msg_id": "K", "topic": "T"})]

    play(scenario)

"""Tests the store of a member: puts, reads, refusals and recovery. A group of one commits by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec
import pytest

from mqproof.impl.dledger import ledger_store
from mqproof.impl.dledger.changes import Committed, Reason, SteppedDown
from mqproof.impl.dledger.codes import ResponseCode
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.entry_format import HEADER_BYTES
from mqproof.impl.dledger.ledger_log import LedgerLog, stored_in
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.dledger.rpc_bodies import NO_OP, NORMAL, Entry
from mqproof.impl.dledger.state import Role
from mqproof.impl.remoting.message import SYS_TRANSACTION_PREPARED, Message
from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.segments import SegmentedFile
from mqproof.impl.store.results import PutResult, PutStatus, Recovery
from mqproof.spec.events import Event, Kind

T = TypeVar("T")

CONFIG = StoreConfig(
    commit_log_segment_bytes=2048,
    consume_queue_segment_bytes=200,
    index_slots=10,
    index_entries=100,
    message_bytes_max=500,
)
HERE = {"n0": Address("10.0.0.1", 40_911)}


def _message(body: str, topic: str = "T", **properties: str) -> Message:
    return Message(topic, body.encode(), properties)


class Site:
    """One member across many restarts, the only one of its group unless `members` says otherwise."""

    def __init__(self, loop: SimulatedLoop, members: tuple[str, ...]) -> None:
        self.disk = SimulatedDisk()
        self.runtime = simulated(loop, SimulatedNetwork(), 1, self.disk)
        self.members = members
        self.events: list[Event] = []

    async def start(self) -> LedgerStore:
        group = GroupConfig("g", "n0", self.members)
        events = EventLog(self.events.append, "n0", self.runtime.clock, len(self.events))
        store = LedgerStore("/store", CONFIG, group, HERE, self.runtime, events)
        store.load()
        await store.start()
        return store

    async def leading(self) -> LedgerStore:
        store = await self.start()
        async with asyncio.timeout(60):
            while not store.leads:
                await asyncio.sleep(0.1)
        return store


def play(scenario: Callable[[Site], Awaitable[T]], members: tuple[str, ...] = ("n0",)) -> T:
    loop = SimulatedLoop()

    async def main() -> T:
        async with asyncio.timeout(600):
            return await scenario(Site(loop, members))

    return run_simulated(main(), loop)


def bodies(store: LedgerStore, queue_id: int = 0) -> list[str]:
    found: list[str] = []
    while records := store.get("T", queue_id, len(found)).records:
        found += [record.decode(data).message.body.decode() for data in records]
    return found


def test_stored_messages_are_read_across_segments_and_restarts() -> None:
    async def scenario(site: Site) -> tuple[list[str], list[str], list[int]]:
        store = await site.leading()
        results = [await store.put(_message(f"m{number}" * 30)) for number in range(40)]
        before = bodies(store)
        scanned = [stored.message.body.decode() for _, stored in store._ledger_log.scan(0) if stored]
        assert scanned == before
        await store.stop()
        again = await site.leading()
        results.append(await again.put(_message("after")))
        after = bodies(again)
        await again.stop()
        assert {result.status for result in results} == {PutStatus.PUT_OK}
        return before, after, [result.queue_offset for result in results]

    before, after, offsets = play(scenario)
    assert before == [f"m{number}" * 30 for number in range(40)]
    assert after == [*before, "after"]
    assert offsets == list(range(41))


def test_a_batch_is_stored_whole_and_answered_together() -> None:
    async def scenario(site: Site) -> tuple[list[int], list[str]]:
        store = await site.leading()
        results = await store.put_batch([_message(f"m{number}" * 50) for number in range(50)])
        seen = bodies(store)
        await store.stop()
        return [result.queue_offset for result in results], seen

    offsets, seen = play(scenario)
    assert offsets == list(range(50))
    assert seen == [f"m{number}" * 50 for number in range(50)]


def test_a_message_too_large_for_a_segment_is_refused_and_takes_no_offset() -> None:
    async def scenario(site: Site) -> tuple[PutStatus, int]:
        store = await site.leading()
        refused = await store.put(_message("x" * 501))
        stored = await store.put(_message("fits"))
        await store.stop()
        return refused.status, stored.queue_offset

    assert play(scenario) == (PutStatus.MESSAGE_ILLEGAL, 0)


def test_a_member_that_is_not_the_leader_refuses_messages_and_stores_nothing() -> None:
    async def scenario(site: Site) -> tuple[PutStatus, str, int]:
        store = await site.start()
        result = await store.put(_message("x"))
        end = store.node.ledger.end_index
        await store.stop()
        return result.status, result.reason, end

    status, reason, end = play(scenario, members=("n0", "n1", "n2"))
    assert status is PutStatus.SERVICE_NOT_AVAILABLE
    assert "does not lead" in reason
    assert end == -1


def test_a_killed_member_restores_the_missing_queue_entries() -> None:
    async def scenario(site: Site) -> list[str]:
        store = await site.leading()
        for number in range(10):
            await store.put(_message(f"m{number}"))
        store.kill()
        site.disk.lose_power()  # the queues were never synced; the ledger was synced before each answer
        again = await site.leading()
        seen = bodies(again)
        await again.stop()
        return seen

    assert play(scenario) == [f"m{number}" for number in range(10)]


def test_an_uncommitted_entry_is_not_visible() -> None:
    async def scenario(site: Site) -> tuple[list[str], PutStatus, list[str]]:
        store = await site.leading()
        await store.put(_message("first"))
        put = asyncio.create_task(store.put(_message("second")))
        await asyncio.sleep(0)  # it is written, and its sync has not ended
        written = store.node.ledger.end_index
        during = bodies(store)
        assert written == 2  # a no-op, and two messages
        result = await put
        seen = bodies(store)
        await store.stop()
        return during, result.status, seen

    during, status, seen = play(scenario)
    assert during == ["first"]
    assert status is PutStatus.PUT_OK
    assert seen == ["first", "second"]


def test_messages_accepted_during_a_sync_become_visible_only_with_their_own_sync() -> None:
    async def scenario(site: Site) -> list[str]:
        store = await site.leading()
        seen: list[list[str]] = []

        def while_it_syncs(_: object) -> None:
            site.disk.on_step = None
            store.put_soon([_message("second")], lambda _results: None)

        store.put_soon([_message("first")], lambda _results: seen.append(bodies(store)))
        site.disk.on_step = while_it_syncs
        async with asyncio.timeout(60):
            while len(bodies(store)) < 2:
                await asyncio.sleep(0.1)
        await store.stop()
        return seen[0]

    assert play(scenario) == ["first"]


def test_entries_found_at_a_start_are_not_visible_before_a_leader_commits_them() -> None:
    async def scenario(site: Site) -> tuple[int, list[str]]:
        store = await site.leading()
        await store.put(_message("first"))
        store.put_soon([_message("second")], lambda _results: None)
        store.kill()
        site.disk.crash_process()  # the page cache stays, with "second" in it
        site.members = ("n0", "n1", "n2")  # no other member runs, so there is no leader
        again = await site.start()
        end, seen = again.node.ledger.end_index, bodies(again)
        await again.stop()
        return end, seen

    assert play(scenario) == (2, ["first"])


def test_offsets_of_messages_that_a_new_leader_cut_are_used_again() -> None:
    async def scenario(site: Site) -> int:
        store = await site.leading()
        await store.put(_message("first"))
        store._queue_offsets["T", 0] = (
            9  # as if more messages had been accepted that no other leader received
        )
        store.changed(SteppedDown(2, Reason.NO_QUORUM))
        assert (await store.put(_message("x"))).status is PutStatus.SERVICE_NOT_AVAILABLE
        store.changed(Committed(store.node.member.core.state.commit))
        result = await store.put(_message("second"))
        await store.stop()
        return result.queue_offset

    assert play(scenario) == 1


def test_a_member_elected_while_it_dispatches_serves_only_after_its_own_first_entry_is_committed() -> None:
    """The entries in between may become committed, and then have the next queue offsets."""

    async def scenario(site: Site) -> tuple[bool, bool]:
        store = await site.leading()
        await store.put(_message("first"))
        state = store.node.member.core.state
        store.changed(SteppedDown(state.term + 1, Reason.NO_QUORUM))
        state.term += 1  # elected again, and its no-op is not committed yet
        store.changed(Committed(state.commit))
        early = store.leads
        state.append(NO_OP, b"")
        state.commit_to(state.terms.end)
        for change in state.changes:
            store.node.member.carry_out(change)
        state.changes.clear()
        late = store.leads
        await store.stop()
        return early, late

    assert play(scenario) == (False, True)


def test_a_leader_accepts_nothing_while_its_vote_is_being_synced() -> None:
    """A group of one elects itself: the vote is written first, then its no-op."""

    async def scenario(site: Site) -> tuple[ResponseCode, list[int]]:
        store = await site.start()
        core = store.node.member.core
        async with asyncio.timeout(60):
            while core.state.role is not Role.LEADER:
                await asyncio.sleep(0.0001)
        assert store.node.ledger.end_index == -1, "the vote is not durable yet"
        code, _ = store.node.take([b"too early"], lambda _: None)
        while not store.leads:
            await asyncio.sleep(0.1)
        magics = [store.node.ledger.read(n).magic for n in range(store.node.ledger.end_index + 1)]
        await store.stop()
        return code, magics

    assert play(scenario) == (ResponseCode.LEADER_NOT_READY, [NO_OP])


def test_after_a_restart_queue_offsets_continue() -> None:
    async def scenario(site: Site) -> list[int | None]:
        store = await site.leading()
        for number in range(5):
            await store.put(_message(f"m{number}"))
        await store.stop()
        again = await site.leading()
        await again.put(_message("after"))
        await again.stop()
        return [event.queue_offset for event in site.events if event.kind is Kind.APPEND]

    assert play(scenario) == list(range(6))


def test_flushing_waits_until_the_ledger_is_durable() -> None:
    async def scenario(site: Site) -> tuple[int, int]:
        store = await site.leading()
        store.put_soon([_message("x")], lambda _results: None)
        end = store.node.ledger.end_index
        assert store.node.member.core.state.durable < end
        await store.flush_log()
        durable = store.node.member.core.state.durable
        await store.stop()
        return durable, end

    durable, end = play(scenario)
    assert durable >= end


def test_an_entry_that_is_not_a_message_is_skipped() -> None:
    async def scenario(site: Site) -> list[str]:
        store = await site.leading()
        await store.put(_message("first"))
        settled = asyncio.Event()
        code, _ = store.node.take([b"no record"], lambda _: settled.set())
        assert code is ResponseCode.SUCCESS
        await settled.wait()
        await store.put(_message("second"))
        await store.stop()
        again = await site.leading()
        seen = bodies(again)
        await again.stop()
        return seen

    assert play(scenario) == ["first", "second"]


def test_messages_are_found_by_key_and_by_position() -> None:
    async def scenario(site: Site) -> tuple[list[bytes], bytes | None, bytes | None]:
        store = await site.leading()
        result = await store.put(_message("hello", KEYS="k"))
        found = store.find("T", "k", 10, 0, store.now_ms() + 1)
        there = store.record_at(result.commit_offset)
        beside = store.record_at(result.commit_offset - 48)
        await store.stop()
        return found, there, beside

    found, there, beside = play(scenario)
    assert found == [there]
    assert beside is None


def test_a_failed_sync_ends_the_member_and_is_not_answered_with_ok() -> None:
    async def scenario(site: Site) -> tuple[PutStatus, str, bool]:
        store = await site.leading()

        def fail(_: object) -> None:
            raise OSError("the disk is broken")

        put = asyncio.create_task(store.put(_message("x")))
        await asyncio.sleep(0)
        site.disk.on_step = fail
        result = await put
        site.disk.on_step = None
        await store.stop()
        return result.status, store.failure, store.leads

    status, failure, leads = play(scenario)
    assert status is PutStatus.UNKNOWN_ERROR
    assert "the disk is broken" in failure
    assert not leads


def test_a_failing_disk_at_the_stop_leaves_the_abort_file() -> None:
    async def scenario(site: Site) -> tuple[str, bool]:
        store = await site.leading()
        await store.put(_message("x"))

        def fail(step: Step) -> None:
            if "dledger-n0/index/" in step.path:
                raise OSError("the disk is broken")

        site.disk.on_step = fail
        await store.stop()
        site.disk.on_step = None
        return store.failure, site.disk.exists("/store/abort")

    failure, abort = play(scenario)
    assert "the disk is broken" in failure
    assert abort


def test_offsets_of_a_deleted_topic_continue() -> None:
    async def scenario(site: Site) -> int:
        store = await site.leading()
        await store.put(_message("first"))
        store.delete_topic("T")
        result = await store.put(_message("second"))
        await store.stop()
        return result.queue_offset

    assert play(scenario) == 1


@pytest.mark.parametrize("durable", [0, 100])
def test_cut_entries_do_not_count_as_durable(durable: int) -> None:
    """The data at that position was written after that sync."""

    async def scenario(site: Site) -> tuple[int, int]:
        store = await site.leading()
        await store.put(_message("first"))
        log = LedgerLog(store.node.ledger.data)
        log.durable_to(1000)
        log.durable_at_most(durable)
        for index in range(store.node.ledger.end_index + 1):
            log.advance(store.node.ledger.read(index), None)
        await store.stop()
        return log.flushed, log.end

    flushed, end = play(scenario)
    assert flushed == min(durable, end)
    assert end > 100


DATA = "/store/dledger-n0/data/00000000000000000000"


async def _stored(site: Site) -> LedgerStore:
    """Store messages in one segment, until the checkpoint counts them."""
    store = await site.leading()
    for number in range(6):
        assert (await store.put(_message(f"m{number}"))).status is PutStatus.PUT_OK
    await asyncio.sleep(10)
    return store


def test_a_damaged_durable_entry_is_refused_by_name_and_nothing_is_cut() -> None:
    async def scenario(site: Site) -> None:
        store = await _stored(site)
        at = store.commit_offset_at("T", 0, 3)
        assert at is not None
        await store.stop()
        site.disk.damage(DATA, at - HEADER_BYTES + 9, b"\x07")  # in the index of the entry
        before = read_whole(site.disk, DATA)
        with pytest.raises(StoreError, match=f"{DATA}: no whole entry at position {at - HEADER_BYTES}"):
            await site.start()
        assert read_whole(site.disk, DATA) == before

    play(scenario)


def test_a_damaged_record_of_a_running_member_is_left_out_and_reported() -> None:
    async def scenario(site: Site) -> None:
        store = await _stored(site)
        at = store.commit_offset_at("T", 0, 3)
        assert at is not None
        site.disk.damage(DATA, at + 88, b"X")  # in the body of the message
        got = store.get("T", 0, 0)
        found = [record.decode(data).message.body.decode() for data in got.records]
        assert (found, got.next_offset) == (["m0", "m1", "m2", "m4", "m5"], 6)
        assert len(store.damage) == 1
        await store.stop()

    play(scenario)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_a_long_ledger_is_dispatched_in_several_turns(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_store, "_ENTRIES_A_TURN", 2)

    async def scenario(site: Site) -> tuple[list[str], Recovery]:
        store = await site.leading()
        for number in range(count):
            await store.put(_message(f"m{number}"))
        store.kill()
        site.disk.lose_power()
        again = LedgerStore("/store", CONFIG, GroupConfig("g", "n0", ("n0",)), HERE, site.runtime, None)
        recovery = again.load()
        await again.start()
        while not again.leads:
            await asyncio.sleep(0.1)
        seen = bodies(again)
        await again.stop()
        return seen, recovery

    seen, recovery = play(scenario)
    assert seen == [f"m{number}" for number in range(count)]
    assert recovery == Recovery(True, 0, 0, 0, 0, 0)


def test_a_recovery_counts_the_entries_of_a_lost_queue() -> None:
    async def scenario(site: Site) -> tuple[Recovery, list[str]]:
        store = await site.leading()
        for number in range(3):
            await store.put(_message(f"m{number}"))
        end = store.log_end
        await store.stop()
        site.disk.lose(f"/store/consumequeue/T/0/{0:020d}")
        again = LedgerStore("/store", CONFIG, GroupConfig("g", "n0", ("n0",)), HERE, site.runtime, None)
        recovery = again.load()
        seen = bodies(again)
        await again.stop()
        assert recovery.recovered_end == end
        return recovery, seen

    recovery, seen = play(scenario)
    assert (recovery.abnormal, recovery.truncated_bytes, recovery.redispatched) == (False, 0, 3)
    assert recovery.queue_entries_cut == 0
    assert seen == ["m0", "m1", "m2"]


def test_a_member_whose_queues_cannot_be_written_leaves_its_group(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        store = await site.leading()

        def fail(step: Step) -> None:
            if "consumequeue" in step.path:
                raise OSError("the disk is broken")

        site.disk.on_step = fail
        put = asyncio.create_task(store.put(_message("x")))
        await asyncio.sleep(5)
        assert put.done()
        assert put.result().status is not PutStatus.PUT_OK
        assert not store.node.leads
        assert not store.writable
        site.disk.on_step = None
        await store.stop()

    play(scenario)
    assert any("n0 of g stops: the disk is broken" in line for line in caplog.messages)


def test_the_time_of_the_durable_part_is_that_of_its_last_record() -> None:
    log = LedgerLog(SegmentedFile(SimulatedDisk(), "data", 512))
    times = []
    for number in range(2):
        draft = record.encode(_message("m"))
        record.place(draft, number, 200 * number + HEADER_BYTES, 1000 + number)
        size = HEADER_BYTES + len(draft)
        entry = Entry(NORMAL, size, number, 1, 200 * number, body=bytes(draft))
        log.advance(entry, stored_in(entry))
        times.append((log.flushed, log.flushed_timestamp_ms))
        log.durable_to(entry.pos + entry.size)
        times.append((log.flushed, log.flushed_timestamp_ms))
    log.durable_at_most(100)
    assert times == [(0, 0), (size, 1000), (size, 1000), (200 + size, 1001)]
    assert log.flushed == 200 + size


def test_a_flush_of_a_member_whose_disk_failed_ends() -> None:
    async def scenario(site: Site) -> None:
        store = await site.leading()

        def fail(_: object) -> None:
            raise OSError("the disk is broken")

        put = asyncio.create_task(store.put(_message("x")))
        await asyncio.sleep(0)
        flush = asyncio.create_task(store.flush_log())
        site.disk.on_step = fail
        await asyncio.wait((put, flush), timeout=5)
        assert put.done()
        assert flush.done()
        site.disk.on_step = None
        await store.stop()

    play(scenario)


def test_another_change_of_the_same_turn_is_not_taken_for_an_entry() -> None:
    async def scenario(site: Site) -> tuple[PutStatus, list[str]]:
        store = await site.leading()
        store.node.member.core.state.refuse("n9", "a request")
        result = await store.put(_message("x"))
        seen = bodies(store)
        await store.stop()
        return result.status, seen

    assert play(scenario) == (PutStatus.PUT_OK, ["x"])


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (ResponseCode.NOT_LEADER, PutStatus.SERVICE_NOT_AVAILABLE, "this broker does not lead its group"),
        (
            ResponseCode.LEADER_NOT_READY,
            PutStatus.SERVICE_NOT_AVAILABLE,
            "this broker has just been elected or deposed",
        ),
        (
            ResponseCode.LEADER_TRANSFERRING,
            PutStatus.SERVICE_NOT_AVAILABLE,
            "this broker is transferring its leadership",
        ),
        (
            ResponseCode.LEADER_PENDING_FULL,
            PutStatus.OS_PAGECACHE_BUSY,
            "[PC_SYNCHRONIZED]broker busy: too many messages wait for the group",
        ),
        (
            ResponseCode.WAIT_QUORUM_ACK_TIMEOUT,
            PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH,
            "no quorum confirmed in time; the message may be stored later",
        ),
        (
            ResponseCode.TERM_CHANGED,
            PutStatus.UNKNOWN_ERROR,
            "the leader has changed, the message may be stored",
        ),
        (ResponseCode.DISK_ERROR, PutStatus.UNKNOWN_ERROR, "the group answers DISK_ERROR"),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_a_put_reports_why_the_group_did_not_store_it(
    later: bool, code: ResponseCode, status: PutStatus, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(site: Site) -> list[PutResult]:
        store = await site.leading()

        def take(
            _bodies: Sequence[object], settled: Callable[[ResponseCode], None]
        ) -> tuple[ResponseCode, list[Entry]]:
            if later:
                asyncio.get_running_loop().call_soon(settled, code)
            return (ResponseCode.SUCCESS if later else code), []

        with monkeypatch.context() as patch:
            patch.setattr(store.node, "take", take)
            results = await store.put_batch([_message("a"), _message("b")])
        taken = store.next_queue_offset("T", 0)
        assert taken == (2 if later else 0), "messages that may be stored take queue offsets"
        await store.stop()
        return results

    assert play(scenario) == [PutResult(status, reason=reason)] * 2


def test_each_change_of_the_leadership_is_reported_once() -> None:
    async def scenario(site: Site) -> list[tuple[bool, str]]:
        store = await site.start()
        seen = [(store.leads, store.refusal)]
        store.on_role = lambda: seen.append((store.leads, store.refusal))
        while not store.leads:
            await asyncio.sleep(0.1)
        complete = [store.has_all]
        await store.put(_message("x"))
        term = store.term
        for _ in range(2):
            store.changed(SteppedDown(term + 1, Reason.NO_QUORUM))
        complete.append(store.has_all)
        assert complete == [True, False]
        for _ in range(2):
            store.changed(Committed(store.node.member.core.state.commit))
        store.node.fail(OSError("the disk is broken"))
        await store.stop()
        return seen

    refused = (False, "this broker does not lead its group")
    assert play(scenario)[:4] == [refused, (True, ""), refused, (True, "")]
    assert [leads for leads, _ in play(scenario)] == [False, True, False, True, False]


def test_a_result_says_where_the_message_is() -> None:
    async def scenario(site: Site) -> tuple[PutResult, bytes | None]:
        store = await site.leading()
        (result,) = await store.put_batch([_message("hello")])
        data = store.record_at(result.commit_offset)
        await store.stop()
        return result, data

    result, data = play(scenario)
    assert data is not None
    assert record.decode(data).message.body == b"hello"
    assert result.store_timestamp_ms == record.decode(data).store_timestamp_ms
    assert result.stored_bytes == len(data)
    assert result.message_id.endswith(f"{result.commit_offset:016X}")


def test_a_message_that_no_queue_gets_has_queue_offset_0_and_takes_none() -> None:
    async def scenario(site: Site) -> tuple[int, int, int]:
        store = await site.leading()
        await store.put(_message("first"))
        half = msgspec.structs.replace(_message("half"), sys_flag=SYS_TRANSACTION_PREPARED)
        result = await store.put(half)
        data = store.record_at(result.commit_offset)
        assert data is not None
        after = await store.put(_message("second"))
        await store.stop()
        return result.queue_offset, record.decode(data).queue_offset, after.queue_offset

    assert play(scenario) == (0, 0, 1)


def test_a_member_whose_old_segments_cannot_be_deleted_leaves_its_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(site: Site) -> tuple[int, str, bool]:
        store = await site.leading()
        await store.put(_message("x"))
        assert await store.clean() == 0
        assert store.node.failure is None

        def fail(_index: int) -> int:
            raise OSError("the disk is broken")

        with monkeypatch.context() as patch:
            patch.setattr(store.node.ledger, "position_of", fail)
            deleted = await store.clean()
        failure = str(store.node.failure)
        await store.stop()
        return deleted, failure, store.leads

    assert play(scenario) == (0, "the disk is broken", False)

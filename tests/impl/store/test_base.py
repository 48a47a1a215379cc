"""Tests what a store answers apart from its queues: places, deleted topics, refusals, and its exit.

Source: docs/reference/protocol/storing.md and recovery.md.
"""

import asyncio
import errno
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.damage import DamageKind, Outcome
from mqproof.impl.store.files import record
from mqproof.impl.store.files.index_file import HEADER_BYTES
from mqproof.impl.store.results import PutResult, PutStatus
from tests.impl.store.site import SMALL, Site, message

LARGE = replace(SMALL, commit_log_segment_bytes=4096, consume_queue_segment_bytes=2000, index_entries=500)
SIZE = len(record.encode(message("m0")))
FOREVER = (0, 1 << 62)
ABORT = "store/abort"


def _opened(config: StoreConfig = LARGE) -> Site:
    site = Site(config)
    site.open()
    return site


def _body(data: bytes | None) -> str | None:
    return None if data is None else record.decode(data).message.body.decode()


def test_places_in_queues_and_in_the_log() -> None:
    site = _opened()
    site.append("m0", "m1")
    site.clock.advance_ms(5000)
    site.append("m2", queue_id=4)
    site.append("u0", topic="U")
    store = site.store
    assert store.topics() == {"T": 5, "U": 1}
    assert [store.max_offset("T", queue_id) for queue_id in (0, 1, 4)] == [2, 0, 1]
    assert [store.commit_offset_at("T", 0, offset) for offset in (-1, 0, 1, 2)] == [None, 0, SIZE, None]
    assert store.commit_offset_at("V", 0, 0) is None
    begin_ms = store.store_time_ms("T", 0, 1)
    assert begin_ms is not None
    assert store.store_time_ms("T", 4, 0) == begin_ms + 5000
    assert store.store_time_ms("T", 0, 2) is None
    assert store.index_end == (begin_ms + 5000, 3 * SIZE)
    assert [store.log_path(at)[-4:] for at in (0, 4095, 4096)] == ["0000", "0000", "4096"]
    assert (store.log_begin, store.log_end, store.next_commit_offset) == (0, 4 * SIZE, 4 * SIZE)
    assert len(store.units("T", 0, 0, 9)) == 2
    assert store.units("V", 0, 0, 9) == []


def test_the_first_offset_is_that_of_the_first_record_in_the_log() -> None:
    site = _opened()
    site.append("m0", "m1")
    queue = site.store._queues.find("T", 0)
    assert queue is not None
    queue.first = 1
    assert [site.store.min_offset("T", queue_id) for queue_id in (0, 1)] == [1, 0]


@pytest.mark.parametrize(
    ("count", "records", "less", "found"),
    [(9, 3, 0, [1, 2, 3]), (2, 9, 0, [2, 3]), (9, 3, 1, [2, 3]), (9, 0, 0, [3]), (1, 9, 0, [3])],
)
def test_a_search_returns_the_newest_records_oldest_first(
    count: int, records: int, less: int, found: list[int]
) -> None:
    """They have at most the size of so many records, less so many bytes."""
    site = _opened()
    for number in range(4):
        site.store.append(Message("T", b"m%d" % number, {"KEYS": "key"}))
    site.store.dispatch()
    max_bytes = records * site.store.log_end // 4 - less
    newest = site.store.find("T", "key", count, *FOREVER, max_bytes)
    assert [_body(data) for data in newest] == [f"m{number}" for number in found]


def test_a_search_returns_8_mib_if_nothing_else_is_asked_for() -> None:
    site = _opened(replace(LARGE, commit_log_segment_bytes=16 << 20))
    for number in range(3):
        site.store.append(Message("T", b"%d" % number + bytes(3 << 20), {"KEYS": "key"}))
    site.store.dispatch()
    found = site.store.find("T", "key", 64, *FOREVER)
    assert [record.decode(data).message.body[:1] for data in found] == [b"1", b"2"]


def test_without_an_index_no_key_is_found() -> None:
    site = _opened(replace(LARGE, index_enabled=False))
    site.append("m0")
    assert site.store.find("T", "m0", 64, *FOREVER) == []
    assert site.store.index_end == (0, 0)


@pytest.mark.parametrize(
    ("at", "found"), [(-1, None), (0, "m0"), (1, None), (SIZE, "m1"), (2 * SIZE, None), (4096, None)]
)
def test_a_record_is_found_at_its_own_place_only(at: int, found: str | None) -> None:
    site = _opened()
    site.append("m0", "m1")
    assert _body(site.store.record_at(at)) == found
    stored = site.store.stored_at(at)
    assert (stored.message.body.decode() if stored else None) == found


@pytest.mark.parametrize(("less", "found"), [(0, True), (1, False)])
def test_a_record_larger_than_any_message_is_not_read(less: int, found: bool) -> None:
    """Its size may be what a client wrote there. Around a body there can be 98,418 bytes."""
    site = _opened(replace(LARGE, commit_log_segment_bytes=1 << 20))
    site.store.append(Message("T", bytes(150_000)))
    site.store.dispatch()
    size = site.store.log_end
    site.store.config = replace(site.config, message_bytes_max=size - 98_418 - less)
    assert (site.store.record_at(0) is not None) is found


def test_records_of_a_deleted_topic_are_found_until_they_expire() -> None:
    """The recreated topic has the same queue offsets, at other records."""
    site = _opened()
    site.append("m0", "m1")
    site.store.delete_topic("T")
    for _ in range(2):
        assert [_body(site.store.record_at(at)) for at in (0, SIZE)] == ["m0", "m1"]
        assert [_body(data) for data in site.store.find("T", "m1", 64, *FOREVER)] == ["m1"]
        site.append("n0", "n1", "n2")
    assert len(site.store.damage) == 0


def test_a_record_with_an_altered_queue_offset_is_not_found_and_reported() -> None:
    site = _opened()
    site.append("m0", "m1", "m2")
    site.disk.open(f"store/commitlog/{0:020d}").write(SIZE + 20, (2).to_bytes(8, "big"))
    assert [_body(site.store.record_at(at * SIZE)) for at in range(3)] == ["m0", None, "m2"]
    assert site.store.damage.counts == {(DamageKind.RECORD, Outcome.SKIPPED): 1}


def test_a_record_with_the_topic_of_a_deleted_one_is_not_found_while_a_queue_has_it() -> None:
    site = _opened()
    site.append("v0", topic="V")
    site.store.delete_topic("V")
    site.append("m0")
    site.append("v1", topic="V")
    site.store.delete_topic("V")
    topic_at = SIZE + 88 + len("m0") + 1
    assert site.store._log.read(topic_at, 1) == b"T"
    site.disk.open(f"store/commitlog/{0:020d}").write(topic_at, b"V")
    assert [_body(site.store.record_at(at * SIZE)) for at in range(3)] == ["v0", None, "v1"]


@pytest.mark.parametrize(("begin", "count", "found"), [(0, 3, 0), (0, 1, 0), (SIZE, 2, None), (SIZE, 9, 3)])
def test_the_first_damaged_record_of_some_is_named(begin: int, count: int, found: int | None) -> None:
    site = _opened()
    site.append(*(f"m{number}" for number in range(4)))
    for number in (0, 3):
        site.store._log.segments.write(number * SIZE + 88, b"?")
    assert site.store.damaged_record(begin, count) == (None if found is None else found * SIZE)


def test_a_damaged_part_of_the_log_is_reported_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    site = _opened()
    site.append("m0", "m1")
    site.flush()
    site.store._log.segments.write(88, b"?")
    assert [stored.message.body for stored in site.store.records_from(0)] == [b"m1"]
    assert site.store.damage.counts == {(DamageKind.LOG, Outcome.SKIPPED): 1}
    assert caplog.messages == [
        f"damaged log at store/commitlog/{0:020d}, commit offset 0 to {SIZE}: there is no whole record:"
        " skipped"
    ]


def test_a_damaged_entry_of_the_index_is_reported_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    site = _opened()
    site.append("m0")
    site.flush()
    (file,) = list(site.store._index or ())
    header_and_slots = HEADER_BYTES + 4 * LARGE.index_slots
    file.file.write(header_and_slots + 20, (-1).to_bytes(4, "big", signed=True))
    assert site.store.find("T", "m0", 64, *FOREVER) == []
    assert caplog.messages == [
        f"damaged index entry at {file.file.path}, entry 1: it does not belong to its chain, so a search by"
        " key may miss messages: skipped"
    ]


def test_a_suggestion_of_the_index_without_a_record_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    site = _opened()
    site.append("m0", "m1")
    site.flush()
    site.store._log.segments.write(SIZE + 88, b"?")
    assert site.store.find("T", "m1", 64, *FOREVER) == []
    assert caplog.messages == [
        f"damaged index entry at store/commitlog/{0:020d}, commit offset {SIZE}: the key index suggests it,"
        " and no whole record is there: skipped"
    ]


@pytest.mark.parametrize(("more", "count"), [(0, 2), (1, 1)])
def test_a_read_has_at_most_256_kib_if_nothing_else_is_asked_for(more: int, count: int) -> None:
    site = _opened(replace(LARGE, commit_log_segment_bytes=1 << 20))
    around = len(record.encode(Message("T", b"")))
    for size in (1 << 17, (1 << 17) + more):
        site.store.append(Message("T", bytes(size - around)))
    site.store.dispatch()
    assert len(site.store.get("T", 0, 0).records) == count


# Exits.


@pytest.mark.parametrize("failure", ["", "the disk failed"])
def test_an_exit_is_clean_unless_the_disk_failed(failure: str) -> None:
    site = _opened()
    assert site.disk.exists(ABORT)
    site.append("m0")
    site.store.failure = failure
    site.close()
    assert site.disk.exists(ABORT) is bool(failure)
    site.open()
    assert site.recovery.abnormal is bool(failure)


def test_an_abort_file_that_cannot_be_removed_is_a_failure() -> None:
    site = _opened()

    def fail(step: Step) -> None:
        if step.kind == "remove" and step.path == ABORT:
            raise OSError(errno.EIO, "Input/output error", step.path)

    site.simulated_disk.on_step = fail
    site.close()
    assert "Input/output error" in site.store.failure


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free space on the disk, and restart it"),
        (errno.EIO, "replace the disk, or restart it"),
    ],
)
def test_the_first_failure_is_logged_with_its_remedy(
    number: int, remedy: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = _opened()
    site.store._fail(OSError(number, "first"))
    site.store._fail(OSError(errno.EIO, "second"))
    assert site.store.failure.endswith("first")
    assert caplog.messages == [
        f"{site.store.failure}; the broker accepts no message until it is restarted: {remedy}"
    ]


def test_after_a_failure_nothing_is_flushed_written_or_deleted() -> None:
    site = _opened()
    site.append("m0")
    site.store.failure = "the disk failed"
    steps: list[Step] = []
    site.simulated_disk.on_step = steps.append
    result_of(site.store.flush_queues())
    result_of(site.store.write_checkpoint())
    assert (result_of(site.store.clean()), steps) == (0, [])


# Results of puts.


@pytest.mark.parametrize("mode", FlushMode)
@pytest.mark.parametrize("replicated", [False, True])
@pytest.mark.parametrize("wait", [False, True])
def test_a_put_is_confirmed_at_once_if_neither_disk_nor_slave_is_waited_for(
    mode: FlushMode, replicated: bool, wait: bool
) -> None:
    async def confirmed() -> PutStatus:
        return PutStatus.PUT_OK

    store = _opened(replace(LARGE, flush_mode=mode)).store
    if replicated:
        store.replicate = lambda _end: confirmed()
    expected = mode is FlushMode.ASYNC_FLUSH and not (replicated and wait)
    assert store.confirms_at_once(wait) is expected


def test_a_refused_put_has_no_place_and_no_size() -> None:
    site = _opened()
    site.store.refusal = "this is a slave"

    async def main() -> tuple[PutResult, PutResult]:
        refused = await site.store.put(message("m0"))
        site.store.refusal = ""
        return refused, await site.store.put(message("m0"))

    refused, stored = run_simulated(main())
    assert refused == PutResult(PutStatus.SERVICE_NOT_AVAILABLE, -1, -1, "", "this is a slave", 0)
    assert (stored.status, stored.reason, stored.stored_bytes) == (PutStatus.PUT_OK, "", SIZE)


@pytest.mark.parametrize("failure", ["", "the disk failed"])
def test_a_put_that_is_not_confirmed_says_why(failure: str) -> None:
    site = _opened(replace(LARGE, flush_mode=FlushMode.SYNC_FLUSH))

    async def main() -> PutResult:
        put = asyncio.create_task(site.store.put(message("m0")))
        await asyncio.sleep(0.01)
        site.store.failure = failure
        return await put

    result = run_simulated(main())
    assert (result.status, result.queue_offset) == (PutStatus.FLUSH_DISK_TIMEOUT, 0)
    assert result.reason == (failure or "flush timed out")


@pytest.mark.parametrize("wait", [False, True])
def test_a_stopped_store_is_not_writable_and_has_answered_its_puts(wait: bool) -> None:
    async def replicated() -> PutStatus:
        await asyncio.sleep(0.1)
        return PutStatus.SLAVE_NOT_AVAILABLE

    site = _opened()
    site.store.replicate = lambda _end: replicated()

    async def main() -> PutResult:
        answered: asyncio.Future[list[PutResult]] = asyncio.get_running_loop().create_future()
        site.store.put_soon([message("m0")], answered.set_result, wait=wait)
        (result,) = await answered
        await asyncio.sleep(0.1)
        assert site.store._answering == set()
        await site.store.stop()
        return result

    result = run_simulated(main())
    assert result.status is (PutStatus.SLAVE_NOT_AVAILABLE if wait else PutStatus.PUT_OK)
    assert result.queue_offset == 0
    assert not site.store.writable


def test_only_a_store_that_accepts_puts_knows_the_end_of_the_log() -> None:
    store = _opened().store
    has_all = [store.has_all]
    store.refusal = "this is a slave"
    assert [*has_all, store.has_all] == [True, False]


@pytest.mark.parametrize(("commit_offset", "begin"), [(100, 52), (48, 0), (0, 0)])
def test_a_scan_of_records_begins_before_the_header_of_the_first_one(
    commit_offset: int, begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the log of a group, each record has a header."""
    store = _opened().store
    begins: list[int] = []

    def scan(position: int) -> Iterator[tuple[int, None]]:
        begins.append(position)
        return iter(())

    monkeypatch.setattr(store._log, "header_bytes", 48)
    monkeypatch.setattr(store._log, "scan", scan)
    assert list(store.records_from(commit_offset)) == []
    assert begins == [begin]

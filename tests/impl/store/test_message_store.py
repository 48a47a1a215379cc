"""Tests the guarantees of a running store: offsets, statuses, flushes, refusals.

Method: step by step on a simulated disk where no waiting is involved, otherwise on the simulated event loop.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec import structs

from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.disk import RealDisk
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import production, simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store import reader
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import QueueCount, read_checkpoint
from mqproof.impl.store.files.consume_queue import Unit
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import GetStatus, PutResult, PutStatus
from mqproof.spec.events import Event, Kind
from tests.impl.store.site import SMALL, Site, batch_of, bodies, message, stored_messages

LARGE = replace(SMALL, commit_log_segment_bytes=4096, consume_queue_segment_bytes=2000, index_entries=100)

T = TypeVar("T")

SYNC = replace(SMALL, flush_mode=FlushMode.SYNC_FLUSH, sync_flush_timeout_ms=50)


def _refuse(kind: str, part: str) -> Callable[[Step], None]:
    """Return a hook that fails every step of this kind on such a path."""

    def hook(step: Step) -> None:
        if step.kind == kind and part in step.path:
            raise OSError(5, "Input/output error", step.path)

    return hook


# -- step by step


def test_queue_offsets_count_per_queue_and_commit_offsets_in_bytes() -> None:
    site = Site()
    site.open()
    first, second = site.append("a", "b")
    (other,) = site.append("c", queue_id=1)
    assert [each.queue_offset for each in (first, second, other)] == [0, 1, 0]
    assert (first.commit_offset, second.commit_offset) == (0, first.size)
    assert bodies(site.store) == ["a", "b"]
    assert bodies(site.store, queue_id=1) == ["c"]
    assert (site.store.min_offset("T", 0), site.store.max_offset("T", 0)) == (0, 2)
    assert (site.store.min_offset("X", 9), site.store.max_offset("X", 9)) == (0, 0)


@pytest.mark.parametrize("config", [SMALL, SYNC])
def test_a_reader_ahead_of_the_durable_end_is_not_sent_back(config: StoreConfig) -> None:
    site = Site(config)
    store = site.open()

    def statuses() -> list[tuple[GetStatus, int]]:
        found = [store.get("T", 0, offset) for offset in range(5)]
        return [(one.status, one.next_offset) for one in found]

    site.append("a", "b", "c")
    waits, gone = GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.NO_MATCHED_LOGIC_QUEUE
    found, beyond = GetStatus.FOUND, GetStatus.OFFSET_OVERFLOW_BADLY
    if config is SYNC:
        assert statuses() == [(gone, 0), (waits, 1), (waits, 2), (waits, 3), (gone, 0)]
    site.flush()
    assert statuses() == [(found, 3), (found, 3), (found, 3), (waits, 3), (beyond, 3)]
    site.append("d")
    if config is SYNC:
        assert statuses()[3:] == [(waits, 3), (waits, 4)]
        assert store.get("T", 0, 5).status is beyond


def test_the_log_continues_in_the_next_segment_after_a_filler() -> None:
    site = Site()
    site.open()
    appended = site.append(*(f"m{number}" for number in range(12)))
    assert [a.commit_offset % 512 for a in appended if a.commit_offset % 512 == 0] == [0, 0, 0]
    last = max(a.end for a in appended if a.commit_offset < 512)
    filler = site.disk.open(f"store/commitlog/{0:020d}").read(last, 8)
    assert filler == record.filler(512 - last)
    assert bodies(site.store) == [f"m{number}" for number in range(12)]


@pytest.mark.parametrize("left", range(12))
def test_each_record_of_a_segment_leaves_room_for_a_filler(left: int) -> None:
    site = Site()
    site.open()
    (first,) = site.append("a")
    second = message("b")
    bare = len(record.encode(structs.replace(second, body=b"")))
    room = SMALL.commit_log_segment_bytes - first.end
    placed = site.store.append(structs.replace(second, body=bytes(room - bare - left)))
    fits = left >= record.FILLER_BYTES
    assert placed.commit_offset == (first.end if fits else SMALL.commit_log_segment_bytes)
    site.append("c")
    site.reopen_after_process_crash()
    assert [stored.message_id for stored in stored_messages(site.store)] == ["a", "b", "c"]


def test_a_record_may_fill_a_segment_with_its_filler_and_not_one_byte_more() -> None:
    site = Site()
    store = site.open()
    overhead = len(record.encode(message("")))
    room = 512 - record.FILLER_BYTES - overhead - len("UNIQ_KEY\x01")
    fits = Message("T", b"x" * (room + len("UNIQ_KEY\x01")), {"UNIQ_KEY": ""})
    assert store.append(fits).size == 512 - record.FILLER_BYTES
    assert store.append(fits).commit_offset == 512
    result = result_of(store.put(structs.replace(fits, body=fits.body + b"x")))
    assert (result.status, result.reason) == (
        PutStatus.MESSAGE_ILLEGAL,
        "record has 505 bytes, 504 fit a segment",
    )
    assert site.store.log_end == 1024 - record.FILLER_BYTES


def test_a_batch_has_consecutive_offsets_in_one_segment() -> None:
    site = Site()
    store = site.open()
    site.append("before", "and", "more")
    results = result_of(store.put_batch([message(name) for name in ("a", "b")]))
    assert [result.queue_offset for result in results] == [3, 4]
    assert results[0].commit_offset == 512, "the whole batch goes to the next segment"
    assert results[1].commit_offset == 512 + len(store.record_at(512) or b"")
    assert bodies(store) == ["before", "and", "more", "a", "b"]
    assert [found.queue_offset for found in site.append("behind")] == [5]


def test_a_batch_is_stored_as_its_messages_one_by_one_are() -> None:
    each = [message("a", TAGS="x", KEYS="k l"), message("b", flag="0"), Message("T", b"c", flag=-1)]
    found = []
    for messages in (each, batch_of(*each)):
        site = Site(LARGE)
        store = site.open()
        site.append("before")
        results = result_of(store.put_batch(messages))
        site.close()
        disk = site.simulated_disk
        files = {path: disk.written(path) for path in disk.files("store")}
        found.append((results, site.events, files))
    assert found[0] == found[1]
    results, events, files = found[0]
    assert [result.queue_offset for result in results] == [1, 2, 3]
    assert len([event for event in events if event.kind is Kind.DISPATCH]) == 4
    assert len([path for path in files if "consumequeue" in path or "index" in path]) == 2


@pytest.mark.parametrize("mode", list(FlushMode))
def test_a_message_of_a_batch_that_is_too_large_is_refused_with_the_others(mode: FlushMode) -> None:
    site = Site(replace(LARGE, message_bytes_max=10, flush_mode=mode))
    store = site.open()
    results = result_of(store.put_batch(batch_of(message("a"), message("b" * 11))))
    assert [result.reason for result in results] == ["body has 11 bytes, at most 10 expected"] * 2
    assert store.log_end == 0


def test_a_batch_too_large_for_a_segment_is_refused_as_a_whole() -> None:
    site = Site()
    store = site.open()
    results = result_of(store.put_batch([message(name) for name in "abcdef"]))
    assert {result.status for result in results} == {PutStatus.MESSAGE_ILLEGAL}
    assert "6 record(s)" in results[0].reason
    results = result_of(store.put_batch([message("a"), Message("T", b"", {"k": "\x02"})]))
    assert {result.status for result in results} == {PutStatus.MESSAGE_ILLEGAL}
    assert store.log_end == 0


def test_at_a_position_without_a_record_none_is_found_whatever_the_bytes_are() -> None:
    site = Site()
    store = site.open()
    like_a_record = bytes.fromhex("7fffffff daa320a7")
    appended = store.append(Message("T", like_a_record * 2))
    inside = store.record_at(appended.commit_offset)
    assert inside is not None
    at = inside.index(like_a_record)
    read = store._log.read
    sizes: list[int] = []

    def noted(position: int, size: int) -> bytes:
        sizes.append(size)
        return read(position, size)

    store._log.read = noted  # type: ignore[method-assign]
    assert store.record_at(appended.commit_offset + at) is None
    assert max(sizes) == 8, "nothing is read for a size that a peer wrote"
    assert store.record_at(-1) is None
    assert store.record_at(store.log_end) is None


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Message("T", b"x" * 101), "body has 101 bytes, at most 100 expected"),
        (Message("T", b"", queue_id=-1), "queue id is -1, 0 or more expected"),
        (Message("no space", b""), "topic 'no space'"),
        (Message("T", b"", {"k": "\x02"}), "0x01 or 0x02"),
    ],
)
def test_an_illegal_message_is_refused_and_takes_no_offset(bad: Message, reason: str) -> None:
    site = Site(replace(SMALL, message_bytes_max=100))
    store = site.open()
    result = result_of(store.put(bad))
    assert (result.status, result.queue_offset, result.commit_offset) == (PutStatus.MESSAGE_ILLEGAL, -1, -1)
    assert reason in result.reason
    assert store.log_end == 0
    assert result_of(store.put(Message("T", b"x" * 100))).queue_offset == 0


@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [
        (0, GetStatus.FOUND, 3),
        (2, GetStatus.FOUND, 3),
        (3, GetStatus.OFFSET_OVERFLOW_ONE, 3),
        (4, GetStatus.OFFSET_OVERFLOW_BADLY, 3),
        (-1, GetStatus.OFFSET_TOO_SMALL, 0),
    ],
)
def test_every_get_status_is_returned_where_it_applies(
    offset: int, status: GetStatus, next_offset: int
) -> None:
    site = Site()
    site.open()
    site.append("a", "b", "c")
    result = site.store.get("T", 0, offset)
    assert (result.status, result.next_offset) == (status, next_offset)
    assert (result.min_offset, result.max_offset) == (0, 3)
    assert len(result.records) == max(0, min(3 - offset, 3)) * (status is GetStatus.FOUND)


@pytest.mark.parametrize(
    "entry",
    [
        Unit(0, 0, 0),
        Unit(0, -5, 0),
        Unit(-5, 50, 0),
        Unit(0, (1 << 31) - 1, 0),
        Unit(1 << 40, 50, 0),
        Unit((1 << 63) - 1, 50, 0),
    ],
)
@pytest.mark.parametrize("is_real", [False, True])
def test_an_entry_without_a_record_is_repaired_from_the_log(
    entry: Unit, is_real: bool, tmp_path: Path
) -> None:
    """No released broker and no crash leaves such an entry among good ones, but a disk may."""
    site = Site(disk=RealDisk(), directory=str(tmp_path / "store")) if is_real else Site()
    site.open()
    site.append("a", "b", "c")
    queue = site.store._queues.find("T", 0)
    assert queue is not None
    queue.write(1, [entry])
    offset = 0
    found: list[bytes] = []
    while offset < 3:
        result = site.store.get("T", 0, offset)
        assert result.next_offset > offset, "a reader does not stay before it for ever"
        found += [record.decode(data).message.body for data in result.records]
        offset = result.next_offset
    assert found == [b"a", b"b", b"c"]
    assert queue.units(1, 1) == [Unit(103, 103, 0)]
    site.close()


@pytest.mark.parametrize(("asked", "looked_at"), [(1, 800), (32, 800), (900, 900)])
def test_a_get_without_matches_examines_a_limited_number_of_messages(asked: int, looked_at: int) -> None:
    site = Site(replace(SMALL, consume_queue_segment_bytes=20_000, index_enabled=False))
    site.open()
    site.append(*(str(number) for number in range(950)))
    result = site.store.get("T", 0, 0, max_count=asked, tag_codes={7})
    assert (result.status, result.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, looked_at)


def test_an_unknown_queue_and_an_empty_one_are_reported() -> None:
    site = Site(SYNC)
    site.open()
    assert site.store.get("T", 0, 0).status is GetStatus.NO_MATCHED_LOGIC_QUEUE
    site.append("a")
    result_of(site.store.flush_log())
    site.disk.open(f"store/consumequeue/T/0/{0:020d}")
    site.reopen_after_power_loss()
    assert site.store.get("T", 0, 0).status is GetStatus.FOUND


def test_a_get_is_limited_in_messages_and_bytes_but_returns_at_least_one() -> None:
    site = Site(replace(SMALL, consume_queue_segment_bytes=2000))
    site.open()
    size = site.append("a", "b", "c")[0].size
    get = site.store.get
    assert len(get("T", 0, 0, max_count=2).records) == 2
    assert get("T", 0, 0, max_count=2).next_offset == 2
    assert len(get("T", 0, 0, max_bytes=2 * size).records) == 2
    assert len(get("T", 0, 0, max_bytes=2 * size - 1).records) == 1
    assert len(get("T", 0, 0, max_bytes=1).records) == 1


def test_tags_select_records_and_others_are_skipped() -> None:
    site = Site(replace(SMALL, consume_queue_segment_bytes=2000))
    store = site.open()
    for name, tag in (("m1", "TagA"), ("m2", "TagB"), ("m3", "TagA")):
        store.append(message(name, TAGS=tag))
    store.dispatch()
    tag_a, tag_b = 2598919, 2598920
    assert len(store.get("T", 0, 0, tag_codes={tag_a}).records) == 2
    assert len(store.get("T", 0, 0, tag_codes=set()).records) == 3
    only_b = store.get("T", 0, 0, tag_codes={tag_b})
    assert (len(only_b.records), only_b.next_offset) == (1, 3)
    none = store.get("T", 0, 0, tag_codes={1})
    assert (none.status, none.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 3)


def test_prepared_and_rolled_back_transactions_take_no_queue_offset() -> None:
    site = Site()
    store = site.open()
    for name, sys_flag in (("half", 0x4), ("rollback", 0xC), ("commit", 0x8), ("plain", 0)):
        store.append(structs.replace(message(name), sys_flag=sys_flag))
    store.dispatch()
    assert bodies(store) == ["commit", "plain"]
    site.flush()
    assert bodies(site.reopen_after_power_loss()) == ["commit", "plain"]


def test_with_sync_flush_a_message_is_visible_only_when_it_is_durable() -> None:
    site = Site(SYNC)
    store = site.open()
    site.append("a")
    assert store.max_offset("T", 0) == 0
    result_of(store.flush_log())
    assert bodies(store) == ["a"]


def test_with_async_flush_an_append_is_visible_at_once_and_arrivals_are_notified() -> None:
    site = Site()
    store = site.open()
    reported: list[tuple[str, int, int, int]] = []
    store.on_arrival = lambda *arrival: reported.append(arrival)
    result_of(store.put(message("a", TAGS="TagA")))
    result_of(store.put(message("b", queue_id=2)))
    assert reported == [("T", 0, 1, 2598919), ("T", 2, 1, 0)]


def test_events_record_the_steps_in_order() -> None:
    site = Site(SYNC)
    store = site.open()
    appended = site.append("a", "b")
    site.flush()
    site.close()
    assert site.kinds() == ["recover", "append", "append", "flush", "dispatch", "dispatch", "flush", "flush"]
    _, first, second, log_flush, dispatched, _, queues_flush, checkpoint = site.events
    assert (first.msg_id, first.queue_offset, first.commit_offset) == ("a", 0, 0)
    assert (second.commit_offset, second.attrs) == (appended[0].end, {"size": str(appended[1].size)})
    assert (log_flush.commit_offset, log_flush.attrs["file"]) == (appended[1].end, "log")
    assert (dispatched.topic, dispatched.queue_id, dispatched.queue_offset) == ("T", 0, 0)
    assert (queues_flush.attrs["file"], checkpoint.attrs["file"]) == ("queues", "checkpoint")
    assert checkpoint.commit_offset == store.log_flushed
    assert [event.seq for event in site.events] == list(range(len(site.events)))


@pytest.mark.parametrize("length", [127, 128, 255])
def test_records_of_either_version_are_read_found_and_recovered(length: int) -> None:
    topic = "t" * length
    site = Site(replace(SMALL, commit_log_segment_bytes=2048))
    site.open()
    (first, _) = site.append("a", "b", topic=topic)
    site.append("c")
    for _ in range(2):
        assert bodies(site.store, topic=topic) == ["a", "b"]
        data = site.store.record_at(first.commit_offset) or b""
        assert record.peek(data[:8])[1] == (record.MAGIC_V1 if length < 128 else record.MAGIC_V2)
        assert site.store.find(topic, "a", 1, 0, 1 << 62) == [data]
        site.reopen_after_process_crash()
    assert site.recovery.truncated_bytes == 0


@pytest.mark.parametrize("limit", ["_OTHERS_MAX", "_OTHERS_BYTES_MAX"])
def test_a_search_by_key_ends_after_too_many_records_with_another_key(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site()
    site.open()
    site.append("BB", *["Aa"] * 3)  # the two keys have the same hash
    assert len(site.store.find("T", "BB", 1, 0, 1 << 62)) == 1
    site.append("Aa")
    size = len(site.store.find("T", "Aa", 1, 0, 1 << 62)[0])
    monkeypatch.setattr(reader, limit, 4 if limit == "_OTHERS_MAX" else 4 * size)
    assert site.store.find("T", "BB", 1, 0, 1 << 62) == []
    assert len(site.store.find("T", "Aa", 4, 0, 1 << 62)) == 4


def test_a_record_is_found_by_its_commit_offset() -> None:
    site = Site()
    site.open()
    appended = site.append("a", "b")[1]
    data = site.store.record_at(appended.commit_offset)
    assert data is not None
    assert record.decode(data).message.body == b"b"
    for nowhere in (-1, 1, appended.end, 10**12):
        assert site.store.record_at(nowhere) is None


def test_a_store_that_is_not_started_accepts_nothing() -> None:
    site = Site()
    site.store.load()
    result = result_of(site.store.put(message("a")))
    assert (result.status, result.reason) == (PutStatus.SERVICE_NOT_AVAILABLE, "the store is not started")
    assert not site.store.writable


def test_a_second_process_is_refused_before_anything_is_changed() -> None:
    site = Site()
    site.open()
    site.append("a")
    steps = site.simulated_disk.steps
    with pytest.raises(StoreError, match=r"store/lock: locked .*is another broker using store"):
        site.made().load()
    assert site.simulated_disk.steps == steps


def test_a_store_that_could_not_be_loaded_releases_its_lock() -> None:
    site = Site()
    site.disk.create("store/commitlog/notes.txt", 1)
    with pytest.raises(StoreError, match=r"store/commitlog/notes.txt: not a segment"):
        site.open()
    site.disk.remove("store/commitlog/notes.txt")
    site.open()


def test_another_segment_size_is_one_clear_error() -> None:
    site = Site()
    site.open()
    site.append("a")
    site.close()
    site.config = replace(SMALL, commit_log_segment_bytes=1024)
    with pytest.raises(StoreError, match=r"commitlog/0{20}: 512 bytes, segments of 1024 expected"):
        site.open()


def test_unknown_files_in_the_directory_are_not_touched() -> None:
    site = Site()
    site.disk.create("store/README", 3).close()
    site.disk.create("store/config/topics.json", 3).close()
    site.open()
    site.append("a")
    site.close()
    assert site.disk.names("store") == [
        "README",
        "checkpoint",
        "commitlog",
        "config",
        "consumequeue",
        "index",
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"consume_queue_segment_bytes": 30}, "consume_queue_segment_bytes is 30, a multiple of 20 expected"),
        ({"sync_flush_timeout_ms": 0}, "sync_flush_timeout_ms is 0, more than 0 expected"),
        ({"message_bytes_max": -1}, "message_bytes_max is -1, more than 0 expected"),
    ],
)
def test_a_configuration_that_cannot_work_is_an_error_with_its_field(
    change: dict[str, int], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        StoreConfig(**change)  # type: ignore[arg-type]  # the fields changed here are all integers


# -- disk errors


def test_a_failing_append_makes_the_store_read_only() -> None:
    site = Site()
    store = site.open()
    site.append("a")
    site.simulated_disk.on_step = _refuse("write", "commitlog")
    result = result_of(store.put(message("b")))
    assert result.status is PutStatus.UNKNOWN_ERROR
    assert "disk error, the store is read-only" in result.reason
    site.simulated_disk.on_step = None
    assert result_of(store.put(message("c"))).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert bodies(store) == ["a"]
    site.close()
    assert site.disk.exists("store/abort")


def test_a_failing_dispatch_makes_the_store_read_only_and_recovery_completes_it() -> None:
    site = Site()
    store = site.open()
    site.simulated_disk.on_step = _refuse("write", "consumequeue")
    assert result_of(store.put(message("a"))).status is PutStatus.PUT_OK
    assert not store.writable
    site.simulated_disk.on_step = None
    assert bodies(site.reopen_after_process_crash()) == ["a"]


def test_after_a_failed_fsync_nothing_more_counts_as_flushed() -> None:
    site = Site()
    store = site.open()
    site.append("a")
    site.simulated_disk.on_step = _refuse("sync", "commitlog")
    result_of(store.flush_log())
    site.simulated_disk.on_step = None
    result_of(store.flush_log())
    assert (store.log_flushed, store.writable) == (0, False)
    site.close()
    assert site.disk.exists("store/abort")
    assert Kind.FLUSH.value not in site.kinds()


@pytest.mark.parametrize("part", ["consumequeue", "checkpoint"])
def test_a_failed_flush_of_queues_or_checkpoint_leaves_the_old_checkpoint(part: str) -> None:
    site = Site()
    store = site.open()
    site.append("a")
    result_of(store.flush_log())
    site.simulated_disk.on_step = _refuse("sync", part)
    result_of(store.flush_queues())
    result_of(store.write_checkpoint())
    site.simulated_disk.on_step = None
    site.close()
    assert not site.disk.exists("store/checkpoint")
    assert not store.writable


# -- on the event loop


def _simulate(
    scenario: Callable[[MessageStore], Awaitable[None]],
    config: StoreConfig,
    disk: SimulatedDisk | None = None,
) -> list[Event]:
    """Run the scenario with a started store. Returns the events. The scenario stops the store."""
    events: list[Event] = []
    loop = SimulatedLoop()
    runtime = simulated(loop, SimulatedNetwork(), seed=1, disk=disk)

    async def main() -> None:
        log = EventLog(events.append, "broker", runtime.clock)
        store = MessageStore("store", config, runtime, log)
        store.load()
        await store.start()
        await scenario(store)
        await store.stop()

    run_simulated(main(), loop)
    return events


def test_many_waiting_puts_need_one_fsync() -> None:
    syncs = 0

    def count(step: Step) -> None:
        nonlocal syncs
        syncs += step.kind == "sync" and "commitlog" in step.path

    disk = SimulatedDisk()
    disk.on_step = count

    async def scenario(store: MessageStore) -> None:
        results = await asyncio.gather(
            *(store.put(message(f"m{number}", number % 4)) for number in range(64))
        )
        assert {result.status for result in results} == {PutStatus.PUT_OK}
        assert len({result.commit_offset for result in results}) == 64

    config = replace(SYNC, commit_log_segment_bytes=1 << 20, consume_queue_segment_bytes=20_000)
    events = _simulate(scenario, config, disk)
    assert [event.kind for event in events].count(Kind.FLUSH) <= 4
    assert syncs <= 4


def test_data_appended_during_an_fsync_waits_for_the_next_one() -> None:
    async def scenario(store: MessageStore) -> None:
        first = asyncio.create_task(store.put(message("a")))
        await asyncio.sleep(0)  # appended
        await asyncio.sleep(0)  # the fsync has begun
        second = asyncio.create_task(store.put(message("b")))
        assert (await first).status is PutStatus.PUT_OK
        assert store.log_flushed < store.log_end
        assert not second.done()
        assert (await second).status is PutStatus.PUT_OK

    _simulate(scenario, SYNC)


def test_a_put_that_does_not_wait_is_answered_before_the_fsync() -> None:
    async def scenario(store: MessageStore) -> None:
        result = await store.put(message("a"), wait=False)
        assert result.status is PutStatus.PUT_OK
        assert store.log_flushed == 0
        await asyncio.sleep(0.01)
        assert bodies(store) == ["a"], "it is flushed and visible without another put that waits"

    _simulate(scenario, SYNC)


def test_a_put_that_does_not_wait_is_flushed_and_visible_even_if_made_during_an_fsync() -> None:
    async def scenario(store: MessageStore) -> None:
        for number in range(20):
            first = asyncio.create_task(store.put(message(f"w{number}")))
            await asyncio.sleep(0.0005 * (number % 4))
            await store.put(message(f"n{number}"), wait=False)
            await first
            await asyncio.sleep(0.01)
            assert store.log_flushed == store.log_end

    _simulate(scenario, SYNC)


def test_a_slow_fsync_is_answered_with_a_timeout_and_still_counts_later() -> None:
    async def slow(function: Callable[[], T]) -> T:
        await asyncio.sleep(0.2)
        return function()

    async def main() -> None:
        runtime = replace(simulated(loop, SimulatedNetwork()), offload=slow)
        store = MessageStore("store", SYNC, runtime)
        store.load()
        await store.start()
        result = await store.put(message("a"))
        assert result == PutResult(
            PutStatus.FLUSH_DISK_TIMEOUT,
            0,
            0,
            "7F000001000000000000000000000000",
            "flush timed out",
            103,
            1_700_000_000_000,
        )
        assert loop.time() == pytest.approx(0.05)
        await asyncio.sleep(0.2)
        assert store.log_flushed == store.log_end
        assert bodies(store) == ["a"]
        await store.stop()

    loop = SimulatedLoop()
    run_simulated(main(), loop)


def test_a_failed_fsync_is_never_answered_ok_and_the_store_accepts_nothing_more() -> None:
    disk = SimulatedDisk()

    async def scenario(store: MessageStore) -> None:
        durable = await store.put(message("durable"))
        disk.on_step = _refuse("sync", "commitlog")
        results = await asyncio.gather(*(store.put(message(name)) for name in ("a", "b")))
        assert {result.status for result in results} == {PutStatus.FLUSH_DISK_TIMEOUT}
        assert "Input/output error" in results[0].reason
        disk.on_step = None
        assert (await store.put(message("c"))).status is PutStatus.SERVICE_NOT_AVAILABLE
        assert durable.status is PutStatus.PUT_OK

    events = _simulate(scenario, SYNC, disk)
    assert [event.kind for event in events].count(Kind.FLUSH) == 1
    assert disk.exists("store/abort")


def test_with_async_flush_an_idle_log_is_flushed_at_the_thorough_interval() -> None:
    times: list[float] = []

    async def scenario(store: MessageStore) -> None:
        await asyncio.sleep(1)  # after the first checkpoint
        assert (await store.put(message("a"))).status is PutStatus.PUT_OK
        for _ in range(120):
            await asyncio.sleep(0.1)
            if store.log_flushed == store.log_end:
                times.append(asyncio.get_running_loop().time())
                return

    _simulate(scenario, replace(SMALL, checkpoint_interval_ms=60_000))  # a checkpoint flushes the log too
    assert 9.9 < times[0] < 10.3


def test_entries_that_a_recovery_rebuilt_are_in_a_checkpoint_soon_after_the_start() -> None:
    disk = SimulatedDisk()
    site = Site(disk=disk)
    site.open()
    last = site.append(*(f"m{number}" for number in range(9)))[-1]
    disk.crash_process()

    async def scenario(store: MessageStore) -> None:
        await asyncio.sleep(1)
        assert store.log_end == last.end
        checkpoint = read_checkpoint(disk, "store/checkpoint")
        assert checkpoint.queue_count == QueueCount(0, last.end, 9)
        assert checkpoint.index is not None
        assert checkpoint.index.position == last.end

    _simulate(scenario, SMALL, disk)


def test_with_async_flush_a_busy_log_is_flushed_at_the_short_interval() -> None:
    async def scenario(store: MessageStore) -> None:
        for number in range(40):
            await store.put(Message("T", b"x" * 1000, queue_id=number % 2))
        await asyncio.sleep(0.6)
        assert store.log_flushed == store.log_end

    _simulate(scenario, replace(SMALL, commit_log_segment_bytes=1 << 20))


def test_queues_and_checkpoint_are_flushed_periodically() -> None:
    async def scenario(store: MessageStore) -> None:
        await store.put(message("a"))
        await asyncio.sleep(61)

    events = _simulate(scenario, SMALL)
    files = [event.attrs["file"] for event in events if event.kind is Kind.FLUSH]
    assert files[:3] == ["queues", "log", "checkpoint"]


@pytest.mark.parametrize("part", ["queues", "index"])
def test_a_second_flush_does_not_count_data_that_the_first_is_still_syncing(part: str) -> None:
    delays_s = iter([0.0, 0.0, 0.5, 0.01, 0.01, 0.01, 0.01])

    async def slow(function: Callable[[], T]) -> T:
        await asyncio.sleep(next(delays_s))
        return function()

    async def main() -> None:
        runtime = replace(simulated(loop, SimulatedNetwork()), offload=slow)
        store = MessageStore("store", SMALL, runtime)
        store.load()
        store.begin()
        flusher = store._queue_flusher if part == "queues" else store._index_flusher
        for name in "ab":
            store.append(message(name))
            store.dispatch()
            await store.flush_log()
        first = asyncio.create_task(flusher.flush())
        await asyncio.sleep(0.01)
        store.append(message("c"))
        store.dispatch()
        second = asyncio.create_task(flusher.flush())
        await asyncio.sleep(0.2)
        assert (store._queue_flusher.position, store._index_flusher.state) == (0, None)
        await asyncio.gather(first, second)
        done = store._index_flusher.state
        assert store.log_end == (
            store._queue_flusher.position if part == "queues" else done and done.position
        )

    loop = SimulatedLoop()
    run_simulated(main(), loop)


def test_checkpoints_are_written_one_at_a_time() -> None:
    """Two at once would remove each other's temporary file."""
    running: list[int] = [0, 0]

    async def counted(function: Callable[[], T]) -> T:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.01)
        running[0] -= 1
        return function()

    async def main() -> None:
        runtime = replace(simulated(loop, SimulatedNetwork()), offload=counted)
        store = MessageStore("store", replace(SMALL, index_enabled=False), runtime)
        store.load()
        store.begin()
        store.append(message("a"))
        store.dispatch()
        await store.flush_log()
        await store.flush_queues()
        await asyncio.gather(*(store.write_checkpoint() for _ in range(3)))
        assert running == [0, 1]

    loop = SimulatedLoop()
    run_simulated(main(), loop)


def test_a_clean_stop_leaves_everything_durable_and_no_abort_file() -> None:
    disk = SimulatedDisk()

    async def scenario(store: MessageStore) -> None:
        for number in range(9):
            await store.put(message(f"m{number}"))
        assert disk.exists("store/abort")

    _simulate(scenario, SMALL, disk)
    assert not disk.exists("store/abort")
    disk.lose_power()
    site = Site(disk=disk)
    site.open()
    assert not site.recovery.abnormal
    assert site.recovery.redispatched == 0
    assert len(bodies(site.store)) == 9


def test_stopping_twice_or_before_a_start_is_harmless() -> None:
    async def main() -> None:
        runtime = simulated(loop, SimulatedNetwork())
        store = MessageStore("store", SYNC, runtime)
        await store.stop()
        store = MessageStore("store", SYNC, runtime)
        store.load()
        await store.stop()
        await store.stop()
        store = MessageStore("store", SYNC, runtime)
        assert not store.load().abnormal
        await store.start()
        await store.stop()
        assert (await store.put(message("a"))).status is PutStatus.SERVICE_NOT_AVAILABLE

    loop = SimulatedLoop()
    run_simulated(main(), loop)


@pytest.mark.parametrize("mode", list(FlushMode))
def test_the_store_works_on_the_real_disk_and_event_loop(mode: FlushMode, tmp_path: Path) -> None:
    config = replace(SMALL, flush_mode=mode, commit_log_segment_bytes=4096, sync_flush_timeout_ms=30_000)
    directory = str(tmp_path / "deep" / "store")

    async def life(first: int) -> None:
        events: list[Event] = []
        runtime = replace(production(SimulatedNetwork()), random=random.Random(1))
        store = MessageStore(directory, config, runtime, EventLog(events.append, "b", runtime.clock))
        store.load()
        await store.start()
        puts = (store.put(message(f"m{number}")) for number in range(first, first + 50))
        results = await asyncio.gather(*puts)
        assert [result.status for result in results] == [PutStatus.PUT_OK] * 50
        assert [result.queue_offset for result in results] == list(range(first, first + 50))
        await store.flush_log()
        assert bodies(store) == [f"m{number}" for number in range(first + 50)]
        await store.stop()

    asyncio.run(life(0))
    asyncio.run(life(50))
    site = Site(config, RealDisk(), directory)
    site.open()
    assert [stored.message.body for stored in stored_messages(site.store)] == [
        f"m{number}".encode() for number in range(100)
    ]
    site.close()


@pytest.mark.parametrize("mode", FlushMode)
@pytest.mark.parametrize("has_index", [False, True])
def test_after_a_clean_stop_a_start_has_nothing_to_recover(mode: FlushMode, has_index: bool) -> None:
    site = Site(replace(SMALL, flush_mode=mode, index_enabled=has_index))
    site.open()
    site.append("a", "b")
    site.close()
    site.reopen_after_power_loss()
    recovery = site.recovery
    assert (recovery.abnormal, recovery.truncated_bytes, recovery.redispatched) == (False, 0, 0)
    assert recovery.scanned_from > 0
    assert bodies(site.store) == ["a", "b"]


@pytest.mark.parametrize("mode", FlushMode)
def test_a_queue_is_taken_up_to_its_last_message_whether_it_is_durable_or_not(mode: FlushMode) -> None:
    site = Site(replace(SMALL, flush_mode=mode))
    site.open()
    site.append("a", "b", queue_id=3)
    assert [site.store.taken_end("T", queue_id) for queue_id in (0, 3)] == [0, 2]


# -- the end of a simulated process


@pytest.mark.parametrize("replicated", [False, True])
def test_a_killed_store_answers_and_writes_nothing_any_more(replicated: bool) -> None:
    async def slave() -> PutStatus:
        await asyncio.sleep(0.01)
        return PutStatus.PUT_OK

    site = Site(SMALL if replicated else SYNC)
    site.open()
    answers: list[list[PutResult]] = []

    async def main() -> None:
        if replicated:
            site.store.replicate = lambda _end: slave()
        site.store.put_soon([message("a")], answers.append)
        await asyncio.sleep(0.001)
        end = site.store.log_end
        site.store.put_soon([message("b")], answers.append)
        site.store.kill()
        await asyncio.sleep(10)
        assert (answers, site.store.log_end) == ([], end)
        assert not site.store.writable

    run_simulated(main())


def test_slaves_must_have_the_last_message_of_a_turn() -> None:
    site = Site(replace(SMALL, commit_log_segment_bytes=4096))
    site.open()
    ends: list[int] = []

    async def slave() -> PutStatus:
        return PutStatus.PUT_OK

    def replicate(end: int) -> Awaitable[PutStatus]:
        ends.append(end)
        return slave()

    async def main() -> None:
        site.store.replicate = replicate
        answered: asyncio.Future[list[PutResult]] = asyncio.get_running_loop().create_future()
        site.store.put_soon([message("a")], lambda _: None)
        site.store.put_soon([message("b"), message("c")], answered.set_result)
        await answered

    run_simulated(main())
    assert ends == [site.store.log_end]


def test_slaves_confirm_a_large_turn_in_parts_of_a_transfer() -> None:
    site = Site(replace(SMALL, commit_log_segment_bytes=1 << 17, message_bytes_max=1 << 16))
    site.open()
    confirmed: dict[int, asyncio.Future[PutStatus]] = {}
    answered: list[int] = []

    def replicate(end: int) -> Awaitable[PutStatus]:
        confirmed[end] = asyncio.get_running_loop().create_future()
        return confirmed[end]

    def noted(number: int) -> Callable[[list[PutResult]], None]:
        return lambda _: answered.append(number)

    async def main() -> None:
        site.store.replicate = replicate
        body = bytes(15_000)
        for number in range(4):
            site.store.put_soon([structs.replace(message("a"), body=body)], noted(number))
        await asyncio.sleep(0.1)
        size = site.store.log_end // 4
        assert list(confirmed) == [2 * size, 4 * size]
        confirmed[2 * size].set_result(PutStatus.PUT_OK)
        await asyncio.sleep(0.1)
        assert answered == [0, 1]
        confirmed[4 * size].set_result(PutStatus.PUT_OK)
        await asyncio.sleep(0.1)

    run_simulated(main())
    assert answered == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", FlushMode)
def test_a_put_that_does_not_wait_asks_no_slave(mode: FlushMode) -> None:
    site = Site(replace(SMALL, flush_mode=mode))
    site.open()

    def replicate(end: int) -> Awaitable[PutStatus]:
        raise AssertionError(f"asked for {end}")

    async def main() -> list[PutResult]:
        site.store.replicate = replicate
        answered: asyncio.Future[list[PutResult]] = asyncio.get_running_loop().create_future()
        site.store.put_soon([message("a")], answered.set_result, wait=False)
        await answered
        if mode is FlushMode.SYNC_FLUSH:
            return answered.result()
        return await site.store.put_batch([message("b")], wait=False)

    assert [result.status for result in run_simulated(main())] == [PutStatus.PUT_OK]


def test_a_message_without_a_queue_offset_is_stored_with_offset_0() -> None:
    site = Site(SMALL)
    site.open()
    site.append("a", "b")
    prepared = site.store.append(structs.replace(message("half"), sys_flag=0x4))
    site.store.dispatch()
    assert (prepared.queue_offset, prepared.queued) == (0, False)
    data = site.store.record_at(prepared.commit_offset)
    assert data is not None
    assert record.decode(data).queue_offset == 0
    assert site.store.find("T", "half", 9, 0, 1 << 62) == [data]
    assert len(site.store.damage) == 0


# -- the records of a master


def _records(*names: str) -> list[tuple[bytes, StoredMessage]]:
    """Return the records of a master that has these messages."""
    master = Site()
    master.open()
    master.append(*names)
    return [
        (master.store.log_read(stored.commit_offset, stored.size), stored)
        for _, stored in master.store._log.scan(0)
        if stored is not None
    ]


def test_the_records_of_a_transfer_cost_a_slave_one_write_for_each_segment() -> None:
    records = _records(*"abcdefg")
    slave = Site()
    slave.open()
    written: list[int] = []

    def note(step: Step) -> None:
        if step.kind == "write" and "commitlog" in step.path:
            written.append(slave.store.log_end)

    slave.simulated_disk.on_step = note
    slave.store.append_replicated(records)
    first_of_segment = next(each for each in records if each[1].commit_offset == 512)
    end = records[records.index(first_of_segment) - 1][1].commit_offset + first_of_segment[1].size
    assert written == [0, end, end], "the first segment, its filler, the second one"
    assert slave.store.max_offset("T", 0) == 7


def test_a_slave_whose_log_begins_later_begins_its_queues_later() -> None:
    *_, sixth, seventh = records = _records(*"abcdefg")
    first_of_segment = next(each for each in records if each[1].commit_offset == 512)
    slave = Site()
    slave.open()
    slave.store.append_replicated([first_of_segment])
    offset = first_of_segment[1].queue_offset
    assert 0 < offset < sixth[1].queue_offset
    assert (slave.store.log_begin, slave.store.min_offset("T", 0)) == (512, offset)
    slave.store.append_replicated([sixth, seventh][-(6 - offset) :])
    assert slave.store.max_offset("T", 0) == 7
    assert [event.msg_id for event in slave.events if event.kind is Kind.APPEND] == [*"abcdefg"[offset:]]


def test_a_slave_that_lacks_an_entry_becomes_read_only() -> None:
    first, _, third = _records("a", "b", "c")
    slave = Site()
    slave.open()
    slave.store.append_replicated([first])
    with pytest.raises(OSError, match="entry 2 would leave a gap"):
        slave.store.append_replicated([third])
    assert "entry 2 would leave a gap" in slave.store.failure
    with pytest.raises(OSError, match="entry 2 would leave a gap"):
        slave.store.append_replicated([third])


def test_a_disk_that_fails_makes_a_slave_read_only() -> None:
    slave = Site()
    slave.open()
    slave.simulated_disk.on_step = _refuse("write", "commitlog")
    with pytest.raises(OSError, match="Input/output error"):
        slave.store.append_replicated(_records("a"))
    assert "Input/output error" in slave.store.failure


def test_a_store_that_is_not_started_takes_no_records_of_a_master() -> None:
    slave = Site()
    slave.made().load()
    with pytest.raises(OSError, match="the store is not started, or its disk is nearly full"):
        slave.store.append_replicated(_records("a"))
    assert slave.store.log_end == 0


@pytest.mark.parametrize("mode", FlushMode)
def test_a_slave_shows_records_when_they_are_as_durable_as_its_flush_mode_says(mode: FlushMode) -> None:
    slave = Site(replace(SMALL, flush_mode=mode))
    slave.open()
    slave.store.append_replicated(_records("a"))
    is_sync = mode is FlushMode.SYNC_FLUSH
    assert slave.store._flusher.wanted.is_set() is is_sync
    assert slave.store.max_offset("T", 0) == (not is_sync)
    result_of(slave.store.flush_log())
    assert bodies(slave.store) == ["a"]


def test_deletions_that_cannot_be_adjusted_to_the_log_refuse_the_start() -> None:
    site = Site()
    site.open()
    site.append("a")
    site.store.delete_topic("T")
    site.simulated_disk.lose_power()
    site.made().load()
    site.simulated_disk.on_step = _refuse("write", "deletedTopics")
    with pytest.raises(StoreError, match=r"store/config/deletedTopics.json: .*Input/output error"):
        site.store.begin()


def test_a_topic_whose_queue_cannot_be_removed_makes_the_store_read_only() -> None:
    site = Site()
    site.open()
    site.append("a")
    site.simulated_disk.on_step = _refuse("remove", "consumequeue")
    with pytest.raises(OSError, match="Input/output error"):
        site.store.delete_topic("T")
    assert "Input/output error" in site.store.failure


@pytest.mark.parametrize(
    ("less", "dispatched"), [(0, [2, 1, 0]), (1, [2, 0, 1]), (-1, [2, 1, 0])], ids=["at", "before", "after"]
)
def test_a_record_is_dispatched_once_the_log_is_durable_up_to_its_end(
    less: int, dispatched: list[int]
) -> None:
    site = Site(SYNC)
    site.open()
    (*_, second, third, _) = [site.store.append(message(name)) for name in "abcd"]
    found = []
    for flushed in (second.end, third.end - less, third.end):
        site.store._log.flushed = flushed
        found.append(site.store.dispatch())
    assert found == dispatched
    assert site.store.max_offset("T", 0) == 3
    assert site.store.dispatched_end == third.end

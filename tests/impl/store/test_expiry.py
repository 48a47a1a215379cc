"""Tests the deletion of old segments: the choice, the time, the related files, and crashes in between.

Source: docs/reference/protocol/recovery.md, "Expiry".
"""

import asyncio
import errno
import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.clock import local_hour
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import GetStatus, PutStatus
from tests.impl.store.site import SMALL, Site, message

HOUR_MS = 3_600_000
CONFIG = replace(SMALL, delete_when_hours=(), file_reserved_ms=10 * HOUR_MS)
"""The configuration deletes no segment because of the hour; a test must request it."""
PLENTY = Space(100, 90)


def _written(hours: int = 12) -> Site:
    """Write four records per hour, two to queue 0 and one each to queues 1 and 2; queue 2 only at first."""
    site = Site(CONFIG)
    site.simulated_disk.room = PLENTY
    site.open()
    for hour in range(hours):
        site.append(f"h{hour}a", f"h{hour}b")
        site.append(f"h{hour}c", queue_id=1)
        site.append(f"h{hour}d", queue_id=2 if hour < 2 else 1)
        site.clock.advance_ms(HOUR_MS)
    site.flush()
    return site


def clean(site: Site, **how: bool) -> int:
    return result_of(site.store.clean(**how))


def readable(store: MessageStore, queue_id: int) -> list[str]:
    """Return the bodies from the queue's first offset on. Checks that offsets have no gaps."""
    found: list[str] = []
    first = store.min_offset("T", queue_id)
    while (result := store.get("T", queue_id, first + len(found))).status is GetStatus.FOUND:
        for data in result.records:
            stored = record.decode(data)
            assert stored.queue_offset == first + len(found)
            found.append(stored.message.body.decode())
    assert first + len(found) == store.max_offset("T", queue_id)
    return found


def in_log(store: MessageStore, queue_id: int) -> list[str]:
    """Return the bodies of the queue's records in the log."""
    records = (stored for _, stored in store._log.scan(store.log_begin) if stored is not None)
    return [each.message.body.decode() for each in records if each.message.queue_id == queue_id]


def check_whole(site: Site) -> None:
    """Check that each queue has the records of the log, and that each of its messages is in the index."""
    store = site.store
    for queue_id in range(3):
        bodies = in_log(store, queue_id)
        assert readable(store, queue_id) == bodies
        assert all(len(store.find("T", body, 10, 0, 1 << 62)) == 1 for body in bodies)


def test_segments_are_deleted_when_the_next_one_is_old_enough() -> None:
    site = _written()
    before = site.disk.names("store/commitlog")
    assert len(before) > 8
    assert clean(site) == 0, "it is not the hour"
    deleted = clean(site, manually=True)
    assert site.disk.names("store/commitlog") == before[deleted:]
    first = record.decode(site.store.get("T", 0, site.store.min_offset("T", 0)).records[0])
    now_ms = site.store.now_ms()
    assert now_ms - first.store_timestamp_ms >= 9 * HOUR_MS, "not too early"
    assert 0 < deleted < 4
    check_whole(site)
    assert clean(site, manually=True) == 0


def test_the_last_segment_is_never_deleted() -> None:
    site = _written()
    site.clock.advance_ms(1000 * HOUR_MS)
    total = sum(clean(site, manually=True) for _ in range(5))
    assert len(site.disk.names("store/commitlog")) == 1
    assert total > 8
    check_whole(site)
    assert site.append("new")[0].queue_offset == 24


def test_at_most_ten_segments_are_deleted_in_one_round() -> None:
    site = _written(hours=40)
    site.clock.advance_ms(1000 * HOUR_MS)
    assert clean(site, manually=True) == 10


@pytest.mark.parametrize(
    ("needed", "begin", "wanted"),
    [
        ([], 10, 0),
        ([lambda _: None], 10, 0),
        ([lambda starts: starts[3]], 3, 10),
        ([lambda starts: starts[3] - 1], 2, 10),
        ([lambda starts: starts[4] - 1, lambda starts: starts[9], lambda _: None], 3, 10),
        ([lambda starts: starts[10] - 1], 9, 10),
        ([lambda starts: starts[10]], 10, 0),
        ([lambda starts: starts[11]], 10, 0),
        ([lambda _: 0], 0, 10),
        ([lambda _: -1], 0, 10),
    ],
)
def test_no_segment_with_a_record_that_a_reader_needs_is_deleted(
    needed: list[Callable[[tuple[int, ...]], int | None]], begin: int, wanted: int
) -> None:
    site = _written()
    site.clock.advance_ms(1000 * HOUR_MS)
    starts = site.store._log.segments.starts
    assert len(starts) > 11
    for number, needed_from in enumerate(needed):
        site.store.keep_log_from(str(number), partial(needed_from, starts))
    assert clean(site, manually=True) == begin
    assert site.store.log_begin == starts[begin]
    assert site.store.log_wanted_before == (starts[wanted] if wanted else 0)
    if begin == 10:
        site.store.keep_log_from("late", lambda: 0)
        clean(site)
        assert site.store.log_wanted_before == 0, "nothing is deleted at this hour"


@pytest.mark.parametrize(("more", "count"), [(0, 5), (-1, 4)])
def test_a_log_is_kept_from_where_its_other_copies_need_it(
    more: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = _written()
    site.clock.advance_ms(1000 * HOUR_MS)
    starts = site.store._log.segments.starts
    monkeypatch.setattr(CommitLog, "needed_from", starts[5] + more)
    assert clean(site, manually=True) == count


def test_a_disk_that_fails_while_segments_are_deleted_makes_the_store_read_only() -> None:
    site = _written()

    def fail(step: Step) -> None:
        if step.kind == "remove":
            raise OSError(errno.EIO, "Input/output error", step.path)

    site.simulated_disk.on_step = fail
    assert clean(site, manually=True) == 0
    assert "Input/output error" in site.store.failure
    assert not site.store.writable


def test_expired_segments_are_deleted_at_the_configured_hours() -> None:
    site = _written()
    this_hour = local_hour(site.store.now_ms())
    site.store.config = replace(CONFIG, delete_when_hours=((this_hour + 1) % 24,))
    assert clean(site) == 0
    site.store.config = replace(CONFIG, delete_when_hours=(this_hour,))
    assert clean(site) > 0


@pytest.mark.parametrize(
    ("free", "reserved_h", "deletes"), [(26, 1, False), (24, 1, True), (24, 100, False), (14, 100, True)]
)
def test_a_fuller_disk_deletes_old_segments_and_a_very_full_one_all_segments(
    free: int, reserved_h: int, deletes: bool
) -> None:
    site = _written()
    site.store.config = replace(CONFIG, file_reserved_ms=reserved_h * HOUR_MS)
    site.simulated_disk.room = Space(100, free)
    assert (clean(site) > 0) is deletes


def test_young_segments_are_not_deleted_if_forced_deletion_is_off() -> None:
    site = _written()
    site.store.config = replace(CONFIG, file_reserved_ms=100 * HOUR_MS, clean_forcibly=False)
    site.simulated_disk.room = Space(100, 1)
    assert clean(site) == 0


def test_a_nearly_full_disk_stores_nothing_until_there_is_space_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = _written()
    site.store.config = replace(CONFIG, clean_forcibly=False)
    site.simulated_disk.room = Space(100, 9)
    clean(site)
    clean(site)
    result = result_of(site.store.put(message("no")))
    assert (result.status, result.reason) == (PutStatus.SERVICE_NOT_AVAILABLE, "the disk is nearly full")
    is_full = [site.store.is_disk_full]
    site.store.failure = "the disk failed"
    is_full.append(site.store.is_disk_full)
    assert is_full == [True, False], "after a failure, messages are not refused for now, but for good"
    site.store.failure = ""
    site.simulated_disk.room = Space(100, 10)
    clean(site)
    clean(site)
    assert result_of(site.store.put(message("yes"))).status is PutStatus.PUT_OK
    assert caplog.messages == [
        "store: the disk is 91.0 % full, more than 90 %: messages are refused until space is free",
        "store: the disk is 90.0 % full: messages are accepted again, no restart is needed",
    ]


def test_nothing_is_deleted_before_the_queues_are_durable() -> None:
    """A crash could remove all remaining entries, and the offsets with them."""
    site = Site(CONFIG)
    site.simulated_disk.room = PLENTY
    site.open()
    site.append(*(str(number) for number in range(12)))
    site.clock.advance_ms(20 * HOUR_MS)
    assert clean(site, manually=True) == 0
    result_of(site.store.flush_log())
    assert clean(site, manually=True) > 0


def test_no_reader_is_directed_to_a_segment_that_is_being_deleted() -> None:
    site = _written()
    begins = []

    def look(step: Step) -> None:
        if step.kind == "remove" and "commitlog" in step.path:
            begins.append((site.store.min_offset("T", 0), site.store.get("T", 0, 0).status))

    site.simulated_disk.on_step = look
    clean(site, manually=True)
    assert begins
    assert all(begin > 0 and status is GetStatus.OFFSET_TOO_SMALL for begin, status in begins)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_queue_files_stay_while_the_checkpoint_that_counts_their_entries_cannot_be_replaced(
    code: int,
) -> None:
    site = _written()
    before = site.disk.names("store/consumequeue/T/0")

    def fail(step: Step) -> None:
        if "checkpoint" in step.path:
            raise OSError(code, os.strerror(code), step.path)

    site.simulated_disk.on_step = fail
    assert clean(site, manually=True) > 0
    site.simulated_disk.on_step = None
    assert site.disk.names("store/consumequeue/T/0") == before
    assert bool(site.store.failure) is (code == errno.EIO)
    if code == errno.ENOSPC:
        clean(site, manually=True)
        assert len(site.disk.names("store/consumequeue/T/0")) < len(before)
    site.reopen_after_process_crash()
    check_whole(site)


def test_a_read_below_the_new_beginning_returns_the_new_beginning() -> None:
    site = _written()
    clean(site, manually=True)
    first = site.store.min_offset("T", 0)
    assert first > 0
    result = site.store.get("T", 0, 0)
    assert (result.status, result.next_offset, result.min_offset) == (
        GetStatus.OFFSET_TOO_SMALL,
        first,
        first,
    )


def test_a_queue_without_remaining_messages_keeps_its_offsets() -> None:
    site = _written()
    clean(site, manually=True)
    assert (site.store.min_offset("T", 2), site.store.max_offset("T", 2)) == (2, 2)
    site.reopen_after_process_crash()
    assert (site.store.min_offset("T", 2), site.store.max_offset("T", 2)) == (2, 2)
    assert site.append("again", queue_id=2)[0].queue_offset == 2
    check_whole(site)


def test_files_of_queues_and_index_are_deleted_with_the_log() -> None:
    site = _written()
    before = {name: len(site.disk.names(f"store/{name}")) for name in ("consumequeue/T/0", "index")}
    site.clock.advance_ms(100 * HOUR_MS)
    clean(site, manually=True)
    after = {name: len(site.disk.names(f"store/{name}")) for name in before}
    assert all(0 < after[name] < before[name] for name in before)


@pytest.mark.parametrize("clean_exit", [True, False])
def test_a_restart_finds_the_same_and_rebuilds_nothing(clean_exit: bool) -> None:
    site = _written()
    clean(site, manually=True)
    begins = [site.store.min_offset("T", queue_id) for queue_id in range(3)]
    if clean_exit:
        site.close()
        site.open()
    else:
        site.reopen_after_power_loss()
    assert [site.store.min_offset("T", queue_id) for queue_id in range(3)] == begins
    assert site.recovery.scanned_from > site.store.log_begin
    assert site.recovery.redispatched == 0
    check_whole(site)


def test_a_crash_at_every_step_of_a_deletion_leaves_an_undamaged_store() -> None:
    template = _written()
    site = template
    for steps in range(1, 200):
        site = Site(CONFIG, template.simulated_disk.copy())
        site.clock.advance_ms(12 * HOUR_MS)
        site.simulated_disk.crash_process()
        site.open()
        site.append("last")
        disk = site.simulated_disk
        last = disk.steps + steps

        def crash(step: Step, disk: SimulatedDisk = disk, last: int = last) -> None:
            if disk.steps > last:
                raise SimulatedCrashError

        disk.on_step = crash
        try:
            clean(site, manually=True)
            done = True
        except SimulatedCrashError:
            done = False
        disk.on_step = None
        disk.crash_os(random.Random(steps))
        site.open()
        check_whole(site)
        clean(site, manually=True)
        check_whole(site)
        site.append("more", queue_id=2)
        check_whole(site)
        if done:
            assert steps > 5
            return
    raise AssertionError("deleting does not end")


@pytest.mark.parametrize("lost", ["all", "queue 0", "index"])
def test_queues_are_rebuilt_from_a_log_that_lost_its_beginning(lost: str) -> None:
    site = _written()
    clean(site, manually=True)
    site.append("late", queue_id=2)
    site.flush()
    ends = [site.store.max_offset("T", queue_id) for queue_id in range(3)]
    site.close()
    folders = {
        "all": [f"consumequeue/T/{queue_id}" for queue_id in range(3)],
        "queue 0": ["consumequeue/T/0"],
        "index": ["index"],
    }[lost]
    for folder in folders:
        for name in site.disk.names(f"store/{folder}"):
            site.disk.remove(f"store/{folder}/{name}")
    site.open()
    check_whole(site)
    assert [site.store.max_offset("T", queue_id) for queue_id in range(3)] == ends
    site.append("on")
    check_whole(site)
    site.close()
    site.open()
    check_whole(site)


def test_a_queue_that_begins_within_a_segment_has_blank_entries_before_it() -> None:
    site = _written()
    clean(site, manually=True)
    first = site.store.min_offset("T", 0)
    assert first % 3, "the queue begins with a segment: nothing is tested"
    site.close()
    for name in site.disk.names("store/consumequeue/T/0"):
        site.disk.remove(f"store/consumequeue/T/0/{name}")
    site.open()
    blank = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)
    file = site.disk.open(f"store/consumequeue/T/0/{first // 3 * 60:020d}")
    assert file.read(0, first % 3 * 20) == blank * (first % 3)


def test_a_key_of_a_deleted_message_is_not_found() -> None:
    site = _written()
    assert len(site.store.find("T", "h0a", 10, 0, 1 << 62)) == 1
    clean(site, manually=True)
    assert site.store.find("T", "h0a", 10, 0, 1 << 62) == []


def test_under_load_segments_are_deleted_periodically() -> None:
    loop = SimulatedLoop()
    config = replace(
        CONFIG,
        flush_mode=FlushMode.SYNC_FLUSH,
        delete_when_hours=tuple(range(24)),
        file_reserved_ms=20_000,
        sync_flush_timeout_ms=1000,
    )

    async def main() -> None:
        store = MessageStore("store", config, simulated(loop, SimulatedNetwork(), seed=3))
        store.load()
        await store.start()
        for number in range(300):
            result = await store.put(Message("T", f"m{number}".encode(), {"UNIQ_KEY": f"k{number}"}))
            assert result.status is PutStatus.PUT_OK, store.failure
            await asyncio.sleep(0.3)
        assert store.min_offset("T", 0) > 150
        assert readable(store, 0) == in_log(store, 0)
        await store.stop()
        assert not store.failure

    run_simulated(main(), loop)

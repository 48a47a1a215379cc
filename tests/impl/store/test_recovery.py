"""Tests recovery case by case: torn and stale data after the end, queues ahead or behind, old checkpoints.

Source: docs/reference/protocol/recovery.md, "Recovery". Method: create each damage on a simulated disk, open
the store again, check it.
"""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.impl.remoting.message import SYS_TRANSACTION_PREPARED, Message
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.simulated_disk import Image, SimulatedCrashError, Step
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.damage import DamageKind, Outcome
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import DISTRUST, Checkpoint, read_checkpoint
from mqproof.impl.store.files.consume_queue import Unit
from mqproof.spec.events import Kind, encode, read_log
from tests.impl.store.site import SMALL, Site, bodies, message, stored_messages

NAMES = [f"m{number}" for number in range(9)]


def _opened(*names: str, durable: bool = True) -> Site:
    site = Site()
    site.open()
    site.append(*names)
    if durable:
        site.flush()
    return site


def _remove_directory(site: Site, directory: str) -> None:
    for name in site.disk.names(directory):
        path = f"{directory}/{name}"
        if site.disk.is_directory(path):
            _remove_directory(site, path)
        else:
            site.disk.remove(path)
            site.disk.sync_directory(directory)


def test_an_empty_directory_becomes_an_empty_store() -> None:
    site = Site()
    site.open()
    assert not site.recovery.abnormal
    assert (site.recovery.recovered_end, site.store.log_end) == (0, 0)
    assert site.disk.names("store") == ["abort"]


def test_after_a_clean_exit_nothing_is_cut_or_dispatched_again() -> None:
    site = _opened(*NAMES)
    end = site.store.log_end
    site.close()
    site.open()
    recovery = site.recovery
    assert (recovery.abnormal, recovery.recovered_end, recovery.truncated_bytes) == (False, end, 0)
    assert (recovery.redispatched, recovery.queue_entries_cut) == (0, 0)
    assert site.append("next")[0].queue_offset == len(NAMES)
    assert bodies(site.store) == [*NAMES, "next"]


def test_a_killed_process_loses_nothing() -> None:
    site = _opened(*NAMES, durable=False)
    site.reopen_after_process_crash()
    assert site.recovery.abnormal
    assert bodies(site.store) == NAMES


def test_a_power_loss_keeps_flushed_messages_and_offsets_continue_there() -> None:
    site = _opened(*NAMES)
    site.append("lost", "too")
    site.reopen_after_power_loss()
    assert bodies(site.store) == NAMES
    again = site.append("again")[0]
    assert (again.queue_offset, again.commit_offset) == (len(NAMES), site.recovery.recovered_end)


def test_the_events_of_a_recovery_are_in_order() -> None:
    site = _opened("a", "b")
    appended = site.append("c")[0]
    log = next(name for name in site.simulated_disk.unsynced().contents if "commitlog" in name)
    site.events.clear()
    site.simulated_disk.crash_os(Image(contents={log: 50}))
    site.open()
    assert [event.kind for event in site.events] == [Kind.CRASH, Kind.TRUNCATE, Kind.RECOVER]
    crash, truncate, recover = site.events
    assert crash.attrs["kind"] == "unknown"
    assert (truncate.commit_offset, recover.commit_offset) == (appended.commit_offset, appended.commit_offset)
    assert truncate.attrs["bytes"] == str(site.recovery.truncated_bytes)
    assert 0 < site.recovery.truncated_bytes <= 50


def test_records_of_two_segments_without_events_are_logged(tmp_path: Path) -> None:
    names = "abcdefgh"
    site = _opened(*names)
    assert site.store.log_end > SMALL.commit_log_segment_bytes, "a filler is between the records"
    file = tmp_path / "events.ndjson"
    with file.open("wb") as lines:
        lines.writelines(encode(event) for event in site.events if event.msg_id in ("", "a"))
    site.to_file(file)
    site.reopen_after_process_crash()
    appended = [event.msg_id for event in read_log(file) if event.kind is Kind.APPEND]
    assert appended == list(names)


def test_a_record_whose_event_was_prevented_by_a_kill_is_logged_before_the_crash_event(
    tmp_path: Path,
) -> None:
    site = _opened("a", "b")
    file = tmp_path / "events.ndjson"
    with file.open("wb") as lines:
        lines.writelines(encode(event) for event in site.events if event.msg_id != "b")
    site.to_file(file)
    site.reopen_after_process_crash()
    events = list(read_log(file))
    assert [event.kind for event in events[-3:]] == [Kind.APPEND, Kind.CRASH, Kind.RECOVER]
    assert (events[-3].msg_id, events[-3].queue_offset) == ("b", 1)
    site.reopen_after_process_crash()
    assert [event.kind for event in read_log(file)][-2:] == [Kind.CRASH, Kind.RECOVER]


def test_the_recover_event_has_the_configuration_of_the_broker() -> None:
    site = _opened("a")
    site.reopen_after_process_crash()
    assert site.events[-1].attrs == {"abnormal": "true", "flush_disk_type": "ASYNC_FLUSH"}


def test_redispatched_entries_are_logged() -> None:
    site = Site(replace(SMALL, flush_mode=FlushMode.SYNC_FLUSH))
    site.open()
    site.append("a", "b")
    site.events.clear()
    site.reopen_after_process_crash()
    kinds = [event.kind for event in site.events]
    assert kinds == [Kind.CRASH, Kind.DISPATCH, Kind.DISPATCH, Kind.RECOVER]
    assert site.recovery.redispatched == 2


def test_every_torn_version_of_the_last_record_is_cut_to_the_record_before() -> None:
    site = _opened("a", "b")
    last = site.append("c")[0]
    log = next(name for name in site.simulated_disk.unsynced().contents if "commitlog" in name)
    for kept in range(last.size + 1):
        torn = Site(disk=site.simulated_disk.copy())
        torn.simulated_disk.crash_os(Image(contents={log: kept}))
        torn.open()
        expected = ["a", "b", "c"] if kept == last.size else ["a", "b"]
        assert bodies(torn.store) == expected, f"{kept} of {last.size} bytes kept"
        assert torn.store.log_end == (last.end if kept == last.size else last.commit_offset)


def test_a_record_with_a_damaged_body_is_cut() -> None:
    site = _opened("a", "b", durable=False)
    last = stored_messages(site.store)[-1]
    log = site.disk.open(f"store/commitlog/{0:020d}")
    log.write(last.commit_offset + 88, b"X")
    site.reopen_after_process_crash()
    assert bodies(site.store) == ["a"]


def test_every_cut_of_the_unflushed_log_recovers_a_prefix() -> None:
    site = Site()
    site.open()
    site.append("durable")
    site.flush()
    appended = site.append(*NAMES[:3])
    log = next(name for name in site.simulated_disk.unsynced().contents if "commitlog" in name)
    for kept in range(site.simulated_disk.unsynced().contents[log] + 1):
        cut = Site(disk=site.simulated_disk.copy())
        cut.simulated_disk.crash_os(Image(contents={log: kept}))
        cut.open()
        whole = [a for a in appended if a.end <= appended[0].commit_offset + kept]
        assert bodies(cut.store) == ["durable", *NAMES[: len(whole)]]


def test_a_stale_record_after_a_torn_one_does_not_reappear() -> None:
    """A stale record with the length of the torn one must not reappear.

    First run: two records reach the disk, the first of them torn. Second run: a record of the same length
    replaces the torn one. Third run: the data after it must not reappear.
    """
    site = _opened("durable")
    torn, stale = site.append("torn", "stale")
    result_of(site.store.flush_log())
    log = site.disk.open(f"store/commitlog/{0:020d}")
    log.write(torn.commit_offset + 88, b"\xff")
    log.sync()
    site.reopen_after_power_loss()
    assert bodies(site.store) == ["durable"]
    replacement = site.append("TORN")[0]
    assert (replacement.commit_offset, replacement.end) == (torn.commit_offset, stale.commit_offset)
    site.flush()
    site.reopen_after_power_loss()
    assert bodies(site.store) == ["durable", "TORN"]


def test_a_stale_segment_does_not_reappear_when_the_crash_undoes_its_removal() -> None:
    site = _opened(*NAMES, durable=False)
    result_of(site.store.flush_log())
    first_segment = [stored for stored in stored_messages(site.store) if stored.commit_offset < 512]
    log = site.disk.open(f"store/commitlog/{0:020d}")
    log.write(first_segment[-1].commit_offset + 4, b"\0")
    log.sync()
    site.reopen_after_power_loss()
    assert bodies(site.store) == NAMES[: len(first_segment) - 1]
    assert site.disk.names("store/commitlog") == [f"{0:020d}"]
    site.reopen_after_power_loss()
    assert site.disk.names("store/commitlog") == [f"{0:020d}"]
    site.append("again")
    site.flush()
    site.reopen_after_power_loss()
    assert bodies(site.store) == [*NAMES[: len(first_segment) - 1], "again"]


def test_a_complete_record_at_the_wrong_position_is_refused() -> None:
    site = _opened("a", "b")
    at = site.store.commit_offset_at("T", 0, 1)
    assert at is not None
    data = site.store.record_at(at)
    assert data is not None
    log, end = site.disk.open(f"store/commitlog/{0:020d}"), site.store.log_end
    log.write(end, data)
    log.sync()
    site.reopen_after_power_loss()
    assert (bodies(site.store), site.store.log_end) == (["a", "b"], end)


def test_queues_that_are_ahead_of_the_log_are_cut() -> None:
    site = _opened("a")
    site.append("b", "c")
    result_of(site.store.flush_queues())
    site.reopen_after_power_loss()
    assert site.recovery.queue_entries_cut == 2
    assert site.store.max_offset("T", 0) == 1
    assert site.append("d")[0].queue_offset == 1
    assert bodies(site.store) == ["a", "d"]


def test_queues_that_lag_are_completed() -> None:
    site = _opened("a")
    site.append("b", "c")
    site.append("x", queue_id=1)
    result_of(site.store.flush_log())
    site.reopen_after_power_loss()
    assert site.recovery.redispatched == 3
    assert bodies(site.store) == ["a", "b", "c"]
    assert bodies(site.store, queue_id=1) == ["x"]


def test_every_torn_queue_entry_is_rewritten() -> None:
    site = _opened("a")
    site.store.append(message("b", TAGS="TagA"))
    site.store.dispatch()
    result_of(site.store.flush_log())
    queue = next(name for name in site.simulated_disk.unsynced().contents if "consumequeue" in name)
    for kept in range(20 + 1):
        torn = Site(disk=site.simulated_disk.copy())
        torn.simulated_disk.crash_os(Image(contents={queue: kept}))
        torn.open()
        assert bodies(torn.store) == ["a", "b"]
        assert len(torn.store.get("T", 0, 0, tag_codes={2598919}).records) == 1


@pytest.mark.parametrize("clean", [True, False])
def test_all_missing_queue_files_are_rebuilt(clean: bool) -> None:
    site = _opened(*NAMES)
    site.append("x", "y", queue_id=1)
    site.clock.advance_ms(60_000)
    site.flush()
    if clean:
        site.close()
    else:
        site.simulated_disk.crash_process()
    _remove_directory(site, "store/consumequeue")
    site.open()
    assert (bodies(site.store), bodies(site.store, queue_id=1)) == (NAMES, ["x", "y"])


def test_a_missing_queue_with_a_later_record_is_rebuilt_from_the_beginning() -> None:
    site = _opened(*NAMES)
    site.append("x", "y", queue_id=1)
    site.flush()
    site.clock.advance_ms(60_000)
    site.append(*NAMES, queue_id=1)
    site.flush()
    site.simulated_disk.crash_process()
    _remove_directory(site, "store/consumequeue/T/1")
    site.open()
    assert bodies(site.store, queue_id=1) == ["x", "y", *NAMES]


def test_a_wrong_entry_that_points_into_the_log_is_overwritten() -> None:
    site = _opened("a", "b", "c", durable=False)
    queue = site.disk.open(f"store/consumequeue/T/0/{0:020d}")
    queue.write(20, b"\0" * 7 + b"\x05")
    site.reopen_after_process_crash()
    assert bodies(site.store) == ["a", "b", "c"]
    assert site.recovery.redispatched == 1


@pytest.mark.parametrize("to", [0, 103])
def test_a_damaged_last_entry_is_cut_and_written_again(to: int) -> None:
    """Its record is sound, at another place."""
    site = _opened("a", "b", "c")
    site.simulated_disk.crash_process()
    site.disk.open(f"store/consumequeue/T/0/{0:020d}").write(40, to.to_bytes(8, "big"))
    site.open()
    assert (site.recovery.queue_entries_cut, site.recovery.redispatched) == (1, 1)
    assert bodies(site.store) == ["a", "b", "c"]


def test_a_surplus_entry_that_points_into_the_log_is_cut() -> None:
    site = _opened("a", "b")
    queue = site.disk.open(f"store/consumequeue/T/0/{0:020d}")
    queue.write(40, queue.read(0, 20))
    site.reopen_after_process_crash()
    assert bodies(site.store) == ["a", "b"]
    assert site.append("c")[0].queue_offset == 2


def test_an_entry_that_a_torn_cut_partly_zeroed_is_cut() -> None:
    site = _opened("a")
    site.append("b", queue_id=1)
    result_of(site.store.flush_queues())
    site.simulated_disk.lose_power()
    queue = site.disk.open(f"store/consumequeue/T/1/{0:020d}")
    for zeroed in range(20):
        queue.write(0, bytes(zeroed))
        torn = Site(disk=site.simulated_disk.copy())
        torn.open()
        assert bodies(torn.store, queue_id=1) == []
        assert torn.append("c", queue_id=1)[0].queue_offset == 0


def _aged_site() -> Site:
    """Write three segments, each an hour apart, all durable and in the checkpoint."""
    site = Site()
    site.open()
    for hour in range(3):
        site.append(*(f"h{hour}m{number}" for number in range(4)))
        site.flush()
        site.clock.advance_ms(3_600_000)
    assert len(site.disk.names("store/commitlog")) == 3
    return site


def test_recovery_starts_at_the_last_record_that_the_checkpoint_counted() -> None:
    site = _aged_site()
    counted = site.append("counted", queue_id=1)[0]
    site.flush()
    site.append("late")
    site.reopen_after_process_crash()
    assert site.recovery.scanned_from == counted.commit_offset
    assert bodies(site.store)[-1] == "late"
    assert len(bodies(site.store)) == 13
    assert site.append("next")[0].store_timestamp_ms >= counted.store_timestamp_ms


@pytest.mark.parametrize("queue_ids", [(0, 1, 2), (2, 1, 0)])
def test_recovery_starts_at_the_newest_record_whichever_queue_has_it(queue_ids: tuple[int, ...]) -> None:
    site = Site()
    site.open()
    *_, newest = [site.append(f"m{queue_id}", queue_id=queue_id)[0] for queue_id in queue_ids]
    site.flush()
    site.reopen_after_process_crash()
    assert site.recovery.scanned_from == newest.commit_offset
    assert site.store.log_last_record == newest.commit_offset
    assert site.store._log.store_timestamp_ms == newest.store_timestamp_ms


@pytest.mark.parametrize("damage", ["no entries", "an entry of another record", "no such record"])
def test_recovery_starts_earlier_if_no_entry_points_to_the_last_counted_record(damage: str) -> None:
    site = _aged_site()
    counted = site.append("counted", queue_id=1)[0]
    site.flush()
    site.simulated_disk.crash_process()
    path = f"store/consumequeue/T/1/{0:020d}"
    if damage == "no entries":
        _remove_directory(site, "store/consumequeue/T/1")
    elif damage == "an entry of another record":
        site.disk.open(path).write(0, (5).to_bytes(8, "big"))
    else:
        assert counted.commit_offset == 1536
        site.disk.open(f"store/commitlog/{1536:020d}").write(88, b"\xff")
    site.open()
    assert site.recovery.scanned_from < counted.commit_offset
    assert len(bodies(site.store)) == 12
    assert bodies(site.store, queue_id=1) == ([] if damage == "no such record" else ["counted"])


def test_without_a_count_recovery_starts_at_the_newest_segment_that_the_times_cover() -> None:
    site = _aged_site()
    site.append("late")
    site.flush()
    write_durably(site.disk, "store/checkpoint", Checkpoint(now_ms(site.clock), now_ms(site.clock)).encode())
    site.reopen_after_power_loss()
    assert site.recovery.scanned_from == 1024
    assert len(bodies(site.store)) == 13


def test_a_recovery_without_new_data_does_not_lower_the_next_checkpoint() -> None:
    site = _aged_site()
    site.close()
    before = read_checkpoint(site.disk, "store/checkpoint")
    site.open()
    site.flush()
    assert read_checkpoint(site.disk, "store/checkpoint") == before


@pytest.mark.parametrize("hours", [0, 1, 2])
def test_an_old_checkpoint_only_makes_recovery_start_earlier(hours: int) -> None:
    site = _aged_site()
    first_ms = stored_messages(site.store)[0].store_timestamp_ms
    old = first_ms + hours * 3_600_000 + 5_000
    write_durably(site.disk, "store/checkpoint", Checkpoint(old, old).encode())
    site.reopen_after_power_loss()
    assert site.recovery.scanned_from == hours * 512
    assert len(bodies(site.store)) == 12


def test_the_checkpoint_does_not_cover_unsynced_entries() -> None:
    site = _opened("first")
    for hour in range(3):  # each hour has its own segment; queue 1 has entries of the first hour only
        names = [f"h{hour}m{number}" for number in range(4 if hour else 3)]
        site.append(*names, queue_id=2 if hour else 1)
        result_of(site.store.flush_log())
        site.clock.advance_ms(3_600_000)
    result_of(site.store.write_checkpoint())
    site.reopen_after_power_loss()
    assert bodies(site.store, queue_id=1) == ["h0m0", "h0m1", "h0m2"]


@pytest.mark.parametrize("left", [None, b"", b"\xff" * 10])
def test_a_lost_checkpoint_makes_recovery_start_at_the_beginning(left: bytes | None) -> None:
    site = _aged_site()
    site.disk.remove("store/checkpoint")
    site.disk.sync_directory("store")
    if left is not None:
        write_durably(site.disk, "store/checkpoint", left)
    site.reopen_after_power_loss()
    assert site.recovery.scanned_from == 0
    assert len(bodies(site.store)) == 12


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_without_queues_and_the_start_of_the_log_a_queue_begins_where_the_log_does(
    has_checkpoint: bool,
) -> None:
    """A checkpoint that distrusts the queues says nothing about the log either."""
    site = _aged_site()
    site.close()
    site.disk.remove(f"store/commitlog/{0:020d}")
    site.disk.remove("store/checkpoint")
    if has_checkpoint:
        write_durably(site.disk, "store/checkpoint", Checkpoint(1, 1, 1, DISTRUST).encode())
    _remove_directory(site, "store/consumequeue")
    store = site.open()
    assert store.min_offset("T", 0) == 4
    assert record.decode(store.get("T", 0, 4).records[0]).queue_offset == 4


def test_of_two_records_with_the_same_offset_the_first_always_counts() -> None:
    """No checksum covers the offset. Each recovery must choose the same record."""
    site = _opened("a", "b", "c", durable=False)
    last = stored_messages(site.store)[2].commit_offset
    site.disk.open(f"store/commitlog/{0:020d}").write(last + 20, (1).to_bytes(8, "big"))
    for _ in range(2):
        site.reopen_after_process_crash()
        assert bodies(site.store) == ["a", "b"]
        assert site.recovery.redispatched == 0
    assert site.append("d")[0].queue_offset == 2


def test_a_record_with_the_offset_of_one_before_the_start_changes_no_entry() -> None:
    """No checksum covers the offset, and the scan does not see the record that has it."""
    site = _opened("a", "b")
    site.append("c", queue_id=1)
    site.flush()
    last = site.append("d")[0].commit_offset
    site.disk.open(f"store/commitlog/{0:020d}").write(last + 20, (1).to_bytes(8, "big"))
    for _ in range(2):
        site.reopen_after_process_crash()
        assert site.recovery.scanned_from > 0
        assert bodies(site.store) == ["a", "b"]
        assert site.recovery.redispatched == 0


def test_a_gap_between_the_offsets_of_a_queue_is_refused_by_name() -> None:
    site = _opened("a", "b", "c", durable=False)
    second = stored_messages(site.store)[1].commit_offset
    site.disk.open(f"store/commitlog/{0:020d}").write(second + 20, (7).to_bytes(8, "big"))
    site.simulated_disk.crash_process()
    with pytest.raises(StoreError, match=r"T/0: the queue goes from 0 to 3, entry 7 would leave a gap"):
        site.open()


def test_a_start_is_refused_again_if_the_log_has_fewer_offsets_than_were_counted() -> None:
    site = _opened("a", "b", "c", durable=False)
    last = stored_messages(site.store)[2].commit_offset
    site.append("d", queue_id=1)
    site.flush()
    site.append("e", queue_id=1)
    site.simulated_disk.crash_process()
    site.disk.open(f"store/commitlog/{0:020d}").write(last + 20, (1).to_bytes(8, "big"))
    _remove_directory(site, "store/consumequeue")
    for _ in range(3):
        with pytest.raises(
            StoreError, match="4 entries expected by the checkpoint, the log has records for 3"
        ):
            site.open()


def test_a_filler_at_the_very_end_is_overwritten() -> None:
    site = _opened(*NAMES[:3])
    end = site.store.log_end
    log = site.disk.open(f"store/commitlog/{0:020d}")
    log.write(end, record.filler(512 - end))
    site.reopen_after_process_crash()
    assert site.recovery.recovered_end == end
    assert site.append("next")[0].commit_offset == end


def test_a_preallocated_empty_segment_after_the_log_is_harmless() -> None:
    site = _opened(*NAMES[:2])
    file = site.disk.create(f"store/commitlog/{512:020d}", 512)
    file.sync()
    site.disk.sync_directory("store/commitlog")
    site.reopen_after_power_loss()
    assert bodies(site.store) == NAMES[:2]
    site.append(*NAMES[2:])
    site.flush()
    site.reopen_after_power_loss()
    assert bodies(site.store) == NAMES


def test_an_empty_segment_left_by_a_crash_is_harmless() -> None:
    site = _opened(*NAMES[:2])
    site.simulated_disk.create(f"store/commitlog/{512:020d}", 512)
    site.simulated_disk.crash_os(Image(names={"store/commitlog": 1}))
    site.open()
    assert site.disk.names("store/commitlog") == [f"{0:020d}"]
    assert bodies(site.store) == NAMES[:2]


def test_recovered_data_is_durable_when_the_store_serves() -> None:
    site = _opened(*NAMES, durable=False)
    store = site.reopen_after_process_crash()
    assert store.log_flushed == store.log_end
    site.reopen_after_power_loss()
    assert bodies(site.store) == NAMES


def test_data_that_a_failed_fsync_left_only_in_memory_is_durable_after_a_recovery() -> None:
    """The page cache contains it, treats it as written, and would not write it by itself."""
    site = Site()
    site.open()
    site.append("a")
    site.flush()
    site.append("b")

    def fail(step: Step) -> None:
        if step.kind == "sync":
            raise OSError(5, "Input/output error", step.path)

    site.simulated_disk.on_step = fail
    result_of(site.store.flush_log())
    site.simulated_disk.on_step = None
    assert site.store.failure
    site.reopen_after_process_crash()
    assert bodies(site.store) == ["a", "b"]
    assert site.store.log_flushed == site.store.log_end
    site.reopen_after_power_loss()
    assert bodies(site.store) == ["a", "b"]


def test_a_disk_error_during_recovery_is_one_clear_error_and_counts_nothing() -> None:
    site = _opened("a")

    def refuse(step: object) -> None:
        raise OSError(5, "Input/output error")

    site.simulated_disk.crash_process()
    site.simulated_disk.on_step = refuse
    with pytest.raises(StoreError, match=r"store: .*Input/output error"):
        site.open()
    site.simulated_disk.on_step = None
    assert bodies(site.open()) == ["a"]


def test_a_second_opening_after_a_crash_has_nothing_to_do() -> None:
    site = _opened(*NAMES)
    site.append("x", "y", queue_id=1)
    site.simulated_disk.lose_power()
    first = site.open()
    state = (bodies(first), bodies(first, queue_id=1), first.log_end)
    site.reopen_after_power_loss()
    again = (bodies(site.store), bodies(site.store, queue_id=1), site.store.log_end)
    assert state == again
    assert site.recovery.truncated_bytes == 0


SYNC = replace(SMALL, flush_mode=FlushMode.SYNC_FLUSH)
LOG = f"store/commitlog/{0:020d}"


def _alter(site: Site, position: int, data: bytes) -> None:
    """Stop the process, and change bytes of the log."""
    site.simulated_disk.crash_process()
    offset = position % site.config.commit_log_segment_bytes
    site.disk.open(f"store/commitlog/{position - offset:020d}").write(offset, data)


@pytest.mark.parametrize("queue_offset", [1, 2, 7])
@pytest.mark.parametrize("changed", ["offset", "queue"])
def test_the_first_entry_of_a_queue_shows_that_its_record_is_altered(queue_offset: int, changed: str) -> None:
    """No checkpoint covers it, but the log was flushed before it got its entry."""
    site = Site(SYNC)
    site.open()
    site.append("x", "y", queue_id=1)
    first = site.append("a", "b", "c")[0]
    result_of(site.store.flush_log())
    if changed == "offset":
        _alter(site, first.commit_offset + 20, queue_offset.to_bytes(8, "big"))
    else:
        _alter(site, first.commit_offset + 12, queue_offset.to_bytes(4, "big"))
    for _ in range(2):
        site.open()
        assert site.store.damage.counts[DamageKind.LOG, Outcome.SKIPPED] == 1
        read = [record.decode(data) for data in site.store.get("T", 0, 0).records]
        assert [(each.queue_offset, each.message.body) for each in read] == [(1, b"b"), (2, b"c")]
        assert bodies(site.store, queue_id=1) == ["x", "y"]
        assert [site.store.max_offset("T", queue_id) for queue_id in (0, 1, 2, 7)] == [3, 2, 0, 0]
        site.simulated_disk.crash_process()


@pytest.mark.parametrize("after", [0, 1])
def test_an_entry_shows_that_the_kind_of_its_record_was_altered(after: int) -> None:
    """Also the newest entry: a prepared message has none."""
    site = Site(SYNC)
    site.open()
    altered = site.append("a", "b", *["c"] * after)[1]
    result_of(site.store.flush_log())
    _alter(site, altered.commit_offset + 36, SYS_TRANSACTION_PREPARED.to_bytes(4, "big"))
    site.open()
    assert site.store.damage.counts[DamageKind.LOG, Outcome.SKIPPED] == 1
    assert site.append("next")[0].queue_offset == 2 + after


def test_the_only_entry_of_a_queue_is_kept_if_its_record_is_damaged() -> None:
    """Its record is not the first one of the segment. Its offset is not used again."""
    site = _opened("a", "b")
    lost = site.append("x", queue_id=1)[0]
    site.append("c")
    site.flush()
    _alter(site, lost.commit_offset + 88, b"?")
    site.open()
    assert site.recovery.scanned_from > lost.commit_offset
    assert site.recovery.queue_entries_cut == 0
    assert site.append("y", queue_id=1)[0].queue_offset == 1
    assert bodies(site.store) == ["a", "b", "c"]


def test_only_messages_with_an_offset_count_as_replaced_by_those_of_a_recreated_topic() -> None:
    """A prepared message of the old topic does not make up for a message whose offset was altered."""
    site = Site(replace(SMALL, commit_log_segment_bytes=4096))
    site.open()
    site.append("old")
    site.store.append(Message("T", b"prepared", sys_flag=SYS_TRANSACTION_PREPARED))
    last = site.append("u0", "u1", "u2", topic="U")[2]
    site.flush()
    site.store.delete_topic("T")
    site.append("new")
    _alter(site, last.commit_offset + 20, (1).to_bytes(8, "big"))
    for name in ("deletedTopics.json", "deletedTopics.json.bak"):  # as after a released broker
        site.disk.remove(f"store/config/{name}")
    _remove_directory(site, "store/consumequeue/U")
    with pytest.raises(
        StoreError, match="4 entries expected by the checkpoint, the log has records for 3: a record"
    ):
        site.open()


def test_a_crash_between_the_deletion_of_a_topic_and_that_of_its_queues_deletes_both() -> None:
    site = _opened("a", "b")
    site.append("x", topic="U")
    site.flush()

    def crash(step: Step) -> None:
        if step.kind == "remove" and "consumequeue" in step.path:
            raise SimulatedCrashError

    site.simulated_disk.on_step = crash
    with pytest.raises(SimulatedCrashError):
        site.store.delete_topic("T")
    site.simulated_disk.on_step = None
    site.reopen_after_process_crash()
    assert [site.store.max_offset(topic, 0) for topic in "TU"] == [0, 1]
    assert site.append("n")[0].queue_offset == 0
    assert (bodies(site.store), bodies(site.store, topic="U")) == (["n"], ["x"])


@pytest.mark.parametrize("new", [["n0"], ["n0", "n1", "n2"]])
def test_a_topic_that_a_released_broker_recreated_has_only_its_new_messages(new: list[str]) -> None:
    """The first entry of its queue is the only sign of the deletion."""
    site = _opened("o0", "o1")
    site.store.delete_topic("T")
    site.append(*new)
    site.flush()
    site.simulated_disk.crash_process()
    for name in ("checkpoint", "config/deletedTopics.json", "config/deletedTopics.json.bak"):
        site.disk.remove(f"store/{name}")
    site.open()
    assert (site.recovery.scanned_from, bodies(site.store)) == (0, new)
    assert site.recovery.redispatched == 0


@pytest.mark.parametrize(
    ("removed", "problem"),
    [
        (1024, r"0+1024: missing, the log was durable up to commit offset {end}$"),
        (0, r"0+: missing, the log began at commit offset 0$"),
    ],
)
def test_a_start_without_a_segment_that_was_durable_is_refused(removed: int, problem: str) -> None:
    site = _aged_site()
    end = site.store.log_end
    site.simulated_disk.crash_process()
    site.disk.remove(f"store/commitlog/{removed:020d}")
    for _ in range(2):
        with pytest.raises(StoreError, match=problem.format(end=end)):
            site.open()


def test_a_log_that_ends_with_its_durable_part_is_whole() -> None:
    """The durable part may end with a segment, and nothing may follow."""
    site = _aged_site()
    site.close()
    checkpoint = read_checkpoint(site.disk, "store/checkpoint")
    assert checkpoint.queue_count is not None
    count = replace(checkpoint.queue_count, position=1536)
    write_durably(site.disk, "store/checkpoint", replace(checkpoint, queue_count=count).encode())
    site.open()
    assert len(bodies(site.store)) == 12


# What a recovery reports that cuts the end of the log.


def _cut(mode: FlushMode, *, flushed: int, written: int, damaged: int) -> tuple[Site, int, int]:
    """Open a store after damage to one of its records; return, too, where the record begins and ends."""
    site = Site(replace(SMALL, flush_mode=mode))
    site.open()
    appended = site.append(*NAMES[:flushed])
    result_of(site.store.flush_log())
    appended += site.append(*NAMES[flushed:written])
    at = appended[damaged].commit_offset
    _alter(site, at + 88, b"?")
    site.open()
    assert site.store.log_end == at
    return site, at, appended[damaged].end


def test_a_lost_record_with_an_entry_is_reported_by_its_place(caplog: pytest.LogCaptureFixture) -> None:
    site, at, _ = _cut(FlushMode.SYNC_FLUSH, flushed=3, written=3, damaged=2)
    assert caplog.messages == [
        f"damaged record at {LOG}, commit offset {at} (topic T, queue 0, offset 2):"
        " no whole record is there: cut"
    ]
    assert site.store.damage.counts == {(DamageKind.RECORD, Outcome.CUT): 1}


@pytest.mark.parametrize(("flushed", "start"), [(2, 0), (5, 512)])
def test_bytes_behind_the_last_entry_are_reported_as_damage_or_a_crash(
    flushed: int, start: int, caplog: pytest.LogCaptureFixture
) -> None:
    site, at, _ = _cut(FlushMode.SYNC_FLUSH, flushed=flushed, written=flushed + 1, damaged=flushed)
    assert caplog.messages == [
        f"damaged log at store/commitlog/{start:020d}, commit offset {at}: {site.recovery.truncated_bytes}"
        " bytes are no whole record: they are damaged, or a crash came first: cut"
    ]
    _cut(FlushMode.ASYNC_FLUSH, flushed=2, written=3, damaged=2)
    assert len(caplog.messages) == 1, "a crash can lose what was not flushed"


@pytest.mark.parametrize("mode", FlushMode)
def test_whole_records_that_are_cut_are_reported_once(
    mode: FlushMode, caplog: pytest.LogCaptureFixture
) -> None:
    _, at, follows = _cut(mode, flushed=1, written=4, damaged=1)
    assert caplog.messages == [
        f"damaged log at {LOG}, commit offset {at}: no whole record is there, but one follows at {follows},"
        " and no checkpoint covers them: cut"
    ]


def test_at_most_1000_lost_records_of_a_queue_are_reported_one_by_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = replace(SYNC, consume_queue_segment_bytes=20 * 600)
    site = Site(config)
    site.open()
    site.append("a")
    site.flush()
    queue = site.store._queues.find("T", 0)
    assert queue is not None
    end = site.store.log_end
    queue.end = 1 + 1002
    queue.write(1, [Unit(end + 100 * number, 100, 0) for number in range(1002)])
    site.simulated_disk.crash_process()
    with caplog.at_level(logging.CRITICAL):
        site.open()
    assert site.store.damage.counts == {(DamageKind.RECORD, Outcome.CUT): 1000}
    assert site.recovery.queue_entries_cut == 1002

"""Tests that missing queue files are rebuilt from the log (docs/reference/protocol/recovery.md, "Recovery").

This includes files of which recovery meets no record, because the checkpoint lets it start late.

Method: write three hours of traffic in separate segments, all durable; remove files, open the store, check
it.
"""

import random
import struct
from dataclasses import replace

import pytest

from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, Step
from mqproof.impl.store import recovery
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.checkpoint import DISTRUST, QueueCount, read_checkpoint
from mqproof.impl.store.recovery import Parts
from tests.impl.store.site import SMALL, Site, bodies

QUEUES = "store/consumequeue/T"
CHECKPOINT = "store/checkpoint"


def _written() -> Site:
    """Write records of each hour to queue 0 and of the first hour to queue 1. The checkpoint covers all."""
    site = Site()
    site.open()
    for hour in range(3):
        site.append(*(f"h{hour}m{number}" for number in range(3)))
        if hour == 0:
            site.append("x", "y", "z", "u", queue_id=1)
        site.flush()
        site.clock.advance_ms(3_600_000)
    site.append("late")
    site.flush()
    return site


ALL = [*(f"h{hour}m{number}" for hour in range(3) for number in range(3)), "late"]
FIRST_HOUR = ["x", "y", "z", "u"]


def _lose(site: Site, *names: str) -> None:
    """Stop the machine and remove these files, or all files in these directories."""
    site.simulated_disk.lose_power()
    for name in names:
        for path in [name] if "/0000" in name else [f"{name}/{each}" for each in site.disk.names(name)]:
            site.disk.remove(path)
            site.disk.sync_directory(path.rpartition("/")[0])


def _segment(queue_id: int, number: int) -> str:
    return f"{QUEUES}/{queue_id}/{number * 60:020d}"


def _check_whole(site: Site) -> None:
    assert site.recovery.scanned_from > 0, "the checkpoint covers the first hour"
    assert (bodies(site.store), bodies(site.store, queue_id=1)) == (ALL, FIRST_HOUR)


def test_with_all_files_present_nothing_is_rebuilt() -> None:
    site = _written()
    _lose(site)
    site.open()
    _check_whole(site)
    assert site.recovery.redispatched == 0
    assert read_checkpoint(site.disk, CHECKPOINT).queue_count != DISTRUST


def test_a_queue_older_than_the_checkpoint_is_rebuilt_and_its_offsets_continue() -> None:
    site = _written()
    _lose(site, f"{QUEUES}/1")
    site.open()
    _check_whole(site)
    assert site.recovery.redispatched == 4
    assert site.append("next", queue_id=1)[0].queue_offset == 4


@pytest.mark.parametrize(
    "lost",
    [
        [_segment(0, 0)],
        [_segment(0, 0), _segment(0, 1)],
        [_segment(1, 0)],
        [_segment(1, 1)],
        [_segment(0, 0), _segment(1, 0), _segment(1, 1)],
        [_segment(0, 3), _segment(1, 1)],
    ],
)
@pytest.mark.parametrize("checkpoint", [True, False])
def test_segments_at_either_end_of_a_queue_are_rebuilt(lost: list[str], checkpoint: bool) -> None:
    site = _written()
    _lose(site, *lost)
    if not checkpoint:
        site.disk.remove(CHECKPOINT)
    site.open()
    assert (bodies(site.store), bodies(site.store, queue_id=1)) == (ALL, FIRST_HOUR)
    assert site.append("next", queue_id=1)[0].queue_offset == 4
    assert site.append("next")[0].queue_offset == len(ALL)


def test_a_segment_missing_in_the_middle_is_refused_by_name() -> None:
    site = _written()
    _lose(site, _segment(0, 1))
    with pytest.raises(StoreError, match=f"{_segment(0, 2)}: the segment before it is missing"):
        site.open()


def test_all_queues_are_rebuilt_even_with_a_released_brokers_checkpoint() -> None:
    site = _written()
    _lose(site, f"{QUEUES}/0", f"{QUEUES}/1")
    _as_released_broker(site)
    site.open()
    _check_whole(site)


def _as_released_broker(site: Site) -> None:
    times = struct.unpack_from(">qqq", read_whole(site.disk, CHECKPOINT))
    write_durably(site.disk, CHECKPOINT, struct.pack(">qqqqq", *times, 0, 0).ljust(4096, b"\0"))


def test_the_next_checkpoint_counts_again_after_a_topic_was_deleted() -> None:
    site = Site()
    site.open()
    site.append("a", "b")
    site.append("c", topic="U")
    site.flush()
    assert read_checkpoint(site.disk, CHECKPOINT).queue_count == QueueCount(0, site.store.log_end, 3)
    site.store.delete_topic("U")
    site.flush()
    assert read_checkpoint(site.disk, CHECKPOINT).queue_count == QueueCount(0, site.store.log_end, 2)


def test_the_times_of_a_released_brokers_checkpoint_are_trusted() -> None:
    site = _written()
    _lose(site)
    _as_released_broker(site)
    site.open()
    _check_whole(site)
    assert site.recovery.redispatched == 0
    assert read_checkpoint(site.disk, CHECKPOINT).queue_count is None
    site.flush()
    assert read_checkpoint(site.disk, CHECKPOINT).queue_count == QueueCount(0, site.store.log_end, 14)


@pytest.mark.parametrize("released", [True, False])
def test_rebuilt_entries_are_trusted_after_a_crash_no_more_than_before(released: bool) -> None:
    """The crash after the recovery keeps some of the rebuilt files, and parts of others."""
    for seed in range(40):
        site = _written()
        _lose(site, f"{QUEUES}/0", f"{QUEUES}/1")
        if released:
            _as_released_broker(site)
        site.open()
        site.append("unsynced")
        result_of(site.store.write_checkpoint())
        site.simulated_disk.crash_os(random.Random(seed))
        site.open()
        assert [body for body in bodies(site.store) if body != "unsynced"] == ALL, f"seed {seed}"
        assert bodies(site.store, queue_id=1) == FIRST_HOUR


@pytest.mark.parametrize("lost", [[_segment(0, 0)], [f"{QUEUES}/1"], [f"{QUEUES}/0", f"{QUEUES}/1"]])
def test_a_crash_at_every_step_of_rebuilding_changes_nothing(lost: list[str]) -> None:
    template = _written()
    _lose(template, *lost)
    for steps in range(1, 200):
        site = Site(disk=template.simulated_disk.copy())
        if _dies(site, steps):
            site.simulated_disk.crash_os(random.Random(steps))
            site.open()
            _check_whole(site)
        else:
            assert steps > 10
            return
    raise AssertionError("recovery does not end")


def _dies(site: Site, steps: int) -> bool:
    disk = site.simulated_disk
    last = disk.steps + steps

    def crash(step: Step) -> None:
        if disk.steps > last:
            raise SimulatedCrashError

    disk.on_step = crash
    try:
        site.open()
    except SimulatedCrashError:
        return True
    finally:
        disk.on_step = None
    return False


def test_the_whole_log_is_dispatched_until_the_queues_are_flushed_and_counted_again() -> None:
    site = _written()
    _lose(site, f"{QUEUES}/1")
    site.open()
    assert read_checkpoint(site.disk, CHECKPOINT).queue_count == DISTRUST
    result_of(site.store.write_checkpoint())
    assert read_checkpoint(site.disk, CHECKPOINT).queue_count == DISTRUST
    site.flush()
    assert read_checkpoint(site.disk, CHECKPOINT).queue_count == QueueCount(0, site.store.log_end, 14)


def test_a_damaged_record_that_a_lost_queue_needs_is_refused_by_name_and_kept() -> None:
    site = _written()
    log = f"store/commitlog/{512:020d}"
    _lose(site, f"{QUEUES}/1")
    site.disk.open(log).write(4, b"\0")  # the record "y"
    before, segments = read_whole(site.disk, log), site.disk.names("store/commitlog")
    for _ in range(2):  # the second time with the checkpoint that the first one left
        with pytest.raises(StoreError, match="T/1: the queue goes from 0 to 1, entry 2 would leave a gap"):
            site.open()
        assert (read_whole(site.disk, log), site.disk.names("store/commitlog")) == (before, segments)
        site.simulated_disk.lose_power()


@pytest.mark.parametrize("mode", list(FlushMode))
def test_no_crash_leaves_fewer_entries_than_were_counted(
    mode: FlushMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint may cover less than is durable, never more."""
    found: list[bool] = []
    dispatch_again = recovery.dispatch_again

    def look_first(parts: Parts, start: int) -> int:
        if parts.checkpoint.queue_count is not None:
            found.append(recovery.queues_are_whole(parts.queues, parts.checkpoint))
        return dispatch_again(parts, start)

    monkeypatch.setattr(recovery, "dispatch_again", look_first)
    for seed in range(80):
        chance = random.Random(seed)
        site = Site(replace(SMALL, flush_mode=mode))
        for _ in range(3):
            site.open()
            _random_steps(site, chance)
            site.simulated_disk.crash_os(chance)
        site.open()
    assert len(found) > 100
    assert all(found)


def _random_steps(site: Site, chance: random.Random) -> None:
    for number in range(30):
        step = chance.choice(["append"] * 3 + ["log", "queues", "checkpoint", "hour"])
        match step:
            case "append":
                site.append(f"n{number}", queue_id=chance.randrange(3))
            case "log":
                result_of(site.store.flush_log())
            case "queues":
                result_of(site.store.flush_queues())
            case "checkpoint":
                result_of(site.store.write_checkpoint())
            case _:
                site.clock.advance_ms(3_600_000)


def test_the_queues_are_not_counted_again_while_nothing_becomes_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise an idle broker with many queues would read their files at each checkpoint."""
    site = _written()
    counted: list[int] = []
    count_between = site.store._queues.count_between

    def count(begin: int, end: int) -> int:
        counted.append(end)
        return count_between(begin, end)

    monkeypatch.setattr(site.store._queues, "count_between", count)
    site.flush()
    site.flush()
    assert counted == []
    site.append("more")
    site.flush()
    site.flush()
    assert counted == [site.store.log_end]

"""Tests the checkpoint file (docs/reference/protocol/storing.md, "Checkpoint")."""

import contextlib
import struct

import pytest

from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError, SimulatedDisk, Step
from mqproof.impl.store.files.checkpoint import (
    DISTRUST,
    Checkpoint,
    QueueCount,
    read_checkpoint,
    write_checkpoint,
)
from mqproof.impl.store.files.index import IndexState
from mqproof.impl.store.files.index_file import Header


def test_the_file_has_4096_bytes_and_three_times() -> None:
    data = Checkpoint(1, 2, 3).encode()
    assert len(data) == 4096
    assert struct.unpack_from(">qqqqq", data) == (1, 2, 3, 0, 0)
    assert Checkpoint.decode(data) == Checkpoint(1, 2, 3)


@pytest.mark.parametrize("count", [QueueCount(0, 0, 0), QueueCount(1 << 39, 1 << 40, 77)])
def test_the_count_of_queue_entries_is_where_released_brokers_write_nothing(count: QueueCount) -> None:
    data = Checkpoint(1, 2, 3, count).encode()
    assert len(data) == 4096
    assert data[24:1024] == bytes(1000)
    assert struct.unpack_from(">qqq", data, 1024) == (count.begin, count.position, count.entries)
    assert struct.unpack_from(">qq", data, 1048) == (-1, -1), "it has no state of the index"
    assert Checkpoint.decode(data) == Checkpoint(1, 2, 3, count)


def test_a_checkpoint_that_distrusts_the_queues_counts_more_entries_than_there_can_be() -> None:
    data = Checkpoint(1, 2, 3, DISTRUST).encode()
    assert data[1024:1048] == bytes(16) + bytes.fromhex("7fffffffffffffff")
    assert Checkpoint.decode(data) == Checkpoint(1, 2, 3, DISTRUST)


@pytest.mark.parametrize("at", [0, 7, 15, 23, 24, 39, 1024, 1047, 1048, 1103, 1104, 1107])
def test_a_checkpoint_that_does_not_match_its_checksum_is_not_trusted_in_anything(at: int) -> None:
    """A released broker wrote the times, or a bit was flipped: a time too late would hide a gap."""
    data = bytearray(Checkpoint(1, 2, 3, QueueCount(0, 4, 5)).encode())
    data[at] ^= 1
    assert Checkpoint.decode(bytes(data)) == Checkpoint()


@pytest.mark.parametrize("size", [24, 40, 1024, 1107, 4096])
def test_a_checkpoint_of_a_released_broker_is_accepted_without_a_count(size: int) -> None:
    data = struct.pack(">qqqqq", 1, 2, 3, 4, 5).ljust(4096, b"\0")[:size]
    assert Checkpoint.decode(data) == Checkpoint(1, 2, 3)


@pytest.mark.parametrize("count", [None, QueueCount(1, 2, 3)])
def test_the_state_of_the_index_follows_the_count(count: QueueCount | None) -> None:
    state = IndexState(1 << 33, 20231114221320000, Header(1, 2, 3, 4, 5, 6))
    data = Checkpoint(1, 2, 3, count, state).encode()
    assert struct.unpack_from(">qqq", data, 1024) == ((1, 2, 3) if count else (-1, -1, -1))
    assert struct.unpack_from(">qqqqqqii", data, 1048) == (state.position, state.name, 1, 2, 3, 4, 5, 6)
    assert Checkpoint.decode(data) == Checkpoint(1, 2, 3, count, state)


def test_the_safe_time_is_the_older_one_minus_three_seconds() -> None:
    assert Checkpoint(10_000, 20_000).safe_timestamp_ms == 7_000
    assert Checkpoint(20_000, 10_000).safe_timestamp_ms == 7_000
    assert Checkpoint(2_000, 9_000).safe_timestamp_ms == 0


@pytest.mark.parametrize("left", [None, b"", b"\0" * 23])
def test_a_missing_or_short_checkpoint_is_empty(left: bytes | None) -> None:
    disk = SimulatedDisk()
    if left is not None:
        write_durably(disk, "store/checkpoint", left)
    assert read_checkpoint(disk, "store/checkpoint") == Checkpoint()


def test_a_crash_at_any_step_leaves_the_old_or_the_new_checkpoint_never_a_mixture() -> None:
    old = Checkpoint(0x0000018BCFE5FFFF, 1, 0, QueueCount(0, 0xFFFF, 1))
    new = Checkpoint(0x0000018BCFE60001, 2, 0, QueueCount(0, 0x10001, 2))
    found = set()
    for stop_at in range(1, 8):
        disk = SimulatedDisk()
        write_checkpoint(disk, "store/checkpoint", old)
        last = disk.steps + stop_at

        def crash(step: Step, disk: SimulatedDisk = disk, last: int = last) -> None:
            if disk.steps == last:
                raise SimulatedCrashError

        disk.on_step = crash
        with contextlib.suppress(SimulatedCrashError):
            write_checkpoint(disk, "store/checkpoint", new)
        disk.on_step = None
        for image in disk.images():
            crashed = disk.copy()
            crashed.crash_os(image)
            found.add(read_checkpoint(crashed, "store/checkpoint"))
    assert found == {old, new}


@pytest.mark.parametrize(("size", "is_whole"), [(1108, True), (1107, False), (24, False), (23, False)])
def test_a_checkpoint_that_was_cut_behind_its_checksum_is_whole(size: int, is_whole: bool) -> None:
    state = IndexState(1 << 33, 20231114221320000, Header(1, 2, 3, 4, 5, 6))
    checkpoint = Checkpoint(1, 2, 3, QueueCount(1, 2, 3), state)
    data = bytearray(checkpoint.encode()[:size])
    assert (Checkpoint.decode(bytes(data)) == checkpoint) is is_whole
    if is_whole:
        data[0] ^= 1
        assert Checkpoint.decode(bytes(data)) == Checkpoint(), "its checksum still counts"


def test_the_safe_time_is_never_negative() -> None:
    assert Checkpoint(2_999, 9_000).safe_timestamp_ms == 0
    assert Checkpoint(9_000, 3_001).safe_timestamp_ms == 1

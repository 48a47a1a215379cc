"""The checkpoint file (docs/protocol.md, "Checkpoint")."""

import contextlib
import struct

import pytest

from impl.runtime.disk import write_durably
from impl.runtime.simulated_disk import SimulatedCrashError, SimulatedDisk, Step
from impl.store.checkpoint import Checkpoint, read_checkpoint, write_checkpoint


def test_the_file_has_4096_bytes_and_three_times() -> None:
    data = Checkpoint(1, 2, 3).encode()
    assert len(data) == 4096
    assert struct.unpack_from(">qqqqq", data) == (1, 2, 3, 0, 0)
    assert Checkpoint.decode(data) == Checkpoint(1, 2, 3)


def test_the_safe_time_is_the_older_one_less_three_seconds() -> None:
    assert Checkpoint(10_000, 20_000).safe_timestamp_ms == 7_000
    assert Checkpoint(20_000, 10_000).safe_timestamp_ms == 7_000
    assert Checkpoint(2_000, 9_000).safe_timestamp_ms == 0


@pytest.mark.parametrize("left", [None, b"", b"\0" * 23])
def test_a_lost_or_short_checkpoint_says_nothing(left: bytes | None) -> None:
    disk = SimulatedDisk()
    if left is not None:
        write_durably(disk, "store/checkpoint", left)
    assert read_checkpoint(disk, "store/checkpoint") == Checkpoint()


def test_a_crash_at_any_step_leaves_the_old_or_the_new_checkpoint_never_a_mixture() -> None:
    old, new = Checkpoint(0x0000018BCFE5FFFF, 1), Checkpoint(0x0000018BCFE60001, 2)
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

"""Tests the simulated disk: each kind of crash keeps exactly the data that it may keep.

Method: small files whose bytes show which write they came from.
"""

import random

import pytest

from mqproof.impl.runtime.disk import LockedError, read_whole, write_durably
from mqproof.impl.runtime.simulated_disk import Image, SimulatedCrashError, SimulatedDisk, Step


def _disk_with(content: bytes) -> SimulatedDisk:
    """Return a disk with a durable file d/f."""
    disk = SimulatedDisk()
    file = disk.create("d/f", len(content))
    file.write(0, content)
    file.sync()
    disk.sync_directory("d")
    return disk


def test_a_process_crash_keeps_written_data_and_ends_handles_and_locks() -> None:
    disk = _disk_with(b"....")
    disk.lock("d/lock")
    file = disk.open("d/f")
    file.write(1, b"ab")
    disk.crash_process()
    assert read_whole(disk, "d/f") == b".ab."
    with pytest.raises(OSError, match="has crashed"):
        file.read(0, 1)
    disk.lock("d/lock")


def test_a_power_loss_keeps_only_synced_data() -> None:
    disk = _disk_with(b"....")
    disk.open("d/f").write(0, b"ab")
    disk.create("d/new", 4)
    disk.lose_power()
    assert read_whole(disk, "d/f") == b"...."
    assert disk.names("d") == ["f"]


def test_an_os_crash_keeps_any_prefix_of_the_unsynced_writes_torn_at_any_byte() -> None:
    disk = _disk_with(b"....")
    file = disk.open("d/f")
    file.write(2, b"ab")
    file.write(0, b"cd")
    seen = set()
    for image in disk.images():
        crashed = disk.copy()
        crashed.crash_os(image)
        seen.add(read_whole(crashed, "d/f"))
    assert seen == {b"....", b"..a.", b"..ab", b"c.ab", b"cdab"}


def test_an_unsynced_name_may_or_may_not_survive() -> None:
    disk = _disk_with(b"....")
    disk.create("d/g", 1).sync()
    disk.remove("d/f")
    kept = set()
    for image in disk.images():
        crashed = disk.copy()
        crashed.crash_os(image)
        kept.add(tuple(crashed.names("d")))
    assert kept == {("f",), ("f", "g"), ("g",)}


def test_a_file_with_a_synced_name_and_an_unsynced_size_is_empty() -> None:
    disk = SimulatedDisk()
    disk.create("d/f", 8)
    disk.crash_os(Image(names={"d": 1}))
    assert disk.open("d/f").size() == 0


def test_the_number_of_images_is_the_product_over_files_and_directories() -> None:
    disk = _disk_with(b"....")
    disk.open("d/f").write(0, b"abc")
    disk.create("e/g", 5)
    assert disk.image_count() == len(list(disk.images())) == (3 + 1) * (1 + 1) * (1 + 1)


def test_a_drawn_image_is_possible_and_repeatable_by_its_seed() -> None:
    disk = _disk_with(b"....")
    disk.open("d/f").write(0, b"abc")
    admissible = list(disk.images())
    drawn = [disk.draw_image(random.Random(seed)) for seed in range(20)]
    assert all(image in admissible for image in drawn)
    assert drawn == [disk.draw_image(random.Random(seed)) for seed in range(20)]
    assert len({str(image) for image in drawn}) > 1


def test_data_that_a_failed_sync_dropped_never_becomes_durable() -> None:
    disk = _disk_with(b"....")
    file = disk.open("d/f")
    file.write(0, b"ab")

    def refuse(step: Step) -> None:
        if step.kind == "sync":
            raise OSError(5, "Input/output error")

    disk.on_step = refuse
    with pytest.raises(OSError, match="Input/output error"):
        file.sync()
    disk.on_step = None
    file.sync()
    assert file.read(0, 4) == b"ab.."
    disk.lose_power()
    assert read_whole(disk, "d/f") == b"...."


def test_a_hook_can_stop_the_code_at_each_step_and_a_replaced_file_is_then_old_or_new() -> None:
    outcomes = set()
    for stop_at in range(1, 10):
        disk = _disk_with(b"old.")
        first = disk.steps

        def crash(step: Step, disk: SimulatedDisk = disk, last: int = first + stop_at) -> None:
            if disk.steps == last:
                raise SimulatedCrashError

        disk.on_step = crash
        try:
            write_durably(disk, "d/f", b"new.")
            finished = True
        except SimulatedCrashError:
            finished = False
        disk.on_step = None
        for image in disk.images():
            crashed = disk.copy()
            crashed.crash_os(image)
            outcomes.add((finished, read_whole(crashed, "d/f")))
    assert outcomes == {(False, b"old."), (False, b"new."), (True, b"new.")}


def test_a_tail_is_zeroed_without_changing_the_size() -> None:
    disk = _disk_with(b"abcd\0\0")
    file = disk.open("d/f")
    assert file.zero_tail(2) == 2
    assert file.read(0, 10) == b"ab\0\0\0\0"
    assert file.zero_tail(2) == 0


def test_a_lock_excludes_a_second_owner_until_released() -> None:
    disk = SimulatedDisk()
    lock = disk.lock("d/lock")
    with pytest.raises(LockedError, match="d/lock: locked"):
        disk.lock("d/lock")
    lock.release()
    disk.lock("d/lock")


def test_missing_and_existing_names_are_the_usual_errors() -> None:
    disk = _disk_with(b".")
    with pytest.raises(FileNotFoundError):
        disk.open("d/none")
    with pytest.raises(FileExistsError):
        disk.create("d/f", 1)
    assert disk.exists("d/f")
    assert disk.is_directory("d")
    assert not disk.exists("d/none")
    assert disk.names("nowhere") == []

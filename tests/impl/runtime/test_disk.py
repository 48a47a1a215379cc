"""Tests that the real disk behaves like the simulated one, and that locks exclude other processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof.impl.runtime.disk import (
    SECRET_MODE,
    Disk,
    LockedError,
    RealDisk,
    parent,
    read_whole,
    write_durably,
)
from mqproof.impl.runtime.simulated_disk import SimulatedDisk


@pytest.fixture(params=["real", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    """Return a disk, and an empty directory on it."""
    return (RealDisk(), str(tmp_path)) if request.param == "real" else (SimulatedDisk(), "root")


def test_a_new_file_is_full_of_zeros_and_has_random_access(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.create(f"{root}/deep/er/f", 10)
    file.write(3, b"abc")
    file.write(4, memoryview(b"X"))
    assert file.size() == 10
    assert file.read(0, 100) == b"\0\0\0aXc\0\0\0\0"
    assert file.read(8, 5) == b"\0\0"
    assert file.read(10, 5) == b""
    file.sync()
    disk.sync_directory(f"{root}/deep/er")
    file.close()
    assert read_whole(disk, f"{root}/deep/er/f") == b"\0\0\0aXc\0\0\0\0"


def test_a_partial_write_is_continued(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: whole(descriptor, data[:3], at))
    file = RealDisk().create(str(tmp_path / "f"), 10)
    for data in (b"01234567", bytearray(b"01234567"), memoryview(b"01234567")):
        file.write(1, bytes(8))
        file.write(1, data)
        assert file.read(0, 10) == b"\x0001234567\0"
    file.close()


def test_names_are_sorted_and_include_directories(place: tuple[Disk, str]) -> None:
    disk, root = place
    for name in ("b", "a/x", "c"):
        disk.create(f"{root}/{name}", 0).close()
    assert disk.names(root) == ["a", "b", "c"]
    assert disk.is_directory(f"{root}/a")
    assert not disk.is_directory(f"{root}/b")
    assert disk.names(f"{root}/none") == []
    disk.remove(f"{root}/b")
    disk.replace(f"{root}/c", f"{root}/d")
    assert disk.names(root) == ["a", "d"]


def test_zeroing_a_tail_reports_the_used_length(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.create(f"{root}/f", 5 << 20)
    file.write(100, b"head")
    file.write(3 << 20, b"far")
    assert file.zero_tail(102) == (3 << 20) + 3 - 102
    assert file.read(100, 4) == b"he\0\0"
    assert file.zero_tail(102) == 0
    assert file.size() == 5 << 20
    file.close()


def test_a_durable_write_replaces_the_whole_file_despite_a_leftover(place: tuple[Disk, str]) -> None:
    disk, root = place
    write_durably(disk, f"{root}/f", b"a long old content")
    disk.create(f"{root}/f.tmp", 99).close()
    write_durably(disk, f"{root}/f", b"new")
    assert read_whole(disk, f"{root}/f") == b"new"
    assert disk.names(root) == ["f"]


def test_a_durable_write_keeps_the_mode_of_a_file_and_creates_secrets_for_the_owner_only(
    place: tuple[Disk, str],
) -> None:
    disk, root = place
    for mode in (0o600, 0o640, 0o644):
        disk.create(f"{root}/{mode}", 1, mode).close()
        write_durably(disk, f"{root}/{mode}", b"new")
        assert disk.mode(f"{root}/{mode}") == mode
    write_durably(disk, f"{root}/secret", b"new", SECRET_MODE)
    assert disk.mode(f"{root}/secret") == 0o600
    assert disk.mode(f"{root}/none") is None


def test_errors_are_the_usual_exceptions(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.create(f"{root}/f", 1).close()
    with pytest.raises(FileExistsError):
        disk.create(f"{root}/f", 1)
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        read_whole(disk, f"{root}/none")


def test_a_lock_excludes_its_own_process(place: tuple[Disk, str]) -> None:
    disk, root = place
    lock = disk.lock(f"{root}/lock")
    with pytest.raises(LockedError, match="lock"):
        disk.lock(f"{root}/lock")
    lock.release()
    disk.lock(f"{root}/lock").release()


def test_a_lock_excludes_another_process(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    lock = RealDisk().lock(path)
    program = (
        "import sys; from mqproof.impl.runtime.disk import RealDisk, LockedError\n"
        "try: RealDisk().lock(sys.argv[1])\n"
        "except LockedError as error: print(error)"
    )
    command = [sys.executable, "-c", program, path]
    other = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert other.stdout == f"{path}: locked by another process\n"
    lock.release()
    other = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert other.stdout == ""
    assert Path(path).read_bytes() == b"lock"


def test_the_parent_of_a_path_is_its_directory() -> None:
    assert [parent(path) for path in ("a/b/c", "c", "/c", "/b/c")] == ["a/b", ".", "/", "/b"]

"""Arrays stay in memory up to the bound, continue in files, and a full disk is one clear error."""

from pathlib import Path

import numpy as np
import pytest

from mqproof.reference.explorer.spilling.shelf import DiskError, Shelf, opened


def test_an_array_reads_the_same_in_memory_and_in_files(tmp_path: Path) -> None:
    parts = [np.arange(at, at + 60, dtype=np.uint32).reshape(-1, 3) for at in (0, 60, 120)]
    whole = np.concatenate(parts)
    for memory_bytes, has_file in ((1 << 20, False), (300, True), (0, True)):
        shelf = Shelf(tmp_path, memory_bytes)
        stored = shelf.new(np.uint32, 3)
        for part in parts:
            stored.append(part)
        assert np.array_equal(stored.read(0, 60), whole)
        assert np.array_equal(stored.read(19, 41), whole[19:41])
        assert np.array_equal(stored.read(59, 99), whole[59:])
        assert [(at, len(block)) for at, block in stored.blocks(25)] == [(0, 25), (25, 25), (50, 10)]
        assert bool(list(tmp_path.iterdir())) == has_file
        assert shelf.disk_bytes == (whole.nbytes if has_file else 0)
        stored.remove()
        assert list(tmp_path.iterdir()) == []
        assert (shelf.memory_free, shelf.disk_bytes) == (memory_bytes, 0)


def test_arrays_share_the_memory(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, 100)
    first, second = shelf.new(np.uint8), shelf.new(np.uint8)
    first.append(np.zeros(60, np.uint8))
    second.append(np.zeros(60, np.uint8))
    assert (shelf.memory_free, shelf.disk_bytes) == (40, 60)
    first.remove()
    assert shelf.memory_free == 100


def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    with opened(tmp_path, 0) as shelf:
        (shelf.folder / "1.array").symlink_to("/dev/full")
        with pytest.raises(DiskError, match=r"the disk is full after 0\.0 GiB; free some, or name another"):
            shelf.new(np.uint64).append(np.zeros(1 << 20, np.uint64))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="expected a folder to write to"), opened(tmp_path / "absent", 0):
        pass

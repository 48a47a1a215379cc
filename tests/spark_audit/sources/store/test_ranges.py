"""Splits files into ranges."""

from pathlib import Path

import pytest

from mqproof.spark_audit.sources.store.ranges import StoreError, cut, segments, subfolder, written_end


def test_ranges_cover_the_file_once_and_end_between_units(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"1" * 1000)
    parts = cut(path, 330, 20, begin=40)
    assert [(part.start, part.end) for part in parts] == [(40, 360), (360, 680), (680, 1000)]
    assert [part.is_last for part in parts] == [False, False, True]


def test_preallocated_space_is_not_split(tmp_path: Path) -> None:
    sparse, written = tmp_path / "sparse", tmp_path / "written"
    with sparse.open("wb") as file:
        file.write(b"1" * 100)
        file.truncate(1 << 30)
    written.write_bytes((b"1" * 100).ljust(5 << 20, b"\0"))
    assert max(written_end(sparse), written_end(written)) <= 1 << 20
    assert [part.end for part in cut(sparse, 1 << 20)] == [1 << 30]
    assert [part.end for part in cut(written, 1 << 20)] == [5 << 20]


def test_a_store_subfolder_is_found_from_itself_or_its_parent(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    for name in ("00000000000000016384", "00000000000000000000", "lock", "123"):
        (tmp_path / "commitlog" / name).touch()
    for path in (tmp_path, tmp_path / "commitlog"):
        names = [file.name for file in segments(subfolder(str(path), "commitlog"))]
        assert names == ["00000000000000000000", "00000000000000016384"]
    with pytest.raises(StoreError, match="no index folder in it, expected a store directory"):
        subfolder(str(tmp_path), "index")

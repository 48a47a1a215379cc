"""Reads key-index files."""

import struct
from pathlib import Path
from typing import Any

from mqproof.spark_audit.sources.store.index import first_entry_at, read_range
from mqproof.spark_audit.sources.store.ranges import cut

SLOTS = 3


def write(folder: Path, entries: list[tuple[int, int, int, int]], entry_next: int, room: int = 9) -> Path:
    path = folder / "20261121193644906"
    header = struct.pack(">qqqqii", 1000, 9000, 0, 900, 2, entry_next)
    data = header + bytes(4 * SLOTS + 20) + b"".join(struct.pack(">iqii", *entry) for entry in entries)
    path.write_bytes(data.ljust(first_entry_at(SLOTS) + 20 * room, b"\0"))
    return path


def read(path: Path, split_bytes: int = 1 << 20) -> list[dict[str, Any]]:
    parts = cut(path, split_bytes, 20, first_entry_at(SLOTS))
    return [row for part in parts for batch in read_range(part, SLOTS) for row in batch.to_pylist()]


def test_the_header_determines_how_many_entries_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, [(7, 100, 0, 0), (9, 200, 3, 1), (7, 300, 5, 0)], entry_next=3)
    rows = read(path)
    assert [(r["number"], r["key_hash"], r["commit_offset"], r["stored_ms"]) for r in rows] == [
        (1, 7, 100, 1000),
        (2, 9, 200, 4000),
    ]
    assert read(path, split_bytes=20) == rows


def test_an_invalid_header_is_one_damage_row(tmp_path: Path) -> None:
    for entry_next in (0, 11):
        rows = read(write(tmp_path, [], entry_next), split_bytes=40)
        assert [row["kind"] for row in rows] == ["damage"]
        assert f"next entry {entry_next}, with 3 slots at most 10" in rows[0]["detail"]


def test_a_file_too_short_for_the_slots_is_one_damage_row(tmp_path: Path) -> None:
    path = write(tmp_path, [], entry_next=3)
    path.write_bytes(path.read_bytes()[:60])
    rows = read(path)
    assert [row["kind"] for row in rows] == ["damage"]
    assert rows[0]["detail"] == "60 bytes, and 3 slots (maxHashSlotNum) alone take 72"

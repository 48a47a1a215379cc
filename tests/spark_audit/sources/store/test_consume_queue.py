"""Reads consume-queue segments: entries, and units that are not entries."""

import struct
from pathlib import Path
from typing import Any

from mqproof.spark_audit.sources.store.consume_queue import read_range
from mqproof.spark_audit.sources.store.ranges import cut

BLANK = (0, (1 << 31) - 1, 0)


def write(folder: Path, units: list[tuple[int, int, int]], rest: bytes = b"") -> Path:
    path = folder / "T" / "3" / f"{400:020d}"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(struct.pack(">qiq", *unit) for unit in units) + rest)
    return path


def read(path: Path, split_bytes: int = 1 << 20) -> list[dict[str, Any]]:
    parts = cut(path, split_bytes, 20)
    rows = [row for part in parts for batch in read_range(part) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: row["queue_offset"])


def test_entries_have_their_offsets_and_a_run_of_unwritten_entries_is_one_row(tmp_path: Path) -> None:
    units = [BLANK, BLANK, (0, 100, 0), (100, 120, -7), (0, 0, 0), (300, 90, 1), *[(0, 0, 0)] * 4]
    rows = read(write(tmp_path, units))
    assert [(row["kind"], row["queue_offset"], row["units"]) for row in rows] == [
        ("blank", 20, 2),
        ("entry", 22, 1),
        ("entry", 23, 1),
        ("zeros", 24, 1),
        ("entry", 25, 1),
        ("zeros", 26, 4),
    ]
    assert {(row["topic"], row["queue_id"]) for row in rows} == {("T", 3)}
    entries = [(r["commit_offset"], r["size"], r["tags_code"]) for r in rows if r["kind"] == "entry"]
    assert entries == [(0, 100, 0), (100, 120, -7), (300, 90, 1)]
    assert {row["size"] for row in rows if row["kind"] != "entry"} == {None}


def test_invalid_units_are_damage(tmp_path: Path) -> None:
    rows = read(write(tmp_path, [(-1, 100, 0), (5, -1, 0), (0, 100, 0)], rest=b"half"))
    assert [row["kind"] for row in rows] == ["damage", "damage", "entry", "damage"]
    assert "no position" in rows[0]["detail"]
    assert "ends inside an entry" in rows[3]["detail"]


def test_the_ranges_of_a_file_return_each_entry_once(tmp_path: Path) -> None:
    path = write(tmp_path, [(n * 100, 100, n) for n in range(50)])
    assert read(path, split_bytes=130) == read(path)

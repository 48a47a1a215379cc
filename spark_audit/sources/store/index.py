"""Reads a range of a key-index file into Arrow batches, with numpy.

The header contains the number of entries; bytes after them are ignored.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from mqproof.impl.store.files.index_file import HEADER_BYTES, Header
from mqproof.spark_audit.sources.store.ranges import Range, cut, subfolder

ENTRY: Final = "entry"
DAMAGE: Final = "damage"

SLOTS: Final = 5_000_000
"""maxHashSlotNum, if the broker's configuration does not say otherwise."""
ENTRY_BYTES: Final = 20
SLOT_BYTES: Final = 4
NAME_DIGITS: Final = 17

SCHEMA: Final = pa.schema(
    [
        ("kind", pa.string()),  # entry | damage
        ("file", pa.string()),
        ("number", pa.int64()),  # from 1
        ("key_hash", pa.int32()),
        ("commit_offset", pa.int64()),
        ("stored_ms", pa.int64()),  # of the record, to the second
        ("previous", pa.int32()),  # in its chain, 0 for none
        ("detail", pa.string()),
    ]
)

_ENTRY: Final = np.dtype(
    [("key_hash", ">i4"), ("commit_offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")]
)
assert _ENTRY.itemsize == ENTRY_BYTES


def first_entry_at(slots: int) -> int:
    """Return the position of entry 1; before it is space for an entry 0, which is not used."""
    return HEADER_BYTES + slots * SLOT_BYTES + ENTRY_BYTES


def ranges(path: str, split_bytes: int, slots: int) -> Iterator[Range]:
    """Yield the ranges of the entries of all index files of a store directory.

    Raises:
        StoreError: it has no index folder.
    """
    for file in sorted(subfolder(path, "index").iterdir()):
        if len(file.name) == NAME_DIGITS and file.name.isdecimal():
            yield from cut(file, split_bytes, ENTRY_BYTES, first_entry_at(slots))


def read_range(part: Range, slots: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of SCHEMA.

    Raises:
        OSError: the file cannot be read.
    """
    path = Path(part.file)
    with path.open("rb") as opened:
        header = Header.decode(opened.read(HEADER_BYTES).ljust(HEADER_BYTES, b"\0"))
    begin, size = first_entry_at(slots), path.stat().st_size
    room = (size - begin) // ENTRY_BYTES
    if size < begin:
        if part.is_last:
            detail = f"{size} bytes, and {slots} slots (maxHashSlotNum) alone take {begin}"
            yield _damage(part.file, detail)
        return
    if not 0 < header.entry_next <= room + 1:
        if part.is_last:
            yield _damage(part.file, f"next entry {header.entry_next}, with {slots} slots at most {room + 1}")
        return
    first = (part.start - begin) // ENTRY_BYTES + 1
    count = min(part.bytes // ENTRY_BYTES, header.entry_next - first)
    if count <= 0:
        return
    entries = np.fromfile(path, _ENTRY, count, offset=part.start)
    columns: dict[str, Any] = {
        "kind": pa.repeat(ENTRY, count),
        "file": pa.repeat(part.file, count),
        "number": pa.array(np.arange(first, first + count)),
        "key_hash": pa.array(entries["key_hash"].astype(np.int32)),
        "commit_offset": pa.array(entries["commit_offset"].astype(np.int64)),
        "stored_ms": pa.array(header.begin_timestamp_ms + entries["seconds"].astype(np.int64) * 1000),
        "previous": pa.array(entries["previous"].astype(np.int32)),
        "detail": pa.nulls(count, pa.string()),
    }
    yield pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _damage(file: str, detail: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"kind": DAMAGE, "file": file, "detail": detail}], schema=SCHEMA)

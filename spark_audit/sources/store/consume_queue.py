"""Reads a range of a consume-queue segment into Arrow batches, with numpy directly on the file.

Units have a fixed size, so a range may be split between any two. A run of units that were never written, or
that precede the first entry of a queue that begins later, becomes one row.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqproof.spark_audit.sources.store.ranges import Range, cut, queue_of, queue_segments, subfolder

ENTRY: Final = "entry"
BLANK: Final = "blank"
"""Units before the first entry of a queue whose older entries are deleted."""
ZEROS: Final = "zeros"
"""Preallocated units that were never written; between entries, a hole."""
DAMAGE: Final = "damage"
"""An entry that no broker writes."""

UNIT_BYTES: Final = 20

SCHEMA: Final = pa.schema(
    [
        ("kind", pa.string()),  # entry | blank | zeros | damage
        ("file", pa.string()),
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("queue_offset", pa.int64()),  # of the first unit of the row
        ("units", pa.int64()),  # 1 for an entry
        ("commit_offset", pa.int64()),
        ("size", pa.int32()),  # bytes of the record
        ("tags_code", pa.int64()),
        ("detail", pa.string()),
    ]
)

_UNIT: Final = np.dtype([("commit_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
assert _UNIT.itemsize == UNIT_BYTES
_BLANK_SIZE: Final = (1 << 31) - 1

Ints = npt.NDArray[np.int64]


def ranges(path: str, split_bytes: int) -> Iterator[Range]:
    """Yield the ranges of all queues of a store directory.

    Raises:
        StoreError: it has no consumequeue folder.
    """
    for file in queue_segments(subfolder(path, "consumequeue")):
        yield from cut(file, split_bytes, UNIT_BYTES)


def read_range(part: Range) -> Iterator[pa.RecordBatch]:
    """Yield batches of SCHEMA.

    Raises:
        OSError: the file cannot be read.
    """
    path = Path(part.file)
    count, rest = divmod(part.bytes, UNIT_BYTES)
    units = np.fromfile(path, _UNIT, count, offset=part.start)
    first = (int(path.name) + part.start) // UNIT_BYTES
    commit_offset = units["commit_offset"].astype(np.int64)
    size, tags_code = units["size"].astype(np.int32), units["tags_code"].astype(np.int64)
    is_zeros = (commit_offset == 0) & (size == 0) & (tags_code == 0)
    is_blank = (commit_offset == 0) & (size == _BLANK_SIZE) & (tags_code == 0)
    is_entry = (commit_offset >= 0) & (size > 0) & ~is_blank
    topic, queue_id = queue_of(part.file)

    def batch(kind: str, at: Ints, units: Ints, detail: str | None = None) -> pa.RecordBatch:
        rows = len(at)
        columns: dict[str, Any] = {
            "kind": pa.repeat(kind, rows),
            "file": pa.repeat(part.file, rows),
            "topic": pa.repeat(topic, rows),
            "queue_id": pa.array(np.full(rows, queue_id, np.int32)),
            "queue_offset": pa.array(first + at),
            "units": pa.array(units),
            "detail": pa.array([detail] * rows, pa.string()),
        }
        for name, values in (("commit_offset", commit_offset), ("size", size), ("tags_code", tags_code)):
            has_position = kind in (ENTRY, DAMAGE) and detail != _CUT
            columns[name] = pa.array(values[at]) if has_position else pa.nulls(rows, SCHEMA.field(name).type)
        return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    entries = np.flatnonzero(is_entry)
    if len(entries):
        yield batch(ENTRY, entries, np.ones(len(entries), np.int64))
    for kind, which in ((ZEROS, is_zeros), (BLANK, is_blank)):
        begins, lengths = _runs(which)
        if len(begins):
            yield batch(kind, begins, lengths)
    invalid = np.flatnonzero(~(is_entry | is_zeros | is_blank))
    if len(invalid):
        yield batch(DAMAGE, invalid, np.ones(len(invalid), np.int64), "no position and size of a record")
    if rest:
        yield batch(DAMAGE, np.array([count]), np.array([1]), _CUT)


_CUT: Final = "the file ends inside an entry"


def _runs(which: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return where runs of true begin, and their lengths."""
    edges = np.flatnonzero(np.diff(which.astype(np.int8), prepend=0, append=0)).astype(np.int64)
    return edges[0::2], edges[1::2] - edges[0::2]

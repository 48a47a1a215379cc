"""Packs parts of files into tasks."""

from mqproof.spark_audit.sources.packing import pack
from mqproof.spark_audit.sources.store.ranges import Range


def test_small_neighbours_share_a_task() -> None:
    parts = [Range(str(n), 0, size, True) for n, size in enumerate([10, 10, 90, 30, 70])]
    assert [[part.bytes for part in task] for task in pack(parts, 100)] == [[10, 10], [90], [30, 70]]

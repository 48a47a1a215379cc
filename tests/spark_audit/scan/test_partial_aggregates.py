"""Partial aggregates that are exchanged between tasks."""

import zlib

import numpy as np
import pyarrow as pa

from mqproof.spark_audit.scan.partial_aggregates import PARTIAL_AGGREGATES, packed
from mqproof.spark_audit.scan.sql import Work, of_aggregates

PARTS = 8
SUMMED = pa.schema(
    [("msg_id", pa.string()), ("rows", pa.int64()), ("ts", pa.int64()), ("group", pa.string())]
)
MERGE = Work(
    ('SELECT msg_id, count(*) AS rows, min(ts) AS ts, max("group") AS "group" FROM log GROUP BY 1',), SUMMED
)


def aggregates(first: int, groups: list[str | None]) -> pa.RecordBatch:
    """Return the aggregates of a split: one row for each message."""
    ids = [f"m{number}" for number in range(len(groups))]
    times = range(first, first + len(groups))
    columns = {"msg_id": ids, "ts": pa.array(times, pa.int64()), "group": pa.array(groups, pa.string())}
    return packed(pa.table(columns), np.array([zlib.crc32(id_.encode()) % PARTS for id_ in ids]))


def test_rows_of_one_part_are_brought_together_unchanged() -> None:
    of_part: dict[int, list[pa.RecordBatch]] = {}
    for batch in (aggregates(1000, [None] * 100), aggregates(0, ["g", None] * 50)):
        assert len(batch) == PARTS
        for row in batch.to_pylist():
            of_part.setdefault(row["part"], []).append(pa.RecordBatch.from_pylist([row], PARTIAL_AGGREGATES))
    assert set(of_part) == set(range(PARTS))
    merged = [
        row
        for each in of_part.values()
        for batch in of_aggregates(MERGE)(iter(each))
        for row in batch.to_pylist()
    ]
    assert sorted(merged, key=lambda row: int(row["ts"])) == [
        {"msg_id": f"m{number}", "rows": 2, "ts": number, "group": None if number % 2 else "g"}
        for number in range(100)
    ]


def test_an_empty_table_has_no_partial_aggregate() -> None:
    assert not len(aggregates(0, []))
    assert not list(of_aggregates(MERGE)(iter([])))

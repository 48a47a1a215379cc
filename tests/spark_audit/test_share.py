"""What tasks hand over to one another."""

import pyarrow as pa

from spark_audit.share import PARCELS, Work, of_partition, of_rows

PARTS = 8
PARCELLED = Work(
    ('SELECT msg_id, min(ts) AS ts, max("group") AS "group" FROM log GROUP BY msg_id',),
    PARCELS,
    key="msg_id",
    parts=PARTS,
)
SUMMED = pa.schema(
    [("msg_id", pa.string()), ("rows", pa.int64()), ("ts", pa.int64()), ("group", pa.string())]
)
MERGE = Work(
    ('SELECT msg_id, count(*) AS rows, min(ts) AS ts, max("group") AS "group" FROM log GROUP BY 1',), SUMMED
)


def share(first: int, groups: list[str | None]) -> list[pa.RecordBatch]:
    ids = [f"m{number}" for number in range(len(groups))]
    times = range(first, first + len(groups))
    columns = {"msg_id": ids, "ts": pa.array(times, pa.int64()), "group": pa.array(groups, pa.string())}
    return [pa.RecordBatch.from_pydict(columns)]


def test_rows_of_one_key_are_of_one_part_whichever_share_they_come_from() -> None:
    shares = [share(1000, [None] * 100), share(0, ["g", None] * 50)]
    parcels = [batch for each in shares for batch in of_rows(PARCELLED)(iter(each))]
    of_part: dict[int, list[pa.RecordBatch]] = {}
    for batch in parcels:
        for row in batch.to_pylist():
            of_part.setdefault(row["part"], []).append(pa.RecordBatch.from_pylist([row], PARCELS))
    assert set(of_part) == set(range(PARTS))
    assert sum(map(len, of_part.values())) == PARTS * len(shares)
    merged = [
        row
        for each in of_part.values()
        for batch in of_partition(MERGE)(iter(each))
        for row in batch.to_pylist()
    ]
    assert sorted(merged, key=lambda row: int(row["ts"])) == [
        {"msg_id": f"m{number}", "rows": 2, "ts": number, "group": None if number % 2 else "g"}
        for number in range(100)
    ]


def test_of_nothing_there_is_no_parcel() -> None:
    none = of_rows(PARCELLED)(iter([share(0, ["g"])[0].slice(1)]))
    assert not [row for batch in none for row in batch.to_pylist()]
    assert not list(of_partition(MERGE)(iter([])))

"""A row group is read again exactly if its rows of a node overlap a range of numbers needed of that node."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mqproof.spark_audit.passes.extraction import _overlapping, _unkept

pairs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12)


def columns(rows: list[tuple[int, int]], *names: str) -> pa.Table:
    return pa.table({name: pa.array([row[at] for row in rows], pa.int64()) for at, name in enumerate(names)})


@given(pairs, pairs)
def test_the_row_groups_that_overlap_a_span_are_found(
    spans: list[tuple[int, int]], own: list[tuple[int, int]]
) -> None:
    wanted = [(begin, begin + length) for begin, length in spans]
    extents = [(low, low + length) for low, length in own]
    numbers = pa.array(range(len(extents)), pa.int64())
    found = _overlapping(
        columns(wanted, "begin_seq", "end_seq"),
        columns(extents, "low", "high").append_column("row_group", numbers),
    )
    expected = [
        number
        for number, (low, high) in enumerate(extents)
        if any(begin <= high and end >= low for begin, end in wanted)
    ]
    assert sorted(found) == expected


def test_a_bucket_is_read_from_all_row_groups_between_its_first_and_last() -> None:
    read = pa.table({"unkept_min": pa.array([3, None, 9]), "unkept_max": pa.array([5, None, 9])})
    assert _unkept(read) == {3, 4, 5, 9}

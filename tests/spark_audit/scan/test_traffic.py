"""Compares the results of the loops over a partition's rows with a computation row by row."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mqproof.spark_audit.scan import traffic

steps = st.lists(
    st.tuples(st.integers(0, 2), st.booleans(), st.booleans(), st.integers(0, 5), st.integers(0, 30)),
    min_size=1,
    max_size=30,
)
"""For each row: the number of equal rows, whether it is a step and a delivery, its offset and its number."""


def test_rows_with_equal_columns_get_the_same_number() -> None:
    texts = [("x", "y", None)] * 5
    values = list(itertools.product(*texts, (0, 1, -1, None), (7, None))) * 2
    names = ("kind", "node", "stated", "group", "topic", "queue_id", "queue_offset")
    columns = dict(zip(names, map(list, zip(*values, strict=True)), strict=True))
    batch = pa.RecordBatch.from_pydict(
        {
            name: pa.array(column, pa.int64())
            if name.startswith("queue")
            else pa.array(column).dictionary_encode()
            for name, column in columns.items()
        }
    )
    which, firsts = traffic.equal_rows(batch)
    assert firsts.tolist() == list(range(len(values) // 2))
    assert which.tolist() == [*firsts.tolist(), *firsts.tolist()]


@given(steps)
def test_a_run_continues_while_each_row_is_the_next_one(rows: list[tuple[int, bool, bool, int, int]]) -> None:
    which, is_step, is_delivery, offset, seq = (np.array(column) for column in zip(*rows, strict=True))
    expected = set()
    for number in range(3):
        own = [at for at in range(len(rows)) if which[at] == number and is_step[at]]
        own.sort(key=lambda at: seq[at])
        begin = 0
        for i, (before, at) in enumerate(itertools.pairwise(own), 1):
            step = offset[at] - offset[before]
            if step < 0 or (is_delivery[at] and step > 1):
                expected.add((own[begin], before))
                begin = i
        if own:
            expected.add((own[begin], own[-1]))
    first, last = traffic.runs(which, is_step, is_delivery, seq, offset)
    assert set(zip(first.tolist(), last.tolist(), strict=True)) == expected


@given(steps)
def test_extents_cover_only_the_counted_rows(rows: list[tuple[int, bool, bool, int, int]]) -> None:
    which, left_out, _, offset, seq = (np.array(column) for column in zip(*rows, strict=True))
    columns = (offset, seq, seq - offset)
    counted, least, most = traffic.extents(which, left_out, columns)
    for number in range(which.max() + 1):
        own = [at for at in range(len(rows)) if which[at] == number and not left_out[at]]
        assert counted[number] == len(own)
        for column, low, high in zip(columns, least, most, strict=True):
            if own:
                assert (low[number], high[number]) == (min(column[own]), max(column[own]))

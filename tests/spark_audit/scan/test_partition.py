"""A partition has exactly the rows that are events, with the decoded values of attrs.

Method: generate random rows with faults of every kind (missing fields, unknown kinds, maps that are null,
empty or lack the key). Pass them in files of various layouts, and as slices from Spark. The result must equal
that of decoding row by row.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.spark_audit.scan import partition
from mqproof.spark_audit.scan.partition import Partition, of_files, of_rows, stored, stored_rows
from mqproof.spark_audit.sources import splits
from mqproof.spark_audit.sources.splits import LogFile, SplitError, Tasks, by_task, splits_of
from mqproof.spec.events import NUMBER_MAX, REQUIRED, SCHEMA_VERSION, Kind
from tests.spark_audit.conftest import table

SHOWN = pa.schema([("text", pa.string())])

NUMBERS = pa.RecordBatch.from_pydict({"id": [0]})

attrs = st.none() | st.dictionaries(
    st.sampled_from(["broker", "reset", "schema", "x"]), st.sampled_from(["a", "true", "1", "2", "new"])
)

rows_of_a_log = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 9) | st.sampled_from([NUMBER_MAX, NUMBER_MAX + 1]),
            "seq": st.none() | st.integers(0, 9),
            "node": st.sampled_from(["n", "m", None]),
            "kind": st.sampled_from([*Kind, "unheard of", None]),
            "topic": st.sampled_from(["t", None]),
            "queue_offset": st.sampled_from([None, 0, 0, 0, -NUMBER_MAX, -NUMBER_MAX - 1, -(1 << 63)]),
            "queue_id": st.sampled_from([0, 1, None]),
            "msg_id": st.sampled_from(["m_1", None]),
            "attrs": attrs,
        }
    ),
    max_size=20,
)

log_and_width = st.tuples(rows_of_a_log, st.integers(1, 7))


def shown(of: Partition) -> Iterator[pa.RecordBatch]:
    """Yield each row's decoded columns, with the whole row."""
    whole = of.rows(np.arange(len(of.batch))).to_pylist()
    decoded = of.batch.select(["kind", "stated", "reset"]).to_pylist()
    texts = [str((each, row)) for each, row in zip(decoded, whole, strict=True)]
    yield pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.string())})


def is_event(row: dict[str, Any]) -> bool:
    in_range = all(abs(row[name] or 0) <= NUMBER_MAX for name in ("ts", "queue_offset"))
    return row["kind"] in list(Kind) and in_range and all(row[name] is not None for name in REQUIRED)


def expected(rows: list[dict[str, Any]]) -> list[str]:
    texts = []
    for row in table(rows).to_pylist():
        if not is_event(row):
            continue
        own = dict(row["attrs"] or {})
        schema = own.get("schema", "1")
        is_newer = not schema.isdigit() or int(schema) > SCHEMA_VERSION
        kind = None if is_newer else row["kind"]
        decoded = {"kind": kind, "stated": own.get("broker"), "reset": own.get("reset") == "true"}
        texts.append(str((decoded, row | {"kind": kind})))
    return texts


def texts(batches: Iterator[pa.RecordBatch]) -> list[str]:
    return [text for batch in batches for text in batch["text"].to_pylist()]


def of_file(path: Path) -> list[str]:
    tasks, numbers = all_of(path)
    return texts(of_files([shown], SHOWN, tasks)(iter([numbers])))


def all_of(path: Path) -> tuple[Tasks, pa.RecordBatch]:
    """Return the tasks of a file, and their numbers."""
    tasks = by_task(splits_of([LogFile(path)]), cores=3)
    return tasks, pa.RecordBatch.from_pydict({"id": list(range(len(tasks)))})


def odd_numbered(of: Partition) -> partition.Numbers:
    """Return the indices of the rows with odd sequence numbers."""
    return np.flatnonzero(of.batch["seq"].to_numpy(zero_copy_only=False) % 2)


def kept(names: Iterator[pa.RecordBatch]) -> list[str]:
    files = [path for batch in names for path in batch["file"].to_pylist()]
    return sorted(str(row) for path in files for row in pq.read_table(path).to_pylist())


@given(log_and_width)
def test_rows_passed_by_spark_are_decoded_correctly(log: tuple[list[dict[str, Any]], int]) -> None:
    rows, width = log
    whole = table(rows)
    slices = [whole.slice(at, width).to_batches() for at in range(0, len(rows), width)]
    batches = iter([batch for batches in slices for batch in batches])
    assert texts(of_rows([shown], SHOWN)(batches)) == expected(rows)


@given(log_and_width)
def test_rows_of_a_file_are_decoded_correctly(
    tmp_path_factory: pytest.TempPathFactory, log: tuple[list[dict[str, Any]], int]
) -> None:
    rows, width = log
    path = tmp_path_factory.mktemp("rows") / "a.parquet"
    # Partitions are so small that a row group has several.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partition, "_ROWS", 3)
        patched.setattr(splits, "_SPLIT_BYTES", 1)
        pq.write_table(table(rows), path, row_group_size=2 * width)
        assert of_file(path) == expected(rows)


@given(log_and_width)
def test_selected_rows_are_stored_with_all_their_columns(
    tmp_path_factory: pytest.TempPathFactory, log: tuple[list[dict[str, Any]], int]
) -> None:
    rows, width = log
    folder = tmp_path_factory.mktemp("chosen")
    path = folder / "[a].parquet"
    expected_rows = sorted(
        map(str, table([row for row in rows if is_event(row) and row["seq"] % 2]).to_pylist())
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partition, "_ROWS", 3)
        patched.setattr(splits, "_SPLIT_BYTES", 1)
        pq.write_table(table(rows), path, row_group_size=2 * width)
        tasks, numbers = all_of(path)
        assert kept(stored(odd_numbered, folder, tasks)(iter([numbers]))) == expected_rows
    batches = iter(table(rows).to_batches(max_chunksize=width))
    assert kept(stored_rows(odd_numbered, folder)(batches)) == expected_rows


@pytest.mark.parametrize("text", [pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_text_columns_may_have_other_encodings(tmp_path: Path, text: pa.DataType) -> None:
    rows = [
        {"ts": 1, "seq": n, "node": "n", "kind": "flush", "topic": None, "attrs": {"broker": f"b{n % 2}"}}
        for n in range(5)
    ]
    encoded = table(rows)
    for name in ("node", "kind", "topic"):
        at = encoded.schema.get_field_index(name)
        encoded = encoded.set_column(at, name, encoded[name].cast(text))
    pq.write_table(encoded, tmp_path / "a.parquet", row_group_size=2)
    assert of_file(tmp_path / "a.parquet") == expected(rows)


def test_a_number_that_does_not_fit_is_named_with_its_file(tmp_path: Path) -> None:
    rows = pa.table({"seq": pa.array([1 << 63], pa.uint64()), "ts": [1], "node": ["a"], "kind": ["flush"]})
    pq.write_table(rows, tmp_path / "a.parquet")
    with pytest.raises(SplitError, match=r"a\.parquet: a value does not fit its column: .*922337"):
        of_file(tmp_path / "a.parquet")

"""The batches of a task are gathered and converted to a schema, and an error names its file."""

from pathlib import Path

import pyarrow as pa
import pytest

from mqproof.spark_audit.scan import tasks
from mqproof.spark_audit.scan.tasks import gathered, shaped, why


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int32())})


def test_batches_are_gathered_into_larger_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_TABLE_ROWS", 3)
    tables = gathered(iter([batch(1, 2), batch(3, 4), batch(5)]))
    assert [table["n"].to_pylist() for table in tables] == [[1, 2, 3, 4], [5]]
    assert list(gathered(iter([]))) == []


def test_a_batch_gets_the_types_of_the_schema_and_nulls_for_missing_columns() -> None:
    schema = pa.schema([("text", pa.string()), ("n", pa.int64())])
    converted = shaped(batch(1), schema)
    assert (converted.schema, converted.to_pylist()) == (schema, [{"text": None, "n": 1}])


def test_a_missing_file_is_not_reported_as_damaged(tmp_path: Path) -> None:
    error = RuntimeError("no magic bytes\nand a long trace")
    assert why(tmp_path / "gone.parquet", error) == "No such file or directory"
    (tmp_path / "here.parquet").write_bytes(b"x")
    assert why(tmp_path / "here.parquet", error) == "damaged, cannot be read to the end: no magic bytes"

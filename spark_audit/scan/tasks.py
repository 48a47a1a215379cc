"""Helpers common to all tasks of a pass: their splits, batches of rows, and errors that name a file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from mqproof.spark_audit.sources.splits import Split, Tasks

Batches = Iterator[pa.RecordBatch]

_TABLE_ROWS: Final = 1 << 20
"""Rows that Spark passes to a task are processed in batches of about this size."""


def splits_of_tasks(tasks: Tasks, numbers: Batches) -> Iterator[Split]:
    """Yield all splits of the tasks with these numbers."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from tasks[number]


def gathered(batches: Batches) -> Iterator[pa.Table]:
    """Combine small batches into tables of about _HANDED_ROWS rows each."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= _TABLE_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with exactly the columns of the schema; missing columns are null."""
    found: Mapping[str, pa.Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [
        found[field.name].cast(field.type) if field.name in found else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def why(path: Path, error: Exception) -> str:
    """Return the reason why a file that existed when the run began cannot be read."""
    try:
        path.open("rb").close()
    except OSError as refused:
        return refused.strerror or type(refused).__name__
    return f"damaged, cannot be read to the end: {first_line(error)}"


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]

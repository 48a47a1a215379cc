"""SQL over one split of an event log in the task's own process, with DuckDB.

A split is some row groups of a Parquet file, or rows that Spark passes to the task. Of a file, only the
columns that a query names are decoded. Queries see the split as the table `log` with the columns of
spec.events, or they see partial aggregates of other tasks. DuckDB's memory is bounded: it spills the rest to
disk.
"""

import errno
import glob
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spark_audit.scan.partial_aggregates import unpacked
from mqproof.spark_audit.scan.tasks import Batches, first_line, gathered, shaped, splits_of_tasks, why
from mqproof.spark_audit.sources.splits import ROW, Split, SplitError, Tasks
from mqproof.spec.events import COLUMNS, NUMBER_MAX, REQUIRED, Kind

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY: Final = "1GB"
_BATCH_ROWS: Final = 1 << 16

_TYPES: Final = {
    "int64": "BIGINT", "int32": "INTEGER", "string": "VARCHAR", "map<string,string>": "MAP(VARCHAR, VARCHAR)"
}  # fmt: skip


_IS_EVENT: Final = " AND ".join(
    [
        *(f'"{name}" IS NOT NULL' for name in REQUIRED),
        f"kind IN ({quoted(*Kind)})",
        f"ts BETWEEN -{NUMBER_MAX} AND {NUMBER_MAX}",
    ]
)
"""Condition for valid events, based on a few columns; partition.py and profile.py check all columns."""


@dataclass(frozen=True, slots=True)
class Work:
    """The queries to run on each split."""

    queries: tuple[str, ...]
    """Each query yields some of the columns of `schema`; the others are null."""
    schema: pa.Schema
    tables: tuple[tuple[str, pa.Table], ...] = ()
    """Tables, by name, that the queries see in addition to the split."""


def of_files(work: Work, tasks: Tasks) -> Callable[[Batches], Batches]:
    """Return a function for mapInArrow over the tasks' numbers."""

    def run(numbers: Batches) -> Batches:
        with _opened(work) as connection:
            for split in splits_of_tasks(tasks, numbers):
                yield from _of_file(connection, work, split)

    return run


def _of_file(connection: "DuckDBPyConnection", work: Work, split: Split) -> Batches:
    with _naming_file(split.file.path):
        connection.execute(_view(connection, split))
        yield from _results(connection, work)


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.ConversionException as error:
        raise SplitError(f"{path}: a value does not fit its column: {first_line(error)}") from None
    except duckdb.Error as error:
        if os.strerror(errno.ENOSPC) in str(error):
            raise  # The disk that DuckDB spills to is full.
        raise SplitError(f"{path}: {why(path, error)}") from None


def evaluated(expression: str, rows: pa.RecordBatch) -> pa.Array:
    """Evaluate an SQL expression for each row."""
    connection = _of_worker()
    connection.register("given", pa.Table.from_batches([rows]))
    result = connection.sql(f"SELECT {expression} AS value FROM given").to_arrow_table()
    return result["value"].combine_chunks()


@cache
def _of_worker() -> "DuckDBPyConnection":
    """Return the worker's connection for small queries: opening one takes longer than such a query."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return connection


def _read(path: Path) -> str:
    # DuckDB treats brackets and stars as a pattern, which may match another file.
    return (
        f"read_parquet({quoted(glob.escape(str(path)))}, hive_partitioning = false, file_row_number = true)"
    )


def of_rows(work: Work) -> Callable[[Batches], Batches]:
    """Return a function for mapInArrow over events."""

    def run(batches: Batches) -> Batches:
        with _opened(work) as connection:
            for table in gathered(batches):
                connection.register("log", table)
                yield from _results(connection, work)

    return run


def of_aggregates(work: Work) -> Callable[[Batches], Batches]:
    """Return a function for mapInArrow over PARTIAL_AGGREGATES.

    The one query reads all rows of a Spark partition at once, and only once.
    """

    def run(batches: Batches) -> Batches:
        rows = unpacked(batches)
        first = next(rows, None)
        if first is None:
            return
        with _opened(work) as connection:
            reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
            connection.register("log", reader)
            for batch in connection.sql(work.queries[0]).to_arrow_reader(_BATCH_ROWS):
                yield shaped(batch, work.schema)

    return run


@contextmanager
def _opened(work: Work) -> "Iterator[DuckDBPyConnection]":
    # Imported only in tasks: planning an audit does not need it.
    import duckdb

    # Spill to the folder that Spark spills to (spark.local.dir).
    local = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
    spilled = tempfile.TemporaryDirectory(prefix="mqproof-split-", dir=local)
    with spilled as spill, duckdb.connect() as connection:
        # A task has one core, and the order of rows does not matter.
        connection.execute("SET threads = 1; SET preserve_insertion_order = false")
        connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = {quoted(spill)}")
        for name, table in work.tables:
            connection.register(name, table)
        yield connection


def _view(connection: "DuckDBPyConnection", split: Split) -> str:
    file = split.file
    source = _read(file.path)
    own = set(connection.sql(f"FROM {source} LIMIT 0").columns)
    values = {name: f'"{name}"' if name in own else "NULL" for name in COLUMNS}
    columns = [f'CAST({values[name]} AS {_TYPES[kind]}) AS "{name}"' for name, kind in COLUMNS.items()]
    conditions = [_IS_EVENT, f"{ROW} >= {split.begin}", f"{ROW} < {split.end}"]
    if file.marks:
        conditions.append(f'"{file.marks}" IS NULL')
    rows = f"SELECT {', '.join(columns)} FROM {source} WHERE {' AND '.join(conditions)}"
    return f"CREATE OR REPLACE TEMP VIEW log AS {rows}"


def _results(connection: "DuckDBPyConnection", work: Work) -> Batches:
    for query in work.queries:
        for batch in connection.sql(query).to_arrow_reader(_BATCH_ROWS):
            yield shaped(batch, work.schema)

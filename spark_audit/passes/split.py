"""A task's share of an event log, and the SQL that it runs by itself: DuckDB within the task's process.

A share is some row groups of a Parquet file, of which only the columns are decoded that a query names, or
rows that Spark hands over. Queries see it as the table `log`, with the columns of spec.events; or they see
what tasks have handed over to one another, PARCELS. Whatever there is of it, DuckDB has so much memory, and
spills the rest.
"""

import errno
import glob
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mqproof.spark_audit.sources.packing import pack
from mqproof.spec.events import COLUMNS, NUMBER_MAX, REQUIRED, Kind

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY: Final = "1GB"
_SHARE_BYTES: Final = 64 << 20
"""Of a file with several row groups: so much, or one of them."""
_HANDED_ROWS: Final = 1 << 20
"""So many rows that Spark hands over are one share."""
_BATCH_ROWS: Final = 1 << 16

ROW: Final = "file_row_number"
"""What DuckDB calls the position of a row in its file."""

PARCELS: Final = pa.schema([("part", pa.int32()), ("parcel", pa.binary())])
"""Many rows as one value of bytes, a table in Arrow's format of streams: Spark, which takes rows apart, has
one to hand over. Those of one key are of one part."""

_TYPES: Final = {
    "int64": "BIGINT", "int32": "INTEGER", "string": "VARCHAR", "map<string,string>": "MAP(VARCHAR, VARCHAR)"
}  # fmt: skip


def quoted(*texts: str) -> str:
    """Texts as SQL has them, for a list."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)


_IS_EVENT: Final = " AND ".join(
    [
        *(f'"{name}" IS NOT NULL' for name in REQUIRED),
        f"kind IN ({quoted(*Kind)})",
        f"ts BETWEEN -{NUMBER_MAX} AND {NUMBER_MAX}",
    ]
)
"""As far as it shows in the columns that each has; piece.py and profile.py look at all."""


class ShareError(RuntimeError):
    """A file cannot be read. The message names it."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A Parquet file of events, at a path that every executor sees."""

    path: Path
    marks: str | None = None
    """A column that says of rows which are no events what they are."""
    groups: tuple[int, ...] | None = None
    """Of its row groups only these; None: all of them."""


@dataclass(frozen=True, slots=True)
class Share:
    """Neighbouring row groups of a file."""

    file: LogFile
    groups: range
    begin: int
    end: int
    """Its rows, by their position in the file."""
    bytes: int
    number: int = 0
    """Of its first row group, counted through all files."""


Tasks = Sequence[Sequence[Share]]


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked of each share."""

    queries: tuple[str, ...]
    """Each yields some of the columns of `schema`; the others are null."""
    schema: pa.Schema
    tables: tuple[tuple[str, pa.Table], ...] = ()
    """What the queries see beside the share, by name."""


def shares(files: Sequence[LogFile]) -> tuple[Share, ...]:
    """The files, cut between row groups."""
    cut: list[Share] = []
    before = 0
    for file in files:
        metadata = pq.read_metadata(file.path)
        cut += _cut(file, metadata, before)
        before += metadata.num_row_groups
    return tuple(cut)


def _cut(file: LogFile, metadata: pq.FileMetaData, before: int) -> Iterator[Share]:
    wanted = range(metadata.num_row_groups) if file.groups is None else file.groups
    begins = [0]
    for number in range(metadata.num_row_groups):
        begins.append(begins[-1] + metadata.row_group(number).num_rows)
    for together in _together([(number, _size(metadata.row_group(number))) for number in wanted]):
        groups = range(together[0][0], together[-1][0] + 1)
        size = sum(size for _, size in together)
        yield Share(file, groups, begins[groups.start], begins[groups.stop], size, before + groups.start)


def _size(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def _together(groups: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Of (number, bytes): neighbours, as many as fit into a share."""
    held: list[tuple[int, int]] = []
    for number, size in groups:
        if held and (number != held[-1][0] + 1 or sum(own for _, own in held) + size > _SHARE_BYTES):
            yield held
            held = []
        held.append((number, size))
    if held:
        yield held


def by_task(cut: Sequence[Share], cores: int) -> Tasks:
    """Small shares together with their neighbours, for a task costs more than to read one; but every core
    has some."""
    return pack(cut, min(_SHARE_BYTES, -(-sum(share.bytes for share in cut) // cores)))


Batches = Iterator[pa.RecordBatch]


def of_files(work: Work, tasks: Tasks) -> Callable[[Batches], Batches]:
    """For mapInArrow over the tasks' numbers."""

    def run(numbers: Batches) -> Batches:
        with _opened(work) as connection:
            for share in shares_of(tasks, numbers):
                yield from _of_file(connection, work, share)

    return run


def shares_of(tasks: Tasks, numbers: Batches) -> Iterator[Share]:
    """All shares of the tasks of such numbers."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from tasks[number]


def _of_file(connection: "DuckDBPyConnection", work: Work, share: Share) -> Batches:
    with _blamed(share.file.path):
        connection.execute(_view(connection, share))
        yield from _asked(connection, work)


@contextmanager
def _blamed(path: Path) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.ConversionException as error:
        raise ShareError(f"{path}: a value does not fit its column: {said(error)}") from None
    except duckdb.Error as error:
        if os.strerror(errno.ENOSPC) in str(error):
            raise  # of what is spilled
        raise ShareError(f"{path}: {why(path, error)}") from None


def evaluated(expression: str, rows: pa.RecordBatch) -> pa.Array:
    """An expression of SQL, for each row."""
    connection = _of_worker()
    connection.register("given", pa.Table.from_batches([rows]))
    told = connection.sql(f"SELECT {expression} AS value FROM given").to_arrow_table()
    return told["value"].combine_chunks()


@cache
def _of_worker() -> "DuckDBPyConnection":
    """For what is small: to open one takes longer."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return connection


def _read(path: Path) -> str:
    # Brackets and stars are a pattern to DuckDB, which may meet another file.
    return (
        f"read_parquet({quoted(glob.escape(str(path)))}, hive_partitioning = false, file_row_number = true)"
    )


def why(path: Path, error: Exception) -> str:
    """What is wrong with a file that was there when the run began."""
    try:
        path.open("rb").close()
    except OSError as refused:
        return refused.strerror or type(refused).__name__
    return f"damaged, cannot be read to its end: {said(error)}"


def said(error: Exception) -> str:
    return str(error).partition("\n")[0]


def of_rows(work: Work) -> Callable[[Batches], Batches]:
    """For mapInArrow over events."""

    def run(batches: Batches) -> Batches:
        with _opened(work) as connection:
            for table in gathered(batches):
                connection.register("log", table)
                yield from _asked(connection, work)

    return run


def of_partition(work: Work) -> Callable[[Batches], Batches]:
    """For mapInArrow over PARCELS: all of a partition at once, which the one query reads once."""

    def run(batches: Batches) -> Batches:
        unpacked = _unpacked(batches)
        first = next(unpacked, None)
        if first is None:
            return
        with _opened(work) as connection:
            reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], unpacked))
            connection.register("log", reader)
            for batch in connection.sql(work.queries[0]).to_arrow_reader(_BATCH_ROWS):
                yield shaped(batch, work.schema)

    return run


def gathered(batches: Batches) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= _HANDED_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


@contextmanager
def _opened(work: Work) -> "Iterator[DuckDBPyConnection]":
    # In tasks alone: what only plans an audit need not load it.
    import duckdb

    # Where Spark spills, too: as spark.local.dir says.
    local = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
    spilled = tempfile.TemporaryDirectory(prefix="mqproof-share-", dir=local)
    with spilled as spill, duckdb.connect() as connection:
        # A task has one core; what one reads first need not come first.
        connection.execute("SET threads = 1; SET preserve_insertion_order = false")
        connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = {quoted(spill)}")
        for name, table in work.tables:
            connection.register(name, table)
        yield connection


def _view(connection: "DuckDBPyConnection", share: Share) -> str:
    file = share.file
    source = _read(file.path)
    own = set(connection.sql(f"FROM {source} LIMIT 0").columns)
    values = {name: f'"{name}"' if name in own else "NULL" for name in COLUMNS}
    columns = [f'CAST({values[name]} AS {_TYPES[kind]}) AS "{name}"' for name, kind in COLUMNS.items()]
    conditions = [_IS_EVENT, f"{ROW} >= {share.begin}", f"{ROW} < {share.end}"]
    if file.marks:
        conditions.append(f'"{file.marks}" IS NULL')
    rows = f"SELECT {', '.join(columns)} FROM {source} WHERE {' AND '.join(conditions)}"
    return f"CREATE OR REPLACE TEMP VIEW log AS {rows}"


def _asked(connection: "DuckDBPyConnection", work: Work) -> Batches:
    for query in work.queries:
        for batch in connection.sql(query).to_arrow_reader(_BATCH_ROWS):
            yield shaped(batch, work.schema)


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    found: Mapping[str, pa.Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [
        found[field.name].cast(field.type) if field.name in found else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def packed(rows: pa.Table, part: npt.NDArray[np.integer[Any]]) -> pa.RecordBatch:
    """Rows, each of which is of such a part, as PARCELS: one a part."""
    order = np.argsort(part, kind="stable")
    in_order = rows.take(order)
    numbers, begins = np.unique(part[order], return_index=True)
    filled = pairwise([*begins.tolist(), len(rows)])
    parcels = [_parcel(in_order.slice(begin, end - begin)) for begin, end in filled]
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32()), pa.array(parcels)], schema=PARCELS)


_SMALLER: Final = pa.ipc.IpcWriteOptions(compression="lz4")


def _parcel(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_SMALLER) as stream:
        stream.write_table(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(batches: Batches) -> Batches:
    for batch in batches:
        for parcel in batch["parcel"]:
            yield from pa.ipc.open_stream(parcel.as_buffer())

"""Reads event logs into a table of the embedded engine, with the same rows as read.py reads on Spark.

What is not certain to give the same rows is left to Spark: folders that give columns, columns of unusual
types, and lines that only Spark's rules decide.
"""

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any, Final

import msgspec

from mqproof.report.printable import counted
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.engine.sql_text import identifier, quoted
from mqproof.spark_audit.sources.inputs import InputError, Inputs, partition_values
from mqproof.spark_audit.sources.log_lines import (
    DAMAGED,
    LINE_BYTES_MAX,
    TAIL_BYTES_MAX,
    UnusualLineError,
    check_columns,
    chunks,
    examined,
    is_empty,
    object_in,
    opened,
    torn_tail,
)
from mqproof.spec.events import COLUMNS, NUMBER_MAX, NUMBERS, REQUIRED, SCHEMA_VERSION, Kind

_TYPES: Final = {
    "int64": "BIGINT", "int32": "INTEGER", "string": "VARCHAR", "map<string,string>": "MAP(VARCHAR, VARCHAR)"
}  # fmt: skip
_WIDER: Final = {
    "BIGINT": ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT"),
    "INTEGER": ("INTEGER", "SMALLINT", "TINYINT", "USMALLINT", "UTINYINT"),
}
"""Types of a Parquet file that a column of ours holds without loss."""


class NotEmbeddedError(ValueError):
    """Only Spark reads this input. The message says why, in half a line."""


@dataclass(frozen=True, slots=True)
class EmbeddedLog:
    """As read.Log."""

    events: Any
    """A table with the columns of spec.events, `stated` (attrs.broker) and `reset`."""
    corrupt: Any
    inputs: Inputs
    rows: int
    torn_files: int

    @property
    def event_log(self) -> "EmbeddedLog":
        return self


@dataclass(slots=True)
class _Lines:
    """The NDJSON files to load."""

    corrupt_file: Path
    """Where their lines that are not events are written: there may be more of them than fit into memory."""
    files: list[Path] = field(default_factory=list)
    events: int = 0
    corrupt: int = 0
    """The number of lines that are not events."""
    corrupt_bytes_max: int = 0
    """The size of the longest record in `corrupt_file`."""
    torn_files: int = 0

    def add(self, file: Path, copy: Path, *, as_spark: bool = True) -> None:
        """Load a file, or a copy without the lines that are not events.

        Raises:
            UnusualLineError: with `as_spark`, it is not certain how Spark reads a line.
        """
        faults = 0
        with opened(file) as log:
            for _, events in examined(chunks(log), as_spark=as_spark):
                self.events += events
                faults += not events
        self.files.append(copy if faults else file)
        if not faults:
            return
        torn = torn_tail(file)
        with opened(file) as log, copy.open("wb") as good, self.corrupt_file.open("ab") as bad:
            for lines, events in examined(chunks(log), as_spark=as_spark):
                if events:
                    good.write(lines if lines.endswith(b"\n") else lines + b"\n")
                elif torn and lines == torn:
                    self.torn_files += 1
                else:
                    self.corrupt += 1
                    record = {"file": str(file), "line": lines.decode(errors="replace").rstrip("\r\n")}
                    written = bad.write(msgspec.json.encode(record) + b"\n")
                    self.corrupt_bytes_max = max(self.corrupt_bytes_max, written)


def read_embedded(
    database: Database,
    inputs: Inputs,
    scratch: Path,
    stage: Callable[[str], None] = lambda _: None,
    messages: Sequence[Path] = (),
) -> EmbeddedLog:
    """Return one table of all events. Only files with faulty lines are copied.

    `messages` are NDJSON files with lines of messages, of which any may be no event.

    Raises:
        InputError: as read_files.
        NotEmbeddedError: only Spark reads this input.
    """
    import duckdb

    files = [file for file in inputs.files if not is_empty(file)]
    for file in files:
        _refuse_folder_columns(file)
    parquet = [file for file in files if file.suffix == ".parquet"]
    lines = _Lines(scratch / "corrupt.ndjson")
    _check(lines, [file for file in files if file.suffix != ".parquet"], scratch, stage)
    for number, file in enumerate(messages):
        lines.add(file, scratch / f"messages-{number}.ndjson", as_spark=False)
    sources = [f"SELECT * FROM {_of_parquet(database, file)} WHERE {_IS_EVENT}" for file in parquet]
    if lines.files:
        sources.append(f"SELECT * FROM {_of_lines(lines.files)}")
    try:
        database.run(
            f"CREATE TABLE log AS SELECT *, {_DERIVED} FROM ({' UNION ALL '.join(sources) or _NOTHING})"
        )
    except duckdb.Error as error:
        raise _damaged(database, parquet, error) from None
    rows = _rows(database, parquet) + lines.events + lines.corrupt
    events = database.table("log", (*COLUMNS, "stated", "reset"))
    return EmbeddedLog(events, _corrupt(database, parquet, lines), inputs, rows, lines.torn_files)


_NOTHING: Final = (
    f"SELECT {', '.join(f'NULL::{_TYPES[kind]} AS {identifier(name)}' for name, kind in COLUMNS.items())}"
    " WHERE false"
)
_DERIVED: Final = (
    "attrs['broker'] AS stated,"
    f" kind = '{Kind.OFFSET_COMMIT}' AND coalesce(attrs['reset'] = 'true', false) AS reset"
)
_IS_EVENT: Final = " AND ".join(
    [
        *(f"{identifier(name)} IS NOT NULL" for name in REQUIRED),
        f"kind IN ({quoted(*Kind)})",
        *(f"coalesce({identifier(name)} BETWEEN -{NUMBER_MAX} AND {NUMBER_MAX}, true)" for name in NUMBERS),
        "(attrs['schema'] IS NULL"
        f" OR coalesce(TRY_CAST(attrs['schema'] AS INTEGER) <= {SCHEMA_VERSION}, false))",
    ]
)
"""The condition for valid events, as in read.py."""


def _refuse_folder_columns(file: Path) -> None:
    if given := [name for name, _ in partition_values(file) if name in COLUMNS]:
        raise NotEmbeddedError(f"the folders of {file} give the column {given[0]}")


# --- Parquet


def _of_parquet(database: Database, file: Path) -> str:
    """Return a query on a file with exactly our columns.

    Raises:
        InputError: the file is not an event log.
        NotEmbeddedError: a column has an unusual type.
    """
    import duckdb

    source = _read(file)
    try:
        types = {row[0]: row[1] for row in database.rows(f"DESCRIBE SELECT * FROM {source}")}
    except duckdb.Error as error:
        raise InputError(f"{file}: {_why(file, error)}") from None
    check_columns(str(file), file, list(types))
    # DuckDB gives the second of two such columns another name.
    twice = (
        f"SELECT lower(name) FROM parquet_schema({quoted(escape(str(file)))})"
        f" WHERE lower(name) IN ({quoted(*COLUMNS)}) GROUP BY ALL HAVING count(*) > 1"
    )
    if database.rows(twice):
        raise NotEmbeddedError(f"{file} has columns whose names differ only in case")
    columns = []
    for name, kind in COLUMNS.items():
        wanted = _TYPES[kind]
        given = types.get(name)
        if given is not None and given not in _WIDER.get(wanted, (wanted,)):
            raise NotEmbeddedError(f"column {name} of {file} is {given}, not {wanted}")
        value = "NULL" if given is None else identifier(name)
        columns.append(f"CAST({value} AS {wanted}) AS {identifier(name)}")
    return f"(SELECT {', '.join(columns)} FROM {source})"


def _read(file: Path) -> str:
    # DuckDB treats brackets and stars as a pattern, which may match another file.
    return f"read_parquet({quoted(escape(str(file)))}, hive_partitioning = false)"


def _rows(database: Database, files: Sequence[Path]) -> int:
    if not files:
        return 0
    names = quoted(*(escape(str(file)) for file in files))
    rows = database.rows(f"SELECT sum(num_rows) FROM parquet_file_metadata([{names}])")
    return int(rows[0][0])


def _damaged(database: Database, parquet: Sequence[Path], error: Exception) -> InputError | NotEmbeddedError:
    """Return the error that names the file which could not be read to its end."""
    import duckdb

    for file in parquet:
        try:
            database.rows(f"SELECT max(hash(t)) FROM {_of_parquet(database, file)} AS t")
        except duckdb.Error as own:
            return InputError(f"{file}: {_why(file, own)}")
    return NotEmbeddedError(f"DuckDB reports: {_first_line(error)}")


def _why(file: Path, error: Exception) -> str:
    try:
        with file.open("rb") as opened_file:
            begins = opened_file.read(4)
    except OSError as refused:
        return refused.strerror or type(refused).__name__
    kind = "damaged, cannot be read to the end" if begins == b"PAR1" else "not a Parquet file"
    return f"{kind}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# --- NDJSON


def _check(found: _Lines, files: Sequence[Path], scratch: Path, stage: Callable[[str], None]) -> None:
    """Check every line of the files, and add them."""
    for number, file in enumerate(files):
        copy = scratch / f"lines-{number}.ndjson"
        try:
            _check_first_line(file)
            found.add(file, copy)
            stage(f"read {number + 1} of {counted(len(files), 'file')}, {found.events} events")
        except UnusualLineError as error:
            raise NotEmbeddedError(f"a line of {file} is unusual, {error}") from None
        except (FileNotFoundError, PermissionError) as error:
            raise InputError(f"{file}: {error.strerror}") from None
        except (OSError, *DAMAGED) as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # of the copy, not of the log
                raise OSError(error.errno, error.strerror, str(copy)) from None
            raise InputError(f"{file}: damaged, cannot be read: {_first_line(error)}") from None
        except Exception as error:
            if not type(error).__module__.endswith("zstd"):
                raise
            raise InputError(f"{file}: damaged, cannot be read: {_first_line(error)}") from None


def _check_first_line(file: Path) -> None:
    with opened(file) as log:
        first = log.read(TAIL_BYTES_MAX).partition(b"\n")[0]
    row = object_in(first)
    if row is not None:
        check_columns(f"{file}:1", file, list(row))


def _of_lines(files: Sequence[Path]) -> str:
    return _of_json(files, {name: _TYPES[kind] for name, kind in COLUMNS.items()}, LINE_BYTES_MAX)


def _of_json(files: Sequence[Path], columns: Mapping[str, str], line_bytes_max: int) -> str:
    types = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in columns.items())
    names = quoted(*(escape(str(file.absolute())) for file in files))
    return (
        f"read_json([{names}], format = 'newline_delimited', columns = {{{types}}},"
        f" maximum_object_size = {line_bytes_max}, hive_partitioning = false)"
    )


def _corrupt(database: Database, parquet: Sequence[Path], lines: _Lines) -> Any:
    """Return file and line of every row that is not an event."""
    found = database.createDataFrame([], "file string, line string")
    if lines.corrupt:
        columns = {"file": "VARCHAR", "line": "VARCHAR"}
        found = database.query(
            f"SELECT * FROM {_of_json([lines.corrupt_file], columns, lines.corrupt_bytes_max)}"
        )
    for file in parquet:
        rows = database.query(
            f"SELECT {quoted(str(file))} AS file,"
            f" CAST(json_merge_patch('{{}}', to_json(t)) AS VARCHAR) AS line"
            f" FROM {_of_parquet(database, file)} AS t WHERE NOT coalesce({_IS_EVENT}, false)"
        )
        found = found.unionByName(rows)
    return found

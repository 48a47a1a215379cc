"""Converts mapped tables into Parquet event logs, with DuckDB, which reads JSON, CSV and Parquet.

Before a table is converted, each expression is tried on its first rows, so that every wrong column is one
clear error. See docs/how-to/audit-sources.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mqproof.spark_audit.engine.sql_text import identifier, quoted
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.mapping.mapping_file import (
    EVENTS_MAX,
    MappedEvent,
    MappedSource,
    MappingError,
    MappingFile,
)
from mqproof.spec.events import COLUMNS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SAMPLE_ROWS: Final = 1000
"""How many rows of a table its expressions are tried on."""

_WHOLE: Final = frozenset(
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
)
_TYPES: Final = {"int64": "BIGINT", "int32": "INTEGER", "string": "VARCHAR"}
TIMES: Final = ("ts", "born_ts")
_ROW: Final = "mqproof_row"
"""The number of a row in its table, which a table must not have as a column."""


@dataclass(frozen=True, slots=True)
class Converted:
    """An event log that was made from a table."""

    name: str
    file: Path
    rows: int
    """The rows of the table."""
    events: int
    unused_rows: int
    """The rows that give no event."""

    def line(self) -> str:
        unused = f", {self.unused_rows} rows give no event" if self.unused_rows else ""
        return f"{self.name}: {self.rows} rows, {self.events} events{unused}"


def convert(mapping: MappingFile, file: Path, stage: Callable[[str], None]) -> Converted:
    """Write the event log that a mapping describes.

    Raises:
        MappingError: expressions do not fit their table; all of them are named.
        InputError: a table cannot be read.
    """
    import duckdb

    with duckdb.connect() as database:
        database.execute(f"SET temp_directory = {quoted(str(file.parent))}; SET TimeZone = 'UTC'")
        errors: list[str] = []
        for number, source in enumerate(mapping.sources):
            stage(f"checking {source.name} on its first rows")
            _create_view(database, source, number)
            errors += _errors(database, source, f"SELECT * FROM source_{number} LIMIT {SAMPLE_ROWS}")
        if errors:
            raise MappingError(errors)
        stage(f"converting {mapping.file}")
        try:
            return _convert(database, mapping, file)
        except duckdb.Error as error:
            raise InputError(f"{mapping.file}: {_first_line(error)}") from None


def _create_view(database: "DuckDBPyConnection", source: MappedSource, number: int) -> None:
    import duckdb

    reader = {"json": "read_json", "csv": "read_csv", "parquet": "read_parquet"}[source.format]
    given = {"union_by_name": True, **source.options}
    options = "".join(f", {identifier(name)} = {_literal(value)}" for name, value in given.items())
    try:
        database.execute(
            f"CREATE VIEW source_{number} AS SELECT *, row_number() OVER () AS {_ROW}"
            f" FROM {reader}({quoted(source.path)}{options})"
        )
    except duckdb.Error as error:
        raise InputError(f"{source.name}: {source.path}: {_first_line(error)}") from None


def _literal(value: str | int | float | bool) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower()


# --- validation on a sample


def _errors(database: "DuckDBPyConnection", source: MappedSource, sample: str) -> list[str]:
    """Return one line for each expression that does not fit the sample."""
    found: list[str] = []
    tried: dict[tuple[str, str], str | None] = {}
    for number, event in enumerate(source.events, start=1):
        where = f"{source.name}, event {number} ({event.kind})"
        condition = event.where or "true"
        if problem := _problem_of_condition(database, condition, sample):
            found.append(f"{where}: where: {problem}")
            condition = "true"
        expressions = {**event.columns, **{f"attrs.{name}": text for name, text in event.attrs.items()}}
        for name, text in expressions.items():
            key = (name, text)
            if key not in tried:
                tried[key] = _problem(database, name, text, sample)
                if problem := tried[key]:
                    found.append(f"{source.name}, column {name}: {problem}")
            if tried[key] is None and name in ("ts", "node"):
                missing = f"SELECT count(*) FROM ({sample}) WHERE ({condition}) AND ({text}) IS NULL"
                if nulls := _number(database, missing):
                    found.append(f"{where}: {name} is NULL in {nulls} of the first {SAMPLE_ROWS} rows")
    return found


def _problem_of_condition(database: "DuckDBPyConnection", text: str, sample: str) -> str | None:
    import duckdb

    try:
        database.execute(f"SELECT count(*) FROM ({sample}) WHERE ({text}\n)").fetchall()
    except duckdb.Error as error:
        return _first_line(error)
    return None


def _problem(database: "DuckDBPyConnection", name: str, text: str, sample: str) -> str | None:
    """Return why an expression cannot be the column; None if it can."""
    import duckdb

    try:
        query = f"SELECT ({text}\n) AS value FROM ({sample})"
        found = database.execute(f"DESCRIBE {query}").fetchall()[0][1]
        database.execute(f"SELECT count(value) FROM ({query})").fetchall()
    except duckdb.Error as error:
        return _first_line(error)
    wanted = COLUMNS.get(name, "string")
    if wanted == "string":
        return None
    if found in _WHOLE or found == '"NULL"' or (name in TIMES and found.startswith("TIMESTAMP")):
        return None
    also = ", or a timestamp" if name in TIMES else ""
    unit = " of microseconds" if name in TIMES else ""
    return f"{text!r} is {found}, expected a whole number{unit}{also}"


# --- conversion


def _convert(database: "DuckDBPyConnection", mapping: MappingFile, file: Path) -> Converted:
    parts, rows, unused = [], 0, 0
    for number, source in enumerate(mapping.sources):
        view = f"source_{number}"
        parts += [
            f"SELECT {_selected(database, event, view)}, {_ROW}, {number * EVENTS_MAX + n} AS event_number"
            f" FROM {view} WHERE ({event.where or 'true'}\n)"
            for n, event in enumerate(source.events)
        ]
        none = " AND ".join(f"NOT coalesce(({event.where or 'true'}\n), false)" for event in source.events)
        counted = f"SELECT count(*), count(*) FILTER (WHERE {none}) FROM {view}"
        found = database.execute(counted).fetchall()[0]
        rows, unused = rows + found[0], unused + found[1]
    begin = 0 if mapping.complete else 1
    columns = ", ".join(
        f"{_numbered(begin)} AS seq" if name == "seq" and not mapping.is_numbered else identifier(name)
        for name in COLUMNS
    )
    database.execute(
        f"COPY (SELECT {columns} FROM ({' UNION ALL '.join(parts)})) TO {quoted(str(file))} (FORMAT parquet)"
    )
    events = _number(database, f"SELECT count(*) FROM read_parquet({quoted(escape(str(file)))})")
    return Converted(str(mapping.file), file, rows, events, unused)


def _numbered(begin: int) -> str:
    """Return the number of an event whose table has none: by time, then in the order of rows and events.

    Numbers that begin at 1 mean that the log of the node has lost its beginning.
    """
    return f"row_number() OVER (PARTITION BY node ORDER BY ts, {_ROW}, event_number) - 1 + {begin}"


def _selected(database: "DuckDBPyConnection", event: MappedEvent, view: str) -> str:
    selected = []
    for name, kind in COLUMNS.items():
        if name == "kind":
            value = f"{quoted(str(event.kind))}"
        elif name == "attrs":
            value = _attributes(event)
        elif name in event.columns:
            text = event.columns[name]
            if name in TIMES and _type(database, text, view).startswith("TIMESTAMP"):
                text = f"epoch_us({text}\n)"
            value = f"CAST(({text}\n) AS {_TYPES[kind]})"
        else:
            value = f"CAST(NULL AS {_TYPES[kind]})"
        selected.append(f"{value} AS {identifier(name)}")
    return ", ".join(selected)


def _attributes(event: MappedEvent) -> str:
    if not event.attrs:
        return "CAST(map() AS MAP(VARCHAR, VARCHAR))"
    entries = ", ".join(
        f"{{'key': {quoted(name)}, 'value': CAST(({text}\n) AS VARCHAR)}}"
        for name, text in event.attrs.items()
    )
    return f"map_from_entries(list_filter([{entries}], lambda entry: entry.value IS NOT NULL))"


def _type(database: "DuckDBPyConnection", text: str, view: str) -> str:
    return str(database.execute(f"DESCRIBE SELECT ({text}\n) FROM {view}").fetchall()[0][1])


def _number(database: "DuckDBPyConnection", query: str) -> int:
    return int(database.execute(query).fetchall()[0][0])


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()

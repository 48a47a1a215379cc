"""The session of the embedded engine: an in-memory database of DuckDB, which spills to a folder."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock, local
from typing import TYPE_CHECKING, Any

from mqproof.spark_audit.engine.embedded.columns import literal, sql_type
from mqproof.spark_audit.engine.embedded.queries import Query, given, table
from mqproof.spark_audit.engine.sql_text import identifier, quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection


class Database:
    """Runs queries, and keeps tables until it is closed."""

    def __init__(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute(
            f"SET temp_directory = {quoted(str(folder))}; SET preserve_insertion_order = false;"
            " SET TimeZone = 'UTC'; SET enable_progress_bar = false"
        )
        self._threads = local()
        self._tables = 0
        self.lock = RLock()
        """Guards the tables that are created while a query is put together."""

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Drop the tables that exist at the end. Their queries must not be used any more."""
        try:
            yield
        finally:
            for (name,) in self.rows("SELECT table_name FROM duckdb_tables()"):
                self.run(f"DROP TABLE {identifier(name)}")

    def cursor(self) -> "DuckDBPyConnection":
        """Return the connection of this thread."""
        if not hasattr(self._threads, "cursor"):
            self._threads.cursor = self._connection.cursor()
        cursor: DuckDBPyConnection = self._threads.cursor
        return cursor

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        return self.cursor().execute(text).fetchall()

    def run(self, text: str) -> None:
        self.cursor().execute(text)

    def columns_of(self, text: str) -> tuple[str, ...]:
        """Return the names of a query's columns."""
        return tuple(row[0] for row in self.rows(f"DESCRIBE {text}"))

    def create_table(self, text: str) -> str:
        """Store the rows of a query and return the name of the table."""
        with self.lock:
            self._tables += 1
            name = f"kept_{self._tables}"
        self.run(f"CREATE TABLE {name} AS {text}")
        return name

    def table_of(self, batches: "pa.RecordBatchReader", select: Callable[[Query], Any]) -> Query:
        """Store the selected rows of Arrow batches in a table, and return it."""
        cursor = self.cursor()
        cursor.register("batches", batches)
        try:
            selected = select(self.table("batches", batches.schema.names))
            return self.table(self.create_table(selected.sql()), selected.columns)
        finally:
            cursor.unregister("batches")

    def table(self, name: str, columns: Sequence[str] | None = None) -> Query:
        return table(self, name, tuple(columns) if columns is not None else None)

    def query(self, text: str, **sources: Query) -> Query:
        """Return a query in DuckDB's SQL; it names its sources in braces."""
        return given(self, text, sources)

    # Of a SparkSession:

    def range(self, end: int) -> Query:
        return given(self, f"SELECT range AS id FROM range({end})", {}, ("id",))

    def createDataFrame(self, rows: Iterable[Sequence[Any]], schema: str) -> Query:  # noqa: N802
        """Return a table of rows; the schema is a text such as `name string, seq bigint`."""
        fields = [field.split() for field in schema.split(",")]
        names = tuple(name for name, _ in fields)
        columns = ", ".join(
            f"CAST({identifier(name)} AS {sql_type(kind)}) AS {identifier(name)}" for name, kind in fields
        )
        values = [f"({', '.join(map(literal, row))})" for row in rows]
        of_names = ", ".join(map(identifier, names))
        if not values:
            nothing = ", ".join(f"NULL AS {identifier(name)}" for name in names)
            return given(self, f"SELECT {columns} FROM (SELECT {nothing}) WHERE false", {}, names)
        return given(self, f"SELECT {columns} FROM (VALUES {', '.join(values)}) AS v({of_names})", {}, names)

    def close(self) -> None:
        self._connection.close()

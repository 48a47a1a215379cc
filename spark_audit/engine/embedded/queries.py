"""A DataFrame of the embedded engine: a query, put together as text, that runs when its rows are needed."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mqproof.spark_audit.engine.embedded.columns import EmbeddedColumn, col, named
from mqproof.spark_audit.engine.sql_text import identifier

Given = EmbeddedColumn | str
Build = Callable[[Sequence[str]], str]
"""Returns the text of a query, given the names (or texts) of its sources."""


class Record(tuple[Any, ...]):
    """A row: a tuple whose values also have names."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], values: Sequence[Any]) -> "Record":
        made = cls(values)
        made.names = names
        return made

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)

    def __getattr__(self, name: str) -> Any:
        if name in self.names:
            return self[name]
        raise AttributeError(name)

    def asDict(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
        return dict(zip(self.names, self, strict=True))


class Query:
    """The part of pyspark.sql.DataFrame that the audit uses."""

    def __init__(
        self,
        database: Any,
        build: Build,
        sources: Sequence["Query"] = (),
        columns: tuple[str, ...] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        self.sparkSession = database  # PySpark's name
        self._build = build
        self._sources = tuple(sources)
        self._columns = columns
        self._table = name
        """The table that has the rows, if there is one."""
        self._is_kept = False

    @property
    def columns(self) -> list[str]:
        if self._columns is None:
            self._columns = self.sparkSession.columns_of(self.sql())
        return list(self._columns)

    # --- Rows

    def where(self, condition: Given) -> "Query":
        text = condition if isinstance(condition, str) else condition.sql
        return self._then(lambda source: f"SELECT * FROM {source} WHERE {text}", self._columns)

    def select(self, *columns: Given) -> "Query":
        selected: list[EmbeddedColumn] = []
        for column in columns:
            if isinstance(column, EmbeddedColumn):
                selected += column.parts or (column,)
            elif column == "*":
                selected += map(col, self.columns)
            elif column.endswith(".*"):
                selected += self._fields(column.removesuffix(".*"))
            else:
                selected.append(col(column))
        return self._projected(selected)

    def _fields(self, name: str) -> list[EmbeddedColumn]:
        text = f"SELECT {identifier(name)}.* FROM ({self.sql()})"
        return [col(f"{name}.{field}") for field in self.sparkSession.columns_of(text)]

    def withColumn(self, name: str, column: EmbeddedColumn) -> "Query":  # noqa: N802
        return self.withColumns({name: column})

    def withColumns(self, columns: Mapping[str, EmbeddedColumn]) -> "Query":  # noqa: N802
        changed = [columns[name].alias(name) if name in columns else col(name) for name in self.columns]
        added = [column.alias(name) for name, column in columns.items() if name not in self.columns]
        return self._projected([*changed, *added])

    def withColumnRenamed(self, old: str, new: str) -> "Query":  # noqa: N802
        return self.withColumnsRenamed({old: new})

    def withColumnsRenamed(self, names: Mapping[str, str]) -> "Query":  # noqa: N802
        return self._projected([col(name).alias(names.get(name, name)) for name in self.columns])

    def drop(self, *names: str) -> "Query":
        return self._projected([col(name) for name in self.columns if name not in names])

    def _projected(self, columns: Sequence[EmbeddedColumn]) -> "Query":
        names = _names(columns)
        selected = ", ".join(
            f"{column.sql} AS {identifier(name)}" for column, name in zip(columns, names, strict=True)
        )
        return self._then(lambda source: f"SELECT {selected} FROM {source}", names)

    def distinct(self) -> "Query":
        return self._then(lambda source: f"SELECT DISTINCT * FROM {source}", self._columns)

    def dropDuplicates(self, names: Sequence[str]) -> "Query":  # noqa: N802
        keys = ", ".join(map(identifier, names))
        return self._then(lambda source: f"SELECT DISTINCT ON ({keys}) * FROM {source}", self._columns)

    def limit(self, rows: int) -> "Query":
        return self._then(lambda source: f"SELECT * FROM {source} LIMIT {rows}", self._columns)

    def orderBy(self, *columns: Given) -> "Query":  # noqa: N802
        keys = ", ".join(f"{named(column).sql} ASC NULLS FIRST" for column in columns)
        return self._then(lambda source: f"SELECT * FROM {source} ORDER BY {keys}", self._columns)

    def fillna(self, value: Any, names: Sequence[str]) -> "Query":
        from mqproof.spark_audit.engine.embedded.column_functions import coalesce, lit

        return self.withColumns({name: coalesce(name, lit(value)) for name in names})

    def _then(self, build: Callable[[str], str], columns: tuple[str, ...] | None) -> "Query":
        return Query(self.sparkSession, lambda sources: build(sources[0]), (self,), columns)

    # --- Groups

    def groupBy(self, *keys: Given) -> "Groups":  # noqa: N802
        return Groups(self, tuple(map(named, keys)))

    def agg(self, *columns: EmbeddedColumn) -> "Query":
        return self.groupBy().agg(*columns)

    # --- Several tables

    def join(self, other: "Query", on: Any = None, how: str = "inner") -> "Query":
        if isinstance(on, str):
            on = [on]
        if isinstance(on, EmbeddedColumn):
            return self._joined(other, f"ON {on.sql}", (), how)
        return self._joined(other, f"USING ({', '.join(map(identifier, on))})", tuple(on), how)

    def _joined(self, other: "Query", condition: str, keys: tuple[str, ...], how: str) -> "Query":
        kind = _JOINS[how]
        if how in ("left_semi", "left_anti"):
            columns = [("l", name) for name in self.columns]
        else:
            columns = [("l", name) for name in (*keys, *(n for n in self.columns if n not in keys))]
            columns += [("r", name) for name in other.columns if name not in keys]
        selected = ", ".join(
            _coalesced(name) if how == "full_outer" and name in keys else f"{side}.{identifier(name)}"
            for side, name in columns
        )
        return Query(
            self.sparkSession,
            lambda sources: f"SELECT {selected} FROM {sources[0]} AS l {kind} {sources[1]} AS r {condition}",
            (self, other),
            tuple(name for _, name in columns),
        )

    def unionByName(self, other: "Query") -> "Query":  # noqa: N802
        if sorted(self.columns) != sorted(other.columns):
            raise ValueError(f"union of {self.columns} with {other.columns}")
        names = ", ".join(map(identifier, self.columns))
        return self._union(other, names, names)

    def union(self, other: "Query") -> "Query":
        """Return the rows of both, by the position of the columns."""
        return self._union(other, "*", "*")

    unionAll = union  # noqa: N815  # PySpark's name

    def _union(self, other: "Query", own: str, others: str) -> "Query":
        return Query(
            self.sparkSession,
            lambda sources: f"SELECT {own} FROM {sources[0]} UNION ALL SELECT {others} FROM {sources[1]}",
            (self, other),
            self._columns,
        )

    # --- Results

    def collect(self) -> list[Record]:
        names = tuple(self.columns)
        return [Record.of(names, row) for row in self.sparkSession.rows(self.sql())]

    def count(self) -> int:
        rows = self.sparkSession.rows(f"SELECT count(*) FROM ({self.sql()})")
        number: int = rows[0][0]
        return number

    def head(self, rows: int) -> list[Record]:
        return self.limit(rows).collect()

    def first(self) -> Record | None:
        return next(iter(self.head(1)), None)

    def persist(self) -> "Query":
        """Store the rows in a table when they are first needed."""
        self._is_kept = True
        return self

    def unpersist(self) -> "Query":
        """Do nothing: the tables live as long as the database."""
        return self

    def sql(self) -> str:
        """Return the query's text. Creates the tables of `persist` that it reads."""
        return _text(self)

    def ensure_table(self) -> str:
        """Return the name of a table with the rows, which is created if there is none."""
        with self.sparkSession.lock:
            if self._table is None:
                # Its sources first, each once.
                self._table = self.sparkSession.create_table(_text(self, of_table=True))
            return self._table


class Groups:
    """Rows grouped by keys."""

    def __init__(self, source: Query, keys: tuple[EmbeddedColumn, ...]) -> None:
        self._source = source
        self._keys = keys

    def agg(self, *columns: EmbeddedColumn) -> Query:
        selected = (*self._keys, *columns)
        names = _names(selected)
        text = ", ".join(
            f"{column.sql} AS {identifier(name)}" for column, name in zip(selected, names, strict=True)
        )
        # By position: a name might mean a column of the source.
        keys = f" GROUP BY {', '.join(str(at + 1) for at in range(len(self._keys)))}" if self._keys else ""
        return Query(
            self._source.sparkSession,
            lambda sources: f"SELECT {text} FROM {sources[0]}{keys}",
            (self._source,),
            names,
        )

    def count(self) -> Query:
        return self.agg(EmbeddedColumn("count(*)", "count"))


_JOINS = {
    "inner": "JOIN", "left": "LEFT JOIN", "left_semi": "SEMI JOIN", "left_anti": "ANTI JOIN",
    "full_outer": "FULL JOIN",
}  # fmt: skip


def table(database: Any, name: str, columns: tuple[str, ...] | None = None) -> Query:
    return Query(database, lambda _: f"SELECT * FROM {name}", (), columns, name=name)


def given(
    database: Any, text: str, sources: Mapping[str, Query], columns: tuple[str, ...] | None = None
) -> Query:
    """Return a query in DuckDB's SQL; it names its sources in braces."""
    names = tuple(sources)

    def build(texts: Sequence[str]) -> str:
        by_name = dict(zip(names, texts, strict=True))
        # In one pass: a source may have a text that looks like the name of another one.
        return re.sub(r"\{(\w+)\}", lambda found: by_name.get(found[1], found[0]), text)

    return Query(database, build, tuple(sources.values()), columns)


def _names(columns: Sequence[EmbeddedColumn]) -> tuple[str, ...]:
    """Return the names of columns; one without a name gets its position."""
    return tuple(column.name or f"_{at + 1}" for at, column in enumerate(columns))


def _coalesced(name: str) -> str:
    return f"coalesce(l.{identifier(name)}, r.{identifier(name)}) AS {identifier(name)}"


def _text(query: Query, *, of_table: bool = False) -> str:
    """Return the text of a query. A source that is read several times becomes a common table expression.

    With `of_table`, the text is that of the query's own table, which does not exist yet.
    """
    with query.sparkSession.lock:
        if query._is_kept and not of_table:
            query.ensure_table()
        if query._table:
            return f"SELECT * FROM {query._table}"
        uses: Counter[int] = Counter()
        texts: dict[int, str] = {}
        shared: list[str] = []
        # As a list: all uses are counted before the first text is made.
        for source in list(_in_order(query, uses)):
            if source._table:
                texts[id(source)] = source._table
                continue
            own = source._build([texts[id(each)] for each in source._sources])
            if uses[id(source)] > 1:
                name = f"q{len(shared)}"
                shared.append(f"{name} AS ({own})")
                texts[id(source)] = name
            else:
                texts[id(source)] = f"({own})"
        own = query._build([texts[id(each)] for each in query._sources])
        return f"WITH {', '.join(shared)} {own}" if shared else own


def _in_order(query: Query, uses: Counter[int]) -> Iterator[Query]:
    """Yield all sources of a query, each once, after its own sources; those of a table are not needed."""
    for source in query._sources:
        uses[id(source)] += 1
        if uses[id(source)] > 1:
            continue
        if source._is_kept:
            source.ensure_table()
        if not source._table:
            yield from _in_order(source, uses)
        yield source

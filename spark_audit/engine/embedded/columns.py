"""Columns of the embedded engine: expressions in DuckDB's SQL, with PySpark's meaning."""

from dataclasses import dataclass, replace
from typing import Any, Final

from mqproof.spark_audit.engine.sql_text import identifier, quoted

_TYPES: Final = {
    "bigint": "BIGINT", "long": "BIGINT", "int": "INTEGER", "string": "VARCHAR", "double": "DOUBLE",
    "boolean": "BOOLEAN", "map<string,string>": "MAP(VARCHAR, VARCHAR)",
}  # fmt: skip
_WHOLE: Final = ("BIGINT", "INTEGER")
_UNBOUNDED: Final = 1 << 62


def sql_type(name: str) -> str:
    """Return DuckDB's name for one of Spark's types."""
    if name.startswith("array<"):
        return f"{sql_type(name.removeprefix('array<').removesuffix('>'))}[]"
    return _TYPES[name]


@dataclass(frozen=True, eq=False)
class EmbeddedColumn:
    """An expression. `wrap` surrounds it, outside of a window."""

    raw: str
    name: str = ""
    """The column's name in a table."""
    wrap: tuple[str, str] = ("", "")
    kind: str = ""
    """The column's type, `double` or `text`, if a cast to a whole number depends on it; otherwise empty."""
    parts: tuple["EmbeddedColumn", ...] = ()
    """Columns that this one becomes in a table; empty if it is one column."""

    @property
    def sql(self) -> str:
        return f"{self.wrap[0]}{self.raw}{self.wrap[1]}"

    def alias(self, name: str) -> "EmbeddedColumn":
        return replace(self, name=name)

    def over(self, window: "EmbeddedWindow") -> "EmbeddedColumn":
        return EmbeddedColumn(f"{self.raw} OVER ({window.sql})", wrap=self.wrap)

    def cast(self, kind: str) -> "EmbeddedColumn":
        wanted = sql_type(kind)
        if wanted in _WHOLE and self.kind == "double":
            # Spark cuts off the fraction, DuckDB would round.
            return EmbeddedColumn(f"CAST(trunc({self.sql}) AS {wanted})")
        if wanted in _WHOLE and self.kind == "text":
            # DuckDB would accept, and round, a text such as 1.5.
            text = f"CASE WHEN {_is_whole(self.sql)} THEN {self.sql} ELSE 'no number: ' || {self.sql} END"
            return EmbeddedColumn(f"CAST({text} AS {wanted})")
        return EmbeddedColumn(
            f"CAST({self.sql} AS {wanted})", self.name, kind="text" if wanted == "VARCHAR" else ""
        )

    def try_cast(self, kind: str) -> "EmbeddedColumn":
        wanted = sql_type(kind)
        given = f"CASE WHEN {_is_whole(self.sql)} THEN {self.sql} END" if self.kind == "text" else self.sql
        return EmbeddedColumn(f"TRY_CAST({given} AS {wanted})")

    def bitwiseAND(self, other: int) -> "EmbeddedColumn":  # noqa: N802
        return self._with("&", other)

    def isNull(self) -> "EmbeddedColumn":  # noqa: N802
        return EmbeddedColumn(f"({self.sql} IS NULL)")

    def isNotNull(self) -> "EmbeddedColumn":  # noqa: N802
        return EmbeddedColumn(f"({self.sql} IS NOT NULL)")

    def isin(self, *values: Any) -> "EmbeddedColumn":
        if not values:
            return EmbeddedColumn("false")
        return EmbeddedColumn(f"({self.sql} IN ({', '.join(literal(value) for value in values)}))")

    def between(self, low: Any, high: Any) -> "EmbeddedColumn":
        return EmbeddedColumn(f"({self.sql} BETWEEN {value(low)} AND {value(high)})")

    def startswith(self, prefix: Any) -> "EmbeddedColumn":
        return EmbeddedColumn(f"starts_with({self.sql}, {value(prefix)})")

    def eqNullSafe(self, other: Any) -> "EmbeddedColumn":  # noqa: N802
        return EmbeddedColumn(f"({self.sql} IS NOT DISTINCT FROM {value(other)})")

    def __getitem__(self, key: str | int) -> "EmbeddedColumn":
        if isinstance(key, int):
            return EmbeddedColumn(f"({self.sql})[{key + 1}]")
        # A map's value or a struct's field.
        return EmbeddedColumn(f"({self.sql})[{quoted(key)}]", kind="text")

    def __eq__(self, other: Any) -> "EmbeddedColumn":  # type: ignore[override]
        return self._with("=", other)

    def __ne__(self, other: Any) -> "EmbeddedColumn":  # type: ignore[override]
        return self._with("<>", other)

    def __lt__(self, other: Any) -> "EmbeddedColumn":
        return self._with("<", other)

    def __le__(self, other: Any) -> "EmbeddedColumn":
        return self._with("<=", other)

    def __gt__(self, other: Any) -> "EmbeddedColumn":
        return self._with(">", other)

    def __ge__(self, other: Any) -> "EmbeddedColumn":
        return self._with(">=", other)

    def __and__(self, other: Any) -> "EmbeddedColumn":
        return self._with("AND", other)

    def __or__(self, other: Any) -> "EmbeddedColumn":
        return self._with("OR", other)

    def __invert__(self) -> "EmbeddedColumn":
        return EmbeddedColumn(f"(NOT {self.sql})")

    def __add__(self, other: Any) -> "EmbeddedColumn":
        return self._with("+", other)

    def __sub__(self, other: Any) -> "EmbeddedColumn":
        return self._with("-", other)

    def __mul__(self, other: Any) -> "EmbeddedColumn":
        return replace(self._with("*", other), kind=self.kind if self.kind == "double" else "")

    def __truediv__(self, other: Any) -> "EmbeddedColumn":
        return replace(self._with("/", other), kind="double")

    def __mod__(self, other: Any) -> "EmbeddedColumn":
        return self._with("%", other)

    def __rmul__(self, other: Any) -> "EmbeddedColumn":
        return column_of(other) * self

    def __radd__(self, other: Any) -> "EmbeddedColumn":
        return column_of(other) + self

    def __bool__(self) -> bool:
        raise TypeError("a column has no truth value: use & | ~ instead of and, or, not")

    def _with(self, operator: str, other: Any) -> "EmbeddedColumn":
        return EmbeddedColumn(f"({self.sql} {operator} {value(other)})")


def _is_whole(text: str) -> str:
    return f"regexp_full_match({text}, '\\s*[+-]?[0-9]+\\s*')"


def col(name: str) -> EmbeddedColumn:
    return EmbeddedColumn(identifier(name), name.rpartition(".")[2])


def literal(given: Any) -> str:
    """Return a Python value as a literal of SQL."""
    if given is None:
        return "NULL"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, int | float):
        return f"({given})" if given < 0 else str(given)
    if isinstance(given, str):
        return quoted(str(given))
    raise TypeError(f"{type(given).__name__} has no literal in the embedded engine")


def column_of(given: Any) -> EmbeddedColumn:
    """Return a column; any other value is a literal."""
    return given if isinstance(given, EmbeddedColumn) else EmbeddedColumn(literal(given))


def value(given: Any) -> str:
    return column_of(given).sql


def named(given: EmbeddedColumn | str) -> EmbeddedColumn:
    """Return a column, which may be given by its name."""
    return col(given) if isinstance(given, str) else given


@dataclass(frozen=True, eq=False)
class Case(EmbeddedColumn):
    """A CASE expression that may get more branches."""

    branches: tuple[str, ...] = ()

    def when(self, condition: EmbeddedColumn, then: Any) -> "Case":
        return case((*self.branches, f"WHEN {condition.sql} THEN {value(then)}"))

    def otherwise(self, then: Any) -> EmbeddedColumn:
        return EmbeddedColumn(f"CASE {' '.join(self.branches)} ELSE {value(then)} END")


def case(branches: tuple[str, ...]) -> Case:
    return Case(f"CASE {' '.join(branches)} END", branches=branches)


@dataclass(frozen=True)
class EmbeddedWindow:
    """The window of a function. As in Spark, nulls come first."""

    keys: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    frame: str = ""

    def partitionBy(self, *columns: EmbeddedColumn | str) -> "EmbeddedWindow":  # noqa: N802
        return replace(self, keys=tuple(named(column).sql for column in columns))

    def orderBy(self, *columns: EmbeddedColumn | str) -> "EmbeddedWindow":  # noqa: N802
        return replace(self, order=tuple(named(column).sql for column in columns))

    def rowsBetween(self, first: int, last: int) -> "EmbeddedWindow":  # noqa: N802
        return replace(self, frame=f"ROWS BETWEEN {_bound(first)} AND {_bound(last)}")

    @property
    def sql(self) -> str:
        keys = f"PARTITION BY {', '.join(self.keys)}" if self.keys else ""
        order = f"ORDER BY {', '.join(f'{key} ASC NULLS FIRST' for key in self.order)}" if self.order else ""
        return " ".join(filter(None, (keys, order, self.frame)))


def _bound(number: int) -> str:
    if number <= -_UNBOUNDED:
        return "UNBOUNDED PRECEDING"
    if number >= _UNBOUNDED:
        return "UNBOUNDED FOLLOWING"
    if number == 0:
        return "CURRENT ROW"
    return f"{-number} PRECEDING" if number < 0 else f"{number} FOLLOWING"

"""The functions of pyspark.sql.functions that the audit uses, as DuckDB's SQL."""

import re
from collections.abc import Callable
from itertools import count as numbers
from typing import Any

from mqproof.spark_audit.engine.embedded.columns import (
    Case,
    EmbeddedColumn,
    case,
    col,
    column_of,
    named,
    sql_type,
    value,
)
from mqproof.spark_audit.engine.sql_text import quoted

Given = EmbeddedColumn | str
_AS_LONG = ("CAST(", " AS BIGINT)")
_variables = numbers()


def lit(given: Any) -> EmbeddedColumn:
    return column_of(given)


def expr(text: str) -> EmbeddedColumn:
    """Return an expression that Spark and DuckDB read alike."""
    return EmbeddedColumn(f"({text})")


def when(condition: EmbeddedColumn, then: Any) -> Case:
    return case((f"WHEN {condition.sql} THEN {value(then)}",))


def broadcast(table: Any) -> Any:
    return table


# --- Values


def coalesce(*columns: Given) -> EmbeddedColumn:
    return _call("coalesce", *columns)


def greatest(*columns: Given) -> EmbeddedColumn:
    return _call("greatest", *columns)


def least(*columns: Given) -> EmbeddedColumn:
    return _call("least", *columns)


def nullif(one: Given, other: Given) -> EmbeddedColumn:
    return _call("nullif", one, other)


def floor(column: Given) -> EmbeddedColumn:
    return EmbeddedColumn(f"CAST(floor({named(column).sql}) AS BIGINT)")


def log10(column: Given) -> EmbeddedColumn:
    return _call("log10", column)


def shiftright(column: Given, bits: int) -> EmbeddedColumn:
    return EmbeddedColumn(f"({named(column).sql} >> {bits})")


def xxhash64(*columns: Given) -> EmbeddedColumn:
    """Return a hash: DuckDB's own, which differs from Spark's."""
    return _call("hash", *columns)


# --- Texts


def lower(column: Given) -> EmbeddedColumn:
    return _call("lower", column)


def trim(column: Given) -> EmbeddedColumn:
    return _call("trim", column)


def concat(*columns: Given) -> EmbeddedColumn:
    """Concatenate texts or arrays; null if one is null."""
    return EmbeddedColumn(f"({' || '.join(named(column).sql for column in columns)})")


def concat_ws(separator: str, *columns: Given) -> EmbeddedColumn:
    """Concatenate texts and numbers; nulls are left out. For an array, use array_join."""
    return EmbeddedColumn(f"concat_ws({quoted(separator)}, {_sql(columns)})")


def array_join(column: Given, separator: str) -> EmbeddedColumn:
    return EmbeddedColumn(f"coalesce(array_to_string({named(column).sql}, {quoted(separator)}), '')")


def format_string(template: str, *columns: Given) -> EmbeddedColumn:
    texts = [quoted(text) for text in re.split(r"%[ds]", template)]
    values = [f"coalesce(CAST({named(column).sql} AS VARCHAR), 'null')" for column in columns]
    if len(texts) != len(values) + 1:
        raise ValueError(f"{template!r} needs {len(texts) - 1} values, {len(values)} given")
    between = [part for pair in zip(values, texts[1:], strict=True) for part in pair]
    return EmbeddedColumn(f"({' || '.join([texts[0], *between])})")


def split(column: Given, separator: str) -> EmbeddedColumn:
    return EmbeddedColumn(f"string_split({named(column).sql}, {quoted(separator)})")


def regexp_replace(column: Given, pattern: str, replacement: str) -> EmbeddedColumn:
    return EmbeddedColumn(
        f"regexp_replace({named(column).sql}, {quoted(pattern)}, {quoted(replacement)}, 'g')"
    )


def md5(column: Given) -> EmbeddedColumn:
    return _call("md5", column)


def substring(column: Given, start: int, length: int) -> EmbeddedColumn:
    return EmbeddedColumn(f"substring({named(column).sql}, {start}, {length})")


def regexp_extract(column: Given, pattern: str, group: int) -> EmbeddedColumn:
    return EmbeddedColumn(f"regexp_extract({named(column).sql}, {quoted(pattern)}, {group})")


# --- JSON


def to_json(column: Given) -> EmbeddedColumn:
    return EmbeddedColumn(f"CAST(to_json({named(column).sql}) AS VARCHAR)")


def from_json(column: Given, schema: str) -> EmbeddedColumn:
    """Return a struct; the schema is a text such as `name string, attrs map<string,string>`."""
    types = dict(re.findall(r"(\w+) (map<[^>]*>|\w+)", schema))
    fields = ", ".join(f'"{name}": "{sql_type(kind)}"' for name, kind in types.items())
    return EmbeddedColumn(f"from_json({named(column).sql}, {quoted('{' + fields + '}')})")


def get_json_object(column: Given, path: str) -> EmbeddedColumn:
    return EmbeddedColumn(f"json_extract_string({named(column).sql}, {quoted(path)})")


# --- Arrays and structs


def struct(*columns: Given) -> EmbeddedColumn:
    fields = [named(column) for column in columns]
    return EmbeddedColumn(f"struct_pack({', '.join(f'{_field(each)} := {each.sql}' for each in fields)})")


def array(*columns: Given) -> EmbeddedColumn:
    return EmbeddedColumn(f"[{_sql(columns)}]")


def size(column: Given) -> EmbeddedColumn:
    return EmbeddedColumn(f"len({named(column).sql})")


def get(column: Given, index: Given) -> EmbeddedColumn:
    """Return an element, counted from 0; null outside of the array."""
    at = named(index).sql
    # In DuckDB, a negative index counts from the end.
    return EmbeddedColumn(f"CASE WHEN {at} >= 0 THEN ({named(column).sql})[{at} + 1] END")


def slice(column: Given, start: int, length: int) -> EmbeddedColumn:  # noqa: A001  # PySpark's name
    return EmbeddedColumn(f"list_slice({named(column).sql}, {start}, {start + length - 1})")


def sequence(first: Given, last: Given) -> EmbeddedColumn:
    return _call("generate_series", first, last)


def flatten(column: Given) -> EmbeddedColumn:
    return _call("flatten", column)


def array_sort(column: Given) -> EmbeddedColumn:
    return _call("list_sort", column)


def array_distinct(column: Given) -> EmbeddedColumn:
    return _call("list_distinct", column)


def array_contains(column: Given, element: Any) -> EmbeddedColumn:
    return EmbeddedColumn(f"list_contains({named(column).sql}, {value(element)})")


def array_append(column: Given, element: Any) -> EmbeddedColumn:
    return EmbeddedColumn(f"list_append({named(column).sql}, {value(element)})")


def array_except(one: Given, other: Given) -> EmbeddedColumn:
    return filter(array_distinct(one), lambda each: ~array_contains(named(other), each))


def array_compact(column: Given) -> EmbeddedColumn:
    return filter(column, lambda each: each.isNotNull())


def array_min(column: Given) -> EmbeddedColumn:
    return _call("list_min", column)


def arrays_zip(one: EmbeddedColumn, other: EmbeddedColumn) -> EmbeddedColumn:
    return EmbeddedColumn(
        f"list_transform(generate_series(1, greatest(len({one.sql}), len({other.sql}))), lambda at_: "
        f"struct_pack({_field(one)} := ({one.sql})[at_], {_field(other)} := ({other.sql})[at_]))"
    )


def transform(column: Given, change: Callable[[EmbeddedColumn], EmbeddedColumn]) -> EmbeddedColumn:
    return EmbeddedColumn(f"list_transform({named(column).sql}, {_lambda(change)})")


def filter(column: Given, condition: Callable[[EmbeddedColumn], EmbeddedColumn]) -> EmbeddedColumn:  # noqa: A001
    return EmbeddedColumn(f"list_filter({named(column).sql}, {_lambda(condition)})")


def exists(column: Given, condition: Callable[[EmbeddedColumn], EmbeddedColumn]) -> EmbeddedColumn:
    """Return whether the condition is true of an element; null if it is true of none and null of one."""
    found = transform(column, condition).sql
    return EmbeddedColumn(
        f"CASE WHEN {named(column).sql} IS NOT NULL THEN {_any('bool_or', found, 'false')} END"
    )


def forall(column: Given, condition: Callable[[EmbeddedColumn], EmbeddedColumn]) -> EmbeddedColumn:
    """Return whether the condition is true of all elements; null if it is false of none and null of one."""
    found = transform(column, condition).sql
    return EmbeddedColumn(
        f"CASE WHEN {named(column).sql} IS NOT NULL THEN {_any('bool_and', found, 'true')} END"
    )


def _any(aggregate: str, found: str, empty: str) -> str:
    decided = "true" if aggregate == "bool_or" else "false"
    return (
        f"CASE WHEN list_aggregate({found}, '{aggregate}') = {decided} THEN {decided}"
        f" WHEN len(list_filter({found}, lambda it_: it_ IS NULL)) > 0 THEN NULL ELSE {empty} END"
    )


def explode(column: Given) -> EmbeddedColumn:
    return EmbeddedColumn(f"unnest({named(column).sql})", "col")


def explode_outer(column: Given) -> EmbeddedColumn:
    given = named(column).sql
    return EmbeddedColumn(f"unnest(CASE WHEN len({given}) > 0 THEN {given} ELSE [NULL] END)", "col")


def posexplode(column: Given) -> EmbeddedColumn:
    given = named(column).sql
    positions = EmbeddedColumn(f"unnest(generate_series(0, len({given}) - 1))", "pos")
    return EmbeddedColumn("", parts=(positions, EmbeddedColumn(f"unnest({given})", "col")))


def create_map(*pairs: Given) -> EmbeddedColumn:
    keys, values = _sql(pairs[::2]), _sql(pairs[1::2])
    return EmbeddedColumn(f"map([{keys}], [{values}])")


def map_concat(*maps: Given) -> EmbeddedColumn:
    return _call("map_concat", *maps)


def map_filter(
    column: Given, condition: Callable[[EmbeddedColumn, EmbeddedColumn], EmbeddedColumn]
) -> EmbeddedColumn:
    entries = EmbeddedColumn(f"map_entries({named(column).sql})")
    kept = filter(entries, lambda entry: condition(entry["key"], entry["value"]))
    return _call("map_from_entries", kept)


# --- Aggregates and windows


def count(column: Given) -> EmbeddedColumn:
    return _call("count", column)


def countDistinct(*columns: Given) -> EmbeddedColumn:  # noqa: N802  # PySpark's name
    if len(columns) == 1:
        return EmbeddedColumn(f"count(DISTINCT {_sql(columns)})")
    known = " AND ".join(f"{named(column).sql} IS NOT NULL" for column in columns)
    return EmbeddedColumn(f"count(DISTINCT CASE WHEN {known} THEN row({_sql(columns)}) END)")


def count_if(condition: Given) -> EmbeddedColumn:
    return EmbeddedColumn(f"count_if({named(condition).sql})", wrap=_AS_LONG)


def sum(column: Given) -> EmbeddedColumn:  # noqa: A001  # PySpark's name
    return EmbeddedColumn(f"sum({named(column).sql})", wrap=_AS_LONG)


def min(column: Given) -> EmbeddedColumn:  # noqa: A001  # PySpark's name
    return _call("min", column)


def max(column: Given) -> EmbeddedColumn:  # noqa: A001  # PySpark's name
    return _call("max", column)


def min_by(column: Given, order: Given) -> EmbeddedColumn:
    return _call("arg_min_null", column, order)


def max_by(column: Given, order: Given) -> EmbeddedColumn:
    return _call("arg_max_null", column, order)


def bit_xor(column: Given) -> EmbeddedColumn:
    return _call("bit_xor", column)


def bitmap_construct_agg(column: Given) -> EmbeddedColumn:
    """Return a set of the numbers that one of Spark's bitmaps holds: 0 to 32767."""
    return EmbeddedColumn(f"bitstring_agg({named(column).sql}, 0, {8 * 4096 - 1})")


def bitmap_count(column: Given) -> EmbeddedColumn:
    return _call("bit_count", column)


def bool_or(column: Given) -> EmbeddedColumn:
    return _call("bool_or", column)


def first(column: Given) -> EmbeddedColumn:
    return _call("first", column)


def last(column: Given, *, ignorenulls: bool) -> EmbeddedColumn:
    assert ignorenulls, "the audit uses no other"
    return EmbeddedColumn(f"last_value({named(column).sql} IGNORE NULLS)")


def lag(column: Given, offset: int = 1, default: Any = None) -> EmbeddedColumn:
    return EmbeddedColumn(f"lag({named(column).sql}, {offset}, {value(default)})")


def lead(column: Given) -> EmbeddedColumn:
    return _call("lead", column)


def row_number() -> EmbeddedColumn:
    return EmbeddedColumn("row_number()")


def collect_list(column: Given) -> EmbeddedColumn:
    return _list(named(column).sql, "")


def collect_set(column: Given) -> EmbeddedColumn:
    return _list(named(column).sql, "DISTINCT ")


def percentile_approx(column: Given, shares: list[float]) -> EmbeddedColumn:
    """Return the exact percentiles."""
    return EmbeddedColumn(f"quantile_disc({named(column).sql}, {shares})")


def _list(text: str, distinct: str) -> EmbeddedColumn:
    # DuckDB returns null where Spark returns an empty array.
    return EmbeddedColumn(f"list({distinct}{text}) FILTER ({text} IS NOT NULL)", wrap=("coalesce(", ", [])"))


def _call(function: str, *columns: Given) -> EmbeddedColumn:
    return EmbeddedColumn(f"{function}({_sql(columns)})")


def _sql(columns: tuple[Given, ...]) -> str:
    return ", ".join(named(column).sql for column in columns)


def _field(column: EmbeddedColumn) -> str:
    assert column.name, f"a field needs a name: {column.sql}"
    return col(column.name).sql


def _lambda(body: Callable[[EmbeddedColumn], EmbeddedColumn]) -> str:
    variable = f"each{next(_variables)}_"
    return f"lambda {variable}: {body(EmbeddedColumn(variable)).sql}"


__all__ = ["col"]

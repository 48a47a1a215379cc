"""Queries of the embedded engine have the rows that PySpark's DataFrames have.

Goal: each translated method and function, with nulls. Method: small tables, and the rows that PySpark's
documentation promises. test_same_results.py compares whole audits with Spark.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded import column_functions as f
from mqproof.spark_audit.engine.embedded.columns import EmbeddedColumn, EmbeddedWindow, sql_type
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.engine.embedded.queries import Query


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with active.embedded(), closing(Database(tmp_path)) as opened:
        yield opened


@pytest.fixture
def rows(database: Database) -> Query:
    given = [("a", 1, 5), ("a", 2, None), ("b", 1, 3), (None, 4, 7)]
    return database.createDataFrame(given, "node string, seq bigint, value bigint")


def sorted_rows(query: Query) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, query.collect()), key=repr)


def one(database: Database, column: EmbeddedColumn) -> Any:
    """Return the value of an expression without columns."""
    return database.range(1).select(column.alias("value")).collect()[0]["value"]


def test_columns_are_selected_added_renamed_and_dropped(rows: Query) -> None:
    changed = rows.withColumns({"seq": f.col("seq") + 1, "twice": f.col("value") * 2})
    assert changed.columns == ["node", "seq", "value", "twice"]
    assert changed.where("twice > 10").collect() == [(None, 5, 7, 14)]
    assert changed.withColumnRenamed("twice", "x").drop("node", "seq").columns == ["value", "x"]
    assert rows.select("*", f.lit(1).alias("one")).columns == ["node", "seq", "value", "one"]
    assert rows.fillna(0, ["value"]).where("value = 0").count() == 1
    row = rows.where(f.col("node") == "b").collect()[0]
    assert (row.node, row["seq"], row[2], row.asDict()) == ("b", 1, 3, {"node": "b", "seq": 1, "value": 3})
    with pytest.raises(AttributeError):
        row.other  # noqa: B018  # the access is what is tested


def test_groups_keep_nulls_and_a_sum_stays_a_whole_number(rows: Query) -> None:
    sums = rows.groupBy("node").agg(
        f.sum("value").alias("total"),
        f.count("value").alias("values"),
        f.collect_set("value").alias("set"),
        f.count_if(f.col("seq") > 1).alias("late"),
        f.max_by("value", "seq").alias("newest"),
    )
    assert sorted_rows(sums) == sorted(
        [("a", 5, 1, [5], 1, None), ("b", 3, 1, [3], 0, 3), (None, 7, 1, [7], 1, 7)], key=repr
    )
    assert rows.where("false").agg(f.sum("value").alias("x"), f.count(f.lit(1)).alias("n")).first() == (
        None,
        0,
    )
    assert sorted_rows(rows.groupBy("node").count().select("count")) == [(1,), (1,), (2,)]


def test_a_window_begins_with_nulls_and_ends_at_the_current_row(rows: Query) -> None:
    by_value = EmbeddedWindow().partitionBy("node").orderBy("value")
    before = by_value.rowsBetween(-(1 << 63), -1)
    shown = rows.select(
        "node",
        "seq",
        f.lag("seq", 1, -1).over(by_value).alias("last"),
        f.sum("seq").over(before).alias("sum"),
    )
    assert sorted_rows(shown) == sorted(
        [("a", 2, -1, None), ("a", 1, 2, 2), ("b", 1, -1, None), (None, 4, -1, None)], key=repr
    )
    lists = rows.select(f.collect_list("value").over(by_value).alias("so_far"))
    assert sorted_rows(lists) == [([3],), ([5],), ([7],), ([],)]
    frames = {(0, 1): "CURRENT ROW AND 1 FOLLOWING", (-2, 1 << 63): "2 PRECEDING AND UNBOUNDED FOLLOWING"}
    for (first, last), text in frames.items():
        assert EmbeddedWindow().rowsBetween(first, last).sql == f"ROWS BETWEEN {text}"


def test_tables_are_joined_by_name_and_by_condition(database: Database, rows: Query) -> None:
    other = database.createDataFrame([("a", "x"), ("c", "y")], "node string, label string")
    inner = rows.join(other, "node")
    assert inner.columns == ["node", "seq", "value", "label"]
    assert sorted_rows(inner.select("seq", "label")) == [(1, "x"), (2, "x")]
    assert rows.join(other, ["node"], "left").where("label IS NULL").count() == 2
    assert sorted_rows(rows.join(other, "node", "left_semi").select("seq")) == [(1,), (2,)]
    # A null equals nothing, so it has no partner.
    assert sorted_rows(rows.join(other, "node", "left_anti").select("seq")) == [(1,), (4,)]
    assert rows.join(other, "node", "full_outer").where("node = 'c'").select("node", "label").first() == (
        "c",
        "y",
    )
    named = other.withColumnsRenamed({"node": "its_node"})
    assert rows.join(named, f.col("node") == f.col("its_node"), "left").columns[-2:] == ["its_node", "label"]


def test_a_union_by_name_needs_the_same_columns(rows: Query) -> None:
    swapped = rows.select("value", "seq", "node")
    assert rows.unionByName(swapped).distinct().count() == 4
    assert rows.union(rows).dropDuplicates(["node", "seq"]).count() == 4
    with pytest.raises(ValueError, match="union of"):
        rows.unionByName(rows.drop("seq"))


def test_a_source_that_is_read_twice_is_computed_once(rows: Query) -> None:
    shared = rows.where("seq > 0")
    text = shared.join(shared.select(f.col("node").alias("n")), f.col("node") == f.col("n")).sql()
    assert text.count("seq > 0") == 1


def test_a_kept_query_is_stored_when_it_is_first_read(database: Database, rows: Query) -> None:
    kept = rows.where("seq > 1").persist()
    assert database.rows("SELECT count(*) FROM duckdb_tables()") == [(0,)]
    assert kept.where("value = 7").count() == 1
    assert database.rows("SELECT count(*) FROM duckdb_tables()") == [(1,)]
    assert kept.sql() == "SELECT * FROM kept_1"
    assert kept.select("seq").orderBy("seq").head(1) == [(2,)]
    assert kept.ensure_table() == "kept_1"


def test_structs_and_arrays_become_rows(database: Database) -> None:
    given = database.range(1).select(
        f.array(f.lit(3), f.lit(5)).alias("list"),
        f.struct(f.lit(1).alias("x"), f.lit("t").alias("y")).alias("s"),
    )
    assert sorted_rows(given.select(f.explode("list").alias("each"))) == [(3,), (5,)]
    assert sorted_rows(given.select(f.posexplode("list"))) == [(0, 3), (1, 5)]
    assert given.select("s.*").columns == ["x", "y"]
    assert given.select("s.y").collect()[0].y == "t"
    empty = given.withColumn("list", f.array().cast("array<string>"))
    assert empty.select(f.explode("list").alias("each")).count() == 0
    assert empty.select(f.explode_outer("list").alias("each")).collect() == [(None,)]
    zipped = f.arrays_zip(f.col("list").alias("a"), f.array(f.lit(1)).alias("b"))
    assert given.select(f.explode(zipped).alias("z")).select("z.a", "z.b").collect() == [(3, 1), (5, None)]


NULL_TEXT = EmbeddedColumn("NULL::VARCHAR")
LIST = EmbeddedColumn("[3, 1, NULL, 3]")
NULL_LIST = EmbeddedColumn("NULL::INTEGER[]")
TEXT = EmbeddedColumn("map {'n': '17', 'x': '1.5'}")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (f.lit("it's"), "it's"),
        (f.lit(-1) + 2, 1),
        (f.lit(True) & ~f.lit(False) | f.lit(None), True),
        (2 * f.lit(3) + 1, 7),
        (1 + f.lit(3), 4),
        (f.lit(3).isin(), False),
        (f.lit(3).isin(1, 3), True),
        (f.lit(None).eqNullSafe(f.lit(None)), True),
        (f.lit(5).between(1, 5), True),
        (f.lit("%RETRY%g").startswith("%RETRY%"), True),
        (f.when(f.lit(False), 1).when(f.lit(True), f.lit(2)).otherwise(3), 2),
        (f.when(f.lit(False), 1), None),
        (f.coalesce(f.lit(None), f.lit(2)), 2),
        (f.greatest(f.lit(None), f.lit(2), f.lit(1)), 2),
        (f.least(f.lit(None), f.lit(2), f.lit(1)), 1),
        (f.nullif(f.lit(""), f.lit("")), None),
        (f.floor(f.lit(-7) / 2), -4),
        ((f.lit(-7) / 2).cast("long"), -3),
        ((f.lit(7) / 2 * 2).cast("long"), 7),
        (f.shiftright(f.lit(-5), 1), -3),
        (TEXT["n"].cast("long"), 17),
        (TEXT["n"].try_cast("int"), 17),
        (TEXT["x"].try_cast("int"), None),
        (TEXT["absent"].cast("long"), None),
        (f.lit(3).try_cast("int"), 3),
        (f.lower(f.lit("AB")), "ab"),
        (f.concat(f.lit("a"), NULL_TEXT), None),
        (f.concat_ws("#", f.lit("a"), NULL_TEXT, f.lit(3)), "a#3"),
        (f.array_join(f.array(f.lit("a"), f.lit("b")), ", "), "a, b"),
        (f.format_string("%d of %s%%", f.lit(1), NULL_TEXT), "1 of null%%"),
        (f.regexp_replace(f.lit("a-b-c"), "-", "+"), "a+b+c"),
        (f.split(f.lit("a,b"), ","), ["a", "b"]),
        (f.size(LIST), 4),
        (f.size(NULL_LIST), None),
        (f.get(LIST, f.lit(0)), 3),
        (f.get(LIST, f.lit(-1)), None),
        (f.get(LIST, f.lit(9)), None),
        (LIST[0], 3),
        (f.slice(LIST, 2, 1), [1]),
        (f.sequence(f.lit(2), f.lit(4)), [2, 3, 4]),
        (f.flatten(f.array(f.array(f.lit(1)), f.array(f.lit(2)))), [1, 2]),
        (f.array_sort(f.array(f.lit(2), f.lit(1))), [1, 2]),
        (f.size(f.array_distinct(f.array(f.lit(2), f.lit(2)))), 1),
        (f.array_contains(LIST, 1), True),
        (f.array_except(f.array(f.lit(1), f.lit(2), f.lit(2)), f.array(f.lit(1))), [2]),
        (f.array_except(NULL_LIST, LIST), None),
        (f.array_compact(LIST), [3, 1, 3]),
        (f.array_min(LIST), 1),
        (f.transform(LIST, lambda each: each + 1), [4, 2, None, 4]),
        (f.filter(LIST, lambda each: each > 1), [3, 3]),
        (f.exists(LIST, lambda each: each == 1), True),
        (f.exists(LIST, lambda each: each == 9), None),
        (f.exists(f.array(f.lit(1)), lambda each: each == 9), False),
        (f.exists(NULL_LIST, lambda each: each == 9), None),
        (f.forall(LIST, lambda each: each > 1), False),
        (f.forall(LIST, lambda each: each > 0), None),
        (f.forall(f.array().cast("array<int>"), lambda each: each > 0), True),
        (f.forall(NULL_LIST, lambda each: each > 0), None),
        (f.map_filter(TEXT, lambda key, _: key != "x"), {"n": "17"}),
        (f.map_concat(TEXT, f.create_map(f.lit("n"), f.lit("0"))), {"n": "0", "x": "1.5"}),
        (f.expr("1 + 1"), 2),
        (f.broadcast(f.lit(1)), 1),
        (f.log10(f.lit(1000)), 3.0),
    ],
)  # fmt: skip
def test_a_function_gives_the_value_of_spark(
    database: Database, column: EmbeddedColumn, expected: Any
) -> None:
    found = one(database, column)
    assert found == expected
    assert (found is None) == (expected is None)


def test_aggregates_over_several_columns_and_the_order_of_rows(rows: Query) -> None:
    aggregates = {
        "pairs": f.countDistinct("node", "seq"),
        "nodes": f.countDistinct("node"),
        "first": f.min_by("node", "seq"),
        "any": f.bool_or(f.col("seq") == 4),
        "low": f.min("value"),
        "high": f.max(f.struct("seq", "node")),
        "half": f.percentile_approx("seq", [0.5, 0.99]),
        "list": f.size(f.collect_list("value")),
    }
    found = rows.agg(*[column.alias(name) for name, column in aggregates.items()]).first()
    assert found
    assert found["first"] in ("a", "b")
    rest = {name: value for name, value in found.asDict().items() if name != "first"}
    assert rest == {
        "pairs": 3, "nodes": 2, "any": True, "low": 3, "high": {"seq": 4, "node": None}, "half": [1, 4],
        "list": 3,
    }  # fmt: skip
    by_seq = EmbeddedWindow().orderBy("seq", "node")
    shown = rows.select(
        f.row_number().over(by_seq).alias("n"),
        f.last("value", ignorenulls=True).over(by_seq).alias("last"),
        f.lead("seq").over(by_seq).alias("next"),
        f.first("node").over(by_seq).alias("first"),
    )
    assert shown.collect() == [(1, 5, 1, "a"), (2, 3, 2, "a"), (3, 3, 4, "a"), (4, 7, None, "a")]
    assert rows.select(f.xxhash64("node").alias("key")).distinct().count() == 3


def test_a_text_that_is_no_number_is_refused_not_rounded(database: Database) -> None:
    with pytest.raises(duckdb.ConversionException, match=r"no number: 1\.5"):
        one(database, TEXT["x"].cast("long"))


def test_wrong_use_is_an_error() -> None:
    with pytest.raises(TypeError, match="has no truth value"):
        bool(f.lit(True))
    with pytest.raises(TypeError, match="no literal"):
        f.lit(b"bytes")
    with pytest.raises(ValueError, match="needs 2 values, 1 given"):
        f.format_string("%d %d", f.lit(1))
    with pytest.raises(KeyError):
        sql_type("interval")


def test_an_empty_table_has_its_columns_and_own_queries_name_their_sources(
    database: Database, rows: Query
) -> None:
    empty = database.createDataFrame([], "a string, b int")
    assert (empty.columns, empty.count(), empty.first()) == (["a", "b"], 0, None)
    own = database.query("SELECT max(seq) AS high FROM {given}", given=rows)
    assert (own.columns, own.collect()) == (["high"], [(4,)])
    first = database.createDataFrame([("{two}",)], "name string")
    two = database.createDataFrame([("it's",)], "name string")
    both = database.query("SELECT * FROM {one} UNION ALL SELECT * FROM {two}", one=first, two=two)
    assert sorted_rows(both) == [("it's",), ("{two}",)]
    database.run("CREATE TABLE t AS SELECT 1 AS x")
    assert database.table("t").select("x").collect() == [(1,)]

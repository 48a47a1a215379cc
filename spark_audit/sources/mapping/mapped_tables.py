"""Converts mapped tables that only Spark reads into Parquet event logs: ORC, Delta, Iceberg and JDBC.

As mapped_logs.py, with expressions in Spark's SQL.
"""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.window import Window

from mqproof.spark_audit.sources.inputs import InputError, find_files, literal
from mqproof.spark_audit.sources.mapping.mapped_logs import SAMPLE_ROWS, TIMES, Converted
from mqproof.spark_audit.sources.mapping.mapping_file import (
    MappedEvent,
    MappedSource,
    MappingError,
    MappingFile,
)
from mqproof.spark_audit.spark_schema import EVENTS
from mqproof.spec.events import COLUMNS

_ORDER: Final = "event_number"


def convert_on_spark(
    spark: SparkSession, mapping: MappingFile, folder: Path, stage: Callable[[str], None]
) -> tuple[Converted, tuple[Path, ...]]:
    """Write the event log that a mapping describes, and return its files.

    Raises:
        MappingError: expressions do not fit their table; all of them are named.
        InputError: a table cannot be read.
    """
    errors: list[str] = []
    tables = []
    for source in mapping.sources:
        stage(f"checking {source.name} on its first rows")
        tables.append(table := _table(spark, source))
        errors += _errors(source, table.limit(SAMPLE_ROWS))
    if errors:
        raise MappingError(errors)
    stage(f"converting {mapping.file}")
    parts: list[DataFrame] = []
    rows = unused = 0
    for source, table in zip(mapping.sources, tables, strict=True):
        first = len(parts)
        parts += [_events(table, event, first + n) for n, event in enumerate(source.events)]
        none = reduce(
            Column.__and__, (~f.coalesce(_condition(event), f.lit(False)) for event in source.events)
        )
        rows += table.count()
        unused += table.where(none).count()
    events = reduce(DataFrame.unionByName, parts)
    if not mapping.is_numbered:
        in_order = Window.partitionBy("node").orderBy("ts", _ORDER)
        events = events.withColumn("seq", f.row_number().over(in_order) - (1 if mapping.complete else 0))
    written = events.select(*(f.col(name).cast(EVENTS[name].dataType).alias(name) for name in COLUMNS))
    written.write.mode("errorifexists").parquet(str(folder))
    files = find_files([str(folder)]).files
    return Converted(str(mapping.file), folder, rows, spark.read.parquet(str(folder)).count(), unused), files


def _table(spark: SparkSession, source: MappedSource) -> DataFrame:
    try:
        reader = spark.read.format(source.format).options(**_options(source))
        if source.format == "jdbc":
            return reader.option("dbtable", source.path).load()
        is_file = source.format == "orc" and "://" not in source.path
        return reader.load(literal(Path(source.path)) if is_file else source.path)
    except PySparkException as error:
        raise InputError(f"{source.name}: {source.path}: {_first_line(error)}") from None


def _options(source: MappedSource) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in source.options.items()
    }


def _errors(source: MappedSource, sample: DataFrame) -> list[str]:
    """Return one line for each expression that does not fit the table's columns."""
    found: list[str] = []
    tried: set[tuple[str, str]] = set()
    for number, event in enumerate(source.events, start=1):
        try:
            sample.where(_condition(event)).count()
        except PySparkException as error:
            found.append(f"{source.name}, event {number} ({event.kind}): where: {_first_line(error)}")
        named = {**event.columns, **{f"attrs.{name}": text for name, text in event.attrs.items()}}
        for name, text in named.items():
            if (name, text) in tried:
                continue
            tried.add((name, text))
            if problem := _problem(sample, name, text):
                found.append(f"{source.name}, column {name}: {problem}")
    return found


def _problem(sample: DataFrame, name: str, text: str) -> str | None:
    try:
        values = sample.select(f.expr(text).alias("value"))
        values.where("value IS NOT NULL").count()
    except PySparkException as error:
        return _first_line(error)
    kind = values.schema["value"].dataType
    if COLUMNS.get(name, "string") == "string" or isinstance(kind, t.IntegralType | t.NullType):
        return None
    if name in TIMES and isinstance(kind, t.TimestampType):
        return None
    also = " of microseconds, or a timestamp" if name in TIMES else ""
    return f"{text!r} is {kind.simpleString()}, expected a whole number{also}"


def _condition(event: MappedEvent) -> Column:
    return f.expr(event.where or "true")


def _events(table: DataFrame, event: MappedEvent, number: int) -> DataFrame:
    columns = []
    for name in COLUMNS:
        value: Column = f.lit(None)
        if name == "kind":
            value = f.lit(str(event.kind))
        elif name == "attrs":
            value = _attributes(event)
        elif name in event.columns:
            value = f.expr(event.columns[name])
            if name in TIMES and isinstance(table.select(value).schema[0].dataType, t.TimestampType):
                value = f.unix_micros(value)
        columns.append(value.cast(EVENTS[name].dataType).alias(name))
    return table.where(_condition(event)).select(*columns, f.lit(number).alias(_ORDER))


def _attributes(event: MappedEvent) -> Column:
    if not event.attrs:
        return f.create_map().cast("map<string,string>")
    entries = [
        part for name, text in event.attrs.items() for part in (f.lit(name), f.expr(text).cast("string"))
    ]
    return f.map_filter(f.create_map(*entries), lambda _, value: value.isNotNull())


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()[:300]

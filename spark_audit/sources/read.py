"""Reads event logs, NDJSON and Parquet, into one table with exactly the columns of spec.events.

Rows that are not events are counted and kept separately, never silently dropped. Files that cannot be read at
all, or that lack a required column, are refused by name.
"""

import re
import shutil
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.inputs import (
    InputError,
    Inputs,
    find_files,
    literal,
    partition_root,
    partition_values,
)
from mqproof.spark_audit.sources.log_lines import (
    TAIL_BYTES_MAX,
    check_columns,
    is_empty,
    object_in,
    torn_tail,
)
from mqproof.spark_audit.sources.splits import ROW, LogFile
from mqproof.spark_audit.spark_schema import EVENTS
from mqproof.spec.events import NUMBER_MAX, NUMBERS, REQUIRED, SCHEMA_VERSION, Kind

_CORRUPT: Final = "corrupt_line"
_PARQUET: Final = b"PAR1"
"""The first and last bytes of a Parquet file."""


@dataclass(frozen=True, slots=True)
class Log:
    event_log: EventLog
    corrupt: DataFrame
    """file and line of every row that is not an event."""
    inputs: Inputs
    rows: int
    """Number of rows in the files, events or not, from Parquet metadata.

    If all rows are events, no scan is needed to know it.
    """
    torn_files: int
    """Number of NDJSON files that end in a partial line.

    That is the last write of a killed node, and not counted as corruption.
    """

    @property
    def events(self) -> DataFrame:
        return self.event_log.rows


def read(spark: SparkSession, paths: Sequence[str], scratch: Path) -> Log:
    """Read the files that `find_files` finds under the paths."""
    return read_files(spark, find_files(paths), scratch)


def read_files(spark: SparkSession, inputs: Inputs, scratch: Path, lines: DataFrame | None = None) -> Log:
    """Return one table of all events.

    NDJSON is parsed once, into Parquet below `scratch`, which must exist as long as the table. `lines` are
    also NDJSON, but not in a file: the column `value`, and its origin as `file`.

    Raises:
        InputError: nothing to read, a damaged file, a missing required column, or a column of a wrong type.
    """
    files = [file for file in inputs.files if not is_empty(file)]
    parquet = [file for file in files if file.suffix == ".parquet"]
    ndjson = [file for file in files if file.suffix != ".parquet"]
    parts = [_read_parquet(spark, group) for group in _same_schema(parquet, _parquet_schema)]
    for number, group in enumerate(_same_schema(ndjson, _check_first_line)):
        parts.append(_read_ndjson(spark, group, scratch / f"parsed-{number}"))
    if lines is not None:
        parts.append(_stored(spark, _parsed(lines), scratch / "parsed-lines"))
    if not parts:
        nothing = spark.createDataFrame([], EVENTS)
        none = nothing.select(f.lit("").alias("file"), f.lit("").alias("line"))
        parts = [_Part(EventLog.of(nothing), none, 0)]
    all_parts = reduce(_Part.plus, parts)
    return Log(all_parts.event_log, all_parts.corrupt, inputs, all_parts.rows, all_parts.torn_files)


@dataclass(frozen=True, slots=True)
class _Part:
    """The contents of some files; the fields are as in Log."""

    event_log: EventLog
    corrupt: DataFrame
    rows: int
    torn_files: int = 0

    def plus(self, other: "_Part") -> "_Part":
        return _Part(
            self.event_log.plus(other.event_log),
            self.corrupt.unionByName(other.corrupt),
            self.rows + other.rows,
            self.torn_files + other.torn_files,
        )


@dataclass(frozen=True, slots=True)
class _Scan:
    """Files that Spark can read as one table."""

    files: list[Path]
    root: Path | None
    """The folder that contains folders named `column=value`; None if they give no column of ours."""

    def reader(self, spark: SparkSession) -> DataFrameReader:
        if self.root:
            return spark.read.option("basePath", str(self.root))
        # Without this option, folder names would still become columns.
        return spark.read.option("recursiveFileLookup", "true")

    @property
    def paths(self) -> list[str]:
        return [literal(file.absolute()) for file in self.files]


def _same_schema(files: Sequence[Path], schema: Callable[[Path], Hashable]) -> list[_Scan]:
    """Group files with equal schema and equal folder columns, because Spark reads one schema per scan."""
    scans: dict[Hashable, _Scan] = {}
    for file in files:
        given = _given(file)
        root = partition_root(file) if given else None
        scans.setdefault((schema(file), given, root), _Scan([], root)).files.append(file)
    return list(scans.values())


def _given(file: Path) -> tuple[str, ...]:
    """Return the columns of ours given by the file's folders."""
    given = [(name, value) for name, value in partition_values(file) if name in EVENTS.fieldNames()]
    names = tuple(name for name, _ in given)
    for name, value in given:
        is_whole = isinstance(EVENTS[name].dataType, t.IntegralType)
        if names.count(name) > 1 or name == "attrs" or (is_whole and not re.fullmatch(r"-?\d+", value)):
            expected = "a whole number, once" if is_whole else "a text, once"
            raise InputError(f"{file}: folder {name}={value}: expected of {name} {expected}")
    return names


# --- Parquet


def _parquet_schema(file: Path) -> Hashable:
    """Return the names and types of the file's columns.

    Raises:
        InputError: it is not an event log.
    """
    try:
        schema = pq.read_schema(file)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or _first_line(error)}") from None
    except pa.ArrowException as error:
        raise InputError(f"{file}: {_not_parquet(file)}: {_first_line(error)}") from None
    check_columns(str(file), file, schema.names)
    # Spark and DuckDB treat names that differ only in case as equal.
    lower = [name.lower() for name in schema.names]
    if twice := [name for name in schema.names if lower.count(name.lower()) > 1]:
        named = " and as ".join(dict.fromkeys(twice))
        raise InputError(f"{file}: column {named} occurs more than once")
    if ROW in lower:
        raise InputError(f"{file}: column {ROW}: DuckDB reserves that name, omit the column")
    if both := sorted(set(_given(file)) & set(schema.names)):
        raise InputError(f"{file}: {both[0]} is a column and a folder's name, expected one of them")
    for name in schema.names:
        if name in EVENTS.fieldNames():
            _check_type(file, name, schema.field(name).type)
    return tuple((field.name, str(field.type)) for field in schema)


def _not_parquet(file: Path) -> str:
    """Describe a file that cannot be read as Parquet."""
    with file.open("rb") as opened:
        begins = opened.read(len(_PARQUET))
    return "its end is missing or damaged" if begins == _PARQUET else "not a Parquet file"


def _check_type(file: Path, name: str, found: pa.DataType) -> None:
    expected = EVENTS[name].dataType
    if pa.types.is_dictionary(found):
        found = found.value_type
    fits: Callable[[pa.DataType], bool]
    if isinstance(expected, t.StringType):
        fits = _is_text
    elif isinstance(expected, t.MapType):
        fits = _is_text_map
    else:
        fits = pa.types.is_integer
    # A column with only nulls has no type of its own.
    if not (fits(found) or pa.types.is_null(found)):
        raise InputError(f"{file}: column {name} is {found}, expected {expected.simpleString()}")


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


def _is_text_map(found: pa.DataType) -> bool:
    return bool(pa.types.is_map(found)) and _is_text(found.key_type) and _is_text(found.item_type)


_OF_SPARK: Final[tuple[tuple[Callable[[pa.DataType], bool], t.DataType], ...]] = (
    (_is_text, t.StringType()),
    (_is_text_map, t.MapType(t.StringType(), t.StringType())),
    (pa.types.is_uint64, t.DecimalType(20)),
    (pa.types.is_uint32, t.LongType()),
    (pa.types.is_uint16, t.IntegerType()),
    (pa.types.is_uint8, t.ShortType()),
    (pa.types.is_int64, t.LongType()),
    (pa.types.is_int32, t.IntegerType()),
    (pa.types.is_int16, t.ShortType()),
    (pa.types.is_int8, t.ByteType()),
    (pa.types.is_float64, t.DoubleType()),
    (pa.types.is_float32, t.FloatType()),
    (pa.types.is_boolean, t.BooleanType()),
    (pa.types.is_date32, t.DateType()),
)
"""Maps a Parquet column type to Spark's type."""


def _read_parquet(spark: SparkSession, scan: _Scan) -> _Part:
    frame = scan.reader(spark).schema(_readable(pq.read_schema(scan.files[0]))).parquet(*scan.paths)
    own = set(frame.columns)
    columns = [
        # Unsigned 64-bit arrives as a decimal. Cast keys to signed integers, as comparisons of decimals cost
        # three times as much.
        (f.col(field.name) if field.name in own else f.lit(None)).cast(field.dataType).alias(field.name)
        for field in EVENTS.fields
    ]
    typed = frame.select(*columns)
    # The row as it is in the file, with all its columns.
    line = f.to_json(f.struct(*frame.columns)).alias("line")
    corrupt = (
        frame.select(*columns, line).where(~_is_event()).select(f.input_file_name().alias("file"), "line")
    )
    events, rows = typed.where(_is_event()), _rows(scan.files)
    if scan.root:
        return _Part(EventLog.of(events), corrupt, rows)
    event_log = EventLog(events, tuple(LogFile(file.absolute()) for file in scan.files))
    return _Part(event_log, corrupt, rows)


def _readable(own: pa.Schema) -> t.StructType:
    """Return the columns that Spark can read: all of ours that exist, and others of simple types."""
    fields = [t.StructField(field.name, kind) for field in own if (kind := _spark_type(field)) is not None]
    return t.StructType(fields)


def _spark_type(field: pa.Field) -> t.DataType | None:
    found = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    # None: a column with only nulls has no type of its own.
    return next((of_spark for is_such, of_spark in _OF_SPARK if is_such(found)), None)


def _rows(files: Iterable[Path]) -> int:
    return sum(pq.read_metadata(file).num_rows for file in files)


# --- NDJSON


def _read_ndjson(spark: SparkSession, scan: _Scan, parsed: Path) -> _Part:
    lines = scan.reader(spark).text(scan.paths)
    part = _stored(spark, _parsed(lines.withColumn("file", f.input_file_name())), parsed)
    if _is_all_null(_CORRUPT, [file.path for file in part.event_log.files]):
        return part
    names = [row["file"] for row in part.corrupt.select("file").distinct().collect()]
    torn = {name: tail for name in names if (tail := torn_tail(_path(name)))}
    if not torn:
        return part
    # Compare bytes: the line may end within a character.
    line = f.col("line").cast("binary")
    is_torn = reduce(
        Column.__or__, [(f.col("file") == name) & (line == f.lit(bytearray(torn[name]))) for name in torn]
    )
    rows = part.rows - part.corrupt.where(is_torn).count()
    return replace(part, corrupt=part.corrupt.where(~is_torn), rows=rows, torn_files=len(torn))


def _stored(spark: SparkSession, rows: DataFrame, parsed: Path) -> _Part:
    """Write the result of `_parsed` to files, and return them."""
    rows = rows.withColumn("file", f.when(f.col(_CORRUPT).isNotNull(), f.col("file")))
    # Parse once: every pass of the audit then reads only the columns it needs.
    shutil.rmtree(parsed, ignore_errors=True)
    rows.write.parquet(str(parsed))
    stored = spark.read.schema(rows.schema).parquet(literal(parsed))
    good = f.col(_CORRUPT).isNull()
    corrupt = stored.where(~good).select("file", f.col(_CORRUPT).alias("line"))
    events, files = stored.where(good).select(*EVENTS.fieldNames()), sorted(parsed.glob("*.parquet"))
    event_log = EventLog(events, tuple(LogFile(file.absolute(), marks=_CORRUPT) for file in files))
    return _Part(event_log, corrupt, _rows(files))


def _is_all_null(column: str, files: Iterable[Path]) -> bool:
    """Return whether a column is null everywhere, by Parquet statistics; asking Spark would need a job."""
    for metadata in map(pq.read_metadata, files):
        at = metadata.schema.names.index(column)
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            statistics = group.column(at).statistics
            if not (statistics and statistics.has_null_count and statistics.null_count == group.num_rows):
                return False
    return True


def _parsed(lines: DataFrame) -> DataFrame:
    """Parse lines of NDJSON into the columns of EVENTS, `file`, and _CORRUPT.

    The lines have `value`, `file` and the columns of their folders. _CORRUPT is the line if it is not an
    event. Empty lines are ignored.
    """
    lines = lines.where(f.col("value").rlike(r"\S"))
    # Parse line by line: for a line with a list, Spark's JSON reader makes any number of rows, or none.
    schema = t.StructType([*EVENTS.fields, t.StructField(_CORRUPT, t.StringType())])
    how = {"columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}
    columns = [
        # Folder values are used for rows that do not have the column.
        f.coalesce(f.col(f"row.{name}"), f.col(name).cast(schema[name].dataType)).alias(name)
        if name in lines.columns
        else f.col(f"row.{name}")
        for name in schema.fieldNames()
    ]
    raw = lines.select(*lines.columns, f.from_json("value", schema, how).alias("row"))
    bad = f.coalesce(f.col(_CORRUPT), f.when(~_is_event() | _is_more(), f.col("value")))
    return raw.select(*columns, "value", "file").withColumn(_CORRUPT, bad).drop("value")


def _is_more() -> Column:
    """Return whether a line continues after its JSON object, which Spark ignores."""
    seems = f.col("value").rlike(r"\}\s*,?\s*\{") | ~f.col("value").rlike(r"\}\s*$")
    as_array = f.from_json(f.concat(f.lit("["), "value", f.lit("]")), "array<struct<seq:string>>")
    return seems & (f.coalesce(f.size(as_array), f.lit(0)) != 1)


def _path(name: str) -> Path:
    """Return the path of a file, given Spark's name for it."""
    return Path(unquote(name.removeprefix("file://")))


def _check_first_line(file: Path) -> Hashable:
    """Refuse a log that lacks a required column in its first line, instead of reporting every row."""
    try:
        # Decompresses according to the suffix.
        with pa.input_stream(str(file)) as lines:
            first = lines.read(TAIL_BYTES_MAX).partition(b"\n")[0]
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except OSError as error:
        raise InputError(f"{file}: damaged, cannot be read: {_first_line(error)}") from None
    row = object_in(first)
    if row is not None:
        check_columns(f"{file}:1", file, list(row))
    return None


def _is_event() -> Column:
    """Return the condition for valid events.

    All required fields are present, numbers are in range, the kind is known, and the schema is not newer than
    ours.
    """
    present = f.lit(True)
    for name in REQUIRED:
        present = present & f.col(name).isNotNull()
    for name in NUMBERS:
        present = present & f.coalesce(f.col(name).between(-NUMBER_MAX, NUMBER_MAX), f.lit(True))
    # The condition is never null, so its negation selects all other rows.
    schema = f.col("attrs")["schema"]
    readable = schema.isNull() | (schema.try_cast("int") <= SCHEMA_VERSION)
    return present & f.coalesce(f.col("kind").isin(*map(str, Kind)) & readable, f.lit(False))


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__

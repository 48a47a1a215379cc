"""Reads event logs, NDJSON and Parquet, into one table with exactly the columns of spec.events.

Rows that are not events are counted and kept aside, never dropped in silence; files that cannot be read at
all, or that lack a required column, are refused by name.
"""

import re
import shutil
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from mqproof.spark_audit.schema import EVENTS
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.inputs import (
    InputError,
    Inputs,
    find_files,
    literal,
    partition_root,
    partition_values,
)
from mqproof.spark_audit.sources.splits import ROW, LogFile
from mqproof.spec.events import NUMBER_MAX, NUMBERS, REQUIRED, SCHEMA_VERSION, Kind

_CORRUPT: Final = "corrupt_line"
_PARQUET: Final = b"PAR1"
"""What a Parquet file begins and ends with."""
_TAIL_BYTES_MAX: Final = 1 << 20
"""A torn last line longer than this is reported as corrupt instead of forgiven."""


@dataclass(frozen=True, slots=True)
class Log:
    told: EventLog
    corrupt: DataFrame
    """file and line of every row that is not an event."""
    inputs: Inputs
    rows: int
    """How many rows the files have, events or not, by what their Parquet says of itself: no scan is needed to
    know that all are events."""
    torn_files: int
    """NDJSON files that end in half a line: the last write of a killed node, which is no corruption."""

    @property
    def events(self) -> DataFrame:
        return self.told.rows


def read(spark: SparkSession, paths: Sequence[str], scratch: Path) -> Log:
    """`read_files` of what `find_files` finds under the paths."""
    return read_files(spark, find_files(paths), scratch)


def read_files(spark: SparkSession, inputs: Inputs, scratch: Path, lines: DataFrame | None = None) -> Log:
    """One table of all events. NDJSON is parsed once, into Parquet below `scratch`, which must outlive the
    table.

    `lines` are of NDJSON, too, and in no file: `value`, and where it came from as `file`.

    Raises:
        InputError: nothing to read, a damaged file, a missing required column, or a column of a wrong type.
    """
    files = [file for file in inputs.files if not _is_empty(file)]
    parquet = [file for file in files if file.suffix == ".parquet"]
    ndjson = [file for file in files if file.suffix != ".parquet"]
    parts = [_read_parquet(spark, group) for group in _alike(parquet, _parquet_schema)]
    for number, group in enumerate(_alike(ndjson, _check_first_line)):
        parts.append(_read_ndjson(spark, group, scratch / f"parsed-{number}"))
    if lines is not None:
        parts.append(_stored(spark, _parsed(lines), scratch / "parsed-lines"))
    if not parts:
        nothing = spark.createDataFrame([], EVENTS)
        none = nothing.select(f.lit("").alias("file"), f.lit("").alias("line"))
        parts = [_Part(EventLog.of(nothing), none, 0)]
    all_parts = reduce(_Part.plus, parts)
    return Log(all_parts.told, all_parts.corrupt, inputs, all_parts.rows, all_parts.torn_files)


@dataclass(frozen=True, slots=True)
class _Part:
    """What some files have; as in Log."""

    told: EventLog
    corrupt: DataFrame
    rows: int
    torn_files: int = 0

    def plus(self, other: "_Part") -> "_Part":
        return _Part(
            self.told.plus(other.told),
            self.corrupt.unionByName(other.corrupt),
            self.rows + other.rows,
            self.torn_files + other.torn_files,
        )


def _is_empty(file: Path) -> bool:
    """Whether it is a log without a line. Raises InputError: no such log has no byte at all."""
    if file.stat().st_size:
        return False
    if file.suffix != ".ndjson":
        raise InputError(f"{file}: has no byte, expected a whole {file.suffix} file")
    return True


@dataclass(frozen=True, slots=True)
class _Scan:
    """Files that Spark can read as one table."""

    files: list[Path]
    root: Path | None
    """Where folders named `column=value` begin; None where they give no column of ours."""

    def reader(self, spark: SparkSession) -> DataFrameReader:
        if self.root:
            return spark.read.option("basePath", str(self.root))
        # Else folders give Spark columns all the same.
        return spark.read.option("recursiveFileLookup", "true")

    @property
    def paths(self) -> list[str]:
        return [literal(file.absolute()) for file in self.files]


def _alike(files: Sequence[Path], schema: Callable[[Path], Hashable]) -> list[_Scan]:
    """Files of equal schema and equally named folders together: Spark reads one schema a scan."""
    scans: dict[Hashable, _Scan] = {}
    for file in files:
        given = _given(file)
        root = partition_root(file) if given else None
        scans.setdefault((schema(file), given, root), _Scan([], root)).files.append(file)
    return list(scans.values())


def _given(file: Path) -> tuple[str, ...]:
    """The columns of ours that its folders give."""
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
    """Names and types of its columns. Raises InputError: it is no event log."""
    try:
        schema = pq.read_schema(file)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or _first_line(error)}") from None
    except pa.ArrowException as error:
        raise InputError(f"{file}: {_not_parquet(file)}: {_first_line(error)}") from None
    _check_columns(str(file), file, schema.names)
    # Spark and DuckDB take names that differ in case alone for one.
    lower = [name.lower() for name in schema.names]
    if twice := [name for name in schema.names if lower.count(name.lower()) > 1]:
        named = " and as ".join(dict.fromkeys(twice))
        raise InputError(f"{file}: column {named} is there more than once")
    if ROW in lower:
        raise InputError(f"{file}: column {ROW}: DuckDB has that name for something else, leave it out")
    if both := sorted(set(_given(file)) & set(schema.names)):
        raise InputError(f"{file}: {both[0]} is a column and a folder's name, expected one of both")
    for name in schema.names:
        if name in EVENTS.fieldNames():
            _check_type(file, name, schema.field(name).type)
    return tuple((field.name, str(field.type)) for field in schema)


def _not_parquet(file: Path) -> str:
    """What a file is that cannot be read as Parquet."""
    with file.open("rb") as told:
        begins = told.read(len(_PARQUET))
    return "its end is missing or damaged" if begins == _PARQUET else "no Parquet file"


def _check_columns(where: str, file: Path, own: Sequence[str]) -> None:
    names = [*own, *(name for name, _ in partition_values(file))]
    if missing := [name for name in REQUIRED if name not in names]:
        raise InputError(
            f"{where}: missing column {', '.join(missing)}: an event log needs {', '.join(REQUIRED)}; "
            f"this one has {', '.join(names) or 'none'}"
        )


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
    # A column that is null everywhere has no type of its own.
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
"""What a Parquet column of a type is to Spark."""


def _read_parquet(spark: SparkSession, scan: _Scan) -> _Part:
    frame = scan.reader(spark).schema(_readable(pq.read_schema(scan.files[0]))).parquet(*scan.paths)
    own = set(frame.columns)
    columns = [
        # Unsigned 64-bit arrives as a decimal: keys are signed (comparisons cost three times as much
        # otherwise).
        (f.col(field.name) if field.name in own else f.lit(None)).cast(field.dataType).alias(field.name)
        for field in EVENTS.fields
    ]
    typed = frame.select(*columns)
    # As it is there, ours or not.
    line = f.to_json(f.struct(*frame.columns)).alias("line")
    corrupt = (
        frame.select(*columns, line).where(~_is_event()).select(f.input_file_name().alias("file"), "line")
    )
    events, rows = typed.where(_is_event()), _rows(scan.files)
    if scan.root:
        return _Part(EventLog.of(events), corrupt, rows)
    told = EventLog(events, tuple(LogFile(file.absolute()) for file in scan.files))
    return _Part(told, corrupt, rows)


def _readable(own: pa.Schema) -> t.StructType:
    """The columns that Spark can read: all of ours that are there, and of others' those of plain types."""
    fields = [t.StructField(field.name, kind) for field in own if (kind := _spark_type(field)) is not None]
    return t.StructType(fields)


def _spark_type(field: pa.Field) -> t.DataType | None:
    found = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    # Else None: a column that is null everywhere has no type of its own.
    return next((of_spark for is_such, of_spark in _OF_SPARK if is_such(found)), None)


def _rows(files: Iterable[Path]) -> int:
    return sum(pq.read_metadata(file).num_rows for file in files)


# --- NDJSON


def _read_ndjson(spark: SparkSession, scan: _Scan, parsed: Path) -> _Part:
    lines = scan.reader(spark).text(scan.paths)
    part = _stored(spark, _parsed(lines.withColumn("file", f.input_file_name())), parsed)
    if _is_nowhere(_CORRUPT, [file.path for file in part.told.files]):
        return part
    names = [row["file"] for row in part.corrupt.select("file").distinct().collect()]
    torn = {name: tail for name in names if (tail := _torn_tail(_path(name)))}
    if not torn:
        return part
    # By its bytes: it may end within a letter.
    line = f.col("line").cast("binary")
    is_torn = reduce(
        Column.__or__, [(f.col("file") == name) & (line == f.lit(bytearray(torn[name]))) for name in torn]
    )
    rows = part.rows - part.corrupt.where(is_torn).count()
    return replace(part, corrupt=part.corrupt.where(~is_torn), rows=rows, torn_files=len(torn))


def _stored(spark: SparkSession, rows: DataFrame, parsed: Path) -> _Part:
    """What `_parsed` gives, in files."""
    rows = rows.withColumn("file", f.when(f.col(_CORRUPT).isNotNull(), f.col("file")))
    # Parsed once: every pass of the audit then reads only the columns it needs.
    shutil.rmtree(parsed, ignore_errors=True)
    rows.write.parquet(str(parsed))
    stored = spark.read.schema(rows.schema).parquet(literal(parsed))
    good = f.col(_CORRUPT).isNull()
    corrupt = stored.where(~good).select("file", f.col(_CORRUPT).alias("line"))
    events, files = stored.where(good).select(*EVENTS.fieldNames()), sorted(parsed.glob("*.parquet"))
    told = EventLog(events, tuple(LogFile(file.absolute(), marks=_CORRUPT) for file in files))
    return _Part(told, corrupt, _rows(files))


def _is_nowhere(column: str, files: Iterable[Path]) -> bool:
    """Whether a column has no value, as Parquet files tell themselves: to ask Spark would take a job."""
    for metadata in map(pq.read_metadata, files):
        at = metadata.schema.names.index(column)
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            told = group.column(at).statistics
            if not (told and told.has_null_count and told.null_count == group.num_rows):
                return False
    return True


def _parsed(lines: DataFrame) -> DataFrame:
    """Of lines of NDJSON, which have `value`, `file` and what folders give: the columns of EVENTS, `file`,
    and _CORRUPT, the line where it is no event. Empty lines are none."""
    lines = lines.where(f.col("value").rlike(r"\S"))
    # Line by line: Spark's reader of JSON makes any number of rows of a line that is a list, or none.
    schema = t.StructType([*EVENTS.fields, t.StructField(_CORRUPT, t.StringType())])
    how = {"columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}
    columns = [
        # What folders say is for rows that do not say it.
        f.coalesce(f.col(f"row.{name}"), f.col(name).cast(schema[name].dataType)).alias(name)
        if name in lines.columns
        else f.col(f"row.{name}")
        for name in schema.fieldNames()
    ]
    raw = lines.select(*lines.columns, f.from_json("value", schema, how).alias("row"))
    bad = f.coalesce(f.col(_CORRUPT), f.when(~_is_event() | _is_more(), f.col("value")))
    return raw.select(*columns, "value", "file").withColumn(_CORRUPT, bad).drop("value")


def _is_more() -> Column:
    """Whether a line of JSON goes on behind its object, which Spark does not look at."""
    seems = f.col("value").rlike(r"\}\s*,?\s*\{") | ~f.col("value").rlike(r"\}\s*$")
    alone = f.from_json(f.concat(f.lit("["), "value", f.lit("]")), "array<struct<seq:string>>")
    return seems & (f.coalesce(f.size(alone), f.lit(0)) != 1)


def _path(name: str) -> Path:
    """Of a file, as Spark names it."""
    return Path(unquote(name.removeprefix("file://")))


def _check_first_line(file: Path) -> Hashable:
    """A log that lacks a required column altogether is refused at once, not row by row."""
    try:
        # Decompresses by the suffix.
        with pa.input_stream(str(file)) as lines:
            first = lines.read(_TAIL_BYTES_MAX).partition(b"\n")[0]
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except OSError as error:
        raise InputError(f"{file}: damaged, cannot be read: {_first_line(error)}") from None
    row = _object(first)
    if row is not None:
        _check_columns(f"{file}:1", file, list(row))
    return None


def _torn_tail(file: Path) -> bytes:
    """What follows the last newline of a file of NDJSON; empty where that is a whole object: who writes logs
    may leave out the last newline."""
    tail = b""
    with ExitStack() as opened:
        if file.suffix == ".ndjson":
            log = opened.enter_context(file.open("rb"))
            log.seek(max(0, file.stat().st_size - 2 * _TAIL_BYTES_MAX))
        else:
            log = opened.enter_context(pa.input_stream(str(file)))
        while some := log.read(_TAIL_BYTES_MAX):
            tail = (tail[-_TAIL_BYTES_MAX:] + some).rpartition(b"\n")[2]
    is_torn = tail.strip() and len(tail) <= _TAIL_BYTES_MAX and _object(tail) is None
    return tail if is_torn else b""


def _object(line: bytes) -> dict[str, object] | None:
    """None: it is no object of JSON."""
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except (ValueError, RecursionError):  # msgspec's own among them
        return None


def _is_event() -> Column:
    """Every required field is there, no number is out of range, the kind is one we know, and the schema is
    not newer than ours."""
    present = f.lit(True)
    for name in REQUIRED:
        present = present & f.col(name).isNotNull()
    for name in NUMBERS:
        present = present & f.coalesce(f.col(name).between(-NUMBER_MAX, NUMBER_MAX), f.lit(True))
    # Never null itself, so that its negation is the rest.
    schema = f.col("attrs")["schema"]
    readable = schema.isNull() | (schema.try_cast("int") <= SCHEMA_VERSION)
    return present & f.coalesce(f.col("kind").isin(*map(str, Kind)) & readable, f.lit(False))


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__

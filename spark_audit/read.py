"""Reads event logs, NDJSON and Parquet, into one table with exactly the columns of spec.events.

Rows that are not events are counted and kept aside, never dropped in silence; files that cannot be read at
all, or that lack a required column, are refused by name.
"""

import glob
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from spark_audit.schema import EVENTS
from spec.events import REQUIRED, SCHEMA_VERSION, Kind

SUFFIXES: Final = (".ndjson", ".ndjson.gz", ".parquet")
_CORRUPT: Final = "corrupt_line"
_TAIL_BYTES_MAX: Final = 1 << 20
"""A torn last line longer than this is reported as corrupt instead of forgiven."""


class InputError(ValueError):
    """The input cannot be audited. One line: the file, what was expected, what was found."""


@dataclass(frozen=True, slots=True)
class Log:
    events: DataFrame
    corrupt: DataFrame
    """file and line of every row that is not an event."""
    files: tuple[Path, ...]
    torn_files: int
    """NDJSON files that end in half a line: the last write of a killed node, which is no corruption."""


def find_files(paths: Sequence[str]) -> tuple[Path, ...]:
    """The event logs under files, folders (searched in depth) and glob patterns, sorted, each once.

    Names that begin with a dot or an underscore are not looked at.

    Raises:
        InputError: a path does not exist, matches nothing, or has no event log in it.
    """
    found: set[Path] = set()
    for path in paths:
        # Path.glob cannot take an absolute pattern.
        matches = [Path(path)] if Path(path).exists() else sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207
        if not matches:
            raise InputError(f"{path}: no such file or folder")
        for match in matches:
            found |= _files_of(match, named=str(match) == path)
    if not found:
        raise InputError(f"{', '.join(paths)}: no event log matches (expected {', '.join(SUFFIXES)})")
    return tuple(sorted(found))


def read(spark: SparkSession, paths: Sequence[str], scratch: Path) -> Log:
    """One table of all events. NDJSON is parsed once, into Parquet below `scratch`, which must outlive the
    table.

    Raises:
        InputError: nothing to read, a damaged file, a missing required column, or a column of a wrong type.
    """
    files = find_files(paths)
    parquet = [file for file in files if file.suffix == ".parquet"]
    ndjson = [file for file in files if file.suffix != ".parquet"]
    torn = _torn_tails(ndjson)
    parts = [_read_parquet(spark, group) for group in _by_schema(parquet)]
    if ndjson:
        parts.append(_read_ndjson(spark, ndjson, torn, scratch / "parsed"))
    events, corrupt = parts[0]
    for more_events, more_corrupt in parts[1:]:
        events, corrupt = events.unionByName(more_events), corrupt.unionByName(more_corrupt)
    return Log(events, corrupt, files, len(torn))


def _files_of(path: Path, named: bool) -> set[Path]:
    if path.is_file():
        if not path.name.endswith(SUFFIXES):
            if not named:
                return set()
            raise InputError(f"{path}: not an event log by its name, expected {', '.join(SUFFIXES)}")
        return {path}
    inside = {
        file
        for file in path.rglob("*")
        if file.name.endswith(SUFFIXES)
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
    }
    if not inside:
        raise InputError(f"{path}: no event log in this folder (expected {', '.join(SUFFIXES)})")
    return inside


# --- Parquet


def _by_schema(files: list[Path]) -> list[list[Path]]:
    """Files of equal schema together: Spark reads one schema a scan."""
    groups: dict[tuple[tuple[str, str], ...], list[Path]] = {}
    for file in files:
        try:
            schema = pq.read_schema(file)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{file}: not a whole Parquet file: {_first_line(error)}") from None
        _check_columns(str(file), schema.names)
        for name in schema.names:
            if name in EVENTS.fieldNames():
                _check_type(file, name, schema.field(name).type)
        groups.setdefault(tuple((field.name, str(field.type)) for field in schema), []).append(file)
    return list(groups.values())


def _check_columns(where: str, names: Sequence[str]) -> None:
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


def _read_parquet(spark: SparkSession, files: list[Path]) -> tuple[DataFrame, DataFrame]:
    """The events, and the rows that are none."""
    frame = spark.read.parquet(*map(str, files))
    columns = [
        # Unsigned 64-bit arrives as a decimal: keys are signed (comparisons cost three times as much
        # otherwise).
        (f.col(field.name) if field.name in frame.columns else f.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in EVENTS.fields
    ]
    typed = frame.select(*columns)
    line = f.to_json(f.struct(*REQUIRED)).alias("line")
    return typed.where(_is_event()), typed.where(~_is_event()).select(f.input_file_name().alias("file"), line)


# --- NDJSON


def _read_ndjson(
    spark: SparkSession, files: list[Path], torn: dict[Path, str], parsed: Path
) -> tuple[DataFrame, DataFrame]:
    for file in files:
        if not file.name.endswith(".gz"):
            _check_first_line(file)
    schema = t.StructType([*EVENTS.fields, t.StructField(_CORRUPT, t.StringType())])
    raw = spark.read.schema(schema).json(
        [str(file) for file in files], mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT
    )
    bad = f.coalesce(f.col(_CORRUPT), f.when(~_is_event(), f.to_json(f.struct(*EVENTS.fieldNames()))))
    rows = raw.withColumn(_CORRUPT, bad).withColumn("file", f.when(bad.isNotNull(), f.input_file_name()))
    for tail in set(torn.values()):
        rows = rows.where(f.col(_CORRUPT).isNull() | (f.col(_CORRUPT) != tail))
    # Parsed once: every pass of the audit then reads only the columns it needs.
    shutil.rmtree(parsed, ignore_errors=True)
    rows.write.parquet(str(parsed))
    stored = spark.read.schema(rows.schema).parquet(str(parsed))
    good = f.col(_CORRUPT).isNull()
    return stored.where(good).select(*EVENTS.fieldNames()), stored.where(~good).select(
        "file", f.col(_CORRUPT).alias("line")
    )


def _check_first_line(file: Path) -> None:
    """A log that lacks a required column altogether is refused at once, not row by row."""
    try:
        with file.open("rb") as lines:
            first = lines.readline(_TAIL_BYTES_MAX)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    try:
        row = msgspec.json.decode(first)
    except msgspec.DecodeError:
        return
    if isinstance(row, dict):
        _check_columns(f"{file}:1", list(row))


def _torn_tails(files: list[Path]) -> dict[Path, str]:
    """What follows the last newline of each plain NDJSON file that does not end in one."""
    tails = {}
    for file in files:
        if file.name.endswith(".gz"):
            continue
        with file.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - _TAIL_BYTES_MAX))
            tail = log.read().rpartition(b"\n")[2]
        if tail:
            tails[file] = tail.decode("utf-8", errors="replace")
    return tails


def _is_event() -> Column:
    """Every required field is there, the kind is one we know, and the schema is not newer than ours."""
    present = f.lit(True)
    for name in REQUIRED:
        present = present & f.col(name).isNotNull()
    # Never null itself, so that its negation is the rest.
    schema = f.col("attrs")["schema"]
    readable = schema.isNull() | (schema.try_cast("int") <= SCHEMA_VERSION)
    return present & f.coalesce(f.col("kind").isin(*map(str, Kind)) & readable, f.lit(False))


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__

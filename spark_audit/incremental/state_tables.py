"""The tables of a state, as Parquet files: either engine reads what either engine wrote."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spark_audit.judging.findings import parquet_files
from mqproof.spark_audit.sources.inputs import InputError, literal

if TYPE_CHECKING:
    from mqproof.spark_audit.engine.embedded.database import Database

_DISK_FULL: Final = os.strerror(errno.ENOSPC)


def write_table(rows: DataFrame, path: Path, *, is_small: bool = False) -> None:
    """Write the rows; a small table becomes one file.

    Raises:
        OSError: the disk of the states is full.
    """
    if active.is_embedded():
        _write_embedded(rows, path)
    else:
        _write_on_spark(rows.coalesce(1) if is_small else rows, path)


def _write_embedded(rows: Any, path: Path) -> None:
    import duckdb

    path.mkdir(parents=True)
    try:
        rows.sparkSession.run(f"COPY ({rows.sql()}) TO {quoted(str(path / 'part-0.parquet'))}")
    except duckdb.IOException as error:
        if _DISK_FULL in str(error) and str(path) in str(error):
            raise OSError(errno.ENOSPC, _DISK_FULL, str(path.parents[1])) from None
        raise


def _write_on_spark(rows: DataFrame, path: Path) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types

    try:
        rows.write.parquet(str(path))
    except Py4JError as error:
        # Spilled data, perhaps on another disk, is not written through Hadoop's file system.
        if _DISK_FULL in str(error) and "RawLocalFileSystem" in str(error):
            raise OSError(errno.ENOSPC, _DISK_FULL, str(path.parents[1])) from None
        raise


def read_table(session: Any, path: Path) -> DataFrame:
    """Return a table of a state.

    Raises:
        InputError: there is no such table.
    """
    files = parquet_files(path)
    if not files:
        raise InputError(f"{path}: not a table of a state: it has no Parquet file")
    return _read_embedded(session, path, files) if active.is_embedded() else _read_on_spark(session, path)


def _read_embedded(database: "Database", path: Path, files: str) -> DataFrame:
    import duckdb

    try:
        name = database.create_table(f"SELECT * FROM {files}")
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path}: not a table of a state: {reason}") from None
    return cast(DataFrame, database.table(name))


def _read_on_spark(spark: Any, path: Path) -> DataFrame:
    import pyarrow.parquet as pq
    from pyspark.sql.pandas.types import from_arrow_schema

    try:
        # Spark itself would run a job to look up the schema.
        schema = from_arrow_schema(pq.read_schema(min(path.glob("*.parquet"))))
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: not a table of a state: {error}") from None
    table: DataFrame = spark.read.schema(schema).parquet(literal(path))
    return table

"""Reads store directories into tables of the embedded engine, with the rows that spark_stores.py gives."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa

from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.engine.frames import DataFrame, SparkSession
from mqproof.spark_audit.sources.store import commit_log, consume_queue, index
from mqproof.spark_audit.sources.store.store_tables import log_columns, tables_of
from mqproof.spark_audit.sources.store.stored import Stored

_PART_BYTES: Final = 32 << 20
"""About how much of a file is decoded at a time."""


def read_embedded_stores(database: Database, stores: Mapping[str, Path], slots: int = index.SLOTS) -> Stored:
    """Return the tables. Every file is decoded once.

    Raises:
        InputError: a consumerOffset.json or topics.json is invalid.
        OSError: a file cannot be read.
    """

    def read(
        schema: pa.Schema,
        folder: str,
        batches: Callable[[Path], Iterator[pa.RecordBatch]],
        select: Callable[[Any], DataFrame],
    ) -> DataFrame:
        """Return the rows of all stores that have the folder."""
        named = (
            batch.append_column(_BROKER, pa.repeat(name, batch.num_rows))
            for name, directory in stores.items()
            if (directory / folder).is_dir()
            for batch in batches(directory)
        )
        reader = pa.RecordBatchReader.from_batches(schema.append(_BROKER), named)
        return cast("DataFrame", database.table_of(reader, select))

    log = read(commit_log.SCHEMA, "", _log_rows, log_columns)
    queues = read(
        consume_queue.SCHEMA, "consumequeue", _queue_rows, lambda rows: rows.drop("file", "tags_code")
    )
    entries = read(index.SCHEMA, "index", lambda directory: _index_rows(directory, slots), lambda rows: rows)
    return tables_of(cast("SparkSession", database), stores, log, queues, entries)


_BROKER: Final = pa.field("broker", pa.string())


def _log_rows(directory: Path) -> Iterator[pa.RecordBatch]:
    for part in commit_log.ranges(str(directory), _PART_BYTES):
        yield from commit_log.read_range(part)


def _queue_rows(directory: Path) -> Iterator[pa.RecordBatch]:
    for part in consume_queue.ranges(str(directory), _PART_BYTES):
        yield from consume_queue.read_range(part)


def _index_rows(directory: Path, slots: int) -> Iterator[pa.RecordBatch]:
    for part in index.ranges(str(directory), _PART_BYTES, slots):
        yield from index.read_range(part, slots)

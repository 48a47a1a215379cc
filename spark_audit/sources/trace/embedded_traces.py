"""Reads message traces into a table of the embedded engine, with the rows that spark_traces.py gives."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.sources.store import commit_log
from mqproof.spark_audit.sources.trace import bodies
from mqproof.spark_audit.sources.trace.traces import CLOUD_TOPIC_PREFIX, RECORD, TRACE_TOPIC, Traces, parsed

_PART_BYTES: Final = 32 << 20
_READ_CHARACTERS: Final = 1 << 20
_LINE_CHARACTERS_MAX: Final = 16 << 20
"""A longer text without the end of a record is cut: it is no record, and memory is limited."""
_BATCH_ROWS: Final = 10_000
_SCHEMA: Final = pa.schema([("file", pa.string()), ("line", pa.string())])


def read_embedded_traces(database: Database, stores: Sequence[Path], texts: Sequence[Path]) -> Traces:
    """Read all traces. A text file has one message per line, or consecutive records.

    Raises:
        OSError: a file cannot be read.
    """
    rows = (row for part in (_of_stores(stores), _of_texts(texts)) for row in part)
    table = database.table_of(
        pa.RecordBatchReader.from_batches(_SCHEMA, _batches(rows)), lambda lines: lines.select("file", "line")
    )
    return parsed(cast("DataFrame", table))


def _batches(rows: Iterable[tuple[str, str | None]]) -> Iterator[pa.RecordBatch]:
    left = iter(rows)
    while some := list(islice(left, _BATCH_ROWS)):
        files, lines = zip(*some, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(files, pa.string()), pa.array(lines, pa.string())], schema=_SCHEMA
        )


def _of_stores(stores: Sequence[Path]) -> Iterator[tuple[str, str | None]]:
    for store in stores:
        for part in commit_log.ranges(str(store), _PART_BYTES):
            for batch in commit_log.read_range(part, with_body=True):
                for body, sys_flag in _trace_messages(batch):
                    text = bodies.text_of(body, sys_flag)
                    yield from (
                        (str(store), line) for line in ([None] if text is None else text.split(RECORD))
                    )


def _trace_messages(batch: pa.RecordBatch) -> Iterator[tuple[bytes, int]]:
    topic = batch.column("topic")
    is_trace = pc.or_(pc.equal(topic, TRACE_TOPIC), pc.starts_with(topic, CLOUD_TOPIC_PREFIX))
    messages = batch.filter(pc.and_(pc.equal(batch.column("kind"), commit_log.RECORD), is_trace))
    columns = (messages.column("body").to_pylist(), messages.column("sys_flag").to_pylist())
    yield from zip(*columns, strict=True)


def _of_texts(texts: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for path in texts:
        with path.open(encoding="utf-8", errors="replace", newline="") as text:
            rest = ""
            while part := text.read(_READ_CHARACTERS):
                *whole, rest = (rest + part).split(RECORD)
                yield from ((str(path), line) for line in whole)
                if len(rest) > _LINE_CHARACTERS_MAX:
                    yield str(path), rest
                    rest = ""
            yield str(path), rest

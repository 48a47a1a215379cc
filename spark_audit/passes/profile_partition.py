"""The profile of one partition of a log: rows counted by their keys, and the rare rows. On Spark only."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from mqproof.spark_audit.passes.profile import EXTENTS, KEYS, RARE_KINDS, summed_up
from mqproof.spark_audit.scan.partition import Numbers, Partition, is_one_of
from mqproof.spark_audit.scan.run_over_log import fold
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.spark_schema import PASS
from mqproof.spec.events import Kind


def of_partition(partition: Partition) -> Iterator[pa.RecordBatch]:
    """Yield the profile of a partition.

    It has a row for each (kind, node, stated, group, topic, queue_id, placed), and one for each rare row.
    """
    # Imported only in tasks: planning an audit does not need it.
    from mqproof.spark_audit.scan import loops, traffic

    batch = partition.batch
    if not len(batch):
        return
    is_rare = _is_rare(batch)
    columns = [loops.numbers(batch[name]).values for name in EXTENTS]
    which, firsts = partition.equal_rows
    rows, least, most = traffic.extents(which, is_rare, columns)
    some = np.flatnonzero(rows)
    yield _profile(batch, firsts[some], rows[some], list(zip(least[:, some], most[:, some], strict=True)))
    rare = np.flatnonzero(is_rare)
    if len(rare):
        texts = [_json(row) for row in partition.rows(rare).to_pylist()]
        once = [(column[rare], column[rare]) for column in columns]
        yield _profile(batch, rare, np.ones(len(rare), np.int64), once, texts)


def _json(row: dict[str, Any]) -> str:
    attrs = row["attrs"]
    return msgspec.json.encode(row | {"attrs": None if attrs is None else dict(attrs)}).decode()


def _profile(
    batch: pa.RecordBatch,
    at: Numbers,
    rows: Numbers,
    extents: Sequence[tuple[Numbers, Numbers]],
    rare: Sequence[str] | None = None,
) -> pa.RecordBatch:
    """Return one row for each index in `at`, with the keys of that row."""
    keys = batch.select(KEYS).take(pa.array(at))
    placed = batch["queue_offset"].take(pa.array(at)).is_valid()
    columns = {name: keys[name] for name in KEYS} | {"placed": placed, "rows": pa.array(rows)}
    for (name, ends), (low, high) in zip(EXTENTS.items(), extents, strict=True):
        for end, values in zip(ends, (low, high), strict=True):
            columns[end] = pa.array(values, mask=~np.asarray(placed) if name == "queue_offset" else None)
    columns["rare"] = pa.nulls(len(rows), pa.string()) if rare is None else pa.array(rare, pa.string())
    return pa.RecordBatch.from_pydict(columns | {"part": pa.array(["profile"] * len(rows))})


def _is_rare(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    is_reset = is_one_of(batch["kind"], [Kind.OFFSET_COMMIT]) & np.asarray(batch["reset"])
    is_rare: npt.NDArray[np.bool_] = is_one_of(batch["kind"], RARE_KINDS) | is_reset
    return is_rare


def profile(log: EventLog) -> DataFrame:
    """Return the profile as `summed_up` does, by a separate pass over the log."""
    return summed_up(fold(log, [of_partition], PASS))

"""Takes the rows that are looked at one by one out of an event log: a small log of its own, of Parquet files.

What is wrong with messages and sequences is told by these alone. Most of them the pass over the log kept when
it summed up its buckets; read again is what it took for clean, until another partition had more to tell.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.passes.bucket_ids import bucket_text
from mqproof.spark_audit.passes.over_log import extract
from mqproof.spark_audit.passes.partition import Numbers, Partition
from mqproof.spark_audit.passes.sequences import Numbered
from mqproof.spark_audit.sources.event_log import EventLog

_NAMED_MAX: Final = 500_000
"""So many messages are named to each task, some 16 MB."""


@dataclass(frozen=True, slots=True)
class Extraction:
    folder: Path
    """Which every executor sees."""
    numbered: Numbered
    """The rows of stretches of numbers, which are always taken."""
    prefix: int
    """So many characters of an id tell the bucket of its message; 0: its hash does."""

    def of_buckets(self, log: EventLog, passed: DataFrame, read: pa.Table) -> EventLog:
        """The rows of the buckets that are `read` (fingerprint.Buckets), and maybe more: those that were kept
        when the log was `passed` over, and of row groups whose rows were not, those that are there. Runs
        jobs."""
        again = _unkept(read) | _having(self.numbered.within, passed)
        kept = passed.where("part = 'kept'").select("row_group", "file").collect()
        files = [Path(row["file"]) for row in kept if row["row_group"] not in again]
        taken = self._taken(log.only(again), read["text"], self.prefix)
        return EventLog.in_files(log.rows.sparkSession, [*files, *(file.path for file in taken.files)])

    def of_messages(self, log: EventLog, among: EventLog | None, ids: DataFrame) -> EventLog:
        """The rows of the messages with these ids, which are `among` others where those were taken out of the
        log already. Runs jobs."""
        named = ids.select(f.col("msg_id").alias("text")).distinct().limit(_NAMED_MAX + 1).toArrow()
        if len(named) <= _NAMED_MAX:
            return self._taken(among or log, named["text"], None)
        if among:
            return among
        buckets = ids.select(f.expr(bucket_text(self.prefix)).alias("text")).distinct().toArrow()
        return self._taken(log, buckets["text"], self.prefix)

    def _taken(self, log: EventLog, texts: pa.ChunkedArray, prefix: int | None) -> EventLog:
        """The rows whose bucket is one of the texts, by the prefix, or their message where there is none."""
        # Brought to the tasks as Spark would bring them for a join.
        numbers = self.numbered
        return extract(log, partial(_chosen, texts, prefix, numbers.numbers, numbers.bits), self.folder)


def _chosen(
    texts: pa.ChunkedArray, prefix: int | None, numbers: pa.Table, bits: int, partition: Partition
) -> Numbers:
    # In tasks alone: what only plans an audit need not load it.
    from mqproof.spark_audit.passes import row_selection

    return row_selection.of_partition(texts, prefix, numbers, bits, partition)


def _unkept(read: pa.Table) -> set[int]:
    """The row groups that may have rows of these buckets which were not kept."""
    spans = zip(*(read[name].drop_null().to_pylist() for name in ("unkept_min", "unkept_max")), strict=True)
    return {number for first, last in spans for number in range(first, last + 1)}


def _having(within: pa.Table, passed: DataFrame) -> set[int]:
    """The row groups that may have rows of these nodes with numbers in between."""
    nodes = within["node"].unique().to_pylist()
    if not nodes:
        return set()
    of_nodes = passed.where((f.col("part") == "profile") & f.col("node").isin(*nodes))
    extents = of_nodes.groupBy("row_group", "node").agg(
        f.min("seq_min").alias("low"), f.max("seq_max").alias("high")
    )
    told = extents.toArrow()
    return {group for node in nodes for group in _meeting(_of(node, within), _of(node, told))}


def _of(node: str, rows: pa.Table) -> pa.Table:
    return rows.filter(pc.equal(rows["node"], node))


def _meeting(spans: pa.Table, extents: pa.Table) -> Collection[int]:
    in_order = spans.sort_by("begin_seq")
    begin, end = (in_order[name].to_numpy() for name in ("begin_seq", "end_seq"))
    low, high = (extents[name].to_numpy() for name in ("low", "high"))
    # Of the spans that begin in time, whether one reaches far enough.
    begun = np.searchsorted(begin, high, side="right")
    reached = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end)])[begun]
    groups: list[int] = extents["row_group"].to_numpy()[reached >= low].tolist()
    return groups

"""Copies the rows that are checked exactly from an event log into a small log of Parquet files.

The checks of messages and sequences use only these rows.

The pass over the log kept most of them when it aggregated the buckets. A row group is read again if a task
took one of its buckets for clean and another partition shows that it is not.
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
from mqproof.spark_audit.passes.sequences import Numbered
from mqproof.spark_audit.scan.partition import Numbers, Partition
from mqproof.spark_audit.scan.run_over_log import extract
from mqproof.spark_audit.sources.event_log import EventLog

_NAMED_MAX: Final = 500_000
"""Maximum number of messages that are listed for each task; that takes about 16 MB."""


@dataclass(frozen=True, slots=True)
class Extraction:
    folder: Path
    """The folder for the extracted files; every executor must be able to access it."""
    numbered: Numbered
    """The rows of the stretches of sequence numbers; they are always extracted."""
    prefix: int
    """Number of id characters that identify the bucket of a message.

    With 0, the bucket is derived from the id's hash.
    """

    def of_buckets(self, log: EventLog, passed: DataFrame, read: pa.Table) -> EventLog:
        """Return the rows of the buckets in `read` (fingerprint.Buckets), possibly with others. Runs jobs.

        The rows come from the files that the pass over the log kept; `passed` is its result. Row groups whose
        rows were not kept are read again.
        """
        reread = _unkept(read) | _having(self.numbered.within, passed)
        kept = passed.where("part = 'kept'").select("row_group", "file").collect()
        files = [Path(row["file"]) for row in kept if row["row_group"] not in reread]
        taken = self._taken(log.only(reread), read["text"], self.prefix)
        return EventLog.in_files(log.rows.sparkSession, [*files, *(file.path for file in taken.files)])

    def of_messages(self, log: EventLog, among: EventLog | None, ids: DataFrame) -> EventLog:
        """Return the rows of the messages with these ids, possibly with others. Runs jobs.

        They are read from `among`, if those rows were extracted earlier, or else from the log.
        """
        named = ids.select(f.col("msg_id").alias("text")).distinct().limit(_NAMED_MAX + 1).toArrow()
        if len(named) <= _NAMED_MAX:
            return self._taken(among or log, named["text"], None)
        if among:
            return among
        buckets = ids.select(f.expr(bucket_text(self.prefix)).alias("text")).distinct().toArrow()
        return self._taken(log, buckets["text"], self.prefix)

    def _taken(self, log: EventLog, texts: pa.ChunkedArray, prefix: int | None) -> EventLog:
        """Extract the rows whose bucket (by `prefix`) is one of the texts.

        Without a prefix, extract the rows whose message id is one of them.
        """
        # The texts are sent to the tasks as Spark sends them for a broadcast join.
        numbers = self.numbered
        return extract(log, partial(_chosen, texts, prefix, numbers.numbers, numbers.bits), self.folder)


def _chosen(
    texts: pa.ChunkedArray, prefix: int | None, numbers: pa.Table, bits: int, partition: Partition
) -> Numbers:
    # Imported only in tasks: planning an audit does not need it.
    from mqproof.spark_audit.passes import row_selection

    return row_selection.of_partition(texts, prefix, numbers, bits, partition)


def _unkept(read: pa.Table) -> set[int]:
    """Return the row groups that may hold rows of these buckets which were not kept."""
    spans = zip(*(read[name].drop_null().to_pylist() for name in ("unkept_min", "unkept_max")), strict=True)
    return {number for first, last in spans for number in range(first, last + 1)}


def _having(within: pa.Table, passed: DataFrame) -> set[int]:
    """Return the row groups that may hold rows of these nodes with sequence numbers in these spans."""
    nodes = within["node"].unique().to_pylist()
    if not nodes:
        return set()
    of_nodes = passed.where((f.col("part") == "profile") & f.col("node").isin(*nodes))
    extents = of_nodes.groupBy("row_group", "node").agg(
        f.min("seq_min").alias("low"), f.max("seq_max").alias("high")
    )
    extents_table = extents.toArrow()
    return {group for node in nodes for group in _overlapping(_of(node, within), _of(node, extents_table))}


def _of(node: str, rows: pa.Table) -> pa.Table:
    return rows.filter(pc.equal(rows["node"], node))


def _overlapping(spans: pa.Table, extents: pa.Table) -> Collection[int]:
    in_order = spans.sort_by("begin_seq")
    begin, end = (in_order[name].to_numpy() for name in ("begin_seq", "end_seq"))
    low, high = (extents[name].to_numpy() for name in ("low", "high"))
    # For each extent: does one of the spans that begin before its end reach its beginning?
    begun = np.searchsorted(begin, high, side="right")
    reached = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end)])[begun]
    groups: list[int] = extents["row_group"].to_numpy()[reached >= low].tolist()
    return groups

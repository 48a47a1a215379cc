"""Finds steps of a consumer or of a committed offset that are not the next one, without collecting all rows.

A sequence is the rows that one node reports about one group's queue, ordered by the node's sequence numbers
(`seq`). Each task splits its rows of a sequence into runs: rows in which each follows the one before. Sorted
by number, the runs of a sequence must not overlap, and each must begin where the previous one ended. If both
hold for the runs, they hold for the rows. The stretches of numbers in which they do not hold are read again,
row by row.

Every odd step lies within one stretch. Either it leads from the last row of a run to the first row of the
next, and both are read; or runs overlap and are read as a whole.

A node's rows should be in the files in about the order of their numbers. If tasks receive alternating rows of
a node, all of its runs overlap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from mqproof.spark_audit.passes.steps import IS_NUMBERED, SEQUENCE, is_irregular
from mqproof.spark_audit.scan.partition import Partition
from mqproof.spec.events import Kind

_COARSE_BITS: Final = 16
"""Spark looks up stretches by ranges of 2^16 numbers."""
_NUMBERS_MAX: Final = 1 << 18
"""Up to about this many numbers, each is looked up individually; above it, ranges of numbers are."""

_TEXT_COLUMNS: Final = ("kind", "node", "stated", "group", "topic", "queue_id")
_NUMBERS: Final = {
    "seq": ("seq_min", "seq_max"), "queue_offset": ("offset_min", "offset_max"), "ts": ("first_ts", "last_ts")
}  # fmt: skip
"""Maps a column to the names of its values in a run's first and last row."""


def of_partition(partition: Partition) -> Iterator[pa.RecordBatch]:
    """Yield the runs of a partition, with the times of their first and last row."""
    # Imported only in tasks: planning an audit does not need it.
    from mqproof.spark_audit.scan import loops

    batch = partition.batch
    begins, ends = partition.runs
    first = batch.select(_TEXT_COLUMNS).take(pa.array(begins))
    runs = {name: first[name] for name in _TEXT_COLUMNS} | {"part": pa.array(["run"] * len(first))}
    for name, (low, high) in _NUMBERS.items():
        values = loops.numbers(batch[name]).values
        runs |= {low: pa.array(values[begins]), high: pa.array(values[ends])}
    yield pa.RecordBatch.from_pydict(runs)


def irregular_steps(events: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return deliveries that do not follow the previous one, and commits that go back.

    The columns `previous` and `from_ts` describe the previous row. `ranges` are those of the runs of all
    splits of the log.
    """
    rows = events.join(f.broadcast(_by_number(ranges)), _is_within())
    in_order = Window.partitionBy(*SEQUENCE, "begin_seq").orderBy("seq")
    steps = rows.withColumn("previous", f.lag("queue_offset").over(in_order)).withColumn(
        "from_ts", f.lag("ts").over(in_order)
    )
    is_delivery = f.col("kind") == Kind.DELIVER
    return steps.where(is_irregular(is_delivery, f.col("previous"), f.col("queue_offset"))).drop(
        "of_sequence", "begin_seq", "end_seq", "at"
    )


def find_irregular_ranges(runs: DataFrame) -> DataFrame:
    """Return the ranges of numbers that must be read row by row: SEQUENCE, begin_seq, end_seq, spans.

    The ranges of a sequence do not overlap. `spans` are the parts of a range that can hold rows of the
    sequence.
    """
    return _irregular_ranges(runs.withColumn("is_delivery", f.col("kind") == Kind.DELIVER))


def _by_number(ranges: DataFrame) -> DataFrame:
    """Return the ranges in the form in which _is_within looks them up."""
    return ranges.select(
        _sequence().alias("of_sequence"),
        "begin_seq",
        "end_seq",
        f.explode(f.sequence(_coarse("begin_seq"), _coarse("end_seq"))).alias("at"),
    )


@dataclass(frozen=True, slots=True)
class Numbered:
    """Selects the rows of a log in the ranges, and possibly others.

    Looking up a row by node and number costs a fraction of comparing it with a sequence.
    """

    numbers: pa.Table
    """`node` and `number`: sequence numbers without their last `bits` bits."""
    bits: int
    within: pa.Table
    """node, begin_seq, end_seq: the spans that contain rows which are not the end of a run."""


def numbered(ranges: DataFrame) -> Numbered:
    """Return the numbers of the rows in the ranges. Runs a job."""
    spans = ranges.select("node", f.inline("spans")).toArrow()
    begin, end = (spans[name].to_numpy() for name in ("begin_seq", "end_seq"))
    within = spans.filter(pa.array(begin < end))
    bits = int((end - begin).sum(dtype=float) / _NUMBERS_MAX).bit_length()
    begin, counts = begin >> bits, (end >> bits) - (begin >> bits) + 1
    before = np.cumsum(counts) - counts
    number = np.repeat(begin - before, counts) + np.arange(counts.sum())
    which = np.repeat(np.arange(len(counts)), counts)
    return Numbered(pa.table({"node": spans["node"].take(pa.array(which)), "number": number}), bits, within)


def _is_within() -> Column:
    """Return whether a row of events lies in a row of `_by_number`; it lies in at most one."""
    return (
        f.expr(IS_NUMBERED)
        & (_sequence() == f.col("of_sequence"))
        & (_coarse("seq") == f.col("at"))
        & f.col("seq").between(f.col("begin_seq"), f.col("end_seq"))
    )


def _sequence() -> Column:
    """Return the sequence of a row as a hash.

    Two sequences with equal hashes look out of order, and are read.
    """
    texts = [f.coalesce(f.col(name), f.lit("\0")) for name in SEQUENCE[:-1]]
    # xxhash64 ignores nulls, so they are replaced. The number is not cast to text: that costs more than its
    # hash.
    return f.xxhash64(*texts, f.coalesce(SEQUENCE[-1], f.lit(-1)))


def _coarse(name: str) -> Column:
    return f.shiftright(name, _COARSE_BITS)


def _irregular_ranges(runs: DataFrame) -> DataFrame:
    """Compute the stretches; begin_seq and end_seq are inclusive."""
    by_seq = Window.partitionBy(*SEQUENCE).orderBy("seq_min", "offset_min")
    before = by_seq.rowsBetween(Window.unboundedPreceding, -1)
    placed = runs.select(
        "*",
        f.max("seq_max").over(before).alias("seq_before"),
        f.lag("seq_max").over(by_seq).alias("seq_max_before"),
        f.lag("offset_max").over(by_seq).alias("offset_before"),
        f.lead("seq_min").over(by_seq).alias("seq_after"),
    )
    is_separate = f.coalesce(f.col("seq_min") > f.col("seq_before"), f.lit(True)) & f.coalesce(
        f.col("seq_after") > f.col("seq_max"), f.lit(True)
    )
    # Otherwise an earlier run ends after the previous one does.
    adjoins = f.coalesce(f.col("seq_max_before") == f.col("seq_before"), f.lit(True))
    follows = ~f.coalesce(
        is_irregular(f.col("is_delivery"), f.col("offset_before"), f.col("offset_min")), f.lit(False)
    )
    suspects = placed.where(~(is_separate & adjoins & follows)).select(
        *SEQUENCE,
        f.least("seq_min", "seq_before").alias("begin_seq"),
        # If runs do not overlap, only the step from one to the next can be odd.
        f.when(is_separate, f.col("seq_min")).otherwise(f.col("seq_max")).alias("end_seq"),
        is_separate.alias("apart"),
    )
    begin, end = f.col("begin_seq"), f.col("end_seq")
    spans = f.when(f.col("apart"), f.array(_span(begin, begin), _span(end, end))).otherwise(
        f.array(_span(begin, end))
    )
    by_begin = Window.partitionBy(*SEQUENCE).orderBy("begin_seq", "end_seq")
    earlier = by_begin.rowsBetween(Window.unboundedPreceding, -1)
    is_new = f.coalesce(f.col("begin_seq") > f.max("end_seq").over(earlier), f.lit(True)).cast("int")
    numbered = suspects.withColumn("is_new", is_new).withColumn("stretch", f.sum("is_new").over(by_begin))
    return numbered.groupBy(*SEQUENCE, "stretch").agg(
        f.min("begin_seq").alias("begin_seq"),
        f.max("end_seq").alias("end_seq"),
        f.flatten(f.collect_list(spans)).alias("spans"),
    )


def _span(begin: Column, end: Column) -> Column:
    return f.struct(begin.alias("begin_seq"), end.alias("end_seq"))

"""Steps of a consumer, or of a committed offset, that are not the next one: found without a look at every row
in one place.

A sequence is what one node reports of one group's queue, in the order of its own numbers (`seq`). Each task
cuts its rows of a sequence into runs: rows of which each is the next one. Sorted by number, the runs of a
sequence must not overlap, and each must begin where the one before ended; where they do, so do their rows.
The stretches of numbers in which they do not are read again, row by row.

Every odd step lies within one stretch: either it leads from the last row of a run to the first of the next,
which then are read; or runs overlap, and are read as a whole.

A node's rows should stand in the files in about the order of their numbers: where tasks get every other row
of it, all of its runs overlap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from mqproof.spark_audit.passes.partition import Partition
from mqproof.spark_audit.passes.sql import quoted
from mqproof.spec.events import Kind

SEQUENCE: Final = ("kind", "node", "group", "broker", "topic", "queue_id")

_STRETCH_BITS: Final = 16
"""Spark looks stretches up by so many numbers at once."""
_NUMBERS_MAX: Final = 1 << 18
"""Of about so many numbers each is looked up by itself; of more, several at once."""

_NUMBERED: Final = f"kind IN ({quoted(Kind.DELIVER, Kind.OFFSET_COMMIT)}) AND queue_offset IS NOT NULL"
"""Whether a row is one of a sequence."""

_TOLD: Final = ("kind", "node", "stated", "group", "topic", "queue_id")
_NUMBERS: Final = {
    "seq": ("seq_min", "seq_max"), "queue_offset": ("offset_min", "offset_max"), "ts": ("first_ts", "last_ts")
}  # fmt: skip
"""A column, and what it is in a run's first and last row."""


def of_partition(partition: Partition) -> Iterator[pa.RecordBatch]:
    """Of a partition: its runs, with the times of their first and last row."""
    # In tasks alone: what only plans an audit need not load it.
    from mqproof.spark_audit.passes import loops

    told = partition.told
    begins, ends = partition.runs
    first = told.select(_TOLD).take(pa.array(begins))
    runs = {name: first[name] for name in _TOLD} | {"part": pa.array(["run"] * len(first))}
    for name, (low, high) in _NUMBERS.items():
        values = loops.numbers(told[name]).values
        runs |= {low: pa.array(values[begins]), high: pa.array(values[ends])}
    yield pa.RecordBatch.from_pydict(runs)


def odd_steps(events: DataFrame, stretched: DataFrame) -> DataFrame:
    """Deliveries that do not follow the one before (`previous`, `from_ts`), and commits that go back.

    `stretched` are the stretches of the runs of all splits of the events' log.
    """
    rows = events.join(f.broadcast(_by_number(stretched)), _is_within())
    in_order = Window.partitionBy(*SEQUENCE, "begin_seq").orderBy("seq")
    steps = rows.withColumn("previous", f.lag("queue_offset").over(in_order)).withColumn(
        "from_ts", f.lag("ts").over(in_order)
    )
    is_delivery = f.col("kind") == Kind.DELIVER
    return steps.where(_is_odd(is_delivery, f.col("previous"), f.col("queue_offset"))).drop(
        "of_sequence", "begin_seq", "end_seq", "at"
    )


def stretches(runs: DataFrame) -> DataFrame:
    """The numbers that must be read row by row: SEQUENCE, begin_seq, end_seq; none of a sequence overlap.
    Between them, `spans` of numbers are those that the sequence can have."""
    return _stretches(runs.withColumn("is_delivery", f.col("kind") == Kind.DELIVER))


def _by_number(stretched: DataFrame) -> DataFrame:
    """Stretches, as _is_within looks them up."""
    return stretched.select(
        _sequence().alias("of_sequence"),
        "begin_seq",
        "end_seq",
        f.explode(f.sequence(_coarse("begin_seq"), _coarse("end_seq"))).alias("at"),
    )


@dataclass(frozen=True, slots=True)
class Numbered:
    """Which rows of a log are those of the stretches, and maybe more.

    To look a row up by its node and number is a fraction of what it costs to compare it with a sequence.
    """

    numbers: pa.Table
    """By their `node`, and `number`, their seq without so many of its last bits."""
    bits: int
    within: pa.Table
    """node, begin_seq, end_seq: those of the spans that have rows which are no end of a run."""


def numbered(stretched: DataFrame) -> Numbered:
    """Runs a job."""
    told = stretched.select("node", f.inline("spans")).toArrow()
    begin, end = (told[name].to_numpy() for name in ("begin_seq", "end_seq"))
    within = told.filter(pa.array(begin < end))
    bits = int((end - begin).sum(dtype=float) / _NUMBERS_MAX).bit_length()
    begin, counts = begin >> bits, (end >> bits) - (begin >> bits) + 1
    before = np.cumsum(counts) - counts
    number = np.repeat(begin - before, counts) + np.arange(counts.sum())
    which = np.repeat(np.arange(len(counts)), counts)
    return Numbered(pa.table({"node": told["node"].take(pa.array(which)), "number": number}), bits, within)


def _is_within() -> Column:
    """Whether a row of events lies in a row of `_by_number`: in one at most."""
    return (
        f.expr(_NUMBERED)
        & (_sequence() == f.col("of_sequence"))
        & (_coarse("seq") == f.col("at"))
        & f.col("seq").between(f.col("begin_seq"), f.col("end_seq"))
    )


def _sequence() -> Column:
    """The sequence of a row, as a number: two that share one by chance look out of order, and are read."""
    texts = [f.coalesce(f.col(name), f.lit("\0")) for name in SEQUENCE[:-1]]
    # A null would leave the hash as it was; a number is not made a text, which costs more than its hash.
    return f.xxhash64(*texts, f.coalesce(SEQUENCE[-1], f.lit(-1)))


def _is_odd(is_delivery: Column, previous: Column, offset: Column) -> Column:
    return (offset < previous) | (is_delivery & (offset > previous + 1))


def _coarse(name: str) -> Column:
    return f.shiftright(name, _STRETCH_BITS)


def _stretches(runs: DataFrame) -> DataFrame:
    """begin_seq and end_seq are inclusive."""
    by_seq = Window.partitionBy(*SEQUENCE).orderBy("seq_min", "offset_min")
    before = by_seq.rowsBetween(Window.unboundedPreceding, -1)
    placed = runs.select(
        "*",
        f.max("seq_max").over(before).alias("seq_before"),
        f.lag("seq_max").over(by_seq).alias("seq_max_before"),
        f.lag("offset_max").over(by_seq).alias("offset_before"),
        f.lead("seq_min").over(by_seq).alias("seq_after"),
    )
    apart = f.coalesce(f.col("seq_min") > f.col("seq_before"), f.lit(True)) & f.coalesce(
        f.col("seq_after") > f.col("seq_max"), f.lit(True)
    )
    # Else one before it reached over that one's end.
    adjoins = f.coalesce(f.col("seq_max_before") == f.col("seq_before"), f.lit(True))
    follows = ~f.coalesce(
        _is_odd(f.col("is_delivery"), f.col("offset_before"), f.col("offset_min")), f.lit(False)
    )
    doubtful = placed.where(~(apart & adjoins & follows)).select(
        *SEQUENCE,
        f.least("seq_min", "seq_before").alias("begin_seq"),
        # Of runs that are apart, the step from one to the other is all that can be odd.
        f.when(apart, f.col("seq_min")).otherwise(f.col("seq_max")).alias("end_seq"),
        apart.alias("apart"),
    )
    begin, end = f.col("begin_seq"), f.col("end_seq")
    spans = f.when(f.col("apart"), f.array(_span(begin, begin), _span(end, end))).otherwise(
        f.array(_span(begin, end))
    )
    by_begin = Window.partitionBy(*SEQUENCE).orderBy("begin_seq", "end_seq")
    earlier = by_begin.rowsBetween(Window.unboundedPreceding, -1)
    is_new = f.coalesce(f.col("begin_seq") > f.max("end_seq").over(earlier), f.lit(True)).cast("int")
    numbered = doubtful.withColumn("is_new", is_new).withColumn("stretch", f.sum("is_new").over(by_begin))
    return numbered.groupBy(*SEQUENCE, "stretch").agg(
        f.min("begin_seq").alias("begin_seq"),
        f.max("end_seq").alias("end_seq"),
        f.flatten(f.collect_list(spans)).alias("spans"),
    )


def _span(begin: Column, end: Column) -> Column:
    return f.struct(begin.alias("begin_seq"), end.alias("end_seq"))

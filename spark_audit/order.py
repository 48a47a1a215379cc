"""Steps of a consumer, or of a committed offset, that are not the next one: found without sorting every row.

A sequence is what one node reports of one group's queue, in the order of its own numbers. Offsets fall into
cells of eight; a cell holds the number (`seq`) of each of its offsets. Sorted by number, the cells of a
sequence must not overlap, must be in order within, and must each begin where the one before ended; where they
do, so do their rows. The stretches of numbers in which they do not are read again, row by row.

Every odd step lies within one stretch: either both of its rows are in one cell, which then is out of order;
or their cells overlap, and the one that reaches over the other is read from its first number to its last; or
the second cell begins right behind the first, and is read from the number before its own first.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spec.events import Kind

SEQUENCE: Final = ("kind", "node", "group", "broker", "topic", "queue_id")

_CELL_BITS: Final = 3
_STRETCH_BITS: Final = 16
"""Stretches are looked up by so many numbers at once."""


def odd_steps(events: DataFrame) -> DataFrame:
    """Deliveries that do not follow the one before (`previous`, `from_ts`), and commits that go back."""
    return steps_within(events.join(f.broadcast(stretches(events)), is_within()))


def stretches(events: DataFrame) -> DataFrame:
    """The numbers that must be read row by row: of_sequence, begin_seq, end_seq; and `at`, which is_within
    needs."""
    return _stretches(_cells(events.where(_is_numbered()))).select(
        f.col("sequence").alias("of_sequence"),
        "begin_seq",
        "end_seq",
        f.explode(f.sequence(_coarse("begin_seq"), _coarse("end_seq"))).alias("at"),
    )


def is_within() -> Column:
    """Whether a row of `events` lies in a row of `stretches`: in one at most."""
    return (
        _is_numbered()
        & (_sequence() == f.col("of_sequence"))
        & (_coarse("seq") == f.col("at"))
        & f.col("seq").between(f.col("begin_seq"), f.col("end_seq"))
    )


def steps_within(rows: DataFrame) -> DataFrame:
    """As odd_steps, of rows of events joined to their stretch."""
    in_order = Window.partitionBy(*SEQUENCE, "begin_seq").orderBy("seq")
    steps = rows.withColumn("previous", f.lag("queue_offset").over(in_order)).withColumn(
        "from_ts", f.lag("ts").over(in_order)
    )
    is_delivery = f.col("kind") == Kind.DELIVER
    return steps.where(_is_odd(is_delivery, f.col("previous"), f.col("queue_offset"))).drop(
        "of_sequence", "begin_seq", "end_seq", "at"
    )


def _is_numbered() -> Column:
    """Whether a row is one of a sequence."""
    return f.col("kind").isin(Kind.DELIVER, Kind.OFFSET_COMMIT) & f.col("queue_offset").isNotNull()


def _sequence() -> Column:
    """The sequence of a row, as a number: two that share one by chance look out of order, and are read."""
    texts = [f.coalesce(f.col(name), f.lit("\0")) for name in SEQUENCE[:-1]]
    # A null would leave the hash as it was; a number is not made a text, which costs more than its hash.
    return f.xxhash64(*texts, f.coalesce(SEQUENCE[-1], f.lit(-1)))


def _is_odd(is_delivery: Column, previous: Column, offset: Column) -> Column:
    return (offset < previous) | (is_delivery & (offset > previous + 1))


def _coarse(name: str) -> Column:
    return f.shiftright(name, _STRETCH_BITS)


def _cells(rows: DataFrame) -> DataFrame:
    """One row a (sequence, eight offsets): its extent, and whether its offsets came in order, each once."""
    size = 1 << _CELL_BITS
    slot = f.col("queue_offset").bitwiseAND(size - 1)
    seqs = [f"seq_{i}" for i in range(size)]
    # All of fixed width: with texts in the keys, each row costs twice as much.
    cells = rows.groupBy(
        _sequence().alias("sequence"),
        (f.col("kind") == Kind.DELIVER).alias("is_delivery"),
        f.shiftright("queue_offset", _CELL_BITS).alias("cell"),
    ).agg(
        f.count(f.lit(1)).alias("rows"),
        f.min("seq").alias("seq_min"),
        *[f.max(f.when(slot == i, f.col("seq"))).alias(seqs[i]) for i in range(size)],
    )
    rising = [
        f.coalesce(f.greatest(*seqs[:i]) < f.col(seqs[i]), f.lit(True)) if i > 1
        else f.coalesce(f.col(seqs[0]) < f.col(seqs[1]), f.lit(True))
        for i in range(1, size)
    ]  # fmt: skip
    slots = [f.when(f.col(seqs[i]).isNotNull(), f.lit(i)) for i in range(size)]
    present = reduce(lambda total, name: total + f.col(name).isNotNull().cast("int"), seqs, f.lit(0))
    first, last = f.coalesce(*slots), f.coalesce(*reversed(slots))
    dense = ~f.col("is_delivery") | (last - first + 1 == f.col("rows"))
    begin = f.shiftleft("cell", _CELL_BITS)
    return cells.select(
        "sequence",
        "is_delivery",
        (begin + first).alias("offset_min"),
        (begin + last).alias("offset_max"),
        "seq_min",
        f.greatest(*seqs).alias("seq_max"),
        reduce(lambda a, b: a & b, rising, dense & (present == f.col("rows"))).alias("in_order"),
    )


def _stretches(cells: DataFrame) -> DataFrame:
    """begin_seq and end_seq, inclusive, of the stretches of a sequence that must be read; none overlap."""
    by_seq = Window.partitionBy("sequence").orderBy("seq_min", "offset_min")
    before = by_seq.rowsBetween(Window.unboundedPreceding, -1)
    placed = cells.select(
        "*",
        f.max("seq_max").over(before).alias("seq_before"),
        f.lag("seq_max").over(by_seq).alias("seq_max_before"),
        f.lag("offset_max").over(by_seq).alias("offset_before"),
        f.lead("seq_min").over(by_seq).alias("seq_after"),
    )
    apart = (
        f.coalesce(f.col("seq_min") > f.col("seq_before"), f.lit(True))
        & f.coalesce(f.col("seq_max_before") == f.col("seq_before"), f.lit(True))
        & f.coalesce(f.col("seq_after") > f.col("seq_max"), f.lit(True))
    )
    follows = ~f.coalesce(
        _is_odd(f.col("is_delivery"), f.col("offset_before"), f.col("offset_min")), f.lit(False)
    )
    doubtful = placed.where(~(f.col("in_order") & apart & follows)).select(
        "sequence",
        f.least("seq_min", "seq_before").alias("begin_seq"),
        f.col("seq_max").alias("end_seq"),
    )
    by_begin = Window.partitionBy("sequence").orderBy("begin_seq", "end_seq")
    earlier = by_begin.rowsBetween(Window.unboundedPreceding, -1)
    is_new = f.coalesce(f.col("begin_seq") > f.max("end_seq").over(earlier), f.lit(True)).cast("int")
    numbered = doubtful.withColumn("is_new", is_new).withColumn("stretch", f.sum("is_new").over(by_begin))
    return numbered.groupBy("sequence", "stretch").agg(
        f.min("begin_seq").alias("begin_seq"), f.max("end_seq").alias("end_seq")
    )

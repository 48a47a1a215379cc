"""Steps of a consumer or of a committed offset, and which of them are not the next one."""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window
from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spec.events import Kind

SEQUENCE: Final = ("kind", "node", "group", "broker", "topic", "queue_id")

IS_NUMBERED: Final = f"kind IN ({quoted(Kind.DELIVER, Kind.OFFSET_COMMIT)}) AND queue_offset IS NOT NULL"
"""Condition for rows that belong to a sequence."""


def is_irregular(is_delivery: Column, previous: Column, offset: Column) -> Column:
    """Return whether a step goes back, or a delivery leaves out an offset."""
    return (offset < previous) | (is_delivery & (offset > previous + 1))


def all_irregular_steps(events: DataFrame) -> DataFrame:
    """Return the irregular steps of all sequences, by sorting all rows; sequences.py avoids that on Spark.

    The columns `previous` and `from_ts` describe the previous row.
    """
    in_order = Window.partitionBy(*SEQUENCE).orderBy("seq")
    steps = events.where(IS_NUMBERED).withColumns(
        {"previous": f.lag("queue_offset").over(in_order), "from_ts": f.lag("ts").over(in_order)}
    )
    is_delivery = f.col("kind") == Kind.DELIVER
    return steps.where(is_irregular(is_delivery, f.col("previous"), f.col("queue_offset")))

"""Acknowledged messages that were then truncated, for the checks of crash losses.

The log of the broker that acknowledged a message decides: that broker promised how it flushes. A copy in the
log of its slave is not a separate record, but the record of another attempt is. A member of a group that
elects its master promises nothing by itself: the logs of the other members decide.
"""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame

_PLACE: Final = ("topic", "queue_id", "queue_offset")


def with_outcome(messages: DataFrame) -> DataFrame:
    """Add the outcome of each message to Evidence.messages, in four columns.

    `own` has the records of the message. `promised` has those at brokers that acknowledged it, or all if
    there are none. `is_gone` is true if each of `own` was truncated. `is_async` is true if all brokers of
    `promised` use ASYNC_FLUSH.
    """
    own = f.filter("records", lambda its: _is_acked(its) | ~f.coalesce(_is_copied(its), f.lit(False)))
    with_own = messages.withColumn("own", own).withColumn("promised", f.filter("own", _is_acked))
    promised = f.when(f.size("promised") > 0, f.col("promised")).otherwise(f.col("own"))
    is_async = f.forall("promised", lambda its: its["flush_mode"] == "ASYNC_FLUSH")
    return (
        with_own.withColumn("promised", promised)
        .withColumn("is_gone", (f.size("own") > 0) & f.forall("own", lambda its: its["is_cut"]))
        .withColumn("is_async", f.coalesce(is_async, f.lit(False)))
    )


def _is_acked(record: Column) -> Column:
    return f.array_contains("acked_by", record["broker"])


def _is_copied(its: Column) -> Column:
    """Return whether a broker that acknowledged the message has a record of it at the same place."""

    def is_original(first: Column) -> Column:
        is_known = first["flush_mode"].isin("SYNC_FLUSH", "ASYNC_FLUSH")
        same = [first[name] == its[name] for name in _PLACE]
        return _is_acked(first) & is_known & same[0] & same[1] & same[2]

    return f.exists("records", is_original)


def cut_off(messages: DataFrame) -> DataFrame:
    """Return the messages of Evidence.messages, with_outcome, that have SEND_OK and no remaining record."""
    return with_outcome(messages.where("acked > 0 AND cut > 0")).where("is_gone")

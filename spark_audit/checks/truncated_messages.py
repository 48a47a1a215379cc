"""Acknowledged messages that were then truncated, for the checks of crash losses.

The log of the broker that acknowledged a message decides: that broker promised how it flushes. A copy in the
log of its slave is not a separate record, but the record of another attempt is. A member of a group that
elects its master promises nothing by itself: the logs of the other members decide.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

_IS_COPIED: Final = """exists(records, first -> array_contains(acked_by, first.broker)
    AND first.flush_mode IN ('SYNC_FLUSH', 'ASYNC_FLUSH')
    AND (first.topic, first.queue_id, first.queue_offset) = (its.topic, its.queue_id, its.queue_offset))"""
_OWN: Final = (
    f"filter(records, its -> array_contains(acked_by, its.broker) OR NOT coalesce({_IS_COPIED}, false))"
)
_PROMISED: Final = "filter(own, its -> array_contains(acked_by, its.broker))"


def with_outcome(messages: DataFrame) -> DataFrame:
    """Add the outcome of each message to Evidence.messages, in four columns.

    `own` has the records of the message. `promised` has those at brokers that acknowledged it, or all if
    there are none. `is_gone` is true if each of `own` was truncated. `is_async` is true if all brokers of
    `promised` use ASYNC_FLUSH.
    """
    with_places = messages.withColumn("own", f.expr(_OWN)).withColumn("promised", f.expr(_PROMISED))
    return (
        with_places.withColumn("promised", f.expr("IF(size(promised) > 0, promised, own)"))
        .withColumn("is_gone", f.expr("size(own) > 0 AND forall(own, its -> its.is_cut)"))
        .withColumn(
            "is_async", f.expr("coalesce(forall(promised, its -> its.flush_mode = 'ASYNC_FLUSH'), false)")
        )
    )


def cut_off(messages: DataFrame) -> DataFrame:
    """Return the messages of Evidence.messages, with_outcome, that have SEND_OK and no remaining record."""
    return with_outcome(messages.where("acked > 0 AND cut > 0")).where("is_gone")

"""What was acknowledged and then cut off, for the checks of what a crash may take.

The log of the broker that acknowledged counts: that one promised how it flushes, and a copy that its slave
has is no record of its own. Another attempt's record is. A member of a group that elects its master promises
nothing for itself: what the other members have counts.
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
    """Add to Evidence.messages `own`, their records; `promised`, those of them at brokers that acknowledged,
    or all where none is; is_gone: each of `own` was cut off; is_async: all brokers of `promised` flush so."""
    fated = messages.withColumn("own", f.expr(_OWN)).withColumn("promised", f.expr(_PROMISED))
    return (
        fated.withColumn("promised", f.expr("IF(size(promised) > 0, promised, own)"))
        .withColumn("is_gone", f.expr("size(own) > 0 AND forall(own, its -> its.is_cut)"))
        .withColumn(
            "is_async", f.expr("coalesce(forall(promised, its -> its.flush_mode = 'ASYNC_FLUSH'), false)")
        )
    )


def cut_off(messages: DataFrame) -> DataFrame:
    """Of Evidence.messages, with_outcome, those with SEND_OK of which no record is left."""
    return with_outcome(messages.where("acked > 0 AND cut > 0")).where("is_gone")

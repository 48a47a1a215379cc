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


def cut_off(messages: DataFrame) -> DataFrame:
    """Of Evidence.messages those with SEND_OK of which no record is left; `own` are the records that they
    had, `modes` those of their brokers: SYNC_FLUSH, ASYNC_FLUSH, or null."""
    at_risk = messages.where("acked > 0 AND cut > 0").withColumn("own", f.expr(_OWN))
    gone = at_risk.where("size(own) > 0 AND forall(own, record -> record.is_cut)")
    return gone.withColumn("modes", f.col("own.flush_mode"))

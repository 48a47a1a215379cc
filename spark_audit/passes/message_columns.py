"""Columns of a message's events that the passes read, and the values they aggregate for each message."""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column
from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spec.events import Kind

KINDS: Final = (Kind.SEND, Kind.SEND_ACK, Kind.SEND_FAIL, Kind.APPEND, Kind.DELIVER)
"""Kinds of events that refer to a message by its id."""

SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
"""Topic in which delayed messages of any topic wait."""

TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
"""Topic in which messages of any topic wait for a time of their own."""

WAITING_TOPICS: Final = (SCHEDULE_TOPIC, TIMER_TOPIC)

STORED_STATUSES: Final = ("SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")

FIRST: Final = ("send_ts", "acked_ts", "stored_ts", "delivered_ts")
"""Times of a message: each is the time of its first row of that type, such as its first send."""
COUNTS: Final = (
    "sends", "acked", "soft_acked", "unknown", "refused", "appends", "deliveries", "cut", "sync_at_risk",
)  # fmt: skip
"""Numbers of a message's rows of each type.

`cut` and `sync_at_risk` count appends by their outcome at the broker (evidence/broker_cuts.py).
"""

RETRY_TOPIC_PREFIX: Final = "%RETRY%"
"""Prefix of a group's topic of redelivered messages."""

NUMBERED: Final = "(hash({}) >> 1)::BIGINT"
"""A text as a number, in DuckDB's SQL."""


def is_of_message() -> str:
    """Return the condition, in Spark's and DuckDB's SQL, for rows that are events of a message."""
    return f"msg_id IS NOT NULL AND kind IN ({quoted(*KINDS)})"


def message_key() -> Column:
    return f.xxhash64("msg_id")


def count(condition: Column, name: str) -> Column:
    # sum, not count_if: a null condition (a status that was not recorded) counts as false.
    return f.sum(f.when(condition, 1).otherwise(0)).alias(name)

"""The events that checks examine one by one, selected from a log whose messages were judged by their sums."""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spark_audit.evidence.messages import OF_HALVES
from mqproof.spark_audit.evidence.tables import IS_MESSAGE
from mqproof.spark_audit.passes.message_columns import is_of_message, message_key
from mqproof.spark_audit.passes.profile import is_reset
from mqproof.spark_audit.sources.store.stored import Stored
from mqproof.spec.events import COLUMNS, Kind

TRAFFIC: Final = tuple(name for name in COLUMNS if name not in ("term", "keys", "attrs"))


def failed_messages(rare: DataFrame) -> DataFrame:
    """Return msg_id of Evidence.failure_events."""
    return rare.where(
        f.col("kind").isin(Kind.CONSUME_FAIL, Kind.DEAD_LETTER) & f.col("msg_id").isNotNull()
    ).select("msg_id")


def traffic_of(named: DataFrame, reset: Column | None = None) -> DataFrame:
    """Return Evidence.events, given rows with their broker. `reset` tells resets, if the rows have it."""
    return named.select(*TRAFFIC, "broker", (is_reset() if reset is None else reset).alias("reset"))


def events_of_messages(events: DataFrame, ambiguous: DataFrame) -> DataFrame:
    """Return Evidence.ambiguous_events, given the keys of the messages."""
    of_messages = f"{is_of_message()} OR (msg_id IS NOT NULL AND kind IN ({quoted(*OF_HALVES)}))"
    # These events are kept in memory; only NoPhantom needs the time of creation, of few of them.
    kept = events.where(of_messages).drop("born_ts")
    return kept.join(ambiguous, message_key() == f.col("key"), "left_semi")


def events_of_failures(events: DataFrame, rare: DataFrame) -> DataFrame:
    """Return Evidence.failure_events."""
    return events.join(f.broadcast(failed_messages(rare).distinct()), "msg_id", "left_semi")


def ambiguous_keys(judged: DataFrame, store: Stored | None) -> DataFrame:
    """Return the keys of the messages that the checks examine."""
    of_messages = judged.where(IS_MESSAGE)
    ambiguous = of_messages.where("NOT clean").select("key")
    if store is None:
        return ambiguous
    absent = of_messages.where("acked > 0").join(
        store.records.select(message_key().alias("key")), "key", "left_anti"
    )
    return ambiguous.unionByName(absent.select("key"))

"""ROUTE-5 RetryAvoidsLastBroker: consecutive attempts of one send use different brokers if there is a choice.

There is a choice if the same client sent messages of the topic to another broker both before the first of the
two attempts and after the second. In addition, no event at any time may show that the other broker was
unavailable (otherwise the cause is `no_choice`).

Cannot conclude: anything about sends to a queue that the caller chose, if a client retries those.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.message_columns import message_key
from mqproof.spec.events import Kind

INVARIANT: Final = "ROUTE-5"
RULE: Final = "same-broker-again"

_OUTAGES: Final = (Kind.CRASH, Kind.TRUNCATE, Kind.EXPIRE, Kind.UNREGISTER)


def retry_avoids_last_broker(evidence: Evidence) -> DataFrame:
    retried = evidence.sums.where("sends > 1").select("key")
    sends = evidence.events.where((f.col("kind") == Kind.SEND) & f.col("broker").isNotNull())
    sends = sends.join(retried, message_key() == f.col("key"), "left_semi")
    by_seq = Window.partitionBy("node", "msg_id").orderBy("seq")
    pairs = sends.select(
        "*",
        f.lag(f.struct("broker", "attempt", "seq", "ts")).over(by_seq).alias("last"),
    )
    same = pairs.where("last.broker = broker AND last.attempt + 1 = attempt")
    others = (
        evidence.profile.where(f.col("kind") == Kind.SEND)
        .groupBy(f.col("node").alias("its_node"), f.col("topic").alias("its_topic"), "stated")
        .agg(f.min("seq_min").alias("its_first"), f.max("seq_max").alias("its_last"))
        .join(f.broadcast(_unavailable(evidence)), f.col("stated") == f.col("away"), "left_anti")
    )
    choice = (
        (f.col("node") == f.col("its_node"))
        & (f.col("topic") == f.col("its_topic"))
        & (f.col("stated") != f.col("broker"))
        & (f.col("its_first") < f.col("last.seq"))
        & (f.col("its_last") > f.col("seq"))
    )
    known = same.join(f.broadcast(others), choice, "left")
    judged = known.groupBy("msg_id", "client", "broker", "topic", "attempt").agg(
        f.max("stated").alias("other"), f.min("last.ts").alias("first_ts"), f.max("ts").alias("last_ts")
    )
    return findings(
        judged,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        cause=f.when(f.col("other").isNull(), f.lit("no_choice")),
        evidence=f.format_string(
            "attempt %d went to the broker of the previous attempt; the client also used %s",
            "attempt",
            f.coalesce("other", f.lit("no other")),
        ),
    )


def _unavailable(evidence: Evidence) -> DataFrame:
    """Return the brokers with an event that may have kept a client from them."""
    # The first start in a log does not follow an outage.
    restarts = (f.col("kind") == Kind.RECOVER) & (f.col("seq") > 0)
    outages = evidence.log.unionByName(evidence.rare).where(f.col("kind").isin(*_OUTAGES) | restarts)
    return outages.where("broker IS NOT NULL").select(f.col("broker").alias("away")).distinct()


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    retry_avoids_last_broker,
    examined_tallies("retries_told"),
    never_unknown,
    needs=("retries_told",),
)

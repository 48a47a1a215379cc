"""DELIV-2 NoPhantom: every delivered message was sent.

A message whose producer does not know the outcome of the send may be delivered later (cause `recovered`).

If the log of a node begins later than the node did, messages may have been sent before: a delayed message or
a copy for a retry appears hours after its send. Only a message whose time of creation is known, and is in the
time for which the log is complete, is a phantom then. The others have the cause `before_log`.

Cannot conclude: anything, if the logs of producers are missing.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.check import BEFORE_LOG, Check, at_sole_place, examined_tallies, findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-2"
RULE: Final = "phantom"


def no_phantom(evidence: Evidence) -> DataFrame:
    delivered = _with_creation(evidence.messages.where("deliveries > 0"), evidence)
    never_sent = f.col("sends") == 0
    recovered = (f.col("acked") + f.col("soft_acked") == 0) & (f.col("unknown") > 0)
    return findings(
        delivered.where(never_sent | recovered),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        cause=f.when(~never_sent, f.lit("recovered")).when(f.col("is_older"), f.lit(BEFORE_LOG)),
        first_ts="delivered_ts",
        last_ts="delivered_ts",
        evidence=f.when(
            never_sent,
            f.format_string("delivered %d times, and no producer sent it", "deliveries"),
        ).otherwise(f.lit("its producer did not receive the outcome; it was stored and delivered")),
        **at_sole_place(),
    )


def _with_creation(delivered: DataFrame, evidence: Evidence) -> DataFrame:
    """Add is_older: whether a message may have been created before the log became complete."""
    if evidence.complete_from is None:
        return delivered.withColumn("is_older", f.lit(False))
    never_sent = delivered.where("sends = 0").select("msg_id")
    born = (
        evidence.events.where((f.col("kind") == Kind.DELIVER) & f.col("born_ts").isNotNull())
        .join(f.broadcast(never_sent), "msg_id", "left_semi")
        .groupBy("msg_id")
        .agg(f.min("born_ts").alias("born_ts"))
    )
    # A producer's row about a later message would be in the log: both times are by its own clock.
    is_newer = f.coalesce(f.col("born_ts") > evidence.complete_from, f.lit(False))
    return delivered.join(f.broadcast(born), "msg_id", "left").withColumn("is_older", ~is_newer)


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del causes
    if not tallies["messages_delivered"]:
        return "no delivery is in the log"
    if not tallies["messages_sent"]:
        return "no send is in the log: the producers' logs are missing"
    return ""


CHECK: Final = Check(
    INVARIANT, (RULE,), no_phantom, examined_tallies("messages_delivered", "messages_sent"), _unknown_reason
)

"""TIMER-3 RecallHolds: a message whose recall succeeded is never delivered.

No consumer receives a message later than its broker has stored the recall, by both clocks.

Cannot conclude: anything about a message that was sent more than once, because a recall withdraws only the
copies that wait; or about a recall that a crash may have lost, or that followed a put of unknown result.
"""

from typing import Final

from mqproof.spark_audit.checks.check import (
    Check,
    event_tallies,
    examined_tallies,
    explain,
    findings,
    never_unknown,
)
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "TIMER-3"
RULE: Final = "recalled-read"

_TALLIES: Final = event_tallies(Kind.RECALL)
_CONFIRMED: Final = "PUT_OK"


def recall_holds(evidence: Evidence) -> DataFrame:
    events, kind = evidence.events, f.col("kind")
    of_message = f.col("msg_id").isNotNull()
    recalls = events.where((kind == Kind.RECALL) & of_message & (f.col("status") == _CONFIRMED)).groupBy(
        "msg_id", "topic"
    )
    recalled = recalls.agg(f.max(f.coalesce("broker", "node")).alias("broker"), f.min("ts").alias("from_ts"))
    sends = events.where((kind == Kind.SEND) & of_message).join(
        recalled.select("msg_id"), "msg_id", "left_semi"
    )
    again = sends.groupBy("msg_id").agg(f.count("ts").alias("sends")).where("sends > 1")
    delivered = events.where((kind == Kind.DELIVER) & of_message).select(
        "msg_id", "topic", "group", "client", f.col("ts").alias("to_ts")
    )
    late = (
        delivered.join(recalled, ["msg_id", "topic"])
        .where(f.col("to_ts") > f.col("from_ts") + evidence.options.skew_us)
        .join(again, "msg_id", "left_anti")
    )
    return findings(
        explain(late, evidence, ("broker_crash", "leader_change", "broker_retry")),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        first_ts="from_ts",
        last_ts="to_ts",
        evidence=f.lit("delivered after its recall"),
    )


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    recall_holds,
    examined_tallies(*_TALLIES),
    never_unknown,
    needs=_TALLIES,
    certain=(RULE,),
)

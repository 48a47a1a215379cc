"""FLUSH-2 AsyncAckedSurvivesProcessCrash: a SEND_OK message under ASYNC_FLUSH survives a process crash.

A message is lost as in SyncAckedDurable. The crash must be of the broker's process only. To show that, a node
such as a harness must record attrs.kind = process for every crash near the recovery that truncated the
message (otherwise the cause is `system_crash_possible`).

Cannot conclude: anything about crashes that only the broker itself reports; it does not know what crashed.
The time of another node's report decides to which life of the broker it belongs. The two nodes have different
clocks, so if the broker restarts within the clock skew of its crash, the cause may stay open.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.check import Check, at_sole_place, examined_tallies, findings
from mqproof.spark_audit.checks.truncated_messages import cut_off
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "FLUSH-2"
RULE: Final = "acked-then-truncated"


def async_acked_survives_process_crash(evidence: Evidence) -> DataFrame:
    lost = cut_off(evidence.messages).where("is_async")
    at = lost.select(
        "msg_id", f.explode(f.transform("promised", lambda its: its["broker"])).alias("broker"), "acked_ts"
    ).distinct()
    # A later crash may lose records that an earlier one left: all crashes after the acknowledgement count.
    crashes = at.join(f.broadcast(_crashed_lives(evidence.rare)), "broker").where(
        f.col("to_ts") >= f.col("acked_ts") - evidence.options.skew_us
    )
    judged = crashes.groupBy("msg_id").agg(
        f.coalesce(f.min("process_only"), f.lit(False)).alias("process_only")
    )
    return findings(
        lost.join(judged, "msg_id", "left").fillna(False, ["process_only"]),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        cause=f.when(~f.col("process_only"), f.lit("system_crash_possible")),
        first_ts="send_ts",
        last_ts="acked_ts",
        evidence=f.lit("acknowledged with SEND_OK, then cut off though only the process had died"),
        **at_sole_place("own"),
    )


def _crashed_lives(rare: DataFrame) -> DataFrame:
    """Return broker, to_ts, process_only for each broker life that ended in a crash.

    `to_ts` is the time of the next start. `process_only` is true if only the process crashed.
    """
    kind = f.col("kind")
    rows = rare.where(kind.isin(Kind.CRASH, Kind.RECOVER) & f.col("broker").isNotNull())
    before = Window.partitionBy("broker").orderBy("ts", "seq").rowsBetween(Window.unboundedPreceding, -1)
    life = f.coalesce(f.sum(f.when(kind == Kind.RECOVER, 1).otherwise(0)).over(before), f.lit(0))
    how = f.when(kind == Kind.CRASH, f.coalesce(f.col("attrs")["kind"], f.lit("unknown")))
    broker_lives = rows.withColumn("life", life).groupBy("broker", "life").agg(
        f.max("ts").alias("to_ts"),
        # The broker itself reports `unknown`: another node's report decides.
        f.min(how.isin("process", "unknown")).alias("mild"),
        f.max(how == "process").alias("is_reported"),
    )  # fmt: skip
    crashed = broker_lives.where("mild IS NOT NULL")
    return crashed.select("broker", "to_ts", (f.col("mild") & f.col("is_reported")).alias("process_only"))


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    if causes.get("system_crash_possible"):
        return "acknowledged messages were cut off, and no event shows that only a process died"
    return "" if tallies["acked"] else "no message was acknowledged with SEND_OK"


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    async_acked_survives_process_crash,
    examined_tallies("acked", "process_crashes"),
    _unknown_reason,
    needs=("process_crashes",),
)

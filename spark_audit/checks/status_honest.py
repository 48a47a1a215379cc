"""REPL-3 StatusHonest: a broker's SEND_OK tells what was reached, as far as the disk is concerned.

Before a broker under SYNC_FLUSH answers SEND_OK to a producer that waits, an fsync has made its log durable
beyond the message's first byte; both are events of the broker, in its own order. What a slave must have
reached is SyncAckedOnSlave's.
Cannot conclude: whether FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT and SLAVE_NOT_AVAILABLE came too early: what
they miss may be reached between the decision and its answer. Whether the message's last byte is durable.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_audit.checks.check import Check, counted, findings, sees
from spark_audit.evidence import Evidence, flush_modes
from spec.events import Kind

INVARIANT: Final = "REPL-3"
RULE: Final = "ok-before-flush"


def status_honest(evidence: Evidence) -> DataFrame:
    attrs = f.col("attrs")
    waited = f.coalesce(attrs["wait"], f.lit("true")) != "false"
    is_ok = (f.col("kind") == Kind.SEND_ACK) & (f.col("status") == "SEND_OK") & waited
    is_flush = (f.col("kind") == Kind.FLUSH) & (attrs["file"] == "log")
    rows = evidence.log.where(is_ok | is_flush | (f.col("kind") == Kind.RECOVER))
    rows = rows.where("commit_offset IS NOT NULL").drop("attrs")
    rows = rows.join(f.broadcast(flushing(evidence)), "node", "left_semi")
    is_start = f.col("kind") == Kind.RECOVER
    life = f.sum(f.when(is_start, 1).otherwise(0)).over(Window.partitionBy("node").orderBy("seq"))
    so_far = Window.partitionBy("node", "life").orderBy("seq")
    # All that a start finds is durable.
    reached = f.max(f.when(f.col("kind") != Kind.SEND_ACK, f.col("commit_offset"))).over(so_far)
    told = rows.withColumn("life", life).withColumn("reached", reached)
    early = told.where((f.col("kind") == Kind.SEND_ACK) & (f.col("reached") <= f.col("commit_offset")))
    return findings(
        early.withColumn("at", f.concat_ws("#", "node", "seq")),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "answered SEND_OK (%s) at commit offset %d, durable were %d", "at", "commit_offset", "reached"
        ),
    )


def flushing(evidence: Evidence) -> DataFrame:
    """node: the brokers that always were under SYNC_FLUSH."""
    modes = flush_modes(evidence.rare, evidence.options.flush).where("flush_mode = 'SYNC_FLUSH'")
    return modes.select(f.col("mode_node").alias("node"))


def _blind(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del causes
    return "" if tallies["flush_events"] else "no broker tells what it flushed"


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    status_honest,
    counted("acks_under_sync_flush", *sees(Kind.FLUSH)),
    _blind,
    needs=("acks_under_sync_flush",),
)

"""REPL-1 SyncAckedOnSlave: under SYNC_MASTER a SEND_OK message is in a slave's log.

Before a master answers SEND_OK, a slave has reported that its log extends beyond the message's first byte.
Both are events of the master, in its own order. If a slave's store is given, its log must still extend beyond
that byte, unless the slave was not shut down (cause `slave_crashed`): only its page cache is promised.

Cannot conclude: anything about masters that report their role neither at a start nor with a slave's report;
anything before the first such report, if the log does not begin with a start; whether the slave has the
message's last byte.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "REPL-1"
UNACKED_BY_SLAVE: Final = "acked-before-slave"
ABSENT: Final = "acked-not-on-slave"

_OF_SLAVES: Final = (Kind.HA_ACK, Kind.HA_TRANSFER)
_WITH_ROLE: Final = (*_OF_SLAVES, Kind.RECOVER)


def sync_acked_on_slave(evidence: Evidence) -> DataFrame:
    rows = _of_masters(evidence.log)
    by_seq = Window.partitionBy("node").orderBy("seq")
    life = f.sum(f.when(f.col("kind") == Kind.RECOVER, 1).otherwise(0)).over(by_seq)
    so_far = Window.partitionBy("node", "life").orderBy("seq")
    slave_offset = f.max(f.when(f.col("kind") == Kind.HA_ACK, f.col("commit_offset"))).over(so_far)
    numbered = rows.withColumn("life", life).withColumn("heard", slave_offset)
    acked = numbered.where(
        (f.col("kind") == Kind.SEND_ACK) & ((f.col("life") > 0) | f.col("heard").isNotNull())
    )
    early = acked.where(f.coalesce("heard", f.lit(-1)) <= f.col("commit_offset"))
    found = findings(
        early.withColumn("at", f.concat_ws("#", "node", "seq")),
        INVARIANT,
        "critical",
        rule=f.lit(UNACKED_BY_SLAVE),
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "answered SEND_OK (%s) at commit offset %d, slaves had acknowledged %d",
            "at", "commit_offset", f.coalesce("heard", f.lit(0)),
        ),
    )  # fmt: skip
    if evidence.store is None:
        return found
    return found.unionByName(_not_in_slaves_store(rows, evidence))


def _of_masters(log: DataFrame) -> DataFrame:
    """Return the slave reports, SEND_OK answers and starts of brokers that always were SYNC_MASTER."""
    waited = f.coalesce(f.col("attrs")["wait"], f.lit("true")) != "false"
    is_ok = (f.col("kind") == Kind.SEND_ACK) & (f.col("status") == "SEND_OK") & waited
    rows = log.where(f.col("kind").isin(Kind.HA_ACK, Kind.RECOVER) | is_ok).where("commit_offset IS NOT NULL")
    return rows.join(f.broadcast(masters(log)), "node", "left_semi").drop("attrs")


def masters(log: DataFrame) -> DataFrame:
    """Return the brokers (column node) that reported the role SYNC_MASTER at every start and slave report."""
    role = f.col("attrs")["role"]
    roles = log.where(f.col("kind").isin(*_WITH_ROLE)).groupBy("node").agg(
        f.min(role).alias("low"), f.max(role).alias("high")
    )  # fmt: skip
    return roles.where("low = 'SYNC_MASTER' AND high = 'SYNC_MASTER'").select("node")


def _not_in_slaves_store(rows: DataFrame, evidence: Evidence) -> DataFrame:
    store = evidence.stored
    ends = store.bounds.select(f.col("broker").alias("slave"), "whole_end", "is_clean")
    slaves = store.replicas.join(ends, "slave")
    # With several slaves, one that has the message is enough.
    best = slaves.groupBy(f.col("master").alias("of_master")).agg(
        f.max("whole_end").alias("whole_end"),
        f.min("is_clean").alias("is_clean"),
        f.max("slave").alias("slave"),
    )
    acked = rows.where(f.col("kind") == Kind.SEND_ACK)
    beyond = acked.join(
        f.broadcast(best),
        (f.col("node") == f.col("of_master")) & (f.col("commit_offset") >= f.col("whole_end")),
    )
    return findings(
        beyond,
        INVARIANT,
        "critical",
        rule=f.lit(ABSENT),
        cause=f.when(~f.col("is_clean"), f.lit("slave_crashed")),
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "answered SEND_OK at commit offset %d, the log of %s ends at %d",
            "commit_offset",
            "slave",
            "whole_end",
        ),
    )


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del causes
    is_reported = tallies["ha_ack_events"] or tallies["recover_events"]
    return "" if is_reported else "no master reports acknowledgements of slaves"


CHECK: Final = Check(
    INVARIANT,
    (UNACKED_BY_SLAVE, ABSENT),
    sync_acked_on_slave,
    examined_tallies("acks_under_sync_master", *event_tallies(*_OF_SLAVES)),
    _unknown_reason,
    of_stores=True,
    of_clients=False,
    needs=("acks_under_sync_master",),
    certain=(ABSENT,),
)

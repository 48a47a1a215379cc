"""REPL-3 StatusHonest: a broker's SEND_OK states truthfully what its disk or its group reached.

Before a broker under SYNC_FLUSH answers SEND_OK to a producer that waits, an fsync has made its log durable
beyond the message's first byte. Before a member of a group answers SEND_OK to any producer, it has recorded
that the message's entry is committed. Both are events of the broker, in its own order. SyncAckedOnSlave
judges what a slave must have reached.

Cannot conclude: whether FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT and SLAVE_NOT_AVAILABLE were too early, as
the missing step may complete between the decision and the answer; whether the message's last byte is durable.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence import ledgers
from mqproof.spark_audit.evidence.broker_cuts import flush_modes
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "REPL-3"
_ACK: Final = (
    "node", "seq", "ts", "kind", "msg_id", "broker", "topic", "queue_id", "queue_offset", "commit_offset",
)  # fmt: skip
UNFLUSHED: Final = "ok-before-flush"
UNCOMMITTED: Final = "ok-before-commit"

_OF_MEMBERS: Final = (Kind.SEND_ACK, Kind.RAFT_APPEND, Kind.RAFT_COMMIT, Kind.RECOVER)


def status_honest(evidence: Evidence) -> DataFrame:
    return _before_flush(evidence).unionByName(_before_commit(evidence))


def _before_flush(evidence: Evidence) -> DataFrame:
    attrs = f.col("attrs")
    waits = f.coalesce(attrs["wait"], f.lit("true")) != "false"
    is_ok = (f.col("kind") == Kind.SEND_ACK) & (f.col("status") == "SEND_OK") & waits
    is_flush = (f.col("kind") == Kind.FLUSH) & (attrs["file"] == "log")
    rows = evidence.log.where(is_ok | is_flush | (f.col("kind") == Kind.RECOVER))
    rows = rows.where("commit_offset IS NOT NULL").drop("attrs")
    rows = rows.join(f.broadcast(flushing(evidence)), "node", "left_semi")
    is_start = f.col("kind") == Kind.RECOVER
    life = f.sum(f.when(is_start, 1).otherwise(0)).over(Window.partitionBy("node").orderBy("seq"))
    so_far = Window.partitionBy("node", "life").orderBy("seq")
    # Everything that a start finds is durable.
    reached = f.max(f.when(f.col("kind") != Kind.SEND_ACK, f.col("commit_offset"))).over(so_far)
    numbered = rows.withColumn("life", life).withColumn("reached", reached)
    early = numbered.where((f.col("kind") == Kind.SEND_ACK) & (f.col("reached") <= f.col("commit_offset")))
    return findings(
        early.withColumn("at", f.concat_ws("#", "node", "seq")),
        INVARIANT,
        "critical",
        rule=f.lit(UNFLUSHED),
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "answered SEND_OK (%s) at commit offset %d, while %d were durable",
            "at",
            "commit_offset",
            "reached",
        ),
    )


def _before_commit(evidence: Evidence) -> DataFrame:
    members = evidence.profile.where(f.col("kind") == Kind.RAFT_COMMIT).select("node").distinct()
    rows = evidence.log.where(f.col("kind").isin(*_OF_MEMBERS)).join(
        f.broadcast(members), "node", "left_semi"
    )
    rows = rows.withColumn("index", f.col("attrs")["index"].cast("long"))
    entries = rows.where(f.col("kind") == Kind.RAFT_APPEND).select(
        f.col("node").alias("its_node"),
        (f.col("commit_offset") + ledgers.HEADER_BYTES).alias("its_place"),
        f.col("seq").alias("its_seq"),
        f.col("index").alias("its_index"),
    )
    acks = rows.where((f.col("kind") == Kind.SEND_ACK) & (f.col("status") == "SEND_OK"))
    # An entry that a later leader wrote at the same place is a different one.
    is_its = (
        (f.col("node") == f.col("its_node"))
        & (f.col("commit_offset") == f.col("its_place"))
        & (f.col("seq") > f.col("its_seq"))
    )
    acked = acks.join(entries, is_its, "left").groupBy(*_ACK).agg(
        f.coalesce(f.max_by("its_index", "its_seq"), f.max("index")).alias("index")
    )  # fmt: skip
    events = rows.where(f.col("kind").isin(Kind.RAFT_COMMIT, Kind.RECOVER)).select(*_ACK, "index")
    events = events.unionByName(acked).where("index IS NOT NULL")
    so_far = Window.partitionBy("node").orderBy("seq")
    reached = f.max(f.when(f.col("kind") == Kind.RAFT_COMMIT, f.col("index"))).over(so_far)
    has_begun = f.max(f.col("kind") == Kind.RECOVER).over(so_far)
    events = events.withColumn("reached", reached).withColumn("has_begun", has_begun)
    # If the log begins in the middle of a broker life, earlier commits are unknown.
    known = events.where(
        (f.col("kind") == Kind.SEND_ACK) & (f.col("has_begun") | f.col("reached").isNotNull())
    )
    early = known.where(f.coalesce("reached", f.lit(-1)) < f.col("index"))
    return findings(
        early.withColumn("at", f.concat_ws("#", "node", "seq")),
        INVARIANT,
        "critical",
        rule=f.lit(UNCOMMITTED),
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "answered SEND_OK (%s) for entry %d, while entries up to %d were committed",
            "at", "index", f.coalesce("reached", f.lit(-1)),
        ),
    )  # fmt: skip


def flushing(evidence: Evidence) -> DataFrame:
    """Return the brokers (column node) that always used SYNC_FLUSH."""
    modes = flush_modes(evidence.rare, evidence.options.flush).where("flush_mode = 'SYNC_FLUSH'")
    return modes.select(f.col("mode_node").alias("node"))


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del causes
    is_reported = tallies["flush_events"] or tallies["raft_commit_events"]
    return "" if is_reported else "no broker reports its flushes"


CHECK: Final = Check(
    INVARIANT,
    (UNFLUSHED, UNCOMMITTED),
    status_honest,
    examined_tallies("acks_under_sync_flush", *event_tallies(Kind.FLUSH, Kind.RAFT_COMMIT)),
    _unknown_reason,
    of_clients=False,
    needs=("acks_under_sync_flush", "raft_commit_events"),
)

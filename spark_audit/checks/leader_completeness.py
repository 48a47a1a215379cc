"""RAFT-4 LeaderCompleteness: a committed entry is in the log of every later leader.

An entry is committed if the leader of an earlier term reported it as committed. The later leader's log is
reconstructed from its reported appends and truncations.

Cannot conclude: anything about entries that a leader had before its event log begins.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence import ledgers
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "RAFT-4"
RULE: Final = "committed-entry-missing"


def leader_completeness(evidence: Evidence) -> DataFrame:
    rows = ledgers.ledger_events(evidence.log)
    committed = (
        ledgers.committed(rows)
        .where("by_term IS NOT NULL")
        .groupBy("ledger", "index", "term")
        .agg(f.min("by_term").alias("by_term"))
    )
    later = ledgers.leaderships(rows).join(f.broadcast(ledgers.begins(rows)), "node")
    leaders = later.select("ledger", "node", f.col("term").alias("led_term"), "from_seq", "base", "ts")
    required = committed.join(f.broadcast(leaders), "ledger").where("by_term < led_term AND index >= base")
    held = ledgers.entries(rows).select(
        f.col("node").alias("had_node"),
        f.col("index").alias("had_index"),
        f.col("term").alias("had_term"),
        f.col("seq").alias("had_seq"),
        "gone_seq",
    )
    has = (
        (f.col("node") == f.col("had_node"))
        & (f.col("index") == f.col("had_index"))
        & (f.col("term") == f.col("had_term"))
        & (f.col("had_seq") < f.col("from_seq"))
        & (f.col("gone_seq") > f.col("from_seq"))
    )
    return findings(
        required.join(held, has, "left_anti"),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        broker="node",
        queue_offset="index",
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "committed in term %d as entry %d of term %d; the leader of term %d began without it (%s)",
            "by_term", "index", "term", "led_term", ledgers.event_reference(seq="from_seq"),
        ),
    )  # fmt: skip


_TALLIES: Final = event_tallies(Kind.RAFT_COMMIT)
CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    leader_completeness,
    examined_tallies(*_TALLIES, *event_tallies(Kind.RAFT_APPEND, Kind.BECOME_LEADER)),
    lambda tallies, _: "" if tallies["raft_append_events"] else "no entry of a ledger is in the log",
    of_clients=False,
    needs=_TALLIES,
)

"""RAFT-2 LeaderAppendOnly: a leader never overwrites or deletes its own entries.

Cannot conclude: anything about a leader before it reported its leadership, or after it stopped without a
report.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence import ledgers
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "RAFT-2"
RULE: Final = "leader-cuts"


def leader_append_only(evidence: Evidence) -> DataFrame:
    rows = ledgers.ledger_events(evidence.log)
    leaderships = ledgers.leaderships(rows).select(
        f.col("node").alias("leader"), "term", "from_seq", "to_seq"
    )
    cuts = rows.where(f.col("kind") == Kind.TRUNCATE).drop("term")
    while_leading = (
        (f.col("node") == f.col("leader"))
        & (f.col("seq") > f.col("from_seq"))
        & (f.col("seq") < f.col("to_seq"))
    )
    cut_while_leading = cuts.join(f.broadcast(leaderships), while_leading)
    return findings(
        cut_while_leading.withColumn("at", ledgers.event_reference()),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        broker="node",
        queue_offset="index",
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "the leader of term %d cut its log behind entry %d (%s)", "term", "index", "at"
        ),
    )


_TALLIES: Final = event_tallies(Kind.BECOME_LEADER)
CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    leader_append_only,
    examined_tallies(*_TALLIES, *event_tallies(Kind.TRUNCATE)),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(RULE,),
)

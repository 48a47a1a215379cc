"""RAFT-1 ElectionSafety: at most one leader in a term.

Cannot conclude: anything about leaders whose logs are not given or that never reported their leadership.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence import ledgers
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "RAFT-1"
RULE: Final = "two-leaders"


def election_safety(evidence: Evidence) -> DataFrame:
    leads = ledgers.ledger_events(evidence.log).where(f.col("kind") == Kind.BECOME_LEADER)
    won = leads.groupBy("ledger", "term").agg(
        f.min_by("node", f.struct("ts", "node")).alias("broker"),
        f.countDistinct("node").alias("leaders"),
        f.array_join(f.array_sort(f.collect_set(ledgers.event_reference())), ", ").alias("who"),
        f.min("ts").alias("first_ts"),
        f.max("ts").alias("last_ts"),
    )
    return findings(
        won.where("leaders > 1"),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        evidence=f.format_string("term %d is led by %s", "term", "who"),
    )


_TALLIES: Final = event_tallies(Kind.BECOME_LEADER)
CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    election_safety,
    examined_tallies(*_TALLIES),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(RULE,),
)

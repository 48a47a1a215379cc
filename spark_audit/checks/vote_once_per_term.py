"""RAFT-6 VoteOncePerTerm: a node votes at most once in a term, across restarts.

Votes counted are those made durable, those granted, and those found on disk at a start. Terms never go back.

Cannot conclude: anything about votes of nodes whose logs are not given.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence import ledgers
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "RAFT-6"
TWICE: Final = "voted-twice"
BACK: Final = "term-goes-back"


def vote_once_per_term(evidence: Evidence) -> DataFrame:
    rows = ledgers.ledger_events(evidence.log).where(f.col("kind").isin(Kind.VOTE, Kind.RECOVER))
    durable = rows.where((f.col("kind") == Kind.RECOVER) | (f.col("status") == "DURABLE"))
    votes = rows.where("voted_for IS NOT NULL").groupBy("node", "term").agg(
        f.countDistinct("voted_for").alias("votes"),
        f.array_sort(f.collect_set("voted_for")).alias("who"),
        f.min("ts").alias("first_ts"),
        f.max("ts").alias("last_ts"),
        f.array_join(f.slice(f.array_sort(f.collect_set(ledgers.event_reference())), 1, 4), ", ").alias("at"),
    )  # fmt: skip
    twice = findings(
        votes.where("votes > 1"),
        INVARIANT,
        "critical",
        rule=f.lit(TWICE),
        broker="node",
        evidence=f.format_string("voted for %s in term %d (%s)", f.array_join("who", " and "), "term", "at"),
    )
    return twice.unionByName(_backwards(durable))


def _backwards(durable: DataFrame) -> DataFrame:
    before = Window.partitionBy("node").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    terms = durable.withColumn("reached", f.max("term").over(before)).where("term < reached")
    return findings(
        terms.withColumn("at", ledgers.event_reference()),
        INVARIANT,
        "critical",
        rule=f.lit(BACK),
        broker="node",
        commit_offset=None,
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string("in term %d, was in term %d before (%s)", "term", "reached", "at"),
    )


_TALLIES: Final = event_tallies(Kind.VOTE)
CHECK: Final = Check(
    INVARIANT,
    (TWICE, BACK),
    vote_once_per_term,
    examined_tallies(*_TALLIES),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(TWICE, BACK),
)

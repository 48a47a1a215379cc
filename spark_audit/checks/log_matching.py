"""RAFT-3 LogMatching: same index and term imply the same prefix.

Of every entry that members wrote at one index in one term, place in the file, kind and the term of the entry
before are the same; by induction then the prefix is.
Of stores of members, all before the last entry that two of them have, of one term, is the same, bodies by
their CRC. What follows it may be an old leader's tail. Damage is RecoveredPrefix's to judge
(`damaged_record`).
Cannot conclude: anything about bodies where there is an event log only, or about no-ops where there are
stores only.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from mqproof.spark_audit.checks.check import Check, counted, findings, never_blind, sees
from mqproof.spark_audit.checks.two_logs import compared
from mqproof.spark_audit.evidence import ledgers
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.sources.store_tables import Stored
from mqproof.spec.events import Kind

INVARIANT: Final = "RAFT-3"
RULE: Final = "divergent-entry"

_SAME: Final = ("commit_offset", "magic", "term_before")


def log_matching(evidence: Evidence) -> DataFrame:
    written = _written(evidence)
    return written.unionByName(_stored(evidence.store)) if evidence.store else written


def _written(evidence: Evidence) -> DataFrame:
    written = ledgers.told(evidence.log).where(f.col("kind") == Kind.RAFT_APPEND)
    by_seq = Window.partitionBy("node").orderBy("seq")
    # Behind a cut the event before is of another place, and what stood there is not told.
    follows = f.lag("index").over(by_seq) == f.col("index") - 1
    written = written.withColumn("term_before", f.when(follows, f.lag("term").over(by_seq)))
    each = written.groupBy("ledger", "index", "term").agg(
        f.min_by("node", f.struct("ts", "node")).alias("broker"),
        f.min("ts").alias("first_ts"),
        f.max("ts").alias("last_ts"),
        *[f.countDistinct(name).alias(name) for name in _SAME],
        f.slice(f.array_sort(f.collect_set(ledgers.where_told())), 1, 4).alias("who"),
    )
    return findings(
        each.where(" OR ".join(f"{name} > 1" for name in _SAME)),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        commit_offset=None,
        queue_offset="index",
        evidence=f.format_string(
            "entry %d of term %d is not the same everywhere: %s", "index", "term", f.concat_ws(", ", "who")
        ),
    )


def _stored(store: Stored) -> DataFrame:
    told = compared(store, store.members)

    def found(rows: DataFrame, text: str) -> DataFrame:
        # Where a member has expired, been damaged or not written yet, nothing is claimed.
        agreed = rows.join(f.broadcast(told.agreed), ["master", "slave"]).where("commit_offset < agreed_end")
        place = f.format_string(text, "entry_index", "term", "commit_offset", "master")
        return findings(agreed, INVARIANT, "critical", rule=f.lit(RULE), broker="slave", evidence=place)

    return (
        found(told.lacking, "entry %d of term %d, at commit offset %d of %s, is not in its log")
        .unionByName(found(told.strange, "entry %d of term %d, at commit offset %d, is not in the log of %s"))
        .unionByName(found(told.differing, "entry %d of term %d, at commit offset %d, is another in %s"))
    )


_SEEN: Final = (*sees(Kind.RAFT_APPEND), "members")
CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    log_matching,
    counted(*_SEEN),
    never_blind,
    of_stores=True,
    needs=_SEEN,
    stores_suffice=True,
)

"""RAFT-3 LogMatching: same index and term imply the same prefix.

All entries that members wrote at one index in one term must have the same place in the file, kind, and term
of the previous entry. By induction, the prefixes are then equal.

With stores of members, everything before the last entry that two of them share (with the same term) must be
equal; bodies are compared by CRC. What follows may be the tail of an old leader. Damage is judged by
RecoveredPrefix (`damaged_record`).

Cannot conclude: anything about bodies if there is only an event log, or about no-ops if there are only
stores.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.checks.log_comparison import compared
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence import ledgers
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.sources.store.stored import Stored
from mqproof.spec.events import Kind

INVARIANT: Final = "RAFT-3"
RULE: Final = "divergent-entry"

_SAME: Final = ("commit_offset", "magic", "term_before")


def log_matching(evidence: Evidence) -> DataFrame:
    written = _written(evidence)
    return written.unionByName(_stored(evidence.store)) if evidence.store else written


def _written(evidence: Evidence) -> DataFrame:
    written = ledgers.ledger_events(evidence.log).where(f.col("kind") == Kind.RAFT_APPEND)
    by_seq = Window.partitionBy("node").orderBy("seq")
    # After a truncation the previous event is about another index, so the term before is unknown.
    follows = f.lag("index").over(by_seq) == f.col("index") - 1
    written = written.withColumn("term_before", f.when(follows, f.lag("term").over(by_seq)))
    each = written.groupBy("ledger", "index", "term").agg(
        f.min_by("node", f.struct("ts", "node")).alias("broker"),
        f.min("ts").alias("first_ts"),
        f.max("ts").alias("last_ts"),
        *[f.countDistinct(name).alias(name) for name in _SAME],
        f.slice(f.array_sort(f.collect_set(ledgers.event_reference())), 1, 4).alias("who"),
    )
    return findings(
        each.where(" OR ".join(f"{name} > 1" for name in _SAME)),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        commit_offset=None,
        queue_offset="index",
        evidence=f.format_string(
            "entry %d of term %d differs between these events: %s", "index", "term", f.array_join("who", ", ")
        ),
    )


def _stored(store: Stored) -> DataFrame:
    differences = compared(store, store.members)

    def found(rows: DataFrame, text: str) -> DataFrame:
        # Where a member's log has expired, is damaged or not yet written, nothing is claimed.
        agreed = rows.join(f.broadcast(differences.agreed), ["master", "slave"]).where(
            "commit_offset < agreed_end"
        )
        place = f.format_string(text, "entry_index", "term", "commit_offset", "master")
        return findings(agreed, INVARIANT, "critical", rule=f.lit(RULE), broker="slave", evidence=place)

    return (
        found(
            differences.missing_on_slave, "entry %d of term %d, at commit offset %d of %s, is not in its log"
        )
        .unionByName(
            found(
                differences.missing_on_master,
                "entry %d of term %d, at commit offset %d, is not in the log of %s",
            )
        )
        .unionByName(
            found(
                differences.differing, "entry %d of term %d, at commit offset %d, differs from the one in %s"
            )
        )
    )


_TALLIES: Final = (*event_tallies(Kind.RAFT_APPEND), "members")
CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    log_matching,
    examined_tallies(*_TALLIES),
    never_unknown,
    of_stores=True,
    of_clients=False,
    needs=_TALLIES,
    stores_suffice=True,
    certain=(RULE,),
)

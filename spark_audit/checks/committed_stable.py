"""RAFT-5 CommittedStable: once committed, an index never changes its entry anywhere.

Members never report different entries as committed at one index. They never truncate entries that they
reported as committed. The committed index that a member reports does not go back until it restarts.

Cannot conclude: anything about entries written before the logs begin.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence import ledgers
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "RAFT-5"
CHANGED: Final = "committed-entry-changed"
CUT: Final = "committed-entry-cut"
BACK: Final = "commit-goes-back"


def committed_stable(evidence: Evidence) -> DataFrame:
    rows = ledgers.ledger_events(evidence.log)
    return _changed(rows).unionByName(_backwards(rows))


def _changed(rows: DataFrame) -> DataFrame:
    each = ledgers.committed(rows).groupBy("ledger", "index").agg(
        f.countDistinct("term").alias("versions"),
        f.min_by("node", f.struct("ts", "node")).alias("broker"),
        f.min("ts").alias("first_ts"),
        f.max("ts").alias("last_ts"),
        f.array_sort(f.collect_set(f.concat_ws(" of term ", "node", "term"))).alias("who"),
    )  # fmt: skip
    return findings(
        each.where("versions > 1"),
        INVARIANT,
        "critical",
        rule=f.lit(CHANGED),
        queue_offset="index",
        evidence=f.format_string(
            "entry %d is committed as different ones: %s", "index", f.array_join(f.slice("who", 1, 4), ", ")
        ),
    )


def _backwards(rows: DataFrame) -> DataFrame:
    """Return commits and truncations behind the committed index that the member reported since it started."""
    steps = rows.where(f.col("kind").isin(Kind.RAFT_COMMIT, Kind.TRUNCATE, Kind.RECOVER))
    by_seq = Window.partitionBy("node").orderBy("seq")
    started = f.sum(f.when(f.col("kind") == Kind.RECOVER, 1).otherwise(0)).over(by_seq)
    before = Window.partitionBy("node", "life").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    committed = f.when(f.col("kind") == Kind.RAFT_COMMIT, f.col("index"))
    steps = steps.withColumn("life", started).withColumn("reached", f.max(committed).over(before))
    back = steps.where((f.col("kind") != Kind.RECOVER) & (f.col("index") < f.col("reached")))
    is_cut = f.col("kind") == Kind.TRUNCATE
    return findings(
        back.withColumn("at", ledgers.event_reference()),
        INVARIANT,
        "critical",
        rule=f.when(is_cut, f.lit(CUT)).otherwise(f.lit(BACK)),
        broker="node",
        queue_offset="index",
        commit_offset=None,
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "moves back to entry %d after a commit up to %d (%s)", "index", "reached", "at"
        ),
    )


_TALLIES: Final = event_tallies(Kind.RAFT_COMMIT)
CHECK: Final = Check(
    INVARIANT,
    (CHANGED, CUT, BACK),
    committed_stable,
    examined_tallies(*_TALLIES),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(CHANGED, CUT, BACK),
)

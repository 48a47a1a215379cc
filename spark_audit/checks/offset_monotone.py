"""DELIV-5 OffsetMonotone: a group's committed offset in a queue never goes back, except by an explicit reset.

Each node's reports are judged by its own sequence numbers, so clocks do not matter; a broker sees every
commit. A crash of the broker may lose the newest commits (cause `broker_crash`). After an operator deleted
the topic or the group, its offsets begin again (causes `topic_deleted` and `group_deleted`). Two owners of a
queue commit each other's offsets (cause `two_owners`, see OneOwner).

Cannot conclude: regressions between two clients, if only clients' logs are given.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, explain, findings, unknown_without
from mqproof.spark_audit.checks.one_owner import with_owners
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-5"
RULE: Final = "offset-regression"
NEGATIVE: Final = "negative-commit"

_QUEUE: Final = ("group", "broker", "topic", "queue_id")


def offset_monotone(evidence: Evidence) -> DataFrame:
    back = evidence.steps.where(f.col("kind") == Kind.OFFSET_COMMIT).withColumn("to_ts", f.col("ts"))
    back = explain(back, evidence, ("broker_crash", "topic_deleted", "group_deleted")).withColumn(
        "cause", f.when(f.col("reset"), f.lit("offset_reset")).otherwise(f.col("cause"))
    )
    back = with_owners(back, evidence)
    # The broker and the client may both report the same step back: that is one finding.
    seen = back.groupBy(*_QUEUE, "queue_offset", "previous", "cause").agg(
        f.max("client").alias("client"),
        f.min("from_ts").alias("first_ts"),
        f.max("to_ts").alias("last_ts"),
    )
    found = findings(
        seen,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        evidence=f.format_string("committed %d after %d", "queue_offset", "previous"),
    )
    return found.unionByName(_negative(evidence.spans))


def _negative(spans: DataFrame) -> DataFrame:
    """Return committed offsets below 0. No queue has such offsets; a client that uses one starts anywhere."""
    committed = spans.where((f.col("kind") == Kind.OFFSET_COMMIT) & (f.col("offset_min") < 0))
    each = committed.groupBy(*_QUEUE).agg(
        f.min("offset_min").alias("queue_offset"),
        f.min("first_ts").alias("first_ts"),
        f.max("last_ts").alias("last_ts"),
    )
    return findings(
        each,
        INVARIANT,
        "error",
        rule=f.lit(NEGATIVE),
        evidence=f.format_string("committed offset %d, and no queue has one below 0", "queue_offset"),
    )


CHECK: Final = Check(
    INVARIANT,
    (RULE, NEGATIVE),
    offset_monotone,
    examined_tallies("commit_steps", "committed_queues"),
    unknown_without("commit_steps", "no queue has two committed offsets in the log"),
    certain=(NEGATIVE,),
)

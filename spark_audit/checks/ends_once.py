"""TXN-2 EndsOnce: a transaction that was committed or rolled back does not end in the other way.

A broker must not carry out both ends of one half message, whatever its producers request.

Cannot conclude: anything if a crash or a change of the leader lies between both ends, which may have lost the
first. CheckedWhileOpen judges the checks after an end.
"""

from typing import Final

from mqproof.spark_audit.checks.check import (
    Check,
    event_tallies,
    examined_tallies,
    explain,
    findings,
    never_unknown,
)
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "TXN-2"
RULE: Final = "ended-twice"

_TALLIES: Final = event_tallies(Kind.COMMIT, Kind.ROLLBACK)


def ends_once(evidence: Evidence) -> DataFrame:
    kind = f.col("kind")
    ends = evidence.events.where(kind.isin(Kind.COMMIT, Kind.ROLLBACK) & f.col("msg_id").isNotNull())
    both = ends.groupBy("node", "msg_id", "topic").agg(
        f.max(f.coalesce("broker", "node")).alias("broker"),
        _last(Kind.COMMIT, "commit_ts"),
        _last(Kind.ROLLBACK, "rollback_ts"),
    )
    suspects = (
        both.where("commit_ts IS NOT NULL AND rollback_ts IS NOT NULL")
        .withColumn("from_ts", f.least("commit_ts", "rollback_ts"))
        .withColumn("to_ts", f.greatest("commit_ts", "rollback_ts"))
    )
    return findings(
        explain(suspects, evidence, ("broker_crash", "leader_change")),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        first_ts="from_ts",
        last_ts="to_ts",
        evidence=f.lit("its broker carried out a commit and a rollback"),
    )


def _last(kind: Kind, name: str) -> Column:
    return f.max(f.when(f.col("kind") == kind, f.col("ts"))).alias(name)


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    ends_once,
    examined_tallies(*_TALLIES),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(RULE,),
)

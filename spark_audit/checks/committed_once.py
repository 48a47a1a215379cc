"""TXN-1 CommittedOnce: a committed half message becomes visible once.

Consumers must not receive a message that was stored once as a half message at two places of its topic. Two
half messages of one id, from a repeated send, may both be committed.

Cannot conclude: anything about a second copy that no consumer received, or about one after a crash or a
change of the leader, which may have lost the first.
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
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "TXN-1"
RULE: Final = "visible-twice"

_TALLIES: Final = event_tallies(Kind.HALF, Kind.COMMIT)


def committed_once(evidence: Evidence) -> DataFrame:
    events, kind = evidence.events, f.col("kind")
    halves = events.where((kind == Kind.HALF) & f.col("msg_id").isNotNull()).groupBy("msg_id", "topic")
    once = halves.agg(f.count("ts").alias("halves")).where("halves = 1")
    delivered = events.where((kind == Kind.DELIVER) & f.col("msg_id").isNotNull())
    places = delivered.join(once, ["msg_id", "topic"]).groupBy(
        "msg_id", "topic", "broker", "queue_id", "queue_offset"
    )
    seen = places.agg(f.min("ts").alias("ts")).groupBy("msg_id", "topic", "broker")
    several = seen.agg(
        f.count("ts").alias("copies"), f.min("ts").alias("from_ts"), f.max("ts").alias("to_ts")
    ).where("copies > 1")
    return findings(
        explain(several, evidence, ("broker_crash", "leader_change")),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        first_ts="from_ts",
        last_ts="to_ts",
        evidence=f.format_string("its one half message is visible at %d places", "copies"),
    )


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    committed_once,
    examined_tallies(*_TALLIES),
    never_unknown,
    needs=_TALLIES,
    certain=(RULE,),
)

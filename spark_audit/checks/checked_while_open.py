"""TXN-4 CheckedWhileOpen: a broker checks only a transaction that has not ended.

After a commit or rollback of a half message, the same broker must not ask a producer for its end.

Cannot conclude: anything about the immunity time, which brokers and messages set and no log records, or about
a check after a crash or a change of the leader, which may have lost the end.
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
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "TXN-4"
RULE: Final = "checked-after-end"

_TALLIES: Final = event_tallies(Kind.CHECK)
_ENDS: Final = (Kind.COMMIT, Kind.ROLLBACK)


def checked_while_open(evidence: Evidence) -> DataFrame:
    kind = f.col("kind")
    rows = evidence.events.where(kind.isin(Kind.CHECK, *_ENDS) & f.col("msg_id").isNotNull())
    by_seq = Window.partitionBy("node", "msg_id").orderBy("seq")
    ended = f.max(f.when(kind.isin(*_ENDS), f.col("ts"))).over(by_seq)
    rows = rows.withColumn("broker", f.coalesce("broker", "node"))
    late = rows.withColumn("from_ts", ended).where((kind == Kind.CHECK) & f.col("from_ts").isNotNull())
    return findings(
        explain(late.withColumn("to_ts", f.col("ts")), evidence, ("broker_crash", "leader_change")),
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        first_ts="from_ts",
        last_ts="to_ts",
        evidence=f.lit("its broker asked for the end of the transaction after that end"),
    )


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    checked_while_open,
    examined_tallies(*_TALLIES),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(RULE,),
)

"""ROUTE-1 TablesAgree: the name server's tables agree, as far as its answers show them.

Each broker in a route has registered with the name server and was not dropped since. A broker with writable
queues is listed with an address.

Cannot conclude: anything before the name server's start is in its log, or about brokers that no route names.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.checks.check import Check, counted, findings, never_blind, sees
from mqproof.spark_audit.evidence import routes
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "ROUTE-1"
DROPPED: Final = "route-to-dropped-broker"
STRANGER: Final = "queue-without-broker"


def tables_agree(evidence: Evidence) -> DataFrame:
    asked = routes.asked_and_told(evidence.log).where(f.col("kind") == Kind.ROUTE)
    unknown = asked.where(~f.coalesce("is_known", f.lit(False)))
    # Several requests report the same broker: that is one finding.
    told = unknown.groupBy("node", "member", f.col("since_ts").alias("first_ts")).agg(
        f.count(f.lit(1)).alias("times"),
        f.concat_ws("#", "node", f.min("seq")).alias("at"),
        f.max("ts").alias("last_ts"),
    )
    dropped = findings(
        told,
        INVARIANT,
        "error",
        rule=f.lit(DROPPED),
        broker="member",
        evidence=f.format_string(
            "in %d routes, first in %s, though it is dropped or was never known", "times", "at"
        ),
    )
    return dropped.unionByName(_strangers(evidence.log))


def _strangers(log: DataFrame) -> DataFrame:
    attrs = f.col("attrs")
    named = f.transform(
        f.split(attrs["brokers"], ","), lambda member: f.regexp_replace(member, ":[^:]*$", "")
    )
    rows = log.where((f.col("kind") == Kind.ROUTE) & (attrs["writable"] != "")).select(
        "ts",
        "topic",
        f.concat_ws("#", "node", "seq").alias("at"),
        f.explode(f.array_except(f.split(attrs["writable"], ","), named)).alias("broker"),
    )
    return findings(
        rows,
        INVARIANT,
        "error",
        rule=f.lit(STRANGER),
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string("%s gives a route to its queues, and no address of it", "at"),
    )


_SEEN: Final = sees(Kind.ROUTE)
CHECK: Final = Check(INVARIANT, (DROPPED, STRANGER), tables_agree, counted(*_SEEN), never_blind, needs=_SEEN)

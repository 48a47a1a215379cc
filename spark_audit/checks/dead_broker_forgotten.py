"""ROUTE-3 DeadBrokerForgotten: a broker that is silent for too long is in no route.

Too long means longer than the name server's expiry plus its scan interval plus the allowed clock skew.

Cannot conclude: how long a client keeps a route.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.checks.check import Check, counted, findings, never_blind, sees
from mqproof.spark_audit.evidence import routes
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "ROUTE-3"
RULE: Final = "route-to-dead-broker"


def dead_broker_forgotten(evidence: Evidence) -> DataFrame:
    asked = routes.asked_and_told(evidence.log).where(f.col("kind") == Kind.ROUTE)
    allowed = f.col("expiry_max_us") + f.col("scan_us") + evidence.options.skew_us
    dead = asked.where(f.col("ts") - f.col("seen_ts") > allowed)
    silent = ((f.col("ts") - f.col("seen_ts")) / 1000).cast("long")
    # Several requests report the same broker that was not removed: that is one finding.
    dead = dead.withColumn("silent_ms", silent).withColumn("first_ts", f.col("seen_ts"))
    told = dead.groupBy("node", "member", "first_ts").agg(
        f.count(f.lit(1)).alias("times"),
        f.max("silent_ms").alias("silent_ms"),
        f.max("ts").alias("last_ts"),
    )  # fmt: skip
    return findings(
        told,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        broker="member",
        evidence=f.format_string(
            "%s names it in %d routes, up to %d ms after it was last heard of", "node", "times", "silent_ms"
        ),
    )


_SEEN: Final = sees(Kind.ROUTE)
CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    dead_broker_forgotten,
    counted(*_SEEN, *sees(Kind.REGISTER, Kind.HEARTBEAT)),
    never_blind,
    needs=_SEEN,
)

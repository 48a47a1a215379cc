"""ROUTE-3 DeadBrokerForgotten: a broker that is silent for too long is in no route.

Too long means longer than the name server's expiry plus its scan interval plus the allowed clock skew.

Cannot conclude: how long a client keeps a route.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence import routes
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "ROUTE-3"
RULE: Final = "route-to-dead-broker"


def dead_broker_forgotten(evidence: Evidence) -> DataFrame:
    routed = routes.name_server_events(evidence.log).where(f.col("kind") == Kind.ROUTE)
    allowed = f.col("expiry_max_us") + f.col("scan_us") + evidence.options.skew_us
    dead = routed.where(f.col("ts") - f.col("seen_ts") > allowed)
    silent = ((f.col("ts") - f.col("seen_ts")) / 1000).cast("long")
    # Several requests report the same broker that was not removed: that is one finding.
    dead = dead.withColumn("silent_ms", silent).withColumn("first_ts", f.col("seen_ts"))
    grouped = dead.groupBy("node", "member", "first_ts").agg(
        f.count(f.lit(1)).alias("times"),
        f.max("silent_ms").alias("silent_ms"),
        f.max("ts").alias("last_ts"),
    )  # fmt: skip
    return findings(
        grouped,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        broker="member",
        evidence=f.format_string(
            "%s lists it in %d routes, up to %d ms after its last registration or heartbeat",
            "node",
            "times",
            "silent_ms",
        ),
    )


_TALLIES: Final = event_tallies(Kind.ROUTE)
CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    dead_broker_forgotten,
    examined_tallies(*_TALLIES, *event_tallies(Kind.REGISTER, Kind.HEARTBEAT)),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(RULE,),
)

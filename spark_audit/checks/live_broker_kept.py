"""ROUTE-2 LiveBrokerKept: a broker whose heartbeats arrive in time is never evicted.

A violation is a broker that was dropped as silent before its expiry time, by the name server's own clock.
Adjustments of that clock are allowed up to the clock skew. A broker that requests its own expiry time reports
it in its registration (attrs.expiry_ms).

Cannot conclude: anything, if a name server does not report the expiry times that brokers requested.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence import routes
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "ROUTE-2"
RULE: Final = "live-broker-evicted"


def live_broker_kept(evidence: Evidence) -> DataFrame:
    rows = routes.name_server_events(evidence.log)
    silent = rows.where((f.col("kind") == Kind.EXPIRE) & (f.col("reason") == "silent"))
    # Compare the dropped address: a member that moved sends heartbeats from its new address.
    early = silent.where(f.col("address") == f.col("address_now")).where(
        f.col("ts") - f.col("seen_ts") < f.col("expiry_min_us") - evidence.options.skew_us
    )
    silence_ms = ((f.col("ts") - f.col("seen_ts")) / 1000).cast("long")
    return findings(
        early.withColumn("at", f.concat_ws("#", "node", "seq")),
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        broker="member",
        first_ts="seen_ts",
        last_ts="ts",
        evidence=f.format_string(
            "dropped as silent %d ms after its last registration or heartbeat, its expiry is %d ms (%s)",
            silence_ms, (f.col("expiry_min_us") / 1000).cast("long"), "at",
        ),
    )  # fmt: skip


_TALLIES: Final = event_tallies(Kind.EXPIRE)
CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    live_broker_kept,
    examined_tallies(*_TALLIES, *event_tallies(Kind.REGISTER, Kind.HEARTBEAT)),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(RULE,),
)

"""ROUTE-1 TablesAgree: the name server's tables agree, as far as its answers show them.

Each broker in a route has registered with the name server and was not dropped since. A broker with writable
queues is listed with an address.

Cannot conclude: anything before the name server's start is in its log, or about brokers that no route names.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence import routes
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "ROUTE-1"
DROPPED: Final = "route-to-dropped-broker"
QUEUE_WITHOUT_BROKER: Final = "queue-without-broker"


def tables_agree(evidence: Evidence) -> DataFrame:
    routed = routes.name_server_events(evidence.log).where(f.col("kind") == Kind.ROUTE)
    unknown = routed.where(~f.coalesce("is_known", f.lit(False)))
    # Several requests report the same broker: that is one finding.
    grouped = unknown.groupBy("node", "member", f.col("since_ts").alias("first_ts")).agg(
        f.count(f.lit(1)).alias("times"),
        f.concat_ws("#", "node", f.min("seq")).alias("at"),
        f.max("ts").alias("last_ts"),
    )
    dropped = findings(
        grouped,
        INVARIANT,
        "error",
        rule=f.lit(DROPPED),
        broker="member",
        evidence=f.format_string(
            "in %d routes, first in %s, though it is dropped or was never registered", "times", "at"
        ),
    )
    return dropped.unionByName(_queues_without_broker(evidence.log))


def _queues_without_broker(log: DataFrame) -> DataFrame:
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
        rule=f.lit(QUEUE_WITHOUT_BROKER),
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string("%s returns a route to its queues, but no address of the broker", "at"),
    )


_TALLIES: Final = event_tallies(Kind.ROUTE)
CHECK: Final = Check(
    INVARIANT,
    (DROPPED, QUEUE_WITHOUT_BROKER),
    tables_agree,
    examined_tallies(*_TALLIES),
    never_unknown,
    of_clients=False,
    needs=_TALLIES,
    certain=(DROPPED, QUEUE_WITHOUT_BROKER),
)

"""DELIV-2 NoPhantom: every delivered message was sent.

A message whose producer does not know the outcome of the send may be delivered later (cause `recovered`).

Cannot conclude: anything, if the logs of producers are missing.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.check import Check, at_sole_place, findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence

INVARIANT: Final = "DELIV-2"
RULE: Final = "phantom"


def no_phantom(evidence: Evidence) -> DataFrame:
    delivered = evidence.messages.where("deliveries > 0")
    never_sent = f.col("sends") == 0
    recovered = (f.col("acked") + f.col("soft_acked") == 0) & (f.col("unknown") > 0)
    return findings(
        delivered.where(never_sent | recovered),
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        cause=f.when(~never_sent, f.lit("recovered")),
        first_ts="delivered_ts",
        last_ts="delivered_ts",
        evidence=f.when(
            never_sent,
            f.format_string("delivered %d times, and no producer sent it", "deliveries"),
        ).otherwise(f.lit("its producer did not receive the outcome; it was stored and delivered")),
        **at_sole_place(),
    )


def _examined(tallies: Mapping[str, int]) -> dict[str, int]:
    return {name: tallies[name] for name in ("messages_delivered", "messages_sent")}


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del causes
    if not tallies["messages_delivered"]:
        return "no delivery is in the log"
    if not tallies["messages_sent"]:
        return "no send is in the log: the producers' logs are missing"
    return ""


CHECK: Final = Check(INVARIANT, (RULE,), no_phantom, _examined, _unknown_reason)

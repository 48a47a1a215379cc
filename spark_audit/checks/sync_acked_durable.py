"""FLUSH-1 SyncAckedDurable: under SYNC_FLUSH a SEND_OK message survives any crash.

See docs/reference/protocol/event-log.md, "Audit inputs". A message is lost if every record of it lies at or
beyond the end to which its broker's log was later truncated; copies at slaves do not count
(truncated_messages.py).

Cannot conclude: anything about brokers whose appends or flush mode are not in the log, or that did not crash.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.check import Check, at_sole_place, examined_tallies, findings
from mqproof.spark_audit.checks.truncated_messages import cut_off
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence

INVARIANT: Final = "FLUSH-1"
RULE: Final = "acked-then-truncated"


def sync_acked_durable(evidence: Evidence) -> DataFrame:
    lost = cut_off(evidence.messages)
    modes = f.transform("promised", lambda its: its["flush_mode"])
    cause = (
        f.when(f.array_contains(modes, "SYNC_FLUSH"), f.lit(None))
        .when(f.array_contains(modes, "ASYNC_FLUSH"), f.lit("async_flush"))
        .otherwise(f.lit("flush_mode_unknown"))
    )
    return findings(
        lost,
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        cause=cause,
        first_ts="send_ts",
        last_ts="acked_ts",
        evidence=f.format_string(
            "acknowledged with SEND_OK, then cut off by recovery (records: %d)", f.size("own")
        ),
        **at_sole_place("own"),
    )


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    if causes.get("flush_mode_unknown"):
        return "acknowledged messages were cut off, and no broker reports whether it flushed synchronously"
    if not tallies["acked_sync_at_risk"]:
        return (
            "no message acknowledged under SYNC_FLUSH was in the log of a broker that crashed and recovered"
        )
    return ""


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    sync_acked_durable,
    examined_tallies("acked", "acked_sync_at_risk", "broker_crashes"),
    _unknown_reason,
    # Most logs have no crash of such a broker.
    needs=("acked_sync_at_risk", "acked_cut"),
)

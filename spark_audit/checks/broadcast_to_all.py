"""DELIV-11 BroadcastToAll: in broadcast mode every instance of the group gets every message.

A broadcast group (`--broadcast-group`; the log does not say which groups are) is treated as one group per
member. A member misses a message under the same condition as NoAckedLost uses for a group: a later offset of
the queue was delivered to it, and this message never was. Messages sent before a member started or after it
ended are not due to it.

Cannot conclude: anything about members that received nothing at all; as NoAckedLost, whether a message was
due to the group if its subscription or the tags of the message are unknown.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, findings
from mqproof.spark_audit.checks.no_acked_lost import LOST, lost_to_groups
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.groups import is_member
from mqproof.spark_audit.evidence.subscriptions import unsure
from mqproof.spark_audit.evidence.tables import Evidence

INVARIANT: Final = "DELIV-11"
RULE: Final = "broadcast-gap"


def broadcast_to_all(evidence: Evidence) -> DataFrame:
    lost = lost_to_groups(evidence, INVARIANT).where(is_member(evidence.options) & (f.col("rule") == LOST))
    return findings(
        lost,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        evidence=f.lit("acknowledged with SEND_OK; the member received later offsets, but not this one"),
    )


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    broadcast_to_all,
    examined_tallies("broadcast_groups", "acked_and_delivered"),
    lambda _, causes: unsure(causes),
    needs=("broadcast_groups",),
)

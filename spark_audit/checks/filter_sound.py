"""DELIV-10 FilterSound: a subscriber gets exactly the messages that its expression selects.

This check finds deliveries that the subscription of the group does not select. NoAckedLost finds the
messages that are selected and not delivered. A delivery is a violation if no subscription of the group
selects it, from the time when the message was sent until the delivery. Redeliveries are not judged: their
messages were selected before.

Cannot conclude: anything about groups that filter by code of their own; messages whose tags, or whose
properties for an SQL92 subscription, the log does not state.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.report.printable import counted
from mqproof.spark_audit.checks.check import Check, examined_tallies, findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.subscriptions import FILTERED, deliveries_to_filters, with_selection
from mqproof.spark_audit.evidence.tables import Evidence

INVARIANT: Final = "DELIV-10"
RULE: Final = "not-selected"


def filter_sound(evidence: Evidence) -> DataFrame:
    judged = with_selection(deliveries_to_filters(evidence), evidence)
    return findings(
        judged.where(f.col("selection") == FILTERED),
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        first_ts="ts",
        last_ts="ts",
        evidence=f.format_string(
            "delivered with the tags '%s', and the group's subscription does not select it",
            f.coalesce("tags", f.lit("")),
        ),
    )


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del causes
    if not tallies["filter_deliveries"]:
        return "no message was delivered to a group that filters"
    if untagged := tallies["filter_deliveries_untagged"]:
        return (
            f"the log does not have the tags of {counted(untagged, 'message')} for groups that select by tag"
        )
    if unknown := tallies["filter_deliveries_without_properties"]:
        return (
            f"the log does not have the properties of {counted(unknown, 'message')} (attrs.properties) "
            "for groups that subscribe by SQL92"
        )
    if unjudged := tallies["filter_deliveries_not_evaluated"]:
        return f"{counted(unjudged, 'message')} went to groups whose filter is no expression of tags or SQL92"
    return ""


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    filter_sound,
    examined_tallies("tag_filters", "filter_deliveries"),
    _unknown_reason,
    needs=("tag_filters",),
)

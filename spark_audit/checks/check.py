"""The structure of a check: pure functions for one invariant, and the helpers that checks share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.causes import cause_key
from mqproof.spark_audit.evidence.gaps import GAP, Gap, may_explain
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.schema import FINDING_COLUMNS
from mqproof.spec.events import NUMBER_MAX, Kind

CAUSE_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "rebalance": ("group",),
    "consumer_restart": ("node",),
    "broker_crash": ("broker",),
    "offset_reset": ("group", "broker", "topic", "queue_id"),
    "redelivery": ("group", "msg_id"),
    "leader_change": ("broker",),
    "broker_retry": ("msg_id",),
    "topic_deleted": ("topic",),
    "group_deleted": ("group",),
}
"""Maps a cause to the columns of a suspect row that form its lookup key; earlier causes take precedence."""


@dataclass(frozen=True, slots=True)
class Check:
    invariant: str
    """Catalogue id."""
    rules: tuple[str, ...]
    findings: Callable[[Evidence], DataFrame]
    """Returns rows of schema.FINDINGS for the evidence; a row is a violation unless it has a cause.

    The function is pure: it creates no session and runs no action.
    """
    examined: Callable[[Mapping[str, int]], dict[str, int]]
    """Selects from all tallies those that show how much this check examined."""
    unknown_reason: Callable[[Mapping[str, int], Mapping[str, int]], str]
    """Returns why nothing can be concluded, or ""; from the tallies and the number of findings by cause."""
    of_events: bool = True
    """Whether the check judges event logs."""
    of_stores: bool = False
    """Whether the check judges store directories."""
    of_clients: bool = True
    """Whether rows of producers and consumers can change the result."""
    certain: tuple[str, ...] = ()
    """Rules whose violations no earlier row could explain. They count before the log became complete, too."""
    stores_suffice: bool = False
    """Whether store data alone is sufficient to conclude `held`."""
    needs: tuple[str, ...] = ()
    """Names of tallies.

    If all of them are 0, there is nothing to judge: the check does not run and is reported as not tested.

    If `needs` is empty, the check always runs, and reports if it found nothing to examine.
    """


def explain(
    suspects: DataFrame,
    evidence: Evidence,
    causes: tuple[str, ...],
    around: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Add the column `cause`: the first of `causes` that occurred in the interval of the row, or null.

    The interval is from_ts to to_ts. `around` extends it, for each cause, in microseconds on both sides.
    """
    found: list[Column] = []
    columns = suspects.columns
    for cause in causes:
        at, key = f"{cause}_at", f"{cause}_key"
        times = evidence.causes.where(f.col("cause") == cause).select(
            f.col("key").alias(key), f.col("at").alias(at)
        )
        suspects = suspects.join(f.broadcast(times), cause_key(*CAUSE_KEYS[cause]) == f.col(key), "left")
        allowed = (around or {}).get(cause, f.lit(0)) + evidence.options.skew_us
        within = _between(f.col("from_ts") - allowed, f.col("to_ts") + allowed)
        found.append(f.when(f.exists(at, within), f.lit(cause)))
    return suspects.select(*columns, f.coalesce(*found).alias("cause"))


def findings(rows: DataFrame, invariant: str, severity: str, **columns: Column | str | None) -> DataFrame:
    """Convert rows to the schema of findings.

    `columns` gives values; other columns are taken by name, or are null.
    """
    given: dict[str, Column | str | None] = {
        "invariant": f.lit(invariant),
        "severity": f.lit(severity),
        **columns,
    }
    selected = []
    for name, kind in FINDING_COLUMNS.items():
        value = given.get(name, name if name in rows.columns else None)
        column = f.lit(None) if value is None else f.col(value) if isinstance(value, str) else value
        selected.append(column.cast(kind).alias(name))
    return rows.select(*selected)


def sole_place(field: str, places: str = "places") -> Column:
    """Return a field of the message's place; null if the message was stored nowhere or at several places."""
    return f.when(f.size(places) == 1, f.col(places)[0][field])


def event_tallies(*kinds: Kind) -> tuple[str, ...]:
    """Return the names of the tallies of these kinds of events."""
    return tuple(f"{kind}_events" for kind in kinds)


def examined_tallies(*names: str) -> Callable[[Mapping[str, int]], dict[str, int]]:
    """Return an `examined` function that selects these tallies."""
    return lambda tallies: {name: tallies[name] for name in names}


def unknown_without(name: str, reason: str) -> Callable[[Mapping[str, int], Mapping[str, int]], str]:
    """Return an `unknown_reason` function: nothing can be concluded if this tally is 0."""
    return lambda tallies, _causes: "" if tallies[name] else reason


def never_unknown(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    """The `unknown_reason` function of a check that runs only if the tallies it `needs` are not 0."""
    del tallies, causes
    return ""


BEFORE_LOG: Final = "before_log"
"""The cause of findings that an earlier row, from before the log of its node begins, may explain."""

_LOOKBACK_US: Final = 30_000_000
"""A cause may be this much earlier than its effect. A member trusts a lock this long after a crash."""


def is_before_log(time: Column, evidence: Evidence) -> Column:
    """Return whether rows that may explain something at this time are missing, as the log begins later."""
    if evidence.complete_from is None:
        return f.lit(False)
    options = evidence.options
    lookback_us = max(_LOOKBACK_US, options.rebalance_us) + options.skew_us
    return f.coalesce(time < evidence.complete_from + lookback_us, f.lit(False))


def is_sent_before_log(evidence: Evidence) -> Column:
    """Return whether a message (first sent at `send_ts`) may be older than the complete part of the log."""
    if evidence.complete_from is None:
        return f.lit(False)
    return f.col("send_ts").isNull() | is_before_log(f.col("send_ts"), evidence)


def known_findings(check: "Check", evidence: Evidence) -> DataFrame:
    """Return the findings of the check. Those that a missing row may explain get a cause.

    The row is missing if it is from before the log became complete, or if its node dropped rows.
    """
    found = check.findings(evidence)
    gaps = gaps_of(check, evidence)
    if evidence.complete_from is None and not gaps:
        return found
    is_open = ~f.col("rule").isin(*check.certain) if check.certain else f.lit(True)
    before = f.when(is_open & is_before_log(f.col("first_ts"), evidence), f.lit(BEFORE_LOG))
    dropped = f.when(is_open & _is_in_gap(gaps, evidence.options), f.lit(GAP))
    return found.withColumn("cause", f.coalesce("cause", before, dropped))


def gaps_of(check: "Check", evidence: Evidence) -> tuple[Gap, ...]:
    """Return the gaps whose rows can change the result of the check."""
    if not check.of_events:
        return ()
    return tuple(gap for gap in evidence.gaps if check.of_clients or not gap.of_client)


_GAP_IS_KNOWN: Final = ("lost-write", "broadcast-gap")
"""Rules whose check itself compares its findings with the gaps, as it knows when the group read on."""
_SENT_EARLIER: Final = ("phantom",)
"""Rules whose missing row is older than the finding, by any time. Consumers do not write that row."""
_ENDS_LATER: Final = ("failed-and-dropped",)
"""Rules whose missing row is newer than the finding, by any time."""


def _is_in_gap(gaps: tuple[Gap, ...], options: Options) -> Column:
    """Return whether a row that a node dropped may explain a finding."""
    if not gaps:
        return f.lit(False)
    rule, group = f.col("rule"), f.col("group")
    around = max(_LOOKBACK_US, options.rebalance_us) + options.skew_us
    since, until = f.col("first_ts") - around, f.col("last_ts") + around
    ever, forever = f.lit(-NUMBER_MAX), f.lit(NUMBER_MAX)
    of_others = [gap for gap in gaps if not gap.groups]
    in_gap = (
        f.when(rule.isin(*_GAP_IS_KNOWN), f.lit(False))
        .when(rule.isin(*_SENT_EARLIER), may_explain(of_others, ever, until, group))
        .when(rule.isin(*_ENDS_LATER), may_explain(gaps, since, forever, group))
    )
    return in_gap.otherwise(may_explain(gaps, since, until, group))


def is_in_passed_gap(evidence: Evidence) -> Column:
    """Return whether a consumer may have dropped the delivery of a message, between since_ts and until_ts.

    By until_ts, the group had read past the message.
    """
    options = evidence.options
    lookback_us = max(_LOOKBACK_US, options.rebalance_us)
    since, until = f.col("since_ts") - options.skew_us, f.col("until_ts") + options.skew_us + lookback_us
    return may_explain(evidence.gaps, since, until, f.col("group"))


PLACE: Final = ("broker", "queue_id", "queue_offset")


def at_sole_place(places: str = "places") -> dict[str, Column]:
    """Return the place columns of a finding about a whole message; the topic is the message's own."""
    return {name: sole_place(name, places) for name in PLACE}


def _between(begin: Column, end: Column) -> Callable[[Column], Column]:
    return lambda at: at.between(begin, end)


__all__ = [
    "Check",
    "Evidence",
    "BEFORE_LOG",
    "Options",
    "at_sole_place",
    "examined_tallies",
    "explain",
    "findings",
    "gaps_of",
    "is_before_log",
    "is_in_passed_gap",
    "is_sent_before_log",
    "known_findings",
    "never_unknown",
    "event_tallies",
    "sole_place",
    "unknown_without",
]

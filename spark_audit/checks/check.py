"""What a check is: pure functions around one invariant, and the help they share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.causes import cause_key
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.schema import FINDINGS
from mqproof.spec.events import Kind

CAUSE_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "rebalance": ("group",),
    "consumer_restart": ("node",),
    "broker_crash": ("broker",),
    "offset_reset": ("group", "broker", "topic", "queue_id"),
    "redelivery": ("group", "msg_id"),
    "leader_change": ("broker",),
    "broker_retry": ("msg_id",),
}
"""Cause to the columns of a suspect row by which it is looked up; earlier ones win."""


@dataclass(frozen=True, slots=True)
class Check:
    invariant: str
    """Catalogue id."""
    rules: tuple[str, ...]
    findings: Callable[[Evidence], DataFrame]
    """Evidence to rows of schema.FINDINGS: what is a violation (no cause) or would be one but for its cause.
    Pure: makes no session, runs no action."""
    looked_at: Callable[[Mapping[str, int]], dict[str, int]]
    """Of all tallies, those that tell how much this check looked at."""
    blind: Callable[[Mapping[str, int], Mapping[str, int]], str]
    """From the tallies and the number of findings by cause: why nothing can be concluded, or ""."""
    of_events: bool = True
    """It judges event logs."""
    of_stores: bool = False
    """It judges store directories."""
    stores_suffice: bool = False
    """That it holds, too, stores alone can show."""
    needs: tuple[str, ...] = ()
    """Tallies. Where all of them are 0 there is nothing to judge: it is not run, and not tested. None: it
    always runs, and having seen nothing it says so."""


def explain(
    suspects: DataFrame,
    evidence: Evidence,
    causes: tuple[str, ...],
    around: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Add `cause`: the first of `causes` that happened between from_ts and to_ts of the row, or no longer
    before or after than `around` allows it, in microseconds; else null."""
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
    """Bring rows into the schema of findings. `columns` gives values; the rest is taken by name, else
    null."""
    given: dict[str, Column | str | None] = {
        "invariant": f.lit(invariant),
        "severity": f.lit(severity),
        **columns,
    }
    selected = []
    for field in FINDINGS.fields:
        value = given.get(field.name, field.name if field.name in rows.columns else None)
        column = f.lit(None) if value is None else f.col(value) if isinstance(value, str) else value
        selected.append(column.cast(field.dataType).alias(field.name))
    return rows.select(*selected)


def sole_place(field: str, places: str = "places") -> Column:
    """A field of the message's place, null when it was stored nowhere or at several places."""
    return f.when(f.size(places) == 1, f.col(places)[0][field])


def sees(*kinds: Kind) -> tuple[str, ...]:
    """The tallies of these kinds of events."""
    return tuple(f"{kind}_events" for kind in kinds)


def counted(*names: str) -> Callable[[Mapping[str, int]], dict[str, int]]:
    """`looked_at` of a check that tells these tallies."""
    return lambda tallies: {name: tallies[name] for name in names}


def never_blind(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    """Of a check that is run only where there is what it `needs`."""
    del tallies, causes
    return ""


PLACE: Final = ("broker", "queue_id", "queue_offset")


def at_sole_place(places: str = "places") -> dict[str, Column]:
    """The place columns of a finding about a whole message; its topic is the message's own."""
    return {name: sole_place(name, places) for name in PLACE}


def _between(begin: Column, end: Column) -> Callable[[Column], Column]:
    return lambda at: at.between(begin, end)


__all__ = [
    "Check",
    "Evidence",
    "Options",
    "at_sole_place",
    "counted",
    "explain",
    "findings",
    "never_blind",
    "sees",
    "sole_place",
]

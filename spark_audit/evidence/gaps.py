"""Gaps in the logs of nodes: times from which a node dropped rows, as its `gap` events say.

A finding that a dropped row may explain has the cause `gap`. A consumer's row can explain only findings about
its groups. A row of a producer, or of a node whose role is unknown, can explain any finding of that time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from mqproof.report.printable import counted
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, any_of
from mqproof.spark_audit.passes.times import time_text
from mqproof.spec.events import NUMBER_MAX, Kind

GAP: Final = "gap"
"""The cause of findings that a dropped row may explain."""

GAPS_MAX: Final = 64
"""Maximum number of gaps of one node. Of a node with more, gaps that are close together become one."""

_OF_PRODUCERS: Final = (Kind.SEND, Kind.SEND_ACK, Kind.SEND_FAIL)
_OF_CONSUMERS: Final = (
    *(Kind.DELIVER, Kind.CONSUME_OK, Kind.CONSUME_FAIL, Kind.OFFSET_COMMIT, Kind.REBALANCE),
    *(Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, Kind.RETRY, Kind.DEAD_LETTER),
)
_OF_CLIENTS: Final = frozenset((*_OF_PRODUCERS, *_OF_CONSUMERS, Kind.REGISTER, Kind.CRASH, Kind.GAP))


@dataclass(frozen=True, slots=True)
class Gap:
    """A time from which rows of a node are missing. Both ends belong to it, in microseconds."""

    node: str
    since: int
    until: int
    dropped: int | None
    """The number of missing rows, or None if it is unknown."""
    groups: frozenset[str] = frozenset()
    """The groups that a node consumes for; empty unless it is only a consumer."""
    of_client: bool = True
    """Whether the node writes only rows of clients."""


def found_gaps(rare: DataFrame, profiled: DataFrame) -> tuple[Gap, ...]:
    """Return the gaps of all nodes, by node and time. Runs two jobs."""
    attrs = f.col("attrs")
    rows = rare.where(f.col("kind") == Kind.GAP).select(
        "node", "ts", attrs["since"].alias("since"), attrs["dropped"].alias("dropped")
    )
    by_node: dict[str, list[Gap]] = {}
    for row in rows.collect():
        since = min(_number(row["since"], -NUMBER_MAX), row["ts"])
        dropped = _number(row["dropped"], -1)
        gap = Gap(row["node"], since, row["ts"], None if dropped < 0 else dropped)
        by_node.setdefault(gap.node, []).append(gap)
    if not by_node:
        return ()
    sorts = profiled.where(f.col("node").isin(*by_node)).select("node", "kind", "group").distinct().collect()
    return tuple(
        _with_role(gap, [row for row in sorts if row["node"] == node])
        for node in sorted(by_node)
        for gap in _merged(by_node[node])
    )


def gaps_text(gaps: Sequence[Gap]) -> str:
    """Return which rows are missing, for people; "" without gaps."""
    if not gaps:
        return ""
    largest = max(gaps, key=lambda gap: (gap.dropped is None, gap.dropped or 0))
    number = "an unknown number of events" if largest.dropped is None else counted(largest.dropped, "event")
    begin = "the beginning" if largest.since == -NUMBER_MAX else time_text(largest.since)
    more = f", and {counted(len(gaps) - 1, 'other gap')}" if len(gaps) > 1 else ""
    return f"{largest.node} dropped {number} between {begin} and {time_text(largest.until)}{more}"


def may_explain(gaps: Iterable[Gap], since: Column, until: Column, group: Column) -> Column:
    """Return whether a missing row of the time since..until may explain a finding about the group.

    A time that is null is unknown, and may be any.
    """
    return any_of([_covers(gap, since, until, group) for gap in gaps], f.lit(False))


def _covers(gap: Gap, since: Column, until: Column, group: Column) -> Column:
    at_the_time = f.coalesce((since <= gap.until) & (until >= gap.since), f.lit(True))
    if not gap.groups:
        return at_the_time
    return at_the_time & f.coalesce(group.isin(*sorted(gap.groups)), f.lit(False))


def _with_role(gap: Gap, sorts: Sequence[Any]) -> Gap:
    kinds = {row["kind"] for row in sorts}
    groups = {row["group"] for row in sorts if row["kind"] in _OF_CONSUMERS and row["group"]}
    is_consumer = bool(groups) and not kinds.intersection(_OF_PRODUCERS)
    of_client = kinds <= _OF_CLIENTS and bool(kinds.intersection((*_OF_PRODUCERS, *_OF_CONSUMERS)))
    return replace(gap, of_client=of_client, groups=frozenset(groups if is_consumer and of_client else ()))


def _merged(gaps: Iterable[Gap]) -> list[Gap]:
    """Return gaps in order that do not overlap, at most GAPS_MAX."""
    ordered = sorted(gaps, key=lambda gap: (gap.since, gap.until))
    apart = _joined(ordered, 0)
    if len(apart) > GAPS_MAX:
        distances = sorted(later.since - gap.until for gap, later in pairwise(apart))
        apart = _joined(apart, distances[len(apart) - GAPS_MAX - 1])
    return apart


def _joined(ordered: Sequence[Gap], distance: int) -> list[Gap]:
    """Join gaps that are at most this far apart."""
    joined: list[Gap] = []
    for gap in ordered:
        if joined and gap.since - joined[-1].until <= distance:
            last = joined[-1]
            dropped = None if None in (last.dropped, gap.dropped) else last.dropped + gap.dropped  # type: ignore[operator]
            joined[-1] = replace(last, until=max(last.until, gap.until), dropped=dropped)
        else:
            joined.append(gap)
    return joined


def _number(text: str | None, otherwise: int) -> int:
    """Return the number of an attribute that a program wrote, or another if it is none."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) <= len(str(NUMBER_MAX))
    return min(int(text), NUMBER_MAX) if is_number and text is not None else otherwise

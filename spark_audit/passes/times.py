"""The times of a log: are they microseconds, and which rows have a time that cannot be right?

A log in another unit is refused, because every check would compare its times with wrong allowances. A few
rows with an implausible time are set aside: they are counted and not judged, like rows that are missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.sources.inputs import InputError

_YEAR_US: Final = 31_556_952_000_000
_SPAN_MAX_US: Final = 10 * _YEAR_US
"""Rows further than this from most rows of the log are implausible."""
_SINCE_S, _UNTIL_S = 1_262_304_000, 4_102_444_800
"""The years 2010 and 2100, in seconds. RocketMQ dates from 2012."""
_UNITS: Final = {"seconds": 1, "milliseconds": 1_000, "nanoseconds": 1_000_000_000}
"""Number of each unit in a second."""
_MICROSECONDS: Final = 1_000_000
_ROWS_MAX: Final = 10
"""The log is refused if more rows of a node than this are implausible, and more than half of its rows."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """The plausible times of a log, inclusive."""

    first: int
    last: int

    def contain(self) -> Column:
        return f.col("ts").between(self.first, self.last)


@dataclass(frozen=True, slots=True)
class SetAside:
    """The rows with implausible times."""

    rows: int
    shown: tuple[str, ...] = ()


NOTHING_SET_ASIDE: Final = SetAside(0)


@dataclass(frozen=True, slots=True)
class _Extent:
    rows: int
    first: int
    last: int


def plausible_times(log: DataFrame, first_ts: int, last_ts: int) -> Bounds | None:
    """Return the bounds of plausible times, or None if all times of the log are plausible.

    `first_ts` and `last_ts` are the extremes. A log is read again only if they are unusual.

    Raises:
        InputError: the times of a node are in another unit, or far from those of the other nodes.
    """
    is_real = _of_unit(_MICROSECONDS, first_ts, last_ts)
    is_simulated = 0 <= first_ts <= last_ts < _SINCE_S
    if is_real or is_simulated:
        return None
    by_node = _extents(log)
    main = {node: max(years.values(), key=lambda each: each.rows) for node, years in by_node.items()}
    _refuse_other_units(main)
    most = _most_common(by_node)
    bounds = Bounds(max(0, most.first - _SPAN_MAX_US), most.last + _SPAN_MAX_US)
    _refuse_far_nodes(by_node, bounds, most)
    return bounds if first_ts < bounds.first or last_ts > bounds.last else None


def set_aside(log: DataFrame, bounds: Bounds) -> SetAside:
    """Return the number of rows outside the bounds, and the first of them."""
    outside = log.where(~bounds.contain())
    shown = outside.orderBy("node", "seq", "ts").select("node", "seq", "ts").limit(_SHOWN).collect()
    return SetAside(outside.count(), tuple(f"{row['node']}#{row['seq']} at {row['ts']}" for row in shown))


def _extents(log: DataFrame) -> dict[str, dict[int, _Extent]]:
    """Return the number and extremes of the times by node, and by year since 1970."""
    year = f.floor(f.col("ts") / _YEAR_US).alias("year")
    counted = log.groupBy("node", year).agg(
        f.count(f.lit(1)).alias("rows"), f.min("ts").alias("first"), f.max("ts").alias("last")
    )
    by_node: dict[str, dict[int, _Extent]] = {}
    for row in sorted(counted.collect(), key=lambda each: (each["node"], each["year"])):
        by_node.setdefault(row["node"], {})[row["year"]] = _Extent(row["rows"], row["first"], row["last"])
    return by_node


def _of_unit(per_second: int, first: int, last: int) -> bool:
    """Return whether these are times between 2010 and 2100, in a unit with `per_second` units per second."""
    return _SINCE_S * per_second <= first <= last < _UNTIL_S * per_second


def _refuse_other_units(main: Mapping[str, _Extent]) -> None:
    # Clocks of simulations begin at 0 and pass through the ranges of seconds and milliseconds.
    if any(0 <= extent.first < _SINCE_S for extent in main.values()):
        return
    for node, extent in main.items():
        for unit, per_second in _UNITS.items():
            if _of_unit(per_second, extent.first, extent.last):
                raise InputError(
                    f"node {node!r}: its times look like {unit} ({extent.first} would be"
                    f" {time_text(extent.first)} in microseconds); expected microseconds since 1970:"
                    f" {_remedy(per_second)}"
                )


def _remedy(per_second: int) -> str:
    if per_second > _MICROSECONDS:
        return f"divide ts and born_ts by {per_second // _MICROSECONDS}"
    return f"multiply ts and born_ts by {_MICROSECONDS // per_second}"


def _most_common(by_node: Mapping[str, Mapping[int, _Extent]]) -> _Extent:
    """Return the extent of the year that most rows are from."""
    by_year: dict[int, _Extent] = {}
    for years in by_node.values():
        for year, extent in years.items():
            known = by_year.get(year, _Extent(0, extent.first, extent.last))
            by_year[year] = _Extent(
                known.rows + extent.rows, min(known.first, extent.first), max(known.last, extent.last)
            )
    return max(by_year.values(), key=lambda each: each.rows)


def _refuse_far_nodes(by_node: Mapping[str, Mapping[int, _Extent]], bounds: Bounds, most: _Extent) -> None:
    for node, years in by_node.items():
        far = [each for each in years.values() if each.last < bounds.first or each.first > bounds.last]
        rows = sum(each.rows for each in far)
        if rows > _ROWS_MAX and 2 * rows > sum(each.rows for each in years.values()):
            raise InputError(
                f"node {node!r}: {rows} of its times are around {time_text(far[0].first)} ({far[0].first}),"
                f" most of the log is around {time_text(most.first)}; expected microseconds since 1970 within"
                " 10 years: check the unit of ts, and the clock of the node"
            )


def time_text(ts: int) -> str:
    """Return a time in microseconds as a text."""
    try:
        return f"{datetime.fromtimestamp(ts / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"the year {1970 + ts // _YEAR_US}"

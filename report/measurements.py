"""The measurements of a benchmark, and whether a later run is slower than the noise explains.

A benchmark writes them into its JSON, beside its own keys: `benchmark` (the command), `date`, `machine`,
`version` (of mqproof), `baseline` (the side that is not ours, or null) and `rows`. A row's name ends in its
unit, as in "64 outstanding: sends/s". A larger value is better if the unit ends in "/s", and worse
otherwise. The description of the keys is in docs/reference/benchmarks.md, "The result files".
"""

import json
import math
import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from mqproof.report.model import Result, Table, Verdict, Witness
from mqproof.report.write import write_text

FILE_BYTES_MAX: Final = 16 << 20
ROUNDS_MIN: Final = 2
"""With fewer rounds the noise is not known."""
_LEAST: Final = 1e-6

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Value = Annotated[float, msgspec.Meta(ge=0)]


class MeasurementsError(Exception):
    """A file is not a benchmark's result. The message names the file and what was expected."""


class Side(msgspec.Struct, frozen=True):
    """The values of one side in one row, a value for each round."""

    median: _Value
    rounds: Annotated[tuple[_Value, ...], msgspec.Meta(min_length=1, max_length=10_000)]


class Row(msgspec.Struct, frozen=True):
    """What one row measured, by side."""

    row: _Name
    sides: Annotated[dict[_Name, Side], msgspec.Meta(min_length=1, max_length=100)]

    @property
    def is_rate(self) -> bool:
        return self.row.endswith("/s")


class Measurements(msgspec.Struct, frozen=True):
    """The part of a benchmark's result that all benchmarks have."""

    benchmark: _Name
    date: _Name
    machine: _Name
    rows: Annotated[tuple[Row, ...], msgspec.Meta(min_length=1, max_length=1000)]
    baseline: _Name | None = None
    version: _Name | None = None
    """The version of mqproof; None in results that are older than this key."""


def described(
    benchmark: str,
    rows: Iterable[tuple[str, Mapping[str, Sequence[float]]]],
    baseline: str | None = None,
) -> dict[str, Any]:
    """Return the keys that each benchmark adds to its result, for these values by row and side."""
    return {
        "benchmark": benchmark,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "version": version("mqproof"),
        "baseline": baseline,
        "rows": [
            {
                "row": row,
                "sides": {
                    side: {"median": statistics.median(values), "rounds": list(values)}
                    for side, values in sides.items()
                },
            }
            for row, sides in rows
        ],
    }


def write(path: Path, result: Mapping[str, Any]) -> None:
    """Write a benchmark's result as JSON. Raises OSError."""
    write_text(path, json.dumps(result, indent=2) + "\n")


def read(path: Path) -> Measurements:
    """Return the measurements in a result file.

    Raises:
        MeasurementsError: the file cannot be read, or is not a benchmark's result.
    """
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise MeasurementsError(f"{path}: {error.strerror or error}") from None
    if len(data) > FILE_BYTES_MAX:
        raise MeasurementsError(
            f"{path}: more than {FILE_BYTES_MAX >> 20} MiB, a benchmark's result expected"
        )
    try:
        return msgspec.json.decode(data, type=Measurements)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MeasurementsError(
            f"{path}: not the result of a benchmark: {error}; write one with: mqproof bench NAME --json FILE"
        ) from None


@dataclass(frozen=True, slots=True)
class Change:
    """How a side's value in a row differs between two runs."""

    row: str
    side: str
    compared: str
    """What is compared: `value`, or `ratio` to the baseline of the same run."""
    old: float
    new: float
    noise: float
    """The change that the rounds of both runs explain, as a part of the old value."""
    verdict: Verdict
    detail: str = ""

    @property
    def gain(self) -> float:
        """The part by which the new run is better; negative if it is worse."""
        return self.new / self.old - 1 if self.old else math.inf if self.new else 0.0


def compare(old: Measurements, new: Measurements) -> tuple[Change, ...]:
    """Compare each row and side that both runs have.

    The ratio to the baseline is compared where both runs have one, because it does not depend on the speed of
    the machine. Otherwise the values are compared, if the machines are the same. VIOLATED is a change for the
    worse that is larger than the ranges of the rounds of both runs together; NOT_TESTED is a row that cannot
    be judged.

    Raises:
        MeasurementsError: the runs are of different benchmarks, or have no row and side in common.
    """
    if old.benchmark != new.benchmark:
        raise MeasurementsError(f"{old.benchmark} cannot be compared with {new.benchmark}")
    earlier = {row.row: row for row in old.rows}
    changes = [
        _change(old, new, earlier[row.row], row, side)
        for row in new.rows
        if row.row in earlier
        for side in row.sides
        if side in earlier[row.row].sides and side not in (old.baseline, new.baseline)
    ]
    if not changes:
        raise MeasurementsError("the two results have no row and side in common")
    return tuple(changes)


def _change(old: Measurements, new: Measurements, before: Row, after: Row, side: str) -> Change:
    base = new.baseline if new.baseline == old.baseline else None
    if base not in before.sides or base not in after.sides:
        base = None
    was, now = (_scores(row, side, base) for row in (before, after))
    # A score is better the larger it is.
    middle, later = statistics.median(was), statistics.median(now)
    noise = (max(was) - min(was) + max(now) - min(now)) / middle if middle else 0.0
    verdict, detail = Verdict.HELD, ""
    if base is None and old.machine != new.machine:
        verdict, detail = Verdict.NOT_TESTED, "the machines or their Python differ"
    elif min(len(was), len(now)) < ROUNDS_MIN:
        verdict, detail = Verdict.NOT_TESTED, f"fewer than {ROUNDS_MIN} rounds: the noise is not known"
    elif noise >= 1:
        verdict, detail = Verdict.NOT_TESTED, "the rounds differ so much that no change would count"
    elif later < middle * (1 - noise):
        verdict, detail = Verdict.VIOLATED, "worse than the noise explains"
    return Change(
        after.row, side, "value" if base is None else "ratio", middle, later, noise, verdict, detail
    )


def _scores(row: Row, side: str, base: str | None) -> list[float]:
    """Return a number for each round that is larger if the round is better."""
    rounds = row.sides[side].rounds
    if base is None:
        return [each if row.is_rate else _inverse(each) for each in rounds]
    pairs = zip(rounds, row.sides[base].rounds, strict=False)
    return [_quotient(mine, other) if row.is_rate else _quotient(other, mine) for mine, other in pairs]


def _inverse(value: float) -> float:
    return _quotient(1.0, value)


def _quotient(part: float, whole: float) -> float:
    """Return the quotient; a value of 0 counts as the smallest that was ever measured."""
    return max(part, _LEAST) / max(whole, _LEAST)


def results(benchmark: str, changes: Iterable[Change]) -> tuple[Result, ...]:
    """Return the changes as the results of a report."""
    return tuple(
        Result(
            id=f"{change.row}, {change.side}",
            name=change.compared,
            layer=benchmark,
            verdict=change.verdict,
            counts={"rows": 1},
            witnesses=(Witness(f"{change.gain:+.1%}, noise {change.noise:.1%}"),)
            if change.verdict is Verdict.VIOLATED
            else (),
            detail=change.detail,
        )
        for change in changes
    )


def changes_table(changes: Iterable[Change]) -> str:
    """Return the changes as lines of at most 80 columns: two for each row and side."""
    lines = []
    for change in changes:
        mark = {Verdict.HELD: "✓", Verdict.VIOLATED: "✗"}.get(change.verdict, "?")
        lines.append(f"{mark} {change.row}, {change.side}"[:80])
        line = f"    {change.compared} {change.gain:+7.1%}, noise {change.noise:.1%}"
        lines.append(line + (f": {change.detail}" if change.detail else ""))
    return "\n".join(lines)


def table(measured: Measurements) -> Table:
    """Return a line for each row: the median and the range of each side, and its ratio to the baseline."""
    base = measured.baseline
    sides = tuple(dict.fromkeys(name for row in measured.rows for name in row.sides))
    compared = tuple(name for name in sides if base in sides and name != base)
    of = {name: f" of {name}" if len(compared) > 1 else "" for name in compared}
    columns = ("row", *sides, *(f"ratio{of[name]} to {base}" for name in compared))
    ratios = {(row.row, name): ratio(row, name, base) for row in measured.rows for name in compared}
    rows = [
        (
            row.row,
            *(_middle(row.sides[name]) if name in row.sides else "" for name in sides),
            *(_two_digits(ratios[row.row, name]) for name in compared),
        )
        for row in measured.rows
    ]
    if compared and len(rows) > 1:
        rows.append(
            ("median of the ratios", *("" for _ in sides), *(_median(ratios, name) for name in compared))
        )
    product = f"mqproof {measured.version}, " if measured.version else ""
    title = f"{measured.benchmark}: {product}{measured.date}, {measured.machine}"
    return Table(title, columns, tuple(rows))


def _middle(side: Side) -> str:
    if len(side.rounds) == 1:
        return _number(side.median)
    return f"{_number(side.median)} ({_number(min(side.rounds))} to {_number(max(side.rounds))})"


def ratio(row: Row, side: str, base: str | None) -> float | None:
    """Return the median ratio of the rounds, above 1 if the side is better; None if one side is missing."""
    if base is None or side not in row.sides or base not in row.sides:
        return None
    return statistics.median(_scores(row, side, base))


def _median(ratios: Mapping[tuple[str, str], float | None], side: str) -> str:
    known = [each for (_, name), each in ratios.items() if name == side and each is not None]
    return _two_digits(statistics.median(known) if known else None)


def _two_digits(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"

"""A campaign of single faults over all files of a store: many points, one verdict each, one table.

The points follow from the seed and their number, so the number of workers changes nothing.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.verdict import catalogue_id
from mqproof.fuzz.store.fault_judge import FaultVerdict
from mqproof.fuzz.store.single_fault import FAULTS, MOMENTS, Point
from mqproof.fuzz.targets.store_rot import StoreRot
from mqproof.report.model import Report, Result, Table, Verdict, Witness

_CHUNK: Final = 250
_WITNESSES_MAX: Final = 20
_MESSAGE_CHARS_MAX: Final = 100
_NUMBER: Final = re.compile(r"\d+")

VIOLATED: Final = "violated"
ENDED: Final = "the process ended"
"""The verdict of a point that ends the process of a released broker."""


@dataclass
class Tally:
    """What the points of a campaign did: counts by type of file, fault and verdict, and the findings."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, str, str]] = field(default_factory=list)
    """The invariant, the message, and the point as a hexadecimal input."""
    violations: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """Counts by type of file, fault, invariant, and message without its numbers."""

    def add(self, other: "Tally") -> None:
        self.counts += other.counts
        self.checked += other.checked
        self.findings += other.findings
        self.violations += other.violations

    def add_finding(self, kind: str, where: Point, invariant: str, message: str) -> None:
        """Add a violation of an invariant by a fault of a type of file."""
        self.findings.append((invariant, message, where.encode().hex()))
        self.violations[kind, where.fault, invariant, _NUMBER.sub("N", message)[:_MESSAGE_CHARS_MAX]] += 1

    @property
    def points(self) -> int:
        return self.counts.total()


def point(seed: int, number: int) -> Point:
    """Return one point of a campaign. Consecutive numbers visit all moments and faults in turn."""
    chance = random.Random(f"{seed}/{number}")
    moment, fault = MOMENTS[number % len(MOMENTS)], FAULTS[number // len(MOMENTS) % len(FAULTS)]
    return Point(moment, chance.randrange(256), chance.randrange(256), fault, chance.randrange(1 << 32))


def run_points(seed: int, numbers: range) -> Tally:
    """Judge the points of these numbers."""
    return judge_all(point(seed, number) for number in numbers)


def judge_all(points: Iterable[Point]) -> Tally:
    """Judge each point on our store, in this process."""
    tally, target = Tally(), StoreRot()
    for where in points:
        failure = judge(target, where.encode())
        if failure is None:
            kind, verdict = target.last
            tally.counts[kind, where.fault, verdict] += 1
        else:
            tally.counts["any", where.fault, VIOLATED] += 1
            tally.add_finding("any", where, failure.invariant, failure.message)
    tally.checked = target.checked
    return tally


def run(
    seed: int, numbers: range, workers: int, seconds_max: float, on_change: Callable[[Tally], None]
) -> Tally:
    """Judge the points with these numbers in some processes. When time is over, no more begin."""
    total, deadline = Tally(), time.monotonic() + seconds_max
    chunks = [numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK)]
    work = partial(run_points, seed)
    with ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(workers)) if workers > 1 else None
        for each in pool.map(work, chunks) if pool else map(work, chunks):
            total.add(each)
            on_change(total)
            if time.monotonic() >= deadline:
                if pool:
                    pool.shutdown(cancel_futures=True)
                break
    return total


def report(command: str, facts: Mapping[str, str], tally: Tally) -> Report:
    """Return the report: one result for each invariant, and the table of verdicts.

    `command` is the command without its number of points; with `--point` it replays a finding.
    """
    return Report(command, tuple(_results(command, tally)), dict(facts), tables=_tables(tally))


def _tables(tally: Tally) -> tuple[Table, ...]:
    if not tally.violations:
        return (table(tally),)
    rows = tuple((*key, f"{count:,}") for key, count in sorted(tally.violations.items()))
    return (table(tally), Table("Violations", ("file", "fault", "invariant", "message", "points"), rows))


def table(tally: Tally) -> Table:
    """Return the number of points by type of file and fault, for each verdict."""
    ended = (ENDED,) if any(key[2] == ENDED for key in tally.counts) else ()
    verdicts = (*FaultVerdict, *ended, VIOLATED)
    rows = sorted({key[:2] for key in tally.counts})
    return Table(
        "Single faults",
        ("file", "fault", *verdicts),
        tuple((*row, *(f"{tally.counts[(*row, verdict)]:,}" for verdict in verdicts)) for row in rows),
    )


def _results(command: str, tally: Tally) -> Iterator[Result]:
    others = {name for name, *_ in tally.findings} - set(StoreRot.invariants)
    for name in (*StoreRot.invariants, *sorted(others)):
        found = [each for each in tally.findings if each[0] == name]
        verdict = Verdict.VIOLATED if found else Verdict.HELD if tally.checked[name] else Verdict.UNKNOWN
        yield Result(
            id=catalogue_id(name, StoreRot.name),
            name=name,
            layer="fuzz",
            verdict=verdict,
            counts={"fault points": tally.checked[name] + len(found)},
            witnesses=tuple(Witness(f"{text} (point {data})") for _, text, data in found[:_WITNESSES_MAX]),
            detail=StoreRot.invariants.get(name, "an error that the store does not document"),
            replay=f"{command} --point {found[0][2]}" if found else "",
            found=len(found),
        )

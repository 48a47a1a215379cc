"""A campaign of single faults over all files of a store: many points, one verdict each, one table.

The points follow from the seed and their number, so the number of workers changes nothing.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
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

VIOLATED: Final = "violated"


@dataclass
class Tally:
    """What the points of a campaign did: counts by type of file, fault and verdict, and the findings."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, str, str]] = field(default_factory=list)
    """The invariant, the message, and the point as a hexadecimal input."""

    def add(self, other: "Tally") -> None:
        self.counts += other.counts
        self.checked += other.checked
        self.findings += other.findings

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
    tally, target = Tally(), StoreRot()
    for number in numbers:
        where = point(seed, number)
        failure = judge(target, where.encode())
        if failure is None:
            kind, verdict = target.last
            tally.counts[kind, where.fault, verdict] += 1
        else:
            tally.counts["any", where.fault, VIOLATED] += 1
            tally.findings.append((failure.invariant, failure.message, where.encode().hex()))
    tally.checked = target.checked
    return tally


def run(seed: int, points: int, workers: int, on_change: Callable[[Tally], None]) -> Tally:
    """Judge the first `points` points of a seed in some processes."""
    total = Tally()
    chunks = [range(begin, min(begin + _CHUNK, points)) for begin in range(0, points, _CHUNK)]
    work = partial(run_points, seed)
    if workers == 1:
        for each in map(work, chunks):
            total.add(each)
            on_change(total)
        return total
    with ProcessPoolExecutor(workers) as pool:
        for each in pool.map(work, chunks):
            total.add(each)
            on_change(total)
    return total


def report(seed: int, points: int, tally: Tally, seconds: float) -> Report:
    """Return the report: one result for each invariant, and the table of verdicts."""
    facts = {"seed": str(seed), "points": str(points), "seconds": f"{seconds:.1f}"}
    return Report(f"mqproof fuzz faults --seed {seed}", tuple(_results(tally)), facts, tables=(table(tally),))


def table(tally: Tally) -> Table:
    """Return the number of points by type of file and fault, for each verdict."""
    verdicts = (*FaultVerdict, VIOLATED)
    rows = sorted({key[:2] for key in tally.counts})
    return Table(
        "Single faults",
        ("file", "fault", *verdicts),
        tuple((*row, *(f"{tally.counts[(*row, verdict)]:,}" for verdict in verdicts)) for row in rows),
    )


def _results(tally: Tally) -> Iterator[Result]:
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
            replay=f"mqproof fuzz faults --point {found[0][2]}" if found else "",
            found=len(found),
        )


def timed(seed: int, points: int, workers: int, on_change: Callable[[Tally], None]) -> tuple[Tally, float]:
    """Run a campaign; return what it found, and its duration in seconds."""
    begin = time.monotonic()
    tally = run(seed, points, workers, on_change)
    return tally, time.monotonic() - begin

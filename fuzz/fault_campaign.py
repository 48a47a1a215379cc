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

from mqproof.fuzz.cluster.damaged_cluster import KINDS, ClusterPoint
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.verdict import catalogue_id
from mqproof.fuzz.store.fault_judge import FaultVerdict
from mqproof.fuzz.store.single_fault import FAULTS, MOMENTS, POINT_BYTES, Fault, Point
from mqproof.fuzz.targets.cluster_rot import ClusterRot
from mqproof.fuzz.targets.store_rot import StoreRot
from mqproof.report.model import Report, Result, Table, Verdict, Witness

_CHUNK: Final = 250
_WITNESSES_MAX: Final = 20
_MESSAGE_CHARS_MAX: Final = 100
_NUMBER: Final = re.compile(r"\d+")

SINGLE: Final = "single"
BROKERS: Final = (SINGLE, *KINDS)
"""The kinds of our brokers: one that has no peer, and those that share their log with others."""

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

    def add_finding(self, kind: str, fault: Fault, data: bytes, invariant: str, message: str) -> None:
        """Add a violation of an invariant by a fault of a type of file; `data` is the point as an input."""
        self.findings.append((invariant, message, data.hex()))
        self.violations[kind, fault, invariant, _NUMBER.sub("N", message)[:_MESSAGE_CHARS_MAX]] += 1

    @property
    def points(self) -> int:
        return self.counts.total()


def point(seed: int, number: int) -> Point:
    """Return one point of a campaign. Consecutive numbers visit all moments and faults in turn."""
    chance = random.Random(f"{seed}/{number}")
    moment, fault = MOMENTS[number % len(MOMENTS)], FAULTS[number // len(MOMENTS) % len(FAULTS)]
    return Point(moment, chance.randrange(256), chance.randrange(256), fault, chance.randrange(1 << 32))


def point_of(kind: str, seed: int, number: int) -> bytes:
    """Return one point of a campaign on a kind of brokers, as an input of its target."""
    where = point(seed, number)
    if kind == SINGLE:
        return where.encode()
    node = random.Random(f"{seed}/{number}/node").randrange(256)
    return ClusterPoint(kind, node, where).encode()


def in_words(kind: str, data: bytes) -> str:
    """Return a point in words."""
    return str(Point.decode(data) if kind == SINGLE else ClusterPoint.decode(data))


def run_points(kind: str, seed: int, numbers: range) -> Tally:
    """Judge the points of these numbers."""
    return judge_all(kind, (point_of(kind, seed, number) for number in numbers))


def judge_all(kind: str, points: Iterable[bytes]) -> Tally:
    """Judge each point on our brokers of a kind, in this process."""
    tally, target = Tally(), target_of(kind)()
    for data in points:
        failure = judge(target, data)
        fault = Point.decode(data[-POINT_BYTES:]).fault
        if failure is None:
            file, verdict = target.last
            tally.counts[file, fault, verdict] += 1
        else:
            tally.counts["any", fault, VIOLATED] += 1
            tally.add_finding("any", fault, data, failure.invariant, failure.message)
    tally.checked = target.checked
    return tally


def target_of(kind: str) -> type[StoreRot] | type[ClusterRot]:
    """Return the fuzz target that judges the points of a kind of brokers."""
    return StoreRot if kind == SINGLE else ClusterRot


def run(
    kind: str, seed: int, numbers: range, workers: int, seconds_max: float, on_change: Callable[[Tally], None]
) -> Tally:
    """Judge the points with these numbers in some processes. When time is over, no more begin."""
    total, deadline = Tally(), time.monotonic() + seconds_max
    chunks = [numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK)]
    work = partial(run_points, kind, seed)
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


def report(command: str, facts: Mapping[str, str], tally: Tally, kind: str = SINGLE) -> Report:
    """Return the report: one result for each invariant, and the table of verdicts.

    `command` is the command without its number of points; with `--point` it replays a finding.
    """
    results = tuple(_results(command, tally, target_of(kind)))
    return Report(command, results, dict(facts), tables=_tables(tally))


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


def _results(command: str, tally: Tally, target: type[StoreRot] | type[ClusterRot]) -> Iterator[Result]:
    others = {name for name, *_ in tally.findings} - set(target.invariants)
    for name in (*target.invariants, *sorted(others)):
        found = [each for each in tally.findings if each[0] == name]
        verdict = Verdict.VIOLATED if found else Verdict.HELD if tally.checked[name] else Verdict.UNKNOWN
        yield Result(
            id=catalogue_id(name, target.name),
            name=name,
            layer="fuzz",
            verdict=verdict,
            counts={"fault points": tally.checked[name] + len(found)},
            witnesses=tuple(Witness(f"{text} (point {data})") for _, text, data in found[:_WITNESSES_MAX]),
            detail=target.invariants.get(name, "an error that the store does not document"),
            replay=f"{command} --point {found[0][2]}" if found else "",
            found=len(found),
        )

"""The campaign of single faults on a released broker: the points of `fault_campaign.py`, on real store files.

Each point costs two starts and a stop, most of which is waiting. So many brokers run at once, in one process.
"""

import logging
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache.artifacts import release_of
from mqproof.conformance.adapters.apache.broker_farm import BrokerFarm, FarmBroker, farm
from mqproof.conformance.adapters.apache.servers import ApacheServerError
from mqproof.conformance.adapters.damaged_brokers import SMALL_FILES, ApacheStore
from mqproof.conformance.damage import damage_run
from mqproof.conformance.damage.cases import Case, Store
from mqproof.conformance.damage.cases import Moment as CaseMoment
from mqproof.conformance.damage.damage_run import Observed, Prepared
from mqproof.fuzz.fault_campaign import VIOLATED, Tally, point
from mqproof.fuzz.store.single_fault import Moment, Point, inject, kind_of
from mqproof.fuzz.store.store_directory import StoreDirectory
from mqproof.spec.catalogue import catalogue

_log = logging.getLogger(__name__)

_CHUNK: Final = 240
"""After so many points, the process is replaced: a broker that did not start leaves threads behind."""
_TRIES_MAX: Final = 2
_PROPERTIES: Final = {**SMALL_FILES, "timerWheelEnable": "false"}
_MOMENTS: Final = {
    Moment.RUNNING: CaseMoment.RUNNING,
    Moment.CLOSED: CaseMoment.STOPPED,
    Moment.KILLED: CaseMoment.KILLED,
    Moment.UNCOUNTED: CaseMoment.KILLED,
}

ENDED: Final = "the process ended"


@dataclass
class _Fault:
    """One point as a case of the suite `damage`; remembers which file it hit."""

    point: Point
    path: str = ""

    def damage(self, store: Store) -> None:
        self.path = inject(self.point, StoreDirectory(store.directory, store.older))


class _OnePoint(ApacheStore):
    """The broker of one point: its first stop is clean, and nothing waits for the second."""

    def __init__(self, broker: FarmBroker) -> None:
        super().__init__(broker)
        self._broker = broker
        self._was_stopped = False

    def stop(self) -> None:
        if self._was_stopped:
            self._broker.discard()
        else:
            super().stop()
            self._was_stopped = True


@dataclass
class Campaign:
    """The points of one release, judged some at a time."""

    release: str
    seed: int
    brokers: int
    seconds_max: float
    on_change: Callable[[Tally], None]
    tally: Tally = field(default_factory=Tally)
    unjudged: int = 0
    """Points without a verdict, because the broker did not stop."""

    def run(self, points: int) -> Tally:
        """Judge points until all are judged or the time is over; points that have begun are completed."""
        deadline = time.monotonic() + self.seconds_max
        for begin in range(0, points, _CHUNK):
            numbers = list(range(begin, min(begin + _CHUNK, points)))
            for _ in range(_TRIES_MAX):
                numbers = self._judge(numbers, deadline)
            for number in numbers if time.monotonic() < deadline else ():
                self._count(point(self.seed, number), "any", ENDED)
            if time.monotonic() >= deadline:
                break
        return self.tally

    def _judge(self, numbers: Sequence[int], deadline: float) -> list[int]:
        """Judge points in one process; return those that have no verdict because the process ended."""
        if not numbers or time.monotonic() >= deadline:
            return list(numbers)
        left: list[int] = []
        with tempfile.TemporaryDirectory(prefix="mqproof-farm-", ignore_cleanup_errors=True) as folder:
            with farm(self.release, Path(folder)) as one:
                first = ApacheStore(one.broker("first", _PROPERTIES))
                with damage_run.prepared(first) as prepared, ThreadPoolExecutor(self.brokers) as pool:
                    judge = partial(self._observe, one, prepared, deadline)
                    for number, observed in zip(numbers, pool.map(judge, numbers), strict=True):
                        if observed is None:
                            left.append(number)
                        else:
                            self._add(point(self.seed, number), *observed)
        return left

    def _observe(
        self, one: BrokerFarm, prepared: Prepared, deadline: float, number: int
    ) -> tuple[str, Observed | None] | None:
        """Return the file and what was seen; None if the time is over or the process ended."""
        if not one.is_alive or time.monotonic() >= deadline:
            return None
        fault = _Fault(point(self.seed, number))
        case = Case(fault.point.encode().hex(), str(fault.point.fault), fault.damage)
        moment = _MOMENTS[fault.point.moment]
        try:
            seen = damage_run.observe(_OnePoint(one.broker(f"point-{number}", _PROPERTIES)), prepared, case, moment)
        except (ApacheServerError, OSError) as error:
            _log.warning("point %s: no verdict: %s", case.name, error)
            return (fault.path, None) if one.is_alive else None
        return (fault.path, Observed(case, moment, seen)) if one.is_alive else None

    def _add(self, where: Point, path: str, observed: Observed | None) -> None:
        if observed is None or "BindException" in (observed.seen.refusal or ""):
            self.unjudged += 1  # it did not stop, or another program took its port
            return
        self._count(where, kind_of(path), observed.verdict)
        names = {each: catalogue()[each].name for each in damage_run.CHECKERS}
        judged = ["ROT-4"] if observed.seen.refusal is not None else ["ROT-1", "ROT-2", "ROT-3"]
        for each in judged:
            lines = observed.violations.get(each, ())
            if lines:
                self.tally.findings.append((names[each], f"{path}: {lines[0]}", where.encode().hex()))
            else:
                self.tally.checked[names[each]] += 1

    def _count(self, where: Point, kind: str, verdict: str) -> None:
        self.tally.add(Tally(Counter({(kind, where.fault, verdict): 1})))
        self.on_change(self.tally)


def verdicts(tally: Tally) -> Iterator[str]:
    """Yield the verdicts of a tally in the order of the table."""
    order = ("refused by name", "reported", "repaired", "not covered by a checksum", "harmless", VIOLATED, ENDED)
    yield from (each for each in order if any(key[2] == each for key in tally.counts))


def released(line: str) -> str:
    """Return the release of `apache:LINE`. Raises UnknownTargetError."""
    return release_of(line)

"""The campaign of single faults on a released broker: the points of `fault_campaign.py`, on real store files.

Each point costs two starts and a stop, most of which is waiting. So many brokers run at once, in one process.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mqproof.conformance.adapters.apache.broker_farm import BrokerFarm, FarmBroker, farm
from mqproof.conformance.adapters.apache.servers import ApacheServerError
from mqproof.conformance.adapters.damaged_brokers import SMALL_FILES, ApacheStore
from mqproof.conformance.damage import damage_run
from mqproof.conformance.damage.cases import NEW_TOPIC, Case, Store
from mqproof.conformance.damage.cases import Moment as CaseMoment
from mqproof.conformance.damage.checkers import CHECKERS
from mqproof.conformance.damage.damage_run import Observed, Prepared
from mqproof.fuzz.fault_campaign import ENDED, Tally
from mqproof.fuzz.store.damaged_files import StoreDirectory, kind_of
from mqproof.fuzz.store.single_fault import Moment, Point, inject
from mqproof.spec.catalogue import catalogue

_log = logging.getLogger(__name__)

_CHUNK: Final = 300
"""After so many points, the process is replaced: a broker that did not start leaves threads behind."""
_TRIES_MAX: Final = 2
_PROPERTIES: Final = {**SMALL_FILES, "timerWheelEnable": "false"}
_MOMENTS: Final = {
    Moment.RUNNING: CaseMoment.RUNNING,
    Moment.CLOSED: CaseMoment.STOPPED,
    Moment.KILLED: CaseMoment.KILLED,
    Moment.UNCOUNTED: CaseMoment.KILLED,
}


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
class ReleasedCampaign:
    """The points of one release, judged some at a time."""

    release: str
    brokers: int
    """How many points are judged at once."""
    seconds_max: float
    on_change: Callable[[Tally], None]
    tally: Tally = field(default_factory=Tally)
    unjudged: int = 0
    """Points without a verdict: the broker did not stop, or its verdicts differed."""

    def run(self, points: Sequence[Point]) -> Tally:
        """Judge the points. When the time is over, no further point begins.

        Raises:
            ApacheMissingError, DriverError: the release cannot be run. TargetError: it serves no messages.
        """
        deadline = time.monotonic() + self.seconds_max
        for begin in range(0, len(points), _CHUNK):
            left = points[begin : begin + _CHUNK]
            for _ in range(_TRIES_MAX):
                left = self._judge(left, deadline) if left else left
            if time.monotonic() >= deadline:
                break
            for where in left:
                self._count(where, "any", ENDED)
        return self.tally

    def _judge(self, points: Sequence[Point], deadline: float) -> list[Point]:
        """Judge points in one process; return those that have no verdict because it ended."""
        left: list[Point] = []
        with (
            TemporaryDirectory(prefix="mqproof-farm-", ignore_cleanup_errors=True) as folder,
            farm(self.release, Path(folder)) as one,
            damage_run.prepared(ApacheStore(one.broker("first", _PROPERTIES))) as prepared,
            ThreadPoolExecutor(self.brokers) as pool,
        ):
            judge = partial(self._observe, one, prepared, deadline)
            for where, observed in zip(points, pool.map(judge, enumerate(points)), strict=True):
                if observed is None:
                    left.append(where)
                else:
                    self._add(where, *observed)
        return left

    def _observe(
        self, one: BrokerFarm, prepared: Prepared, deadline: float, numbered: tuple[int, Point]
    ) -> tuple[str, Observed | None] | None:
        """Return the file and what was seen; None if the time is over or the process ended."""
        if not one.is_alive or time.monotonic() >= deadline:
            return None
        number, where = numbered
        seen = self._observe_once(one, prepared, where, f"point-{number}")
        if seen is not None and seen[1] is not None and (violated := seen[1].violations.keys()):
            # A machine that is too busy can look like a loss, so a violation must be seen twice.
            again = self._observe_once(one, prepared, where, f"point-{number}-again")
            if again is None or again[1] is None or again[1].violations.keys() != violated:
                return again and (again[0], None)
        return seen

    def _observe_once(
        self, one: BrokerFarm, prepared: Prepared, where: Point, name: str
    ) -> tuple[str, Observed | None] | None:
        """As `_observe`, with the name of a new broker."""
        fault = _Fault(where)
        case = Case(where.encode().hex(), str(where.fault), fault.damage)
        moment = _MOMENTS[where.moment]
        broker = _OnePoint(one.broker(name, _PROPERTIES))
        try:
            seen = damage_run.observe(broker, prepared, case, moment)
            if moment is CaseMoment.KILLED:  # a start may cut what no checkpoint counts
                seen.sent = [each for each in seen.sent if each.topic != NEW_TOPIC]
        except (ApacheServerError, OSError) as error:
            _log.warning("point %s: no verdict: %s", case.name, error)
            return (fault.path, None) if one.is_alive else None
        return (fault.path, Observed(case, moment, seen)) if one.is_alive else None

    def _add(self, where: Point, path: str, observed: Observed | None) -> None:
        if observed is None or "BindException" in (observed.seen.refusal or ""):
            self.unjudged += 1
            return
        kind = kind_of(path)
        self._count(where, kind, observed.verdict)
        names = {each: catalogue()[each].name for each in CHECKERS}
        judged = ["ROT-4"] if observed.seen.refusal is not None else ["ROT-1", "ROT-2", "ROT-3"]
        for each in judged:
            if lines := observed.violations.get(each, ()):
                self.tally.add_finding(kind, where.fault, where.encode(), names[each], lines[0])
            else:
                self.tally.checked[names[each]] += 1

    def _count(self, where: Point, kind: str, verdict: str) -> None:
        self.tally.add(Tally(Counter({(kind, where.fault, verdict): 1})))
        self.on_change(self.tally)

"""Long programs for a cluster: an hour of three brokers that elect, with a message every two seconds.

They have few messages and much time, for what grows or expires slowly. The judges are those of the target
`cluster`.
"""

import time
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from mqproof.fuzz.cluster.faults import with_random_faults
from mqproof.fuzz.cluster.program import FAULTS_MAX, Run
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.simulation_target import Simulated
from mqproof.fuzz.targets import cluster
from mqproof.spec import catalogue

_STRETCH: Final = 56
"""The faults of a program begin within 64 seconds; so many times that is an hour."""
_CPU_SECONDS_MAX: Final = 120.0
_ELECTED: Final = 192
_SYNCED: Final = 4
_TWO_MEMBERS: Final = 32
_SKIES: Final = (0, 0, 0, 0, 1, 2, 4)
"""Most hours lose no frames, some do, and one of seven has long delays. All send every two seconds."""
_IDS: Final = (
    *("FLUSH-1", "FLUSH-3", "FLUSH-4", "FLUSH-5", "FLUSH-7", "FLUSH-8"),
    *(f"RAFT-{number}" for number in range(1, 9)),
    *("DELIV-1", "DELIV-2", "DELIV-4", "DELIV-5", "DELIV-12"),
)
INVARIANTS: Final = {each.name: each.statement for each in (catalogue.catalogue()[id_] for id_ in _IDS)}
"""The statements of the invariants of such a group, by their names."""


@dataclass(frozen=True, slots=True)
class Hour:
    """What happened in one simulated hour."""

    number: int
    simulated_s: float
    cpu_s: float
    sends: int
    faults: int
    checked: tuple[str, ...]
    """The names of the invariants that were tested."""
    invariant: str = ""
    """The invariant that was violated; empty if none was."""
    message: str = ""


def program(number: int) -> bytes:
    """Return the program of an hour; the same number always gives the same one."""
    chance = Random(f"hour {number}")
    drawn = bytearray(with_random_faults(number, chance, FAULTS_MAX))
    drawn[4] = _ELECTED | chance.choice((0, _SYNCED)) | chance.choice((0, _TWO_MEMBERS))
    drawn[5] = chance.choice(_SKIES)
    return bytes(drawn)


def simulate(number: int) -> Hour:
    """Simulate one hour and judge it."""
    runs: list[Run] = []

    def play(data: bytes, checked: Counter[str]) -> None:
        runs.append(Run(data, checked, _STRETCH))
        runs[0].run()

    # A killed broker has coroutines that never began.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    target: Simulated = partial(cluster.TARGET, play=play)()
    began_s = time.process_time()
    failure = judge(target, program(number), cpu_seconds=_CPU_SECONDS_MAX)
    return Hour(
        number,
        runs[0].seconds,
        time.process_time() - began_s,
        runs[0].sends,
        runs[0].faults_drawn,
        tuple(sorted(target.checked)),
        failure.invariant if failure else "",
        failure.message if failure else "",
    )

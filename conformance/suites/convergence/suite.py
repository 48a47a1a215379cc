"""The convergence suite of `mqproof conform`: our name servers, brokers and a client in simulated time.

An example is one run of a cluster: random kills, losses of power, cut links and starts, and then calm.
"""

from collections.abc import Callable
from typing import Final

from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.seeded_runs import ScriptedRun, SeededSuite
from mqproof.conformance.suites.convergence.checkers import CHECKERS
from mqproof.conformance.suites.convergence.dimensions import DIMENSIONS
from mqproof.conformance.suites.convergence.target import Play

CONVERGENCE: Final = SeededSuite(
    "convergence", tuple(CHECKERS), "clusters", 1, "our own brokers, name servers and client", DIMENSIONS
)
_OPENING: Final = "two name servers, two brokers and a client"
listed = CONVERGENCE.listed
lines = CONVERGENCE.lines


def run(options: RunOptions, progress: Callable[[int, int], None], play: Play) -> Part:
    """Run and judge one cluster per seed with `play`.

    Raises UnknownTargetError: the target is not our own code.
    """
    return CONVERGENCE.run(options, progress, lambda seed: ScriptedRun(play(seed), CHECKERS, _OPENING))

"""The dledger suite of `mqproof conform`: our group in simulated time, seen at the ports of its members.

An example is one run of a group: random appends, kills, losses of power, cut links, votes and transfers.
"""

from collections.abc import Callable
from typing import Final

from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.seeded_runs import ScriptedRun, SeededSuite
from mqproof.conformance.suites.dledger.checkers import CHECKERS
from mqproof.conformance.suites.dledger.dimensions import DIMENSIONS
from mqproof.conformance.suites.dledger.target import Play

DLEDGER: Final = SeededSuite("dledger", tuple(CHECKERS), "groups", 1, "our own group", DIMENSIONS)
_OPENING: Final = "a group of three members"
listed = DLEDGER.listed
lines = DLEDGER.lines


def run(options: RunOptions, progress: Callable[[int, int], None], play: Play) -> Part:
    """Run and judge one group per seed with `play`.

    Raises UnknownTargetError: the target is not our own code.
    """
    return DLEDGER.run(options, progress, lambda seed: ScriptedRun(play(seed), CHECKERS, _OPENING))

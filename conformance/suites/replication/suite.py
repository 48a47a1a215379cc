"""The replication suite of `mqproof conform`: our master and slave in simulated time.

An example is one run of a pair: random sends, crashes, cut links, and reads from the slave.
"""

from collections.abc import Callable
from typing import Final

from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.seeded_runs import SeededSuite
from mqproof.conformance.suites.replication.checkers import CHECKERS
from mqproof.conformance.suites.replication.dimensions import DIMENSIONS
from mqproof.conformance.suites.replication.session import PairSession
from mqproof.conformance.suites.replication.target import Play

REPLICATION: Final = SeededSuite(
    "replication", tuple(CHECKERS), "pairs", 1, "our own master and slave", DIMENSIONS
)
listed = REPLICATION.listed
lines = REPLICATION.lines


def run(options: RunOptions, progress: Callable[[int, int], None], play: Play) -> Part:
    """Run and judge one pair per seed with `play`.

    Raises UnknownTargetError: the target is not our own code.
    """
    return REPLICATION.run(options, progress, lambda seed: PairSession(play(seed)))

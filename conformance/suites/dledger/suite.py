"""The dledger suite of `mqproof conform`: a group seen at the ports of its members.

Our own group runs in simulated time, a group of Apache's in real processes.

An example is one run of a group: random appends, kills, losses of power, cut links, votes and transfers.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.seeded_runs import ScriptedRun, SeededSuite
from mqproof.conformance.engine.targets import APACHE
from mqproof.conformance.engine.value_pairs import NO_DIMENSIONS
from mqproof.conformance.suites.dledger.checkers import CHECKERS
from mqproof.conformance.suites.dledger.dimensions import DIMENSIONS
from mqproof.conformance.suites.dledger.target import Play

DLEDGER: Final = SeededSuite("dledger", tuple(CHECKERS), "groups", 1, "our own group", DIMENSIONS)
RELEASED: Final = replace(
    DLEDGER,
    examples_per_run=25,
    needs="Apache's groups",
    dimensions=NO_DIMENSIONS,
    kind=APACHE.removesuffix(":"),
)
"""The suite on real processes, whose runs take a minute or more."""
_OPENING: Final = "a group of three members"
listed = DLEDGER.listed
lines = DLEDGER.lines


def run(options: RunOptions, progress: Callable[[int, int], None], play: Play) -> Part:
    """Run and judge one group per seed with `play`.

    Raises UnknownTargetError: the target is neither our own code nor a release of Apache's.
    """
    suite = RELEASED if options.target.startswith(APACHE) else DLEDGER
    return suite.run(options, progress, lambda seed: ScriptedRun(play(seed), CHECKERS, _OPENING))

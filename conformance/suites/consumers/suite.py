"""The consumers suite of `mqproof conform`: our push consumers as the members of a group, on our broker.

They are judged by the same model and invariants as the members that the delivery suite simulates. An example
is a member that joins or leaves; each group has CHANGES of them and a seed of its own.
"""

from collections.abc import Callable
from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.seeded_runs import SeededSuite
from mqproof.conformance.suites.consumers.dimensions import DIMENSIONS
from mqproof.conformance.suites.consumers.session import GroupSession
from mqproof.conformance.suites.consumers.target import CHANGES, Play
from mqproof.conformance.suites.delivery.checkers import CHECKERS

CONSUMERS: Final = SeededSuite(
    "consumers", (*CHECKERS, SPEC_1), "groups", CHANGES, "our own consumers", DIMENSIONS
)
listed = CONSUMERS.listed
lines = CONSUMERS.lines


def run(options: RunOptions, progress: Callable[[int, int], None], play: Play) -> Part:
    """Run and judge one group per seed with `play`.

    Raises UnknownTargetError: the target is not our own broker.
    """
    return CONSUMERS.run(options, progress, lambda seed: GroupSession(play(seed)))

"""The durability suite, as `conform --suite flush` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Need, Suite, machine_of, scenario_of
from mqproof.conformance.suites.flush.checkers import CHECKERS, OF_STEPS
from mqproof.conformance.suites.flush.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.flush.machine import FlushMachine
from mqproof.conformance.suites.flush.target import Capability

_CRASHES: Final = (Capability.KILL, Capability.OS_CRASH, Capability.POWER_LOSS)
_ENDS: Final = (*_CRASHES, Capability.CLEAN_RESTART)
_NEEDS: Final = {
    "FLUSH-1": Need(frozenset({Capability.FLUSH_MODE, Capability.SYNC_FLUSH}), frozenset(_CRASHES)),
    "FLUSH-2": Need(frozenset({Capability.FLUSH_MODE, Capability.ASYNC_FLUSH}), frozenset({Capability.KILL})),
    "FLUSH-5": Need(ways=frozenset(_CRASHES)),
    "FLUSH-7": Need(frozenset({Capability.SIMULATED})),
    "FLUSH-8": Need(ways=frozenset(_ENDS)),
    "DELIV-5": Need(frozenset({Capability.COMMIT_OFFSET})),
}

FLUSH: Final = Suite(
    "flush",
    "Flush.tla",
    (*CHECKERS, *OF_STEPS, SPEC_1),
    _NEEDS,
    machine_of(FlushMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""One broker and its store: sends, pulls, offsets, crashes."""

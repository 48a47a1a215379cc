"""The suite of timers, as `conform --suite timers` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Need, Suite, machine_of, scenario_of
from mqproof.conformance.suites.timers.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.timers.machine import TimersMachine
from mqproof.conformance.suites.timers.target import Capability

TIMERS: Final = Suite(
    "timers",
    "Timers.tla",
    ("DELIV-8", "TIMER-1", "TIMER-2", "TIMER-3", "TIMER-4", "TIMER-5", SPEC_1),
    {"TIMER-1": Need(one_of=frozenset({Capability.LONG_WAITS}))},
    machine_of(TimersMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""A broker's timers: messages that wait for a time, and their recalls."""

"""The suite of pulls and offsets, as `conform --suite offsets` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite, machine_of, scenario_of
from mqproof.conformance.suites.offsets.checkers import CHECKERS
from mqproof.conformance.suites.offsets.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.offsets.machine import OffsetsMachine

OFFSETS: Final = Suite(
    "offsets",
    "Delivery.tla",
    (*CHECKERS, SPEC_1),
    {},
    machine_of(OffsetsMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""One broker: pulls from any offset, tags, waiting pulls, the group's offsets, expiry."""

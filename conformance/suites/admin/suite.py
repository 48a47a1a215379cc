"""The administration suite, as `conform --suite admin` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite, machine_of, scenario_of
from mqproof.conformance.suites.admin.checkers import CHECKERS
from mqproof.conformance.suites.admin.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.admin.machine import AdminMachine

ADMIN: Final = Suite(
    "admin",
    "Delivery.tla",
    (*CHECKERS, SPEC_1),
    {},
    machine_of(AdminMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""Administration of a broker: topics, groups, offsets and message queries."""

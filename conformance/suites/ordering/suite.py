"""The suite of orderly consumption, as `conform --suite ordering` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite, machine_of, scenario_of
from mqproof.conformance.suites.ordering.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.ordering.machine import OrderingMachine

ORDERING: Final = Suite(
    "ordering",
    "OrderLock.tla",
    ("DELIV-13", SPEC_1),
    {},
    machine_of(OrderingMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""A broker's queue locks: the holder of each queue in each group, and the duration of its lock."""

"""The suite of delivery and rebalance, as `conform --suite delivery` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite, machine_of, scenario_of
from mqproof.conformance.suites.delivery.checkers import CHECKERS
from mqproof.conformance.suites.delivery.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.delivery.machine import DeliveryMachine

DELIVERY: Final = Suite(
    "delivery",
    "Group.tla",
    (*CHECKERS, SPEC_1),
    {},
    machine_of(DeliveryMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""A broker and a group: its members, their notifications, and the offsets at which they start."""

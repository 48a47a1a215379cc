"""The suite of delivery and rebalance, as `conform --suite delivery` runs it."""

from typing import Final

from mqproof.conformance.engine.suite_run import Suite
from mqproof.conformance.suites.delivery.checkers import CHECKERS
from mqproof.conformance.suites.delivery.machine import DeliveryMachine
from mqproof.conformance.suites.flush.session import SPEC_1

DELIVERY: Final = Suite(
    "delivery",
    "Group.tla",
    (*CHECKERS, SPEC_1),
    {},
    DeliveryMachine,
)
"""A broker and a group: who is there, who is told, who begins where."""

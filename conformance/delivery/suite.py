"""The suite of delivery and rebalance, as `conform --suite delivery` runs it."""

from typing import Final

from conformance.delivery.checkers import CHECKERS
from conformance.delivery.machine import DeliveryMachine
from conformance.session import SPEC_1
from conformance.suite import Suite

DELIVERY: Final = Suite(
    "delivery",
    "Group.tla",
    (*CHECKERS, SPEC_1),
    {},
    DeliveryMachine,
)
"""A broker and a group: who is there, who is told, who begins where."""

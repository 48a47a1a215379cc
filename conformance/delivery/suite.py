"""The suite of delivery and rebalance, as `conform --suite delivery` runs it."""

from typing import Final

from mqproof.conformance.delivery.checkers import CHECKERS
from mqproof.conformance.delivery.machine import DeliveryMachine
from mqproof.conformance.session import SPEC_1
from mqproof.conformance.suite import Suite

DELIVERY: Final = Suite(
    "delivery",
    "Group.tla",
    (*CHECKERS, SPEC_1),
    {},
    DeliveryMachine,
)
"""A broker and a group: who is there, who is told, who begins where."""

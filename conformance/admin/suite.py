"""The suite of administration, as `conform --suite admin` runs it."""

from typing import Final

from mqproof.conformance.admin.checkers import CHECKERS
from mqproof.conformance.admin.machine import AdminMachine
from mqproof.conformance.session import SPEC_1
from mqproof.conformance.suite import Suite

ADMIN: Final = Suite(
    "admin",
    "Delivery.tla",
    (*CHECKERS, SPEC_1),
    {},
    AdminMachine,
)
"""A broker's administration: topics, groups, offsets, look-ups."""

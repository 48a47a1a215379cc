"""The suite of administration, as `conform --suite admin` runs it."""

from typing import Final

from mqproof.conformance.engine.suite_run import Suite
from mqproof.conformance.suites.admin.checkers import CHECKERS
from mqproof.conformance.suites.admin.machine import AdminMachine
from mqproof.conformance.suites.flush.session import SPEC_1

ADMIN: Final = Suite(
    "admin",
    "Delivery.tla",
    (*CHECKERS, SPEC_1),
    {},
    AdminMachine,
)
"""A broker's administration: topics, groups, offsets, look-ups."""

"""The suite of pulls and offsets, as `conform --suite offsets` runs it."""

from typing import Final

from conformance.offsets.checkers import CHECKERS
from conformance.offsets.machine import OffsetsMachine
from conformance.session import SPEC_1
from conformance.suite import Suite

OFFSETS: Final = Suite(
    "offsets",
    "Delivery.tla",
    (*CHECKERS, SPEC_1),
    {},
    OffsetsMachine,
)
"""One broker: pulls from anywhere, tags, waits, the group's offsets, expiry."""

"""The suite of pulls and offsets, as `conform --suite offsets` runs it."""

from typing import Final

from mqproof.conformance.offsets.checkers import CHECKERS
from mqproof.conformance.offsets.machine import OffsetsMachine
from mqproof.conformance.session import SPEC_1
from mqproof.conformance.suite import Suite

OFFSETS: Final = Suite(
    "offsets",
    "Delivery.tla",
    (*CHECKERS, SPEC_1),
    {},
    OffsetsMachine,
)
"""One broker: pulls from anywhere, tags, waits, the group's offsets, expiry."""

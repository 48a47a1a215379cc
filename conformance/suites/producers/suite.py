"""The suite of producers, as `conform --suite producers` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite
from mqproof.conformance.suites.producers.machine import ProducerMachine

PRODUCERS: Final = Suite(
    "producers",
    "QueueChoice.tla",
    ("ROUTE-5", "ROUTE-6", SPEC_1),
    {},
    ProducerMachine,
)
"""A producer: which broker it sends to, which next when that fails, and whom it rests."""

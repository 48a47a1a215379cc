"""The producer suite, as `conform --suite producers` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite, machine_of, scenario_of
from mqproof.conformance.suites.producers.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.producers.machine import ProducerMachine

PRODUCERS: Final = Suite(
    "producers",
    "QueueChoice.tla",
    ("ROUTE-5", "ROUTE-6", SPEC_1),
    {},
    machine_of(ProducerMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""A producer: its choice of brokers, its retries on other brokers, and the brokers that it rests."""

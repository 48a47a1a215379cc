"""The suite of retries and dead letters, as `conform --suite retry` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite, machine_of, scenario_of
from mqproof.conformance.suites.retry.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.retry.machine import RetryMachine

RETRY: Final = Suite(
    "retry",
    "Delivery.tla",
    ("DELIV-2", "DELIV-3", "DELIV-7", "DELIV-8", SPEC_1),
    {},
    machine_of(RetryMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""One broker: delay levels, redelivered messages, dead letters."""

"""The suite of retries and dead letters, as `conform --suite retry` runs it."""

from typing import Final

from mqproof.conformance.retry.machine import RetryMachine
from mqproof.conformance.session import SPEC_1
from mqproof.conformance.suite import Suite

RETRY: Final = Suite(
    "retry",
    "Delivery.tla",
    ("DELIV-2", "DELIV-3", "DELIV-7", "DELIV-8", SPEC_1),
    {},
    RetryMachine,
)
"""One broker: delay levels, messages that come again, dead letters."""

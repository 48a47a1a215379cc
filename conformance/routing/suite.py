"""The suite of name servers, as `conform --suite routing` runs it."""

from typing import Final

from conformance.routing.checkers import CHECKERS
from conformance.routing.machine import RoutingMachine
from conformance.routing.target import Capability
from conformance.session import SPEC_1
from conformance.suite import Suite

ROUTING: Final = Suite(
    "routing",
    "Routing.tla",
    (*CHECKERS, SPEC_1),
    {
        "ROUTE-3": (frozenset({Capability.WAIT}), frozenset()),
        "ROUTE-4": (frozenset({Capability.CLIENT}), frozenset()),
    },
    RoutingMachine,
    lambda session: session.faults,
)
"""One name server: registrations, silence, closed connections, routes."""

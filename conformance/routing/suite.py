"""The suite of name servers, as `conform --suite routing` runs it."""

from typing import Final

from conformance.routing.checkers import CHECKERS
from conformance.routing.machine import RoutingMachine
from conformance.routing.target import Capability
from conformance.session import SPEC_1
from conformance.suite import Need, Suite

ROUTING: Final = Suite(
    "routing",
    "Routing.tla",
    (*CHECKERS, SPEC_1),
    {
        "ROUTE-3": Need(frozenset({Capability.WAIT})),
        "ROUTE-4": Need(frozenset({Capability.CLIENT})),
    },
    RoutingMachine,
)
"""One name server: registrations, silence, closed connections, routes."""

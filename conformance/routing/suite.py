"""The suite of name servers, as `conform --suite routing` runs it."""

from typing import Final

from mqproof.conformance.routing.checkers import CHECKERS
from mqproof.conformance.routing.machine import RoutingMachine
from mqproof.conformance.routing.target import Capability
from mqproof.conformance.session import SPEC_1
from mqproof.conformance.suite import Need, Suite

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

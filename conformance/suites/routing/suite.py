"""The routing suite, as `conform --suite routing` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Need, Suite, machine_of, scenario_of
from mqproof.conformance.suites.routing.checkers import CHECKERS
from mqproof.conformance.suites.routing.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.routing.machine import RoutingMachine
from mqproof.conformance.suites.routing.target import Capability

ROUTING: Final = Suite(
    "routing",
    "Routing.tla",
    (*CHECKERS, SPEC_1),
    {
        "ROUTE-3": Need(frozenset({Capability.WAIT})),
        "ROUTE-4": Need(frozenset({Capability.CLIENT})),
    },
    machine_of(RoutingMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""One name server: registrations, silence, closed connections, routes."""

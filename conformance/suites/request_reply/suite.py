"""The suite of requests and replies, as `conform --suite request_reply` runs it."""

from typing import Final

from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite, machine_of, scenario_of
from mqproof.conformance.suites.request_reply.dimensions import DIMENSIONS, scenario
from mqproof.conformance.suites.request_reply.machine import RequestReplyMachine

REQUEST_REPLY: Final = Suite(
    "request_reply",
    "RequestReply.tla",
    ("REPLY-1", "REPLY-2", "REPLY-3", "REPLY-4", SPEC_1),
    {},
    machine_of(RequestReplyMachine),
    DIMENSIONS,
    scenario_of(scenario),
)
"""Requests between clients through a broker: their replies, and their errors."""

"""What the consumers suite needs of the consumers that it examines."""

from collections.abc import Callable
from typing import Final

from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.delivery.oracle import State
from mqproof.conformance.suites.delivery.steps import Operation

CHANGES: Final = 8
"""The number of members of one group that join or leave."""
Play = Callable[[int], Stepped[State, Operation]]
"""Runs one group whose members join and leave as the seed determines."""

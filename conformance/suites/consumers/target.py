"""What the consumers suite needs of the consumers that it examines."""

from collections.abc import Callable
from typing import Final

from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.delivery.oracle import State
from mqproof.conformance.suites.delivery.steps import Operation

CHANGES: Final = 8
"""The number of drawn members of one group that join or leave."""
ROWS: Final = 2
"""The number of rows of the dimensions that a group meets after them."""


class Group(Stepped[State, Operation]):
    """A group after its run."""

    scenarios: list[list[str]]
    """The script of each row."""


Play = Callable[[int], Group]
"""Runs one group whose members join and leave as the seed determines."""

"""What the dledger suite needs of the group that it examines."""

from collections.abc import Callable

from mqproof.conformance.suites.dledger.steps import Life

Play = Callable[[int], Life]
"""Runs a group, with the appends and faults that the seed determines, and returns the observations."""

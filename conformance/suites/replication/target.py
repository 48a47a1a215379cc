"""What the replication suite needs of the pair that it examines."""

from collections.abc import Callable

from mqproof.conformance.suites.replication.checkers import Life

Play = Callable[[int], Life]
"""Runs a master and its slave, with the faults that the seed determines, and returns the observations."""

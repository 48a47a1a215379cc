"""What the convergence suite needs of the cluster that it examines."""

from collections.abc import Callable

from mqproof.conformance.suites.convergence.steps import Life

Play = Callable[[int], Life]
"""Runs a cluster with one client, with the faults that the seed determines, and returns the observations."""

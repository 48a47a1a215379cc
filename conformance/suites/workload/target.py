"""What the workload suite needs of a cluster."""

from collections.abc import Callable

from mqproof.conformance.engine.fault_commands import FaultCommands
from mqproof.conformance.history.lines import Line
from mqproof.conformance.history.workload import Workload

Play = Callable[[str, Workload, Callable[[str], None], FaultCommands], list[Line]]
"""Runs a workload on the target of this name, reports each stage, and returns the history.

Raises ValueError if there is no such target, TargetError if it cannot be driven.
"""

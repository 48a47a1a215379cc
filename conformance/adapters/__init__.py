"""Connects the suites to an implementation: one module for each kind of target.

Start with `resolve`, which turns the name passed to `--target` into a factory of targets, and with
`template.py`, an adapter to copy. The targets of the flush suite implement the protocol `Target`.
"""

from mqproof.conformance.adapters.resolution import resolve
from mqproof.conformance.engine.targets import TargetError, UnknownTargetError
from mqproof.conformance.suites.flush.target import Target

__all__ = ["Target", "TargetError", "UnknownTargetError", "resolve"]

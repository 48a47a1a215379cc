"""Mutants of a client's traces: those that behaviours of Tracing detect."""

from typing import Final

from mqproof.conformance.mutants import tracing
from mqproof.fuzz.defects.defect import as_of_target

MUTANTS: Final = tuple(as_of_target(each, "client-traces", {}) for each in tracing.MUTANTS.values())

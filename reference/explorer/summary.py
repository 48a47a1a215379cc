"""What is left of an exploration whose states are in other processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from mqproof.reference.explorer.search import Violation
from mqproof.reference.model import StateT


@dataclass(frozen=True, slots=True)
class Summary(Generic[StateT]):
    """What an exploration counted: the same from any number of processes, and from Spark."""

    states: int
    depth: int
    """Number of states on the longest of the shortest paths, as TLC counts it."""
    taken: Mapping[str, int]
    """How often each action was taken."""
    violation: Violation[StateT] | None
    memory_bytes: int | None = None
    """Resident memory gained on the way, in all processes; None where it is not known."""

    @property
    def edges(self) -> int:
        """Steps between states, those to a known state included."""
        return sum(self.taken.values())

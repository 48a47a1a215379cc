"""The summary of an exploration whose states are in other processes, or on the disk."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from mqproof.reference.explorer.search import Violation
from mqproof.reference.model import StateT


@dataclass(frozen=True, slots=True)
class Summary(Generic[StateT]):
    """The counts of an exploration: the same for any number of processes, and on Spark."""

    states: int
    depth: int
    """Number of states on the longest of the shortest paths, as TLC counts it."""
    taken: Mapping[str, int]
    """How often each action was taken."""
    violation: Violation[StateT] | None
    memory_bytes: int | None = None
    """Resident memory gained during the exploration, in all processes; None if it is not known."""
    disk_bytes: int | None = None
    """The most that its files held; None for an explorer without files."""
    collision: float | None = None
    """The probability that fingerprints collided, so that a state was missed; None if states are compared."""

    @property
    def edges(self) -> int:
        """Steps between states, including those to a known state."""
        return sum(self.taken.values())

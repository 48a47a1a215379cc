"""The interface of a fuzz target, and the exception by which it reports a broken invariant."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

ONLY_DOCUMENTED_ERRORS: Final = "OnlyDocumentedErrors"
"""Held by every target: an error that its interface does not document is a finding."""

ENDS_IN_TIME: Final = "EndsInTime"
"""Held by every target: one input does not keep a processor busy for seconds."""


class Finding(Exception):  # noqa: N818  (it is what a run is for, not an error of the program)
    """An invariant is broken; `invariant` is its catalogue name where it has one."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(message)
        self.invariant = invariant


class Target(Protocol):
    """Tests invariants on arbitrary bytes. Its module's docstring opens with the invariants it tests."""

    @property
    def name(self) -> str:
        """As on the command line; its module in fuzz/targets has underscores for the hyphens."""
        ...

    @property
    def invariants(self) -> Mapping[str, str]:
        """Invariant name (the catalogue's where it is there) to its statement in one sentence."""
        ...

    @property
    def watched(self) -> tuple[str, ...]:
        """Packages or modules whose coverage guides the search."""
        ...

    @property
    def input_bytes_max(self) -> int: ...

    @property
    def checked(self) -> Counter[str]:
        """How many inputs really put each invariant to the test; none means that its verdict is unknown."""
        ...

    def seeds(self) -> Iterable[bytes]:
        """Inputs to begin with: valid ones, so that mutants of them get past the first check."""
        ...

    def run(self, data: bytes) -> None:
        """Judge one input. The same input gives the same outcome, whatever ran before.

        Raises:
            Finding: an invariant is broken. Any other exception is a finding too.
        """
        ...

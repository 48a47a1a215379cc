"""The interface of a fuzz target, and the exception by which it reports a violated invariant."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

ONLY_DOCUMENTED_ERRORS: Final = "OnlyDocumentedErrors"
"""An invariant of every target: an error that the target's interface does not document is a finding."""

ENDS_IN_TIME: Final = "EndsInTime"
"""An invariant of every target: one input does not keep a processor busy for seconds."""


class Finding(Exception):  # noqa: N818  (it is what a run is for, not an error of the program)
    """Reports that an invariant is violated; `invariant` is its catalogue name if it has one."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(message)
        self.invariant = invariant


@contextmanager
def unobserved() -> Iterator[None]:
    """Suspend the measurement of coverage in the block, which makes the code in it many times faster.

    A target judges a result there: it runs the same code on the same bytes again, and reaches nothing new.
    """
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(trace)


class Target(Protocol):
    """Tests invariants on arbitrary bytes.

    The docstring of its module begins with the invariants it tests.
    """

    @property
    def name(self) -> str:
        """The name on the command line. The module in fuzz/targets has underscores instead of hyphens."""
        ...

    @property
    def invariants(self) -> Mapping[str, str]:
        """Maps each invariant's name (the catalogue's, if it is there) to its statement in one sentence."""
        ...

    @property
    def watched(self) -> tuple[str, ...]:
        """The packages or modules whose coverage guides the search."""
        ...

    @property
    def input_bytes_max(self) -> int: ...

    @property
    def checked(self) -> Counter[str]:
        """The number of inputs that actually tested each invariant.

        Zero means that its verdict is unknown.
        """
        ...

    def seeds(self) -> Iterable[bytes]:
        """Return the inputs to begin with. They are valid, so that mutants of them pass the first check."""
        ...

    def run(self, data: bytes) -> None:
        """Judge one input. The same input gives the same outcome, independent of earlier inputs.

        Raises:
            Finding: an invariant is violated. Any other exception is a finding too.
        """
        ...

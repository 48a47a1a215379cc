"""Keeps the choices of the failing example, so that Hypothesis can repeat and shrink it in later searches."""

from collections.abc import Iterable

from hypothesis.database import ExampleDatabase

_SECONDARY = b".secondary"
_OTHERS = (_SECONDARY, b".pareto")
"""The ends of the keys under which Hypothesis keeps examples that need not fail."""


class FailingExample(ExampleDatabase):
    """A database with the first failing example of a search.

    It is in the secondary corpus: an example of the primary corpus is repeated, but not shrunk again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._choices: bytes | None = None

    def save(self, key: bytes, value: bytes) -> None:
        """Keep the value if it is the first one that failed."""
        if self._choices is None and not key.endswith(_OTHERS):
            self._choices = value

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Yield the example, if there is one and the key is that of the secondary corpus."""
        if self._choices is not None and key.endswith(_SECONDARY):
            yield self._choices

    def delete(self, key: bytes, value: bytes) -> None:
        """Keep the example: it may fail again with another scenario."""

"""Clients' entries that a leader has accepted but not committed yet."""

from itertools import takewhile
from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """Pending entries by index, with their terms: in another term, an index may have another entry."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, T]] = {}

    def add(self, index: int, term: int, client: T) -> None:
        self._waiting[index] = (term, client)

    def committed(self, index: int, term: int) -> list[T]:
        """Return the clients that may be notified of success: all up to `index` is committed in this term.

        Clients whose entry was accepted in another term are removed but not returned.
        """
        done = list(takewhile(lambda at: at <= index, self._waiting))  # they were added in ascending order
        taken = [self._waiting.pop(at) for at in done]
        return [client for its_term, client in taken if its_term == term]

    def drop(self) -> list[T]:
        """Remove and return all waiting clients. It is not known whether their entries will be committed."""
        dropped = [client for _, client in self._waiting.values()]
        self._waiting.clear()
        return dropped

"""Clients' entries between being taken by a leader and being committed."""

from itertools import takewhile
from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """By index, with the term in which each was taken: in another term another entry may stand there."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, T]] = {}

    def add(self, index: int, term: int, client: T) -> None:
        self._waiting[index] = (term, client)

    def committed(self, index: int, term: int) -> list[T]:
        """Who may be told of success: the member, in this term, learned that all up to `index` is committed.
        Who waits for an entry of another term is told nothing here."""
        done = list(takewhile(lambda at: at <= index, self._waiting))  # they were added in ascending order
        taken = [self._waiting.pop(at) for at in done]
        return [client for its_term, client in taken if its_term == term]

    def drop(self) -> list[T]:
        """Everybody who waits: nobody knows what becomes of their entries."""
        dropped = [client for _, client in self._waiting.values()]
        self._waiting.clear()
        return dropped

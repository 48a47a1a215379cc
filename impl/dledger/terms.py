"""The term of each entry of a ledger. Elections and comparisons need nothing else of the entries.

Entries deleted because of their age were committed at all members, so their terms are not needed any more.
"""

from bisect import bisect_right
from collections.abc import Iterable

from mqproof.impl.dledger.rpc_bodies import NO_TERM


class Terms:
    """Terms by index, from `begin` on. Terms never decrease, so only the start of each term is stored."""

    def __init__(self, terms: Iterable[int] = (), begin: int = 0) -> None:
        self._starts: list[int] = []
        self._terms: list[int] = []
        self.begin = begin
        """The index of the first entry that exists, or would be next."""
        self.end = begin - 1
        """The index of the last entry; NO_INDEX when there never was one."""
        for term in terms:
            self.append(term)

    @property
    def end_term(self) -> int:
        return self._terms[-1] if self._terms else NO_TERM

    def at(self, index: int) -> int | None:
        """Return the term of the entry at `index`: NO_TERM before the first entry.

        Returns None after the last entry and where entries were deleted.
        """
        if index > self.end or 0 <= index < self.begin:
            return None
        if index < 0:
            return NO_TERM
        if index >= self._starts[-1]:
            return self._terms[-1]
        return self._terms[bisect_right(self._starts, index) - 1]

    def agrees(self, index: int, term: int) -> bool:
        """Return whether the entry at `index` is of that term. For deleted entries this is assumed."""
        return 0 <= index < self.begin or self.at(index) == term

    def first_of(self, index: int) -> int:
        """Return the first existing index of the term of the entry at `index`."""
        return self._starts[bisect_right(self._starts, index) - 1]

    def append(self, term: int) -> None:
        assert term >= self.end_term, f"an entry of term {term} behind one of {self.end_term}"
        self.end += 1
        if term != self.end_term:
            self._starts.append(self.end)
            self._terms.append(term)

    def cut(self, end: int) -> None:
        """Remove the terms of entries after `end`."""
        assert end <= self.end, f"cut after {end}, the ledger ends at {self.end}"
        self.end = end
        while self._starts and self._starts[-1] > end:
            self._starts.pop()
            self._terms.pop()

"""Which term each entry of a ledger is of: all that elections and comparisons need of it.

What was deleted for its age all members had, committed: of that nothing needs to be known any more.
"""

from bisect import bisect_right
from collections.abc import Iterable

from mqproof.impl.dledger.rpc_bodies import NO_TERM


class Terms:
    """Terms by index, from `begin` on. Terms never fall, so runs of one term are kept, not entries."""

    def __init__(self, terms: Iterable[int] = (), begin: int = 0) -> None:
        self._starts: list[int] = []
        self._terms: list[int] = []
        self.begin = begin
        """Index of the first entry that there is, or would be."""
        self.end = begin - 1
        """Index of the last entry; NO_INDEX when there never was one."""
        for term in terms:
            self.append(term)

    @property
    def end_term(self) -> int:
        return self._terms[-1] if self._terms else NO_TERM

    def at(self, index: int) -> int | None:
        """The term of the entry at `index`; NO_TERM before the first, None behind the last and where entries
        were deleted."""
        if index > self.end or 0 <= index < self.begin:
            return None
        if index < 0:
            return NO_TERM
        if index >= self._starts[-1]:
            return self._terms[-1]
        return self._terms[bisect_right(self._starts, index) - 1]

    def agrees(self, index: int, term: int) -> bool:
        """The entry at `index` is of that term; of what was deleted it is taken for granted."""
        return 0 <= index < self.begin or self.at(index) == term

    def first_of(self, index: int) -> int:
        """The first index of the term of the entry at `index`, as far as it is there."""
        return self._starts[bisect_right(self._starts, index) - 1]

    def append(self, term: int) -> None:
        assert term >= self.end_term, f"an entry of term {term} behind one of {self.end_term}"
        self.end += 1
        if term != self.end_term:
            self._starts.append(self.end)
            self._terms.append(term)

    def cut(self, end: int) -> None:
        """Forget what stands behind `end`."""
        assert end <= self.end, f"cut behind {end}, the ledger ends at {self.end}"
        self.end = end
        while self._starts and self._starts[-1] > end:
            self._starts.pop()
            self._terms.pop()

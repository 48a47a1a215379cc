"""Divides a long list into pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from mqproof.impl.console.form_values import FormValues
from mqproof.impl.console.page_parts import Links, Part, link

T = TypeVar("T")

SIZE: Final = 50
_PAGES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Paging:
    number: int
    """The page, from 1."""
    count: int
    """How many pages there are, at least 1."""
    size: int = SIZE

    @classmethod
    def of(cls, values: FormValues, total: int, size: int = SIZE) -> Self:
        """Return the page that the field `page` names, or the last one if it is beyond it."""
        count = max(1, -(-total // size))
        return cls(min(values.number("page", 1, 1, _PAGES_MAX), count), count, size)

    def part(self, items: Sequence[T]) -> Sequence[T]:
        return items[(self.number - 1) * self.size : self.number * self.size]

    def links(self, path: str, **query: str) -> list[Part]:
        """Return the links to the first, previous, next and last page; none for a single page."""
        if self.count == 1:
            return []
        near = {1: "First", self.number - 1: "Previous", self.number: f"Page {self.number} of {self.count}"}
        near.update({self.number + 1: "Next", self.count: "Last"} if self.number < self.count else {})
        shown = [(text, link(path, **query, page=page)) for page, text in sorted(near.items()) if page >= 1]
        return [Links("Pages", shown, f"Page {self.number} of {self.count}")]

"""Places the texts of a drawing so that none covers another."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LETTER_WIDTH: Final = 0.57
"""The width of a letter as a part of the font size, large enough for text in any usual font."""
_ABOVE, _BELOW = 0.85, 0.25
"""The height of a letter above and below its base line, as parts of the font size."""


def text_width(text: str, size: float) -> float:
    """Return the width of a text in pixels, at most."""
    return len(text) * size * LETTER_WIDTH


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: "Box") -> float:
        """Return the area that both boxes cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(wide, 0.0) * max(high, 0.0)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for a text."""

    x: float
    y: float
    """The y of the base line."""
    anchor: str = "start"
    """Which part of the text is at x: start, middle or end."""

    def box(self, text: str, size: float) -> Box:
        width = text_width(text, size)
        left = self.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        return Box(left, self.y - size * _ABOVE, left + width, self.y + size * _BELOW)


class Placement:
    """The boxes that are taken."""

    def __init__(self) -> None:
        self._taken: list[Box] = []

    def take(self, box: Box) -> float:
        """Take a box as it is; return the area of it that was taken already."""
        covered = self._covered(box)
        self._taken.append(box)
        return covered

    def place(self, text: str, size: float, spots: Iterable[Spot]) -> tuple[Spot, bool]:
        """Take the first free spot, or else the one that covers least; return it, and whether it was free."""
        best, least = None, 0.0
        for spot in spots:
            covered = self._covered(spot.box(text, size))
            if best is None or covered < least:
                best, least = spot, covered
            if covered == 0:
                break
        assert best is not None, "at least one spot is given"
        self._taken.append(best.box(text, size))
        return best, least == 0

    def _covered(self, box: Box) -> float:
        return sum(box.overlap(other) for other in self._taken)

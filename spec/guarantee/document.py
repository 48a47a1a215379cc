"""docs/explanation/guarantees.md: the recorded matrix, with a picture for each explained difference."""

from pathlib import Path
from typing import Final

from mqproof.report.write import write_text
from mqproof.spec.guarantee import claims, recorded
from mqproof.spec.guarantee.matrix import Cell, Matrix, Verdicts
from mqproof.spec.guarantee.picture import file_name, picture
from mqproof.spec.guarantee.show import markdown
from mqproof.spec.guarantee.view import build

DOCUMENT: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "guarantees.md"
MARK: Final = "<!-- What follows is written by `mqproof matrix --record`. -->\n"
_PICTURES: Final = "guarantees"


def refreshed(text: str, verdicts: Verdicts) -> str:
    """Return the document's text with the tables of these verdicts after the mark."""
    head, mark, _ = text.partition(MARK)
    known = claims.load()
    view = build(verdicts, known, claims.compare(verdicts, known), pictures())
    return f"{head}{mark or MARK}\n{markdown(view)}"


def pictures() -> dict[Cell, str]:
    """Return the pictures, one for the example of each difference, with paths relative to the document."""
    cells = (difference.example_cell for difference in claims.load().difference)
    return {cell: f"{_PICTURES}/{file_name(cell)}" for cell in cells}


def record(matrix: Matrix) -> None:
    """Write the recorded verdicts, the document's tables and its pictures.

    Raises:
        OSError: a file cannot be written.
    """
    write_text(recorded.RECORDED_FILE, recorded.render(matrix.verdicts))
    write_text(DOCUMENT, refreshed(DOCUMENT.read_text(encoding="utf-8"), matrix.verdicts))
    for cell, name in pictures().items():
        svg = picture(cell, matrix.verdicts[cell], matrix.counterexamples[cell])
        write_text(DOCUMENT.parent / name, svg)

"""The report as one self-contained HTML page: no network, no other file, light and dark."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mqproof.report.matrix import SYMBOLS, counts_text, label, matrix, tally, titled, unheld
from mqproof.report.model import Report, Verdict, overall
from mqproof.report.printable import one_line, printable
from mqproof.report.svg import inline

if TYPE_CHECKING:
    from jinja2 import Template

WITNESSES_MAX: Final = 100
"""The number of witnesses shown per result.

The page states how many more there are; the JSON file has all.
"""
TIMELINE_OPEN_MAX: Final = 40
"""Longer timelines are collapsed until the reader opens them."""
_WIDE_FROM: Final = 6
"""With more layers than this, the matrix uses smaller type."""


def render(report: Report) -> str:
    """Return the page: verdict, matrix, results with their evidence and replay commands, figures, tables.

    Raises:
        ValueError: a figure is not an SVG document.
    """
    from markupsafe import Markup  # comes with jinja2; see `_template`

    explained = unheld(report.results)
    return _template().render(
        report=report,
        verdict=overall(report.results),
        tally=tally(report.results),
        matrix=matrix(report.results),
        violated=[alike for alike in explained if alike[0].verdict is Verdict.VIOLATED],
        not_held=[alike for alike in explained if alike[0].verdict is not Verdict.VIOLATED],
        wide_from=_WIDE_FROM,
        figures=[(figure.title, Markup(inline(figure.svg, figure.title))) for figure in report.figures],
        witnesses_max=WITNESSES_MAX,
        timeline_open_max=TIMELINE_OPEN_MAX,
    )


@cache
def _template() -> "Template":
    # Imported late: jinja2 is part of an extra, and the other formats do not need it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "label": label,
        "counts_text": counts_text,
        "titled": titled,
        "printable": printable,
        "line": one_line,
        "css": lambda verdict: verdict.name.lower().replace("_", "-") if verdict else "none",
    }
    environment.globals |= {"SYMBOLS": SYMBOLS, "Verdict": Verdict}
    return environment.get_template("page.html")

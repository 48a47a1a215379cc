"""The verdict of a run as a small SVG picture for a README: one label, one word, one colour."""

from collections import Counter
from html import escape
from typing import Final

from mqproof.report.model import Report, Verdict, overall

LABEL: Final = "mqproof"
_COLOURS: Final = {Verdict.HELD: "#1a7f37", Verdict.VIOLATED: "#cf222e", Verdict.UNKNOWN: "#7d5700"}
"""Colours with a contrast of at least 4.5 to white text."""
_CHARACTER: Final = 6.6
_MARGIN: Final = 12


def render(report: Report) -> str:
    """Return the SVG document. Its title says the same in words, for readers who do not see it."""
    verdict = overall(report.results)
    counts = Counter(result.verdict for result in report.results)
    text = f"{counts[verdict]} {verdict}"
    left, right = (round(len(each) * _CHARACTER) + _MARGIN for each in (LABEL, text))
    width, title = left + right, escape(f"{LABEL}: {text}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"'
        f' aria-label="{title}">\n'
        f"<title>{title}</title>\n"
        f'<clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>\n'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLOURS[verdict]}"/></g>\n'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f'<text x="{left / 2:g}" y="14">{LABEL}</text>'
        f'<text x="{left + right / 2:g}" y="14">{escape(text)}</text>\n</g>\n</svg>\n'
    )

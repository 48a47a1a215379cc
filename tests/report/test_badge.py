"""The badge shows the overall verdict, in words and in a colour, and is well-formed."""

from xml.etree.ElementTree import fromstring

import pytest

from mqproof.report import badge
from mqproof.report.model import Report, Result, Verdict


@pytest.mark.parametrize(
    ("verdicts", "text", "colour"),
    [
        ((Verdict.HELD, Verdict.HELD, Verdict.NOT_TESTED), "2 held", "#1a7f37"),
        ((Verdict.HELD, Verdict.VIOLATED, Verdict.UNKNOWN), "1 violated", "#cf222e"),
        ((Verdict.HELD, Verdict.UNKNOWN), "1 unknown", "#7d5700"),
        ((), "0 unknown", "#7d5700"),
    ],
)
def test_the_badge_shows_the_verdict(verdicts: tuple[Verdict, ...], text: str, colour: str) -> None:
    counts = {"observations": 1}
    report = Report("r", tuple(Result(f"X-{n}", "x", "wire", one, counts) for n, one in enumerate(verdicts)))
    drawn = badge.render(report)
    picture = fromstring(drawn)
    assert picture.attrib["aria-label"] == f"mqproof: {text}"
    assert f">{text}</text>" in drawn
    assert colour in drawn

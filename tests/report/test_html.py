"""The HTML page is well-formed and self-contained, and only its own script can run."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from mqproof.report import html
from mqproof.report.model import Figure, Report, Witness
from tests.report.examples import EMPTY, NASTY_REPORT, REPLAY, REPORT

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """Parses a page and fails unless its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("report", [REPORT, NASTY_REPORT, EMPTY], ids=["usual", "unsafe text", "empty"])
def test_the_page_is_well_formed_and_loads_no_other_file(report: Report) -> None:
    page = Page(html.render(report))
    assert page.tags.count("script") == 1
    assert not {"link", "iframe", "object", "img"} & set(page.tags)
    assert not [
        name for name, _ in page.attributes if name in ("src", "srcset", "action") or name.startswith("on")
    ]
    assert "http://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", html.render(report))


def test_the_page_has_the_matrix_the_witnesses_and_the_replay_command() -> None:
    text = html.render(REPORT)
    assert text.count('<span class="pill held">✓ held</span>') == 2  # in the matrix and in the results
    assert "m_lost was acked and is gone" in text
    assert "msg_id=m_lost" in text
    assert f"<pre>{REPLAY}</pre>" in text
    assert "<details open>" in text
    assert "how it came about, in 1 lines" in text
    assert "<td>broker-a</td><td>crash</td>" in text
    assert '<svg width="9"' in text or "<svg " in text
    sections = ["<figure>", "What is violated", "Verdicts by invariant", "What else is not held", "Results"]
    assert sorted(sections, key=text.index) == sections, "violations come before the other results"


def test_witnesses_are_escaped() -> None:
    text = html.render(NASTY_REPORT)
    assert "<script>alert" not in text
    assert r"\x1b[31m&lt;script&gt;" in text
    assert "\x00" not in text


def test_the_number_of_witnesses_is_limited_and_the_rest_is_counted() -> None:
    witnesses = tuple(Witness(f"lost number {number}.") for number in range(html.WITNESSES_MAX + 5))
    text = html.render(replace(REPORT, results=(replace(REPORT.results[1], witnesses=witnesses),)))
    assert text.count("lost number") == html.WITNESSES_MAX
    assert f"5 more of {html.WITNESSES_MAX + 5}, all in the JSON file." in text


def test_scripts_and_external_references_are_removed_from_figures() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload="evil()">'
        '<script>evil()</script><g><script>evil()</script></g><use xlink:href="#ok"/>'
        '<image href="http://example.org/x.png"/><foreignObject/></svg>'
    )
    text = html.render(replace(REPORT, figures=(Figure("A <figure>", svg),)))
    assert "evil" not in text
    assert "example.org" not in text
    assert "foreignObject" not in text
    assert 'xlink:href="#ok"' in text
    assert 'aria-label="A &lt;figure&gt;"' in text


@pytest.mark.parametrize("svg", ["", "<svg", "<p/>", '<svg xmlns="http://www.w3.org/2000/svg">\x00</svg>'])
def test_a_figure_that_is_not_svg_is_rejected(svg: str) -> None:
    with pytest.raises(ValueError, match="figure 'Rates' is not an SVG document"):
        html.render(replace(REPORT, figures=(Figure("Rates", svg),)))

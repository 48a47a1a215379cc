"""Tests the charts: scales, gaps, labels, and that text of the cluster cannot become markup."""

from xml.etree import ElementTree

import pytest

from mqproof.impl.console.line_chart import SERIES_MAX, Series, line_chart, short, sparkline


def parts(svg: str, tag: str) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(svg).iter() if each.tag == tag]


def test_a_chart_has_a_line_for_each_series_an_axis_and_a_text_for_screen_readers() -> None:
    points = [(0.0, 0.0), (50.0, 60.0), (100.0, 30.0)]
    svg = line_chart("Rate", [Series("in", points), Series("out", points)], 0, 100)
    first, second = parts(svg, "polyline")
    assert (first.get("class"), second.get("class")) == ("s0", "s1")
    # From the left edge to the right one; the top of the axis is 80, the bottom 0.
    assert first.get("points") == "56.0,176.0 342.0,57.5 628.0,116.8"
    assert [each.text for each in parts(svg, "text")][:5] == ["0", "20", "40", "60", "80"]
    assert ElementTree.fromstring(svg).get("aria-label") == "Rate: in 30, out 30"


def test_a_missing_value_interrupts_the_line_and_a_lone_one_is_a_dot() -> None:
    points = [(0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 2.0), (4.0, None)]
    svg = line_chart("Rate", [Series("in", points)], 0, 10)
    assert (len(parts(svg, "polyline")), len(parts(svg, "circle"))) == (1, 1)


def test_points_outside_the_time_and_series_beyond_the_colours_are_left_out() -> None:
    series = [Series(f"s{n}", [(-5.0, 1.0), (1.0, 1.0), (2.0, 1.0)]) for n in range(SERIES_MAX + 1)]
    lines = parts(line_chart("Rate", series, 0, 10), "polyline")
    assert len(lines) == SERIES_MAX
    assert all(len((line.get("points") or "").split()) == 2 for line in lines)


@pytest.mark.parametrize("values", [[], [None], [0.0], [0.0, 0.0], [5.0], [1e-12, 3e12]])
def test_any_values_make_a_chart(values: list[float | None]) -> None:
    chart = line_chart("Rate", [Series("in", list(enumerate(values)))], 0, 0)
    assert "nan" not in chart + sparkline("Rate", values)
    ElementTree.fromstring(chart)


def test_names_of_topics_are_escaped() -> None:
    name = '"><script>alert(1)</script>'
    for svg in (line_chart(name, [Series(name, [])], 0, 1), sparkline(name, [1.0])):
        assert not parts(svg, "script")
        assert name in str(ElementTree.fromstring(svg).get("aria-label"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.5, "0.5"), (12.34, "12.3"), (999, "999"), (1500, "1.5k"), (3.2e6, "3.2M"), (7e9, "7G")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text

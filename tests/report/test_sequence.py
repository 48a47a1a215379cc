"""Goal: a diagram shows all of its input, is self-contained, and is the same each time."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mqproof.report.labels import Box, Spot
from mqproof.report.sequence import INITIALLY, Arrow, Diagram, Lifeline, Mark, Step, Tone, render
from mqproof.report.svg import inline

ROOT = Path(__file__).parents[2]
DIAGRAM = Diagram(
    title="m1 is <lost>",
    lifelines=(Lifeline("producer"), Lifeline("broker", "process and memory")),
    steps=(
        Step("Send", ("producer",), "send m1"),
        Step("Receive", ("broker",), changes=("log: appended m1",)),
        Step("Crash", ("broker",), "killed", Mark.CRASH),
        Step("Restart", ("broker",), "starts", Mark.RESTART),
    ),
    arrows=(
        Arrow("producer", "broker", "m1", sent=0, ended=1),
        Arrow("broker", "producer", "SEND_OK", sent=1, ended=2, lost=True),
        Arrow("producer", "broker", "m2", sent=2, ended=None),
    ),
    verdict="NoAckedLost is violated",
    explanation="m1 was acknowledged",
    tone=Tone.BAD,
    loop=(1, 3),
)


def _texts(svg: str) -> list[str]:
    return [
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter() if "text" in element.tag
    ]


def test_all_texts_of_a_diagram_are_in_the_document() -> None:
    texts = _texts(render(DIAGRAM))
    for text in ("m1 is <lost>", "process and memory", "send m1", "log: appended m1", "killed", "SEND_OK"):
        assert text in texts, text
    assert "NoAckedLost is violated" in texts
    assert "m1 was acknowledged" in texts


def test_equal_diagrams_give_equal_documents_without_references_to_other_files() -> None:
    svg = render(DIAGRAM)
    assert svg == render(DIAGRAM)
    assert "href" not in svg
    assert "url(" not in svg
    assert inline(svg, "a counterexample").startswith("<svg")


def test_control_characters_in_a_text_are_shown_as_escapes() -> None:
    assert "a\\x1bb" in _texts(render(replace(DIAGRAM, title="a\x1bb")))


def test_the_lifeline_is_dashed_between_a_crash_and_the_restart() -> None:
    svg = render(DIAGRAM)
    assert svg.count('stroke-dasharray="1 6"') == 1
    assert 'stroke-dasharray="1 6"' not in render(
        replace(DIAGRAM, steps=DIAGRAM.steps[:2], arrows=(), loop=None)
    )


@pytest.mark.parametrize(
    ("diagram", "message"),
    [
        (replace(DIAGRAM, arrows=(Arrow("producer", "unknown", "", 0, 1),)), "no lifeline 'unknown'"),
        (replace(DIAGRAM, arrows=(Arrow("producer", "broker", "", 0, 9),)), "no row 9, it has 4"),
        (replace(DIAGRAM, loop=(0, 4)), "no row 4"),
        (replace(DIAGRAM, arrows=(Arrow("producer", "broker", "", INITIALLY, INITIALLY),)), "no row -1"),
    ],
)
def test_a_diagram_with_an_unknown_lifeline_or_row_is_rejected(diagram: Diagram, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render(diagram)


def _boxes(svg: str) -> list[tuple[str, Box]]:
    """The texts of a picture and the rectangles that they fill."""
    boxes = []

    def visit(element: ElementTree.Element, size: float) -> None:
        size = float(element.get("font-size", size))
        if element.tag.endswith("}text"):
            text = "".join(element.itertext())
            spot = Spot(
                float(element.get("x", 0)), float(element.get("y", 0)), element.get("text-anchor", "start")
            )
            # A little smaller than the renderer assumes, which rounds.
            boxes.append((text, spot.box(text, size * 0.98)))
        for child in element:
            visit(child, size)

    visit(ElementTree.fromstring(svg), 13.0)
    return boxes


def overlaps(svg: str) -> list[tuple[str, str]]:
    """The pairs of texts of a picture that cover each other."""
    return [
        (one, other)
        for (one, first), (other, second) in combinations(_boxes(svg), 2)
        if first.overlap(second) > 1
    ]


def crowded(messages: int) -> Diagram:
    """Many messages with long labels cross between three nodes, as in an election."""
    nodes = ("n1", "n2", "n3")
    steps = tuple(Step("HandleVoteRequest", (nodes[row % 3],), "a vote is counted") for row in range(8))
    arrows = [
        Arrow(
            nodes[number % 3],
            nodes[(number + 1 + number // 3 % 2) % 3],
            f"VOTE term {number}, endIndex 1, endTerm 2",
            sent=number % 4 - 1,
            ended=None if number % 5 == 4 else number % 4 + 1 + number // 4 % 3,
            lost=number % 5 == 3,
        )
        for number in range(messages)
    ]
    return replace(
        DIAGRAM,
        lifelines=tuple(map(Lifeline, nodes)),
        steps=steps,
        arrows=tuple(arrows),
        initial=("term: n1 = 3; n2, n3 = 2", "role: n1 = LEADER; n2, n3 = FOLLOWER"),
        loop=None,
    )


@pytest.mark.parametrize("messages", [0, 4, 8, 12])
def test_no_text_covers_another_however_many_messages_cross(messages: int) -> None:
    assert overlaps(render(crowded(messages))) == []


def test_texts_that_cover_each_other_are_noticed() -> None:
    text = '<text x="{}" y="20" font-size="12">a label</text>'
    picture = '<svg xmlns="http://www.w3.org/2000/svg">{}</svg>'
    assert overlaps(picture.format(text.format(10) + text.format(30))) == [("a label", "a label")]


@pytest.mark.parametrize(
    "picture", sorted((ROOT / "docs").rglob("guarantees/*.svg")), ids=lambda path: path.stem
)
def test_no_text_covers_another_in_the_diagrams_of_the_documentation(picture: Path) -> None:
    assert overlaps(picture.read_text(encoding="utf-8")) == []


def test_the_initial_state_is_a_row_before_the_first_step_from_which_messages_may_come() -> None:
    svg = render(crowded(4))
    texts = dict(_boxes(svg))
    assert texts["initially"].bottom < texts["1"].top
    assert texts["role: n1 = LEADER; n2, n3 = FOLLOWER"].bottom < texts["1"].top
    (early, *_) = [arrow for arrow in crowded(4).arrows if arrow.sent == INITIALLY]
    assert texts[early.label].top < texts["3"].bottom


def test_a_behaviour_of_the_initial_state_alone_is_drawn_with_its_crossing_messages() -> None:
    label = "VOTE term 4, endIndex 1, endTerm 2, and more"
    ends = [("n1", "n2"), ("n2", "n1")] * 3
    arrows = tuple(Arrow(source, target, label, INITIALLY, None) for source, target in ends)
    lifelines = (Lifeline("n1"), Lifeline("n2"))
    svg = render(Diagram("the initial state", lifelines, (), arrows, initial=("term: 4",)))
    assert sum(text.startswith("VOTE") for text, _ in _boxes(svg)) == len(ends)

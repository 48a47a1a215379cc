"""Goal: a diagram shows all of its input, is self-contained, and is the same each time."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from mqproof.report.sequence import Arrow, Diagram, Lifeline, Mark, Step, Tone, render
from mqproof.report.svg import inline

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
    ],
)
def test_a_diagram_with_an_unknown_lifeline_or_row_is_rejected(diagram: Diagram, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render(diagram)

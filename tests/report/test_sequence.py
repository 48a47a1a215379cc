"""Goal: a diagram shows its input, as a self-contained document that is the same each time."""

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


def test_everything_that_is_said_is_in_the_document() -> None:
    texts = _texts(render(DIAGRAM))
    for said in ("m1 is <lost>", "process and memory", "send m1", "log: appended m1", "killed", "SEND_OK"):
        assert said in texts, said
    assert "NoAckedLost is violated" in texts
    assert "m1 was acknowledged" in texts


def test_equal_diagrams_are_equal_documents_and_no_document_needs_another() -> None:
    svg = render(DIAGRAM)
    assert svg == render(DIAGRAM)
    assert "href" not in svg
    assert "url(" not in svg
    assert inline(svg, "a counterexample").startswith("<svg")


def test_control_characters_of_a_label_are_shown_as_escapes() -> None:
    assert "a\\x1bb" in _texts(render(replace(DIAGRAM, title="a\x1bb")))


def test_a_crash_breaks_the_lifeline_until_the_restart() -> None:
    svg = render(DIAGRAM)
    assert svg.count('stroke-dasharray="1 6"') == 1
    assert 'stroke-dasharray="1 6"' not in render(
        replace(DIAGRAM, steps=DIAGRAM.steps[:2], arrows=(), loop=None)
    )


@pytest.mark.parametrize(
    ("diagram", "complaint"),
    [
        (replace(DIAGRAM, arrows=(Arrow("producer", "nobody", "", 0, 1),)), "no lifeline 'nobody'"),
        (replace(DIAGRAM, arrows=(Arrow("producer", "broker", "", 0, 9),)), "no row 9, it has 4"),
        (replace(DIAGRAM, loop=(0, 4)), "no row 4"),
    ],
)
def test_a_diagram_with_an_unknown_name_is_refused(diagram: Diagram, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        render(diagram)

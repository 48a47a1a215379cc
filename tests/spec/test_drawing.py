"""Goal: the picture of a behaviour shows the actors, the messages and the resulting changes."""

from collections.abc import Mapping
from typing import Any

from mqproof.report.sequence import Mark, Tone, render
from mqproof.spec.drawing import draw
from mqproof.spec.drawing_tables import TABLES
from mqproof.spec.model_file import load
from mqproof.spec.tlc.trace import Step, Trace
from mqproof.spec.tlc.values import Function, State, Value

VOTE = Function({"kind": "vote", "source": "n1", "target": "n2", "term": 2})
REPLY = Function({"kind": "reply", "source": "n2", "target": "n1", "term": 2})


def _state(term: Mapping[str, int], *messages: Value) -> State:
    return Function({"term": Function(term), "network": frozenset(messages)})


def _trace(*steps: tuple[str, State], **how: Any) -> Trace:
    return Trace(
        tuple(Step(number, name, state) for number, (name, state) in enumerate(steps, start=1)), **how
    )


ELECTION = _trace(
    ("", _state({"n1": 1, "n2": 1})),
    ("MCAskForVote", _state({"n1": 2, "n2": 1}, VOTE)),
    ("HandleVote", _state({"n1": 2, "n2": 2}, REPLY)),
    ("LoseMessage", _state({"n1": 2, "n2": 2})),
    ("Crash", _state({"n1": 0, "n2": 2})),
)


def test_an_arrow_starts_where_a_message_is_sent_and_ends_where_it_is_received_or_lost() -> None:
    diagram = draw(ELECTION, "an election")
    assert [lifeline.name for lifeline in diagram.lifelines] == ["n1", "n2"]
    vote, reply = diagram.arrows
    assert (vote.source, vote.target, vote.sent, vote.ended, vote.lost) == ("n1", "n2", 0, 1, False)
    assert vote.label == "vote term 2"
    assert (reply.sent, reply.ended, reply.lost) == (1, 2, True)


def test_each_step_shows_its_action_its_actor_and_its_changes() -> None:
    rows = draw(ELECTION, "an election").steps
    assert [row.action for row in rows] == ["AskForVote", "HandleVote", "LoseMessage", "Crash"]
    assert [row.at for row in rows] == [("n1",), ("n2",), (), ("n1",)]
    assert rows[0].changes == ("term.n1: 1 → 2",)
    assert rows[3].mark is Mark.CRASH


def test_a_behaviour_without_steps_shows_all_variables_of_the_initial_state() -> None:
    empty: Value = frozenset()
    first = Function({"mode": "async", "log": empty, **{f"v{n:02}": n for n in range(20)}})
    diagram = draw(_trace(("", first)), "a violated initial state", violated="TypeOK")
    assert diagram.initial == ("mode: async", "log: {}", *(f"v{n:02}: {n}" for n in range(20)))
    svg = render(diagram)
    assert all(f">{line}</text>" in svg for line in diagram.initial)


KEPT = _trace(
    ("", _state({"n1": 1, "n2": 1, "n3": 1}, VOTE, Function({**VOTE, "target": "n3"}))),
    ("HandleVote", _state({"n1": 1, "n2": 2, "n3": 1}, VOTE, Function({**VOTE, "target": "n3"}))),
    ("HandleVote", _state({"n1": 1, "n2": 2, "n3": 2}, VOTE, Function({**VOTE, "target": "n3"}))),
    ("Close", _state({"n1": 1, "n2": 2, "n3": 2})),
)


def test_a_message_that_stays_in_the_network_is_received_by_its_handler_action() -> None:
    arrows = draw(KEPT, "an election").arrows
    assert {(arrow.target, arrow.ended, arrow.lost) for arrow in arrows} == {
        ("n2", 0, False),
        ("n3", 1, False),
    }


def test_the_picture_ends_with_the_name_of_the_violated_property() -> None:
    diagram = draw(ELECTION, "an election", violated="ElectionSafety", why="One leader a term.")
    assert (diagram.verdict, diagram.tone) == ("ElectionSafety is violated", Tone.BAD)
    assert diagram.explanation == "One leader a term."
    assert draw(ELECTION, "an election").tone is Tone.NEUTRAL


def test_the_explanation_of_a_loop_uses_the_step_numbers_of_the_picture() -> None:
    diagram = draw(_trace(*((s.action, s.state) for s in ELECTION.steps), back_to=3), "forever")
    assert diagram.loop == (2, 3)
    assert diagram.explanation == "Steps 3 to 4 repeat forever."


def test_a_model_without_nodes_and_network_can_be_drawn() -> None:
    counter = _trace(("", Function({"x": 0})), ("Count", Function({"x": 1})))
    diagram = draw(counter, "counting")
    assert diagram.steps[0].changes == ("x: 0 → 1",)
    assert render(diagram)


def test_each_drawing_table_belongs_to_a_model() -> None:
    for name in TABLES:
        assert any((folder / f"{name}.tla").is_file() for folder in load().libraries), name

"""Goal: TLC finds the counterexamples of docs/explanation/as-shipped.md on routing. The rule of the release
causes the violation.

Method: real TLC on the configuration of the counterexample, with and without the operators that the release
replaces.
"""

from dataclasses import replace

import pytest

from mqproof.report.model import Verdict
from mqproof.spec.model_file import Question, load
from mqproof.spec.models import Answer, ask_all
from mqproof.spec.tlc import config

MODELS = load()

EXPECTED_ACTIONS = {
    "RoutingShipped_unknown_topic": ["Register", "Poll", "MCBrokerDies", "Poll", "Tick"],
    "RoutingShipped_slave_alone": ["Poll", "Register", "Tick"],
    "RoutingShippedQueue": [
        "QueueRegister",
        "MCBrokerDies",
        "QueueBrokerStarts",
        "QueueRegister",
        "DrainQueue",
    ],
    "QueueChoiceShipped_none_available": ["Attempt", "Failed", "Elsewhere", "Attempt"],
}
# RoutingShippedQueue is left out: without its operator, no action defines the next value of `pending`.
SOUND = [name for name in EXPECTED_ACTIONS if name != "RoutingShippedQueue"]


def question(name: str) -> Question:
    return next(q for questions in MODELS.questions.values() for q in questions if q.name == name)


def sound(name: str) -> Question:
    """Return the question without the operators that the release replaces."""
    run = question(name)
    kept = [line for line in run.config.text().splitlines() if "<-" not in line]
    return replace(run, config=config.parse("\n".join(kept)), states=None, depth=None)


def in_order(expected: list[str], actions: list[str]) -> bool:
    remaining = iter(actions)
    return all(action in remaining for action in expected)


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    """The answers to all questions of this module, with and without the deviation, by the names of both.

    One call asks them all, so that the runs of TLC share a Java.
    """
    asked = {name: question(name) for name in EXPECTED_ACTIONS} | {
        f"sound {name}": sound(name) for name in SOUND
    }
    return dict(zip(asked, ask_all(MODELS, asked.values()), strict=True))


@pytest.mark.parametrize("name", EXPECTED_ACTIONS)
def test_the_counterexample_contains_the_documented_actions_in_order(
    name: str, answers: dict[str, Answer]
) -> None:
    answer = answers[name]
    assert [result.verdict for result in answer.results] == [Verdict.HELD]
    assert answer.trace is not None
    assert in_order(EXPECTED_ACTIONS[name], [step.action for step in answer.trace.steps])


@pytest.mark.parametrize("name", SOUND)
def test_the_invariant_holds_without_the_deviation_of_the_release(
    name: str, answers: dict[str, Answer]
) -> None:
    assert [result.detail for result in answers[f"sound {name}"].results] == [
        f"{question(name).violates} must be violated, but everything held"
    ]

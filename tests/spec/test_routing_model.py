"""Goal: TLC finds the counterexamples of docs/explanation/as-shipped.md on routing. The rule of the release
causes the violation.

Method: real TLC on the configuration of the counterexample, with and without the operators that the release
replaces.
"""

from dataclasses import replace

import pytest

from mqproof.report.model import Verdict
from mqproof.spec.model_file import Question, load
from mqproof.spec.models import ask
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


def question(name: str) -> Question:
    return next(q for questions in MODELS.questions.values() for q in questions if q.name == name)


def in_order(expected: list[str], actions: list[str]) -> bool:
    remaining = iter(actions)
    return all(action in remaining for action in expected)


@pytest.mark.parametrize("name", EXPECTED_ACTIONS)
def test_the_counterexample_contains_the_documented_actions_in_order(name: str) -> None:
    answer = ask(MODELS, question(name))
    assert [result.verdict for result in answer.results] == [Verdict.HELD]
    assert answer.trace is not None
    assert in_order(EXPECTED_ACTIONS[name], [step.action for step in answer.trace.steps])


# RoutingShippedQueue is left out: without its operator, no action defines the next value of `pending`.
@pytest.mark.parametrize("name", [name for name in EXPECTED_ACTIONS if name != "RoutingShippedQueue"])
def test_the_invariant_holds_without_the_deviation_of_the_release(name: str) -> None:
    run = question(name)
    kept = [line for line in run.config.text().splitlines() if "<-" not in line]
    sound = replace(run, config=config.parse("\n".join(kept)), states=None, depth=None)
    answer = ask(MODELS, sound)
    assert [result.detail for result in answer.results] == [
        f"{run.violates} must be violated, but everything held"
    ]

"""Goal: each story of docs/explanation/as-shipped.md is what TLC finds, and the shipped rule breaks the
promise.

Method: real TLC on the cfg of the story, and on the same without the operators that the release replaces.
"""

from dataclasses import replace

import pytest

from mqproof.report.model import Verdict
from mqproof.spec.model_file import Question, load
from mqproof.spec.models import ask
from mqproof.spec.tlc import config

MODELS = load()

STORIES = {
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


def in_order(story: list[str], actions: list[str]) -> bool:
    left = iter(actions)
    return all(action in left for action in story)


@pytest.mark.parametrize("name", STORIES)
def test_the_story_is_the_counterexample(name: str) -> None:
    answer = ask(MODELS, question(name))
    assert [result.verdict for result in answer.results] == [Verdict.HELD]
    assert answer.trace is not None
    assert in_order(STORIES[name], [step.action for step in answer.trace.steps])


# The queue of removals needs its operator: without it nothing says what becomes of `pending`.
@pytest.mark.parametrize("name", [name for name in STORIES if name != "RoutingShippedQueue"])
def test_without_the_shipped_deviation_the_invariant_holds(name: str) -> None:
    asked = question(name)
    kept = [line for line in asked.config.text().splitlines() if "<-" not in line]
    sound = replace(asked, config=config.parse("\n".join(kept)), states=None, depth=None)
    answer = ask(MODELS, sound)
    assert [result.detail for result in answer.results] == [
        f"{asked.violates} must be violated, but everything held"
    ]

"""Goal: TLC finds the counterexamples of docs/explanation/as-shipped.md on flushing and consuming. A step
that Delivery does not allow violates the refinement.

Method: real TLC on the configuration of the counterexample, or of the mutant.
"""

import pytest

from mqproof.report.model import Verdict
from mqproof.spec.model_file import load
from mqproof.spec.models import Answer, ask_all

MODELS = load()

EXPECTED_ACTIONS = {
    "FlushShipped_swallowed_error": ["AppendRecord", "FsyncFails", "RecoverLog", "TruncateQueues", "Start"],
    "FlushShipped_dispatch_before_flush": ["AppendRecord", "Dispatch", "Deliver", "RecoverLog", "AnswerOk"],
    "FlushShipped_pool": ["AppendRecord", "AnswerOk", "MCProcessCrash"],
    "GroupShipped_query_fails": ["Store", "Acknowledge", "OffsetQueryFails", "CommitOffset"],
    "GroupShipped_late_commit": ["Rebalance", "Start", "Deliver", "CommitOffset", "LateCommit"],
    "GroupShipped_old_master": ["Store", "Start", "Deliver", "CommitOffset", "OldMasterReturns"],
}


REFINEMENTS = ("FlushAnsweredTwice", "GroupCorrectedForward")


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    """The answers to all questions of this module: eight runs of TLC that share a Java."""
    names = {*EXPECTED_ACTIONS, *REFINEMENTS}
    asked = [q for questions in MODELS.questions.values() for q in questions if q.name in names]
    return {answer.question.name: answer for answer in ask_all(MODELS, asked)}


@pytest.mark.parametrize("name", EXPECTED_ACTIONS)
def test_the_counterexample_contains_the_documented_actions_in_order(
    name: str, answers: dict[str, Answer]
) -> None:
    answer = answers[name]
    assert [result.verdict for result in answer.results] == [Verdict.HELD]
    assert answer.trace is not None
    actions = iter([step.action for step in answer.trace.steps])
    assert all(action in actions for action in EXPECTED_ACTIONS[name])


@pytest.mark.parametrize("name", REFINEMENTS)
def test_a_step_that_delivery_does_not_allow_violates_the_refinement(
    name: str, answers: dict[str, Answer]
) -> None:
    answer = answers[name]
    assert answer.question.violates == "RefinesDelivery"
    assert [result.verdict for result in answer.results] == [Verdict.HELD]

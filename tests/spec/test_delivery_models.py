"""Goal: the stories of docs/explanation/as-shipped.md on flushing and consuming are what TLC finds, and a
step that Delivery lacks breaks the refinement.

Method: real TLC on the cfg of the story, or of the mutant.
"""

import pytest

from mqproof.report.model import Verdict
from mqproof.spec.model_file import Question, load
from mqproof.spec.models import Answer, ask

MODELS = load()

STORIES = {
    "FlushShipped_swallowed_error": ["AppendRecord", "FsyncFails", "RecoverLog", "TruncateQueues", "Start"],
    "FlushShipped_dispatch_before_flush": ["AppendRecord", "Dispatch", "Deliver", "RecoverLog", "AnswerOk"],
    "FlushShipped_pool": ["AppendRecord", "AnswerOk", "MCProcessCrash"],
    "GroupShipped_query_fails": ["Store", "Acknowledge", "OffsetQueryFails", "CommitOffset"],
    "GroupShipped_late_commit": ["Rebalance", "Start", "Deliver", "CommitOffset", "LateCommit"],
    "GroupShipped_old_master": ["Store", "Start", "Deliver", "CommitOffset", "OldMasterReturns"],
}


def answer_to(name: str) -> Answer:
    def is_asked(question: Question) -> bool:
        return question.name == name

    return ask(
        MODELS, next(q for questions in MODELS.questions.values() for q in filter(is_asked, questions))
    )


@pytest.mark.parametrize("name", STORIES)
def test_the_story_is_the_counterexample(name: str) -> None:
    answer = answer_to(name)
    assert [result.verdict for result in answer.results] == [Verdict.HELD]
    assert answer.trace is not None
    actions = iter([step.action for step in answer.trace.steps])
    assert all(action in actions for action in STORIES[name])


@pytest.mark.parametrize("name", ["FlushAnsweredTwice", "GroupCorrectedForward"])
def test_a_step_that_delivery_does_not_have_breaks_the_refinement(name: str) -> None:
    answer = answer_to(name)
    assert answer.question.violates == "RefinesDelivery"
    assert [result.verdict for result in answer.results] == [Verdict.HELD]

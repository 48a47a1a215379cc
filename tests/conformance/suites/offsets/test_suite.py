"""The offsets suite's oracle on handwritten histories."""

import pytest

from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.offsets.checkers import CHECKERS
from mqproof.conformance.suites.offsets.oracle import EXPLANATION
from mqproof.conformance.suites.offsets.steps import (
    Bounds,
    Commit,
    Expire,
    Hold,
    Operation,
    Pull,
    Search,
    Send,
)
from mqproof.conformance.suites.offsets.target import Held, Message, Pulled, Searched
from mqproof.reference.rules.pulling import Status
from mqproof.report.model import Verdict

ONE = Message("m1", "A", 0)
TWO = Message("m2", "B", 1)
SENT: tuple[Operation, ...] = (Send(0, ONE), Send(0, TWO))


def judged(*operations: Operation) -> dict[str, Verdict]:
    seen = Stepped("a topic", EXPLANATION, CHECKERS)
    for operation in operations:
        seen.observe(operation)
    return {i: finding.verdict for i, finding in seen.findings().items()}


def test_an_unanswered_commit_may_be_stored_late_and_only_once() -> None:
    late = (Commit(0, 2, oneway=False), Commit(0, 1, oneway=True), Query(0, 2), Query(0, 1))
    assert judged(*SENT, *late)["SPEC-1"] is Verdict.HELD
    assert judged(*SENT, *late, Query(0, 2))["SPEC-1"] is Verdict.VIOLATED


def test_the_extent_of_an_expiry_is_unknown_until_the_queue_is_queried() -> None:
    expired = (*SENT, Expire(), Bounds(0, 1, 2))
    assert judged(*expired, Query(0, None))["SPEC-1"] is Verdict.HELD
    assert judged(*expired, Query(0, 0))["SPEC-1"] is Verdict.VIOLATED
    assert judged(*expired, Bounds(0, 0, 2))["SPEC-1"] is Verdict.VIOLATED


def test_a_full_answer_may_end_before_or_after_messages_that_were_not_selected() -> None:
    def answer(next_offset: int) -> Verdict:
        pulled = Pulled(Status.FOUND, next_offset, 0, 2, (ONE,))
        return judged(*SENT, Pull(0, 0, 1, "A", None, pulled))["SPEC-1"]

    assert [answer(next_offset) for next_offset in (0, 1, 2, 3)] == [
        Verdict.UNKNOWN,  # QueueOrder reports it already
        Verdict.HELD,
        Verdict.HELD,
        Verdict.VIOLATED,
    ]


@pytest.mark.parametrize(
    ("expression", "answer", "late", "verdict"),
    [
        ("A", Pulled(Status.FOUND, 1, 0, 1, (ONE,)), False, Verdict.HELD),
        ("A", Pulled(Status.FOUND, 1, 0, 1, (ONE,)), True, Verdict.VIOLATED),
        ("A", Pulled(Status.NO_NEW, 0, 0, 0), False, Verdict.VIOLATED),
        ("B", Pulled(Status.NO_MATCHED, 1, 0, 1), False, Verdict.HELD),
        ("B", Pulled(Status.NO_NEW, 0, 0, 0), False, Verdict.HELD),
    ],
)
def test_a_waiting_pull_is_answered_soon_and_by_a_selected_message(
    expression: str, answer: Pulled, late: bool, verdict: Verdict
) -> None:
    held = Hold(0, 0, 1, expression, Held(answer, (ONE,), 0.0), late)
    assert judged(held)["SPEC-1"] is verdict


@pytest.mark.parametrize(
    ("invariant", "operation"),
    [
        ("DELIV-1", Pull(0, 0, 1, "*", None, Pulled(Status.MOVED, 2, 1, 2))),
        ("DELIV-2", Pull(1, 0, 1, "*", None, Pulled(Status.FOUND, 1, 0, 1, (ONE,)))),
        ("DELIV-4", Pull(0, 0, 2, "*", None, Pulled(Status.FOUND, 2, 0, 2, (TWO, ONE)))),
        ("DELIV-10", Pull(0, 0, 2, "B", None, Pulled(Status.FOUND, 2, 0, 2, (ONE, TWO)))),
        ("DELIV-10", Pull(0, 0, 2, "*", None, Pulled(Status.FOUND, 2, 0, 2, (TWO,)))),
    ],
)
def test_a_wrong_answer_breaks_the_invariant_named_for_it(invariant: str, operation: Operation) -> None:
    assert judged(*SENT, operation)[invariant] is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("times", "requested_ms", "offset", "verdict"),
    [
        (((0, 10), (1, 14)), 10, 0, Verdict.HELD),
        (((0, 10), (1, 14)), 11, 1, Verdict.HELD),
        (((0, 10), (1, 14)), 15, 2, Verdict.HELD),
        (((0, 10), (1, 14)), 10, 1, Verdict.VIOLATED),
        (((0, 10), (1, 14)), 13, 0, Verdict.VIOLATED),
        (((1, 14),), 14, 1, Verdict.VIOLATED),  # the first message is found, too
    ],
)
def test_a_search_by_time_finds_the_message_stored_then(
    times: tuple[tuple[int, int], ...], requested_ms: int, offset: int, verdict: Verdict
) -> None:
    assert judged(*SENT, Search(0, Searched(times, requested_ms, offset)))["SPEC-1"] is verdict


def test_an_unexplained_decrease_of_an_offset_is_detected() -> None:
    assert judged(*SENT, Commit(0, 2, oneway=False), Query(0, 1))["DELIV-5"] is Verdict.VIOLATED

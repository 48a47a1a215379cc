"""Tests the rules that need no state.

Source: docs/reference/protocol/dledger.md, "Votes"; Raft, sections 5.2 to 5.4.
"""

import pytest

from mqproof.impl.dledger import rules
from mqproof.impl.dledger.codes import RoundResult, Vote

YES, VOTED, LED = Vote.ACCEPT, Vote.REJECT_ALREADY_VOTED, Vote.REJECT_ALREADY_HAS_LEADER
BETTER, LATER = Vote.REJECT_EXPIRED_LEDGER_TERM, Vote.REJECT_TERM_NOT_READY


@pytest.mark.parametrize(("members", "expected"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_two_quorums_have_a_member_in_common(members: int, expected: int) -> None:
    assert rules.quorum(members) == expected
    assert 2 * rules.quorum(members) > members


@pytest.mark.parametrize(
    ("term", "end", "mine", "voter_state", "expected"),
    [
        (2, (1, 5), (1, 5), (2, None, None), Vote.ACCEPT),
        (2, (1, 5), (1, 5), (2, "c", None), Vote.ACCEPT),
        (2, (1, 5), (1, 5), (2, "other", None), Vote.REJECT_ALREADY_VOTED),
        (2, (1, 5), (1, 5), (2, "other", "other"), Vote.REJECT_ALREADY_HAS_LEADER),
        (2, (1, 9), (2, 0), (2, None, None), Vote.REJECT_EXPIRED_LEDGER_TERM),
        (2, (1, 4), (1, 5), (2, None, None), Vote.REJECT_SMALL_LEDGER_END_INDEX),
        (1, (1, 5), (1, 5), (2, None, None), Vote.REJECT_EXPIRED_VOTE_TERM),
        (3, (1, 5), (1, 5), (2, None, None), Vote.REJECT_TERM_NOT_READY),
        (2, (3, 0), (3, 0), (2, None, None), Vote.REJECT_TERM_SMALL_THAN_LEDGER),
    ],
)
def test_a_vote_depends_on_log_term_and_earlier_votes(
    term: int,
    end: tuple[int, int],
    mine: tuple[int, int],
    voter_state: tuple[int, str | None, str | None],
    expected: Vote,
) -> None:
    assert rules.vote_result("c", term, end, mine, voter_state) is expected


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ((YES, YES), RoundResult.PASSED),
        ((YES,), RoundResult.WAIT_TO_VOTE_NEXT),
        ((YES, LED, YES), RoundResult.WAIT_TO_REVOTE),
        ((YES, BETTER, BETTER), RoundResult.WAIT_TO_REVOTE),
        ((YES, LATER, VOTED), RoundResult.REVOTE_IMMEDIATELY),
        ((YES, VOTED, VOTED), RoundResult.WAIT_TO_VOTE_NEXT),
    ],
)
def test_a_round_of_three_members(results: tuple[Vote, ...], expected: RoundResult) -> None:
    padded = results if len(results) == 3 else (*results, *[VOTED] * (3 - len(results)))
    assert rules.round_result(padded, 3) is expected


def test_a_round_is_decided_by_a_quorum_or_all_answers_or_a_leader() -> None:
    assert rules.is_decided((YES, YES), 3)
    assert rules.is_decided((YES, LED), 3)
    assert rules.is_decided((YES, VOTED, VOTED), 3)
    assert not rules.is_decided((YES, VOTED), 3)


@pytest.mark.parametrize(
    ("kept", "expected"),
    [((7, 5, 3), 5), ((7, -1, -1), -1), ((9, 7, 5, 3, 1), 5), ((3, 9, 7, 5), 5), ((5, 7), 5)],
)
def test_an_index_is_committed_when_a_quorum_has_it(kept: tuple[int, ...], expected: int) -> None:
    assert rules.majority_index(kept) == expected


def test_only_entries_of_the_own_term_are_committed_by_counting() -> None:
    assert rules.may_commit(3, 3)
    assert not rules.may_commit(2, 3)


def test_a_member_that_may_have_led_a_term_is_a_candidate_in_a_later_one() -> None:
    assert rules.stands_from(4, "n0", "n0") == 5
    assert rules.stands_from(4, "n1", "n0") == 4

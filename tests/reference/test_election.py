"""Goal: the rules of Election are correct. Method: tables of cases, and a walk through a small model."""

import pytest

from mqproof.reference import election
from mqproof.reference.election import Config, commit_index, log_up_to_date, quorum, round_result, vote_result
from mqproof.reference.explorer.search import explore

NONE = election.NONE
ACCEPT = "ACCEPT"


def test_a_quorum_is_more_than_half() -> None:
    assert [quorum(nodes) for nodes in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]


def test_the_later_term_is_the_better_log_and_then_the_longer_one() -> None:
    assert log_up_to_date(3, 1, 2, 9)
    assert log_up_to_date(2, 9, 2, 9)
    assert not log_up_to_date(2, 8, 2, 9)
    assert not log_up_to_date(1, 99, 2, 1)


def test_entries_of_a_quorum_are_committed_if_they_end_in_this_term() -> None:
    assert commit_index((3, 2, 1), (1, 2, 2), 2) == 2
    assert commit_index((3, 1, 1), (1, 2, 2), 2) == 0  # the first is of an older term
    assert commit_index((0, 0, 0), (), 1) == 0


@pytest.mark.parametrize(
    ("vote_term", "end", "mine", "voter", "result"),
    [
        (5, (1, 9), (2, 1), (1, NONE, NONE), "REJECT_EXPIRED_LEDGER_TERM"),
        (5, (2, 1), (2, 2), (9, NONE, NONE), "REJECT_SMALL_LEDGER_END_INDEX"),
        (1, (0, 0), (0, 0), (2, NONE, NONE), "REJECT_EXPIRED_VOTE_TERM"),
        (2, (0, 0), (0, 0), (2, "n3", "n3"), "REJECT_ALREADY_HAS_LEADER"),
        (2, (0, 0), (0, 0), (2, "n3", NONE), "REJECT_ALREADY_VOTED"),
        (3, (0, 0), (0, 0), (2, "n3", "n3"), "REJECT_TERM_NOT_READY"),
        (0, (1, 1), (1, 1), (0, NONE, NONE), "REJECT_TERM_SMALL_THAN_LEDGER"),
        (2, (0, 0), (0, 0), (2, "n1", NONE), ACCEPT),
    ],
)
def test_the_first_applicable_rule_answers_a_vote(
    vote_term: int, end: tuple[int, int], mine: tuple[int, int], voter: tuple[int, str, str], result: str
) -> None:
    assert vote_result("n1", vote_term, end, mine, voter) == result


@pytest.mark.parametrize(
    ("results", "outcome"),
    [
        ((ACCEPT, ACCEPT, "REJECT_ALREADY_HAS_LEADER"), "WAIT_TO_REVOTE"),
        ((ACCEPT,), "WAIT_TO_REVOTE"),
        ((ACCEPT, "REJECT_SMALL_LEDGER_END_INDEX"), "WAIT_TO_REVOTE"),
        ((ACCEPT, ACCEPT), "PASSED"),
        ((ACCEPT, "REJECT_TERM_NOT_READY"), "REVOTE_IMMEDIATELY"),
        ((ACCEPT, "REJECT_ALREADY_VOTED"), "WAIT_TO_VOTE_NEXT"),
    ],
)
def test_the_first_applicable_rule_ends_a_round(results: tuple[str, ...], outcome: str) -> None:
    assert round_result(results, nodes=3) == outcome


def test_a_walk_finds_tlcs_states_and_nothing_broken() -> None:
    config = Config(messages=(), candidates=("n1", "n2"), terms_max=1, crashes_max=1)
    exploration = explore(election.MODEL, config)
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (5554, 20)

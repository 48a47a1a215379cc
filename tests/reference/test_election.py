"""Goal: the rules of Election are correct. Method: tables of cases, and all states of a small model."""

import pytest

from mqproof.reference import election
from mqproof.reference.election import Config, commit_index, log_up_to_date, quorum, round_result, vote_result
from mqproof.reference.explorer.search import explore

NONE = election.NONE
ACCEPT = "ACCEPT"


def test_a_quorum_is_more_than_half_of_the_nodes() -> None:
    assert [quorum(nodes) for nodes in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]


def test_a_log_with_a_later_last_term_or_the_same_term_and_no_less_length_is_up_to_date() -> None:
    assert log_up_to_date(3, 1, 2, 9)
    assert log_up_to_date(2, 9, 2, 9)
    assert not log_up_to_date(2, 8, 2, 9)
    assert not log_up_to_date(1, 99, 2, 1)


def test_entries_on_a_quorum_are_committed_if_the_last_is_of_the_current_term() -> None:
    assert commit_index((3, 2, 1), (1, 2, 2), 2) == 2
    assert commit_index((3, 1, 1), (1, 2, 2), 2) == 0  # the first entry is of an older term
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
def test_the_first_applicable_rule_decides_the_vote_result(
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
def test_the_first_applicable_rule_decides_the_result_of_a_voting_round(
    results: tuple[str, ...], outcome: str
) -> None:
    assert round_result(results, nodes=3) == outcome


def test_a_small_election_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    config = Config(messages=(), candidates=("n1", "n2"), terms_max=1, crashes_max=1)
    exploration = explore(election.MODEL, config)
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (5554, 20)

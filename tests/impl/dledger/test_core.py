"""Tests the core alone: messages and time in, changes and messages out.

Method: three cores, connected by the test.
"""

from collections.abc import Callable
from random import Random

import pytest

from mqproof.impl.dledger.changes import Ballot, Change, Committed, Cut, Lacks, Leads, Written
from mqproof.impl.dledger.codes import PushType, ResponseCode, Vote
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.rpc_bodies import (
    NO_OP,
    NORMAL,
    Entry,
    HeartBeatRequest,
    HeartBeatResponse,
    PushRequest,
    PushResponse,
    Request,
    Response,
    TransferRequest,
    TransferResponse,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.dledger.state import Role
from mqproof.impl.dledger.terms import Terms

NAMES = ("n0", "n1", "n2")


def _core(name: str = "n0", ballot: Ballot | None = None, terms: tuple[int, ...] = ()) -> Core:
    return Core(GroupConfig("g", name, NAMES), ballot or Ballot(1, None), Terms(terms), Random(1), 0.0)


def _entry(index: int) -> Entry:
    return Entry(NO_OP, 48, index, 1, 48 * index)


def _drain(core: Core, now: float) -> tuple[list[Change], list[Request], list[tuple[Request, Response]]]:
    changes = core.take_changes()
    requests, answers = core.take_messages(_entry, now)
    return changes, requests, answers


def _vote(term: int, candidate: str = "n1", index: int = -1, end_term: int = 0) -> VoteRequest:
    return VoteRequest("g", "n0", candidate, None, term, ledger_end_index=index, ledger_end_term=end_term)


def _answer(core: Core, request: Request, now: float = 1.0) -> Response:
    core.handle(request, now)
    (pair,) = _drain(core, now)[2]
    assert pair[0] is request
    return pair[1]


def _leading(ballot: Ballot | None = None, terms: tuple[int, ...] = ()) -> Core:
    """Return n0, elected by n1 at 2000 ms."""
    core = _core("n0", ballot, terms)
    core.tick(2000.0)
    _, requests, _ = _drain(core, 2000.0)
    vote = next(r for r in requests if isinstance(r, VoteRequest) and r.remote_id == "n1")
    yes = VoteResponse("g", "n0", "n1", None, vote.term, vote_result=Vote.ACCEPT)
    core.answered(vote, yes, 2000.0)
    assert core.state.role is Role.LEADER
    return core


def test_term_and_vote_are_written_before_the_answer_that_depends_on_them() -> None:
    core = _core()
    core.handle(_vote(1), 1.0)
    assert Ballot(1, "n1") in core.take_changes()


def test_one_vote_is_given_per_term_and_can_be_repeated_to_the_same_candidate() -> None:
    core = _core()
    assert _answer(core, _vote(1, "n1")).vote_result is Vote.ACCEPT  # type: ignore[union-attr]
    assert _answer(core, _vote(1, "n2")).vote_result is Vote.REJECT_ALREADY_VOTED  # type: ignore[union-attr]
    assert _answer(core, _vote(1, "n1")).vote_result is Vote.ACCEPT  # type: ignore[union-attr]


def test_a_vote_survives_a_restart() -> None:
    core = _core(ballot=Ballot(1, "n1"))
    assert _answer(core, _vote(1, "n2")).vote_result is Vote.REJECT_ALREADY_VOTED  # type: ignore[union-attr]


def test_a_member_refuses_a_later_term_as_not_ready_and_then_enters_it() -> None:
    core = _core()
    core.handle(_vote(5), 1.0)
    changes, _, ((_, answer),) = _drain(core, 1.0)
    assert (answer.term, answer.vote_result) == (1, Vote.REJECT_TERM_NOT_READY)  # type: ignore[union-attr]
    assert Ballot(5, None) in changes


def test_a_worse_log_is_refused_before_its_term_is_checked() -> None:
    core = _core(ballot=Ballot(3, None), terms=(1, 3))
    assert _answer(core, _vote(9, index=7, end_term=2)).vote_result is Vote.REJECT_EXPIRED_LEDGER_TERM  # type: ignore[union-attr]
    shorter = _answer(core, _vote(9, index=0, end_term=3))
    assert shorter.vote_result is Vote.REJECT_SMALL_LEDGER_END_INDEX  # type: ignore[union-attr]
    assert core.state.term == 3


def test_an_unknown_member_and_another_group_are_refused() -> None:
    core = _core()
    assert _answer(core, HeartBeatRequest("g", "n0", "n9", None, 1)).code == ResponseCode.UNKNOWN_MEMBER
    assert _answer(core, HeartBeatRequest("h", "n0", "n1", None, 1)).code == ResponseCode.UNKNOWN_GROUP
    assert _answer(core, HeartBeatRequest("g", "n0", "n0", None, 1)).code == ResponseCode.UNEXPECTED_MEMBER


def test_a_member_that_may_have_led_its_term_is_not_a_candidate_in_it_again() -> None:
    core = _core(ballot=Ballot(4, "n0"))
    core.tick(2000.0)
    changes, _, _ = _drain(core, 2000.0)
    assert Ballot(5, None) in changes


def test_a_leader_starts_its_term_with_a_no_op() -> None:
    core = _leading()
    changes, _, _ = _drain(core, 2000.0)
    kinds = [type(change).__name__ for change in changes]
    assert kinds[-2:] == ["Leads", "Appended"]
    assert Leads(1) in changes


def test_entries_of_older_terms_are_not_committed_by_counting() -> None:
    """Figure 8 of the Raft paper: a quorum has an entry of term 1, and a leader of term 2 follows."""
    core = _leading(Ballot(2, None), (1, 1))
    _, requests, _ = _drain(core, 2000.0)
    core.flushed(2)
    core.take_changes()
    push = next(r for r in requests if isinstance(r, PushRequest) and r.remote_id == "n1")
    append = PushRequest("g", "n1", "n0", "n0", 2, type=PushType.APPEND, pre_log_index=0, pre_log_term=1)
    core.answered(push, PushResponse("g", "n0", "n1", "n0", 2, index=1, end_index=1), 2001.0)
    _drain(core, 2001.0)
    core.answered(append, PushResponse("g", "n0", "n1", "n0", 2, index=1, end_index=1), 2002.0)
    assert core.take_changes() == []
    core.take_messages(_entry, 2002.0)
    core.answered(append, PushResponse("g", "n0", "n1", "n0", 2, index=2, end_index=2), 2003.0)
    assert core.take_changes() == [Committed(2)]


def _follower(terms: tuple[int, ...] = ()) -> Core:
    """Return n0, which follows n1 in term 3."""
    core = _core(ballot=Ballot(3, None), terms=terms)
    assert _answer(core, HeartBeatRequest("g", "n0", "n1", "n1", 3)).code == ResponseCode.SUCCESS
    return core


def _push(entries: tuple[Entry, ...], before: tuple[int, int], commit: int = -1) -> PushRequest:
    return PushRequest(
        "g",
        "n0",
        "n1",
        "n1",
        3,
        type=PushType.APPEND,
        pre_log_index=before[0],
        pre_log_term=before[1],
        commit_index=commit,
        batch_entry=entries,
    )


def test_a_push_is_answered_only_when_its_entries_are_durable() -> None:
    core = _follower()
    core.handle(_push((Entry(NORMAL, 48, 0, 3, 0),), (-1, 0)), 2.0)
    assert _drain(core, 2.0)[2] == []
    core.flushed(0)
    ((_, answer),) = _drain(core, 3.0)[2]
    assert isinstance(answer, PushResponse)
    assert (answer.code, answer.index) == (ResponseCode.SUCCESS, 0)


def test_only_entries_that_contradict_the_leader_are_cut() -> None:
    core = _follower((1, 1, 2))
    core.handle(_push((Entry(NORMAL, 48, 1, 1, 0), Entry(NORMAL, 48, 2, 3, 0)), (0, 1)), 2.0)
    assert [change for change in core.take_changes() if isinstance(change, Cut)] == [Cut(1)]
    core.take_messages(_entry, 2.0)
    core.handle(_push((Entry(NORMAL, 48, 1, 1, 0),), (0, 1)), 3.0)
    assert not any(isinstance(change, Cut) for change in core.take_changes())


def test_entries_after_a_truncation_are_not_durable_because_the_removed_ones_were() -> None:
    core = _follower((1, 1, 2))
    core.flushed(2)
    core.handle(_push((Entry(NORMAL, 48, 1, 3, 0), Entry(NORMAL, 48, 2, 3, 0)), (0, 1)), 2.0)
    assert _drain(core, 2.0)[2] == [], "the new entries are not synced"
    core.flushed(2)
    ((_, answer),) = _drain(core, 3.0)[2]
    assert isinstance(answer, PushResponse)
    assert (answer.code, answer.index) == (ResponseCode.SUCCESS, 2)


def test_a_late_vote_of_an_earlier_round_is_not_counted() -> None:
    core = _core()
    core.tick(2000.0)
    _, requests, _ = _drain(core, 2000.0)
    early = next(r for r in requests if isinstance(r, VoteRequest) and r.remote_id == "n1")
    core.handle(_vote(2, "n2"), 3000.0)  # a later term ends the round
    _drain(core, 3000.0)
    core.tick(6000.0)
    _, requests, _ = _drain(core, 6000.0)
    assert any(isinstance(r, VoteRequest) and r.term == 2 for r in requests), "a round of term 2 is open"
    core.answered(early, VoteResponse("g", "n0", "n1", None, 1, vote_result=Vote.ACCEPT), 6001.0)
    assert core.state.role is Role.CANDIDATE


def test_a_follower_commits_only_as_far_as_its_log_is_known_to_equal_the_leaders() -> None:
    core = _follower((1, 1, 2))
    core.handle(_push((Entry(NORMAL, 48, 1, 1, 0),), (0, 1), commit=2), 2.0)
    assert Committed(1) in core.take_changes()
    assert core.state.commit == 1


def test_a_push_that_overtook_another_waits_for_it() -> None:
    core = _follower()
    core.handle(_push((Entry(NORMAL, 48, 1, 3, 48),), (0, 3)), 2.0)
    assert _drain(core, 2.0)[2] == []
    core.handle(_push((Entry(NORMAL, 48, 0, 3, 0),), (-1, 0)), 3.0)
    _drain(core, 3.0)
    assert core.state.terms.end == 1


def test_entries_that_are_not_consecutive_are_refused() -> None:
    core = _follower()
    wrong = _push((Entry(NORMAL, 48, 0, 3, 0), Entry(NORMAL, 48, 2, 3, 0)), (-1, 0))
    assert _answer(core, wrong).code == ResponseCode.UNEXPECTED_ARGUMENT
    assert core.state.terms.end == -1


def test_a_leader_that_was_paused_for_long_accepts_nothing_when_it_continues() -> None:
    core = _leading()
    _drain(core, 2000.0)
    assert core.append(b"x", 2100.0)[0] is ResponseCode.SUCCESS
    _drain(core, 2100.0)
    assert core.append(b"y", 60_000.0)[0] is ResponseCode.NOT_LEADER
    assert core.state.role is Role.CANDIDATE


def _beaten(core: Core, requests: list[Request]) -> None:
    """Answer a heartbeat of the leader at 2000 ms."""
    beat = next(r for r in requests if isinstance(r, HeartBeatRequest))
    yes = HeartBeatResponse("g", "n0", beat.remote_id, None, beat.term, ResponseCode.SUCCESS)
    core.answered(beat, yes, 2000.0)


def _kept(core: Core, requests: list[Request]) -> None:
    """Commit the entry that begins the term, at 2000 ms."""
    core.flushed(0)
    push = next(r for r in requests if isinstance(r, PushRequest))
    kept = PushResponse("g", "n0", push.remote_id, "n0", push.term, index=0, end_index=0)
    core.answered(push, kept, 2000.0)


@pytest.mark.parametrize("steps", [(_beaten, _kept), (_kept, _beaten)])
def test_a_new_leader_reads_for_no_client_before_an_answered_heartbeat_and_a_commit_of_its_term(
    steps: tuple[Callable[[Core, list[Request]], None], ...],
) -> None:
    core = _leading()
    requests = _drain(core, 2000.0)[1]
    served = []
    for step in steps:
        step(core, requests)
        served.append(core.leads(2001.0))
    assert served == [False, True]


def test_a_new_leader_that_no_member_answers_steps_down() -> None:
    core = _leading()
    roles = []
    for now in (2000.0 + core.config.give_up_ms - 1, 2000.0 + core.config.give_up_ms):
        core.tick(now)
        roles.append(core.state.role)
    assert roles == [Role.LEADER, Role.CANDIDATE]


def test_a_leader_steps_down_when_it_receives_a_later_term() -> None:
    core = _leading()
    _, requests, _ = _drain(core, 2000.0)
    beat = next(r for r in requests if isinstance(r, HeartBeatRequest))
    late = HeartBeatResponse("g", "n0", beat.remote_id, None, 7, ResponseCode.EXPIRED_TERM)
    core.answered(beat, late, 2001.0)
    assert Ballot(7, None) in core.take_changes()


def _transferring() -> tuple[Core, TransferRequest]:
    """Return n0, which a quorum confirmed at 2000 ms, and the request that it sent to n1 at 2001 ms."""
    core = _leading()
    requests = _drain(core, 2000.0)[1]
    _beaten(core, requests)
    _kept(core, requests)
    assert core.leads(2001.0)
    _drain(core, 2001.0)
    assert core.transfer("n1", 2001.0) is ResponseCode.SUCCESS
    (request,) = (r for r in _drain(core, 2001.0)[1] if isinstance(r, TransferRequest))
    return core, request


def test_a_leader_that_transfers_its_leadership_serves_no_client() -> None:
    core, _ = _transferring()
    assert core.append(b"x", 2002.0)[0] is ResponseCode.LEADER_TRANSFERRING
    assert not core.leads(2002.0)
    assert core.transfer("n9", 2002.0) is ResponseCode.UNKNOWN_MEMBER


def test_a_second_transfer_is_refused_because_the_first_may_still_succeed() -> None:
    core, _ = _transferring()
    assert core.transfer("n2", 2002.0) is ResponseCode.LEADER_TRANSFERRING


@pytest.mark.parametrize(
    ("code", "later", "serves"),
    [
        (ResponseCode.TAKE_LEADERSHIP_FAILED, 0, True),
        (ResponseCode.TAKE_LEADERSHIP_FAILED, 1, False),
        (ResponseCode.SUCCESS, 1, False),
        (ResponseCode.SUCCESS, 0, False),
    ],
)
def test_a_transfer_ends_if_the_member_refuses_in_the_same_term(
    code: ResponseCode, later: int, serves: bool
) -> None:
    core, request = _transferring()
    answer = TransferResponse("g", "n0", "n1", None, request.term + later, code)
    core.answered(request, answer, 2003.0)
    assert core.leads(2004.0) is serves


def test_a_leader_steps_down_if_its_transfer_is_not_answered() -> None:
    core, _ = _transferring()
    until = 2001.0 + core.config.transfer_ms
    assert core.deadline() <= until
    roles = []
    for now in (until - 1, until):
        core.tick(now)
        roles.append(core.state.role)
    assert roles == [Role.LEADER, Role.CANDIDATE]


# -- entries that were deleted because of their age


def _leading_from(begin: int, end: int) -> Core:
    """Return n0 as leader with entries `begin` to `end` of term 1 and its no-op."""
    core = Core(GroupConfig("g", "n0", NAMES), Ballot(1, None), Terms(begin=begin), Random(1), 0.0)
    for _ in range(begin, end + 1):
        core.state.terms.append(1)
    core.state.durable = end
    core.tick(2000.0)
    _, requests, _ = _drain(core, 2000.0)
    for vote in requests:
        if isinstance(vote, VoteRequest) and vote.remote_id == "n1":
            yes = VoteResponse("g", "n0", "n1", None, vote.term, vote_result=Vote.ACCEPT)
            core.answered(vote, yes, 2000.0)
    return core


def _pushes(requests: list[Request], member: str) -> list[PushRequest]:
    return [r for r in requests if isinstance(r, PushRequest) and r.remote_id == member]


def test_a_follower_that_lost_its_disk_is_reported_once_and_retried_at_intervals() -> None:
    core = _leading_from(100, 120)
    (compare,) = _pushes(_drain(core, 2001.0)[1], "n2")

    def lost(asked: PushRequest) -> PushResponse:
        return PushResponse("g", "n0", "n2", "n0", asked.term, ResponseCode.INCONSISTENT_STATE, end_index=-1)

    core.answered(compare, lost(compare), 2001.0)
    (earliest,) = _pushes(_drain(core, 2001.0)[1], "n2")
    assert (earliest.type, earliest.pre_log_index) == (PushType.COMPARE, 100)
    reported = []
    for second in range(1, 5):
        core.answered(earliest, lost(earliest), 2001.0)
        changes, requests, _ = _drain(core, 2001.0 + 1000 * second - 1)
        reported += [change for change in changes if isinstance(change, Lacks)]
        assert _pushes(requests, "n2") == []
        (earliest,) = _pushes(_drain(core, 2001.0 + 1000 * second)[1], "n2")
        assert earliest.pre_log_index == 100
    assert reported == [Lacks("n2", 100)]


def test_a_follower_treats_deleted_entries_as_equal() -> None:
    core = Core(GroupConfig("g", "n0", NAMES), Ballot(1, None), Terms([1, 1], begin=100), Random(1), 0.0)
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 1), 1.0)
    batch = tuple(Entry(NORMAL, 48, index, 1, 48 * index) for index in range(98, 103))
    push = PushRequest(
        "g", "n0", "n1", "n1", 1, type=PushType.APPEND, pre_log_index=97, pre_log_term=1,
        batch_entry=batch, count=5, commit_index=102, kept_by_all=101,
    )  # fmt: skip
    core.handle(push, 2.0)
    changes = core.take_changes()
    assert [change.entry.index for change in changes if isinstance(change, Written)] == [102]
    assert not any(isinstance(change, Cut) for change in changes)
    assert core.state.kept_by_all == 101


def test_kept_by_all_is_at_most_the_lowest_index_that_a_member_reported() -> None:
    core = _leading(Ballot(2, None), terms=(1, 1, 1))
    for kept in (("n1", 2), ("n2", 1)):
        assert core.state.kept_by_all == -1
        _keep(core, *kept)
    core.flushed(3)
    assert core.state.kept_by_all == -1, "nothing is committed in its term"
    _keep(core, "n1", 3)
    assert (core.state.commit, core.state.kept_by_all) == (3, 1)
    _keep(core, "n2", 3)
    assert core.state.kept_by_all == 3
    (reported,) = {push.kept_by_all for push in _pushes(_drain(core, 9000.0)[1], "n2")}
    assert reported == 3


def _keep(core: Core, member: str, index: int) -> None:
    """A follower reports that it durably has all entries up to `index`."""
    push = PushRequest("g", member, "n0", "n0", core.state.term, type=PushType.APPEND, pre_log_index=index)
    kept = PushResponse("g", "n0", member, "n0", core.state.term, index=index)
    core.take_changes()
    core.take_messages(_entry, 2001.0)
    core.answered(push, kept, 2001.0)

"""Tests the election part of the core to the millisecond: heartbeats, rounds of votes, and takeovers.

Source: docs/reference/protocol/dledger.md. Method: one core whose random times are fixed numbers; the test
plays the other members.
"""

from dataclasses import replace
from random import Random

import pytest

from mqproof.impl.dledger.changes import Ballot, Follows, Reason, SteppedDown, Voted
from mqproof.impl.dledger.codes import ResponseCode, Vote
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.rpc_bodies import (
    NO_OP,
    Entry,
    HeartBeatRequest,
    HeartBeatResponse,
    Request,
    Response,
    TransferRequest,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.dledger.state import Role
from mqproof.impl.dledger.terms import Terms

CONFIG = GroupConfig(
    "g",
    "n0",
    ("n0", "n1", "n2"),
    vote_wait_ms=(500, 500),
    round_ms=(2500, 2500),
    take_leadership_wait_ms=(50, 50),
)
GIVE_UP = CONFIG.give_up_ms
BEAT = CONFIG.heartbeat_ms


def _core(ballot: Ballot | None = None, terms: tuple[int, ...] = (), config: GroupConfig = CONFIG) -> Core:
    return Core(config, ballot or Ballot(1, None), Terms(terms), Random(1), 0.0)


def _sent(core: Core, now: float) -> list[Request]:
    core.take_changes()
    return core.take_messages(lambda index: Entry(NO_OP, 48, index, 1, 48 * index), now)[0]


def _answers(core: Core, now: float) -> list[Response]:
    core.take_changes()
    messages = core.take_messages(lambda index: Entry(NO_OP, 48, index, 1, 48 * index), now)
    return [answer for _, answer in messages[1]]


def _votes(core: Core, now: float) -> list[VoteRequest]:
    return [each for each in _sent(core, now) if isinstance(each, VoteRequest)]


def _beats(core: Core, now: float) -> list[HeartBeatRequest]:
    return [each for each in _sent(core, now) if isinstance(each, HeartBeatRequest)]


def _vote(core: Core, asked: VoteRequest, result: Vote, now: float, term: int | None = None) -> None:
    answer = VoteResponse("g", "n0", asked.remote_id, None, term or asked.term, vote_result=result)
    core.answered(asked, answer, now)


def _beaten(core: Core, beat: HeartBeatRequest, now: float, code: int = ResponseCode.SUCCESS) -> None:
    answer = HeartBeatResponse("g", "n0", beat.remote_id, None, beat.term, ResponseCode(code))
    core.answered(beat, answer, now)


def _heart_beat(core: Core, leader: str, term: int, now: float) -> ResponseCode:
    core.handle(HeartBeatRequest("g", "n0", leader, leader, term), now)
    (answer,) = _answers(core, now)
    return ResponseCode(answer.code)


def _led(at: float = 500.0, core: Core | None = None) -> tuple[Core, list[HeartBeatRequest]]:
    """Return n0, elected by n1 at that time, and its first heartbeats."""
    core = core or _core()
    core.tick(at)
    asked = _votes(core, at)
    _vote(core, asked[0], Vote.ACCEPT, at)
    assert core.state.role is Role.LEADER
    return core, _beats(core, at)


def _following(term: int = 1, at: float = 100.0) -> Core:
    core = _core(Ballot(term, None))
    assert _heart_beat(core, "n1", term, at) is ResponseCode.SUCCESS
    assert core.state.role is Role.FOLLOWER
    return core


# Followers.


def test_the_first_heartbeat_of_its_own_term_makes_a_member_follow() -> None:
    core = _core(Ballot(3, None))
    assert _heart_beat(core, "n1", 2, 100.0) is ResponseCode.EXPIRED_TERM
    assert core.state.role is Role.CANDIDATE
    assert _heart_beat(core, "n1", 3, 100.0) is ResponseCode.SUCCESS
    assert (core.state.role, core.state.leader) == (Role.FOLLOWER, "n1")
    assert _heart_beat(core, "n2", 3, 100.0) is ResponseCode.INCONSISTENT_LEADER
    assert core.state.leader == "n1"


def test_a_later_term_is_refused_as_not_ready_and_entered() -> None:
    core = _following(term=3)
    assert _heart_beat(core, "n2", 4, 200.0) is ResponseCode.TERM_NOT_READY
    assert (core.state.role, core.state.term) == (Role.CANDIDATE, 4)
    assert _heart_beat(core, "n2", 4, 201.0) is ResponseCode.SUCCESS


def test_a_follower_gives_up_a_leader_after_its_silence() -> None:
    core = _following()
    _heart_beat(core, "n1", 1, 300.0)
    _heart_beat(core, "n2", 1, 400.0)  # not its leader
    assert core._election.deadline() == 300 + GIVE_UP
    core.tick(300 + GIVE_UP - 1)
    assert core.state.role is Role.FOLLOWER
    core.tick(300 + GIVE_UP)
    assert (core.state.role, core.state.term) == (Role.CANDIDATE, 2)
    assert core._election.deadline() == 300 + GIVE_UP + 500


# Candidates.


def test_a_candidate_asks_for_votes_after_its_wait_and_ends_the_round_after_its_time() -> None:
    core = _core()
    core.tick(499.0)
    assert _votes(core, 499.0) == []
    core.tick(500.0)
    assert [each.remote_id for each in _votes(core, 500.0)] == ["n1", "n2"]
    assert core._election.deadline() == 3000
    core.tick(2999.0)
    assert core.state.term == 1
    core.tick(3000.0)  # only its own vote: less than a majority answered
    assert core._election.deadline() == 3500
    core.tick(3500.0)
    assert [each.term for each in _votes(core, 3500.0)] == [1, 1]


@pytest.mark.parametrize(
    ("results", "wait"),
    [
        ((Vote.REJECT_ALREADY_HAS_LEADER,), 500 + GIVE_UP),
        ((Vote.REJECT_SMALL_LEDGER_END_INDEX, Vote.REJECT_EXPIRED_LEDGER_TERM), 1500),
        ((Vote.REJECT_ALREADY_VOTED, Vote.REJECT_ALREADY_VOTED), 500),
        ((Vote.REJECT_TERM_NOT_READY,), 2500),
        ((Vote.REJECT_EXPIRED_VOTE_TERM, Vote.REJECT_ALREADY_VOTED), 500),
    ],
)
def test_the_votes_decide_when_a_candidate_tries_again(results: tuple[Vote, ...], wait: float) -> None:
    core = _core()
    core.tick(500.0)
    for asked, result in zip(_votes(core, 500.0), results, strict=False):
        _vote(core, asked, result, 600.0)
    assert core.state.role is Role.CANDIDATE
    assert core._election.deadline() == 600 + wait
    same_term = Vote.REJECT_ALREADY_VOTED not in results
    assert core.state.term == (1 if same_term else 2)


def test_a_vote_of_a_later_term_ends_the_round() -> None:
    core = _core()
    core.tick(500.0)
    asked = _votes(core, 500.0)
    _vote(core, asked[0], Vote.REJECT_EXPIRED_VOTE_TERM, 600.0, term=7)
    assert core.state.term == 7
    _vote(core, asked[1], Vote.ACCEPT, 600.0)
    assert core.state.role is Role.CANDIDATE


def test_a_voter_does_not_stand_itself_for_the_time_of_a_round() -> None:
    core = _core()
    core.handle(VoteRequest("g", "n0", "n1", None, 1, ledger_end_index=-1, ledger_end_term=0), 100.0)
    assert core._election.deadline() == 2600
    core.tick(2600.0)
    assert core.state.term == 2, "its vote of term 1 was given"


# Leaders.


def test_a_leader_sends_heartbeats_at_its_interval() -> None:
    core, beats = _led()
    assert [(each.remote_id, each.leader_id, each.term) for each in beats] == [
        ("n1", "n0", 1),
        ("n2", "n0", 1),
    ]
    assert core._election.deadline() == 500 + BEAT
    core.tick(500 + BEAT - 1)
    assert _beats(core, 500 + BEAT - 1) == []
    core.tick(500 + BEAT)
    assert len(_beats(core, 500 + BEAT)) == 2
    assert core._election.deadline() == 500 + 2 * BEAT


def test_a_leader_leads_from_the_send_time_of_a_heartbeat_that_a_quorum_answered() -> None:
    core, beats = _led()
    assert not core._election.leads(500.0)
    _beaten(core, beats[1], 1400.0)
    assert core._election.leads(500 + GIVE_UP - 1)
    assert not core._election.leads(500 + GIVE_UP)
    core.tick(500 + BEAT)
    newer = _beats(core, 500 + BEAT)
    _beaten(core, beats[0], 500 + BEAT + 1)  # not the last one that was sent to n1
    assert not core._election.leads(500 + GIVE_UP)
    _beaten(core, newer[0], 500 + BEAT + 1)
    assert core._election.leads(500 + BEAT + GIVE_UP - 1)
    assert not core._election.leads(500 + BEAT + GIVE_UP)


@pytest.mark.parametrize("answered", [False, True])
def test_a_leader_without_a_quorum_steps_down(answered: bool) -> None:
    core, _ = _led()
    at = 500 + GIVE_UP
    if answered:
        core.tick(500 + BEAT)
        _beaten(core, _beats(core, 500 + BEAT)[0], 500 + BEAT)
        at += BEAT
    core.tick(at - 1)
    assert core.state.role is Role.LEADER
    core.tick(at)
    assert (core.state.role, core.state.term) == (Role.CANDIDATE, 2)


def test_heartbeats_of_an_earlier_leadership_confirm_nothing() -> None:
    core, beats = _led()
    _beaten(core, beats[0], 501.0)
    assert core._election.leads(502.0)
    _heart_beat(core, "n2", 2, 600.0)
    assert not core._election.leads(601.0)
    _led(1100.0, core)
    assert core.state.term == 2
    assert not core._election.leads(1101.0)
    assert not core._election.is_heard("n1", 1101.0)
    _beaten(core, beats[1], 1102.0)  # an answer of the earlier term
    assert not core._election.leads(1103.0)


def test_a_follower_is_heard_while_it_answered_one_of_the_last_two_heartbeats() -> None:
    core, beats = _led()
    _beaten(core, beats[0], 501.0)
    assert core._election.is_heard("n1", 500 + 2 * BEAT - 1)
    assert not core._election.is_heard("n1", 500 + 2 * BEAT)
    assert not core._election.is_heard("n2", 501.0)


@pytest.mark.parametrize(
    ("code", "term", "entered"),
    [
        (ResponseCode.EXPIRED_TERM, 5, 5),
        (ResponseCode.EXPIRED_TERM, 1, None),
        (ResponseCode.INCONSISTENT_LEADER, 1, 2),
        (ResponseCode.UNKNOWN_MEMBER, 1, None),
    ],
)
def test_the_answer_to_a_heartbeat_can_end_the_leadership(
    code: ResponseCode, term: int, entered: int | None
) -> None:
    core, beats = _led()
    core.answered(beats[0], HeartBeatResponse("g", "n0", "n1", None, term, code), 600.0)
    assert core.state.term == (entered or 1)
    assert core.state.role is (Role.LEADER if entered is None else Role.CANDIDATE)


def test_a_member_that_was_not_ready_gets_another_heartbeat_at_once() -> None:
    core, beats = _led()
    _beaten(core, beats[0], 600.0, ResponseCode.TERM_NOT_READY)
    (again,) = _beats(core, 600.0)
    assert again.remote_id == "n1"
    _beaten(core, again, 700.0)
    assert core._election.leads(600 + GIVE_UP - 1)


# Takeovers.


def _take_leadership(core: Core, index: int, now: float) -> None:
    core.handle(
        TransferRequest(
            "g", "n0", "n1", "n1", core.state.term, transferee_id="n0", take_leadership_ledger_index=index
        ),
        now,
    )


def test_a_follower_with_all_entries_takes_over_at_once_and_answers_when_it_leads() -> None:
    core = _following()
    _take_leadership(core, -1, 200.0)
    assert _answers(core, 200.0) == []
    assert (core.state.role, core.state.term, core._election.deadline()) == (Role.CANDIDATE, 2, 250)
    core.tick(250.0)
    _vote(core, _votes(core, 250.0)[0], Vote.ACCEPT, 260.0)
    (answer,) = _answers(core, 260.0)
    assert (answer.code, answer.term) == (ResponseCode.SUCCESS, 2)


def test_a_takeover_fails_when_another_member_leads_its_term() -> None:
    core = _following()
    _take_leadership(core, -1, 200.0)
    core.handle(HeartBeatRequest("g", "n0", "n2", "n2", 2), 230.0)
    assert [answer.code for answer in _answers(core, 230.0)] == [
        ResponseCode.TAKE_LEADERSHIP_FAILED,
        ResponseCode.SUCCESS,
    ]
    assert core.state.leader == "n2"


def test_a_takeover_fails_when_its_term_is_over() -> None:
    core = _following()
    _take_leadership(core, -1, 200.0)
    core.handle(HeartBeatRequest("g", "n0", "n2", "n2", 3), 230.0)
    assert [answer.code for answer in _answers(core, 230.0)] == [
        ResponseCode.TERM_NOT_READY,
        ResponseCode.TAKE_LEADERSHIP_FAILED,
    ]


def test_a_takeover_fails_if_the_entries_do_not_arrive_in_time() -> None:
    core = _following()
    _take_leadership(core, 3, 200.0)
    until = 200 + CONFIG.catch_up_ms
    assert core._election.deadline() == until
    core.tick(until - 1)
    assert _answers(core, until - 1) == []
    core.tick(until)
    (answer,) = _answers(core, until)
    assert (answer.code, core.state.role) == (ResponseCode.TAKE_LEADERSHIP_FAILED, Role.FOLLOWER)
    assert core._election.deadline() == 100 + GIVE_UP


def test_a_second_request_to_take_over_ends_the_first_one() -> None:
    core = _following()
    _take_leadership(core, 3, 200.0)
    _take_leadership(core, 3, 300.0)
    assert [answer.code for answer in _answers(core, 300.0)] == [ResponseCode.TAKE_LEADERSHIP_FAILED]


@pytest.mark.parametrize(("leader", "term"), [("n2", 1), ("n1", 0)])
def test_only_its_leader_can_ask_a_follower_to_take_over(leader: str, term: int) -> None:
    core = _following()
    core.handle(
        TransferRequest("g", "n0", leader, leader, term, transferee_id="n0", take_leadership_ledger_index=-1),
        200.0,
    )
    assert [answer.code for answer in _answers(core, 200.0)] == [ResponseCode.INCONSISTENT_LEADER]
    assert core.state.role is Role.FOLLOWER


@pytest.mark.parametrize(
    ("end_term", "end_index", "result"),
    [(0, -1, Vote.REJECT_TAKING_LEADERSHIP), (1, 0, Vote.ACCEPT)],
)
def test_a_member_that_takes_over_votes_only_for_a_better_log(
    end_term: int, end_index: int, result: Vote
) -> None:
    core = _following()
    _take_leadership(core, -1, 200.0)
    _sent(core, 200.0)
    asked = VoteRequest("g", "n0", "n2", None, 2, ledger_end_index=end_index, ledger_end_term=end_term)
    core.handle(asked, 210.0)
    (answer,) = _answers(core, 210.0)
    assert isinstance(answer, VoteResponse)
    assert answer.vote_result is result


# Followers that wait for their leader.


def _asked(core: Core, candidate: str, now: float, leader: str | None = None) -> Vote | None:
    """Ask for a vote in term 2 with an equally good log; return the answer, None if there is none."""
    core.handle(VoteRequest("g", "n0", candidate, leader, 2, ledger_end_index=-1, ledger_end_term=0), now)
    votes = [answer.vote_result for answer in _answers(core, now) if isinstance(answer, VoteResponse)]
    return votes[0] if votes else None


def test_a_follower_that_hears_its_leader_leaves_a_later_term_unanswered() -> None:
    core = _following()
    _heart_beat(core, "n1", 1, 300.0)
    assert _asked(core, "n2", 299 + GIVE_UP) is None
    assert (core.state.role, core.state.term) == (Role.FOLLOWER, 1)
    assert core._election.deadline() == 300 + GIVE_UP
    assert _asked(core, "n2", 300 + GIVE_UP) is Vote.REJECT_TERM_NOT_READY
    assert (core.state.role, core.state.term) == (Role.CANDIDATE, 2)


@pytest.mark.parametrize(("candidate", "leader"), [("n1", None), ("n2", "n1")])
def test_a_follower_does_not_wait_for_a_leader_that_stepped_down_or_asked_for_a_takeover(
    candidate: str, leader: str | None
) -> None:
    core = _following()
    assert _asked(core, candidate, 200.0, leader) is Vote.REJECT_TERM_NOT_READY
    assert _asked(core, candidate, 201.0, leader) is Vote.ACCEPT


def test_a_follower_waits_although_the_candidate_names_another_member() -> None:
    assert _asked(_following(), "n2", 200.0, "n2") is None


def test_a_worse_log_is_refused_while_a_follower_waits() -> None:
    core = _core(Ballot(1, None), (1, 1))
    _heart_beat(core, "n1", 1, 100.0)
    assert _asked(core, "n2", 200.0) is Vote.REJECT_EXPIRED_LEDGER_TERM


def test_a_candidate_names_the_leader_only_in_a_takeover() -> None:
    core = _following()
    _take_leadership(core, -1, 200.0)
    core.tick(250.0)
    assert {each.leader_id for each in _votes(core, 250.0)} == {"n1"}
    core.tick(2750.0)
    core.tick(core._election.deadline())
    assert {(each.term, each.leader_id) for each in _votes(core, 3250.0)} == {(2, "n1")}
    core.handle(HeartBeatRequest("g", "n0", "n2", "n2", 3), 3300.0)
    core.tick(3800.0)
    assert {(each.term, each.leader_id) for each in _votes(core, 3800.0)} == {(3, None)}


def test_a_leader_that_is_asked_for_a_vote_of_a_later_term_steps_down() -> None:
    core, beats = _led()
    for beat in beats:
        _beaten(core, beat, 501.0)
    asked = VoteRequest("g", "n0", "n2", None, 2, ledger_end_index=9, ledger_end_term=1)
    core.handle(asked, 600.0)
    assert (core.state.role, core.state.term) == (Role.CANDIDATE, 2)


# What a member records, and when.


def test_every_vote_is_recorded_and_made_durable_once() -> None:
    core = _core()
    asked = VoteRequest("g", "n0", "n1", None, 1, ledger_end_index=-1, ledger_end_term=0)
    core.handle(asked, 100.0)
    assert core.take_changes() == [Ballot(1, "n1"), Voted("n1", 1, Vote.ACCEPT)]
    core.handle(asked, 101.0)
    assert core.take_changes() == [Voted("n1", 1, Vote.ACCEPT)]


def test_the_own_vote_of_a_candidate_is_recorded() -> None:
    core = _core()
    core.tick(500.0)
    assert core.take_changes() == [Ballot(1, "n0"), Voted("n0", 1, Vote.ACCEPT)]


def test_a_step_down_names_its_term_and_reason_and_peer() -> None:
    core, beats = _led()
    core.take_changes()
    core.answered(beats[0], HeartBeatResponse("g", "n0", "n1", None, 5, ResponseCode.EXPIRED_TERM), 600.0)
    assert core.take_changes() == [SteppedDown(5, Reason.ANSWER, "n1"), Ballot(5, None)]
    core.handle(HeartBeatRequest("g", "n0", "n2", "n2", 7), 700.0)
    assert core.take_changes() == [SteppedDown(7, Reason.HEART_BEAT, "n2"), Ballot(7, None)]
    core.handle(VoteRequest("g", "n0", "n1", None, 8, ledger_end_index=9, ledger_end_term=1), 800.0)
    assert core.take_changes()[-2:] == [SteppedDown(8, Reason.VOTE, "n1"), Ballot(8, None)]


def test_a_vote_that_arrives_after_another_member_was_elected_does_not_count() -> None:
    core = _core()
    core.tick(500.0)
    asked = _votes(core, 500.0)
    _heart_beat(core, "n2", 1, 600.0)
    _vote(core, asked[0], Vote.ACCEPT, 601.0)
    assert (core.state.role, core.state.leader) == (Role.FOLLOWER, "n2")


def test_the_answer_of_a_stranger_to_a_heartbeat_confirms_nothing() -> None:
    core, beats = _led()
    core.answered(beats[0], HeartBeatResponse("g", "n0", "n9", None, 1), 501.0)
    assert not core._election.leads(502.0)


def test_a_paused_member_handles_a_heartbeat_before_its_own_times() -> None:
    follower = _following()
    late = 100 + 2 * GIVE_UP
    assert _heart_beat(follower, "n1", 1, late) is ResponseCode.SUCCESS
    assert (follower.state.role, follower.state.term) == (Role.FOLLOWER, 1)
    candidate = _core()
    candidate.handle(HeartBeatRequest("g", "n0", "n1", "n1", 1), 600.0)
    assert candidate.state.role is Role.FOLLOWER
    assert _votes(candidate, 600.0) == []


def test_a_candidate_does_not_wait_for_a_leader() -> None:
    core = _core()
    assert _asked(core, "n2", 100.0, "n1") is Vote.REJECT_TERM_NOT_READY


@pytest.mark.parametrize(("stand_at", "voted_at"), [(2600, 100), (2900, 400)])
def test_each_vote_puts_off_the_own_candidature(stand_at: float, voted_at: float) -> None:
    core = _core()
    core.handle(VoteRequest("g", "n0", "n1", None, 1, ledger_end_index=-1, ledger_end_term=0), voted_at)
    assert core.deadline() == stand_at


@pytest.mark.parametrize(("members", "answers", "leads"), [(5, 1, False), (5, 2, True), (2, 1, True)])
def test_a_quorum_of_the_group_confirms_a_leader(members: int, answers: int, leads: bool) -> None:
    config = replace(CONFIG, members=tuple(f"n{number}" for number in range(members)))
    core = _core(config=config)
    core.tick(500.0)
    for asked in _votes(core, 500.0):
        _vote(core, asked, Vote.ACCEPT, 500.0)
    for beat in _beats(core, 500.0)[:answers]:
        _beaten(core, beat, 501.0)
    assert core._election.leads(502.0) is leads


def test_a_single_member_leads_without_answers() -> None:
    core = _core(config=replace(CONFIG, members=("n0",)))
    core.tick(500.0)
    assert core.state.role is Role.LEADER
    assert core._election.leads(1e9)


def test_following_names_the_leader_and_its_term() -> None:
    core = _core(Ballot(3, None))
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 3), 100.0)
    assert core.take_changes() == [Follows("n1", 3)]
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 3), 200.0)
    assert core.take_changes() == []

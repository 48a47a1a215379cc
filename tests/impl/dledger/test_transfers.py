"""Tests when a leader transfers its leadership, to which member, and what happens meanwhile.

Source: docs/reference/protocol/dledger.md. Method: one core whose random times are fixed numbers; the test
plays the other members.
"""

from dataclasses import replace
from random import Random

import pytest

from mqproof.impl.dledger.changes import Ballot, Voted
from mqproof.impl.dledger.codes import PushType, ResponseCode, Vote
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.rpc_bodies import (
    NO_OP,
    Entry,
    HeartBeatRequest,
    HeartBeatResponse,
    PushRequest,
    PushResponse,
    Request,
    TransferRequest,
    TransferResponse,
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
    transfer_lag_max=2,
)
PREFERS = replace(CONFIG, preferred_leaders=("n2", "n1"))
LED_AT = 500.0
BEAT = CONFIG.heartbeat_ms


def _sent(core: Core, now: float) -> list[Request]:
    core.take_changes()
    return core.take_messages(lambda index: Entry(NO_OP, 48, index, 1, 48 * index), now)[0]


def _transfers(core: Core, now: float) -> list[str]:
    """Let the time pass, and return the members to which the leadership is then transferred."""
    core.tick(now)
    return [each.remote_id for each in _sent(core, now) if isinstance(each, TransferRequest)]


def _led(config: GroupConfig, entries: int = 0, heard: tuple[str, ...] = ("n1", "n2")) -> Core:
    """Return n0, which leads since 500 ms with so many entries and its no-op.

    The members in `heard` answer its first heartbeat.
    """
    core = Core(config, Ballot(1, None), Terms((1,) * entries), Random(1), 0.0)
    core.tick(LED_AT)
    vote = next(each for each in _sent(core, LED_AT) if isinstance(each, VoteRequest))
    core.answered(vote, VoteResponse("g", "n0", vote.remote_id, None, 1, vote_result=Vote.ACCEPT), LED_AT)
    for each in _sent(core, LED_AT):
        if isinstance(each, HeartBeatRequest) and each.remote_id in heard:
            core.answered(each, HeartBeatResponse("g", "n0", each.remote_id, None, 1), LED_AT)
    return core


def _keeps(core: Core, member: str, index: int) -> None:
    """The member reports that it durably has all entries up to `index`."""
    push = PushRequest("g", member, "n0", "n0", 1, type=PushType.APPEND, pre_log_index=index)
    core.answered(push, PushResponse("g", "n0", member, "n0", 1, index=index), LED_AT)


# The choice of the member.


@pytest.mark.parametrize(
    ("config", "heard", "kept", "successor"),
    [
        (CONFIG, ("n1", "n2"), {"n1": 2, "n2": 3}, "n2"),
        (CONFIG, ("n1", "n2"), {"n1": 3, "n2": 2}, "n1"),
        (CONFIG, ("n1",), {"n1": 2, "n2": 3}, "n1"),
        (CONFIG, ("n1", "n2"), {"n1": 1}, "n1"),
        (CONFIG, ("n1", "n2"), {"n1": 0}, None),
        (CONFIG, (), {"n1": 3, "n2": 3}, None),
        (PREFERS, ("n1", "n2"), {"n1": 3, "n2": 2}, "n2"),
        (PREFERS, ("n1", "n2"), {"n1": 3}, "n1"),
        (PREFERS, ("n1",), {"n1": 2, "n2": 3}, "n1"),
        (replace(CONFIG, preferred_leaders=("n1", "n2")), ("n1", "n2"), {"n1": 2, "n2": 2}, "n1"),
    ],
)
def test_the_successor_is_alive_and_close_and_preferred_or_lags_least(
    config: GroupConfig, heard: tuple[str, ...], kept: dict[str, int], successor: str | None
) -> None:
    core = _led(config, entries=3, heard=heard)
    for member, index in kept.items():
        _keeps(core, member, index)
    assert core.successor(LED_AT + 1) == successor


def test_a_member_that_does_not_lead_has_no_successor() -> None:
    core = Core(CONFIG, Ballot(1, None), Terms(), Random(1), 0.0)
    assert core.successor(1.0) is None
    assert core.transfer("n1", 1.0) is ResponseCode.NOT_LEADER


# Preferred members.


def test_a_leader_looks_every_second_for_a_preferred_member() -> None:
    core = _led(PREFERS, entries=3)
    assert core.deadline() == 0, "the first look is due since the start"
    assert _transfers(core, LED_AT) == []
    assert core.deadline() == LED_AT + 1000
    _keeps(core, "n1", 3)
    assert _transfers(core, LED_AT + 999) == []
    assert _transfers(core, LED_AT + 1000) == ["n1"]


@pytest.mark.parametrize(("kept", "to"), [({"n1": 3, "n2": 3}, ["n2"]), ({"n1": 3}, ["n1"]), ({}, [])])
def test_the_most_preferred_member_that_can_take_over_is_asked_once(
    kept: dict[str, int], to: list[str]
) -> None:
    core = _led(PREFERS, entries=3)
    for member, index in kept.items():
        _keeps(core, member, index)
    assert _transfers(core, LED_AT) == to
    assert _transfers(core, LED_AT + 1000) == []


@pytest.mark.parametrize("preferred", [(), ("n0",), ("n1", "n0")])
def test_a_leader_without_a_better_one_keeps_its_leadership(preferred: tuple[str, ...]) -> None:
    core = _led(replace(CONFIG, preferred_leaders=preferred))
    _keeps(core, "n1", 0)
    assert _transfers(core, LED_AT) == []
    assert core.deadline() == LED_AT + min(BEAT, CONFIG.push_timeout_ms), "it does not look for another one"


def test_a_follower_does_not_look_for_a_preferred_member() -> None:
    core = Core(PREFERS, Ballot(1, None), Terms(), Random(1), 0.0)
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 1), 100.0)
    assert core.deadline() == 100 + CONFIG.give_up_ms
    assert _transfers(core, 2000.0) == []


# During a transfer.


def _transferring() -> tuple[Core, TransferRequest]:
    """Return n0, which transfers its leadership to n1 since 600 ms, and the request."""
    core = _led(CONFIG)
    assert core.transfer("n1", 600.0) is ResponseCode.SUCCESS
    (request,) = (each for each in _sent(core, 600.0) if isinstance(each, TransferRequest))
    return core, request


def test_the_request_names_the_last_entry_of_the_leader() -> None:
    _, request = _transferring()
    assert (request.transfer_id, request.transferee_id, request.take_leadership_ledger_index) == (
        "n0",
        "n1",
        0,
    )


def test_a_leader_wakes_when_the_time_of_its_transfer_is_over() -> None:
    core, _ = _transferring()
    _keeps(core, "n1", 0)
    _keeps(core, "n2", 0)
    until = 600 + CONFIG.transfer_ms
    for now in (LED_AT + BEAT, LED_AT + BEAT + 1000):
        core.tick(now)
        for each in _sent(core, now):
            if isinstance(each, HeartBeatRequest):
                core.answered(each, HeartBeatResponse("g", "n0", each.remote_id, None, 1), now)
    assert core.deadline() == until
    core.tick(until)
    assert (core.state.role, core.state.term) == (Role.CANDIDATE, 2)


def test_a_transfer_that_did_not_leave_the_member_ends() -> None:
    core, request = _transferring()
    core.unsent(request)
    assert core.append(b"x", 601.0)[0] is ResponseCode.SUCCESS
    assert core.transfer("n2", 601.0) is ResponseCode.SUCCESS


def _elected_again(core: Core) -> None:
    """Let another member lead term 2, and n0 be elected in term 3."""
    for _ in range(2):
        core.handle(HeartBeatRequest("g", "n0", "n2", "n2", 2), 700.0)
    core.tick(700 + CONFIG.give_up_ms)
    at = core._election.deadline()
    core.tick(at)
    vote = next(each for each in _sent(core, at) if isinstance(each, VoteRequest) and each.term == 3)
    core.answered(vote, VoteResponse("g", "n0", vote.remote_id, None, 3, vote_result=Vote.ACCEPT), at)
    assert core.state.role is Role.LEADER


@pytest.mark.parametrize("unsent", [False, True])
def test_the_end_of_an_earlier_transfer_does_not_end_a_later_one(unsent: bool) -> None:
    core, request = _transferring()
    _elected_again(core)
    at = core.deadline()
    assert core.append(b"x", at)[0] is ResponseCode.SUCCESS, "the earlier transfer is over"
    assert core.transfer("n2", at) is ResponseCode.SUCCESS
    if unsent:
        core.unsent(request)
    else:
        failed = TransferResponse("g", "n0", "n1", None, 1, ResponseCode.TAKE_LEADERSHIP_FAILED)
        core.answered(request, failed, at)
    assert core.append(b"x", at)[0] is ResponseCode.LEADER_TRANSFERRING


# The member that takes over.


def _taking_over() -> Core:
    """Return n0, which has taken over from n1 since 200 ms and is a candidate of term 2."""
    core = Core(CONFIG, Ballot(1, None), Terms(), Random(1), 0.0)
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 1), 100.0)
    core.handle(TransferRequest("g", "n0", "n1", "n1", 1, transferee_id="n0"), 200.0)
    assert (core.state.role, core.state.term) == (Role.CANDIDATE, 2)
    _sent(core, 200.0)
    return core


def test_a_late_push_of_the_leader_does_not_start_a_takeover_again() -> None:
    core = _taking_over()
    core.handle(PushRequest("g", "n0", "n1", "n1", 1), 210.0)
    assert (core.state.term, core._election.deadline()) == (2, 250)


def test_a_takeover_starts_with_the_push_of_its_last_entry() -> None:
    core = Core(CONFIG, Ballot(1, None), Terms(), Random(1), 0.0)
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 1), 100.0)
    core.handle(
        TransferRequest("g", "n0", "n1", "n1", 1, transferee_id="n0", take_leadership_ledger_index=1), 200.0
    )
    for index, role in ((0, Role.FOLLOWER), (1, Role.CANDIDATE)):
        entry = Entry(NO_OP, 48, index, 1, 48 * index)
        before = (index - 1, min(index, 1))
        push = PushRequest(
            "g", "n0", "n1", "n1", 1, pre_log_index=before[0], pre_log_term=before[1], batch_entry=(entry,)
        )
        core.handle(push, 300.0)
        assert core.state.role is role
    assert core._election.deadline() == 350


@pytest.mark.parametrize(
    ("logs", "votes"),
    [
        ([(0, -1)], [Vote.REJECT_TAKING_LEADERSHIP]),
        ([(1, 0), (0, -1)], [Vote.ACCEPT, Vote.ACCEPT]),
    ],
)
def test_a_member_that_takes_over_repeats_the_vote_that_it_gave(
    logs: list[tuple[int, int]], votes: list[Vote]
) -> None:
    core = _taking_over()
    for (end_term, end_index), vote in zip(logs, votes, strict=True):
        core.handle(
            VoteRequest("g", "n0", "n2", None, 2, ledger_end_index=end_index, ledger_end_term=end_term), 210.0
        )
        voted = [each for each in core.take_changes() if isinstance(each, Voted)]
        assert voted == ([] if vote is Vote.REJECT_TAKING_LEADERSHIP else [Voted("n2", 2, vote)])
        ((_, answer),) = core.take_messages(lambda _: Entry(NO_OP, 48, 0, 1, 0), 210.0)[1]
        assert isinstance(answer, VoteResponse)
        assert answer.vote_result is vote

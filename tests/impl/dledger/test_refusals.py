"""Tests what a member refuses, with which code, and what it records about it.

Source: docs/reference/protocol/dledger.md. Method: one core; the test plays the other members.
"""

from random import Random
from typing import Any

import msgspec
import pytest

from mqproof.impl.dledger.changes import Ballot, Change, Committed, Cut, Refused, Written
from mqproof.impl.dledger.codes import PushType, ResponseCode, Vote
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.limits import TERM_JUMP_MAX
from mqproof.impl.dledger.rpc_bodies import (
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

CONFIG = GroupConfig("g", "n0", ("n0", "n1", "n2"))
TERM = 3
LAST_TERM = TERM + TERM_JUMP_MAX


def _entry(index: int, term: int = 1) -> Entry:
    return Entry(NORMAL, 48, index, term, 48 * index)


def _member(terms: tuple[int, ...] = (), begin: int = 0) -> Core:
    return Core(CONFIG, Ballot(TERM, None), Terms(terms, begin), Random(1), 0.0)


def _following(terms: tuple[int, ...] = (), begin: int = 0) -> Core:
    """Return n0, which follows n1 in term 3."""
    core = _member(terms, begin)
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", TERM), 1.0)
    _output(core)
    return core


def _output(core: Core) -> tuple[list[Change], list[Response]]:
    changes = core.take_changes()
    return changes, [answer for _, answer in core.take_messages(_entry, 1.0)[1]]


def _handled(core: Core, request: Request) -> tuple[list[Change], list[Response]]:
    core.handle(request, 1.0)
    return _output(core)


PUSH = PushRequest("g", "n0", "n1", "n1", TERM)
REQUESTS: dict[type[Response], Request] = {
    VoteResponse: VoteRequest("g", "n0", "n1", None, TERM),
    HeartBeatResponse: HeartBeatRequest("g", "n0", "n1", "n1", TERM),
    PushResponse: PUSH,
    TransferResponse: TransferRequest("g", "n0", "n1", "n1", TERM),
}
BY_CHECK: dict[ResponseCode, dict[str, Any]] = {
    ResponseCode.UNKNOWN_GROUP: {"group": "another"},
    ResponseCode.UNKNOWN_MEMBER: {"local_id": "n9"},
    ResponseCode.UNEXPECTED_MEMBER: {"local_id": "n0"},
    ResponseCode.UNEXPECTED_ARGUMENT: {"term": LAST_TERM + 1},
}


@pytest.mark.parametrize("kind", list(REQUESTS))
@pytest.mark.parametrize("code", list(BY_CHECK))
def test_a_request_that_is_not_for_this_member_is_refused_in_its_own_kind(
    kind: type[Response], code: ResponseCode
) -> None:
    core = _following()
    changes, (answer,) = _handled(core, msgspec.structs.replace(REQUESTS[kind], **BY_CHECK[code]))
    assert (type(answer), answer.code, answer.term) == (kind, code, TERM)
    if isinstance(answer, VoteResponse):
        unknown = code in (ResponseCode.UNKNOWN_GROUP, ResponseCode.UNKNOWN_MEMBER)
        assert answer.vote_result is (
            Vote.REJECT_UNKNOWN_LEADER if unknown else Vote.REJECT_UNEXPECTED_LEADER
        )
    why = f"a request of term {LAST_TERM + 1}"
    assert changes == ([Refused("n1", why)] if code == ResponseCode.UNEXPECTED_ARGUMENT else [])
    assert (core.state.role, core.state.term) == (Role.FOLLOWER, TERM)


def test_a_request_for_another_member_is_refused() -> None:
    (answer,) = _handled(_member(), HeartBeatRequest("g", "n1", "n2", "n2", TERM))[1]
    assert answer.code == ResponseCode.UNKNOWN_MEMBER


def test_the_last_term_of_a_jump_is_entered() -> None:
    core = _member()
    (answer,) = _handled(core, HeartBeatRequest("g", "n0", "n1", "n1", LAST_TERM))[1]
    assert answer.code == ResponseCode.TERM_NOT_READY
    assert core.state.term == LAST_TERM


@pytest.mark.parametrize(("beyond", "entered"), [(0, LAST_TERM), (1, TERM)])
def test_a_response_with_a_term_too_far_ahead_is_refused(beyond: int, entered: int) -> None:
    core = _member()
    core.tick(2000.0)
    core.take_changes()
    vote = next(each for each in core.take_messages(_entry, 2000.0)[0] if isinstance(each, VoteRequest))
    term = LAST_TERM + beyond
    core.answered(
        vote,
        VoteResponse("g", "n0", vote.remote_id, None, term, vote_result=Vote.REJECT_EXPIRED_VOTE_TERM),
        2001.0,
    )
    refused = [each for each in core.take_changes() if isinstance(each, Refused)]
    assert refused == ([Refused(vote.remote_id, f"a response of term {term}")] if beyond else [])
    assert core.state.term == entered


def test_a_response_of_another_kind_than_its_request_has_no_effect() -> None:
    core = _member()
    core.tick(2000.0)
    core.take_changes()
    vote = next(each for each in core.take_messages(_entry, 2000.0)[0] if isinstance(each, VoteRequest))
    core.answered(vote, HeartBeatResponse("g", "n0", vote.remote_id, None, TERM + 1), 2001.0)
    assert (core.state.role, core.state.term, core.take_changes()) == (Role.CANDIDATE, TERM, [])


# Pushes.


def _pushed(core: Core, *entries: Entry, after: tuple[int, int], **fields: object) -> ResponseCode | None:
    """Push entries after that index and term; return the code of the answer, or None without one."""
    push = msgspec.structs.replace(
        PUSH, pre_log_index=after[0], pre_log_term=after[1], batch_entry=entries, **fields
    )
    core.handle(push, 2.0)
    return _pushes_answered(core)


def _pushes_answered(core: Core) -> ResponseCode | None:
    codes = [ResponseCode(each.code) for each in _output(core)[1] if isinstance(each, PushResponse)]
    return codes[0] if codes else None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"term": TERM - 1}, ResponseCode.EXPIRED_TERM),
        ({"term": TERM + 1}, ResponseCode.INCONSISTENT_TERM),
        ({"local_id": "n2"}, ResponseCode.INCONSISTENT_LEADER),
        ({"type": PushType.TRUNCATE}, ResponseCode.UNSUPPORTED),
    ],
)
def test_a_push_that_is_not_of_the_leader_is_refused(fields: dict[str, object], code: ResponseCode) -> None:
    core = _following()
    assert _pushed(core, after=(-1, 0), **fields) is code
    assert (core.state.term, core.state.leader) == (TERM, "n1")


def test_a_candidate_takes_no_push() -> None:
    assert _pushed(_member(), after=(-1, 0)) is ResponseCode.NOT_FOLLOWER


@pytest.mark.parametrize(
    ("places", "is_taken"),
    [
        ([(1, 2), (2, 2)], True),
        ([(1, 2), (2, TERM)], True),
        ([(1, 1)], False),
        ([(1, TERM), (2, 2)], False),
        ([(1, TERM + 1)], False),
        ([(2, 2)], False),
        ([(1, 2), (1, 2)], False),
        ([(1, 2), (3, 2)], False),
    ],
)
def test_the_entries_of_a_push_are_consecutive_and_their_terms_do_not_decrease(
    places: list[tuple[int, int]], is_taken: bool
) -> None:
    core = _following((2,))
    code = _pushed(core, *(_entry(*place) for place in places), after=(0, 2))
    assert code is (None if is_taken else ResponseCode.UNEXPECTED_ARGUMENT)
    assert core.state.terms.end == (len(places) if is_taken else 0)


@pytest.mark.parametrize(("index", "is_taken"), [(2, False), (3, True)])
def test_a_push_does_not_replace_a_committed_entry(index: int, is_taken: bool) -> None:
    core = _following((1, 1, 1, 1, 1))
    core.state.commit_to(2)
    core.take_changes()
    core.handle(
        _with(PUSH, (_entry(index, 2),), (index - 1, 1)),
        2.0,
    )
    changes = core.take_changes()
    if is_taken:
        assert changes == [Cut(index - 1), Written(_entry(index, 2))]
    else:
        why = "a push: entry 2 of term 2 would replace a committed one"
        assert changes == [Refused("n1", why)]
        assert _pushes_answered(core) is ResponseCode.UNEXPECTED_ARGUMENT


def _with(push: PushRequest, entries: tuple[Entry, ...], after: tuple[int, int]) -> PushRequest:
    return msgspec.structs.replace(push, batch_entry=entries, pre_log_index=after[0], pre_log_term=after[1])


@pytest.mark.parametrize(("begin", "is_guarded"), [(0, False), (1, True), (2, True)])
def test_the_first_entry_is_committed_if_entries_before_it_were_deleted(begin: int, is_guarded: bool) -> None:
    core = _following((1, 1), begin)
    assert core.state.guarded == (begin if is_guarded else -1)
    code = _pushed(core, _entry(begin, 2), after=(begin - 1, 0 if begin == 0 else 1))
    assert code is (ResponseCode.UNEXPECTED_ARGUMENT if is_guarded else None)


def test_the_files_of_a_member_prove_which_entries_are_committed() -> None:
    core = _following((1, 1, 1))
    core.state.known_committed = 1
    assert _pushed(core, _entry(1, 2), after=(0, 1)) is ResponseCode.UNEXPECTED_ARGUMENT
    assert _pushed(core, _entry(2, 2), after=(1, 1)) is None


def test_a_push_whose_place_in_the_ledger_is_wrong_is_refused() -> None:
    core = _following((1,))
    core.state.misplaced = lambda entries: f"{len(entries)} entries, the first is {entries[0].index}"
    core.handle(_with(PUSH, (_entry(0), _entry(1)), (-1, 0)), 2.0)
    assert core.take_changes() == [Refused("n1", "a push: 1 entries, the first is 1")]
    assert _pushes_answered(core) is ResponseCode.UNEXPECTED_ARGUMENT
    assert _pushed(core, _entry(0), after=(-1, 0)) is ResponseCode.SUCCESS, "nothing new is written"


# Pushes that arrive before their predecessor.


def test_an_early_push_of_an_earlier_leader_is_discarded() -> None:
    core = _following((1,))
    assert _pushed(core, _entry(2, 1), after=(1, 1)) is None
    for _ in range(2):  # the first one makes it a candidate of the later term
        core.handle(HeartBeatRequest("g", "n0", "n2", "n2", TERM + 1), 3.0)
    _pushed(core, _entry(1, 1), after=(0, 1), local_id="n2", term=TERM + 1)
    assert core.state.terms.end == 1


def test_a_comparison_discards_early_pushes() -> None:
    core = _following((1,))
    _pushed(core, _entry(2, 1), after=(1, 1))
    assert _pushed(core, after=(0, 1), type=PushType.COMPARE) is ResponseCode.SUCCESS
    _pushed(core, _entry(1, 1), after=(0, 1))
    assert core.state.terms.end == 1


@pytest.mark.parametrize(("early", "end"), [((1, 1), 2), ((1, 2), 1)])
def test_an_early_push_must_fit_its_predecessor(early: tuple[int, int], end: int) -> None:
    core = _following((1,))
    _pushed(core, _entry(2, 2), after=early)
    _pushed(core, _entry(1, 1), after=(0, 1))
    assert core.state.terms.end == end


def test_an_early_push_that_cannot_be_written_is_discarded() -> None:
    core = _following((1,))
    core.state.misplaced = lambda entries: "misplaced" if entries[0].index == 2 else None
    _pushed(core, _entry(2, 1), after=(1, 1))
    _pushed(core, _entry(1, 1), after=(0, 1))
    assert core.state.terms.end == 1
    core.state.misplaced = lambda _: None
    _pushed(core, _entry(2, 1), after=(1, 1))
    assert core.state.terms.end == 2, "the leader sends it again"


# What a follower confirms.


def test_a_leader_that_replaces_its_own_entry_gets_no_answer_to_its_first_push() -> None:
    core = _following((1,))
    assert _pushed(core, _entry(1, 1), after=(0, 1)) is None
    assert _pushed(core, _entry(1, 2), after=(0, 1)) is None
    core.flushed(1)
    answers = [each for each in _output(core)[1] if isinstance(each, PushResponse)]
    assert [each.index for each in answers] == [1]


def test_a_follower_reports_each_commit_once() -> None:
    core = _following((1, 1))
    compare = msgspec.structs.replace(
        PUSH, type=PushType.COMPARE, pre_log_index=1, pre_log_term=1, commit_index=1
    )
    assert Committed(1) in _handled(core, compare)[0]
    assert _handled(core, compare)[0] == []
    commit = msgspec.structs.replace(PUSH, type=PushType.COMMIT, commit_index=2)
    changes, (answer,) = _handled(core, commit)
    assert (changes, answer.code) == ([], ResponseCode.SUCCESS)

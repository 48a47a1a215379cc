"""Tests the sizes and the times of pushes, and what a follower keeps of them.

Source: docs/reference/protocol/dledger.md. Method: one core; the test plays the other members. Entry `n` has
a body of 10 bytes and the position 58 n.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import msgspec
import pytest

from mqproof.impl.dledger import log_replication
from mqproof.impl.dledger.changes import Ballot, Reason, Refused, Written
from mqproof.impl.dledger.codes import PushType, ResponseCode, Vote
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.rpc_bodies import (
    NORMAL,
    Entry,
    HeartBeatRequest,
    PushRequest,
    PushResponse,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.dledger.state import Role
from mqproof.impl.dledger.terms import Terms

SIZE = 58
CONFIG = GroupConfig("g", "n0", ("n0", "n1", "n2"), window=1000)


def _entry(index: int, term: int = 1) -> Entry:
    return Entry(NORMAL, SIZE, index, term, SIZE * index, body=bytes(10))


def _leading(config: GroupConfig = CONFIG, terms: tuple[int, ...] = (), term: int = 2) -> Core:
    """Return n0 as the leader of that term, elected at 2000 ms, with a no-op after these entries."""
    core = Core(config, Ballot(term, None), Terms(terms), Random(1), 0.0)
    core.state.durable = len(terms) - 1
    core.tick(2000.0)
    core.take_changes()
    vote = next(each for each in core.take_messages(_entry, 2000.0)[0] if isinstance(each, VoteRequest))
    yes = VoteResponse("g", "n0", vote.remote_id, None, term, vote_result=Vote.ACCEPT)
    core.answered(vote, yes, 2000.0)
    return core


def _reader() -> Callable[[int], Entry]:
    """Return a function that reads entries, at most 100 times: no push needs more."""
    reads = iter(range(100))

    def read(index: int) -> Entry:
        assert next(reads, None) is not None, "the same entries are read again and again"
        return _entry(index)

    return read


def _pushes(core: Core, now: float, member: str = "n1") -> list[PushRequest]:
    core.take_changes()
    requests = core.take_messages(_reader(), now)[0]
    return [each for each in requests if isinstance(each, PushRequest) and each.remote_id == member]


def _pushed(core: Core, asked: PushRequest, now: float, **fields: int) -> None:
    code = ResponseCode(fields.pop("code", ResponseCode.SUCCESS))
    answer = PushResponse("g", "n0", asked.remote_id, "n0", asked.term, code, **fields)
    core.answered(asked, answer, now)


def _matched(core: Core, now: float) -> list[PushRequest]:
    """Answer the first comparison, and return the pushes that follow."""
    (compare,) = _pushes(core, now)
    assert compare.type is PushType.COMPARE
    _pushed(core, compare, now, index=compare.pre_log_index)
    return _pushes(core, now)


def _back_to(core: Core, index: int, now: float) -> list[PushRequest]:
    """Let the follower have nothing after `index`, and return the pushes that follow."""
    (compare,) = _pushes(core, now)
    _pushed(core, compare, now, code=ResponseCode.INCONSISTENT_STATE, end_index=index)
    if index < 0:
        return _pushes(core, now)
    return _matched(core, now)


@pytest.mark.parametrize(
    ("bytes_max", "counts"),
    [(3 * SIZE, [3, 3, 2]), (3 * SIZE - 1, [2, 2, 2, 2]), (SIZE, [1] * 8), (1, [1] * 8), (8 * SIZE, [8])],
)
def test_a_batch_has_so_many_bytes_and_at_least_one_entry(bytes_max: int, counts: list[int]) -> None:
    core = _leading(replace(CONFIG, batch_bytes_max=bytes_max), (1,) * 7)
    pushes = _back_to(core, -1, 2001.0)
    assert [len(push.batch_entry) for push in pushes] == [push.count for push in pushes] == counts
    assert [push.total_size for push in pushes] == [count * SIZE for count in counts]
    assert pushes[0].pre_log_index == -1
    assert [push.pre_log_index for push in pushes[1:]] == [push.batch_entry[-1].index for push in pushes[:-1]]


@pytest.mark.parametrize("entries", [0, 1])
def test_a_leader_compares_the_logs_first_unless_its_first_entry_is_new(entries: int) -> None:
    (push,) = _pushes(_leading(CONFIG, (1,) * entries), 2001.0)
    assert (push.type, push.pre_log_index) == (
        PushType.COMPARE if entries else PushType.APPEND,
        entries - 1,
    )


def test_a_batch_has_so_many_entries() -> None:
    core = _leading(replace(CONFIG, batch_entries_max=3), (1,) * 7)
    assert [push.count for push in _back_to(core, -1, 2001.0)] == [3, 3, 2]


def test_so_many_entries_are_sent_without_an_answer() -> None:
    core = _leading(replace(CONFIG, batch_entries_max=2, window=4), (1,) * 9)
    first = _back_to(core, -1, 2001.0)
    assert [push.batch_entry[0].index for push in first] == [0, 2]
    assert _pushes(core, 2002.0) == []
    _pushed(core, first[0], 2003.0, index=1)
    assert [push.batch_entry[0].index for push in _pushes(core, 2003.0)] == [4]


@pytest.mark.parametrize(
    ("end_index", "x_index", "next_one"),
    [(-1, -1, 0), (0, -1, 1), (2, -1, 3), (6, 4, 4), (6, 6, 6), (3, 6, 4), (6, 7, 7), (9, 0, 0), (9, -1, 7)],
)
def test_the_leader_looks_further_back_where_the_logs_may_agree(
    end_index: int, x_index: int, next_one: int
) -> None:
    """`end_index` is the follower's last entry, `x_index` the first one of its conflicting term."""
    core = _leading(CONFIG, (1,) * 8)
    (compare,) = _pushes(core, 2001.0)
    assert compare.pre_log_index == 7
    _pushed(
        core,
        compare,
        2001.0,
        code=ResponseCode.INCONSISTENT_STATE,
        end_index=end_index,
        x_index=x_index,
    )
    (again,) = _pushes(core, 2001.0)[:1]
    assert again.pre_log_index == next_one - 1
    assert again.type is (PushType.COMPARE if next_one else PushType.APPEND)


def test_the_leader_does_not_look_behind_what_a_follower_has_acknowledged() -> None:
    core = _leading(replace(CONFIG, batch_entries_max=2), (1,) * 8)
    pushes = _back_to(core, 1, 2001.0)
    _pushed(core, pushes[0], 2002.0, index=3)
    _pushed(core, pushes[2], 2003.0, code=ResponseCode.INCONSISTENT_STATE, end_index=6, x_index=2)
    (compare,) = _pushes(core, 2003.0)
    assert compare.pre_log_index == 3, "entry 3 is acknowledged, so the logs agree up to it"


def test_an_unanswered_push_is_repeated_after_its_time() -> None:
    core = _leading(CONFIG, (1,) * 3)
    (compare,) = _pushes(core, 2001.0)
    assert core._leading.deadline() == 3001
    assert _pushes(core, 3000.0) == []
    (again,) = _pushes(core, 3001.0)
    assert (again.type, again.pre_log_index) == (PushType.COMPARE, compare.pre_log_index)


def test_an_idle_follower_receives_the_committed_index_once() -> None:
    core = _leading(CONFIG)
    (push,) = _pushes(core, 2001.0)
    core.flushed(0)
    _pushed(core, push, 2010.0, index=0)
    assert core.state.commit == 0
    assert core._leading.deadline() == 3001
    assert _pushes(core, 3000.0) == []
    (news,) = _pushes(core, 3001.0)
    assert (news.type, news.commit_index, news.batch_entry) == (PushType.COMMIT, 0, ())
    _pushed(core, news, 3002.0, index=-1)
    assert _pushes(core, 9000.0) == []


def test_an_acknowledgement_of_what_was_not_sent_is_refused() -> None:
    core = _leading(CONFIG)
    (push,) = _pushes(core, 2001.0)
    _pushed(core, push, 2002.0, index=1)
    assert core.take_changes() == [Refused("n1", "an acknowledgement of entry 1, which it was not sent")]
    assert core.state.commit == -1


def test_a_leader_does_not_push_from_behind_a_deleted_entry() -> None:
    core = Core(CONFIG, Ballot(1, None), Terms((1,) * 20, begin=100), Random(1), 0.0)
    core.state.become_candidate(1, Reason.SILENCE)
    core.state.become_leader()
    core.take_changes()
    core.take_messages(_entry, 2000.0)
    for next_one, compared in ((102, None), (101, None), (100, 100), (99, 100)):
        follower = core._leading._followers["n1"]
        follower.next, follower.is_comparing, follower.comparing = next_one, False, None
        follower.pushes.clear()
        follower.matched = next_one - 1
        (push, *_) = _pushes(core, 2000.0)
        assert push.pre_log_index == (next_one - 1 if compared is None else compared)
        assert push.type is (PushType.APPEND if compared is None else PushType.COMPARE)


# The times of pushes.


def test_a_push_without_an_answer_is_repeated_from_the_last_acknowledged_entry() -> None:
    core = _leading(replace(CONFIG, batch_entries_max=2), (1,) * 8)
    pushes = _back_to(core, 1, 2001.0)
    assert [push.batch_entry[0].index for push in pushes] == [2, 4, 6, 8]
    _pushed(core, pushes[0], 2500.0, index=3)
    assert core._leading.deadline() == 3001, "of the other follower"
    assert _pushes(core, 3499.0) == []
    (again,) = _pushes(core, 3500.0)
    assert (again.type, again.pre_log_index) == (PushType.COMPARE, 3)


def test_a_repeated_acknowledgement_does_not_put_off_the_next_push() -> None:
    core = _leading(replace(CONFIG, batch_entries_max=2), (1,) * 8)
    pushes = _back_to(core, 1, 2001.0)
    for at in (2500.0, 3000.0):
        _pushed(core, pushes[0], at, index=3)
    (again,) = _pushes(core, 3500.0)
    assert again.type is PushType.COMPARE


def test_the_time_of_a_push_does_not_begin_again_with_the_next_push() -> None:
    core = _leading(CONFIG)
    _pushes(core, 2001.0)
    core.append(b"x", 2900.0)
    (next_one,) = _pushes(core, 2900.0)
    assert next_one.type is PushType.APPEND
    assert _pushes(core, 3000.0) == []
    assert [push.type for push in _pushes(core, 3001.0)] == [PushType.APPEND]


@pytest.mark.parametrize("entries", [0, 2])
def test_a_follower_that_has_everything_is_not_woken_for(entries: int) -> None:
    core = _leading(replace(CONFIG, members=("n0", "n1")), (1,) * entries)
    (push,) = _matched(core, 2001.0) if entries else _pushes(core, 2001.0)
    core.flushed(entries)
    _pushed(core, push, 2010.0, index=entries)
    (news,) = _pushes(core, 3001.0)
    assert (news.type, news.commit_index, news.kept_by_all) == (PushType.COMMIT, entries, entries)
    _pushed(core, news, 3002.0, index=-1)
    assert core._leading.deadline() == float("inf")
    assert _pushes(core, 9000.0) == []


def test_an_idle_follower_receives_what_all_members_keep() -> None:
    core = _leading(CONFIG)
    (first,), (second,) = _pushes_of(core, 2001.0)
    core.flushed(0)
    _pushed(core, first, 2010.0, index=0)
    (commit,) = _pushes(core, 3001.0)
    assert (commit.commit_index, commit.kept_by_all) == (0, -1)
    _pushed(core, commit, 3002.0, index=-1)
    _pushed(core, second, 3003.0, index=0)
    assert _pushes(core, 4000.0) == []
    (news,) = _pushes(core, 4001.0)
    assert (news.type, news.commit_index, news.kept_by_all) == (PushType.COMMIT, 0, 0)
    _pushed(core, news, 4002.0, index=-1)
    assert _pushes(core, 9000.0) == []


def _pushes_of(core: Core, now: float) -> list[list[PushRequest]]:
    """Return the pushes to n1, and those to n2."""
    core.take_changes()
    requests = [each for each in core.take_messages(_entry, now)[0] if isinstance(each, PushRequest)]
    return [[each for each in requests if each.remote_id == member] for member in ("n1", "n2")]


@pytest.mark.parametrize("acknowledged", [5, 4])
def test_the_committed_index_of_a_push_is_known_with_its_answer(acknowledged: int) -> None:
    """A follower that has acknowledged less than the committed index receives it again."""
    core = _leading(CONFIG, (2,) * 5, term=2)
    core.state.durable = 5
    first, second = _pushes_of(core, 2001.0)
    assert first[0].type is second[0].type is PushType.COMPARE
    for compare in (*first, *second):
        _pushed(core, compare, 2001.0, index=4)
    first, second = _pushes_of(core, 2001.0)
    _pushed(core, second[0], 2002.0, index=5)
    assert core.state.commit == 5
    core.append(b"x", 2003.0)
    (push,) = _pushes(core, 2003.0)
    assert (push.commit_index, push.batch_entry[0].index) == (5, 6)
    _pushed(core, first[0], 2004.0, index=5)
    _pushed(core, push, 2005.0, index=acknowledged + 1 if acknowledged == 5 else 4)
    follower = core._leading._followers["n1"]
    assert follower.confirmed_commit == acknowledged


# Late and wrong responses.


def test_the_answer_to_an_abandoned_comparison_has_no_effect() -> None:
    core = _leading(CONFIG, (1,) * 8)
    (old,) = _pushes(core, 2001.0)
    (new,) = _pushes(core, 3001.0)
    _pushed(core, old, 3002.0, code=ResponseCode.INCONSISTENT_STATE, end_index=2)
    _pushed(core, old, 3003.0, index=7)
    assert _pushes(core, 3004.0) == []
    _pushed(core, new, 3005.0, index=7)
    assert [push.batch_entry[0].index for push in _pushes(core, 3005.0)] == [8]


def test_a_late_refusal_of_an_acknowledged_push_has_no_effect() -> None:
    core = _leading(replace(CONFIG, batch_entries_max=2), (1,) * 8)
    pushes = _back_to(core, 1, 2001.0)
    _pushed(core, pushes[0], 2002.0, index=3)
    _pushed(core, pushes[0], 2003.0, code=ResponseCode.INCONSISTENT_STATE, end_index=1)
    assert _pushes(core, 2003.0) == []


def test_the_answer_to_a_push_of_an_earlier_term_has_no_effect() -> None:
    core = _leading(CONFIG, (1,) * 2)
    (compare,) = _pushes(core, 2001.0)
    _pushed(core, replace_term(compare, 1), 2001.0, index=1)
    late = PushResponse("g", "n0", "n1", "n0", 3, index=1)
    core.answered(compare, late, 2001.0)
    core.answered(compare, PushResponse("g", "n0", "n9", "n0", 2, index=1), 2001.0)
    assert _pushes(core, 2001.0) == []
    assert core.state.term == 2, "only heartbeats and votes show a later term"


def replace_term(push: PushRequest, term: int) -> PushRequest:
    return msgspec.structs.replace(push, term=term)


@pytest.mark.parametrize("code", [ResponseCode.NOT_FOLLOWER, ResponseCode.EXPIRED_TERM])
def test_a_member_that_does_not_follow_yet_is_asked_again_after_the_time(code: ResponseCode) -> None:
    core = _leading(CONFIG, (1,) * 2)
    (compare,) = _pushes(core, 2001.0)
    _pushed(core, compare, 2002.0, code=code)
    assert _pushes(core, 3000.0) == []
    assert [push.type for push in _pushes(core, 3001.0)] == [PushType.COMPARE]


def test_a_follower_that_denies_the_beginning_of_the_log_gets_it_again() -> None:
    core = _leading(CONFIG)
    (push,) = _pushes(core, 2001.0)
    _pushed(core, push, 2002.0, code=ResponseCode.INCONSISTENT_STATE, end_index=-1)
    (again,) = _pushes(core, 2002.0)
    assert (again.type, again.pre_log_index) == (PushType.APPEND, -1)


@pytest.mark.parametrize(("begin", "compared"), [(0, 0), (1, 1), (2, 2)])
def test_the_first_entry_that_exists_is_the_first_one_to_compare(begin: int, compared: int) -> None:
    core = Core(CONFIG, Ballot(1, None), Terms((1,) * 5, begin=begin), Random(1), 0.0)
    core.state.become_candidate(1, Reason.SILENCE)
    core.state.become_leader()
    _pushes(core, 2000.0)
    follower = core._leading._followers["n1"]
    follower.next, follower.is_comparing, follower.comparing = 1, True, None
    (push,) = _pushes(core, 2000.0)
    assert (push.type, push.pre_log_index) == (PushType.COMPARE, compared)


def test_a_follower_that_has_not_answered_a_push_gets_no_committed_index() -> None:
    core = _leading(replace(CONFIG, push_timeout_ms=5000))
    (push,) = _pushes(core, 2001.0)
    core.flushed(0)
    _pushed(core, push, 2010.0, index=0)
    core.append(b"x", 2500.0)
    assert [each.type for each in _pushes(core, 2500.0)] == [PushType.APPEND]
    assert _pushes(core, 4000.0) == []


# Transfers of the leadership.


def test_the_leadership_can_be_transferred_before_the_first_push() -> None:
    core = _leading(CONFIG)
    assert core.transfer("n1", 2000.0) is ResponseCode.SUCCESS
    assert core.append(b"x", 2000.0)[0] is ResponseCode.LEADER_TRANSFERRING


@pytest.mark.parametrize(
    ("lag_max", "code"), [(4, ResponseCode.SUCCESS), (3, ResponseCode.FALL_BEHIND_TOO_MUCH)]
)
def test_the_leadership_is_not_transferred_to_a_member_that_lags_too_far(
    lag_max: int, code: ResponseCode
) -> None:
    core = _leading(replace(CONFIG, transfer_lag_max=lag_max), (1,) * 3)
    _pushes(core, 2001.0)
    assert core.transfer("n1", 2001.0) is code


def test_so_many_uncommitted_entries_are_accepted() -> None:
    core = _leading(replace(CONFIG, pending_max=3))
    for index in (1, 2):
        assert core.append(b"x", 2000.0) == (ResponseCode.SUCCESS, index)
    assert core.append(b"x", 2000.0) == (ResponseCode.LEADER_PENDING_FULL, -1)


def test_a_leader_that_was_paused_steps_down_before_it_handles_a_request() -> None:
    core = _leading(CONFIG)
    at = 2000 + CONFIG.give_up_ms
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 1), at)
    assert core.state.role is Role.CANDIDATE
    assert core.state.term == 3


def test_a_leader_that_was_paused_steps_down_before_it_handles_an_answer() -> None:
    core = _leading(CONFIG)
    (push,) = _pushes(core, 2001.0)
    core.flushed(0)
    _pushed(core, push, 2000 + CONFIG.give_up_ms, index=0)
    assert core.state.role is Role.CANDIDATE
    assert core.state.commit == -1


# Followers.


def _following(config: GroupConfig = CONFIG, terms: tuple[int, ...] = (1,)) -> Core:
    """Return n0, which follows n1 in term 1."""
    core = Core(config, Ballot(1, None), Terms(terms), Random(1), 0.0)
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 1), 1.0)
    core.take_changes()
    core.take_messages(_entry, 1.0)
    return core


def _push(core: Core, first: int, last: int, commit: int = -1) -> None:
    batch = tuple(_entry(index) for index in range(first, last + 1))
    push = PushRequest(
        "g", "n0", "n1", "n1", 1, type=PushType.APPEND, pre_log_index=first - 1, pre_log_term=1,
        batch_entry=batch, count=len(batch), commit_index=commit,
    )  # fmt: skip
    core.handle(push, 2.0)


def _written(core: Core) -> list[int]:
    return [change.entry.index for change in core.take_changes() if isinstance(change, Written)]


def _push_large(core: Core, index: int, body_bytes: int) -> None:
    entry = Entry(NORMAL, 48 + body_bytes, index, 1, 0, body=bytes(body_bytes))
    push = PushRequest(
        "g", "n0", "n1", "n1", 1, type=PushType.APPEND, pre_log_index=index - 1, pre_log_term=1,
        batch_entry=(entry,), count=1,
    )  # fmt: skip
    core.handle(push, 2.0)


@pytest.mark.parametrize("leader", ["n1", "n2"])
def test_a_durable_push_of_an_earlier_leader_gets_no_response(leader: str) -> None:
    core = _following()
    _push(core, 1, 1)
    if leader != "n1":
        for _ in range(2):  # the first one makes it a candidate of the later term
            core.handle(HeartBeatRequest("g", "n0", leader, leader, 2), 3.0)
    assert (core.state.role, core.state.leader) == (Role.FOLLOWER, leader)
    core.flushed(1)
    core.take_changes()
    answers = [answer for _, answer in core.take_messages(_entry, 4.0)[1] if isinstance(answer, PushResponse)]
    assert [answer.index for answer in answers] == ([1] if leader == "n1" else [])


@pytest.mark.parametrize(("last_bytes", "kept"), [(6 << 20, True), ((6 << 20) + 1, False)])
def test_early_pushes_of_16_mib_are_kept(last_bytes: int, kept: bool) -> None:
    core = _following()
    _push_large(core, 2, 10 << 20)
    _push_large(core, 2, 10 << 20)  # repeated: it counts once
    _push_large(core, 3, last_bytes)
    _push(core, 1, 1)
    assert _written(core) == ([1, 2, 3] if kept else [1, 2])


def test_early_pushes_do_not_count_any_more_after_they_were_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_replication, "_EARLY_BYTES_MAX", 20)
    core = _following()
    _push(core, 2, 3)
    _push(core, 1, 1)
    _push(core, 5, 6)
    _push(core, 4, 4)
    assert _written(core) == [1, 2, 3, 4, 5, 6]


def test_1000_early_pushes_are_kept() -> None:
    core = _following()
    for index in (*range(2, 1003), 1):
        _push(core, index, index)
    assert _written(core) == list(range(1, 1002))


@pytest.mark.parametrize(
    ("terms", "before", "x_term", "x_index", "end"),
    [((1, 1, 1), (2, 2), 1, 0, 2), ((1, 2, 2), (2, 1), 2, 1, 2), ((1,), (1, 1), 0, -1, 0)],
)
def test_a_follower_names_the_first_entry_of_its_conflicting_term(
    terms: tuple[int, ...], before: tuple[int, int], x_term: int, x_index: int, end: int
) -> None:
    core = Core(CONFIG, Ballot(3, None), Terms(terms), Random(1), 0.0)
    core.handle(HeartBeatRequest("g", "n0", "n1", "n1", 3), 1.0)
    core.take_changes()
    core.take_messages(_entry, 1.0)
    compare = PushRequest(
        "g", "n0", "n1", "n1", 3, type=PushType.COMPARE, pre_log_index=before[0], pre_log_term=before[1]
    )
    core.handle(compare, 2.0)
    core.take_changes()
    ((_, answer),) = core.take_messages(_entry, 2.0)[1]
    assert isinstance(answer, PushResponse)
    assert answer.code == ResponseCode.INCONSISTENT_STATE
    assert (answer.x_term, answer.x_index, answer.end_index) == (x_term, x_index, end)

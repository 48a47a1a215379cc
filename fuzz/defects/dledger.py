"""Mutants of a DLedger group member. Each breaks a rule that protects a vote, a term or an entry."""

from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec

from mqproof.fuzz.defects.defect import Mutant
from mqproof.impl.dledger import ballot_file
from mqproof.impl.dledger.changes import Ballot, Cut, Leads, Written
from mqproof.impl.dledger.codes import RoundResult, Vote
from mqproof.impl.dledger.election import Election
from mqproof.impl.dledger.log_replication import Following, Leading
from mqproof.impl.dledger.member import Member
from mqproof.impl.dledger.pending import Pending
from mqproof.impl.dledger.rpc_bodies import (
    NO_INDEX,
    NORMAL,
    Entry,
    HeartBeatRequest,
    HeartBeatResponse,
    PushRequest,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.dledger.state import Role, State
from mqproof.impl.runtime.disk import Disk, write_durably

_append = State.append
_write = State.write
_become_leader = State.become_leader
_take = Following._take
_advance_commit = Leading.advance_commit
_handle_heart_beat = Election.handle_heart_beat
_heart_beat_answered = Election.heart_beat_answered
_voted = Election.voted
_load_ballot = ballot_file.load


def _all_committed(pending: Pending[Any], index: int, _term: int) -> list[Any]:
    """Report success for every pending index up to `index`, whatever entry is stored there."""
    return [pending._waiting.pop(at)[1] for at in [at for at in pending._waiting if at <= index]]


def _nothing(*_: object) -> None:
    return None


def _always(*_: object) -> bool:
    return True


def _half(members: int) -> int:
    return members // 2


def _term_only(member: Member, ballot: Ballot) -> None:
    ballot_file.write(member._disk, member._ballot_path, Ballot(ballot.term, None))


def _vote_after_the_term(member: Member, ballot: Ballot) -> None:
    """Make the term durable first; then write the vote into the same file without a sync."""
    term = f"currTerm={ballot.term}\nvoteLeader="
    write_durably(member._disk, member._ballot_path, f"{term}    \n".encode())
    if ballot.voted_for:
        file = member._disk.open(member._ballot_path)
        file.write(len(term), ballot.voted_for.encode())
        file.close()


def _kept_by_all_when_committed(leading: Leading) -> None:
    _advance_commit(leading)
    leading._state.kept_by_all = leading._state.commit


def _durable_when_written(state: State, entry: Entry) -> None:
    state.terms.append(entry.term)
    state.durable = state.terms.end
    state.changes.append(Written(entry))


def _durable_when_appended(state: State, magic: int, body: object) -> int:
    index = _append(state, magic, body)
    state.durable = index
    return index


def _lead_without_no_op(state: State) -> None:
    """Append the no-op entry only in the first leader. Its log is empty, and replication needs one entry."""
    if state.terms.end == NO_INDEX:
        _become_leader(state)
        return
    state.role = Role.LEADER
    state.leader = state.self_id
    state.changes.append(Leads(state.term))


def _end_in_current_term(state: State) -> tuple[int, int]:
    return state.term, state.terms.end


def _commit_as_requested(following: Following, request: PushRequest) -> None:
    state = following._state
    state.commit_to(min(request.commit_index, state.terms.end))


def _commit_beyond_the_end(following: Following, request: PushRequest) -> None:
    following._state.commit_to(request.commit_index)


def _cut_on_every_push(following: Following, request: PushRequest) -> None:
    state = following._state
    if request.batch_entry and request.pre_log_index < state.terms.end:
        end = request.pre_log_index
        state.terms.cut(end)
        state.durable = min(state.durable, end)
        state.changes.append(Cut(end))
    _take(following, request)


def _write_another_body(state: State, entry: Entry) -> None:
    _write(state, msgspec.structs.replace(entry, body=bytes(len(entry.body))))


def _wait_for_ever(election: Election, _now: float) -> None:
    election._stand_at = float("inf")


def _follow_any_leader(election: Election, request: HeartBeatRequest, now: float) -> None:
    """Accept a heartbeat of an older term and adopt that term."""
    state = election._state
    if request.term < state.term and state.role is not Role.LEADER:
        state.term, state.voted_for, state.leader = request.term, None, None
        state.changes.append(Ballot(state.term, None))
    _handle_heart_beat(election, request, now)


def _lead_on_in_a_later_term(
    election: Election, request: HeartBeatRequest, response: HeartBeatResponse, now: float
) -> None:
    """Keep leading in a later term after learning of it, for example after SIGCONT."""
    state = election._state
    if state.role is Role.LEADER and response.term > state.term:
        state.term, state.voted_for = response.term, state.self_id
        state.changes += [Ballot(state.term, state.self_id), Leads(state.term)]
        return
    _heart_beat_answered(election, request, response, now)


def _cut_and_count_on(state: State, end: int) -> None:
    """Cut entries without lowering the durable index, so that later entries count before they are synced."""
    state.terms.cut(end)
    state.changes.append(Cut(end))


def _count_any_vote(election: Election, request: VoteRequest, response: VoteResponse, now: float) -> None:
    """Count the answer to any request, whatever round and term it belongs to."""
    if election._round is None:
        return
    election._round.asked[response.local_id] = request
    _voted(election, request, response, now)


def _vote_not_read(disk: Disk, path: str) -> Ballot | None:
    ballot = _load_ballot(disk, path)
    return ballot and Ballot(ballot.term, None)


def _majority_of_those_heard(results: Collection[Vote], _members: int) -> RoundResult:
    accepted = sum(result is Vote.ACCEPT for result in results)
    return RoundResult.PASSED if 2 * accepted > len(results) else RoundResult.WAIT_TO_REVOTE


def _best_of_all(kept: Iterable[int]) -> int:
    return max(kept)


def _cut_uncommitted_at_leading(state: State) -> None:
    """Truncate, as a new leader, all entries that are not known to be committed."""
    if state.terms.end > state.commit >= 0:
        state.terms.cut(state.commit)
        state.durable = min(state.durable, state.commit)
        state.role, state.leader = Role.LEADER, state.self_id
        state.changes += [Leads(state.term), Cut(state.commit)]
        state.append(NORMAL, b"")
    else:
        _become_leader(state)


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Any) -> Mutant:
    return Mutant(name, defect, "dledger-group", breaks, f"mqproof.impl.dledger.{where}", wrong)


MUTANTS: Final = (
    _mutant(
        "VoteNotPersisted",
        "the file stores the term without the vote, so a restart loses the vote",
        "VoteOncePerTerm",
        "member:Member.persist",
        _term_only,
    ),
    _mutant(
        "VoteForgotten",
        "a restarted member remembers its term but not its vote",
        "VoteOncePerTerm",
        "ballot_file:load",
        _vote_not_read,
    ),
    _mutant(
        "TermAndVoteApart",
        "the vote is written after the term is durable, not together with it",
        "VoteOncePerTerm",
        "member:Member.persist",
        _vote_after_the_term,
    ),
    _mutant(
        "VotesAgain",
        "a voter accepts every candidate, and may then become a candidate itself",
        "VoteOncePerTerm",
        "rules:may_vote_for",
        _always,
    ),
    _mutant(
        "MajorityOfTheHeard",
        "a majority of the received answers is enough to lead",
        "ElectionSafety",
        "rules:round_result",
        _majority_of_those_heard,
    ),
    _mutant(
        "HalfIsEnough",
        "half of the members, rounded down, count as a majority",
        "ElectionSafety",
        "rules:quorum",
        _half,
    ),
    _mutant(
        "AckBeforeSync",
        "a follower's entry counts as durable when it is in the page cache",
        "LeaderCompleteness",
        "state:State.write",
        _durable_when_written,
    ),
    _mutant(
        "EndTermIsCurrentTerm",
        "the current term is used as the term of the last entry",
        "LeaderCompleteness",
        "state:State.end",
        property(_end_in_current_term),
    ),
    _mutant(
        "LogsNotCompared",
        "a candidate with a worse log receives the vote",
        "LeaderCompleteness",
        "rules:is_up_to_date",
        _always,
    ),
    _mutant(
        "CommitUncompared",
        "a follower commits the leader's index without comparing its own log",
        "CommittedStable",
        "log_replication:Following._learn_commit",
        _commit_as_requested,
    ),
    _mutant(
        "CommitBeyondTheEnd",
        "a follower commits an index that it does not have",
        "CommittedStable",
        "log_replication:Following._learn_commit",
        _commit_beyond_the_end,
    ),
    _mutant(
        "CutsOnEveryPush",
        "a follower cuts all entries after a push, which may be committed",
        "CommittedStable",
        "log_replication:Following._take",
        _cut_on_every_push,
    ),
    _mutant(
        "AnotherBodyWritten",
        "a follower writes an entry with another body than its leader's",
        "LogMatching",
        "state:State.write",
        _write_another_body,
    ),
    _mutant(
        "LeaderCutsItsTail",
        "a new leader cuts entries that it does not know to be committed",
        "LeaderAppendOnly",
        "state:State.become_leader",
        _cut_uncommitted_at_leading,
    ),
    _mutant(
        "AcknowledgedByIndex",
        "a client receives SUCCESS when another entry is committed at its index",
        "NoAckedLost",
        "pending:Pending.committed",
        _all_committed,
    ),
    _mutant(
        "LeaderCountsItself",
        "an entry on the leader is committed, however many members have it",
        "LeaderCompleteness",
        "rules:majority_index",
        _best_of_all,
    ),
    _mutant(
        "OwnEntryBeforeSync",
        "a leader counts its own entry before it is durable",
        "LeaderCompleteness",
        "state:State.append",
        _durable_when_appended,
    ),
    _mutant(
        "TornEntryAccepted",
        "recovery does not check the checksum of an entry",
        "RecoveredPrefix",
        "entry_format:is_whole",
        _always,
    ),
    _mutant(
        "NeverStandsAgain",
        "a candidate whose round failed never starts another round",
        "LeaderEventually",
        "election:Election._stand",
        _wait_for_ever,
    ),
    _mutant(
        "CommitNotLearned",
        "a follower never receives the committed index",
        "LogsConverge",
        "log_replication:Following._learn_commit",
        _nothing,
    ),
    _mutant(
        "VoterDoesNotWait",
        "a follower that hears its leader votes for a candidate of a later term",
        "ReadsCurrent",
        "election:Election._waits_for_another",
        _nothing,
    ),
)

SELDOM: Final = (
    _mutant(
        "LeadsWithoutNoOp",
        "a new leader appends no entry of its own term, so older entries wait for the next message",
        "LogsConverge",
        "state:State.become_leader",
        _lead_without_no_op,
    ),
    _mutant(
        "StaleHeartBeatAccepted",
        "a member follows a heartbeat of an older term",
        "VoteOncePerTerm",
        "election:Election.handle_heart_beat",
        _follow_any_leader,
    ),
    _mutant(
        "LeadsOnAfterStop",
        "a leader that was paused and receives a later term continues to lead in it",
        "ElectionSafety",
        "election:Election.heart_beat_answered",
        _lead_on_in_a_later_term,
    ),
    _mutant(
        "OldTermCounted",
        "an entry of an older term is committed by counting the members that have it",
        "LeaderCompleteness",
        "rules:may_commit",
        _always,
    ),
    _mutant(
        "DeletedBeforeAllHaveIt",
        "old entries are deleted when a majority has them, not all members",
        "LogsConverge",
        "log_replication:Leading.advance_commit",
        _kept_by_all_when_committed,
    ),
    _mutant(
        "DurableNotLowered",
        "a truncation does not lower the durable index, so later entries count before they are durable",
        "LeaderCompleteness",
        "state:State.cut",
        _cut_and_count_on,
    ),
    _mutant(
        "EarlierRoundCounted",
        "a candidate counts a late vote of an earlier round, which had an earlier term",
        "ElectionSafety",
        "election:Election.voted",
        _count_any_vote,
    ),
)
"""Mutants that are revealed by few programs or only by long ones. The simulation runs enough of them."""

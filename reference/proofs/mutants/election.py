"""Broken variants of the election proof: the classic Raft mistakes, including DLedger's own."""

from dataclasses import replace
from functools import partial
from typing import Any, Final

from mqproof.reference.proofs import election
from mqproof.reference.proofs.election import NO_NODE, State
from mqproof.reference.proofs.logic import Scope, Term, choose, conjunction, disjunction, minimum, updated
from mqproof.reference.proofs.mutants.mutant import Mutant

Step = tuple[Term, State]


def _votes_twice(scope: Scope, s: State, c: Term, v: Term, *message: Term) -> Step:
    """The voter does not check whether it has voted already."""
    free = replace(s, voted_for=updated(s.voted_for, v, NO_NODE))
    guard, after = election.handle_vote(scope, free, c, v, *message)
    kept = choose(after.voted_for(v) == NO_NODE, s.voted_for(v), after.voted_for(v))
    return guard, replace(after, voted_for=updated(s.voted_for, v, kept))


def _vote_forgotten(scope: Scope, s: State, n: Term, kept: Term) -> Step:
    """The vote was not made durable before it was given."""
    guard, after = election.crash(scope, s, n, kept)
    return guard, replace(after, voted_for=updated(s.voted_for, n, NO_NODE))


def _logs_not_compared(scope: Scope, s: State, c: Term, v: Term, *message: Term) -> Step:
    """The voter accepts any log as being as good as its own."""
    empty = replace(s, log_length=updated(s.log_length, v, 0))
    guard, after = election.handle_vote(scope, empty, c, v, *message)
    return guard, replace(after, log_length=s.log_length)


def _leader_overwrites(scope: Scope, s: State, n: Term, message: Term) -> Step:
    """The leader overwrites its last entry."""
    shorter = replace(s, log_length=updated(s.log_length, n, s.log_length(n) - 1))
    guard, after = election.append_entry(scope, shorter, n, message)
    return conjunction(guard, s.log_length(n) >= 1), after


def _gap_accepted(scope: Scope, s: State, source: Term, n: Term, t: Term, i: Term, *entry: Term) -> Step:
    """The follower does not compare the previous entry."""
    seeming = replace(s, log_term=updated(s.log_term, n, i - 1, entry[0]))
    guard, after = election.handle_push(scope, seeming, source, n, t, i, *entry)
    real = updated(after.log_term, n, i - 1, s.log_term(n, i - 1))
    there = disjunction(i == 1, i - 1 <= s.log_length(n))
    return conjunction(guard, there), replace(after, log_term=real)


def _ack_before_fsync(scope: Scope, s: State, source: Term, n: Term, *push: Term) -> Step:
    """DLedger as released: the follower confirms entries that are only in its page cache."""
    eager = replace(s, durable=updated(s.durable, n, s.log_length(n)))
    guard, after = election.handle_push(scope, eager, source, n, *push)
    return guard, replace(after, durable=updated(s.durable, n, minimum(s.durable(n), after.durable(n))))


def _old_term_counted(scope: Scope, s: State, n: Term, index: Term) -> Step:
    """DLedger as released: an entry of an older term is committed by counting (Raft's figure 8)."""
    _, after = election.advance_commit(scope, s, n, index)
    return election.is_what_a_quorum_has(scope, s, n, index), after


def _stands_again(_scope: Scope, s: State, n: Term) -> Step:
    """A node that led restarts as a candidate in the same term, without the entries that it lost."""
    return s.role(n) == election.DOWN, replace(
        s,
        role=updated(s.role, n, election.CANDIDATE),
        voted_for=updated(s.voted_for, n, NO_NODE),
        known=updated(s.known, n, s.term(n)),
    )


_BUGS: Final[tuple[tuple[Any, ...], ...]] = (
    ("VotesTwice", "ElectionSafety", "HandleVote", _votes_twice, "a_vote_is_not_taken_back"),
    ("StandsAgain", "ElectionSafety", "Restart", _stands_again, "a_vote_is_not_taken_back"),
    ("VoteForgotten", "VoteOncePerTerm", "Crash", _vote_forgotten, "a_vote_is_not_taken_back"),
    ("LeaderOverwrites", "LeaderAppendOnly", "AppendEntry", _leader_overwrites),
    ("GapAccepted", "LogMatching", "HandlePush", _gap_accepted),
    (
        "LogsNotCompared",
        "LeaderCompleteness",
        "HandleVote",
        _logs_not_compared,
        "accepted_candidates_have_it",
    ),
    (
        "AckBeforeFsync",
        "LeaderCompleteness",
        "HandlePush",
        _ack_before_fsync,
        "acknowledged_entries_are_kept",
    ),
    ("OldTermCounted", "CommittedStable", "AdvanceCommit", _old_term_counted),
)

MUTANTS: Final = tuple(partial(Mutant, proof)(*bug) for proof in election.PROOFS[:1] for bug in _BUGS)

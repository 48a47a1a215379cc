"""The rules that need no state. Each of them is broken by a mutant.

See docs/reference/protocol/dledger.md, "Votes".
"""

from collections.abc import Collection, Iterable

from mqproof.impl.dledger.codes import RoundResult, Vote

_BETTER_LEDGER = frozenset({Vote.REJECT_EXPIRED_LEDGER_TERM, Vote.REJECT_SMALL_LEDGER_END_INDEX})


def quorum(members: int) -> int:
    """Return how many of this number of members are a majority."""
    return members // 2 + 1


def is_up_to_date(end: tuple[int, int], mine: tuple[int, int]) -> bool:
    """Return whether a log is at least as good as mine. `end` is the (term, index) of its last entry."""
    return end >= mine


def vote_result(
    candidate: str,
    term: int,
    end: tuple[int, int],
    mine: tuple[int, int],
    voter_state: tuple[int, str | None, str | None],
) -> Vote:
    """Return the response to a candidate, by the first rule that applies: first the logs, then the terms.

    `end` and `mine` are (term, index) of the last entries of the candidate and of the voter. `voter_state` is
    the voter's term, vote and leader.
    """
    my_term, voted_for, leader = voter_state
    if end[0] < mine[0]:
        return Vote.REJECT_EXPIRED_LEDGER_TERM
    if not is_up_to_date(end, mine):
        return Vote.REJECT_SMALL_LEDGER_END_INDEX
    if term < my_term:
        return Vote.REJECT_EXPIRED_VOTE_TERM
    if term == my_term and not may_vote_for(candidate, voted_for):
        return Vote.REJECT_ALREADY_VOTED if leader is None else Vote.REJECT_ALREADY_HAS_LEADER
    if term > my_term:
        return Vote.REJECT_TERM_NOT_READY
    return Vote.REJECT_TERM_SMALL_THAN_LEDGER if term < mine[0] else Vote.ACCEPT


def may_vote_for(candidate: str, voted_for: str | None) -> bool:
    """Return whether the vote may go to the candidate: one vote per term, which may be repeated."""
    return voted_for in (None, candidate)


def round_result(results: Collection[Vote], members: int) -> RoundResult:
    """Return the result of a round, from the votes received, including the candidate's own.

    A response with a later term has already ended the round.
    """
    needed = quorum(members)
    better = sum(result in _BETTER_LEDGER for result in results)
    accepted = sum(result is Vote.ACCEPT for result in results)
    not_ready = sum(result is Vote.REJECT_TERM_NOT_READY for result in results)
    if Vote.REJECT_ALREADY_HAS_LEADER in results or len(results) - better < needed:
        return RoundResult.WAIT_TO_REVOTE
    if accepted >= needed:
        return RoundResult.PASSED
    if accepted + not_ready >= needed:
        return RoundResult.REVOTE_IMMEDIATELY
    return RoundResult.WAIT_TO_VOTE_NEXT


def is_decided(results: Collection[Vote], members: int) -> bool:
    """Return whether the round can end now: all members voted, or enough did."""
    if len(results) == members or Vote.REJECT_ALREADY_HAS_LEADER in results:
        return True
    ready = sum(result in (Vote.ACCEPT, Vote.REJECT_TERM_NOT_READY) for result in results)
    return ready >= quorum(members)


def better_ledgers(results: Iterable[Vote]) -> bool:
    """Return whether a voter has a better log, and should therefore become a candidate first."""
    return any(result in _BETTER_LEDGER for result in results)


def majority_index(kept: Iterable[int]) -> int:
    """Return the highest index that a quorum has durably.

    `kept` has one number per member, the leader included.
    """
    descending = sorted(kept, reverse=True)
    return descending[quorum(len(descending)) - 1]


def may_commit(entry_term: int | None, term: int) -> bool:
    """Return whether an entry may be committed by counting: only if it is of the leader's own term.

    Older entries are committed together with it (figure 8 of the Raft paper).
    """
    return entry_term == term


def stands_from(term: int, voted_for: str | None, self_id: str) -> int:
    """Return the first term in which a restarted member may be a candidate.

    It must not be a term in which it may have led, because it may have lost entries of that term that others
    have.
    """
    return term + 1 if voted_for == self_id else term

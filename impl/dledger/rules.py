"""The rules that need no state; each is one that a mutant breaks. See docs/protocol.md, "DLedger"."""

from collections.abc import Collection, Iterable

from mqproof.impl.dledger.codes import RoundResult, Vote

_BETTER_LEDGER = frozenset({Vote.REJECT_EXPIRED_LEDGER_TERM, Vote.REJECT_SMALL_LEDGER_END_INDEX})


def quorum(members: int) -> int:
    """How many of so many members are a majority."""
    return members // 2 + 1


def is_up_to_date(end: tuple[int, int], mine: tuple[int, int]) -> bool:
    """Is a log that ends so, as (term, index) of its last entry, at least as good as mine?"""
    return end >= mine


def vote_result(
    candidate: str,
    term: int,
    end: tuple[int, int],
    mine: tuple[int, int],
    standing: tuple[int, str | None, str | None],
) -> Vote:
    """The answer to a candidate, by the first rule that applies: first the logs, then the terms.

    `end` and `mine` are (term, index) of the candidate's and the voter's last entries; `standing` is the
    voter's term, vote and leader.
    """
    my_term, voted_for, leader = standing
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
    """A vote is given once in a term, and stands when it is asked for again."""
    return voted_for in (None, candidate)


def round_result(results: Collection[Vote], members: int) -> RoundResult:
    """Of the answers that a candidate heard, its own included. A later term ended the round already."""
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
    """Whether more answers can wait: everybody answered, or enough did."""
    if len(results) == members or Vote.REJECT_ALREADY_HAS_LEADER in results:
        return True
    ready = sum(result in (Vote.ACCEPT, Vote.REJECT_TERM_NOT_READY) for result in results)
    return ready >= quorum(members)


def better_ledgers(results: Iterable[Vote]) -> bool:
    """Whether somebody has a better log, so that it should ask first."""
    return any(result in _BETTER_LEDGER for result in results)


def majority_index(kept: Iterable[int]) -> int:
    """The highest index that a quorum keeps durably; one number a member, the leader's own included."""
    descending = sorted(kept, reverse=True)
    return descending[quorum(len(descending)) - 1]


def may_commit(entry_term: int, term: int) -> bool:
    """By counting, only entries of the leader's own term (Raft's figure 8); older ones go with them."""
    return entry_term == term


def stands_from(term: int, voted_for: str | None, self_id: str) -> int:
    """The term that a member which starts again may stand in: not one that it may have led, since it could
    have lost entries of that term which others have."""
    return term + 1 if voted_for == self_id else term

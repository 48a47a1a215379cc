"""The role and the state of a member. Every change of role goes through one of the `become_*` methods."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from mqproof.impl.dledger.changes import (
    Appended,
    Ballot,
    Change,
    Committed,
    Cut,
    Follows,
    Leads,
    Reason,
    Refused,
    SteppedDown,
    Written,
)
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.limits import TERM_JUMP_MAX
from mqproof.impl.dledger.rpc_bodies import NO_INDEX, NO_OP, Entry, Message, Request, Response
from mqproof.impl.dledger.rules import stands_from
from mqproof.impl.dledger.terms import Terms

M = TypeVar("M", bound=Message)


class Role(StrEnum):
    CANDIDATE = "CANDIDATE"
    FOLLOWER = "FOLLOWER"
    LEADER = "LEADER"


class State:
    """The state of one member, with the names of the TLA+ model Election.

    Comments say which fields are durable.

    `changes` collects what the shell must carry out. `requests` and `answers` may be sent once that is done.
    `terms` is ahead of the disk by exactly the entries in `changes`.
    """

    def __init__(self, config: GroupConfig, ballot: Ballot, terms: Terms) -> None:
        self.config = config
        self.self_id = config.self_id
        self.role = Role.CANDIDATE
        self.term = ballot.term  # durable, in one write with the vote
        self.voted_for = ballot.voted_for
        self.terms = terms
        self.durable = terms.end  # a start syncs everything it finds
        self.leader: str | None = None
        self.known = stands_from(ballot.term, ballot.voted_for, config.self_id)
        """The term that a candidate is about to enter, if later than its own."""
        self.commit = NO_INDEX
        self.kept_by_all = NO_INDEX
        """Entries up to this index are committed and durable on all members, so no member requests them."""
        self.known_committed = NO_INDEX
        """Entries up to this index are committed, as the files of the member prove. `commit` starts later."""
        self.misplaced: Callable[[Sequence[Entry]], str | None] = lambda _: None
        """Returns why the ledger cannot hold entries of a leader at their place, or None if it can."""
        self.changes: list[Change] = []
        self.requests: list[Request] = []
        self.answers: list[tuple[Request, Response]] = []

    @property
    def end(self) -> tuple[int, int]:
        """The term and index of the last entry."""
        return self.terms.end_term, self.terms.end

    @property
    def guarded(self) -> int:
        """The index up to which no entry may be replaced: these entries are committed."""
        begin = self.terms.begin  # everything before it was deleted, after it was committed
        return max(self.commit, self.known_committed, begin if begin > 0 else NO_INDEX)

    def is_too_far(self, term: int) -> bool:
        """Return whether a term is too far ahead to be that of a correct member."""
        return term > self.term + TERM_JUMP_MAX

    def refuse(self, peer: str, why: str) -> None:
        """Record that something from a peer was refused. No correct member sends it."""
        self.changes.append(Refused(peer, why))

    # -- roles

    def become_candidate(self, term: int, reason: Reason, peer: str | None = None) -> None:
        """Become a candidate: it received a later term, or lost its leader.

        `next_term` then enters the term.
        """
        self.role = Role.CANDIDATE
        self.leader = None
        self.known = max(self.known, term)
        self.changes.append(SteppedDown(self.known, reason, peer))

    def next_term(self) -> None:
        """Enter the known later term, which becomes durable before any message mentions it."""
        assert self.role is Role.CANDIDATE, f"a {self.role} entered term {self.known}"
        assert self.known > self.term, f"term {self.known} after {self.term}"
        self.term, self.voted_for = self.known, None
        self.changes.append(Ballot(self.term, None))

    def cast(self, candidate: str) -> None:
        """Give the vote of this term. It becomes durable before any message mentions it."""
        if self.voted_for != candidate:
            self.voted_for = candidate
            self.changes.append(Ballot(self.term, candidate))

    def become_leader(self) -> None:
        self.role = Role.LEADER
        self.leader = self.self_id
        self.changes.append(Leads(self.term))
        # Committing it also commits entries of older terms, without waiting for the next message.
        self.append(NO_OP, b"")

    def become_follower(self, leader: str) -> None:
        self.role = Role.FOLLOWER
        self.leader = leader
        self.known = self.term
        self.changes.append(Follows(leader, self.term))

    # -- the ledger

    def append(self, magic: int, body: object) -> int:
        """Append the leader's next entry. Returns its index."""
        self.terms.append(self.term)
        self.changes.append(Appended(self.terms.end, self.term, magic, body))
        return self.terms.end

    def write(self, entry: Entry) -> None:
        """Append an entry of the leader at a follower."""
        assert entry.index == self.terms.end + 1, f"entry {entry.index} after {self.terms.end}"
        self.terms.append(entry.term)
        self.changes.append(Written(entry))

    def cut(self, end: int) -> None:
        """Remove entries that conflict with the leader's. They are never committed ones."""
        assert end >= self.commit, f"cut after {end}, committed is {self.commit}"
        self.terms.cut(end)
        self.durable = min(self.durable, end)
        self.changes.append(Cut(end))

    def commit_to(self, index: int) -> None:
        if index > self.commit:
            self.commit = index
            self.changes.append(Committed(index))

    # -- messages

    def ask(self, kind: Callable[..., M], member: str, asker: str | None = None, **fields: object) -> M:
        """Add a request to a member, with this term. It is sent when `requests` is taken.

        It names the leader. A candidate that takes over names the leader that asked it to.
        """
        request = kind(
            group=self.config.group,
            remote_id=member,
            local_id=self.self_id,
            leader_id=self.leader or asker,
            term=self.term,
            **fields,
        )
        self.requests.append(request)  # type: ignore[arg-type]  # every kind passed in is a Request
        return request

    def answer(self, request: Request, kind: Callable[..., Response], **fields: object) -> None:
        """Add the response to a request. Every response has the current term."""
        response = kind(
            group=self.config.group,
            remote_id=request.local_id,
            local_id=self.self_id,
            leader_id=self.leader,
            term=self.term,
            **fields,
        )
        self.answers.append((request, response))

"""What a member is and what it remembers; every change of role passes through one `become_*` here."""

from collections.abc import Callable
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
    SteppedDown,
    Written,
)
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.rpc_bodies import NO_INDEX, NO_OP, Entry, Message, Request, Response
from mqproof.impl.dledger.rules import stands_from
from mqproof.impl.dledger.terms import Terms

M = TypeVar("M", bound=Message)


class Role(StrEnum):
    CANDIDATE = "CANDIDATE"
    FOLLOWER = "FOLLOWER"
    LEADER = "LEADER"


class State:
    """Names are those of the model, Election; what is durable says so.

    `changes` collects what the shell has to carry out, `requests` and `answers` what may leave once that is
    done. `terms` runs ahead of the disk by what is in `changes`, and by nothing else.
    """

    def __init__(self, config: GroupConfig, ballot: Ballot, terms: Terms) -> None:
        self.config = config
        self.self_id = config.self_id
        self.role = Role.CANDIDATE
        self.term = ballot.term  # durable, in one write with the vote
        self.voted_for = ballot.voted_for
        self.terms = terms
        self.durable = terms.end  # what a start finds it syncs
        self.leader: str | None = None
        self.known = stands_from(ballot.term, ballot.voted_for, config.self_id)
        """The term that a candidate is about to enter, if later than its own."""
        self.commit = NO_INDEX
        self.kept_by_all = NO_INDEX
        """What is committed, and all members have it durably: nobody will ask for it."""
        self.changes: list[Change] = []
        self.requests: list[Request] = []
        self.answers: list[tuple[Request, Response]] = []

    @property
    def end(self) -> tuple[int, int]:
        """Term and index of the last entry."""
        return self.terms.end_term, self.terms.end

    # -- roles

    def become_candidate(self, term: int, reason: Reason, peer: str | None = None) -> None:
        """It learned of a term, or wants it since its own is lost; it enters it by `next_term`."""
        self.role = Role.CANDIDATE
        self.leader = None
        self.known = max(self.known, term)
        self.changes.append(SteppedDown(self.known, reason, peer))

    def next_term(self) -> None:
        """Enter the term that is known of. It is durable before anybody hears of it."""
        assert self.role is Role.CANDIDATE, f"a {self.role} entered term {self.known}"
        if self.known > self.term:
            self.term, self.voted_for = self.known, None
            self.changes.append(Ballot(self.term, None))

    def cast(self, candidate: str) -> None:
        """Give the vote of this term, durably before anybody hears of it."""
        if self.voted_for != candidate:
            self.voted_for = candidate
            self.changes.append(Ballot(self.term, candidate))

    def become_leader(self) -> None:
        self.role = Role.LEADER
        self.leader = self.self_id
        self.changes.append(Leads(self.term))
        # Entries of older terms are committed through it, without waiting for the next message.
        self.append(NO_OP, b"")

    def become_follower(self, leader: str) -> None:
        self.role = Role.FOLLOWER
        self.leader = leader
        self.known = self.term
        self.changes.append(Follows(leader, self.term))

    # -- the ledger

    def append(self, magic: int, body: object) -> int:
        """The leader's next entry; its index."""
        self.terms.append(self.term)
        self.changes.append(Appended(self.terms.end, self.term, magic, body))
        return self.terms.end

    def write(self, entry: Entry) -> None:
        """The leader's entry, at a follower's end."""
        assert entry.index == self.terms.end + 1, f"entry {entry.index} behind {self.terms.end}"
        self.terms.append(entry.term)
        self.changes.append(Written(entry))

    def cut(self, end: int) -> None:
        """Forget entries that contradict the leader's. They are never committed."""
        assert end >= self.commit, f"cut behind {end}, committed is {self.commit}"
        self.terms.cut(end)
        self.durable = min(self.durable, end)
        self.changes.append(Cut(end))

    def commit_to(self, index: int) -> None:
        if index > self.commit:
            self.commit = index
            self.changes.append(Committed(index))

    # -- messages

    def ask(self, kind: Callable[..., M], member: str, **fields: object) -> M:
        """A request to a member, of this term. It leaves when `requests` is taken."""
        request = kind(
            group=self.config.group,
            remote_id=member,
            local_id=self.self_id,
            leader_id=self.leader,
            term=self.term,
            **fields,
        )
        self.requests.append(request)  # type: ignore[arg-type]  # every kind that is asked is a Request
        return request

    def answer(self, request: Request, kind: Callable[..., Response], **fields: object) -> None:
        """Answer a request; every answer tells the term."""
        response = kind(
            group=self.config.group,
            remote_id=request.local_id,
            local_id=self.self_id,
            leader_id=self.leader,
            term=self.term,
            **fields,
        )
        self.answers.append((request, response))

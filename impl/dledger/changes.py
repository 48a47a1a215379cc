"""What a step of the core changes, in order: each is carried out, then told of, before the next."""

from dataclasses import dataclass
from enum import StrEnum

from mqproof.impl.dledger.codes import Vote
from mqproof.impl.dledger.rpc_bodies import Entry


class Reason(StrEnum):
    """Why a member became a candidate."""

    VOTE = "vote"  # a candidate of a later term asked
    HEART_BEAT = "heart_beat"  # a leader of a later term
    ANSWER = "answer"  # an answer told of a later term
    SILENCE = "silence"  # no leader was heard of for too long
    NO_QUORUM = "no_quorum"  # a leader heard of too few
    ROUND = "round"  # a round of votes was lost
    TRANSFER = "transfer"  # its leader asked it to take over
    TWO_LEADERS = "two_leaders"  # the other leader of its term was met: never, unless a vote was forgotten


@dataclass(frozen=True, slots=True)
class Ballot:
    """Term and vote, to be durable together before anything else is done."""

    term: int
    voted_for: str | None


@dataclass(frozen=True, slots=True)
class Voted:
    """An answer to a candidate, itself perhaps."""

    candidate: str
    term: int
    """Of the request."""
    result: Vote


@dataclass(frozen=True, slots=True)
class SteppedDown:
    """It is a candidate now."""

    term: int
    """The term that it is about to enter."""
    reason: Reason
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class Leads:
    term: int


@dataclass(frozen=True, slots=True)
class Follows:
    leader: str
    term: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Entries behind `end` contradict the leader's."""

    end: int


@dataclass(frozen=True, slots=True)
class Written:
    """An entry of the leader's, to be written at the end as it is."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Appended:
    """The leader's own next entry. The ledger makes it."""

    index: int
    term: int
    magic: int
    body: object
    """bytes, or a function of the position of the body that returns them."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A follower is about to answer its leader that it keeps durably what the leader has up to `index`."""

    index: int
    leader: str


@dataclass(frozen=True, slots=True)
class Committed:
    index: int


@dataclass(frozen=True, slots=True)
class Lacks:
    """A follower asks for entries that the leader has deleted, as no member does that kept its disk."""

    member: str
    begin: int
    """The leader's first entry."""


Change = Ballot | Voted | SteppedDown | Leads | Follows | Cut | Written | Appended | Kept | Committed | Lacks

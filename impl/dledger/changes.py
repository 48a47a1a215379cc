"""The changes made by a step of the core, in order. Each is carried out, then logged, before the next."""

from dataclasses import dataclass
from enum import StrEnum

from mqproof.impl.dledger.codes import Vote
from mqproof.impl.dledger.rpc_bodies import Entry


class Reason(StrEnum):
    """Why a member became a candidate."""

    VOTE = "vote"  # a candidate of a later term requested a vote
    HEART_BEAT = "heart_beat"  # a leader of a later term sent a heartbeat
    ANSWER = "answer"  # a response had a later term
    SILENCE = "silence"  # no leader was heard from for too long
    NO_QUORUM = "no_quorum"  # a leader heard from too few members
    ROUND = "round"  # a round of votes was lost
    TRANSFER = "transfer"  # its leader requested that it take over, or its own such request was not answered
    TWO_LEADERS = "two_leaders"  # another leader of the same term was met: impossible, unless a vote was lost


@dataclass(frozen=True, slots=True)
class Ballot:
    """Term and vote, which must be durable together before any further change."""

    term: int
    voted_for: str | None


@dataclass(frozen=True, slots=True)
class Voted:
    """A vote: the response to a candidate, which may be the member itself."""

    candidate: str
    term: int
    """The term of the request."""
    result: Vote


@dataclass(frozen=True, slots=True)
class SteppedDown:
    """The member is now a candidate."""

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
    """Entries after `end` conflict with the leader's and are removed."""

    end: int


@dataclass(frozen=True, slots=True)
class Written:
    """An entry of the leader, to be written unchanged at the end of the ledger."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Appended:
    """The leader's own next entry, which the ledger builds."""

    index: int
    term: int
    magic: int
    body: object
    """Either bytes, or a function that returns them, given the position of the body."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A follower is about to report to its leader that it durably has the leader's entries up to `index`."""

    index: int
    leader: str


@dataclass(frozen=True, slots=True)
class Committed:
    index: int


@dataclass(frozen=True, slots=True)
class Lacks:
    """A follower requests entries that the leader has deleted. A member that kept its disk never does."""

    member: str
    begin: int
    """The index of the leader's first entry."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A member refused what a peer sent, because no correct member sends it. Nothing has changed."""

    peer: str
    why: str
    """What was refused and why, as the end of a sentence: `a push: ...`."""


Change = (
    Ballot
    | Voted
    | SteppedDown
    | Leads
    | Follows
    | Cut
    | Written
    | Appended
    | Kept
    | Committed
    | Lacks
    | Refused
)

"""The messages between members: the JSON bodies of DLedger's RPC, field for field.

A request and its response are passed as a pair (on the wire, the opaque number of the frame connects them).
So a response repeats nothing of its request. They are frozen, because one object may be sent to several
members or arrive twice. The types of the fields declare their limits, which the decoder checks.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from mqproof.impl.dledger.codes import PushType, ResponseCode, Vote
from mqproof.impl.dledger.limits import (
    BATCH_MAX,
    Code,
    Count,
    EntryIndex,
    EntryPosition,
    EntrySize,
    EntryTerm,
    Index,
    Int,
    Magic,
    Name,
    Position,
    Term,
)

NORMAL: int = 1
NO_OP: int = 2
"""`Entry.magic` of the entry that starts a leader's term.

Later versions of DLedger write such entries. Older versions accept only entries whose magic is 1.
"""

NO_INDEX: int = -1
"""The index before the first entry: indexes start at 0."""
NO_TERM: int = 0
"""The term of the entry before the first: terms of entries start at 1."""


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of the ledger, as stored on every disk."""

    magic: Magic
    size: EntrySize
    """The number of bytes on disk, including the header."""
    index: EntryIndex
    term: EntryTerm
    pos: EntryPosition
    """The position of its first byte in the data file."""
    channel: Int = 0
    chain_crc: Int = 0
    body_crc: Int = 0
    body: bytes = b""


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that every request and response has."""

    group: Name
    remote_id: Name
    """The receiver."""
    local_id: Name
    """The sender."""
    leader_id: Name | None = None
    term: Term = -1
    code: Code = ResponseCode.SUCCESS


class VoteRequest(Message, frozen=True, kw_only=True):
    ledger_end_index: Index = NO_INDEX
    ledger_end_term: Term = NO_TERM


class VoteResponse(Message, frozen=True, kw_only=True):
    vote_result: Vote = Vote.REJECT_UNKNOWN_LEADER


class HeartBeatRequest(Message, frozen=True, kw_only=True):
    pass


class HeartBeatResponse(Message, frozen=True, kw_only=True):
    pass


class PushRequest(Message, frozen=True, kw_only=True):
    """A push. APPEND has entries after the one it names, COMPARE asks for that one, COMMIT sends an index."""

    type: PushType = PushType.APPEND
    pre_log_index: Index = NO_INDEX
    pre_log_term: Term = NO_TERM
    commit_index: Index = NO_INDEX
    batch_entry: Annotated[tuple[Entry, ...], Meta(max_length=BATCH_MAX)] = ()
    total_size: Count = 0
    count: Count = 0
    kept_by_all: Index = NO_INDEX
    """The index up to which every member is known to have the log durably. Only mqproof uses the field."""


class PushResponse(Message, frozen=True, kw_only=True):
    index: Index = NO_INDEX
    """On SUCCESS: the follower's log equals the leader's up to this index (for APPEND: durably)."""
    begin_index: Index = 0
    end_index: Index = NO_INDEX
    count: Count = 0
    x_term: Term = NO_TERM
    x_index: Index = NO_INDEX
    """The term of the entry found in place of the leader's, and the first index of that term."""


class TransferRequest(Message, frozen=True, kw_only=True):
    transfer_id: Name | None = None
    transferee_id: Name | None = None
    take_leadership_ledger_index: Index = NO_INDEX


class TransferResponse(Message, frozen=True, kw_only=True):
    pass


# Requests that clients send to a member.


class MetadataRequest(Message, frozen=True, kw_only=True):
    pass


class MetadataResponse(Message, frozen=True, kw_only=True):
    peers: Annotated[dict[Name, Name], Meta(max_length=BATCH_MAX)] = {}
    """The address of each member, keyed by its id."""


class AppendRequest(Message, frozen=True, kw_only=True):
    body: bytes = b""


class AppendResponse(Message, frozen=True, kw_only=True):
    index: Index = NO_INDEX
    pos: Position = -1


class GetRequest(Message, frozen=True, kw_only=True):
    begin_index: Index = NO_INDEX
    max_size: Count = 0


class GetResponse(Message, frozen=True, kw_only=True):
    entries: Annotated[tuple[Entry, ...], Meta(max_length=BATCH_MAX)] = ()


# Requests between members, which are the only ones that the core handles.

Request = VoteRequest | HeartBeatRequest | PushRequest | TransferRequest
Response = VoteResponse | HeartBeatResponse | PushResponse | TransferResponse

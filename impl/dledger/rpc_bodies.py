"""The messages between members: the JSON bodies of DLedger's RPC, field for field.

A request and its response are passed as a pair (on the wire, the opaque number of the frame connects them).
So a response repeats nothing of its request. They are frozen, because one object may be sent to several
members or arrive twice.
"""

import msgspec

from mqproof.impl.dledger.codes import PushType, ResponseCode, Vote

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

    magic: int
    size: int
    """The number of bytes on disk, including the header."""
    index: int
    term: int
    pos: int
    """The position of its first byte in the data file."""
    channel: int = 0
    chain_crc: int = 0
    body_crc: int = 0
    body: bytes = b""


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that every request and response has."""

    group: str
    remote_id: str
    """The receiver."""
    local_id: str
    """The sender."""
    leader_id: str | None = None
    term: int = -1
    code: int = ResponseCode.SUCCESS


class VoteRequest(Message, frozen=True, kw_only=True):
    ledger_end_index: int = NO_INDEX
    ledger_end_term: int = NO_TERM


class VoteResponse(Message, frozen=True, kw_only=True):
    vote_result: Vote = Vote.REJECT_UNKNOWN_LEADER


class HeartBeatRequest(Message, frozen=True, kw_only=True):
    pass


class HeartBeatResponse(Message, frozen=True, kw_only=True):
    pass


class PushRequest(Message, frozen=True, kw_only=True):
    """A push. APPEND has entries after the one it names, COMPARE asks for that one, COMMIT sends an index."""

    type: PushType = PushType.APPEND
    pre_log_index: int = NO_INDEX
    pre_log_term: int = NO_TERM
    commit_index: int = NO_INDEX
    batch_entry: tuple[Entry, ...] = ()
    total_size: int = 0
    count: int = 0
    kept_by_all: int = NO_INDEX
    """The index up to which every member is known to have the log durably. Only mqproof uses the field."""


class PushResponse(Message, frozen=True, kw_only=True):
    index: int = NO_INDEX
    """On SUCCESS: the follower's log equals the leader's up to this index (for APPEND: durably)."""
    begin_index: int = 0
    end_index: int = NO_INDEX
    count: int = 0
    x_term: int = NO_TERM
    x_index: int = NO_INDEX
    """The term of the entry found in place of the leader's, and the first index of that term."""


class TransferRequest(Message, frozen=True, kw_only=True):
    transfer_id: str | None = None
    transferee_id: str | None = None
    take_leadership_ledger_index: int = NO_INDEX


class TransferResponse(Message, frozen=True, kw_only=True):
    pass


# Requests that clients send to a member.


class MetadataRequest(Message, frozen=True, kw_only=True):
    pass


class MetadataResponse(Message, frozen=True, kw_only=True):
    peers: dict[str, str] = {}
    """The address of each member, keyed by its id."""


class AppendRequest(Message, frozen=True, kw_only=True):
    body: bytes = b""


class AppendResponse(Message, frozen=True, kw_only=True):
    index: int = NO_INDEX
    pos: int = -1


class GetRequest(Message, frozen=True, kw_only=True):
    begin_index: int = NO_INDEX
    max_size: int = 0


class GetResponse(Message, frozen=True, kw_only=True):
    entries: tuple[Entry, ...] = ()


# Requests between members, which are the only ones that the core handles.

Request = VoteRequest | HeartBeatRequest | PushRequest | TransferRequest
Response = VoteResponse | HeartBeatResponse | PushResponse | TransferResponse

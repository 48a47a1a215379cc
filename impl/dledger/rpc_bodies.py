"""What members say to each other: the JSON bodies of DLedger's RPC, field for field.

A request and its response travel as a pair (on the wire the frame's opaque ties them), so nothing in a
response repeats what its request said. Frozen: one object may be sent to many, or arrive twice.
"""

import msgspec

from mqproof.impl.dledger.codes import PushType, ResponseCode, Vote

NORMAL: int = 1
NO_OP: int = 2
"""`Entry.magic` of what a leader begins its term with; later DLedger has it, older ones read 1 only."""

NO_INDEX: int = -1
"""Before the first entry: indexes count from 0."""
NO_TERM: int = 0
"""The term of the entry before the first; terms of entries count from 1."""


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of the ledger as it stands on every disk."""

    magic: int
    size: int
    """Bytes on disk, header included."""
    index: int
    term: int
    pos: int
    """Position of its first byte in the data file."""
    channel: int = 0
    chain_crc: int = 0
    body_crc: int = 0
    body: bytes = b""


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """What every request and response carries."""

    group: str
    remote_id: str
    """Who it is for."""
    local_id: str
    """Who says it."""
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
    """APPEND carries entries behind the one it names; COMPARE asks for that one; COMMIT tells an index."""

    type: PushType = PushType.APPEND
    pre_log_index: int = NO_INDEX
    pre_log_term: int = NO_TERM
    commit_index: int = NO_INDEX
    batch_entry: tuple[Entry, ...] = ()
    total_size: int = 0
    count: int = 0
    kept_by_all: int = NO_INDEX
    """Up to which index every member is known to keep the log durably. Ours alone; others do not look."""


class PushResponse(Message, frozen=True, kw_only=True):
    index: int = NO_INDEX
    """On SUCCESS: up to which index the follower's log is the leader's (APPEND: and durable)."""
    begin_index: int = 0
    end_index: int = NO_INDEX
    count: int = 0
    x_term: int = NO_TERM
    x_index: int = NO_INDEX
    """Of what stands where the leader's entry should: its term, and the first index of that term."""


class TransferRequest(Message, frozen=True, kw_only=True):
    transfer_id: str | None = None
    transferee_id: str | None = None
    take_leadership_ledger_index: int = NO_INDEX


class TransferResponse(Message, frozen=True, kw_only=True):
    pass


# What clients ask a member.


class MetadataRequest(Message, frozen=True, kw_only=True):
    pass


class MetadataResponse(Message, frozen=True, kw_only=True):
    peers: dict[str, str] = {}
    """Addresses by member."""


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


# What members ask each other, which is all that the core knows of.

Request = VoteRequest | HeartBeatRequest | PushRequest | TransferRequest
Response = VoteResponse | HeartBeatResponse | PushResponse | TransferResponse

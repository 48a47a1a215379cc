"""The results of the store's operations.

See docs/reference/protocol/storing.md, "Put statuses"; docs/reference/protocol/pulling.md, "Get statuses".
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec


class PutStatus(StrEnum):
    PUT_OK = "PUT_OK"  # stored: under SYNC_FLUSH durable, under ASYNC_FLUSH in the page cache
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"  # stored in the page cache, not known to be durable
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"  # stored, but no slave confirmed it in time
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"  # stored, but there is no slave to wait for
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"  # not stored: topic, properties or body out of bounds
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"  # not stored: stopped, a slave, or after a disk error
    UNKNOWN_ERROR = "UNKNOWN_ERROR"  # the disk failed during the append; perhaps stored
    OS_PAGECACHE_BUSY = "OS_PAGECACHE_BUSY"  # not stored: too much waits for a group's quorum
    IN_SYNC_REPLICAS_NOT_ENOUGH = "IN_SYNC_REPLICAS_NOT_ENOUGH"  # no quorum in time; perhaps stored later


STORED: Final = frozenset(
    {
        PutStatus.PUT_OK,
        PutStatus.FLUSH_DISK_TIMEOUT,
        PutStatus.FLUSH_SLAVE_TIMEOUT,
        PutStatus.SLAVE_NOT_AVAILABLE,
    }
)

PERHAPS_STORED: Final = frozenset({PutStatus.UNKNOWN_ERROR, PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH})
"""Statuses after which a message may be stored: putting it again may store it twice."""


def put_status(flush: PutStatus, replica: PutStatus) -> PutStatus:
    """Combine the statuses of a put that waited for its flush and for slaves.

    A failure of the replica hides that of the flush.
    """
    return flush if replica is PutStatus.PUT_OK else replica


class PutResult(msgspec.Struct, frozen=True):
    """The result of a put.

    `queue_offset`, `commit_offset` and `message_id` (the offset message id) are -1, -1, "" when the message
    was not stored. `reason` is one sentence for the remark of an error answer.
    """

    status: PutStatus
    queue_offset: int = -1
    commit_offset: int = -1
    message_id: str = ""
    reason: str = ""
    stored_bytes: int = 0
    """The size of the record; 0 when the message was not stored."""
    store_timestamp_ms: int = 0
    """The store time of the record; 0 when the message was not stored."""


class GetStatus(StrEnum):
    FOUND = "FOUND"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"  # no message was ever stored in that queue; next is 0
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"  # next is 0
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"  # below the queue's minimum, which is next
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"  # exactly at the end: wait for more
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"  # beyond the end, which is next
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"  # some entries were visited, none has a wanted tag
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"  # the log no longer has the records


@dataclass(frozen=True, slots=True)
class GetResult:
    """The result of a read.

    `records` are whole commit-log records, in wire format; `next_offset` is the offset to continue at.
    """

    status: GetStatus
    next_offset: int
    min_offset: int
    max_offset: int
    records: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Recovery:
    """The findings and changes of `load`."""

    abnormal: bool
    """The abort file was there: the last exit was not clean."""
    scanned_from: int
    """Commit offset of the first record that was checked."""
    recovered_end: int
    """Commit offset of the log's end after recovery; everything before it is durable."""
    truncated_bytes: int
    """Bytes cut off the end of the log, up to the last one that was not zero."""
    redispatched: int
    """Number of consume-queue entries written because they were missing or wrong."""
    queue_entries_cut: int
    """Number of consume-queue entries removed because they pointed beyond the log."""

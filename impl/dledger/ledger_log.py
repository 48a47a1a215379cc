"""The committed part of a ledger, read as a commit log.

See docs/reference/protocol/dledger.md, "Broker of a DLedger group". The record of a message is the body of
its entry. Its commit offset is the position of the record in the data file, one header after the entry's
position. No-ops and fillers are not records.
"""

import logging
from collections.abc import Iterator

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import FILLER_BYTES, HEADER_BYTES, EntryError
from mqproof.impl.dledger.rpc_bodies import NO_OP, Entry
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.record import RecordError
from mqproof.impl.store.files.segments import SegmentedFile

_log = logging.getLogger(__name__)


class LedgerLog(CommitLog):
    """A read-only view of the ledger as a commit log.

    `end` is the end of the last committed entry that was processed. `flushed` is the position up to which the
    data before `end` is durable here.
    """

    header_bytes = HEADER_BYTES

    def __init__(self, segments: SegmentedFile) -> None:
        super().__init__(segments)
        self.record_bytes_max = segments.segment_bytes - HEADER_BYTES - FILLER_BYTES
        self._durable_end = 0
        self.kept_by_all = 0
        """The position of the last entry that all members have durably."""

    @property
    def needed_from(self) -> int:
        return self.kept_by_all

    def scan(self, position: int) -> Iterator[tuple[int, StoredMessage | None]]:
        """Yield positions and records as a commit log does, starting at an entry.

        None means "no record". Stops at `end`.
        """
        while position < self.end:
            size = entry_format.peek(self.read(position, FILLER_BYTES))
            if size < 0:
                position += self.segments.segment_bytes - position % self.segments.segment_bytes
                yield position, None
                continue
            try:
                entry = entry_format.decode(self.read(position, size), position)
            except EntryError:
                return
            position += size
            yield position, stored_in(entry)

    def advance(self, entry: Entry, stored: StoredMessage | None) -> None:
        """Record that the next entry is committed."""
        self.end = entry.pos + entry.size
        if stored is not None:
            self.last_record = stored.commit_offset
            self.store_timestamp_ms = stored.store_timestamp_ms
        self._count_flushed()

    def durable_to(self, position: int) -> None:
        """Record that all entries before the position are durable here. Later entries may not be."""
        self._durable_end = position
        self._count_flushed()

    def durable_at_most(self, position: int) -> None:
        """Record that the ledger was cut at the position. Data after it will be new."""
        self._durable_end = min(self._durable_end, position)

    def _count_flushed(self) -> None:
        self.flushed = max(self.flushed, min(self._durable_end, self.end))
        if self.flushed == self.end:
            self.flushed_timestamp_ms = self.store_timestamp_ms


def stored_in(entry: Entry) -> StoredMessage | None:
    """Return the message of an entry. Returns None for a no-op and for an unreadable message."""
    if entry.magic == NO_OP:
        return None
    try:
        return record.decode(entry.body, entry.pos + HEADER_BYTES)
    except RecordError as error:
        _log.error("entry %d is not a message: %s", entry.index, error)
        return None

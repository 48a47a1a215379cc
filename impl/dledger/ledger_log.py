"""The committed part of a ledger, read as a commit log (docs/protocol.md, "A broker in a group").

A message's record is the body of its entry. Its commit offset is where the record stands in the data file,
a header behind the entry. No-ops and fillers are no records.
"""

import logging
from collections.abc import Iterator

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import FILLER_BYTES, HEADER_BYTES, EntryError
from mqproof.impl.dledger.rpc_bodies import NO_OP, Entry
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store import record
from mqproof.impl.store.commit_log import CommitLog
from mqproof.impl.store.record import RecordError
from mqproof.impl.store.segments import SegmentedFile

_log = logging.getLogger(__name__)


class LedgerLog(CommitLog):
    """`end` is the end of the last committed entry that was looked at, `flushed` up to where of that all is
    durable here. The ledger writes; this one reads."""

    header_bytes = HEADER_BYTES

    def __init__(self, segments: SegmentedFile) -> None:
        super().__init__(segments)
        self._durable_end = 0
        self.kept_by_all = 0
        """Where the last entry stands that all members have durably."""

    @property
    def needed_from(self) -> int:
        return self.kept_by_all

    @property
    def record_bytes_max(self) -> int:
        return self.segments.segment_bytes - HEADER_BYTES - FILLER_BYTES

    def scan(self, position: int) -> Iterator[tuple[int, StoredMessage | None]]:
        """As a commit log's, from an entry on; None stands for what is no record. Ends at `end`."""
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
        """The next entry is committed."""
        self.end = entry.pos + entry.size
        if stored is not None:
            self.last_record = stored.commit_offset
            self.store_timestamp_ms = stored.store_timestamp_ms
        self._count_flushed()

    def durable_to(self, position: int) -> None:
        """All entries before the position are durable here, and of others that is not known."""
        self._durable_end = position
        self._count_flushed()

    def durable_at_most(self, position: int) -> None:
        """The ledger was cut there; what is written behind it is new."""
        self._durable_end = min(self._durable_end, position)

    def _count_flushed(self) -> None:
        self.flushed = max(self.flushed, min(self._durable_end, self.end))
        if self.flushed == self.end:
            self.flushed_timestamp_ms = self.store_timestamp_ms


def stored_in(entry: Entry) -> StoredMessage | None:
    """The message of an entry; None of a no-op, and of what nobody can read."""
    if entry.magic == NO_OP:
        return None
    try:
        return record.decode(entry.body, entry.pos + HEADER_BYTES)
    except RecordError as error:
        _log.error("entry %d is no message: %s", entry.index, error)
        return None

"""Walks all records of a log, with every checksum, and reports damage."""

from collections.abc import Iterator
from typing import Final

from mqproof.impl.examine.directory import StoreDirectory
from mqproof.impl.examine.verdict import Verdict
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.files import record
from mqproof.impl.store.files.record import RecordError

_ZERO_READ: Final = 1 << 20


class LogWalk:
    """Yields all complete records. After damage it continues with the next segment."""

    def __init__(self, store: StoreDirectory, verdict: Verdict) -> None:
        self._store = store
        self._log = store.log
        self._verdict = verdict
        self._damaged: list[tuple[int, int]] = []
        self.end = self._log.begin
        """The commit offset after the last complete record."""
        self.store_timestamp_ms = 0
        """The latest store time found."""
        self._segment_end = self._log.begin
        self._zeros = ""
        """A report of zeros after the last record. They are damage only if more records follow."""
        self._noise = ""
        """A report of other bytes after the last record, which are damage or were left by a cut."""

    def records(self) -> Iterator[StoredMessage]:
        for start in self._log.segments.starts:
            if start > self._segment_end and self.end:
                self._damaged.append((self._segment_end, start))
            self._segment_end = start + self._log.segments.segment_bytes
            yield from self._segment(start)

    def is_damaged(self, commit_offset: int) -> bool:
        """Return whether a commit offset is in a part that was reported as damaged."""
        return any(begin <= commit_offset < end for begin, end in self._damaged)

    def finish(self, pointed_at: int) -> None:
        """Report bytes after the end as damage if a queue refers to them.

        Otherwise they are only noted, because released brokers cut a log without zeroing it.
        """
        if self._noise and pointed_at >= self.end:
            self._verdict.damages.append(self._noise)
        elif self._noise:
            self._verdict.notes.append(f"{self._noise}; no queue points there, a cut may have left it")

    def _segment(self, start: int) -> Iterator[StoredMessage]:
        log, position, end = self._log, start, start + self._log.segments.segment_bytes
        while position < end:
            size, magic = record.peek(log.read(position, 8))
            if magic == record.MAGIC_FILLER and size == end - position:
                return
            if size == magic == 0 and self._is_rest_zero(position, end):
                self._zeros = (
                    f"{self._name(position)}: no filler at commit offset {position}, but more data follows"
                )
                self._damaged.append((position, end))
                return
            try:
                stored = self._record(position, size, magic, end - position)
            except RecordError as error:
                self._more_follows()
                self._noise = (
                    f"{self._name(position)}: no complete record at commit offset {position}: {error}"
                )
                self._damaged.append((position, end))
                return
            self._more_follows()
            yield stored
            position += size
            self.end = position
            self.store_timestamp_ms = max(self.store_timestamp_ms, stored.store_timestamp_ms)

    def _record(self, position: int, size: int, magic: int, room: int) -> StoredMessage:
        if magic == record.MAGIC_FILLER:
            raise RecordError(f"a filler of {size} bytes, {room} are left")
        if magic in record.MAGICS and not record.SIZE_MIN <= size <= room:
            raise RecordError(f"record says {size} bytes, {room} are left")
        return record.decode(self._log.read(position, size if magic in record.MAGICS else 91), position)

    def _more_follows(self) -> None:
        """Report bytes taken for the end of the log as damage, because records follow them."""
        self._verdict.damages += [complaint for complaint in (self._zeros, self._noise) if complaint]
        self._zeros = self._noise = ""

    def _name(self, position: int) -> str:
        return self._store.path(self._log.segments.path_of(position))

    def _is_rest_zero(self, position: int, end: int) -> bool:
        while position < end:
            data = self._log.read(position, min(_ZERO_READ, end - position))
            if data.strip(b"\0"):
                return False
            position += len(data)
        return True

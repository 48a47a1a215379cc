"""Walks all entries of a member's ledger, with every checksum.

See docs/reference/protocol/dledger.md, "DLedger files". It reports damage in the data, in its index, and in
the stored term and vote.
"""

from collections.abc import Iterator
from typing import Final

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import FILLER_BYTES, HEADER_BYTES, UNIT_BYTES, EntryError
from mqproof.impl.dledger.rpc_bodies import NO_OP, Entry
from mqproof.impl.examine.directory import LedgerFiles, StoreDirectory
from mqproof.impl.examine.verdict import Runs, Verdict, span
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.consume_queue import ConsumeQueue
from mqproof.impl.store.files.record import RecordError

_WALKED_SEGMENTS: Final = 3
"""The number of last data segments that a start walks, and whose index it writes again."""


class LedgerWalk:
    """The counterpart of LogWalk for a member's log. `records` yields those that queues may refer to."""

    def __init__(self, store: StoreDirectory, files: LedgerFiles, verdict: Verdict) -> None:
        self._store = store
        self._files = files
        self._log = store.log
        self._verdict = verdict
        self._damaged: list[tuple[int, int]] = []
        self.end = self._log.begin
        self.store_timestamp_ms = 0
        self._last: Entry | None = None
        """The previous entry, unless the data in between is damaged."""
        self._zeros = ""
        """A report of zeros after the last entry. They are damage only if more entries follow."""
        self._noise = ""
        """A report of other bytes after the last entry, which are damage or were left by a crash."""
        self._pointed_at = max((_last_pointed(queue) for queue in store.queues.values()), default=-1)
        self._unseen = 0
        index = store.path(files.index.directory)
        self._index_wrong = Runs(lambda a, b: self._report(f"{index}: {span(a, b)} not as in the data"))
        starts = self._log.segments.starts
        self._rewritten_from = starts[-_WALKED_SEGMENTS] if len(starts) >= _WALKED_SEGMENTS else 0
        self._rewritten = 0

    def records(self) -> Iterator[StoredMessage]:
        """Yield the messages up to the last one that a queue refers to.

        It is not known here whether later ones are committed.
        """
        for start in self._log.segments.starts:
            for entry in self._entries(start):
                self._look_at(entry)
                if (stored := self._message(entry)) is None:
                    continue
                self.store_timestamp_ms = max(self.store_timestamp_ms, stored.store_timestamp_ms)
                if stored.commit_offset <= self._pointed_at:
                    yield stored
                else:
                    self._unseen += 1

    def is_damaged(self, commit_offset: int) -> bool:
        return any(begin <= commit_offset < end for begin, end in self._damaged)

    def finish(self, pointed_at: int) -> None:
        notes = self._verdict.notes
        self._index_wrong.end()
        if self._noise and pointed_at >= self.end:
            self._report(self._noise)
        elif self._noise:
            notes.append(f"{self._noise}; the next start cuts it")
        if self._unseen:
            notes.append(
                f"{self._unseen} messages are not dispatched: only a leader knows whether they are committed"
            )
        if self._rewritten:
            notes.append(
                f"{self._rewritten} entries are not in the ledger's index, the next start writes them"
            )
        self._check_ballot()

    # -- internals

    def _entries(self, start: int) -> Iterator[Entry]:
        """Yield the complete entries of a segment."""
        log, position, end = self._log, start, start + self._log.segments.segment_bytes
        while position < end:
            front = log.read(position, FILLER_BYTES)
            size = entry_format.peek(front)
            if size < 0 and int.from_bytes(front[4:], "big") == end - position:
                return
            try:
                if not 0 < size <= end - position:
                    raise EntryError(f"an entry of {size} bytes, {end - position} are left")
                entry = entry_format.decode(log.read(position, size), position)
            except EntryError as error:
                self._noticed(position, end, error)
                return
            self._more_follows()
            yield entry
            position += size
            self.end = position

    def _noticed(self, position: int, end: int, error: EntryError) -> None:
        """Record that there is no complete entry where one should be. The rest of the segment is skipped."""
        where = f"{self._name(position)}: at {position}"
        if self._log.read(position, min(HEADER_BYTES, end - position)).strip(b"\0"):
            self._noise = self._noise or f"{where} is not a complete entry: {error}"
        else:
            self._zeros = self._zeros or f"{where} is neither an entry nor a filler"
        self._damaged.append((position, end))

    def _more_follows(self) -> None:
        """Report bytes taken for the end of the log as damage, because entries follow them."""
        for complaint in filter(None, (self._zeros, self._noise)):
            self._report(f"{complaint}, but more data follows")
            self._last = None
        self._zeros = self._noise = ""

    def _look_at(self, entry: Entry) -> None:
        """Check that an entry follows the previous one, and is in the index."""
        name = self._name(entry.pos)
        if self._last is not None:
            if entry.index != self._last.index + 1:
                self._report(f"{name}: entry {entry.index} at {entry.pos} behind entry {self._last.index}")
            if entry.term < self._last.term:
                before = self._last.term
                self._report(
                    f"{name}: entry {entry.index} is of term {entry.term}, behind one of term {before}"
                )
        self._last = entry
        unit = self._files.index.read(entry.index * UNIT_BYTES, entry_format.UNIT_BYTES)
        if unit != entry_format.encode_unit(entry):
            if self._store.is_clean or entry.pos < self._rewritten_from:
                self._index_wrong.add(entry.index)
            else:
                self._rewritten += 1

    def _message(self, entry: Entry) -> StoredMessage | None:
        if entry.magic == NO_OP:
            return None
        try:
            return record.decode(entry.body, entry.pos + HEADER_BYTES)
        except RecordError as error:
            self._report(f"{self._name(entry.pos)}: entry {entry.index} is not a message: {error}")
            return None

    def _check_ballot(self) -> None:
        end_term = self._last.term if self._last else 0
        name = self._store.path(self._files.ballot_path)
        try:
            ballot = self._files.ballot()
        except StoreError as error:
            self._report(self._store.path(str(error)))
            return
        if ballot is None and end_term:
            self._report(f"{name}: missing, the ledger has entries of term {end_term}")
        elif ballot is not None and ballot.term < end_term:
            self._report(f"{name}: term {ballot.term}, the ledger has entries of term {end_term}")

    def _name(self, position: int) -> str:
        return self._store.path(self._log.segments.path_of(position))

    def _report(self, damage: str) -> None:
        self._verdict.damages.append(damage)


def _last_pointed(queue: ConsumeQueue) -> int:
    """Return the commit offset that a queue's last entry refers to; -1 for none."""
    units = queue.units(queue.end - 1, 1) if queue.end > queue.begin else []
    return units[0].commit_offset if units else -1

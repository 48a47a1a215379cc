"""Checks the index against the keys of the records in the log."""

from array import array
from collections.abc import Callable, Iterator
from itertools import chain

from mqproof.impl.examine.directory import StoreDirectory
from mqproof.impl.examine.verdict import Verdict
from mqproof.impl.remoting.message import TAGS, StoredMessage
from mqproof.impl.store.dispatch import index_keys
from mqproof.impl.store.files.index import key_hash
from mqproof.impl.store.files.index_file import Entry, IndexFile


class IndexCheck:
    """Compares the index entries of all files, in order, with the keys of the records, in order."""

    def __init__(self, store: StoreDirectory, verdict: Verdict, is_damaged: Callable[[int], bool]) -> None:
        self._is_damaged = is_damaged
        self._store = store
        self._verdict = verdict
        self._files = [file for file in store.index if file.header.entry_next > 0]
        self._entries = self._all_entries()
        self._ahead: Entry | None = next(self._entries, None)
        # After an unclean exit, the header may have been written between two keys of one record.
        self._end = self._files[-1].header.end_offset + store.is_clean if self._files else 0
        state = store.checkpoint.index if store.checkpoint else None
        if state is not None and store.is_clean:
            self._end = max(self._end, state.position)
        self._missing: list[int] = []
        self._strange = 0
        self._unknown = 0

    def saw(self, stored: StoredMessage) -> None:
        found = set()
        while self._ahead is not None and self._ahead.commit_offset <= stored.commit_offset:
            if self._ahead.commit_offset == stored.commit_offset:
                found.add(self._ahead.key_hash)
            else:
                self._strange += self._is_strange(self._ahead)
            self._ahead = next(self._entries, None)
        expected = {key_hash(stored.message.topic, key) for key in index_keys(stored.message)}
        self._verdict.keys += len(expected & found)
        self._strange += len(found - expected - _tag_hashes(stored))
        if expected - found and stored.commit_offset < self._end:
            self._missing.append(stored.commit_offset)
        self._unknown += bool(expected - found) and stored.commit_offset >= self._end

    def finish(self) -> None:
        if not self._store.index:
            self._verdict.notes.append("index: no index file")
            return
        rest = self._entries if self._ahead is None else chain([self._ahead], self._entries)
        self._strange += sum(map(self._is_strange, rest))
        damages = self._verdict.damages
        if self._missing:
            begin, end, count = self._missing[0], self._missing[-1], len(self._missing)
            damages.append(f"index: keys of {count} records between commit offsets {begin} and {end} missing")
        if self._strange:
            damages.append(f"index: {self._strange} entries of keys that the log does not have there")
        for file in self._store.index:
            self._check_file(file)
        if self._unknown:
            self._verdict.notes.append(
                f"index: {self._unknown} records behind its end have keys, the next start adds them"
            )

    def _is_strange(self, entry: Entry) -> bool:
        """Return whether an entry leads to no record.

        Entries before the start of the log, or in a part reported as damaged, do not count.
        """
        return entry.commit_offset >= self._store.log.begin and not self._is_damaged(entry.commit_offset)

    def _all_entries(self) -> Iterator[Entry]:
        for file in self._files:
            yield from file.entries()

    def _check_file(self, file: IndexFile) -> None:
        name = f"index/{file.name:017d}"
        if file.header.entry_next == 0:
            self._verdict.notes.append(f"{name}: its header was never written; the next start rebuilds it")
            return
        slots, next_entry = self._store.shape.slots, file.header.entry_next
        newest = array("i", bytes(4 * slots))
        wrong = 0
        for number, entry in enumerate(file.entries(), 1):
            slot = entry.key_hash % slots
            wrong += entry.previous != newest[slot]
            newest[slot] = number
        written = file.slots()
        ahead = sum(number >= next_entry for number in written)
        wrong += sum(a != b and a < next_entry for a, b in zip(written, newest, strict=True))
        if wrong:
            self._verdict.damages.append(f"{name}: {wrong} slots or entries not in their chains")
        if ahead:
            self._verdict.notes.append(
                f"{name}: {ahead} slots are ahead of the header, the next start repairs"
            )
        elif slots - newest.count(0) != file.header.slots_used:
            self._verdict.damages.append(
                f"{name}: the header says {file.header.slots_used} slots, {slots - newest.count(0)} are used"
            )


def _tag_hashes(stored: StoredMessage) -> set[int]:
    """Return the hashes of tags that 5.5.0 indexes as well."""
    tags = stored.message.properties.get(TAGS)
    return {key_hash(stored.message.topic, f"T#{tags}")} if tags else set()

"""The key index: the records that have a key (docs/reference/protocol/storing.md, "Key index").

It holds nothing that the commit log does not. `position` is the end of the part of the log that it covers,
and recovery indexes the rest. Before that, recovery removes entries that may be wrong after a crash.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from typing import Final

from mqproof.impl.remoting.message import java_hash
from mqproof.impl.runtime.clock import local_stamp
from mqproof.impl.runtime.disk import Disk, File
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.index_file import Header, IndexFile, IndexShape, NewEntry, read_header
from mqproof.impl.store.files.segments import Removal, Unsynced

_NAME_DIGITS: Final = 17
_TAIL_CHARACTERS: Final = 2
_TAIL_POWER: Final = 31**_TAIL_CHARACTERS
_HASHES_MAX: Final = 8192
_CHAIN_MAX: Final = 100_000
"""The most entries of a chain that a search visits: a very frequent key must not block a broker."""

Keyed = tuple[str, Sequence[str], int, int]
"""The topic, the keys, the commit offset and the store time of a record."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of the index when it was made durable: this part may be trusted after a crash."""

    position: int
    """Every key of the records before this commit offset is in the index."""
    name: int
    """The name of the newest file; 0 when there is none. Files before it are full."""
    header: Header
    """The header of the newest file."""


def key_hash(topic: str, key: str) -> int:
    """Return the hash of a key that the index stores; it is never negative."""
    # Successive unique keys of one producer differ only in their last characters.
    if key.isascii():
        head, tail = _hashes[key[:-_TAIL_CHARACTERS]], _hashes[key[-_TAIL_CHARACTERS:]]
        value = (_topic_hash(topic, len(key)) + head * _TAIL_POWER + tail) & 0xFFFFFFFF
    else:
        value = java_hash(f"{topic}#{key}") & 0xFFFFFFFF
    # The absolute value of the signed number; -2^31 has none in 32 bits, and becomes 0.
    return -value & 0x7FFFFFFF if value >> 31 else value


class Index:
    """The index files of one store, oldest first. The methods raise OSError when the disk fails."""

    def __init__(self, disk: Disk, directory: str, shape: IndexShape) -> None:
        self.directory = directory
        self.position = 0
        """Commit offset before which every key is in the index."""
        self._disk = disk
        self._shape = shape
        self._files: list[IndexFile] = []
        self._unsynced: dict[int, File] = {}
        self._names_changed = False
        self.on_damage: Callable[[str, int], None] = lambda _path, _number: None
        """Called with the file and the number of a damaged entry that a search found."""

    def __iter__(self) -> Iterator[IndexFile]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def newest(self) -> Header:
        """The header of the newest file."""
        return self._files[-1].header if self._files else Header()

    @property
    def full_until_ms(self) -> int:
        """The store time of the last entry in the last full file: released brokers trust files up to it."""
        return self._files[-2].header.end_timestamp_ms if len(self._files) > 1 else 0

    # -- adding and finding

    def add(self, records: Iterable[Keyed], end: int) -> None:
        """Index records of the log, the last of which ends at `end`, unless they are indexed already."""
        last, position = self.newest.end_offset if self._files else -1, self.position
        entries: list[NewEntry] = []
        add = entries.append
        for topic, keys, commit_offset, time_ms in records:
            if commit_offset < position:
                continue
            if commit_offset <= last:
                # After a crash the last record may be indexed with some of its keys only, in one file or in
                # two.
                missing = self._missing(map(key_hash, repeat(topic), keys), commit_offset)
                entries += [(hashed, commit_offset, time_ms) for hashed in missing]
                continue
            for key in keys:
                add((key_hash(topic, key), commit_offset, time_ms))
        self._put(entries)
        self.position = max(position, end)

    def _put(self, entries: list[NewEntry]) -> None:
        while entries:
            has_room = self._files and self.newest.entry_next < self._shape.entries
            file = self._files[-1] if has_room else self._new_file(entries[0][2])
            self._unsynced[file.name] = file.file
            is_new = file.header.entry_next == 1
            count = 1 if is_new else self._shape.entries - file.header.entry_next
            file.put(entries[:count])
            if is_new:
                # A released broker that takes over after a kill detects by this that the file must not be
                # trusted.
                file.write_out()
            entries = entries[count:]

    def find(self, topic: str, key: str, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Yield the commit offsets of records of that period that may have the key, newest first.

        Each is yielded once. Another key may have the same hash, and times in the index are less precise by a
        second.
        """
        hashed, last = key_hash(topic, key), -1
        for file in reversed(self._files):
            if file.header.begin_timestamp_ms <= end_ms and begin_ms <= file.header.end_timestamp_ms:
                for offset in self._matches(file, hashed, begin_ms, end_ms):
                    if offset != last:
                        yield offset
                    last = offset
            if file.header.begin_timestamp_ms < begin_ms:
                return

    def state(self) -> IndexState:
        """Return the current state of the index."""
        return IndexState(self.position, self._files[-1].name if self._files else 0, replace(self.newest))

    def write_out(self) -> None:
        """Write all changes to the files. Raises OSError."""
        for file in self._files:
            if file.name in self._unsynced:
                file.write_out()

    def take_unsynced(self) -> Unsynced:
        """Return the unsynced changes, headers included, and stop tracking them.

        Later calls return only newer changes.
        """
        self.write_out()
        unsynced = Unsynced(
            tuple(self._unsynced.values()), self._disk, self.directory if self._names_changed else None
        )
        self._unsynced = {}
        self._names_changed = False
        return unsynced

    def detach_before(self, commit_offset: int) -> Removal:
        """Remove from the list the files whose records are all gone, except the newest file; return them."""
        files = []
        while len(self._files) > 1 and self._files[0].header.end_offset < commit_offset:
            gone = self._files.pop(0)
            self._unsynced.pop(gone.name, None)
            files.append(gone.file)
        return Removal(tuple(files), self._disk, self.directory)

    def close(self) -> None:
        for file in self._files:
            file.file.close()
        self._files = []

    # -- recovery

    def load(self, state: IndexState | None, full_until_ms: int, *, abnormal: bool) -> None:
        """Open the files that may be trusted and remove the others; the next flush syncs their names.

        `state` is from the checkpoint; None if the checkpoint has no state of the index. In that case, after
        an unclean exit, only files that end at or before `full_until_ms` are complete.

        Raises:
            StoreError: a file that does not belong there, or of another size.
        """
        names = self._disk.names(self.directory)
        self._names_changed = bool(names)
        self._files = [opened for name in names if (opened := self._open(name))]
        self._unsynced = {file.name: file.file for file in self._files}
        if state is not None and (state.name == 0 or state.name in self._unsynced):
            self._trust(state, abnormal)
        else:
            self._trust_headers(full_until_ms if abnormal else None)

    def cut(self, log_begin: int, log_end: int) -> None:
        """Remove the files with entries beyond the log; the rest cover the log up to `position`."""
        while self._files and max(self.position, self.newest.end_offset + 1) > log_end:
            self._remove(self._files.pop())
            self.position = self.newest.end_offset
        self.position = min(max(self.position, log_begin), log_end)

    # -- internal methods

    def _trust(self, state: IndexState, abnormal: bool) -> None:
        while self._files and self._files[-1].name > state.name:
            self._remove(self._files.pop())
        self.position = state.position
        if self._files and (abnormal or self.newest != state.header):
            self._files[-1].header = replace(state.header)
            self._files[-1].repair()

    def _trust_headers(self, full_until_ms: int | None) -> None:
        while self._files and not self._is_trusted(self._files[-1].header, full_until_ms):
            self._remove(self._files.pop())
        if self._files:
            self._files[-1].repair()  # a header is written only now and then, so the slots may be ahead of it
        self.position = self.newest.end_offset

    def _is_trusted(self, header: Header, full_until_ms: int | None) -> bool:
        return header.entry_next > 0 and (full_until_ms is None or header.end_timestamp_ms <= full_until_ms)

    def _matches(self, file: IndexFile, hashed: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        file.on_damage = self.on_damage
        for _, entry in zip(range(_CHAIN_MAX), file.chain(hashed), strict=False):
            # A file's first entry counts its seconds from the end of the previous file.
            seconds = entry.seconds if entry.commit_offset > file.header.begin_offset else 0
            earliest_ms = file.header.begin_timestamp_ms + seconds * 1000
            if earliest_ms + 999 < begin_ms:
                return
            if entry.key_hash == hashed and earliest_ms <= end_ms:
                yield entry.commit_offset

    def _missing(self, hashes: Iterable[int], commit_offset: int) -> Iterator[int]:
        """Yield the hashes of a record's keys that have no entry. Keys with the same hash have one each."""
        for hashed, count in Counter(hashes).items():
            there = sum(file.count(hashed, commit_offset) for file in self._files[-2:])
            yield from repeat(hashed, count - there)

    def _new_file(self, store_timestamp_ms: int) -> IndexFile:
        """Return a new file, which follows the full ones."""
        if self._files:
            self._files[-1].finish()
        last = self._files[-1].name if self._files else 0
        # The name is the record's store time, not the clock's time, so that rebuilding the index gives the
        # same files.
        name = max(local_stamp(store_timestamp_ms), last + 1)
        before = self.newest
        header = Header(
            before.end_timestamp_ms, before.end_timestamp_ms, before.end_offset, before.end_offset
        )
        file = self._disk.create(self._path(name), self._shape.file_bytes)
        try:
            file.sync()  # the size becomes durable before the name, as with segments
        except OSError:
            file.close()
            raise
        self._files.append(IndexFile(name, file, self._shape, header))
        self._names_changed = True
        return self._files[-1]

    def _open(self, name: str) -> IndexFile | None:
        path = f"{self.directory}/{name}"
        if len(name) != _NAME_DIGITS or not (name.isascii() and name.isdecimal()):
            raise StoreError(f"{path}: not an index file, a name of {_NAME_DIGITS} digits expected")
        file = self._disk.open(path)
        size = file.size()
        if size == 0:
            # A crash happened between the creation of the name and of the size; nothing was ever written into
            # the file.
            file.close()
            self._disk.remove(path)
            return None
        if size != self._shape.file_bytes:
            file.close()
            raise StoreError(f"{path}: {size} bytes, index files of {self._shape.file_bytes} expected")
        header = read_header(file, self._shape) or Header(entry_next=0)
        return IndexFile(int(name), file, self._shape, header)

    def _remove(self, file: IndexFile) -> None:
        file.file.close()
        self._unsynced.pop(file.name, None)
        self._disk.remove(self._path(file.name))

    def _path(self, name: int) -> str:
        return f"{self.directory}/{name:0{_NAME_DIGITS}d}"


@lru_cache(maxsize=4096)
def _topic_hash(topic: str, key_characters: int) -> int:
    """Return the part of the topic in the hash of a key of that length."""
    return java_hash(f"{topic}#") * pow(31, key_characters, 1 << 32)


class _Hashes(dict[str, int]):
    """The hashes of parts of keys. A look-up takes less time than one in an `lru_cache`."""

    def __missing__(self, part: str) -> int:
        if len(self) >= _HASHES_MAX:
            self.clear()
        self[part] = hashed = java_hash(part)
        return hashed


_hashes: Final = _Hashes()

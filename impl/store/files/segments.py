"""One long file in segments of equal size: the base of commit log and consume queues.

A segment's name is the position of its first byte in 20 decimal digits. It has its full size from the start;
unwritten bytes are zero (docs/reference/protocol/storing.md, "Segments").
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mqproof.impl.runtime.disk import Disk, File
from mqproof.impl.store.errors import StoreError

_NAME_DIGITS: Final = 20
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Unsynced:
    """The files to sync so that everything written so far is durable. `sync` may run in another thread."""

    files: tuple[File, ...]
    disk: Disk
    directory: str | None
    """The directory to sync; set when names in it have changed."""

    def sync(self) -> None:
        """Sync everything. Raises OSError; nothing of it may then be considered durable, now or later."""
        for file in self.files:
            file.sync()
        if self.directory is not None:
            self.disk.sync_directory(self.directory)


@dataclass(frozen=True, slots=True)
class Removal:
    """Files that are not read any more. `carry_out` is slow and may run in another thread."""

    files: tuple[File, ...]
    disk: Disk
    directory: str

    def carry_out(self) -> None:
        """Remove the files in their order, and their names durably. Raises OSError."""
        for file in self.files:
            file.close()
            self.disk.remove(file.path)
        if self.files:
            self.disk.sync_directory(self.directory)


def sync_all(unsynced: Iterable[Unsynced]) -> None:
    """Sync each. Raises OSError as Unsynced.sync."""
    for each in unsynced:
        each.sync()


class SegmentedFile:
    """Bytes by position. A single write or read stays within one segment."""

    def __init__(self, disk: Disk, directory: str, segment_bytes: int) -> None:
        self.directory = directory
        self.segment_bytes = segment_bytes
        self._disk = disk
        self._segments: dict[int, File] = {}  # by the position of the first byte, ascending
        self._unsynced: set[int] = set()
        self._names_changed = False
        self._size_in_doubt: File | None = None
        """The last segment at load: the process that created it may have died before its size was durable."""

    @property
    def begin(self) -> int:
        """The position of the first existing byte."""
        return next(iter(self._segments), 0)

    @property
    def capacity_end(self) -> int:
        """The position after the last segment."""
        return next(reversed(self._segments)) + self.segment_bytes if self._segments else 0

    @property
    def starts(self) -> tuple[int, ...]:
        """The positions of the segments' first bytes, ascending."""
        return tuple(self._segments)

    def load(self) -> None:
        """Open the segments of the directory.

        All of them and their names count as unsynced, because it is unknown what the last process synced.

        Raises:
            StoreError: a file that is not a segment, one of another size, or a gap between two.
        """
        starts = [self._start(name) for name in self._disk.names(self.directory)]
        for number, start in enumerate(starts):
            path = self._path(start)
            file = self._disk.open(path)
            if file.size() == 0 and number == len(starts) - 1:
                # A crash happened between the creation of the name and of the size; nothing was ever written
                # into the file.
                file.close()
                self._disk.remove(path)
                break
            self._segments[start] = file
            if file.size() != self.segment_bytes:
                raise StoreError(f"{path}: {file.size()} bytes, segments of {self.segment_bytes} expected")
            if start != starts[0] + number * self.segment_bytes:
                raise StoreError(f"{path}: the segment before it is missing")
            self._size_in_doubt = file
        self._unsynced.update(self._segments)
        self._names_changed = bool(starts)

    def adopt(self, start: int, file: File) -> None:
        """Add an open segment after the existing ones, for reading only."""
        self._segments[start] = file

    def write(self, position: int, data: bytes | bytearray) -> None:
        """Write the data. Raises OSError; the bytes at `position` are undefined then."""
        offset = position % self.segment_bytes
        assert offset + len(data) <= self.segment_bytes, (
            f"{len(data)} bytes at {position} cross a segment's end"
        )
        start = position - offset
        file = self._segments.get(start) or self._create(start)
        self._unsynced.add(start)
        file.write(offset, data)

    def read(self, position: int, size: int) -> bytes:
        """Read bytes: fewer than `size` at the end of a segment, none where there is no segment."""
        offset = position % self.segment_bytes
        file = self._segments.get(position - offset)
        return file.read(offset, size) if file else b""

    def has(self, position: int) -> bool:
        """Return whether there is a segment for that position."""
        return position - position % self.segment_bytes in self._segments

    def cut(self, position: int) -> int:
        """Remove everything from `position` on; return how many bytes were cut.

        The bytes are counted up to the last one that was not zero.

        Later segments are removed. The rest of the segment at `position` is zeroed, so that stale bytes can
        never be read as records.
        """
        end = position
        for start in reversed(self.starts):
            if start + self.segment_bytes <= position:
                break
            offset = max(0, position - start)
            self._unsynced.add(start)
            if used := self._segments[start].zero_tail(offset):
                end = max(end, start + offset + used)
            if start > position:
                self._remove(start)
        return end - position

    def clear(self) -> None:
        """Remove all segments durably; the next write may begin at any position."""
        for start in reversed(self.starts):  # in this order a crash leaves no gap
            self._remove(start)
        self._disk.sync_directory(self.directory)

    def detach_before(self, position: int) -> Removal:
        """Detach the segments that end at or before the position, except the last one; return them."""
        files = []
        for start in self.starts[:-1]:
            if start + self.segment_bytes > position:
                break
            files.append(self._segments.pop(start))
            self._unsynced.discard(start)
        return Removal(tuple(files), self._disk, self.directory)

    def write_again(self, begin: int, end: int) -> None:
        """Write the bytes from `begin` to `end` again unchanged, so that the next sync covers them."""
        while begin < end:
            size = min(_CHUNK_BYTES, end - begin, self.segment_bytes - begin % self.segment_bytes)
            self.write(begin, self.read(begin, size))
            begin += size

    @property
    def has_unsynced(self) -> bool:
        """Whether a change of a file, or of the files' names, was not synced."""
        return self._names_changed or bool(self._unsynced)

    def take_unsynced(self) -> Unsynced:
        """Return the unsynced changes, and stop tracking them.

        Later calls return only newer changes.
        """
        files = tuple(self._segments[start] for start in sorted(self._unsynced))
        unsynced = Unsynced(files, self._disk, self.directory if self._names_changed else None)
        self._unsynced.clear()
        self._names_changed = False
        return unsynced

    def sync(self) -> None:
        """Make everything durable at once. Raises OSError as Unsynced.sync."""
        self.take_unsynced().sync()
        self._size_in_doubt = None

    def path_of(self, position: int) -> str:
        """Return the path of the file that has, or would have, the byte at that position."""
        return self._path(position - position % self.segment_bytes)

    def close(self) -> None:
        for file in self._segments.values():
            file.close()
        self._segments.clear()

    def _create(self, start: int) -> File:
        assert not self._segments or start == self.capacity_end, f"segment {start} after {self.capacity_end}"
        if self._size_in_doubt is not None:
            self._size_in_doubt.sync()  # otherwise a crash could leave it empty, with this one after it
            self._size_in_doubt = None
        file = self._disk.create(self._path(start), self.segment_bytes)
        try:
            # The size becomes durable before the name, so that a crash leaves a segment empty or whole, never
            # short.
            file.sync()
        except OSError:
            file.close()
            raise
        self._names_changed = True
        self._segments[start] = file
        return file

    def _remove(self, start: int) -> None:
        self._segments.pop(start).close()
        self._unsynced.discard(start)
        self._disk.remove(self._path(start))
        self._names_changed = True

    def _path(self, start: int) -> str:
        return f"{self.directory}/{start:0{_NAME_DIGITS}d}"

    def _start(self, name: str) -> int:
        path = f"{self.directory}/{name}"
        if len(name) != _NAME_DIGITS or not (name.isascii() and name.isdecimal()):
            raise StoreError(f"{path}: not a segment, a name of {_NAME_DIGITS} digits expected")
        if int(name) % self.segment_bytes:
            raise StoreError(
                f"{path}: not a multiple of the segment size, {self.segment_bytes} bytes expected"
            )
        return int(name)

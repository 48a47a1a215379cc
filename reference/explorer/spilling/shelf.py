"""Arrays that grow: in memory up to a bound for all of them together, beyond it in files."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class DiskError(MemoryError):
    """The files cannot extend the memory, usually because the disk is full. The message has the folder."""


class Shelf:
    """The memory and the folder that arrays share."""

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        self.folder = folder
        self.memory_free = memory_bytes
        self.disk_bytes = 0
        self.disk_bytes_max = 0
        self._files = 0

    def new(self, dtype: Any, width: int | None = None) -> "Stored":
        """Return an empty array of this type; with a width, each item is a row of that many numbers."""
        self._files += 1
        return Stored(self, self.folder / f"{self._files}.array", np.dtype(dtype), width)

    def wrote(self, size: int) -> None:
        """Count bytes that were written to files, or removed from them if negative."""
        self.disk_bytes += size
        self.disk_bytes_max = max(self.disk_bytes_max, self.disk_bytes)


@contextmanager
def opened(parent: Path | None, memory_bytes: int) -> Iterator[Shelf]:
    """Yield a shelf with a folder of its own, and remove the folder at the end.

    Raises:
        DiskError: the folder cannot be made.
    """
    try:
        place = TemporaryDirectory(prefix="mqproof-explore-", dir=parent)
    except OSError as error:
        raise DiskError(f"{error.filename}: {error.strerror}; expected a folder to write to") from None
    with place as name:
        yield Shelf(Path(name), memory_bytes)


class Stored:
    """An array that grows at its end."""

    def __init__(self, shelf: Shelf, path: Path, dtype: "np.dtype[Any]", width: int | None) -> None:
        self._shelf = shelf
        self._path = path
        self._dtype = dtype
        self._shape: tuple[int, ...] = () if width is None else (width,)
        self._item_bytes = dtype.itemsize * (width or 1)
        self._parts: list[Array] = []
        self._is_file = False
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, array: Array) -> None:
        """Add items. Raises DiskError if they must be written and cannot be."""
        self._length += len(array)
        if not self._is_file and array.nbytes <= self._shelf.memory_free:
            self._shelf.memory_free -= array.nbytes
            self._parts.append(array)
            return
        parts, self._parts = [*self._parts, array], []
        self._shelf.memory_free += sum(part.nbytes for part in parts[:-1])
        self._is_file = True
        self._write(parts)

    def _write(self, parts: list[Array]) -> None:
        try:
            with self._path.open("ab") as file:
                for part in parts:
                    file.write(np.ascontiguousarray(part).data if part.size else b"")
                    self._shelf.wrote(part.nbytes)
        except OSError as error:
            need = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
            gib = self._shelf.disk_bytes / 2**30
            raise DiskError(
                f"{self._shelf.folder.parent}: {need} after {gib:.1f} GiB; free some, or name another folder"
            ) from None

    def read(self, first: int, last: int) -> Array:
        """Return the items in [first, last)."""
        last = min(last, self._length)
        if self._is_file:
            count = max(last - first, 0) * self._item_bytes // self._dtype.itemsize
            flat = np.fromfile(self._path, self._dtype, count, offset=first * self._item_bytes)
            return flat.reshape(-1, *self._shape)
        if len(self._parts) != 1:
            empty = np.empty((0, *self._shape), self._dtype)
            self._parts = [np.concatenate((empty, *self._parts))]
        return self._parts[0][first:last]

    def blocks(self, size: int) -> Iterator[tuple[int, Array]]:
        """Yield consecutive parts of at most this many items, each after the place of its first."""
        for first in range(0, self._length, size):
            yield first, self.read(first, first + size)

    def remove(self) -> None:
        """Remove the array from memory or from the disk."""
        if self._is_file:
            self._path.unlink()
            self._shelf.wrote(-self._length * self._item_bytes)
        else:
            self._shelf.memory_free += self._length * self._item_bytes
        self._parts, self._length = [], 0

"""Finds records, queue entries and tables in a store of RocketMQ's format, and copies a store.

See docs/reference/protocol/storing.md, "Store directory". This reader is independent of `impl`.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ENTRY_BYTES: Final = 20
_CHUNK: Final = 1 << 20


class StoreFilesError(Exception):
    """The directory does not contain what a case needs; the message names it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes of one file."""

    path: Path
    offset: int
    size: int

    def read(self) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.size)

    def write(self, data: bytes) -> None:
        """Replace the bytes in place, as a disk does that alters them. The size of the file stays."""
        with self.path.open("r+b") as file:
            file.seek(self.offset)
            file.write(data)


def record(store: Path, data: bytes) -> Place:
    """Return the place of a record in the commit log, by its bytes. Raises StoreFilesError."""
    for path in sorted((store / "commitlog").iterdir()):
        if (at := _find(path, data)) >= 0:
            return Place(path, at, len(data))
    raise StoreFilesError(f"{store}/commitlog: a stored record is not there")


def entry(store: Path, topic: str, queue_id: int, queue_offset: int) -> Place:
    """Return the place of a queue entry. Raises StoreFilesError."""
    folder = store / "consumequeue" / topic / str(queue_id)
    at = queue_offset * ENTRY_BYTES
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if int(path.name) <= at < int(path.name) + path.stat().st_size:
            return Place(path, at - int(path.name), ENTRY_BYTES)
    raise StoreFilesError(f"{folder}: there is no entry {queue_offset}")


def one_file(store: Path, folder: str) -> Path:
    """Return the first file of a folder of the store. Raises StoreFilesError."""
    paths = sorted(path for path in (store / folder).rglob("*") if path.is_file())
    if not paths:
        raise StoreFilesError(f"{store / folder}: there is no file")
    return paths[0]


def names(store: Path) -> tuple[str, ...]:
    """Return the paths of all files, relative to the store."""
    return tuple(sorted(path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file()))


def copy_store(source: Path, target: Path) -> None:
    """Make `target` equal to `source`. The parts of files that were never written occupy no space."""
    target.mkdir(parents=True, exist_ok=True)
    for path in target.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in sorted(source.rglob("*")):
        other = target / path.relative_to(source)
        if path.is_dir():
            other.mkdir(exist_ok=True)
        elif path.is_file():
            _copy_sparse(path, other)
            shutil.copymode(path, other)


def _copy_sparse(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("wb") as new:
        end = os.fstat(old.fileno()).st_size
        new.truncate(end)
        at = 0
        while at < end:
            try:
                at = os.lseek(old.fileno(), at, os.SEEK_DATA)
            except OSError:
                return  # only a hole follows
            hole = os.lseek(old.fileno(), at, os.SEEK_HOLE)
            old.seek(at)
            new.seek(at)
            while at < hole:
                data = old.read(min(_CHUNK, hole - at))
                new.write(data)
                at += len(data)


def _find(path: Path, data: bytes) -> int:
    """Return the position of the bytes in the first chunks of a file that have data; -1 without them."""
    with path.open("rb") as file:
        before, position = b"", 0
        while chunk := file.read(_CHUNK):
            if (at := (before + chunk).find(data)) >= 0:
                return position - len(before) + at
            if not chunk.strip(b"\0"):
                return -1  # the log is written from the front
            before = chunk[-len(data) :]
            position += len(chunk)
    return -1

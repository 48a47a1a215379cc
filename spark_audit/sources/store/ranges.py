"""Splits the files of a store directory into byte ranges that Spark's workers read in parallel."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CHUNK_BYTES: Final = 1 << 20
_SEGMENT_DIGITS: Final = 20
_COMMIT_LOG: Final = "commitlog"
_LEDGERS: Final = "dledger-*/data"


class StoreError(ValueError):
    """The path is not a store directory of the expected form. One line: the path, what was expected."""


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes [start, end) of one file."""

    file: str
    start: int
    end: int
    is_last: bool
    """No range of the file follows."""

    @property
    def bytes(self) -> int:
        return self.end - self.start


def segments(folder: Path) -> list[Path]:
    """Return the segment files of a folder in order; their name is the offset of their first byte."""
    found = [file for file in folder.iterdir() if _is_segment(file.name) and file.is_file()]
    return sorted(found)


def _is_segment(name: str) -> bool:
    return len(name) == _SEGMENT_DIGITS and name.isdecimal()


def subfolder(path: str, name: str) -> Path:
    """Return `name` below a store directory, or the path itself if it is that folder already.

    Raises:
        StoreError: neither exists.
    """
    given = Path(path)
    if given.name == name and given.is_dir():
        return given
    if not (given / name).is_dir():
        raise StoreError(f"{path}: no {name} folder in it, expected a store directory of a broker")
    return given / name


def is_store(folder: Path) -> bool:
    """Return whether the folder is a store directory of a broker or of a group member."""
    return (folder / _COMMIT_LOG).is_dir() or any(folder.glob(_LEDGERS))


def log_folders(path: str) -> list[Path]:
    """Return the folders of the commit log of a store directory.

    These are its own folder, the ledger of a group member, or both if the broker joined a group later. The
    path itself may be one of these folders.

    Raises:
        StoreError: there is none, or there are ledgers of several members.
    """
    given = Path(path)
    ledgers = [given] if is_ledger(given) else sorted(given.glob(_LEDGERS))
    if len(ledgers) > 1:
        raise StoreError(f"{path}: ledgers of {len(ledgers)} members in it, expected that of one")
    if ledgers and not (given / _COMMIT_LOG).is_dir():
        return ledgers
    return [subfolder(path, _COMMIT_LOG), *ledgers]


def is_ledger(folder: Path) -> bool:
    """Return whether the records in a folder of segments are in entries of a ledger."""
    return folder.name == "data" and folder.parent.name.startswith("dledger-")


def cut(file: Path, split_bytes: int, unit_bytes: int = 1, begin: int = 0) -> list[Range]:
    """Return the file's ranges from `begin` on, each of about `split_bytes` and a multiple of `unit_bytes`.

    Preallocated space that was never written is not split: it is in the last range, which has at least one
    written unit.
    """
    size = file.stat().st_size
    written = max(begin, min(size, written_end(file)))
    step = max(unit_bytes, split_bytes // unit_bytes * unit_bytes)
    starts = [*range(begin, max(written, begin + 1), step)]
    ends = [*starts[1:], size]
    return [Range(str(file), s, e, e == size) for s, e in zip(starts, ends, strict=True)]


def written_end(file: Path) -> int:
    """Return where the zeros at the end of the file begin, rounded up to a MiB."""
    with file.open("rb") as opened:
        end = _data_end(opened.fileno(), file.stat().st_size)
        while end > 0:
            start = (end - 1) // _CHUNK_BYTES * _CHUNK_BYTES
            opened.seek(start)
            if any(opened.read(end - start)):
                break
            end = start
    return end


def _data_end(descriptor: int, size: int) -> int:
    """Return the end of the file's allocated data: preallocated segments are mostly a hole."""
    end = 0
    while end < size:
        try:
            end = os.lseek(descriptor, os.lseek(descriptor, end, os.SEEK_DATA), os.SEEK_HOLE)
        except OSError:
            # No data after `end`, or the file system does not support the request.
            return end or size
    return end


def queue_of(file: str) -> tuple[str, int]:
    """Return topic and queue id of a consume-queue segment, from its folders."""
    topic, queue_id, _ = Path(file).parts[-3:]
    return topic, int(queue_id)


def queue_segments(folder: Path, topics: Sequence[str] = ()) -> list[Path]:
    """Return the segments of all queues, or of the queues of some topics."""
    found = []
    for queue in sorted(folder.glob("*/*")):
        if queue.is_dir() and queue.name.isdecimal() and (not topics or queue.parent.name in topics):
            found += segments(queue)
    return found

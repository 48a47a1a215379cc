"""Reads the files of a store, and computes from its log what the other files must contain.

See docs/reference/protocol/storing.md. This reader is independent of `impl`. Files are maps from paths below
the store directory to contents.
"""

import struct
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.answers.stored_record import (
    PREPARED,
    TRANSACTION_MASK,
    RecordError,
    StoredRecord,
    java_hash,
    read_records,
)

Files = Mapping[str, bytes]
"""Contents by path; zero bytes at the end of a file may be missing."""
Queue = tuple[str, int]
Entry = tuple[int, int, int]
"""Commit offset, size and tag code."""

LOG: Final = "commitlog/"
QUEUES: Final = "consumequeue/"
INDEX: Final = "index/"
ENTRY_BYTES: Final = 20
_FILLER: Final = 0xCBD43194
_UNQUEUED: Final = (PREPARED, TRANSACTION_MASK)
_HEAD: Final = struct.Struct(">II")
_ENTRY: Final = struct.Struct(">qiq")
_INDEX_HEADER: Final = struct.Struct(">qqqqii")
_INDEX_ENTRY: Final = struct.Struct(">iqii")
_SCHEDULE: Final = "SCHEDULE_TOPIC_XXXX"


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a store's files, and the delays that its queue entries contain."""

    log_bytes: int
    queue_bytes: int
    slots: int
    entries: int
    levels_ms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """The whole records of a log, from its first segment on."""

    begin: int
    end: int
    """The position after the last whole record; fillers do not move it."""
    next: int
    """The position after it and a filler that follows."""
    records: tuple[StoredRecord, ...]
    is_clean: bool
    """Whether nothing but a filler follows."""


def read_log(files: Files, shape: Shape) -> Log:
    """Read the log as far as it has whole records, each at its place."""
    segments = {int(path.removeprefix(LOG)): files[path] for path in files if path.startswith(LOG)}
    begin = at = end = min(segments, default=0)
    records: list[StoredRecord] = []
    while (start := at - at % shape.log_bytes) in segments:
        data, inside = segments[start], at - start
        size, magic = _HEAD.unpack(data[inside : inside + 8].ljust(8, b"\0"))
        if magic == _FILLER and size == shape.log_bytes - inside:
            at = start + shape.log_bytes
            continue
        record = _record(data[inside : inside + size].ljust(size, b"\0")) if 91 <= size < 1 << 20 else None
        if record is None or record.commit_offset != at:
            break
        records.append(record)
        at = end = at + size
    rest = [data[max(0, at - start) :] for start, data in segments.items() if start + len(data) > at]
    return Log(begin, end, at, tuple(records), not any(map(any, rest)))


def _record(data: bytes) -> StoredRecord | None:
    try:
        return next(read_records(data))
    except RecordError:
        return None


def expected_queues(log: Log, shape: Shape, deleted: Mapping[str, int]) -> dict[Queue, dict[int, Entry]]:
    """Return the entries of all queues by offset, without those of records of deleted topics."""
    queues: dict[Queue, dict[int, Entry]] = {}
    for record in log.records:
        is_deleted = record.commit_offset < deleted.get(record.topic, 0)
        if record.system_flag & TRANSACTION_MASK not in _UNQUEUED and not is_deleted:
            entry = record.commit_offset, len(record.raw), _code(record, shape)
            queues.setdefault((record.topic, record.queue_id), {})[record.queue_offset] = entry
    return queues


def _code(record: StoredRecord, shape: Shape) -> int:
    if record.topic == _SCHEDULE:
        return record.store_ms + shape.levels_ms[record.queue_id]
    return java_hash(record.properties.get("TAGS", ""))


def queue_files(queue: Queue, entries: Mapping[int, Entry], shape: Shape) -> dict[str, bytearray]:
    """Return the files of one queue with these entries."""
    files: dict[str, bytearray] = {}
    for offset, entry in sorted(entries.items()):
        start, inside = divmod(offset * ENTRY_BYTES, shape.queue_bytes)
        path = f"{QUEUES}{queue[0]}/{queue[1]}/{start * shape.queue_bytes:020d}"
        content = files.setdefault(path, bytearray())
        content.extend(bytes(inside - len(content)))
        content += _ENTRY.pack(*entry)
    return files


def index_entries(records: Sequence[StoredRecord]) -> Iterator[tuple[int, int, int]]:
    """Yield hash, commit offset and store time of each key, in the order in which records are indexed."""
    for record in records:
        if record.system_flag & TRANSACTION_MASK == TRANSACTION_MASK:
            continue
        words = record.properties.get("KEYS", "").split(" ")
        for key in (record.properties.get("UNIQ_KEY", ""), *words):
            if key:
                hashed = java_hash(f"{record.topic}#{key}")
                yield (abs(hashed) if hashed != -(1 << 31) else 0), record.commit_offset, record.store_ms


def index_files(entries: Iterator[tuple[int, int, int]], shape: Shape) -> dict[str, bytes]:
    """Return the index files of a log that begins at 0."""
    files: dict[str, bytes] = {}
    end_ms, name = 0, 0
    left = list(entries)
    for first in range(0, len(left), shape.entries - 1):
        part = left[first : first + shape.entries - 1]
        name = max(_stamp(part[0][2]), name + 1)
        files[f"{INDEX}{name:017d}"] = _index_file(part, end_ms, shape)
        end_ms = part[-1][2]
    return files


def _index_file(part: Sequence[tuple[int, int, int]], begin_ms: int, shape: Shape) -> bytes:
    slots, data = [0] * shape.slots, bytearray(_INDEX_ENTRY.size)
    for number, (hashed, offset, ms) in enumerate(part, 1):
        slot = hashed % shape.slots
        data += _INDEX_ENTRY.pack(hashed, offset, (ms - begin_ms) // 1000 if begin_ms else 0, slots[slot])
        slots[slot] = number
        begin_ms = begin_ms if number > 1 else ms
    used = sum(map(bool, slots))
    header = _INDEX_HEADER.pack(part[0][2], part[-1][2], part[0][1], part[-1][1], used, len(part) + 1)
    return header + struct.pack(f">{shape.slots}i", *slots) + bytes(data)


def _stamp(ms: int) -> int:
    return int(time.strftime("%Y%m%d%H%M%S", time.localtime(ms // 1000))) * 1000 + ms % 1000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The fields of a checkpoint of our broker."""

    log_ms: int
    queues_ms: int
    index_ms: int
    begin: int
    position: int
    count: int
    indexed: int
    newest: int
    header: bytes


_CHECKPOINT: Final = struct.Struct(">qqqqq40s")
_OWN_AT: Final = 1024


def read_checkpoint(data: bytes) -> Checkpoint | None:
    """Return the checkpoint; None if its own fields do not match their CRC."""
    end = _OWN_AT + _CHECKPOINT.size
    data = data.ljust(4096, b"\0")
    if zlib.crc32(data[:end]) != int.from_bytes(data[end : end + 4], "big"):
        return None
    return Checkpoint(*struct.unpack_from(">qqq", data), *_CHECKPOINT.unpack_from(data, _OWN_AT))

"""The checkpoint file: which data is known to be durable.

It has three kinds of data (docs/reference/protocol/storing.md, "Checkpoint").

- Store times, where released brokers have them, determine where recovery may begin.
- A count of queue entries detects lost queue files.
- A state of the index shows how much of the index is complete.

The last two are in bytes that released brokers do not use. The file is replaced as a whole, because a partly
written one could claim more than is true.
"""

import struct
import zlib
from dataclasses import dataclass
from typing import Final, Self

from mqproof.impl.runtime.disk import Disk, read_whole, write_durably
from mqproof.impl.store.files.index import IndexState
from mqproof.impl.store.files.index_file import HEADER_BYTES, Header

_FILE_BYTES: Final = 4096
_TIMES: Final = struct.Struct(">qqq")
_OWN: Final = struct.Struct(f">qqqqq{HEADER_BYTES}s")
"""QueueCount (begin, position, number of entries), then IndexState (position, newest file, header)."""
_OWN_AT: Final = 1024
_NONE: Final = -1
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = _OWN_AT + _OWN.size
_MARGIN_MS: Final = 3000


@dataclass(frozen=True, slots=True)
class QueueCount:
    """The number of entries in all consume queues for the records from `begin` to before `position`.

    Both are commit offsets. Entries before `begin` may have been deleted with their records.
    """

    begin: int
    position: int
    entries: int


DISTRUST: Final = QueueCount(0, 0, (1 << 63) - 1)
"""A count that no store reaches: with it, recovery dispatches the whole log again."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    log_timestamp_ms: int = 0
    """Store time of the last record known to be durable in the commit log."""
    queues_timestamp_ms: int = 0
    """Store time of the last record whose consume-queue entry is known to be durable."""
    index_timestamp_ms: int = 0
    """Store time of the last entry in the last full index file known to be durable."""
    queue_count: QueueCount | None = None
    """Count of entries known to be durable, for records known to be durable; None if the file has none."""
    index: IndexState | None = None
    """How much of the index is known to be durable; None if the file has no state."""

    @property
    def safe_timestamp_ms(self) -> int:
        """All records and queue entries stored before this time are durable. RocketMQ has the same margin."""
        return max(0, min(self.log_timestamp_ms, self.queues_timestamp_ms) - _MARGIN_MS)

    def encode(self) -> bytes:
        times = _TIMES.pack(self.log_timestamp_ms, self.queues_timestamp_ms, self.index_timestamp_ms)
        if self.queue_count is None and self.index is None:
            return times.ljust(_FILE_BYTES, b"\0")
        count = self.queue_count or QueueCount(_NONE, _NONE, _NONE)
        index = self.index or IndexState(_NONE, _NONE, Header())
        own = _OWN.pack(
            count.begin, count.position, count.entries, index.position, index.name, index.header.encode()
        )
        data = times.ljust(_OWN_AT, b"\0") + own
        return (data + _CRC.pack(zlib.crc32(data))).ljust(_FILE_BYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode a checkpoint. Data that is too short or damaged gives an empty one: all is checked.

        mqproof's own part without its CRC means damage, or that a released broker has written since.
        """
        if len(data) < _TIMES.size or not _is_whole(data):
            return cls()
        log_ms, queues_ms, index_ms = _TIMES.unpack_from(data)
        count, index = _decode_own(data)
        return cls(log_ms, queues_ms, index_ms, count, index)


def _is_whole(data: bytes) -> bool:
    """Return whether mqproof's own part is missing or has its CRC, which also covers the times."""
    if len(data) < _CRC_AT + _CRC.size or not any(data[_OWN_AT:]):
        return True
    (crc,) = _CRC.unpack_from(data, _CRC_AT)
    return bool(crc == zlib.crc32(data[:_CRC_AT]))


def _decode_own(data: bytes) -> tuple[QueueCount | None, IndexState | None]:
    """Decode mqproof's own part of the file; None where it is missing."""
    if len(data) < _CRC_AT + _CRC.size or not any(data[_OWN_AT:]):
        return None, None
    begin, counted, entries, indexed, name, header = _OWN.unpack_from(data, _OWN_AT)
    count = QueueCount(begin, counted, entries) if counted != _NONE else None
    return count, IndexState(indexed, name, Header.decode(header)) if indexed != _NONE else None


def read_checkpoint(disk: Disk, path: str) -> Checkpoint:
    """Return the checkpoint in the file, or an empty one when there is no file."""
    try:
        return Checkpoint.decode(read_whole(disk, path))
    except FileNotFoundError:
        return Checkpoint()


def write_checkpoint(disk: Disk, path: str, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint file.

    Raises OSError; the file then has either its old content or the new one.
    """
    write_durably(disk, path, checkpoint.encode())

"""The checkpoint file: what is known to be durable, in two ways.

Store times, at the places where released brokers have them, say where recovery may begin. A count of queue
entries, in bytes that they do not use, says whether queue files are gone (docs/protocol.md, "Checkpoint").
The file is replaced as a whole: a torn one could claim more than is true.
"""

import struct
import zlib
from dataclasses import dataclass
from typing import Final, Self

from impl.runtime.disk import Disk, read_whole, write_durably

_FILE_BYTES: Final = 4096
_TIMES: Final = struct.Struct(">qqq")
_COUNT: Final = struct.Struct(">qq")
_COUNT_AT: Final = 1024
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = _COUNT_AT + _COUNT.size
_MARGIN_MS: Final = 3000


@dataclass(frozen=True, slots=True)
class QueueCount:
    """How many entries all consume queues together have for the records before a commit offset."""

    position: int
    entries: int


DISTRUST: Final = QueueCount(0, (1 << 63) - 1)
"""No store has as many: with it, recovery dispatches the whole log again."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    log_timestamp_ms: int = 0
    """Store time of the last record known to be durable in the commit log."""
    queues_timestamp_ms: int = 0
    """Store time of the last record whose consume-queue entry is known to be durable."""
    index_timestamp_ms: int = 0
    queue_count: QueueCount | None = None
    """Of entries known to be durable, for records known to be durable. None: the file does not say."""

    @property
    def safe_timestamp_ms(self) -> int:
        """Everything stored before is durable, queue entries included. The margin is RocketMQ's."""
        return max(0, min(self.log_timestamp_ms, self.queues_timestamp_ms) - _MARGIN_MS)

    def encode(self) -> bytes:
        times = _TIMES.pack(self.log_timestamp_ms, self.queues_timestamp_ms, self.index_timestamp_ms)
        if self.queue_count is None:
            return times.ljust(_FILE_BYTES, b"\0")
        count = _COUNT.pack(self.queue_count.position, self.queue_count.entries)
        data = times.ljust(_COUNT_AT, b"\0") + count
        return (data + _CRC.pack(zlib.crc32(data))).ljust(_FILE_BYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Whatever is too short to be a checkpoint says nothing: recovery then looks at everything."""
        if len(data) < _TIMES.size:
            return cls()
        log_ms, queues_ms, index_ms = _TIMES.unpack_from(data)
        return cls(log_ms, queues_ms, index_ms, _decode_count(data))


def _decode_count(data: bytes) -> QueueCount | None:
    """The CRC covers the times too: a released broker that wrote them since knows nothing of the count."""
    if len(data) < _CRC_AT + _CRC.size or _CRC.unpack_from(data, _CRC_AT) != (zlib.crc32(data[:_CRC_AT]),):
        return None
    return QueueCount(*_COUNT.unpack_from(data, _COUNT_AT))


def read_checkpoint(disk: Disk, path: str) -> Checkpoint:
    """The checkpoint of the file, or one that says nothing when there is none."""
    try:
        return Checkpoint.decode(read_whole(disk, path))
    except FileNotFoundError:
        return Checkpoint()


def write_checkpoint(disk: Disk, path: str, checkpoint: Checkpoint) -> None:
    """Raises OSError: then the file has its old content or the new."""
    write_durably(disk, path, checkpoint.encode())

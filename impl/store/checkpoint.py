"""The checkpoint file: up to which store time everything is known to be durable.

4096 bytes, times in milliseconds at fixed places (docs/protocol.md, "Checkpoint"). It is replaced as a
whole: a torn one could claim a time that is too late, and recovery would then start too late.
"""

import struct
from dataclasses import dataclass
from typing import Final, Self

from impl.runtime.disk import Disk, read_whole, write_durably

_FIELDS: Final = struct.Struct(">qqq")
_FILE_BYTES: Final = 4096
_MARGIN_MS: Final = 3000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    log_timestamp_ms: int = 0
    """Store time of the last record known to be durable in the commit log."""
    queues_timestamp_ms: int = 0
    """Store time of the last record whose consume-queue entry is known to be durable."""
    index_timestamp_ms: int = 0

    @property
    def safe_timestamp_ms(self) -> int:
        """Everything stored before is durable, queue entries included. The margin is RocketMQ's."""
        return max(0, min(self.log_timestamp_ms, self.queues_timestamp_ms) - _MARGIN_MS)

    def encode(self) -> bytes:
        fields = _FIELDS.pack(self.log_timestamp_ms, self.queues_timestamp_ms, self.index_timestamp_ms)
        return fields.ljust(_FILE_BYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Whatever is too short to be a checkpoint says nothing: recovery then looks at everything."""
        return cls(*_FIELDS.unpack_from(data)) if len(data) >= _FIELDS.size else cls()


def read_checkpoint(disk: Disk, path: str) -> Checkpoint:
    """The checkpoint of the file, or one that says nothing when there is none."""
    try:
        return Checkpoint.decode(read_whole(disk, path))
    except FileNotFoundError:
        return Checkpoint()


def write_checkpoint(disk: Disk, path: str, checkpoint: Checkpoint) -> None:
    """Raises OSError: then the file has its old content or the new."""
    write_durably(disk, path, checkpoint.encode())

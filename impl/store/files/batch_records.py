"""The records of a batch: the same bytes as those of each of its messages alone, encoded together.

What the messages have in common is checked and encoded once. The records are one string of bytes, so that a
message needs no object of its own.
"""

import struct
import zlib
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from mqproof.impl.remoting.message import Batch, join_pairs
from mqproof.impl.store.files import record

_INT32: Final = range(-(1 << 31), 1 << 31)
_LENGTHS_BYTES: Final = 4 + 2
"""The size of the lengths of the body and of the properties."""


class BatchRecords:
    """The records of a batch, whose place in the log is not known yet."""

    def __init__(self, batch: Batch) -> None:
        """Raises ValueError as `record.encode`."""
        self._batch = batch
        self._empty = record.encode(replace(batch.common, body=b"", properties={}))
        self._properties = [text.encode() for text in join_pairs(batch.pairs)]
        around_bytes = len(self._empty)
        self.sizes = [
            around_bytes + len(body) + len(properties)
            for body, properties in zip(batch.bodies, self._properties, strict=True)
        ]
        has_zero = b"\0" in b"".join(self._properties)
        if has_zero or max(map(len, self._properties)) > record.PROPERTIES_BYTES_MAX:
            for properties in self._properties:
                record.check_properties(properties)
        for flag in (min(batch.flags), max(batch.flags)):
            if flag not in _INT32:
                raise ValueError(f"a number of the message is out of range: the flag is {flag}")

    def placed(self, queue_offset: int, commit_offset: int, store_timestamp_ms: int) -> bytes:
        """Return the records. The offsets are those of the first one, and the others follow it."""
        batch, empty = self._batch, self._empty
        record.place(empty, 0, 0, store_timestamp_ms)
        _, magic = record.peek(bytes(empty[:8]))
        topic = record.topic_fields(batch.common.topic)[magic]
        shared = empty[record.PLACE_END : len(empty) - len(topic) - _LENGTHS_BYTES]
        pack, queue_id = _head(len(shared)).pack, batch.common.queue_id
        parts: list[bytes] = []
        columns = zip(self.sizes, batch.bodies, self._properties, batch.flags, strict=True)
        for size, body, properties, flag in columns:
            crc = zlib.crc32(body) & 0x7FFFFFFF
            head = pack(size, magic, crc, queue_id, flag, queue_offset, commit_offset, shared, len(body))
            parts += (head, body, topic, len(properties).to_bytes(2, "big"), properties)
            queue_offset += 1
            commit_offset += size
        return b"".join(parts)


@lru_cache
def _head(shared_bytes: int) -> struct.Struct:
    """Return the form of the part before the body, with the part that all records of a batch share."""
    return struct.Struct(f">IIIiiqq{shared_bytes}si")

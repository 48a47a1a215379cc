"""Records that an inspection writes byte by byte, as any broker may have written them, and altered ones.

See docs/reference/protocol/storing.md, "Commit log record".
"""

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from mqproof.conformance.answers.stored_record import BORN_V6, STORE_V6, StoredRecord, read_records

_V1, _V2, _FILLER = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
_V1_TOPIC_MAX: Final = 127


@dataclass(frozen=True, slots=True)
class Form:
    """One record without its place."""

    topic: str
    body: bytes = b"body"
    properties: bytes = b""
    queue: int = 0
    flag: int = 0
    system: int = 0
    born: str = "10.0.1.1"
    store: str = "10.0.0.3"
    is_second_version: bool = False
    reconsumed: int = 0
    prepared: int = 0

    def written(self, queue_offset: int, place: int, store_ms: int) -> bytes:
        """Return the bytes of the record at its place."""
        born, store = ip_address(self.born), ip_address(self.store)
        flags = (BORN_V6 if born.version == 6 else 0) | (STORE_V6 if store.version == 6 else 0)
        is_second = self.is_second_version or len(self.topic) > _V1_TOPIC_MAX
        topic = self.topic.encode()
        data = b"".join((
            struct.pack(">IIii", _V2 if is_second else _V1, zlib.crc32(self.body) & 0x7FFFFFFF,
                        self.queue, self.flag),
            struct.pack(">qqiq", queue_offset, place, self.system | flags, store_ms - 7),
            born.packed, (50_000).to_bytes(4, "big"),
            store_ms.to_bytes(8, "big"),
            store.packed, (10_911).to_bytes(4, "big"),
            struct.pack(">iqi", self.reconsumed, self.prepared, len(self.body)), self.body,
            len(topic).to_bytes(2 if is_second else 1, "big"), topic,
            len(self.properties).to_bytes(2, "big"), self.properties,
        ))  # fmt: skip
        return (len(data) + 4).to_bytes(4, "big") + data


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A log from its first byte on, and its whole records."""

    data: bytes
    records: tuple[StoredRecord, ...]

    def of_queue(self, topic: str, queue: int = 0) -> list[StoredRecord]:
        return [each for each in self.records if (each.topic, each.queue_id) == (topic, queue)]


def filler(size: int) -> bytes:
    return struct.pack(">II", size, _FILLER).ljust(size, b"\0")


def write_log(
    forms: Sequence[Form],
    segment_bytes: int,
    begin: int,
    store_ms: int,
    between: Sequence[Callable[[bytes], bytes]] = (),
) -> WrittenLog:
    """Write one record of each form, a millisecond apart; a filler ends each segment.

    `between` has alterations. A copy of each record follows it, altered by the next of them.
    """
    data, records, ends = bytearray(), list[StoredRecord](), dict[tuple[str, int], int]()
    alterations = list(between)
    for number, form in enumerate(forms):
        key = form.topic, form.queue
        raw = form.written(ends.get(key, 0), _room(data, begin, form, segment_bytes), store_ms + number)
        ends[key] = ends.get(key, 0) + 1
        data += raw
        records += read_records(raw)
        if alterations:
            place = _room(data, begin, form, segment_bytes)
            data += alterations.pop(0)(form.written(ends[key], place, store_ms + number))
    assert not alterations, "more alterations than records"
    return WrittenLog(bytes(data), tuple(records))


def _room(data: bytearray, begin: int, form: Form, segment_bytes: int) -> int:
    """Return the place of the next record, after a filler if it does not fit into the segment."""
    left = segment_bytes - len(data) % segment_bytes
    if len(form.written(0, 0, 0)) + 8 > left:
        data += filler(left)
    return begin + len(data)


def replaced(at: int, new: bytes) -> Callable[[bytes], bytes]:
    """Overwrite bytes at a place; negative places count from the end."""

    def alter(raw: bytes) -> bytes:
        begin = at % len(raw)
        return raw[:begin] + new + raw[begin + len(new) :]

    return alter


def added(at: int, number: int, width: int = 4) -> Callable[[bytes], bytes]:
    """Add to the number that begins at a place."""

    def alter(raw: bytes) -> bytes:
        value = int.from_bytes(raw[at : at + width], "big") + number
        return raw[:at] + value.to_bytes(width, "big") + raw[at + width :]

    return alter


def exchanged(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Replace the only place of some bytes by others of the same length."""

    def alter(raw: bytes) -> bytes:
        assert raw.count(old) == 1, (old, raw)
        assert len(old) == len(new), (old, new)
        return raw.replace(old, new)

    return alter

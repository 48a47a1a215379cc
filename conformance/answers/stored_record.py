"""Reads stored records as answers contain them.

See docs/reference/protocol/storing.md, "Commit log record".
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

import msgspec

PREPARED: Final = 4
COMMITTED: Final = 8
TRANSACTION_MASK: Final = 12
BORN_V6: Final = 16
STORE_V6: Final = 32
_MAGIC_V1: Final = 0xDAA320A7
_MAGIC_V2: Final = 0xDAA320AB
_HEAD: Final = struct.Struct(">iIIiiqqiq")
_AFTER_HOST: Final = struct.Struct(">iq")
_BATCHED: Final = struct.Struct(">iIIii")


class RecordError(ValueError):
    """The bytes are not a record; the message says why."""


class StoredRecord(msgspec.Struct, frozen=True):
    topic: str
    queue_id: int
    queue_offset: int
    commit_offset: int
    flag: int
    system_flag: int
    born_ms: int
    born_host: str
    """ADDRESS:PORT, as of a connection."""
    store_ms: int
    store_host: str
    reconsume_times: int
    prepared_offset: int
    body: bytes
    properties: Mapping[str, str]
    raw: bytes
    """The whole record."""


@dataclass(frozen=True, slots=True)
class BatchedMessage:
    flag: int
    body: bytes
    properties: Mapping[str, str]


def read_records(body: bytes) -> Iterator[StoredRecord]:
    """Yield the records in the body of an answer, one after the other. Raises RecordError."""
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big", signed=True)
        if not 91 <= size <= len(body) - at:
            raise RecordError(f"a record of {size} bytes where {len(body) - at} are left")
        try:
            yield _record(body[at : at + size])
        except (struct.error, UnicodeDecodeError, ValueError) as error:
            raise RecordError(f"{error} in the record at byte {at}") from None
        at += size


def read_batch(body: bytes) -> Iterator[BatchedMessage]:
    """Yield the messages in the body of a batch. Raises RecordError."""
    at = 0
    while at < len(body):
        try:
            size, _, _, flag, length = _BATCHED.unpack_from(body, at)
            begin = at + _BATCHED.size
            text = body[begin + length + 2 : at + size].decode()
        except (struct.error, UnicodeDecodeError) as error:
            raise RecordError(f"{error} in the message at byte {at}") from None
        if size < _BATCHED.size:
            raise RecordError(f"a message of {size} bytes")
        yield BatchedMessage(flag, body[begin : begin + length], properties_of(text))
        at += size


def properties_of(text: str) -> dict[str, str]:
    """Return the properties by name, in docs/reference/protocol/messages.md, "Properties"."""
    pairs = (pair.partition("\x01") for pair in text.split("\x02") if pair)
    return {name: value for name, separator, value in pairs if separator}


@lru_cache(maxsize=1024)
def java_hash(text: str) -> int:
    """Return the code of a tag, in docs/reference/protocol/messages.md, "Tag codes"."""
    units, value = text.encode("utf-16-be"), 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def offset_message_id(host: str, commit_offset: int) -> str:
    """Return the identifier in docs/reference/protocol/messages.md, "Message identifiers"."""
    address, _, port = host.rpartition(":")
    packed = ip_address(address).packed + int(port).to_bytes(4, "big")
    return (packed + commit_offset.to_bytes(8, "big")).hex().upper()


@lru_cache(maxsize=1 << 12)  # an example reads the same records again and again
def _record(raw: bytes) -> StoredRecord:
    _, magic, crc, queue_id, flag, queue_offset, commit_offset, system_flag, born_ms = _HEAD.unpack_from(raw)
    if magic not in (_MAGIC_V1, _MAGIC_V2):
        raise RecordError(f"magic {magic:08X}")
    born_host, at = _host(raw, _HEAD.size, system_flag & BORN_V6)
    store_ms = int.from_bytes(raw[at : at + 8], "big", signed=True)
    store_host, at = _host(raw, at + 8, system_flag & STORE_V6)
    reconsume_times, prepared_offset = _AFTER_HOST.unpack_from(raw, at)
    body, at = _sized(raw, at + _AFTER_HOST.size, 4)
    topic, at = _sized(raw, at, 1 if magic == _MAGIC_V1 else 2)
    properties, at = _sized(raw, at, 2)
    if at != len(raw):
        raise RecordError(f"{len(raw) - at} bytes after the properties")
    expected = zlib.crc32(body) & 0x7FFFFFFF
    if crc != expected:
        raise RecordError(f"CRC {crc:08X} for a body with {expected:08X}")
    return StoredRecord(
        topic.decode(), queue_id, queue_offset, commit_offset, flag, system_flag, born_ms, born_host,
        store_ms, store_host, reconsume_times, prepared_offset, body, properties_of(properties.decode()), raw,
    )  # fmt: skip


def _host(raw: bytes, at: int, is_v6: int) -> tuple[str, int]:
    end = at + (20 if is_v6 else 8)
    return _address(raw[at:end]), end


@lru_cache(maxsize=1024)
def _address(raw: bytes) -> str:
    return f"{ip_address(raw[:-4])}:{int.from_bytes(raw[-4:], 'big')}"


def _sized(raw: bytes, at: int, width: int) -> tuple[bytes, int]:
    begin = at + width
    end = begin + int.from_bytes(raw[at:begin], "big")
    if end > len(raw):
        raise RecordError(f"a length at byte {at} goes beyond the record")
    return raw[begin:end], end

"""The commit-log record: bytes to messages and back.

See docs/reference/protocol/storing.md, "Commit log record". Only the body has a checksum. Where the released
format would not detect damage, this module is stricter. A record must contain its own position, so a stale or
misplaced one is refused. A topic or properties text that a torn write cut off ends in zero bytes, and is
refused too.
"""

import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from mqproof.impl.remoting.message import (
    NAME_END,
    SYS_BORN_HOST_V6,
    SYS_STORE_HOST_V6,
    TAGS,
    VALUE_END,
    Address,
    Message,
    StoredMessage,
    decode_address,
    decode_properties,
    encode_address,
    encode_properties,
    tags_code,
)

MAGIC_V1: Final = 0xDAA320A7
MAGIC_V2: Final = 0xDAA320AB
"""As version 1, with a topic length of two bytes, for topics of more than 127 bytes."""
MAGIC_FILLER: Final = 0xCBD43194
"""The magic of a filler: nothing follows in this segment."""
MAGICS: Final = frozenset({MAGIC_V1, MAGIC_V2})

SIZE_MIN: Final = 91
"""The size of a record with IPv4 hosts and without body, topic and properties."""
FILLER_BYTES: Final = 8
PROPERTIES_BYTES_MAX: Final = 32767
AROUND_BODY_BYTES_MAX: Final = SIZE_MIN + 2 * 12 + 1 + 65_535 + PROPERTIES_BYTES_MAX
"""The maximum size of everything but the body: with IPv6 hosts and the longest topic of version 2."""
_TOPIC_V1_BYTES_MAX: Final = 127
_TOPIC_PATTERN: Final = re.compile(r"[%|a-zA-Z0-9_-]+")

_FRONT: Final = struct.Struct(
    ">IIIiiqqi"
)  # size, magic, body CRC, queue, flag, queue offset, position, sys flag
_TAIL: Final = struct.Struct(">iqi")  # reconsume times, prepared transaction offset, body length
_HEADS: Final = {
    (born, store): struct.Struct(f"{_FRONT.format}q{born}sq{store}s{_TAIL.format[1:]}")
    for born in (8, 20)
    for store in (8, 20)
}
"""The part before the body, by the lengths of the two hosts."""
_HOST_FLAGS: Final = SYS_BORN_HOST_V6 | SYS_STORE_HOST_V6
_BODY_AT: Final = {
    (SYS_BORN_HOST_V6 if born == 20 else 0) | (SYS_STORE_HOST_V6 if store == 20 else 0): head.size
    for (born, store), head in _HEADS.items()
}
"""Where the body begins, by the flags for hosts."""
_TAGS_NAME: Final = TAGS.encode() + b"\x01"
_PROPERTY_END: Final = 2
_VALUE_END: Final = VALUE_END.encode()
_MAGIC_END: Final = 7
"""Where the last byte of the magic is, which differs between the versions."""
_SYS_FLAG_END: Final = 39
"""Where the last byte of the system flag is, which has the flags for hosts."""
_PLACE: Final = struct.Struct(">qq")  # queue offset, position
_PLACE_AT: Final = 20
PLACE_END: Final = _PLACE_AT + _PLACE.size
_LENGTH: Final = struct.Struct(">i")
_PREFIX: Final = struct.Struct(">II")
_TIME: Final = struct.Struct(">q")
_BORN_TIME_AT: Final = _FRONT.size
_BORN_HOST_AT: Final = _BORN_TIME_AT + 8
FRONT_BYTES: Final = _BORN_HOST_AT + 20 + 8
"""The size of the part up to the end of the store timestamp with the longest host; no record is shorter."""


class RecordError(ValueError):
    """The bytes are not a record at this position; the message describes the problem."""


def encode(message: Message) -> bytearray:
    """Return the record without its position; call `place` before it is written.

    Raises:
        ValueError: the message cannot be stored: topic empty, too long or with other characters than letters,
            digits and %|_-; properties too long, holding a separator, or ending in a zero byte; a number out
            of its range.
    """
    frame = _frame_of(message.topic, message.born_host, message.store_host)
    return _framed(message, frame, encode_properties(message.properties))


def _properties_bytes(text: str) -> bytes:
    """Return the properties in UTF-8. Raises ValueError when they cannot be stored."""
    properties = text.encode()
    check_properties(properties)
    return properties


def check_properties(properties: bytes) -> None:
    """Raise ValueError when these encoded properties cannot be stored."""
    if len(properties) > PROPERTIES_BYTES_MAX:
        raise ValueError(f"properties have {len(properties)} bytes, at most {PROPERTIES_BYTES_MAX} expected")
    if not text_is_whole(properties):
        raise ValueError("properties end in a zero byte, which would look like a torn write")


def _framed(message: Message, frame: "_Frame", text: str) -> bytearray:
    head, magic, topic, born_host, store_host, host_flags = frame
    body, properties = message.body, _properties_bytes(text)
    try:
        return bytearray().join(
            (
                head.pack(
                    head.size + len(body) + len(topic) + 2 + len(properties),
                    magic,
                    zlib.crc32(body) & 0x7FFFFFFF,
                    message.queue_id,
                    message.flag,
                    0,
                    0,
                    message.sys_flag & ~_HOST_FLAGS | host_flags,
                    message.born_timestamp_ms,
                    born_host,
                    0,
                    store_host,
                    message.reconsume_times,
                    message.prepared_transaction_offset,
                    len(body),
                ),
                body,
                topic,
                len(properties).to_bytes(2, "big"),
                properties,
            )
        )
    except struct.error as error:
        raise ValueError(f"a number of the message is out of range: {error}") from None


def place(draft: bytearray, queue_offset: int, commit_offset: int, store_timestamp_ms: int) -> None:
    """Write the offsets and the store time into the encoded record."""
    _PLACE.pack_into(draft, _PLACE_AT, queue_offset, commit_offset)
    at = _BORN_HOST_AT + (20 if draft[39] & SYS_BORN_HOST_V6 else 8)
    _TIME.pack_into(draft, at, store_timestamp_ms)


def store_time_ms(front: bytes) -> int | None:
    """Return the store time of the record that begins with these FRONT_BYTES; None if they are too few."""
    if len(front) < FRONT_BYTES:
        return None
    born_host_bytes = 20 if front[39] & SYS_BORN_HOST_V6 else 8
    (time_ms,) = _TIME.unpack_from(front, _BORN_HOST_AT + born_host_bytes)
    return int(time_ms)


def filler(size: int) -> bytes:
    """Return the filler for the `size` bytes that are left in a segment."""
    assert size >= FILLER_BYTES, f"a filler needs {FILLER_BYTES} bytes, {size} are left"
    return _PREFIX.pack(size, MAGIC_FILLER)


def peek(prefix: bytes) -> tuple[int, int]:
    """Return size and magic from the first 8 bytes; (0, 0) if there are fewer."""
    return _PREFIX.unpack(prefix) if len(prefix) == _PREFIX.size else (0, 0)


def decode(data: bytes, position: int | None = None) -> StoredMessage:
    """Decode exactly one record; `position` is its commit offset, or None for one from the network.

    Raises:
        RecordError: not a whole, undamaged record of that position.
    """
    try:
        return _decode(data, position)
    except (struct.error, IndexError):
        raise RecordError(f"record of {len(data)} bytes ends too early") from None


def _decode(data: bytes, position: int | None) -> StoredMessage:
    size, magic, crc, queue_id, flag, queue_offset, commit_offset, sys_flag = _FRONT.unpack_from(data)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RecordError(f"magic {magic:#010x}, {MAGIC_V1:#010x} or {MAGIC_V2:#010x} expected")
    if size != len(data):
        raise RecordError(f"record says {size} bytes, {len(data)} expected")
    if position is not None and not stands_where_it_says(commit_offset, position):
        raise RecordError(f"record says position {commit_offset}, found at {position}")
    if min(queue_id, queue_offset, commit_offset) < 0:
        places = f"queue id {queue_id}, queue offset {queue_offset}, commit offset {commit_offset}"
        raise RecordError(f"{places}: 0 or more expected")
    (born_timestamp_ms,) = _TIME.unpack_from(data, _BORN_TIME_AT)
    at = _BORN_HOST_AT + (20 if sys_flag & SYS_BORN_HOST_V6 else 8)
    born_host = data[_BORN_HOST_AT:at]
    (store_timestamp_ms,) = _TIME.unpack_from(data, at)
    store_host_at = at + 8
    at = store_host_at + (20 if sys_flag & SYS_STORE_HOST_V6 else 8)
    store_host = data[store_host_at:at]
    reconsume_times, prepared_transaction_offset, body_size = _TAIL.unpack_from(data, at)
    body, at = _take(data, at + _TAIL.size, body_size, "body")
    topic_length_bytes = 1 if magic == MAGIC_V1 else 2
    topic, at = _take(data, at + topic_length_bytes, _length(data, at, topic_length_bytes), "topic")
    properties, at = _take(data, at + 2, _length(data, at, 2), "properties")
    if at != size:
        raise RecordError(f"record says {size} bytes, its parts have {at}")
    if not body_is_whole(crc, body):
        raise RecordError(f"body has CRC {body_crc(body):#010x}, the record says {crc:#010x}")
    message = Message(
        topic=_topic_text(topic),
        body=body,
        properties=decode_properties(_properties_text(properties)),
        queue_id=queue_id,
        flag=flag,
        sys_flag=sys_flag,
        born_timestamp_ms=born_timestamp_ms,
        born_host=decode_address(born_host),
        store_host=decode_address(store_host),
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared_transaction_offset,
    )
    return StoredMessage(message, queue_offset, commit_offset, store_timestamp_ms, size, crc)


def property_values(data: bytes, markers: Sequence[bytes]) -> tuple[bytes | None, ...]:
    """Return the values of properties in a record that was compared with its entry; None for those it lacks.

    The marker of a property is what `property_marker` returns.
    """
    body_at = _BODY_AT[data[_SYS_FLAG_END] & _HOST_FLAGS]
    at = body_at + _unpack_size(data, body_at - 4)[0]
    at += 3 + data[at] if data[_MAGIC_END] == MAGIC_V1 & 0xFF else 4 + (data[at] << 8 | data[at + 1])
    values: list[bytes | None] = []
    for marker in markers:
        begin = data.rfind(marker, at - 1)  # the last value of a repeated name counts
        if begin < 0:
            if not data.startswith(marker[1:], at):
                values.append(None)
                continue
            begin = at - 1
        begin += len(marker)
        end = data.find(_VALUE_END, begin)
        value = data[begin:] if end < 0 else data[begin:end]
        values.append(value or _earlier_value(data[at:], marker))
    return tuple(values)


def property_marker(name: str) -> bytes:
    """Return the bytes before the value of a property, unless it is the first property of its record."""
    return f"{VALUE_END}{name}{NAME_END}".encode()


def _earlier_value(properties: bytes, marker: bytes) -> bytes | None:
    """Return the value of a property whose last pair has none: such a pair does not count."""
    value = decode_properties(properties.decode()).get(marker[1:-1].decode())
    return None if value is None else value.encode()


def entry_problem(
    data: bytes,
    position: int,
    queue_id: int,
    queue_offset: int,
    topic_fields: Mapping[int, bytes],
    tags_code: int | None,
) -> str:
    """Return why these bytes are not the record that a queue entry names; empty if they are.

    This checks all that can be checked without building the message: lengths, places, the body's checksum,
    and the entry's tag code unless it is None. `topic_fields` is that of the queue's topic. Each record that
    is delivered passes here, so the checks are inline.
    """
    try:
        size, magic, crc, its_queue_id, _, its_offset, commit_offset, sys_flag = _unpack_front(data)
        if size != len(data) or commit_offset != position or magic not in topic_fields:
            return NO_RECORD
        if its_queue_id != queue_id or its_offset != queue_offset:
            return OTHER_RECORD
        body_at = _BODY_AT[sys_flag & _HOST_FLAGS]
        body_end = body_at + _unpack_size(data, body_at - 4)[0]
        topic_field = topic_fields[magic]
        at = body_end + len(topic_field)
        if body_end < body_at or not data.startswith(topic_field, body_end):
            return OTHER_SHAPE
        if at + 2 + ((data[at] << 8) | data[at + 1]) != size or (at + 2 < size and not data[-1]):
            return OTHER_SHAPE
        if zlib.crc32(data[body_at:body_end]) & 0x7FFFFFFF != crc:
            return OTHER_BODY
        data[at + 2 :].decode()  # a client that cannot read the properties cannot go on
        if tags_code is not None and _stored_tags_code(data, at + 2) != tags_code:
            return OTHER_TAGS
    except (struct.error, IndexError):
        return NO_RECORD
    except UnicodeDecodeError:
        return OTHER_SHAPE
    return ""


@lru_cache(maxsize=4096)
def topic_fields(topic: str) -> Mapping[int, bytes]:
    """Return a topic as it is in records, by their magic."""
    data = topic.encode()
    fields = {MAGIC_V2: len(data).to_bytes(2, "big") + data}
    if len(data) <= _TOPIC_V1_BYTES_MAX:
        fields[MAGIC_V1] = len(data).to_bytes(1, "big") + data
    return fields


_unpack_front: Final = _FRONT.unpack_from
_unpack_size: Final = _LENGTH.unpack_from
NO_RECORD: Final = "no record of that size is there"
OTHER_RECORD: Final = "the record there is of another queue or offset"
OTHER_SHAPE: Final = "the record's lengths or its topic are altered"
OTHER_BODY: Final = "the body does not match its CRC"
OTHER_TAGS: Final = "the tag code is not that of the record"


def _stored_tags_code(data: bytes, properties_at: int) -> int:
    at = data.find(_TAGS_NAME, properties_at)
    while at > properties_at and data[at - 1] != _PROPERTY_END:
        at = data.find(_TAGS_NAME, at + 1)
    if at < 0:
        return 0
    begin = at + len(_TAGS_NAME)
    end = data.find(b"\x02", begin)
    return _tags_code(data[begin:] if end < 0 else data[begin:end])


@lru_cache(maxsize=4096)
def _tags_code(tags: bytes) -> int:
    return tags_code(tags.decode("utf-8", "replace"))


def stands_where_it_says(commit_offset: int, position: int) -> bool:
    """Return whether the record was written for the position at which it was found."""
    return commit_offset == position


def body_crc(body: bytes) -> int:
    """Return the CRC-32 of the body, without its highest bit."""
    return zlib.crc32(body) & 0x7FFFFFFF


def body_is_whole(crc: int, body: bytes) -> bool:
    """Return whether the body is the one that was written."""
    return body_crc(body) == crc


def text_is_whole(text: bytes) -> bool:
    """Return whether the text was not cut off by a torn write, after which there are only zero bytes."""
    return not text.endswith(b"\0")


class _Frame(NamedTuple):
    """The parts of a record that all messages of a topic and of two hosts have in common."""

    head: struct.Struct
    magic: int
    topic: bytes
    """The topic with its length before it."""
    born_host: bytes
    store_host: bytes
    host_flags: int


@lru_cache(maxsize=4096)
def _frame_of(topic_name: str, born: Address, store: Address) -> _Frame:
    topic, born_host, store_host = _topic_bytes(topic_name), encode_address(born), encode_address(store)
    magic = MAGIC_V1 if len(topic) <= 1 + _TOPIC_V1_BYTES_MAX else MAGIC_V2
    host_flags = (SYS_BORN_HOST_V6 if len(born_host) > 8 else 0) | (
        SYS_STORE_HOST_V6 if len(store_host) > 8 else 0
    )
    head = _HEADS[len(born_host), len(store_host)]
    return _Frame(head, magic, topic, born_host, store_host, host_flags)


def _topic_bytes(topic: str) -> bytes:
    """Return the topic with its length before it."""
    # This also keeps a topic a valid file name: it is a directory of the store.
    if not _TOPIC_PATTERN.fullmatch(topic) or len(topic) > 255:
        raise ValueError(f"topic {topic[:300]!r}: 1 to 255 letters, digits or %|_- expected")
    long_topic = len(topic) > _TOPIC_V1_BYTES_MAX
    return len(topic).to_bytes(2 if long_topic else 1, "big") + topic.encode()


def _topic_text(data: bytes) -> str:
    if not data or not text_is_whole(data):
        raise RecordError(f"topic {data!r} is empty or torn")
    topic = _text(data, "topic")
    if topic in (".", "..") or "/" in topic or "\0" in topic:
        raise RecordError(f"topic {topic!r} cannot be the name of its queues' directory")
    return topic


def _properties_text(data: bytes) -> str:
    if not text_is_whole(data):
        raise RecordError("properties end in a zero byte, as after a torn write")
    return _text(data, "properties")


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RecordError(f"{name} is not UTF-8: {error}") from None


def _length(data: bytes, at: int, width: int) -> int:
    if len(data) < at + width:
        raise RecordError(f"record of {len(data)} bytes ends inside a length at {at}")
    return int.from_bytes(data[at : at + width], "big", signed=True)


def _take(data: bytes, at: int, size: int, name: str) -> tuple[bytes, int]:
    if size < 0 or at + size > len(data):
        raise RecordError(f"{name} of {size} bytes at {at} does not fit a record of {len(data)} bytes")
    return data[at : at + size], at + size

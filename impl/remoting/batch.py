"""The body of a batch: several messages of one topic and queue in one send.

See docs/reference/protocol/sending.md, "Batches". Each message is: size (4 bytes), magic 0 (4), CRC 0 (4),
flag (4), body with its length (4), properties with their length (2). Magic and CRC are ignored. The size must
equal the sum of the parts.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from mqproof.impl.remoting.message import decode_properties, encode_properties

_HEAD: Final = struct.Struct(">IIIiI")  # size, magic, CRC, flag, length of the body
_PROPERTIES_LENGTH: Final = struct.Struct(">H")
_PROPERTIES_BYTES_MAX: Final = 32767


class Part(msgspec.Struct, frozen=True):
    """One message of a batch. What all messages have in common is in the header of the send request."""

    body: bytes
    properties: Mapping[str, str] = {}
    flag: int = 0


def encode_batch(parts: Iterable[Part]) -> bytes:
    """Return the body of the send request.

    Raises:
        ValueError: properties contain a separator or are too long, or a flag has more than 32 bits.
    """
    return b"".join(map(_encode, parts))


def decode_batch(data: bytes, count_max: int) -> list[Part]:
    """Decode the messages of a batch. Raises ValueError as `split_batch`."""
    return [Part(body, decode_properties(text), flag) for body, text, flag in split_batch(data, count_max)]


def split_batch(data: bytes, count_max: int) -> list[tuple[bytes, str, int]]:
    """Return the body, the encoded properties and the flag of each message of a batch.

    Raises:
        ValueError: there are none, there are more than `count_max`, or the bytes are not a batch.
    """
    parts: list[tuple[bytes, str, int]] = []
    at, end = 0, len(data)
    try:
        while at < end:
            if len(parts) == count_max:
                raise ValueError(f"the batch has more than {count_max} messages")
            size, _, _, flag, body_bytes = _HEAD.unpack_from(data, at)
            body_at = at + _HEAD.size
            body_end = body_at + body_bytes
            (properties_bytes,) = _PROPERTIES_LENGTH.unpack_from(data, body_end)
            properties_at = body_end + _PROPERTIES_LENGTH.size
            part_end = properties_at + properties_bytes
            if size != part_end - at or part_end > end:
                raise ValueError(
                    f"the batch's message at byte {at} has {part_end - at} bytes, its size says {size}"
                )
            parts.append((data[body_at:body_end], data[properties_at:part_end].decode(), flag))
            at = part_end
    except (struct.error, UnicodeDecodeError):
        raise ValueError(f"the batch has no whole message at byte {at}") from None
    if not parts:
        raise ValueError("the batch is empty")
    return parts


def _encode(part: Part) -> bytes:
    properties = encode_properties(part.properties).encode()
    if len(properties) > _PROPERTIES_BYTES_MAX:
        raise ValueError(f"properties have {len(properties)} bytes, at most {_PROPERTIES_BYTES_MAX} expected")
    size = _HEAD.size + len(part.body) + _PROPERTIES_LENGTH.size + len(properties)
    try:
        head = _HEAD.pack(size, 0, 0, part.flag, len(part.body))
    except struct.error as error:
        raise ValueError(f"a number of the message is out of range: {error}") from None
    return b"".join((head, part.body, _PROPERTIES_LENGTH.pack(len(properties)), properties))

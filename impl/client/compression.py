"""Bodies that travel compressed. See docs/protocol.md, "Compression"."""

import zlib
from dataclasses import replace
from typing import Final

from impl.message import SYS_COMPRESSED, Message, StoredMessage

_LEVEL: Final = 5
_ZLIB: Final = 0x300
_TYPES: Final = 0x700
"""Bits of the system flag that name the method; none is what older clients write for zlib."""

_INFLATED_BYTES_MAX: Final = 64 << 20


def deflated(message: Message) -> Message:
    """The message with its body as a zlib stream; the system flag says so."""
    flags = message.sys_flag & ~_TYPES | SYS_COMPRESSED | _ZLIB
    return replace(message, body=zlib.compress(message.body, _LEVEL), sys_flag=flags)


def inflated(stored: StoredMessage) -> StoredMessage:
    """The message with the body its producer gave; the system flag stays.

    A body that is no zlib stream, was compressed in another way, or would be too large to hold, stays as
    it is: what the producer sent is what there is.
    """
    message = stored.message
    if not message.sys_flag & SYS_COMPRESSED or message.sys_flag & _TYPES not in (0, _ZLIB):
        return stored
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(message.body, _INFLATED_BYTES_MAX)
    except zlib.error:
        return stored
    return replace(stored, message=replace(message, body=body)) if inflater.eof else stored

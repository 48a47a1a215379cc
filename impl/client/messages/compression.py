"""Compression and decompression of message bodies. See docs/reference/protocol/messages.md, "Compression"."""

import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import lz4.frame
from msgspec import structs

from mqproof.impl.remoting.message import SYS_COMPRESSED, Message, StoredMessage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL: Final = 5
_LZ4: Final = 0x100
_ZSTD: Final = 0x200
_ZLIB: Final = 0x300
_TYPES: Final = 0x700
"""The bits of the system flag that name the method. Older clients leave them 0 for zlib."""

_INFLATED_BYTES_MAX: Final = 64 << 20
_ZSTD_OPTIONS: Final[dict[int, int]] = {
    zstd.DecompressionParameter.window_log_max: _INFLATED_BYTES_MAX.bit_length() - 1
}
"""Limits the decompressor's window: a frame cannot request one larger than the largest body."""


def deflated(message: Message) -> Message:
    """Return the message with its body compressed by zlib, and the system flag set accordingly."""
    flags = message.sys_flag & ~_TYPES | SYS_COMPRESSED | _ZLIB
    return structs.replace(message, body=zlib.compress(message.body, _LEVEL), sys_flag=flags)


def inflated(stored: StoredMessage) -> StoredMessage:
    """Return the message with the body its producer provided. The system flag does not change."""
    message = stored.message
    body = inflated_body(message.body, message.sys_flag)
    return stored if body is message.body else replace(stored, message=structs.replace(message, body=body))


def inflated_body(body: bytes, sys_flag: int) -> bytes:
    """Return the body that the producer provided.

    Returns the body unchanged if it is not a complete stream of its method, or would be too large to hold in
    memory.
    """
    inflate = _METHODS.get(sys_flag & _TYPES)
    if not sys_flag & SYS_COMPRESSED or inflate is None:
        return body
    try:
        whole = inflate(body)
    except (zlib.error, zstd.ZstdError, RuntimeError, EOFError):
        return body
    return body if whole is None else whole


# Each function returns None for a stream that is incomplete or too large.


def _zlib(data: bytes) -> bytes | None:
    inflater = zlib.decompressobj()
    body = inflater.decompress(data, _INFLATED_BYTES_MAX)
    return body if inflater.eof else None


def _zstd(data: bytes) -> bytes | None:
    inflater = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
    body = inflater.decompress(data, _INFLATED_BYTES_MAX + 1)
    return body if inflater.eof and len(body) <= _INFLATED_BYTES_MAX else None


def _lz4(data: bytes) -> bytes | None:
    inflater = lz4.frame.LZ4FrameDecompressor()
    body: bytes = inflater.decompress(data, _INFLATED_BYTES_MAX)
    return body if inflater.eof else None


_METHODS: Final[dict[int, Callable[[bytes], bytes | None]]] = {
    0: _zlib,
    _ZLIB: _zlib,
    _ZSTD: _zstd,
    _LZ4: _lz4,
}

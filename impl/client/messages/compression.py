"""Compression and decompression of message bodies. See docs/reference/protocol/messages.md, "Compression"."""

import logging
import zlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Final, TypeVar

from msgspec import structs

from mqproof.impl.remoting.message import SYS_COMPRESSED, Message, StoredMessage

# The libraries of two methods are extras: few producers use them, and the libraries are large.
try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14
except ImportError:
    try:
        from backports import zstd
    except ImportError:
        zstd = None
try:
    from lz4.frame import LZ4FrameDecompressor
except ImportError:
    LZ4FrameDecompressor = None

_LEVEL: Final = 5
_LZ4: Final = 0x100
_ZSTD: Final = 0x200
_ZLIB: Final = 0x300
_TYPES: Final = 0x700
"""The bits of the system flag that name the method. Older clients leave them 0 for zlib."""

MESSAGE_BYTES_MAX: Final = 32 << 20
"""The most bytes that a body may have after decompression. A larger one stays compressed."""
STEP_BYTES: Final = 1 << 20
"""The most bytes that are decompressed in one step. The event loop can run other tasks between two steps."""

_WINDOW_LOG_MAX: Final = MESSAGE_BYTES_MAX.bit_length() - 1
"""Limits the window of ZSTD: a frame cannot request one larger than the largest body."""
_DAMAGED: Final = (zlib.error, RuntimeError, EOFError, *(() if zstd is None else (zstd.ZstdError,)))
"""What a decompressor raises for bytes that are not a stream of its method."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


def deflated(message: Message) -> Message:
    """Return the message with its body compressed by zlib, and the system flag set accordingly."""
    flags = message.sys_flag & ~_TYPES | SYS_COMPRESSED | _ZLIB
    return structs.replace(message, body=zlib.compress(message.body, _LEVEL), sys_flag=flags)


def inflated(stored: StoredMessage) -> StoredMessage:
    """Return the message with the body its producer provided. The system flag does not change.

    A body that is not a complete stream of its method stays as it is. So does one that is too large, and a
    warning names the message. A body of LZ4 needs the extra `mqproof[lz4]`, and one of ZSTD needs
    `mqproof[zstd]` before Python 3.14; without it, the body stays as it is, and a warning names the extra.
    """
    message = stored.message
    body = _run(inflating(message.body, message.sys_flag, MESSAGE_BYTES_MAX))
    if body is None:
        warn_of_size(stored)
        return stored
    return with_body(stored, body)


def with_body(stored: StoredMessage, body: bytes) -> StoredMessage:
    """Return the message with another body."""
    message = stored.message
    return stored if body is message.body else replace(stored, message=structs.replace(message, body=body))


def warn_of_size(stored: StoredMessage) -> None:
    """Log that a message is delivered with its compressed body."""
    _log.warning(
        "message %s of topic %s has more than %d bytes when decompressed: its body stays compressed",
        stored.message_id,
        stored.message.topic,
        MESSAGE_BYTES_MAX,
    )


def inflated_body(body: bytes, sys_flag: int) -> bytes:
    """Return the body that the producer provided.

    Returns the body unchanged if it is not a complete stream of its method, or has more than
    MESSAGE_BYTES_MAX bytes.
    """
    whole = _run(inflating(body, sys_flag, MESSAGE_BYTES_MAX))
    return body if whole is None else whole


def inflating(body: bytes, sys_flag: int, bytes_max: int) -> Generator[int, None, bytes | None]:
    """Decompress a body in steps. Yields the number of bytes of each step except the last.

    Returns the body that the producer provided; the same body if it is not compressed, or not a complete
    stream of its method; None if it has more than `bytes_max` bytes.
    """
    method = _METHODS.get(sys_flag & _TYPES)
    if not sys_flag & SYS_COMPRESSED or method is None:
        return body
    parts: list[bytes] = []
    size = 0
    try:
        read = method(body)
        while True:
            part, is_end = read(min(STEP_BYTES, bytes_max + 1 - size))
            parts.append(part)
            size += len(part)
            if size > bytes_max:
                return None
            if is_end:
                return b"".join(parts) if len(parts) > 1 else part
            if not part:  # the stream is incomplete
                return body
            yield len(part)
    except _DAMAGED:
        return body


def _run(steps: Generator[int, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


Read = Callable[[int], tuple[bytes, bool]]
"""Returns at most that many more bytes of a stream, and whether it has ended."""


def _zlib(data: bytes) -> Read:
    inflater = zlib.decompressobj()
    left = data

    def read(size: int) -> tuple[bytes, bool]:
        nonlocal left
        part = inflater.decompress(left, size)
        left = inflater.unconsumed_tail
        return part, inflater.eof

    return read


def _zstd(data: bytes) -> Read:
    if zstd is None:
        raise _without("ZSTD")
    inflater = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX})
    left = data

    def read(size: int) -> tuple[bytes, bool]:
        nonlocal left
        part = inflater.decompress(left, size)
        left = b""  # the decompressor keeps what it has not used
        return part, inflater.eof

    return read


def _lz4(data: bytes) -> Read:
    if LZ4FrameDecompressor is None:
        raise _without("LZ4")
    inflater = LZ4FrameDecompressor()
    left = data

    def read(size: int) -> tuple[bytes, bool]:
        nonlocal left
        part = inflater.decompress(left, size)
        left = b""  # as above
        return part, inflater.eof

    return read


def _without(method: str) -> RuntimeError:
    """Log the extra that a body's method needs, and return the error that leaves the body as it is."""
    extra = f"mqproof[{method.lower()}]"
    _log.warning("a body compressed with %s stays compressed: to read it, pip install '%s'", method, extra)
    return RuntimeError(f"no {method}")


_METHODS: Final[dict[int, Callable[[bytes], Read]]] = {
    0: _zlib,
    _ZLIB: _zlib,
    _ZSTD: _zstd,
    _LZ4: _lz4,
}

"""Length-prefixed frames: a 4-byte big-endian length, then that many bytes.

See docs/reference/protocol/framing.md, "Remoting frame". This module does not interpret the content of a
frame.
"""

import struct
from typing import Final

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""The default limit on a whole frame, including its length field."""

LENGTH_BYTES: Final = 4
_LENGTH: Final = struct.Struct(">I")


class FrameError(ValueError):
    """Bytes that are not a frame, or a frame that is not a command.

    The connection cannot be used any more.
    """


def read_frame(buffer: bytearray, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes | None:
    """Remove one frame from the front of the buffer.

    Returns the frame without its length field, or None when more bytes are needed (the buffer is then
    unchanged).

    Raises:
        FrameError: the announced length exceeds frame_bytes_max. The buffer is unchanged; the connection
            cannot be resynchronised and should be closed.
    """
    if len(buffer) < LENGTH_BYTES:
        return None
    end = LENGTH_BYTES + _LENGTH.unpack_from(buffer)[0]
    # Check before waiting for the rest: a peer must not make us buffer an arbitrary announced length.
    if end > frame_bytes_max:
        raise FrameError(f"frame of {end} bytes announced, at most {frame_bytes_max} expected")
    if len(buffer) < end:
        return None
    with memoryview(buffer) as view:
        frame = bytes(view[LENGTH_BYTES:end])
    del buffer[:end]
    return frame


def write_frame(*parts: bytes) -> bytes:
    """Return the frame that contains `parts`, concatenated."""
    return b"".join((sum(map(len, parts)).to_bytes(LENGTH_BYTES, "big"), *parts))

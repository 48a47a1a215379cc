"""Length-prefixed frames: a 4-byte big-endian length, then that many bytes.

See docs/protocol.md, "Remoting frame". Nothing here knows what a frame holds.
"""

from typing import Final

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""Default limit of a whole frame, its length field included."""

LENGTH_BYTES: Final = 4


class FrameError(ValueError):
    """Bytes that are not a frame, or a frame that is not a command. Its connection is beyond trust."""


def read_frame(buffer: bytearray, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes | None:
    """Take one frame off the front of the buffer.

    Returns the frame without its length field, or None when more bytes are needed (the buffer is then
    unchanged).

    Raises:
        FrameError: the announced length is beyond frame_bytes_max. The buffer is unchanged; the connection
            cannot be resynchronised and should be closed.
    """
    if len(buffer) < LENGTH_BYTES:
        return None
    end = LENGTH_BYTES + int.from_bytes(buffer[:LENGTH_BYTES], "big")
    # Checked before waiting for the rest: a peer must not make us buffer what it merely announces.
    if end > frame_bytes_max:
        raise FrameError(f"frame of {end} bytes announced, at most {frame_bytes_max} expected")
    if len(buffer) < end:
        return None
    with memoryview(buffer) as view:
        frame = bytes(view[LENGTH_BYTES:end])
    del buffer[:end]
    return frame


def write_frame(*parts: bytes) -> bytes:
    """The frame that holds `parts`, one after the other."""
    return b"".join((sum(map(len, parts)).to_bytes(LENGTH_BYTES, "big"), *parts))

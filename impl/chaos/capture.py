"""The capture: what the clients of the proxy sent and received, frame by frame, in one file.

Frames are written as they are; nothing is decoded while the proxy runs. The history of the clients is made
from the capture afterwards. A file ends with an END record; without it, records are missing.
"""

import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple, Protocol

import msgspec

MAGIC: Final = b"MQCHAOS1"
BYTES_MAX: Final = 4 << 30
"""The default limit on the size of a capture. What follows is not captured."""
_HEAD: Final = struct.Struct(">BIqI")  # kind, connection, time, bytes that follow
_PAYLOAD_BYTES_MAX: Final = 32 << 20


class CaptureError(ValueError):
    """A file is not a capture. The message names it and the position."""


class Recorded(IntEnum):
    """The kinds of records."""

    OPENED = 1
    """A client connected. The payload names the server behind the port."""
    TO_SERVER = 2
    """A frame that a client sent."""
    TO_CLIENT = 3
    """A frame that a client was sent."""
    CLOSED = 4
    NODE = 5
    """A broker seemed to crash, or to serve again."""
    FAULT = 6
    """A fault took effect."""
    END = 7


_KINDS: Final = frozenset(map(int, Recorded))


class Entry(NamedTuple):
    """One record of a capture."""

    kind: Recorded
    connection: int
    time_ns: int
    payload: bytes


class Opened(msgspec.Struct, frozen=True):
    """The payload of OPENED. The name of a name server is empty."""

    server: str
    broker_id: int
    peer: str


class NodeChange(msgspec.Struct, frozen=True):
    """The payload of NODE."""

    kind: str
    """kill or start."""
    node: str


class Injected(msgspec.Struct, frozen=True, omit_defaults=True):
    """The payload of FAULT: one fault that took effect, and where."""

    fault: str
    broker: str = ""
    topic: str = ""
    queue: str = ""
    group: str = ""
    number: int = 0
    """The number of the request in its stream, from 1."""
    time_ns: int = 0
    """When it took effect, since the epoch."""


class Sink(Protocol):
    """A buffered file that is written."""

    def write(self, data: bytes, /) -> object: ...
    def close(self) -> None: ...


class Source(Protocol):
    """A file that is read."""

    def read(self, size: int, /) -> bytes: ...


class CaptureWriter:
    """Appends records to a file. It belongs to one event loop."""

    def __init__(self, file: Sink, now_ns: Callable[[], int], bytes_max: int = BYTES_MAX) -> None:
        """Begin a capture in an empty file, which `close` closes. Raises OSError."""
        self._file = file
        self._file.write(MAGIC)
        self._now_ns = now_ns
        self._left = bytes_max
        self.is_complete = True
        """Whether everything was recorded so far."""

    def write(self, kind: Recorded, connection: int, payload: bytes) -> None:
        """Append one record. Above the limit, or if the disk fails, nothing is recorded any more."""
        if not self.is_complete:
            return
        self._left -= len(payload) + _HEAD.size
        if self._left < 0:
            self.is_complete = False
            return
        try:
            self._file.write(_HEAD.pack(kind, connection, self._now_ns(), len(payload)))
            self._file.write(payload)
        except OSError:
            self.is_complete = False

    def write_object(self, kind: Recorded, connection: int, value: Any) -> None:
        self.write(kind, connection, msgspec.json.encode(value))

    def close(self) -> None:
        """End the file. Raises OSError when the last records cannot be written."""
        self.write(Recorded.END, 0, b"")
        self.is_complete = False
        self._file.close()


def read_capture(file: Source, name: str) -> Iterator[Entry]:
    """Yield the records of a file called `name`. A torn record at the end is left out.

    Raises:
        CaptureError: the file is not a capture.
        OSError: it cannot be read.
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise CaptureError(f"{name}: not a capture of the chaos proxy")
    at = len(MAGIC)
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        kind, connection, time_ns, size = _HEAD.unpack(head)
        if kind not in _KINDS or size > _PAYLOAD_BYTES_MAX:
            raise CaptureError(f"{name}: no record at byte {at}")
        payload = file.read(size)
        if len(payload) < size:
            return
        at += _HEAD.size + size
        yield Entry(Recorded(kind), connection, time_ns, payload)

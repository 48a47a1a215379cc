"""Reads the heads of frames. Bodies, and most fields, are not looked at.

A frame that the proxy does not change is passed on as the bytes that arrived.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from mqproof.impl.chaos.draws import Subject
from mqproof.impl.remoting.command import HEADER_BYTES_MAX, Command, Serialization, decode, encode
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX, LENGTH_BYTES, FrameError

_HEADER_AT: Final = 8
_IS_RESPONSE: Final = 1
_IS_ONEWAY: Final = 2


class _Fields(msgspec.Struct):
    """The fields that say what a request is about, under all their names."""

    topic: str = ""
    queue_id: str = msgspec.field(name="queueId", default="")
    consumer_group: str = msgspec.field(name="consumerGroup", default="")
    group: str = ""
    b: str = ""
    """The topic of a send with one-letter names."""
    e: str = ""
    """The queue of a send with one-letter names."""


_NO_FIELDS: Final = _Fields()


class _JsonHead(msgspec.Struct):
    code: int
    opaque: int = msgspec.field(default_factory=int)
    flag: int = msgspec.field(default_factory=int)


class _JsonRequest(_JsonHead):
    fields: _Fields | None = msgspec.field(name="extFields", default=None)


_read_head: Final = msgspec.json.Decoder(_JsonHead).decode
_read_request: Final = msgspec.json.Decoder(_JsonRequest).decode


class Head(NamedTuple):
    """What the proxy has to know of every frame."""

    code: int
    opaque: int
    is_response: bool
    is_oneway: bool
    topic: str = ""
    queue: str = ""
    group: str = ""

    def about(self, broker: str) -> Subject:
        return Subject(broker, self.topic, self.queue, self.group)


class Place(NamedTuple):
    """A whole frame in a buffer, with its length field."""

    start: int
    body: int
    end: int


def frames_in(buffer: bytearray, frame_bytes_max: int = FRAME_BYTES_MAX) -> Iterator[Place]:
    """Yield the whole frames at the front of the buffer. The buffer must not change meanwhile.

    Raises:
        FrameError: the next frame is too long, or its header does not fit into it.
    """
    at, have = 0, len(buffer)
    while have - at >= LENGTH_BYTES:
        end = at + LENGTH_BYTES + int.from_bytes(buffer[at : at + LENGTH_BYTES], "big")
        if end - at > frame_bytes_max:
            raise FrameError(f"frame of {end - at} bytes announced, at most {frame_bytes_max} expected")
        if end > have:
            return
        body = at + _HEADER_AT + int.from_bytes(buffer[at + 5 : at + _HEADER_AT], "big")
        if body > end or body - at - _HEADER_AT > HEADER_BYTES_MAX:
            raise FrameError(f"a header of {body - at - _HEADER_AT} bytes in a frame of {end - at}")
        yield Place(at, body, end)
        at = end


def head_of(buffer: bytes | bytearray, place: Place, *, with_fields: bool) -> Head:
    """Return the head of the frame. Raises FrameError if its header cannot be read."""
    if buffer[place.start + LENGTH_BYTES] == Serialization.JSON:
        header = buffer[place.start + _HEADER_AT : place.body]
        try:
            if not with_fields:
                short = _read_head(header)
                return Head(short.code, short.opaque, bool(short.flag & 1), bool(short.flag & _IS_ONEWAY))
            long = _read_request(header)
        except (ValueError, RecursionError):  # a null, or a number without quotes: the codec reads them
            pass
        else:
            f = long.fields or _NO_FIELDS
            return Head(
                long.code,
                long.opaque,
                bool(long.flag & _IS_RESPONSE),
                bool(long.flag & _IS_ONEWAY),
                f.topic or f.b,
                f.queue_id or f.e,
                f.consumer_group or f.group,
            )
    return head_of_command(decode(bytes(buffer[place.start + LENGTH_BYTES : place.body])))


def head_of_command(command: Command) -> Head:
    """Return the head of a command that is decoded already."""
    get = command.fields.get
    return Head(
        command.code,
        command.opaque,
        command.is_response,
        command.is_oneway,
        get("topic") or get("b") or "",
        get("queueId") or get("e") or "",
        get("consumerGroup") or get("group") or "",
    )


def command_of(frame: bytes) -> Command:
    """Return the command in a frame with its length field. Raises FrameError."""
    return decode(frame[LENGTH_BYTES:])


def frame_of(command: Command) -> bytes:
    """Return the frame of a command, with its length field."""
    return encode(command)

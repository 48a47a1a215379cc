"""Mutants of the remoting decoder and encoder."""

from collections.abc import Callable
from typing import Any, Final

from mqproof.fuzz.defects.defect import Mutant
from mqproof.impl.remoting import command, frame
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.frame import LENGTH_BYTES, FrameError

_read_frame = frame.read_frame
_decode = command.decode
_encode = command.encode


def _reserve_what_is_announced(buffer: bytearray, frame_bytes_max: int) -> bytes | None:
    size = int.from_bytes(buffer[:LENGTH_BYTES], "big")
    room = bytearray(size) if len(buffer) >= LENGTH_BYTES and size <= frame_bytes_max else b""
    assert len(room) <= frame_bytes_max
    return _read_frame(buffer, frame_bytes_max)


def _wait_for_any_length(buffer: bytearray, _frame_bytes_max: int) -> bytes | None:
    return _read_frame(buffer, 1 << 40)


def _refuse_at_the_limit(buffer: bytearray, frame_bytes_max: int) -> bytes | None:
    taken = _read_frame(buffer, frame_bytes_max)
    if taken == b"":
        raise FrameError("an empty frame")
    return taken


def _take_length_early(buffer: bytearray, frame_bytes_max: int) -> bytes | None:
    if len(buffer) == LENGTH_BYTES and any(buffer):
        del buffer[:LENGTH_BYTES]
        return None
    return _read_frame(buffer, frame_bytes_max)


def _decode_unguarded(data: bytes) -> Command:
    serialization = data[0]
    assert serialization >= 0
    return _decode(data)


def _encode_without_remark(each: Command) -> bytes:
    return _encode(Command(each.code, each.opaque, each.flag, each.fields, each.body))


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, "remoting-decode", breaks, f"mqproof.impl.remoting.{where}", wrong)


MUTANTS: Final = (
    _mutant(
        "ReserveWhatIsAnnounced",
        "a decoder allocates a frame as soon as its length arrives",
        "BoundedAllocation",
        "frame:read_frame",
        _reserve_what_is_announced,
    ),
    _mutant(
        "WaitForAnyLength",
        "a decoder accepts a frame of any length",
        "FrameOrRefusal",
        "frame:read_frame",
        _wait_for_any_length,
    ),
    _mutant(
        "EmptyFrameRefused",
        "a decoder refuses an empty frame, which only the command decoder may refuse",
        "FrameOrRefusal",
        "frame:read_frame",
        _refuse_at_the_limit,
    ),
    _mutant(
        "LengthTakenEarly",
        "a decoder removes the length from the buffer before the frame is complete",
        "ChunkingIrrelevant",
        "frame:read_frame",
        _take_length_early,
    ),
    _mutant(
        "FirstByteUnguarded",
        "a decoder reads the first byte of a frame without checking that there is one",
        "OnlyDocumentedErrors",
        "command:decode",
        _decode_unguarded,
    ),
    _mutant(
        "RemarkNotEncoded",
        "an encoder omits the remark",
        "RoundTrip",
        "command:encode",
        _encode_without_remark,
    ),
)

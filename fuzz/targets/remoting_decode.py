"""FrameOrRefusal, ChunkingIrrelevant, RoundTrip, BoundedAllocation: they hold for any bytes from a peer.

The decoder returns a command, waits for more bytes, or refuses with FrameError. The way the bytes were
divided in transit does not matter. A decoded command is the same after being encoded and decoded again. A
peer cannot make the decoder allocate memory for bytes that it only announces.

An input is what one peer sends on one connection: any number of frames, the last one possibly incomplete.
"""

import tracemalloc
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

import msgspec

from mqproof.fuzz.target import Finding, unobserved
from mqproof.impl.remoting import command, frame
from mqproof.impl.remoting.command import Command, Serialization
from mqproof.impl.remoting.frame import LENGTH_BYTES, FrameError

FRAME_BYTES_MAX: Final = 1 << 20
"""A limit that inputs exceed easily, and that is far more than an input may make the decoder allocate."""

ALLOCATED_BYTES_MAX: Final = 64 << 10
ALLOCATED_PER_BYTE_MAX: Final = 256
"""The most memory that decoding may allocate for each byte of the input. A header of many short fields needs
much, because it becomes a dictionary of many strings.
"""

_ALLOCATION_ONE_IN: Final = 7
_BYTEWISE_ONE_IN: Final = 64
"""Two checks are slow, so they test one input in so many; the input itself decides which."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of decoding a stream."""

    commands: tuple[Command, ...]
    refusal: str
    """The message of the FrameError that ended it, or empty."""
    left: bytes
    """The bytes that wait for the rest of a frame."""


class RemotingDecode:
    name: ClassVar = "remoting-decode"
    invariants: ClassVar = {
        "FrameOrRefusal": "a frame is decoded exactly when complete, and refused exactly when too long",
        "ChunkingIrrelevant": "a stream decodes to the same result whole and byte by byte",
        "RoundTrip": "a decoded command is the same after being encoded and decoded again",
        "BoundedAllocation": "decoding allocates in proportion to what arrived, not to what was announced",
    }
    watched: ClassVar = ("mqproof.impl.remoting.frame", "mqproof.impl.remoting.command")
    input_bytes_max: ClassVar = 512

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()

    def seeds(self) -> Iterable[bytes]:
        fields = {"topic": "T", "queueId": "3", "b": "long \u6d88\u606f"}
        for serialization in Serialization:
            one = Command(310, 7, 0, fields, b"body", serialization=serialization)
            two = Command(0, 7, 1, {}, b"", "a remark", serialization=serialization)
            oneway = Command(34, 8, 2, language="JAVA", serialization=serialization)
            yield command.encode(one)
            yield command.encode(two) + command.encode(oneway)
        header = b'{"code":11,"flag":0,"opaque":1,"extFields":{"a":1,"b":true,"c":null,"d":1.5},"x":[]}'
        yield frame.write_frame(len(header).to_bytes(4, "big"), header)

    def run(self, data: bytes) -> None:
        whole = read(data)
        chance = zlib.crc32(data)
        with unobserved():
            if chance % _ALLOCATION_ONE_IN == 0:
                self._judge_allocation(data)
            self._judge_chunking(data, whole, chance)
            self._judge_frames(data)
            for each in whole.commands:
                self._judge_round_trip(each)

    def _judge_allocation(self, data: bytes) -> None:
        tracemalloc.start()
        try:
            read(data)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        self.checked["BoundedAllocation"] += 1
        size = len(data)
        limit = ALLOCATED_BYTES_MAX + ALLOCATED_PER_BYTE_MAX * size
        if peak_bytes > limit:
            message = f"{size} bytes made the decoder allocate {peak_bytes}, at most {limit} expected"
            raise Finding("BoundedAllocation", message)

    def _judge_frames(self, data: bytes) -> None:
        """Compare the first frame with an independent statement of the framing rule."""
        self.checked["FrameOrRefusal"] += 1
        announced = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big")
        if len(data) < LENGTH_BYTES:
            expected = "more"
        elif announced > FRAME_BYTES_MAX:
            expected = "refused"
        else:
            expected = "whole" if len(data) >= announced else "more"
        buffer = bytearray(data)
        try:
            taken = frame.read_frame(buffer, FRAME_BYTES_MAX)
            got = "more" if taken is None else "whole"
        except FrameError:
            taken, got = None, "refused"
        if got != expected:
            message = f"{got} where {announced} bytes are announced, {expected} expected"
            raise Finding("FrameOrRefusal", message)
        if got == "whole":
            right = taken == data[LENGTH_BYTES:announced] and buffer == data[announced:]
        else:
            right = buffer == data
        if not right:
            raise Finding("FrameOrRefusal", f"{got}, but the buffer does not hold the remaining bytes")

    def _judge_chunking(self, data: bytes, whole: Reading, chance: int) -> None:
        """Compare with the same bytes in three chunks, or for some inputs byte by byte."""
        self.checked["ChunkingIrrelevant"] += len(data) > 1
        if chance % _BYTEWISE_ONE_IN == 0:
            cuts = list(range(len(data) + 1))
        else:
            cuts = sorted((0, chance % (len(data) + 1), chance // 4099 % (len(data) + 1), len(data)))
        divided = read_divided(data, cuts)
        if divided != whole:
            raise Finding("ChunkingIrrelevant", f"whole: {whole}; divided at {cuts[1:4]}...: {divided}")

    def _judge_round_trip(self, first: Command) -> None:
        self.checked["RoundTrip"] += 1
        again = command.decode(command.encode(first)[LENGTH_BYTES:])
        if first.serialization is Serialization.BINARY and first.language is None:
            # The binary header can express an unknown language only as "OTHER".
            first = msgspec.structs.replace(first, language="OTHER")
        if again != first:
            raise Finding("RoundTrip", f"{first} became {again}")


def read(data: bytes) -> Reading:
    """Decode a stream that arrives at once."""
    buffer = bytearray(data)
    commands: list[Command] = []
    refusal = _drain(buffer, commands)
    return Reading(tuple(commands), refusal, bytes(buffer))


def read_divided(data: bytes, cuts: Sequence[int]) -> Reading:
    """Decode a stream that arrives in chunks, each from one of the positions to the next."""
    buffer = bytearray()
    commands: list[Command] = []
    for begin, end in pairwise(cuts):
        buffer += data[begin:end]
        if refusal := _drain(buffer, commands):
            return Reading(tuple(commands), refusal, bytes(buffer) + data[end:])
    return Reading(tuple(commands), "", bytes(buffer))


def _drain(buffer: bytearray, commands: list[Command]) -> str:
    """Take all whole frames off the buffer. Return the refusal that ended the stream, or an empty string."""
    try:
        while (taken := frame.read_frame(buffer, FRAME_BYTES_MAX)) is not None:
            commands.append(command.decode(taken))
    except FrameError as error:
        return str(error)
    return ""


TARGET = RemotingDecode

"""Heads are read from frames of both serializations, and nothing else of a frame is looked at."""

import msgspec
import pytest

from mqproof.impl.chaos.frame_head import Head, command_of, frame_of, frames_in, head_of, head_of_command
from mqproof.impl.remoting.command import Command, Serialization, new_request
from mqproof.impl.remoting.frame import FrameError

SEND = {"b": "T", "e": "3", "i": "properties"}
PULL = {"topic": "T", "queueId": "2", "consumerGroup": "G"}


@pytest.mark.parametrize("serialization", Serialization)
@pytest.mark.parametrize(
    ("command", "head"),
    [
        (Command(310, 7, 0, SEND, b"body"), Head(310, 7, False, False, "T", "3", "")),
        (Command(11, -7, 2, PULL), Head(11, -7, False, True, "T", "2", "G")),
        (Command(0, 7, 1), Head(0, 7, True, False)),
    ],
)
def test_the_head_is_the_same_in_both_serializations(
    command: Command, head: Head, serialization: Serialization
) -> None:
    frame = bytearray(frame_of(msgspec.structs.replace(command, serialization=serialization)))
    (place,) = frames_in(frame)
    assert head_of(frame, place, with_fields=True) == head
    assert head_of(frame, place, with_fields=False)[:4] == head[:4]
    assert head_of_command(command_of(bytes(frame))) == head
    assert bytes(frame[place.body : place.end]) == command.body


def test_a_header_with_numbers_without_quotes_is_read_by_the_codec() -> None:
    header = b'{"code":11,"extFields":{"topic":"T","queueId":2},"flag":0,"opaque":5}'
    frame = bytearray((4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header)
    (place,) = frames_in(frame)
    assert head_of(frame, place, with_fields=True) == Head(11, 5, False, False, "T", "2", "")


def test_frames_are_found_whole_at_every_cut() -> None:
    data = frame_of(new_request(10, SEND, b"x" * 50)) + frame_of(new_request(11, PULL))
    ends = [place.end for place in frames_in(bytearray(data))]
    assert ends[-1] == len(data)
    for cut in range(len(data)):
        assert [place.end for place in frames_in(bytearray(data[:cut]))] == [e for e in ends if e <= cut]


@pytest.mark.parametrize(
    "data",
    [
        b"\x7f\xff\xff\xff" + bytes(8),  # longer than any frame may be
        b"\0\0\0\x08\0\0\0\x20" + bytes(4),  # the header is longer than the frame
        b"\0\0\0\x02" + bytes(8),  # no room for the header's length
    ],
)
def test_a_frame_that_cannot_be_one_is_an_error(data: bytes) -> None:
    with pytest.raises(FrameError):
        list(frames_in(bytearray(data)))


@pytest.mark.parametrize("header", [b"\0\0\0\x02{}", b"\0\0\0\x01x", b"\x07\0\0\x01x"])
def test_a_header_that_cannot_be_read_is_an_error(header: bytes) -> None:
    frame = bytearray(len(header).to_bytes(4, "big") + header)
    (place,) = frames_in(frame)
    with pytest.raises(FrameError):
        head_of(frame, place, with_fields=True)

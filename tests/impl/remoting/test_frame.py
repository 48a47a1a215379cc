"""Tests that frames are decoded completely, however the byte stream is divided."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.impl.remoting.frame import FrameError, read_frame, write_frame


def test_a_frame_is_its_length_and_its_parts() -> None:
    assert write_frame(b"ab", b"", b"c") == b"\x00\x00\x00\x03abc"


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(1, 30)))
def test_frames_survive_any_cut_of_the_stream(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(write_frame(frame) for frame in frames)
    chunks = [*cuts, len(stream)]
    buffer, found, at = bytearray(), [], 0
    for chunk in chunks:
        buffer += stream[at : at + chunk]
        at += chunk
        while (frame := read_frame(buffer)) is not None:
            found.append(frame)
    assert found == frames
    assert not buffer


def test_trailing_bytes_stay_in_the_buffer() -> None:
    buffer = bytearray(write_frame(b"one") + b"\x00\x00")
    assert read_frame(buffer) == b"one"
    assert read_frame(buffer) is None
    assert buffer == b"\x00\x00"


def test_a_length_beyond_the_limit_is_refused_before_its_bytes_arrive() -> None:
    buffer = bytearray(b"\x00\x00\x00\x0d")
    with pytest.raises(FrameError, match="17 bytes announced, at most 16 expected"):
        read_frame(buffer, frame_bytes_max=16)


def test_the_limit_counts_the_length_field() -> None:
    assert read_frame(bytearray(write_frame(b"x" * 12)), frame_bytes_max=16) == b"x" * 12


def test_a_negative_length_exceeds_every_limit() -> None:
    with pytest.raises(FrameError, match="announced"):
        read_frame(bytearray(b"\xff\xff\xff\xff"))

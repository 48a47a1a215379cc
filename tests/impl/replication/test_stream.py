"""Tests the bytes of a replication connection: writing them, and reading them in chunks of any size."""

import pytest

from mqproof.impl.replication.stream import (
    TAKEN_BODY_BYTES_MAX,
    StreamError,
    Transfer,
    read_position,
    read_transfer,
    write_position,
    write_transfer,
)


def test_a_position_is_eight_bytes_big_endian() -> None:
    assert write_position(0x0102_0304_0506_0708) == bytes(range(1, 9))
    assert read_position(bytearray(range(1, 9))) == 0x0102_0304_0506_0708


def test_a_transfer_has_a_position_a_size_and_the_data() -> None:
    frame = write_transfer(Transfer(258, b"abc"))
    assert frame == bytes(6) + b"\x01\x02" + b"\0\0\0\x03" + b"abc"
    assert read_transfer(bytearray(frame)) == Transfer(258, b"abc")


def test_a_heartbeat_is_an_empty_transfer() -> None:
    assert write_transfer(Transfer(7, b"")) == bytes(7) + b"\x07" + bytes(4)


def test_a_transfer_may_arrive_byte_by_byte_and_later_bytes_stay() -> None:
    buffer = bytearray()
    for byte in write_transfer(Transfer(1, b"xy")):
        assert read_transfer(buffer) is None
        buffer.append(byte)
    buffer += b"rest"
    assert read_transfer(buffer) == Transfer(1, b"xy")
    assert buffer == b"rest"


def test_a_position_may_arrive_byte_by_byte() -> None:
    buffer = bytearray()
    for byte in write_position(5):
        assert read_position(buffer) is None
        buffer.append(byte)
    assert read_position(buffer) == 5
    assert not buffer


@pytest.mark.parametrize("size", [-1, TAKEN_BODY_BYTES_MAX + 1])
def test_an_impossible_transfer_size_is_refused_before_its_bytes_arrive(size: int) -> None:
    with pytest.raises(StreamError, match=f"transfer of {size} bytes"):
        read_transfer(bytearray(bytes(8) + size.to_bytes(4, "big", signed=True)))


def test_negative_positions_are_refused() -> None:
    with pytest.raises(StreamError, match="position -1"):
        read_position(bytearray(b"\xff" * 8))
    with pytest.raises(StreamError, match="position -1"):
        read_transfer(bytearray(b"\xff" * 8 + bytes(4)))

"""Tests the bytes of a replication connection: writing them, and reading them in chunks of any size."""

import zlib

import pytest

from mqproof.impl.replication.stream import (
    POSITION_MAX,
    TAKEN_BODY_BYTES_MAX,
    StreamError,
    Transfer,
    read_position,
    read_proved_position,
    read_transfer,
    tail_checksum,
    write_position,
    write_proved_position,
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


@pytest.mark.parametrize(("position", "is_possible"), [(POSITION_MAX, True), (POSITION_MAX + 1, False)])
def test_a_position_is_at_most_2_to_the_62(position: int, is_possible: bool) -> None:
    reads = (
        lambda: read_position(bytearray(write_position(position))),
        lambda: read_proved_position(bytearray(write_proved_position(position, 7))),
        lambda: read_transfer(bytearray(write_transfer(Transfer(position, b"")))),
    )
    assert POSITION_MAX == 4_611_686_018_427_387_904
    for read in reads:
        if is_possible:
            assert read() is not None
        else:
            with pytest.raises(StreamError, match=f"position {position}, 0 to {POSITION_MAX} expected"):
                read()


def test_the_largest_transfer_is_4_mib() -> None:
    frame = bytearray(bytes(8) + (4 << 20).to_bytes(4, "big") + bytes(4 << 20))
    assert read_transfer(frame[:-1]) is None
    transfer = read_transfer(frame)
    assert transfer is not None
    assert len(transfer.body) == TAKEN_BODY_BYTES_MAX == 4 << 20


def test_a_proved_position_may_arrive_byte_by_byte_and_later_bytes_stay() -> None:
    buffer = bytearray()
    for byte in write_proved_position(5, 0xFFFF_FFFF):
        assert read_proved_position(buffer) is None
        buffer.append(byte)
    buffer += b"rest"
    assert read_proved_position(buffer) == (5, 0xFFFF_FFFF)
    assert buffer == b"rest"


@pytest.mark.parametrize(
    ("position", "start"),
    [(1, 0), (1024, 0), (1025, 1), (4096, 3072), (4097, 4096), (4096 + 1025, 4097), (8192, 8192 - 1024)],
)
def test_a_proof_covers_1024_bytes_of_one_segment(position: int, start: int) -> None:
    class Log:
        log_segment_bytes = 4096

        def log_read(self, at: int, size: int) -> bytes:
            return b"%d,%d" % (at, size)

    assert tail_checksum(Log(), position) == zlib.crc32(b"%d,%d" % (start, position - start))
    assert tail_checksum(Log(), 0) == 0

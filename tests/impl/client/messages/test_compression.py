"""Tests compressed bodies: the sent format, and the handling of every received one."""

import sys
import zlib
from collections.abc import Callable
from random import Random

import lz4.frame
import pytest

from mqproof.impl.client.messages import compression
from mqproof.impl.client.messages.compression import deflated, inflated, inflated_body, inflating
from mqproof.impl.remoting.message import Message, StoredMessage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


MESSAGE_BYTES_MAX = 32 << 20
STEP_BYTES = 1 << 20


def stored(body: bytes, sys_flag: int) -> StoredMessage:
    return StoredMessage(Message("T", body, sys_flag=sys_flag), 0, 0, 0, 0, 0)


def test_a_compressed_body_is_a_zlib_stream_and_the_system_flag_names_the_method() -> None:
    message = deflated(Message("T", b"x" * 10_000, sys_flag=0x4))
    assert message.sys_flag == 0x305
    assert zlib.decompress(message.body) == b"x" * 10_000
    assert inflated(stored(message.body, message.sys_flag)).message.body == b"x" * 10_000


def test_a_body_is_compressed_at_level_5() -> None:
    body = b"".join(b"order %d of customer %d;" % (each, each * 7919 % 1000) for each in range(300))
    assert deflated(Message("T", body)).body == zlib.compress(body, 5) != zlib.compress(body, 6)


def test_without_a_method_as_from_older_clients_zlib_is_used() -> None:
    assert inflated(stored(zlib.compress(b"abc"), 0x1)).message.body == b"abc"


@pytest.mark.parametrize(
    ("flag", "compress"),
    [(0x101, lz4.frame.compress), (0x201, zstd.compress), (0x301, zlib.compress)],
)
def test_the_compression_methods_of_java_producers_are_supported(
    flag: int, compress: Callable[[bytes], bytes]
) -> None:
    for body in (b"", b"abc" * 10_000, Random(0).randbytes(1 << 20)):
        whole = compress(body)
        assert inflated(stored(whole, flag)).message.body == body
        for broken in (b"garbage", whole[:-5], whole[: len(whole) // 2], b""):
            assert inflated(stored(broken, flag)).message.body == broken


def test_an_incomplete_zlib_stream_is_left_as_it_is() -> None:
    whole = zlib.compress(b"abc" * 1000)
    for body, flag in [(b"plain", 0), (b"garbage", 0x1), (whole, 0x401), (whole[:-5], 0x1), (b"", 0x1)]:
        assert inflated(stored(body, flag)).message.body == body


@pytest.mark.parametrize(
    ("library", "flag", "compress", "extra"),
    [
        ("LZ4FrameDecompressor", 0x101, lz4.frame.compress, "mqproof[lz4]"),
        ("zstd", 0x201, zstd.compress, "mqproof[zstd]"),
    ],
)
def test_without_its_extra_a_body_stays_compressed_and_the_log_names_the_extra(
    library: str,
    flag: int,
    compress: Callable[[bytes], bytes],
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(compression, library, None)
    whole = compress(b"abc" * 1000)
    assert inflated(stored(whole, flag)).message.body == whole
    (line,) = caplog.messages
    assert f"pip install '{extra}'" in line


METHODS = pytest.mark.parametrize(
    ("flag", "compress"),
    [(0x1, zlib.compress), (0x101, lz4.frame.compress), (0x201, zstd.compress)],
)


@METHODS
def test_a_body_larger_than_the_limit_stays_compressed_and_the_log_names_its_message(
    flag: int, compress: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    most = compress(bytes(MESSAGE_BYTES_MAX))
    assert len(inflated(stored(most, flag)).message.body) == MESSAGE_BYTES_MAX
    bomb = stored(compress(bytes(MESSAGE_BYTES_MAX + 1)), flag)
    assert inflated(bomb) == bomb
    (line,) = caplog.messages
    assert f"message {bomb.message_id} of topic T has more than {MESSAGE_BYTES_MAX} bytes" in line


@METHODS
def test_a_body_is_decompressed_in_steps_up_to_the_given_limit(
    flag: int, compress: Callable[[bytes], bytes]
) -> None:
    steps = inflating(compress(bytes(5 * STEP_BYTES)), flag, 3 * STEP_BYTES)
    sizes = []
    while (size := next(steps, None)) is not None:
        sizes.append(size)
    assert max(sizes) <= STEP_BYTES
    assert sum(sizes) <= 3 * STEP_BYTES
    assert len(sizes) >= 3


@pytest.mark.parametrize("flag", [0x1, 0x101, 0x201])
def test_a_body_of_one_step_is_the_last_step_and_a_longer_one_is_not(flag: int) -> None:
    compress = {0x1: zlib.compress, 0x101: lz4.frame.compress, 0x201: zstd.compress}[flag]
    for size, steps in (
        (STEP_BYTES - 1, []),
        (STEP_BYTES + 1, [STEP_BYTES]),
        (2 * STEP_BYTES + 1, [STEP_BYTES] * 2),
    ):
        assert list(inflating(compress(bytes(size)), flag, MESSAGE_BYTES_MAX)) == steps


@pytest.mark.parametrize(("window_log", "is_read"), [(24, True), (25, True), (26, False)])
def test_a_zstd_frame_may_ask_for_a_window_as_large_as_the_largest_body(
    window_log: int, is_read: bool
) -> None:
    # A frame header without a content size, the window, and one raw last block of 3 bytes.
    frame = b"\x28\xb5\x2f\xfd" + bytes([0, (window_log - 10) << 3]) + b"\x19\0\0abc"
    body = inflated(stored(frame, 0x201)).message.body
    assert body == (b"abc" if is_read else frame)


def test_only_a_body_whose_flag_says_so_is_decompressed() -> None:
    whole = zlib.compress(b"abc")
    assert inflated_body(whole, 0x300) == whole
    assert inflated_body(whole, 0x301) == inflated_body(whole, 0x001) == b"abc"
    assert inflated_body(b"damaged", 0x301) == b"damaged"

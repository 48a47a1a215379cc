"""Compressed bodies: what is sent, and what arrives whatever was sent."""

import sys
import zlib
from collections.abc import Callable
from random import Random

import lz4.frame
import pytest

from mqproof.impl.client.messages.compression import deflated, inflated
from mqproof.impl.remoting.message import Message, StoredMessage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def stored(body: bytes, sys_flag: int) -> StoredMessage:
    return StoredMessage(Message("T", body, sys_flag=sys_flag), 0, 0, 0, 0, 0)


def test_a_deflated_body_is_a_zlib_stream_that_the_system_flag_names() -> None:
    message = deflated(Message("T", b"x" * 10_000, sys_flag=0x4))
    assert message.sys_flag == 0x305
    assert zlib.decompress(message.body) == b"x" * 10_000
    assert inflated(stored(message.body, message.sys_flag)).message.body == b"x" * 10_000


def test_older_clients_leave_the_method_open_and_mean_zlib() -> None:
    assert inflated(stored(zlib.compress(b"abc"), 0x1)).message.body == b"abc"


@pytest.mark.parametrize(
    ("flag", "compress"),
    [(0x101, lz4.frame.compress), (0x201, zstd.compress), (0x301, zlib.compress)],
)
def test_the_methods_of_java_producers_are_understood(flag: int, compress: Callable[[bytes], bytes]) -> None:
    for body in (b"", b"abc" * 10_000, Random(0).randbytes(1 << 20)):
        whole = compress(body)
        assert inflated(stored(whole, flag)).message.body == body
        for broken in (b"garbage", whole[:-5], whole[: len(whole) // 2], b""):
            assert inflated(stored(broken, flag)).message.body == broken


def test_what_is_not_a_whole_zlib_stream_stays_as_it_is() -> None:
    whole = zlib.compress(b"abc" * 1000)
    for body, flag in [(b"plain", 0), (b"garbage", 0x1), (whole, 0x401), (whole[:-5], 0x1), (b"", 0x1)]:
        assert inflated(stored(body, flag)).message.body == body


@pytest.mark.parametrize(
    ("flag", "compress"),
    [(0x1, zlib.compress), (0x101, lz4.frame.compress), (0x201, zstd.compress)],
)
def test_a_body_that_would_not_fit_into_memory_stays_compressed(
    flag: int, compress: Callable[[bytes], bytes]
) -> None:
    bomb = compress(bytes(65 << 20))
    assert inflated(stored(bomb, flag)).message.body == bomb

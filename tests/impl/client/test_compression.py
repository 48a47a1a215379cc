"""Compressed bodies: what is sent, and what arrives whatever was sent."""

import zlib

from impl.client.compression import deflated, inflated
from impl.message import Message, StoredMessage


def stored(body: bytes, sys_flag: int) -> StoredMessage:
    return StoredMessage(Message("T", body, sys_flag=sys_flag), 0, 0, 0, 0, 0)


def test_a_deflated_body_is_a_zlib_stream_that_the_system_flag_names() -> None:
    message = deflated(Message("T", b"x" * 10_000, sys_flag=0x4))
    assert message.sys_flag == 0x305
    assert zlib.decompress(message.body) == b"x" * 10_000
    assert inflated(stored(message.body, message.sys_flag)).message.body == b"x" * 10_000


def test_older_clients_leave_the_method_open_and_mean_zlib() -> None:
    assert inflated(stored(zlib.compress(b"abc"), 0x1)).message.body == b"abc"


def test_what_is_not_a_whole_zlib_stream_stays_as_it_is() -> None:
    whole = zlib.compress(b"abc" * 1000)
    for body, flag in [(b"plain", 0), (b"garbage", 0x1), (whole, 0x201), (whole[:-5], 0x1), (b"", 0x1)]:
        assert inflated(stored(body, flag)).message.body == body


def test_a_body_that_would_not_fit_into_memory_stays_compressed() -> None:
    bomb = zlib.compress(bytes(65 << 20))
    assert inflated(stored(bomb, 0x1)).message.body == bomb

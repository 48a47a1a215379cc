"""Tests the suites' own reader of records on the example of the protocol documentation."""

import pytest
from msgspec.structs import replace

from mqproof.conformance.answers.stored_record import (
    RecordError,
    java_hash,
    offset_message_id,
    read_batch,
    read_records,
)

EXAMPLE = bytes.fromhex(
    "0000006a daa320a7 3610a686 00000003 00000000 0000000000000007 0000000000000400 00000000"
    " 0000018bcfe56800 7f000001 0000c350 0000018bcfe5687b 7f000001 00002a9f 00000000 0000000000000000"
    " 00000005 68656c6c6f 01 54 0009 544147530154616741"
)
"""docs/reference/protocol/storing.md, "Commit log record"."""


def test_the_example_of_the_documentation_is_read() -> None:
    first, second = read_records(EXAMPLE * 2)
    assert replace(first, raw=b"") == replace(second, raw=b"")
    assert (first.topic, first.queue_id, first.queue_offset, first.commit_offset) == ("T", 3, 7, 1024)
    assert (first.born_host, first.store_host) == ("127.0.0.1:50000", "127.0.0.1:10911")
    assert (first.body, first.properties, first.raw) == (b"hello", {"TAGS": "TagA"}, EXAMPLE)


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [(3, 0x69, "beyond the record"), (7, 0, "magic"), (90, 0x69, "CRC"), (3, 0xFF, "are left")],
)
def test_a_changed_record_is_refused(at: int, value: int, why: str) -> None:
    changed = bytearray(EXAMPLE)
    changed[at] = value
    with pytest.raises(RecordError, match=why):
        list(read_records(bytes(changed)))


def test_the_messages_of_a_batch_are_read() -> None:
    one = bytes.fromhex("00000020 00000000 00000000 00000005 00000002 6869 0008 41410142 42424242")
    (message,) = read_batch(one)
    assert (message.flag, message.body, message.properties) == (5, b"hi", {"AA": "BBBBB"})
    with pytest.raises(RecordError):
        list(read_batch(one[:10]))


def test_codes_and_identifiers_are_those_of_the_documentation() -> None:
    assert [java_hash(tag) for tag in ("TagA", "Aa", "BB", "")] == [2598919, 2112, 2112, 0]
    assert offset_message_id("127.0.0.1:10911", 1024) == "7F00000100002A9F0000000000000400"

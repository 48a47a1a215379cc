"""Tests the commit-log record byte for byte, and refusals.

Source: docs/reference/protocol/storing.md, "Commit log record".
"""

import contextlib
import string
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from mqproof.impl.remoting.message import Message, tags_code
from mqproof.impl.store.files import record
from mqproof.impl.store.files.record import RecordError

VECTOR = bytes.fromhex(
    """
    0000006a daa320a7 3610a686 00000003 00000000 0000000000000007 0000000000000400 00000000
    0000018bcfe56800 7f000001 0000c350 0000018bcfe5687b 7f000001 00002a9f 00000000 0000000000000000
    00000005 68656c6c6f 01 54 0009 544147530154616741
    """
)
MESSAGE = Message(
    topic="T",
    body=b"hello",
    properties={"TAGS": "TagA"},
    queue_id=3,
    born_timestamp_ms=1700000000000,
    born_host=("127.0.0.1", 50000),
    store_host=("127.0.0.1", 10911),
)

topics = st.text(string.ascii_letters + string.digits + "%|_-", min_size=1, max_size=255)
texts = st.text(
    st.characters(exclude_characters="\x00\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=20
)
hosts = st.tuples(st.ip_addresses().map(str), st.integers(0, 65535))
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
places = st.integers(0, 2**63 - 1)
messages = st.builds(
    Message,
    topic=topics,
    body=st.binary(max_size=200),
    properties=st.dictionaries(texts, texts, max_size=4),
    queue_id=st.integers(0, 2**31 - 1),
    flag=int32,
    sys_flag=st.integers(0, 2**31 - 1).map(lambda flag: flag & ~0x30),
    born_timestamp_ms=int64,
    born_host=hosts,
    store_host=hosts,
    reconsume_times=int32,
    prepared_transaction_offset=int64,
)


def _placed(message: Message, queue_offset: int = 7, commit_offset: int = 1024) -> bytes:
    draft = record.encode(message)
    record.place(draft, queue_offset, commit_offset, 1700000000123)
    return bytes(draft)


def test_a_record_is_written_byte_for_byte() -> None:
    assert _placed(MESSAGE) == VECTOR


def test_a_record_is_read_field_by_field() -> None:
    stored = record.decode(VECTOR, 1024)
    assert stored.message == MESSAGE
    assert (stored.queue_offset, stored.commit_offset, stored.store_timestamp_ms) == (7, 1024, 1700000000123)
    assert (stored.size, stored.body_crc) == (106, 907060870)
    assert stored.offset_message_id == "7F00000100002A9F0000000000000400"


def test_a_record_with_a_trailing_separator_is_read() -> None:
    data = bytes.fromhex(
        """
        0000006d daa320a7 3610a686 00000001 00000000 0000000000000005 0000000000001000 00000000
        0000018bcfe56800 c0a80001 0000c350 0000018bcfe56801 c0a80001 00002a9f 00000000 0000000000000000
        00000005 68656c6c6f 02 5431 000b 554e49515f4b4559015802
        """
    )
    stored = record.decode(data, 4096)
    assert (stored.message.topic, stored.message.properties) == ("T1", {"UNIQ_KEY": "X"})


@given(messages, places, places, int64)
def test_every_message_round_trips(message: Message, queue_offset: int, position: int, time_ms: int) -> None:
    draft = record.encode(message)
    record.place(draft, queue_offset, position, time_ms)
    stored = record.decode(bytes(draft), position)
    v6 = (":" in message.born_host[0]) * 0x10 | (":" in message.store_host[0]) * 0x20
    assert stored.message.sys_flag == message.sys_flag | v6
    for field in set(Message.__struct_fields__) - {"sys_flag"}:
        assert getattr(stored.message, field) == getattr(message, field)
    assert (stored.queue_offset, stored.commit_offset, stored.store_timestamp_ms) == (
        queue_offset,
        position,
        time_ms,
    )
    assert stored.size == len(draft)


@given(messages, int64)
def test_the_store_time_is_read_without_the_rest(message: Message, time_ms: int) -> None:
    draft = record.encode(message)
    record.place(draft, 7, 1024, time_ms)
    assert record.store_time_ms(bytes(draft[: record.FRONT_BYTES])) == time_ms
    assert record.store_time_ms(bytes(draft[: record.FRONT_BYTES - 1])) is None


def test_a_long_topic_makes_a_record_of_version_2() -> None:
    assert record.peek(_placed(Message("x" * 127, b""))[:8])[1] == record.MAGIC_V1
    data = _placed(Message("x" * 128, b""))
    assert record.peek(data[:8])[1] == record.MAGIC_V2
    assert record.decode(data).message.topic == "x" * 128


@given(messages, st.data())
def test_a_record_whose_tail_was_not_written_is_refused_or_unchanged(
    message: Message, data: st.DataObject
) -> None:
    whole = _placed(message)
    kept = data.draw(st.integers(0, len(whole) - 1))
    torn = whole[:kept].ljust(len(whole), b"\0")
    if torn != whole:
        with pytest.raises(RecordError):
            record.decode(torn, 1024)


def test_every_torn_version_of_the_example_is_refused() -> None:
    for kept in range(len(VECTOR)):
        torn = VECTOR[:kept].ljust(len(VECTOR), b"\0")
        with pytest.raises(RecordError):
            record.decode(torn, 1024)


def test_a_truncated_record_is_refused() -> None:
    for kept in range(len(VECTOR)):
        with pytest.raises(RecordError):
            record.decode(VECTOR[:kept], 1024)


@given(st.binary(max_size=150))
def test_random_bytes_are_refused(noise: bytes) -> None:
    with pytest.raises(RecordError):
        record.decode(noise)


@given(st.integers(0, len(VECTOR) - 1), st.integers(1, 255), st.integers(0, 2**40))
def test_a_damaged_record_is_refused_or_decodes_without_an_unexpected_error(
    at: int, flip: int, position: int
) -> None:
    damaged = bytearray(VECTOR)
    damaged[at] ^= flip
    with contextlib.suppress(RecordError):  # anything else would be a defect
        record.decode(bytes(damaged), position)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ((0, b"\x00\x00\x00\x6b"), "record says 107 bytes, 106 expected"),
        ((4, b"\xcb\xd4\x31\x94"), "magic 0xcbd43194, 0xdaa320a7 or 0xdaa320ab expected"),
        ((8, b"\0\0\0\0"), "body has CRC 0x3610a686, the record says 0x00000000"),
        ((28, b"\0\0\0\0\0\0\x04\x01"), "record says position 1025, found at 1024"),
        ((88, b"\xc1"), "body has CRC"),
        ((84, b"\xff"), "body of -16777211 bytes at 88 does not fit a record of 106 bytes"),
        ((94, b"\xff"), "topic is not UTF-8"),
        ((94, b"\0"), "is empty or torn"),
        ((94, b"/"), "topic '/' cannot be the name of its queues' directory"),
        ((94, b"."), "topic '.' cannot be"),
        ((12, b"\xff\xff\xff\xff"), "queue id -1, queue offset 7, commit offset 1024: 0 or more expected"),
        ((20, b"\x80"), "queue offset -9223372036854775801, commit offset 1024: 0 or more"),
        ((105, b"\0"), "properties end in a zero byte, as after a torn write"),
        ((96, b"\x08"), "record says 106 bytes, its parts have 105"),
    ],
)
def test_the_error_names_the_invalid_field(change: tuple[int, bytes], complaint: str) -> None:
    at, data = change
    damaged = VECTOR[:at] + data + VECTOR[at + len(data) :]
    with pytest.raises(RecordError, match=complaint):
        record.decode(damaged, 1024)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (Message("", b""), "topic '': 1 to 255 letters"),
        (Message("../etc", b""), "topic '../etc'"),
        (Message("a/b", b""), "topic 'a/b'"),
        (Message("x" * 256, b""), "1 to 255 letters"),
        (Message("T", b"", {"k": "v" * 32767}), "properties have 32769 bytes, at most 32767 expected"),
        (Message("T", b"", {"k": "v\0"}), "end in a zero byte"),
        (Message("T", b"", {"k": "\x01"}), "0x01 or 0x02"),
        (Message("T", b"", queue_id=2**31), "out of range"),
        (Message("T", b"", born_timestamp_ms=2**63), "out of range"),
        (Message("T", b"", born_host=("example", 1)), "does not appear to be an IPv4 or IPv6 address"),
    ],
)
def test_a_message_that_cannot_be_stored_is_refused(message: Message, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        record.encode(message)


def test_a_filler_has_the_size_of_the_remaining_space() -> None:
    assert record.filler(300) == bytes.fromhex("0000012c cbd43194")
    assert record.peek(record.filler(300)) == (300, record.MAGIC_FILLER)
    assert record.peek(b"\0" * 7) == (0, 0)


def test_a_received_record_with_a_negative_position_is_refused() -> None:
    """A received record has no known position, and its identifier contains the position."""
    negative = VECTOR[:28] + b"\xff" * 8 + VECTOR[36:]
    with pytest.raises(RecordError, match="commit offset -1: 0 or more expected"):
        record.decode(negative)


NAMES: Final = ("a", "b", "aa", "\u00e4")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("topic", ["T", "t" * 200])
def test_the_values_of_properties_are_read_without_the_others(topic: str, host: str) -> None:
    message = Message(
        topic, b"\x02a\x01body\x02b\x01", {"a": "1", "c": "xb", "b": "zwei \u00e4"}, born_host=(host, 1)
    )
    data = bytes(record.encode(message))
    markers = [record.property_marker(name) for name in ("b", "a", "none")]
    assert record.property_values(data, markers) == ("zwei \u00e4".encode(), b"1", None)
    assert record.property_values(data, []) == ()
    bare = bytes(record.encode(structs.replace(message, properties={})))
    assert record.property_values(bare, markers) == (None, None, None)


@given(st.lists(st.sampled_from(["a", "b", "\u00e4", "\x01", "\x02"])).map("".join))
@example("a\x01")  # its length has the byte that ends a value
@example("a\x01b\x02a\x01\x02a")
def test_the_values_are_those_of_the_decoded_properties(text: str) -> None:
    message = Message("T", b"")
    frame = record._frame_of("T", message.born_host, message.store_host)
    data = bytes(record._framed(message, frame, text))
    properties = record.decode(data).message.properties
    values = record.property_values(data, [record.property_marker(name) for name in NAMES])
    assert [value and value.decode() for value in values] == [properties.get(name) for name in NAMES]


_WHOLE = [
    Message("T", b""),
    Message("T", b"body"),
    Message("x" * 127, b"body", {"TAGS": "A"}),
    Message("x" * 128, b"body", {"TAGS": "A", "KEYS": "k"}),
    Message("x" * 255, b"body", {"KEYS": "k" * 300, "TAGS": "A"}, 3),
    Message("T", b"b" * 70_000, {"XTAGS": "B", "TAGS": "ä"}, born_host=("::1", 1)),
    Message("T", b"body", {"KEYS": "TAGS", "XTAGS": "B"}, store_host=("::1", 1)),
    Message("T", b"body", {"A": "TAGS", "TAGS": ""}, born_host=("::1", 1), store_host=("::1", 1)),
]


@pytest.mark.parametrize("message", _WHOLE)
def test_a_whole_record_is_that_of_its_entry(message: Message) -> None:
    """Otherwise each read would search the log for it, and then find it."""
    data = _placed(message)
    code = tags_code(message.properties.get("TAGS"))
    fields = record.topic_fields(message.topic)
    for each in (code, None):
        assert record.entry_problem(data, 1024, message.queue_id, 7, fields, each) == ""
    assert record.entry_problem(data, 1024, message.queue_id, 7, fields, code + 1) == record.OTHER_TAGS
    assert record.entry_problem(data, 1025, message.queue_id, 7, fields, code) == record.NO_RECORD
    assert record.entry_problem(data, 1024, message.queue_id, 8, fields, code) == record.OTHER_RECORD
    assert record.entry_problem(data, 1024, message.queue_id + 1, 7, fields, code) == record.OTHER_RECORD
    assert record.entry_problem(data[:-1], 1024, message.queue_id, 7, fields, code) == record.NO_RECORD
    other = record.topic_fields("y" + message.topic[1:])
    assert record.entry_problem(data, 1024, message.queue_id, 7, other, code) == record.OTHER_SHAPE


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_76_bytes_of_a_record_have_its_store_time(host: str) -> None:
    data = _placed(Message("T", b"body", born_host=(host, 1)))
    assert record.store_time_ms(data[:76]) == 1700000000123
    assert record.store_time_ms(data[:75]) is None


def test_properties_have_at_most_32767_bytes() -> None:
    most = Message("T", b"", {"K": "v" * (32767 - 2)})
    stored = record.decode(_placed(most))
    assert stored.message == most
    with pytest.raises(ValueError, match="properties have 32768 bytes, at most 32767 expected"):
        record.encode(Message("T", b"", {"K": "v" * (32768 - 2)}))


@pytest.mark.parametrize("size", [93, 95, 96])
def test_a_record_that_ends_before_or_inside_a_length_is_refused_by_name(size: int) -> None:
    """The body ends at 93, the topic at 95, and the length of the properties at 97."""
    data = size.to_bytes(4, "big") + VECTOR[4:size]
    at = 93 if size == 93 else 95
    with pytest.raises(RecordError, match=f"record of {size} bytes ends inside a length at {at}"):
        record.decode(data)


def test_the_values_are_read_behind_a_topic_of_any_length() -> None:
    """Other brokers may store topics that this one refuses."""
    data = _placed(Message("x" * 255, b"body", {"TAGS": "A"}))
    at = data.index(b"\0\xff" + b"x" * 255)
    longer = data[:at] + (513).to_bytes(2, "big") + b"x" * 513 + data[at + 257 :]
    assert record.property_values(longer, [record.property_marker("TAGS")]) == (b"A",)


@pytest.mark.parametrize(
    ("at", "change", "problem"),
    [
        (0, b"\x01", record.NO_RECORD),  # the size
        (7, b"\0", record.NO_RECORD),  # the magic
        (11, b"\0", record.OTHER_BODY),  # the CRC
        (84, b"\xff", record.OTHER_SHAPE),  # the length of the body, now negative
        (84, b"\x7f", record.OTHER_SHAPE),  # and beyond the end
        (87, b"\x04", record.OTHER_SHAPE),
        (88, b"?", record.OTHER_BODY),
        (93, b"\x02", record.OTHER_SHAPE),  # the length of the topic
        (94, b"U", record.OTHER_SHAPE),
        (95, b"\x01", record.OTHER_SHAPE),  # the length of the properties
        (96, b"\x08", record.OTHER_SHAPE),
        (97, b"\xff", record.OTHER_SHAPE),  # no UTF-8
        (105, b"\0", record.OTHER_SHAPE),  # a torn write
        (105, b"B", record.OTHER_TAGS),
    ],
)
def test_an_altered_record_is_not_that_of_its_entry(at: int, change: bytes, problem: str) -> None:
    data = VECTOR[:at] + change + VECTOR[at + 1 :]
    assert len(data) == 106
    fields = record.topic_fields("T")
    assert record.entry_problem(data, 1024, 3, 7, fields, tags_code("TagA")) == problem
    assert record.entry_problem(data[:88], 1024, 3, 7, fields, None) == record.NO_RECORD

"""Tests properties, hashes and identifiers.

Source: docs/reference/protocol/messages.md, "Properties", "Tag codes" and "Message identifiers".
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.impl.remoting.message import (
    SYS_BORN_HOST_V6,
    SYS_COMPRESSED,
    SYS_MULTI_TAGS,
    SYS_STORE_HOST_V6,
    SYS_TRANSACTION_COMMIT,
    SYS_TRANSACTION_PREPARED,
    Message,
    StoredMessage,
    UniqueKeys,
    decode_address,
    decode_properties,
    encode_address,
    encode_properties,
    java_hash,
    offset_message_id,
    parse_offset_message_id,
    tags_code,
)
from mqproof.impl.runtime.simulated_loop import ManualClock

NOV_1_US = 1_698_796_800_000_000

texts = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(texts, texts))
def test_properties_round_trip_with_and_without_the_last_separator(properties: dict[str, str]) -> None:
    text = encode_properties(properties)
    assert decode_properties(text) == properties
    assert decode_properties(text + "\x02") == properties


def test_incomplete_pairs_are_dropped_and_the_last_of_a_name_counts() -> None:
    assert decode_properties("a\x011\x02\x02b\x02\x01c\x02d\x01\x02a\x012\x02") == {"a": "2"}


@pytest.mark.parametrize("bad", [{"a\x01": "b"}, {"a": "b\x02"}, {"a": "\x01"}, {"\x02": "b"}])
def test_a_property_that_holds_a_separator_is_refused(bad: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="0x01 or 0x02"):
        encode_properties(bad)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("TopicTest#key1", -1655984460),
        ("polygenelubricants", -2147483648),
        ("\U0001f600", 1772899),
    ],
)
def test_java_hash_codes(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_no_tags_have_code_zero() -> None:
    assert tags_code(None) == tags_code("") == 0
    assert tags_code("TagA") == 2598919


@pytest.mark.parametrize(
    ("host", "offset", "text"),
    [
        (("127.0.0.1", 10911), 1024, "7F00000100002A9F0000000000000400"),
        (("192.168.0.1", 10911), 4660, "C0A8000100002A9F0000000000001234"),
        (("::1", 10911), 1, "0000000000000000000000000000000100002A9F0000000000000001"),
    ],
)
def test_offset_message_ids(host: tuple[str, int], offset: int, text: str) -> None:
    assert offset_message_id(host, offset) == text
    assert parse_offset_message_id(text) == (host, offset)


@pytest.mark.parametrize("bad", ["", "7F", "zz" * 16, "00" * 20])
def test_a_text_that_is_not_a_message_id_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"message id|non-hexadecimal"):
        parse_offset_message_id(bad)


@given(st.ip_addresses().map(str), st.integers(0, 65535))
def test_addresses_round_trip(host: str, port: int) -> None:
    assert decode_address(encode_address((host, port))) == (host, port)


def test_the_producers_unique_key_is_the_message_id_if_there_is_one() -> None:
    def stored(properties: dict[str, str]) -> StoredMessage:
        message = Message("T", b"", properties, store_host=("127.0.0.1", 10911))
        return StoredMessage(message, 0, 1024, 0, 100, 0)

    assert stored({"UNIQ_KEY": "K"}).message_id == "K"
    assert stored({}).message_id == "7F00000100002A9F0000000000000400"


def test_unique_keys_are_unique_and_determined_by_the_seed() -> None:
    one, same, other = (UniqueKeys(random.Random(seed), ManualClock()) for seed in (1, 1, 2))
    keys = [one.take() for _ in range(100)]
    assert keys == [same.take() for _ in range(100)]
    assert len({*keys, *(other.take() for _ in range(100))}) == 200
    assert all(len(key) == 32 and key == key.upper() and int(key, 16) >= 0 for key in keys)


def test_a_unique_key_contains_host_time_of_the_month_and_counter() -> None:
    keys = UniqueKeys(random.Random(1), ManualClock(NOV_1_US + 0x12345678 * 1000), "10.0.0.9")
    keys.take()
    second = keys.take()
    assert (second[:8], second[20:28], second[28:]) == ("0A000009", "12345678", "0001")


def test_unique_keys_stay_unique_when_the_clock_stops_steps_back_or_enters_a_new_month() -> None:
    clock = ManualClock(NOV_1_US + 10_000_000)
    keys = UniqueKeys(random.Random(1), clock)
    taken = [keys.take() for _ in range(8)]
    clock.advance_ms(1)
    taken += [keys.take() for _ in range(70_000)]
    clock.advance_ms(-5_000)
    taken += [keys.take() for _ in range(70_000)]
    clock.advance_ms(30 * 24 * 3_600_000 + 5_000)
    taken += [keys.take() for _ in range(10)]
    assert len(set(taken)) == len(taken)
    assert taken[-1][:12] == taken[0][:12]
    assert taken[-1][12:20] != taken[0][12:20]


@pytest.mark.parametrize(
    ("born_ms", "born_us"),
    [(0, 0), (1_700_000_000_000, 1_700_000_000_000_000), (2**63 - 1, None), (-(2**63), None)],
)
def test_a_born_time_that_an_event_log_cannot_hold_is_not_recorded(born_ms: int, born_us: int | None) -> None:
    assert Message("T", b"", born_timestamp_ms=born_ms).born_timestamp_us == born_us


def test_the_flags_of_a_message_are_different_bits() -> None:
    single = [SYS_COMPRESSED, SYS_MULTI_TAGS, SYS_TRANSACTION_PREPARED, SYS_TRANSACTION_COMMIT,
              SYS_BORN_HOST_V6, SYS_STORE_HOST_V6]  # fmt: skip
    assert all(flag.bit_count() == 1 for flag in single)
    assert sum(single) == 0b11_1111


@pytest.mark.parametrize(
    ("born_ms", "born_us"),
    [
        (0, 0),
        (-7, -7000),
        ((1 << 63) // 1000, (1 << 63) // 1000 * 1000),
        ((1 << 63) // 1000 + 1, None),
        (-((1 << 63) // 1000), -((1 << 63) // 1000) * 1000),
        (-((1 << 63) // 1000) - 1, None),
    ],
)
def test_the_time_of_birth_is_given_in_microseconds_if_they_fit_64_bits(
    born_ms: int, born_us: int | None
) -> None:
    assert Message("T", b"", born_timestamp_ms=born_ms).born_timestamp_us == born_us

"""Tests what applications send: properties by name, and batches byte by byte."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mqproof.impl.client.messages.compose import check_batch, encode_batch, is_delayed, new_message
from mqproof.impl.client.model import MessageError
from mqproof.impl.remoting.message import Message, decode_properties


def test_the_parts_of_a_message_become_properties() -> None:
    message = new_message(
        "T", b"x", tag="A", keys=["k1", "k2"], delay_level=3, wait_for_flush=False, properties={"mine": "1"}
    )
    assert message.properties == {"mine": "1", "TAGS": "A", "KEYS": "k1 k2", "DELAY": "3", "WAIT": "false"}
    assert new_message("T", b"x").properties == {}
    assert new_message("T", b"x", delay_level=1).properties == {"DELAY": "1"}


@pytest.mark.parametrize(
    ("properties", "keys", "reason"),
    [
        ({"DELAY": "3"}, (), "'DELAY' is reserved by RocketMQ"),
        ({" ": "x"}, (), "name and value must not be blank"),
        ({"a": " "}, (), "name and value must not be blank"),
        ({}, ("two words",), "without spaces expected"),
        ({}, ("",), "without spaces expected"),
    ],
)
def test_reserved_and_invalid_properties_are_refused(
    properties: dict[str, str], keys: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(MessageError, match=reason):
        new_message("T", b"x", keys=keys, properties=properties)


def test_one_key_may_be_given_as_a_text() -> None:
    assert new_message("T", b"x", keys="order-7").properties == {"KEYS": "order-7"}


def test_the_body_may_be_any_kind_of_bytes() -> None:
    assert new_message("T", bytearray(b"x")).body == b"x"
    assert new_message("T", memoryview(b"x")).body == b"x"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"body": "text"}, "the body is of type str, bytes expected; encode a text"),
        ({"body": None}, "the body is of type NoneType"),
        ({"topic": "two words"}, "'two words' has a character other"),
        ({"topic": ""}, "the topic is empty"),
        ({"topic": "x" * 128}, "at most 127"),
        ({"topic": None}, "the topic is None, a text expected"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "no client may send to it"),
        ({"properties": {"a": 10}}, "property 'a' is 10: name and value must be texts, such as '10'"),
        ({"properties": {7: "a"}}, "property 7 is 'a'"),
        ({"keys": [7]}, "key 7: some text"),
        ({"keys": "two words"}, "without spaces expected"),
        ({"tag": 7}, "tag 7: one text"),
        ({"tag": "a || b"}, "without ||"),
        ({"tag": " a"}, "without spaces at its ends"),
        ({"tag": "a "}, "without spaces at its ends"),
        ({"tag": " "}, "without spaces at its ends"),
        ({"tag": "*"}, "tag '*': one text"),
        ({"delay_level": True}, "delay_level is True, 0 (no delay) or a level from 1 expected"),
        ({"properties": {"a": None}}, "property 'a' is None: name and value must be texts"),
        ({"delay": 10**12}, "delay is 1000000000000, seconds from 0"),
        ({"delay_level": 1, "deliver_at": 1}, "at most one expected"),
        ({"delay_level": 1, "delay": 1, "deliver_at": 1}, "at most one expected"),
        ({"delay_level": "3"}, "delay_level is '3'"),
        ({"delay_level": -1}, "delay_level is -1"),
        ({"delay": -0.5}, "delay is -0.5, seconds from 0 or a timedelta expected"),
        ({"deliver_at": "tomorrow"}, "deliver_at is 'tomorrow', seconds from 0 or a datetime expected"),
        ({"delay": float("nan")}, "delay is nan"),
        ({"delay": "3"}, "delay is '3'"),
        ({"delay": True}, "delay is True"),
        ({"deliver_at": datetime(2026, 11, 26)}, "a datetime with a time zone expected"),
        ({"deliver_at": 1e13}, "deliver_at is"),
        ({"delay": 1, "delay_level": 3}, "at most one expected"),
        ({"delay": 1, "deliver_at": 1}, "at most one expected"),
        ({"properties": {"TIMER_DELAY_MS": "5"}}, "is reserved"),
    ],
)
def test_values_of_a_wrong_type_or_form_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(MessageError, match=re.escape(reason)):
        new_message(**{"topic": "T", "body": b"x", **arguments})


@pytest.mark.parametrize(
    ("arguments", "properties"),
    [
        ({"delay": 2}, {"TIMER_DELAY_MS": "2000"}),
        ({"delay": 0}, {"TIMER_DELAY_MS": "0"}),
        ({"delay": 10**12 - 1}, {"TIMER_DELAY_MS": "999999999999000"}),
        ({"delay": 0.0000004}, {"TIMER_DELAY_MS": "0"}),
        ({"delay": 0.0000006}, {"TIMER_DELAY_MS": "1"}),
        ({"tag": ""}, {}),
        ({"keys": ()}, {}),
        ({"delay": 0.0011}, {"TIMER_DELAY_MS": "2"}),
        ({"delay": 1.001}, {"TIMER_DELAY_MS": "1001"}),
        ({"delay": timedelta(days=1)}, {"TIMER_DELAY_MS": "86400000"}),
        ({"deliver_at": 1_700_000_000.5}, {"TIMER_DELIVER_MS": "1700000000500"}),
        ({"deliver_at": datetime.fromtimestamp(1_700_000_000, UTC)}, {"TIMER_DELIVER_MS": "1700000000000"}),
    ],
)
def test_a_time_is_given_in_milliseconds_and_never_rounded_down(
    arguments: dict[str, Any], properties: dict[str, str]
) -> None:
    assert new_message("T", b"x", **arguments).properties == properties


def test_a_batch_is_the_concatenation_of_its_messages() -> None:
    first = Message("T", b"ab", {"UNIQ_KEY": "K", "WAIT": "true"}, flag=7)
    second = Message("T", b"c", {})
    assert encode_batch([first, second]) == b"".join(
        (
            *(b"\0\0\0\x22", b"\0\0\0\0", b"\0\0\0\0", b"\0\0\0\x07"),
            *(b"\0\0\0\x02", b"ab", b"\0\x0a", b"UNIQ_KEY\x01K"),
            *(b"\0\0\0\x17", b"\0\0\0\0", b"\0\0\0\0", b"\0\0\0\0"),
            *(b"\0\0\0\x01", b"c", b"\0\0"),
        )
    )
    assert decode_properties("UNIQ_KEY\x01K") == {"UNIQ_KEY": "K"}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "without messages"),
        ([Message("T", b"x"), Message("U", b"x")], "topics T and U"),
        ([Message("T", b"x"), Message("T", b"x", {"WAIT": "false"})], "wait for the flush"),
        ([Message("T", b"x", {"WAIT": "false"}), Message("T", b"x", {"WAIT": "true"})], "wait for the flush"),
        ([Message("T", b"x", {"DELAY": "1"})], "delayed message"),
        ([Message("T", b"x"), Message("T", b"x", {"TIMER_DELAY_MS": "0"})], "delayed message"),
        ([Message("%RETRY%G", b"x")], "retry topic"),
    ],
)
def test_messages_that_cannot_be_in_one_batch_are_refused(messages: list[Message], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        check_batch(messages)


def test_messages_without_a_delay_that_wait_alike_can_be_in_one_batch() -> None:
    check_batch(
        [Message("T", b"x", {"DELAY": "0"}), Message("T", b"y", {"WAIT": "true"}), Message("T", b"z")]
    )
    check_batch([Message("T", b"x", {"WAIT": "false"}), Message("T", b"y", {"WAIT": "false"})])


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, False),
        ({"DELAY": "0"}, False),
        ({"DELAY": "1"}, True),
        ({"TIMER_DELIVER_MS": "0"}, True),
        ({"TIMER_DELAY_SEC": "1"}, True),
    ],
)
def test_a_message_is_delayed_by_a_level_or_a_time(properties: dict[str, str], expected: bool) -> None:
    assert is_delayed(Message("T", b"x", properties)) is expected

"""Tests the records of half messages: their properties, copies and operations, at their limits.

Source: docs/reference/protocol/transactions.md, "Half messages", "Operations" and "Checks".
"""

import pytest

from mqproof.impl.broker import half_messages
from mqproof.impl.broker.half_messages import DISCARD_TOPIC, HALF_TOPIC, OPERATION_TOPIC
from mqproof.impl.remoting.message import Message, StoredMessage

HOST = ("10.0.0.1", 10911)


def stored(properties: dict[str, str], topic: str = HALF_TOPIC, sys_flag: int = 0) -> StoredMessage:
    return StoredMessage(Message(topic, b"a", properties, sys_flag=sys_flag), 7, 700, 0, 0, 0)


@pytest.mark.parametrize(
    ("mark", "expected"), [("true", True), ("TRUE", True), ("false", False), (None, False)]
)
def test_a_producer_marks_a_half_message(mark: str | None, expected: bool) -> None:
    assert half_messages.is_half({} if mark is None else {"TRAN_MSG": mark}) is expected


def test_a_half_message_notes_its_real_queue_and_cannot_look_like_a_copy() -> None:
    forged = {"TRANSACTION_CHECK_TIMES": "3", "TRAN_PREPARED_QUEUE_OFFSET": "1", "DELAY": "2", "P": "x"}
    message = half_messages.half(Message("T", b"a", forged, queue_id=4, sys_flag=0b1101))
    assert (message.topic, message.queue_id, message.sys_flag) == (HALF_TOPIC, 0, 1)
    assert message.properties == {"P": "x", "REAL_TOPIC": "T", "REAL_QID": "4"}


def test_the_properties_have_room_for_those_of_a_copy() -> None:
    """32,767 bytes are the most; a copy adds two properties with numbers of 10 and 19 digits."""
    names = len("TRANSACTION_CHECK_TIMES") + 10 + len("TRAN_PREPARED_QUEUE_OFFSET") + 19 + 4
    for more, has_room in ((0, True), (1, False)):
        value = "x" * (32_767 - names - len("P") - 2 + more)
        assert half_messages.has_room_for_copies(Message(HALF_TOPIC, b"", {"P": value})) is has_room


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12", 12), ("1" * 18, int("1" * 18)), ("1" * 19, None), ("-1", None), ("", None)],
)
def test_a_property_with_an_invalid_number_counts_as_missing(text: str, number: int | None) -> None:
    names = ("TRAN_PREPARED_QUEUE_OFFSET", "TRANSACTION_CHECK_TIMES", "CHECK_IMMUNITY_TIME_IN_SECONDS")
    half = stored({**dict.fromkeys(names, text), "SCAN_FROM": text})
    assert half_messages.original_of(half) == (7 if number is None else number)
    assert half_messages.check_times(half.message) == (0 if number is None else number)
    assert half_messages.immunity_ms(half.message) == (None if number is None else number * 1000)
    assert half_messages.scan_from(half.message) == number


@pytest.mark.parametrize("queue_id", [0, 1, 2_147_483_647])
def test_a_half_message_names_its_real_queue(queue_id: int) -> None:
    message = Message(HALF_TOPIC, b"", {"REAL_TOPIC": "T", "REAL_QID": str(queue_id)})
    assert half_messages.real_queue(message) == ("T", queue_id)
    shown = half_messages.for_producer(message)
    assert (shown.topic, shown.queue_id) == ("T", queue_id)


@pytest.mark.parametrize(
    ("topic", "queue_id", "shown"),
    [
        *(("T", text, text) for text in ("2147483648", "-1", "", "1.0", "9" * 19)),
        ("", "0", "0"),
        ("T", "x" * 41, "x" * 40),
    ],
)
def test_a_real_queue_that_cannot_exist_is_refused(topic: str, queue_id: str, shown: str) -> None:
    message = Message(HALF_TOPIC, b"", {"REAL_TOPIC": topic, "REAL_QID": queue_id})
    with pytest.raises(ValueError, match=f"REAL_TOPIC is '{topic}', REAL_QID '{shown}'"):
        half_messages.real_queue(message)


def test_a_final_message_is_in_its_real_queue_and_names_its_half_message() -> None:
    names = {"REAL_TOPIC": "T", "REAL_QID": "4", "TRAN_MSG": "true", "UNIQ_KEY": "K", "PGROUP": "PG"}
    copy = {"TRANSACTION_CHECK_TIMES": "3", "TRAN_PREPARED_QUEUE_OFFSET": "1"}
    half = stored(names | copy, sys_flag=0b0101)
    final = half_messages.final(half, HOST)
    assert (final.topic, final.queue_id, final.sys_flag, final.store_host) == ("T", 4, 0b1001, HOST)
    assert (final.prepared_transaction_offset, final.properties) == (700, {"UNIQ_KEY": "K", "PGROUP": "PG"})
    assert half_messages.is_final_of(final, half.message)
    for other in ({"REAL_TOPIC": "U"}, {"REAL_QID": "5"}, {"UNIQ_KEY": "L"}):
        assert not half_messages.is_final_of(final, stored(names | other).message)


def test_each_copy_names_its_original_and_counts_the_checks() -> None:
    first = half_messages.checked_copy(stored({"P": "x"}), HOST)
    assert first.properties == {"P": "x", "TRANSACTION_CHECK_TIMES": "1", "TRAN_PREPARED_QUEUE_OFFSET": "7"}
    second = half_messages.checked_copy(StoredMessage(first, 9, 900, 0, 0, 0), HOST)
    assert second.properties == {**first.properties, "TRANSACTION_CHECK_TIMES": "2"}
    assert second.store_host == HOST


def test_a_discarded_message_can_be_resumed_without_checks() -> None:
    checked = {"P": "x", "TRANSACTION_CHECK_TIMES": "15"}
    discarded = half_messages.discarded(stored(checked), HOST)
    assert (discarded.topic, discarded.queue_id, discarded.store_host) == (DISCARD_TOPIC, 0, HOST)
    assert discarded.properties == {**checked, "TRAN_PREPARED_QUEUE_OFFSET": "7"}
    resumed = half_messages.resumed(discarded, ("10.0.0.2", 1))
    assert (resumed.topic, resumed.queue_id, resumed.store_host) == (HALF_TOPIC, 0, ("10.0.0.2", 1))
    assert resumed.properties == {"P": "x"}


def test_an_operation_is_read_as_it_was_written_and_invalid_places_are_left_out() -> None:
    written = half_messages.operation([3, 12], 400, 99, HOST)
    assert (written.topic, written.body, written.born_timestamp_ms) == (OPERATION_TOPIC, b"3,12", 99)
    assert (written.born_host, written.store_host) == (HOST, HOST)
    assert (half_messages.done_by(written), half_messages.scan_from(written)) == ([3, 12], 400)
    other = Message(OPERATION_TOPIC, b"3,x,,-1,\xff,12", {"TAGS": "d"})
    assert half_messages.done_by(other) == [3, 12]
    assert half_messages.done_by(Message(OPERATION_TOPIC, b"3", {"TAGS": "e"})) == []

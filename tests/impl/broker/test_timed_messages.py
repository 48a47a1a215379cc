"""Tests the records of waiting messages: times, queues, copies and points, at their limits.

Source: docs/reference/protocol/timers.md, "Waiting messages", "Points" and "Copies".
"""

import pytest

from mqproof.impl.broker import timed_messages
from mqproof.impl.broker.timed_messages import TIMER_TOPIC, Point
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.recall_handle import RecallHandle, parse_handle

HOST = ("10.0.0.1", 10911)


def stored(properties: dict[str, str], queue_offset: int = 7) -> StoredMessage:
    return StoredMessage(Message(TIMER_TOPIC, b"a", properties), queue_offset, 700, 0, 0, 0)


@pytest.mark.parametrize("queue_id", [0, 1, 2_147_483_646, 2_147_483_647])
def test_a_waiting_message_names_its_real_queue(queue_id: int) -> None:
    message = Message(TIMER_TOPIC, b"", {"REAL_TOPIC": "T", "REAL_QID": str(queue_id)})
    assert timed_messages.real_queue(message) == ("T", queue_id)


@pytest.mark.parametrize(
    ("topic", "queue_id"),
    [("T", "2147483648"), ("T", "-1"), ("T", ""), ("T", "1.0"), ("T", "9" * 19), ("", "0")],
)
def test_a_real_queue_that_cannot_exist_is_refused(topic: str, queue_id: str) -> None:
    message = Message(TIMER_TOPIC, b"", {"REAL_TOPIC": topic, "REAL_QID": queue_id})
    with pytest.raises(ValueError, match=f"REAL_TOPIC is '{topic}', REAL_QID '{queue_id}'"):
        timed_messages.real_queue(message)


def test_each_copy_names_its_original_and_counts_the_copies() -> None:
    first = timed_messages.rolled(stored({"P": "x", "TIMER_ROLL_TIMES": "none"}), HOST)
    assert first.properties == {"P": "x", "TIMER_ORIGINAL": "7", "TIMER_ROLL_TIMES": "1"}
    second = timed_messages.rolled(stored(dict(first.properties), 9), HOST)
    assert second.properties == {"P": "x", "TIMER_ORIGINAL": "7", "TIMER_ROLL_TIMES": "2"}
    assert second.store_host == HOST


@pytest.mark.parametrize(
    ("properties", "due_ms"),
    [
        ({"TIMER_DUE_MS": "12345", "TIMER_OUT_MS": "12000"}, 12_345),
        ({"TIMER_DUE_MS": "1" * 18, "TIMER_OUT_MS": "12000"}, int("1" * 18)),
        ({"TIMER_DUE_MS": "1" * 19, "TIMER_OUT_MS": "12000"}, 13_000),
        ({"TIMER_OUT_MS": "12000"}, 13_000),
        ({"TIMER_OUT_MS": "-1"}, None),
        ({}, None),
    ],
)
def test_a_waiting_message_of_a_released_broker_is_due_at_the_end_of_its_second(
    properties: dict[str, str], due_ms: int | None
) -> None:
    assert timed_messages.due_ms_of(Message(TIMER_TOPIC, b"", properties)) == due_ms


@pytest.mark.parametrize(("due_ms", "out"), [(1000, "0"), (1001, "1000"), (2000, "1000"), (2001, "2000")])
def test_the_last_full_second_before_the_time_is_noted(due_ms: int, out: str) -> None:
    forged = {"TIMER_ORIGINAL": "3", "TIMER_ROLL_TIMES": "3", "TIMER_POINT": "1 1 1 1", "P": "x"}
    message = timed_messages.waiting(Message("T", b"a", forged, queue_id=4), due_ms)
    assert (message.topic, message.queue_id) == (TIMER_TOPIC, 0)
    assert message.properties == {
        "P": "x",
        "TIMER_OUT_MS": out,
        "TIMER_DUE_MS": str(due_ms),
        "REAL_TOPIC": "T",
        "REAL_QID": "4",
    }


def test_the_properties_have_room_for_those_of_a_copy() -> None:
    """32,767 bytes are the most; a copy adds two properties with at most 63 bytes."""
    names = len("TIMER_ORIGINAL") + 19 + len("TIMER_ROLL_TIMES") + 10 + 4
    for more, has_room in ((0, True), (1, False)):
        value = "x" * (32_767 - names - len("P") - 2 + more)
        assert timed_messages.has_room_for_copies(Message(TIMER_TOPIC, b"", {"P": value})) is has_room


@pytest.mark.parametrize("text", ["1 2 3", "1 2 3 4 5", "1 2 3 x", "", "1  2 3 4"])
def test_an_invalid_point_is_none(text: str) -> None:
    assert timed_messages.point_of(Message(TIMER_TOPIC, b"", {"TIMER_POINT": text})) is None


def test_a_point_is_read_as_it_was_written() -> None:
    written = timed_messages.point(Point(1, 2, 3, 4), 99, HOST)
    assert (written.topic, written.queue_id, written.born_timestamp_ms) == (TIMER_TOPIC, 1, 99)
    assert timed_messages.point_of(written) == Point(first=1, read_end=2, due_ms=3, scan_from=4)


def test_only_a_waiting_message_with_a_key_has_a_handle() -> None:
    waits = {"REAL_TOPIC": "T", "UNIQ_KEY": "K", "TIMER_DUE_MS": "5"}
    handle = timed_messages.handle_of(Message(TIMER_TOPIC, b"", waits), "b")
    assert handle is not None
    assert parse_handle(handle) == ("T", "b", 5, "K")
    assert timed_messages.handle_of(Message("T", b"", waits), "b") is None
    for missing in ("UNIQ_KEY", "TIMER_DUE_MS"):
        others = {name: value for name, value in waits.items() if name != missing}
        assert timed_messages.handle_of(Message(TIMER_TOPIC, b"", others), "b") is None


@pytest.mark.parametrize(
    ("name", "text", "due_ms"),
    [
        ("TIMER_DELIVER_MS", "123", 123),
        ("TIMER_DELAY_MS", "7", 5007),
        ("TIMER_DELAY_MS", "-7", 4993),
        ("TIMER_DELAY_SEC", "+7", 12_000),
        ("TIMER_DELAY_MS", "9" * 40, 5000 + int("9" * 40)),
    ],
)
def test_a_message_asks_for_a_time_or_a_delay(name: str, text: str, due_ms: int) -> None:
    properties = {"P": "x", name: text}
    assert timed_messages.asked(properties) == name
    assert timed_messages.asked_due_ms(properties, name, 5000) == due_ms


def test_a_message_without_such_a_property_asks_for_no_time() -> None:
    assert timed_messages.asked({"P": "x"}) is None


@pytest.mark.parametrize(("text", "shown"), [("x", "x"), ("1.5", "1.5"), ("", ""), ("9" * 41, "9" * 40)])
def test_a_time_that_is_not_a_number_is_refused(text: str, shown: str) -> None:
    with pytest.raises(ValueError, match=f"^TIMER_DELAY_MS is '{shown}', a number expected$"):
        timed_messages.asked_due_ms({"TIMER_DELAY_MS": text}, "TIMER_DELAY_MS", 0)


def test_without_a_point_nothing_is_done() -> None:
    assert Point() == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("topic", "properties", "offset"),
    [("T", {"TIMER_OUT_MS": "0"}, 700), (TIMER_TOPIC, {"TIMER_OUT_MS": "0"}, None), ("T", {}, None)],
)
def test_a_final_names_the_place_of_its_waiting_message(
    topic: str, properties: dict[str, str], offset: int | None
) -> None:
    message = Message(topic, b"", properties, prepared_transaction_offset=701)
    assert timed_messages.waiting_offset(message) == offset


def test_a_final_has_the_queue_and_the_key_of_its_waiting_message_and_asks_for_no_time() -> None:
    waits = {"REAL_TOPIC": "T", "REAL_QID": "4", "UNIQ_KEY": "K", "TIMER_DUE_MS": "5", "TIMER_OUT_MS": "0"}
    asked = {"TIMER_DELAY_MS": "1", "TIMER_ORIGINAL": "3", "TIMER_ROLL_TIMES": "2"}
    final = timed_messages.final(stored(waits | asked), HOST)
    assert (final.topic, final.queue_id, final.store_host) == ("T", 4, HOST)
    assert (timed_messages.waiting_offset(final), final.prepared_transaction_offset) == (700, 701)
    assert final.properties == {"UNIQ_KEY": "K", "TIMER_DUE_MS": "5", "TIMER_OUT_MS": "0"}
    assert timed_messages.is_final_of(final, stored(waits).message)
    for other in ({"REAL_TOPIC": "U"}, {"REAL_QID": "5"}, {"UNIQ_KEY": "L"}):
        assert not timed_messages.is_final_of(final, stored(waits | other).message)


@pytest.mark.parametrize(("group", "due_ms", "out"), [(None, 5000, "4000"), ("PG", 5001, "5000")])
def test_a_recall_is_a_record_of_the_timer_queue_that_names_the_message(
    group: str | None, due_ms: int, out: str
) -> None:
    message = timed_messages.recall(RecallHandle("T", "b", due_ms, "K"), group, 99, HOST)
    assert (message.topic, message.queue_id, message.born_timestamp_ms) == (TIMER_TOPIC, 0, 99)
    assert (message.born_host, message.store_host) == (HOST, HOST)
    assert timed_messages.recalled_by(message) == ("T", "K")
    assert timed_messages.recalled_by(Message(TIMER_TOPIC, b"", {"UNIQ_KEY": "K"})) is None
    names = {"TIMER_DEL_UNIQKEY": "K", "UNIQ_KEY": "K", "REAL_TOPIC": "T", "REAL_QID": "0"}
    times = {"TIMER_DELIVER_MS": str(due_ms), "TIMER_OUT_MS": out, "TAGS": "_RECALL_TAG_"}
    assert message.properties == {**names, **times, **({"PGROUP": group} if group else {})}

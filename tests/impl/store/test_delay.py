"""Tests delayed messages: their queue, their due time, and the store's clock.

Source: docs/reference/protocol/retries-and-delays.md, "Delayed messages".
"""

import pytest
from msgspec import structs

from mqproof.impl.remoting.message import SYS_TRANSACTION_COMMIT, SYS_TRANSACTION_PREPARED, Message
from mqproof.impl.store.delay import (
    LEVELS,
    SCHEDULE_TOPIC,
    due,
    parse_levels,
    scheduled,
    show_levels,
    unit_code,
)
from mqproof.spec.events import Kind
from tests.impl.store.site import Site, message

LEVELS_MS = parse_levels(LEVELS)


def delayed(level: str) -> Message:
    return Message("T", b"x", {"DELAY": level, "TAGS": "TagA"}, queue_id=2)


def test_the_18_levels_are_one_second_to_two_hours() -> None:
    assert len(LEVELS_MS) == 18
    assert (LEVELS_MS[0], LEVELS_MS[4], LEVELS_MS[17]) == (1000, 60_000, 7_200_000)


@pytest.mark.parametrize("text", ["", "1", "1s,2s", "1s 5x", "-1s", "1.5s"])
def test_invalid_delays_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="delays like 1s 5m"):
        parse_levels(text)


@pytest.mark.parametrize(
    ("asked", "queue_id"), [("1", 0), ("3", 2), ("18", 17), ("19", 17), ("999999999", 17)]
)
def test_a_level_is_a_queue_and_a_level_too_high_is_the_last(asked: str, queue_id: int) -> None:
    placed = scheduled(delayed(asked), LEVELS_MS)
    assert (placed.topic, placed.queue_id) == (SCHEDULE_TOPIC, queue_id)
    assert placed.properties["REAL_TOPIC"] == "T"
    assert placed.properties["REAL_QID"] == "2"
    assert placed.properties["TAGS"] == "TagA"
    assert scheduled(placed, LEVELS_MS) == placed, "it is already there"


@pytest.mark.parametrize("level", ["0", "-1"])
def test_a_message_without_a_level_keeps_its_topic(level: str) -> None:
    assert scheduled(delayed(level), LEVELS_MS) == delayed(level)


def test_only_committed_transactions_are_delayed() -> None:
    prepared = structs.replace(delayed("1"), sys_flag=SYS_TRANSACTION_PREPARED)
    assert scheduled(prepared, LEVELS_MS) == prepared
    assert scheduled(structs.replace(delayed("1"), sys_flag=SYS_TRANSACTION_COMMIT), LEVELS_MS).queue_id == 0


@pytest.mark.parametrize("level", ["soon", "", "1_0", " 1", "٣", "9999999999"])
def test_a_level_that_is_not_a_number_is_refused(level: str) -> None:
    with pytest.raises(ValueError, match="DELAY is"):
        scheduled(delayed(level), LEVELS_MS)


def test_a_due_message_is_the_original_without_its_delay() -> None:
    back = due(scheduled(delayed("3"), LEVELS_MS))
    assert (back.topic, back.queue_id, back.body) == ("T", 2, b"x")
    assert back.properties == {"TAGS": "TagA", "REAL_TOPIC": "T", "REAL_QID": "2"}
    assert scheduled(back, LEVELS_MS) == back, "it does not wait twice"


@pytest.mark.parametrize(
    "change", [{"REAL_TOPIC": ""}, {"REAL_QID": ""}, {"REAL_QID": "-1"}, {"REAL_QID": "x"}]
)
def test_a_message_without_its_original_topic_is_refused(change: dict[str, str]) -> None:
    placed = scheduled(delayed("3"), LEVELS_MS)
    with pytest.raises(ValueError, match="a queue expected"):
        due(structs.replace(placed, properties={**placed.properties, **change}))


def test_the_entry_of_a_waiting_message_has_its_due_time() -> None:
    assert unit_code(scheduled(delayed("2"), LEVELS_MS), 1_000_000, LEVELS_MS) == 1_005_000
    assert unit_code(delayed("2"), 1_000_000, LEVELS_MS) == 2598919, "elsewhere it is the tag"


def test_recovery_writes_the_same_due_time_into_the_queue() -> None:
    site = Site()
    store = site.open()
    appended = store.append(scheduled(message("a", 5, DELAY="4"), LEVELS_MS))
    assert appended.tags_code == appended.store_timestamp_ms + 30_000
    reported = [event.attrs.get("stored_ms") for event in site.events if event.kind is Kind.APPEND]
    assert reported == [str(appended.store_timestamp_ms)], "its event says from when the wait counts"
    store.dispatch()
    for name in site.disk.names(f"store/consumequeue/{SCHEDULE_TOPIC}/3"):
        site.disk.remove(f"store/consumequeue/{SCHEDULE_TOPIC}/3/{name}")
    again = site.reopen_after_process_crash()
    assert site.recovery.redispatched == 1
    assert again.max_offset(SCHEDULE_TOPIC, 3) == 1
    due_ms = appended.store_timestamp_ms + 30_000
    assert again.get(SCHEDULE_TOPIC, 3, 0, tag_codes={due_ms}).records


def test_while_the_clock_is_behind_the_last_record_store_time_continues_at_its_pace() -> None:
    site = Site()
    store = site.open()
    (last,) = site.append("a")
    site.clock.advance_ms(-3_600_000)
    assert store.now_ms() == last.store_timestamp_ms
    site.clock.advance_ms(700)
    assert store.now_ms() == last.store_timestamp_ms + 700
    (later,) = site.append("b")
    assert later.store_timestamp_ms == last.store_timestamp_ms + 700
    site.clock.advance_ms(-60_000)
    assert site.append("c")[0].store_timestamp_ms == later.store_timestamp_ms


def test_store_time_follows_the_clock_once_it_is_right_again() -> None:
    site = Site()
    store = site.open()
    (last,) = site.append("a")
    site.clock.advance_ms(-3_600_000)
    site.append("b")
    site.clock.advance_ms(3_600_001)
    assert store.now_ms() == last.store_timestamp_ms + 1


def test_levels_are_shown_in_seconds() -> None:
    assert show_levels(parse_levels("1s 5m 2h 1d")) == "1s 300s 7200s 86400s"


def test_an_event_log_may_record_the_properties_of_a_message() -> None:
    site = Site()
    store = site.open()
    assert store._events is not None
    for records in (False, True):
        store._events.records_properties = records
        store.append(message("a", KEYS="k"))
    _, plain, full = site.events
    size = str(len(store.record_at(0) or b""))
    assert plain.attrs == {"size": size}
    assert full.attrs == {"size": size, "properties": '{"UNIQ_KEY":"a","KEYS":"k"}'}

"""Tests the table of waiting messages: order, holds, keys, points, and which records are needed."""

import random

from mqproof.impl.broker.state.waiting_timers import Waiting, WaitingTimers
from mqproof.impl.broker.timed_messages import Point


def waiting(place: int, due_ms: int, original: int | None = None, key: str | None = None) -> Waiting:
    named = None if key is None else ("T", key)
    return Waiting(place if original is None else original, place, place * 100, due_ms, named)


def table(*all_waiting: Waiting) -> WaitingTimers:
    made = WaitingTimers()
    for one in all_waiting:
        made.add(one)
        made.read_end = one.place + 1
    return made


def test_messages_are_taken_by_their_times_and_not_before() -> None:
    made = table(waiting(0, 30), waiting(1, 10), waiting(2, 20))
    assert [one.place for one in made.take_due(20, 9, 500)] == [1, 2]
    assert made.take_due(20, 9, 500) == [], "they are held"
    assert made.next_due_ms() == 30
    made.release(1)
    assert [one.place for one in made.take_due(20, 9, 500)] == [1]


def test_a_copy_replaces_its_original_and_that_of_a_finished_message_is_left_out() -> None:
    made = table(waiting(0, 30), waiting(1, 40))
    assert made.hold(0, 500)
    made.add(waiting(2, 30, original=0))
    assert [(one.original, one.place) for one in made.take_due(30, 9, 500)] == [(0, 2)]
    made.finish(0, 500)
    made.add(waiting(3, 30, original=0))
    assert len(made) == 1


def test_only_the_time_of_the_last_copy_counts() -> None:
    made = table(waiting(0, 30))
    made.add(waiting(1, 50, original=0))
    assert made.next_due_ms() == 50
    assert made.take_due(49, 9, 500) == []
    assert [one.place for one in made.take_due(50, 9, 500)] == [1]


def test_a_key_names_all_copies_of_a_repeated_send() -> None:
    made = table(waiting(0, 30, key="K"), waiting(1, 40, key="K"), waiting(2, 50, key="L"))
    assert [one.place for one in made.named(("T", "K"))] == [0, 1]
    made.finish(0, None)
    made.finish(1, None)
    assert made.named(("T", "K")) == []
    assert made.named(("Other", "L")) == []


def test_a_point_covers_what_is_done_and_names_where_the_rest_begins() -> None:
    made = table(waiting(0, 10), waiting(1, 20), waiting(2, 20), waiting(3, 90))
    for one in made.take_due(20, 9, 1000):
        if one.place != 1:
            made.finish(one.original, 1000 + one.place)
    # Message 1 is being stored; message 2, due at the same time, has its final already.
    assert made.point(50, 2000) == Point(first=1, read_end=4, due_ms=19, scan_from=1000)
    made.finish(1, 1500)
    assert made.point(50, 2000) == Point(first=3, read_end=4, due_ms=50, scan_from=2000)


def test_a_record_is_needed_until_the_end_of_its_message_is_durable() -> None:
    made = table(waiting(1, 10), waiting(2, 20))
    assert made.needed_from(flushed=300) == 100
    made.take_due(10, 1, 300)
    made.finish(1, 300)
    assert made.needed_from(flushed=300) == 100, "a crash may lose the final at 300"
    assert made.needed_from(flushed=301) == 200
    made.add(waiting(5, 20, original=2))
    assert made.needed_from(flushed=500) == 200
    assert made.needed_from(flushed=501) == 500
    made.finish(2, None)
    assert made.needed_from(flushed=501) is None


def test_the_heap_does_not_grow_with_messages_that_are_recalled() -> None:
    made, chance = WaitingTimers(), random.Random(0)
    for place in range(6000):
        made.add(waiting(place, chance.randrange(10**6)))
        if place >= 10:
            made.finish(place - 10, None)
    assert len(made) == 10
    assert len(made._heap) < 3000
    dues = sorted(one.due_ms for one in made.all_waiting())
    assert [one.due_ms for one in made.take_due(10**6, 99, 0)] == dues


def test_a_message_is_held_once_and_one_that_is_not_known_never() -> None:
    made = table(waiting(0, 30), waiting(1, 40))
    assert made.hold(0, 500)
    assert not made.hold(0, 600)
    assert not made.hold(9, 500)
    assert made.hold(1, 0), "the end of the log is no message"
    made.release(0)
    made.release(0)
    assert made.hold(0, 500)
    made.finish(0, None)
    assert not made.hold(0, 500)
    made.release(1)
    assert [one.place for one in made.take_due(99, 9, 0)] == [1]


def test_an_empty_table_is_done_with_nothing() -> None:
    made = WaitingTimers()
    assert (made.point(0, 0), made.changes) == (Point(first=0, read_end=0, due_ms=0, scan_from=0), 0)
    made.add(waiting(0, 10))
    made.finish(0, None)
    made.finish(0, None)
    assert made.changes == 1


def test_the_heap_keeps_2048_entries_also_of_messages_that_are_done() -> None:
    made = table(waiting(0, 30), waiting(1, 40))
    made.hold(1, 0)
    for place in range(2, 2048):
        made.add(waiting(place, 10))
        made.finish(place, None)
    assert len(made._heap) == 2048
    made.add(waiting(2048, 10))
    made.finish(2048, None)
    assert made._heap == [(30, 0)], "an entry of a held message is added at its release"


def test_a_key_names_a_copied_message_once_and_one_without_a_key_never() -> None:
    made = table(waiting(0, 30, key="K"), waiting(1, 30, original=0, key="K"), waiting(2, 30))
    assert [one.place for one in made.named(("T", "K"))] == [1]
    assert list(made._by_key) == [("T", "K")]


def test_no_more_are_taken_or_copied_than_asked_for() -> None:
    made = table(*(waiting(place, 10) for place in range(3)))
    assert [one.place for one in made.older_than(300, 2)] == [0, 1]
    assert [one.place for one in made.older_than(101, 9)] == [0, 1]
    assert [one.place for one in made.older_than(100, 9)] == [0]
    assert made.older_than(300, 0) == []
    assert [one.place for one in made.take_due(10, 2, 0)] == [0, 1]
    assert [one.place for one in made.take_due(10, 2, 0)] == [2]


def test_a_point_covers_the_finals_that_were_due_at_its_time_exactly() -> None:
    made = table(waiting(0, 20), waiting(1, 21))
    made.take_due(20, 9, 1000)
    made.finish(0, 1100)
    assert made.point(19, 2000) == Point(first=1, read_end=2, due_ms=19, scan_from=1000)
    assert made.point(20, 2000) == Point(first=1, read_end=2, due_ms=20, scan_from=2000)
    assert table(waiting(0, 0)).point(0, 2000) == Point(first=0, read_end=1, due_ms=0, scan_from=2000)

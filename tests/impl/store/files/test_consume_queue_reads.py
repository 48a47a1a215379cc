"""Tests reads of consume queues at their limits, and what a store asks of all its queues.

Source: docs/reference/protocol/storing.md, "Consume queue".
"""

import pytest

from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.consume_queue import ConsumeQueue, ConsumeQueues, QueueKey, Unit

SEGMENT = f"store/consumequeue/T/0/{0:020d}"


def _queues(disk: SimulatedDisk | None = None) -> ConsumeQueues:
    """Return queues with three entries to a segment."""
    queues = ConsumeQueues(disk or SimulatedDisk(), "store/consumequeue", 60)
    queues.load()
    return queues


def _unit(number: int) -> Unit:
    return Unit(number * 100, 100, number)


def _filled(queues: ConsumeQueues, count: int, key: QueueKey = ("T", 0)) -> ConsumeQueue:
    queue = queues.find_or_make(*key)
    for number in range(count):
        queue.put(number, _unit(number))
    return queue


def test_a_new_queue_is_empty_and_begins_at_0() -> None:
    queue = _queues().find_or_make("T", 7)
    assert (queue.key, queue.begin, queue.first, queue.end, queue.last) == (("T", 7), 0, 0, 0, None)


def test_the_last_entry_is_that_before_the_end() -> None:
    queue = _filled(_queues(), 5)
    assert queue.last == _unit(4)
    queue.cut(3)
    assert queue.last == _unit(2)
    queue.cut(0)
    assert queue.last is None


def test_an_entry_that_is_written_again_before_another_one_has_not_changed() -> None:
    queue = _filled(_queues(), 3)
    assert not queue.put(1, _unit(1))
    assert queue.end == 3
    assert queue.put(1, _unit(2))


def test_entries_that_cross_a_segment_are_written_in_parts() -> None:
    queue = _filled(_queues(), 2)
    queue.write(1, [_unit(number) for number in range(1, 9)])
    queue.end = 9
    assert [queue.units(number, 1) for number in range(9)] == [[_unit(number)] for number in range(9)]
    assert queue.segments.capacity_end == 180
    assert list(queue.fields(3, 2)) == [tuple(_unit(3)), tuple(_unit(4))]


def test_the_entries_of_a_shortened_file_read_as_zero_and_those_of_a_missing_one_do_not_exist() -> None:
    disk = SimulatedDisk()
    queue = _filled(_queues(disk), 6)
    queue.segments.sync()
    disk.truncate(SEGMENT, 30)
    assert queue.raw(0, 2) == bytes.fromhex(
        "0000000000000000 00000064 0000000000000000 0000000000000064 0000"
    ) + bytes(10)
    assert queue.units(2, 9) == [Unit(0, 0, 0)]
    assert queue.units(1, 1)[0].commit_offset == 100
    assert queue.units(3, 1) == [_unit(3)]
    queue.end = 8
    assert queue.units(6, 2) == []


def test_a_queue_that_begins_within_a_segment_has_blank_entries_before() -> None:
    disk = SimulatedDisk()
    queue = _queues(disk).find_or_make("T", 0)
    queue.begin_at(5)
    assert (queue.begin, queue.first, queue.end) == (3, 5, 5)
    blank = bytes.fromhex("0000000000000000 7fffffff 0000000000000000")
    assert read_whole(disk, f"store/consumequeue/T/0/{60:020d}") == 2 * blank + bytes(20)
    queue.put(5, _unit(50))
    assert (queue.last, queue.find(1), queue.find(5000), queue.find(5001)) == (_unit(50), 5, 5, 6)
    queue.clear()
    queue.begin_at(6)
    assert (queue.begin, queue.first, queue.end) == (6, 6, 6)


@pytest.mark.parametrize("first", [0, 2, 4])
def test_the_first_entry_at_or_after_a_commit_offset_is_found(first: int) -> None:
    queue = _filled(_queues(), 7)
    queue.first = first
    for offset in range(650):
        assert queue.find(offset) == -(-offset // 100)
    assert queue.count_between(101, 301) == queue.count_between(150, 400) == 2
    assert queue.count_between(300, 100) == 0


@pytest.mark.parametrize(
    ("log_begin", "kept_from"), [(0, 0), (200, 0), (201, 3), (300, 3), (500, 3), (600, 6), (999, 6)]
)
def test_files_whose_records_are_all_gone_expire_except_the_last_one(log_begin: int, kept_from: int) -> None:
    queue = _filled(_queues(), 7)
    queue.expire(log_begin).carry_out()
    assert (queue.begin, queue.end) == (kept_from, 7)


def test_only_queues_whose_entries_are_all_older_are_removed_with_their_topic() -> None:
    disk = SimulatedDisk()
    queues = _queues(disk)
    for topic, queue_id, count in (("T", 0, 3), ("T", 1, 4), ("T", 2, 0), ("U", 0, 1)):
        _filled(queues, count, (topic, queue_id))
    assert [queues.has(topic) for topic in ("T", "U", "V")] == [True, True, False]
    queues.remove("T", 300)
    assert [queue.key for queue in queues] == [("T", 1), ("U", 0)]
    assert not disk.names("store/consumequeue/T/0")
    queues.remove("T", 301)
    assert [queues.has(topic) for topic in ("T", "U")] == [False, True]


def test_the_entries_of_all_queues_are_counted() -> None:
    queues = _queues()
    _filled(queues, 3)
    _filled(queues, 6, ("U", 1))
    assert queues.count_between(100, 401) == 2 + 4


def test_a_directory_named_with_other_digits_is_refused() -> None:
    disk = SimulatedDisk()
    disk.create("store/consumequeue/T/٧/x", 1)
    with pytest.raises(StoreError, match="٧: not a queue, a directory named by its number expected"):
        _queues(disk)


@pytest.mark.parametrize(
    ("commit_offset", "count", "expected"),
    [
        (0, 1, ["A0"]),
        (99, 2, ["A0", "B0"]),
        (100, 3, ["A0", "B0", "A1"]),
        (149, 9, ["A0", "B0", "A1", "B1", "A2"]),
        (150, 2, ["B0", "A1"]),
        (259, 2, ["A1", "B1"]),
        (260, 2, ["B1", "A2"]),
        (300, 3, ["A2"]),
        (999, 2, ["A2"]),
        (150, 0, []),
    ],
)
def test_records_near_a_commit_offset_come_in_the_order_of_the_log(
    commit_offset: int, count: int, expected: list[str]
) -> None:
    """The first one contains the commit offset; without one, it is the first after it."""
    queues = _queues()
    for topic, places in (("A", (100, 200, 300)), ("B", (150, 260))):
        for number, place in enumerate(places):
            queues.find_or_make(topic, 0).put(number, Unit(place, 40, 0))
    found = queues.entries_from(commit_offset, count)
    assert [f"{queue.key[0]}{offset}" for queue, offset in found] == expected


def test_records_that_are_gone_are_not_among_those_near_a_commit_offset() -> None:
    queues = _queues()
    queue = _filled(queues, 5)
    queue.first = 3
    assert queues.entries_from(250, 2) == [(queue, 3), (queue, 4)]


def test_closed_queues_read_no_file() -> None:
    queues = _queues()
    queue = _filled(queues, 2)
    queues.close()
    assert (queue.units(0, 1), queue.segments.starts) == ([], ())

"""Tests consume queues: entries without gaps, loading, cuts.

Source: docs/reference/protocol/storing.md, "Consume queue".
"""

import pytest

from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.consume_queue import ConsumeQueue, ConsumeQueues, QueueGapError, Unit


def _queue(disk: SimulatedDisk, segment_bytes: int = 60) -> ConsumeQueue:
    queues = ConsumeQueues(disk, "store/consumequeue", segment_bytes)
    queues.load()
    return queues.find_or_make("T", 0)


def _unit(number: int) -> Unit:
    return Unit(number * 100, 100, number)


def test_an_entry_is_written_byte_for_byte() -> None:
    disk = SimulatedDisk()
    _queue(disk).put(0, Unit(1024, 106, 2598919))
    data = read_whole(disk, f"store/consumequeue/T/0/{0:020d}")
    assert data[:20] == bytes.fromhex("0000000000000400 0000006a 000000000027a807")


def test_entry_300000_is_the_first_of_the_segment_named_6000000() -> None:
    disk = SimulatedDisk()
    queue = _queue(disk, 6_000_000)
    queue.end = 299_999
    queue.segments.write(0, b"")  # the first segment
    queue.put(299_999, _unit(1))
    queue.put(300_000, _unit(2))
    assert disk.names("store/consumequeue/T/0") == [f"{0:020d}", "00000000000006000000"]


def test_rewriting_an_entry_reports_whether_it_changed() -> None:
    queue = _queue(SimulatedDisk())
    assert [queue.put(number, _unit(number)) for number in range(5)] == [True] * 5
    assert not queue.put(2, _unit(2))
    assert queue.put(2, Unit(7, 8, 9))
    assert (queue.end, queue.units(2, 1)) == (5, [Unit(7, 8, 9)])


def test_a_gap_is_refused() -> None:
    queue = _queue(SimulatedDisk())
    with pytest.raises(QueueGapError, match="T/0: the queue goes from 0 to 0, entry 1 would leave a gap"):
        queue.put(1, _unit(1))


def test_an_entry_before_the_first_segment_is_refused() -> None:
    disk = SimulatedDisk()
    queue = _queue(disk)
    for number in range(7):
        queue.put(number, _unit(number))
    disk.remove(f"store/consumequeue/T/0/{0:020d}")
    queue = _queue(disk)
    assert queue.find_end(lambda unit: unit.size > 0) == 7
    queue.end = 7
    with pytest.raises(QueueGapError, match="goes from 3 to 7, entry 2 would leave a gap"):
        queue.put(2, _unit(2))
    queue.clear()
    assert (queue.begin, queue.end, disk.names("store/consumequeue/T/0")) == (0, 0, [])
    assert queue.put(0, _unit(0))


def test_entries_before_a_commit_offset_are_counted() -> None:
    queue = _queue(SimulatedDisk())
    assert queue.count_between(0, 1000) == 0
    for number in range(7):
        queue.put(number, _unit(number))
    assert [queue.count_between(0, offset) for offset in (0, 1, 100, 101, 600, 601, 9999)] == [
        0,
        1,
        1,
        2,
        6,
        7,
        7,
    ]


def test_a_cleared_queue_stays_cleared_after_a_power_loss() -> None:
    disk = SimulatedDisk()
    queue = _queue(disk)
    for number in range(7):
        queue.put(number, _unit(number))
    queue.segments.take_unsynced().sync()
    queue.clear()
    disk.lose_power()
    assert disk.names("store/consumequeue/T/0") == []


def test_reads_stop_at_the_end_of_the_queue_and_of_a_segment() -> None:
    queue = _queue(SimulatedDisk())
    for number in range(5):
        queue.put(number, _unit(number))
    assert queue.units(1, 100) == [_unit(1), _unit(2)]
    assert queue.units(3, 100) == [_unit(3), _unit(4)]
    assert queue.units(5, 100) == []
    assert queue.units(9, 100) == []


@pytest.mark.parametrize("count", range(8))
def test_the_end_is_found_again_wherever_it_is(count: int) -> None:
    disk = SimulatedDisk()
    queue = _queue(disk)
    for number in range(count):
        queue.put(number, _unit(number))
    assert _queue(disk).find_end(lambda unit: unit.size > 0) == count


@pytest.mark.parametrize("keep", range(8))
def test_a_cut_removes_the_entries_after_it(keep: int) -> None:
    disk = SimulatedDisk()
    queue = _queue(disk)
    for number in range(7):
        queue.put(number, _unit(number))
    assert queue.cut(keep) == 7 - keep
    assert queue.end == keep
    assert _queue(disk).find_end(lambda unit: unit.size > 0) == keep
    queue.put(keep, _unit(keep))


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("stray", r"store/consumequeue/stray: not a directory, one for each topic expected"),
        ("T/zero/x", r"store/consumequeue/T/zero: not a queue, a directory named by its number expected"),
        ("T/7", r"store/consumequeue/T/7: not a queue, a directory named by its number expected"),
        ("T/0/x", r"store/consumequeue/T/0/x: not a segment, a name of 20 digits expected"),
    ],
)
def test_unexpected_files_are_refused_by_name(path: str, complaint: str) -> None:
    disk = SimulatedDisk()
    disk.create(f"store/consumequeue/{path}", 1)
    with pytest.raises(StoreError, match=complaint):
        _queue(disk)

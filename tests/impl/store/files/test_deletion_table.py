"""Tests the table of deleted topics at its limits; test_deleted_topics.py tests stores that use it.

Source: docs/reference/protocol/recovery.md, "Deleted topics".
"""

from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.files.deleted_topics import DeletedTopics


def _table(disk: SimulatedDisk | None = None, **deleted: int) -> DeletedTopics:
    table = DeletedTopics(disk or SimulatedDisk(), "deletedTopics.json")
    table.add(deleted, 0)
    return table


def test_records_before_the_deletion_are_deleted() -> None:
    table = _table(T=100)
    assert [table.has("T", offset) for offset in (0, 99, 100, 101)] == [True, True, False, False]
    assert not table.has("U", 0)


def test_a_deletion_of_the_master_is_new_if_it_is_later_than_the_known_one() -> None:
    table = _table(T=100, U=100)
    assert table.newer({"T": 100, "U": 101, "V": 1, "W": 0}) == {"U": 101, "V": 1}
    assert table.newer({"T": 99}) == {}


def test_only_earlier_deletions_of_the_master_beyond_the_end_of_the_log_are_taken_back() -> None:
    table = _table(T=100, U=101, V=102)
    assert table.taken_back({"T": 50, "U": 50, "V": 102}, log_end=100) == {"U": 50}
    assert table.taken_back({"V": 101}, log_end=101) == {"V": 101}
    assert table.taken_back({}, log_end=0) == {}


def test_deletions_beyond_the_end_of_the_log_are_limited_to_it() -> None:
    disk = SimulatedDisk()
    table = _table(disk, T=100, U=101)
    assert [table.lies_beyond(end) for end in (100, 101)] == [True, False]
    steps: list[object] = []
    disk.on_step = steps.append
    table.clamp(101)
    assert (table.table, steps) == ({"T": 100, "U": 101}, []), "nothing is written"
    table.clamp(100)
    assert table.table == {"T": 100, "U": 100}
    table.clamp(7)
    again = DeletedTopics(disk, "deletedTopics.json")
    again.load()
    assert again.table == table.table == {"T": 7, "U": 7}


def test_expired_deletions_leave_the_table_when_one_is_added() -> None:
    table = _table(T=100, U=101)
    table.add({"V": 150}, log_begin=100)
    assert table.table == {"U": 101, "V": 150}
    table.add({"U": 120}, log_begin=0)
    assert table.table == {"U": 120, "V": 150}

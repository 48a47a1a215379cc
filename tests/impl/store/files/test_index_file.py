"""Tests one file of the key index: its slots, its chains, and what survives a crash.

Source: docs/reference/protocol/storing.md, "Key index".
"""

from array import array
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import index_file
from mqproof.impl.store.files.index import Index
from mqproof.impl.store.files.index_file import (
    HEADER_BYTES,
    Entry,
    Header,
    IndexFile,
    IndexShape,
    read_header,
)
from tests.impl.left import no_open_file

SHAPE = IndexShape(slots=10, entries=100)
PATH = "index/1"


def _file(disk: SimulatedDisk) -> IndexFile:
    return IndexFile(1, disk.create(PATH, SHAPE.file_bytes), SHAPE, Header())


def _reopened(disk: SimulatedDisk) -> IndexFile:
    file = disk.open(PATH)
    header = read_header(file, SHAPE)
    assert header is not None
    return IndexFile(1, file, SHAPE, header)


def _offsets(file: IndexFile, key_hash: int) -> list[int]:
    return [entry.commit_offset for entry in file.chain(key_hash)]


@pytest.mark.parametrize("block_slots", [1, 3, 4, 10, 16])
def test_slots_are_written_in_blocks_as_far_as_they_changed(
    block_slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_file, "_BLOCK_SLOTS", block_slots)
    disk = SimulatedDisk()
    file = _file(disk)
    for number, key_hash in enumerate((9, 0, 19, 5)):
        file.put([(key_hash, 100 * number, 1000)])
        assert file.header.entry_next == number + 2
    file.write_out()
    expected = array("i", [2, 0, 0, 0, 0, 4, 0, 0, 0, 3])
    assert file.slots() == expected
    steps: list[Step] = []
    disk.on_step = steps.append
    file.write_out()
    assert [step.size for step in steps] == [HEADER_BYTES], "only the header is written again"
    disk.on_step = None
    again = _reopened(disk)
    assert (again.slots(), again.header) == (expected, file.header)
    assert [_offsets(again, key_hash) for key_hash in (9, 19, 0, 5, 1)] == [
        [200, 0],
        [200, 0],
        [100],
        [300],
        [],
    ]
    again.put([(15, 400, 2000)])
    assert _offsets(again, 5) == [400, 300]
    again.write_out()
    assert _reopened(disk).slots() == array("i", [2, 0, 0, 0, 0, 5, 0, 0, 0, 3])


def test_a_chain_is_read_whether_its_entries_are_written_or_not() -> None:
    file = _file(SimulatedDisk())
    for number in range(3):
        file.put([(7, number, 1000)])
    file.write_out()
    for number in range(3, 5):
        file.put([(7, number, 1000)])
    assert _offsets(file, 7) == [4, 3, 2, 1, 0]
    assert [entry.commit_offset for entry in file.entries()] == [0, 1, 2, 3, 4]
    assert [file.count(7, offset) for offset in (0, 4, 5)] == [1, 1, 0]
    file.finish()
    assert _offsets(file, 7) == [4, 3, 2, 1, 0]


def test_keys_of_one_record_with_one_hash_are_counted() -> None:
    file = _file(SimulatedDisk())
    for key_hash, offset in ((7, 100), (7, 200), (17, 200), (7, 200), (7, 300)):
        file.put([(key_hash, offset, 1000)])
    assert [file.count(7, offset) for offset in (100, 200, 300)] == [1, 2, 1]
    assert file.count(17, 200) == 1


def test_entries_are_written_when_so_many_bytes_of_them_are_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_file, "_UNWRITTEN_BYTES_MAX", 40)
    disk = SimulatedDisk()
    file = _file(disk)
    steps: list[Step] = []
    disk.on_step = steps.append
    for number in range(5):
        file.put([(number, number, 1000)])
    assert [step.size for step in steps] == [40, 40]


@pytest.mark.parametrize("entries_read", [1, 2, 3, 50_000])
def test_many_entries_are_read_in_parts(entries_read: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "_ENTRIES_READ", entries_read)
    file = _file(SimulatedDisk())
    for number in range(5):
        file.put([(number, number, 1000)])
    file.write_out()
    file.put([(5, 5, 1000)])
    assert [entry.commit_offset for entry in file.entries()] == list(range(6))


@pytest.mark.parametrize(
    ("begin_ms", "store_ms", "seconds"),
    [(5000, 5000, 0), (5000, 5999, 0), (5000, 6000, 1), (5000, 4000, 0), (1, (1 << 31) * 1000, (1 << 31) - 1),
     (1, 1 << 50, (1 << 31) - 1), (0, 9000, 0)],
)  # fmt: skip
def test_an_entry_has_the_seconds_since_the_begin_of_its_file(
    begin_ms: int, store_ms: int, seconds: int
) -> None:
    file = _file(SimulatedDisk())
    file.header.begin_timestamp_ms = begin_ms
    file.header.entry_next = 2
    file._slots = array("i", bytes(40))
    file.put([(7, 100, store_ms)])
    assert next(file.chain(7)) == Entry(7, 100, seconds, 0)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (Entry(8, 300, 0, 2), []),  # a hash of another slot
        (Entry(17, 300, 0, 2), [300, 200, 100]),
        (Entry(7, 300, 0, 3), []),  # it leads to itself
        (Entry(7, 300, 0, -1), []),
        (Entry(7, 300, 0, 1), [300, 100]),
    ],
)
def test_a_chain_ends_at_an_entry_that_does_not_belong_to_it(change: Entry, read: list[int]) -> None:
    file = _file(SimulatedDisk())
    for number in range(1, 4):
        file.put([(7, 100 * number, 1000)])
    file.write_out()
    file.file.write(SHAPE.entry_at(3), index_file._ENTRY.pack(*change))
    reported: list[tuple[str, int]] = []
    file.on_damage = lambda path, number: reported.append((path, number))
    assert _offsets(file, 7) == read
    assert reported == ([] if read else [(PATH, 3)])


@pytest.mark.parametrize(("newest", "read"), [(-1, []), (0, []), (2, [200, 100]), (3, []), (1, [100])])
def test_a_slot_that_points_to_no_entry_is_empty(newest: int, read: list[int]) -> None:
    disk = SimulatedDisk()
    file = _file(disk)
    file.put([(7, 100, 1000)])
    file.put([(7, 200, 1000)])
    file.write_out()
    file.file.write(SHAPE.slot_at(7), newest.to_bytes(4, "big", signed=True))
    again = _reopened(disk)
    assert _offsets(again, 7) == read
    again.put([(7, 300, 1000)])
    assert _offsets(again, 7) == [300, *read]


def test_a_repair_computes_the_slots_and_removes_later_entries() -> None:
    disk = SimulatedDisk()
    file = _file(disk)
    for number, key_hash in enumerate((9, 0, 19, 5)):
        file.put([(key_hash, 100 * number, 1000)])
    file.write_out()
    file.file.write(HEADER_BYTES, bytes(40))
    again = _reopened(disk)
    again.header.entry_next = 4
    again.header.slots_used = 9
    again.repair()
    assert _reopened(disk).slots() == array("i", [2, 0, 0, 0, 0, 0, 0, 0, 0, 3])
    assert (again.header.slots_used, again.header.entry_next) == (2, 4)
    assert _reopened(disk).header == again.header
    assert read_whole(disk, PATH)[SHAPE.entry_at(4) :] == bytes(SHAPE.file_bytes - SHAPE.entry_at(4))
    assert [entry.commit_offset for entry in again.entries()] == [0, 100, 200]


@pytest.mark.parametrize(
    ("entry_next", "is_valid"), [(0, False), (1, True), (100, True), (101, False), (-1, False)]
)
def test_a_header_counts_at_most_the_entries_of_a_full_file(entry_next: int, is_valid: bool) -> None:
    file = SimulatedDisk().create(PATH, SHAPE.file_bytes)
    file.write(0, Header(entry_next=entry_next).encode())
    assert (read_header(file, SHAPE) is not None) is is_valid


def test_the_names_of_loaded_files_are_synced_because_the_last_process_may_not_have_done_it() -> None:
    disk = SimulatedDisk()
    index = Index(disk, "index", SHAPE)
    index.load(None, 0, abnormal=False)
    assert index.take_unsynced().directory is None, "there are no files"
    index.add([("T", ["k"], 0, 1_700_000_000_000)], 100)
    index.write_out()
    disk.crash_process()
    again = Index(disk, "index", SHAPE)
    again.load(None, 1 << 60, abnormal=True)
    again.take_unsynced().sync()
    assert again.take_unsynced().directory is None
    disk.lose_power()
    assert len(disk.names("index")) == 1


@pytest.mark.parametrize(
    ("full_until_s", "abnormal", "files"),
    [(0, False, 3), (0, True, 0), (3, True, 0), (4, True, 1), (7, True, 1), (8, True, 2), (99, True, 3)],
)
def test_without_a_state_only_files_that_the_checkpoint_covers_are_trusted_after_a_crash(
    full_until_s: int, abnormal: bool, files: int
) -> None:
    disk, shape = SimulatedDisk(), IndexShape(slots=3, entries=5)
    index = Index(disk, "index", shape)
    index.load(None, 0, abnormal=False)
    for second in range(1, 10):  # four entries to a file
        index.add([("T", ["k"], 100 * second, 1000 * second)], 100 * second + 100)
    assert index.full_until_ms == 8000
    index.take_unsynced().sync()
    again = Index(disk, "index", shape)
    again.load(None, 1000 * full_until_s, abnormal=abnormal)
    assert len(again) == len(disk.names("index")) == files
    assert again.position == {0: 0, 1: 400, 2: 800, 3: 900}[files]


def test_a_file_keeps_less_than_64_kib_of_entries_in_memory() -> None:
    disk = SimulatedDisk()
    shape = IndexShape(slots=10, entries=5000)
    file = IndexFile(1, disk.create(PATH, shape.file_bytes), shape, Header())
    steps: list[Step] = []
    disk.on_step = steps.append
    file.put([(number, number, 1000) for number in range(3276)])
    assert steps == [], "these are 65,520 bytes"
    file.put([(7, 3276, 1000)])
    assert [step.size for step in steps] == [65_540]


def test_16384_slots_are_written_together() -> None:
    disk = SimulatedDisk()
    shape = IndexShape(slots=40_000, entries=100)
    file = IndexFile(1, disk.create(PATH, shape.file_bytes), shape, Header())
    file.put([(key_hash, 100, 1000) for key_hash in (0, 16_383, 16_384, 39_999)])
    steps: list[Step] = []
    disk.on_step = steps.append
    file.write_out()
    assert [step.size for step in steps] == [80, 65_536, 65_536, 4 * (40_000 - 32_768), HEADER_BYTES]


@pytest.mark.parametrize(
    ("state_name", "abnormal", "files", "position"),
    [(0, True, 0, 77), (0, False, 0, 77), (1, True, 0, 0), (1, False, 2, 500)],
)
def test_a_state_is_trusted_if_its_newest_file_exists(
    state_name: int, abnormal: bool, files: int, position: int
) -> None:
    """The state of an empty index names no file, and one that names a missing file says nothing."""
    disk, shape = SimulatedDisk(), IndexShape(slots=3, entries=5)
    index = Index(disk, "index", shape)
    index.load(None, 0, abnormal=False)
    for second in range(1, 6):
        index.add([("T", ["k"], 100 * second, 1000 * second)], 100 * second + 100)
    whole = index.state()
    index.take_unsynced().sync()
    again = Index(disk, "index", shape)
    again.load(replace(whole, name=state_name, position=77), 0, abnormal=abnormal)
    assert (len(again), again.position) == (files, position)


@pytest.mark.parametrize("abnormal", [False, True])
def test_a_state_of_the_newest_file_is_trusted_with_its_position(abnormal: bool) -> None:
    disk, shape = SimulatedDisk(), IndexShape(slots=3, entries=5)
    index = Index(disk, "index", shape)
    index.load(None, 0, abnormal=False)
    for second in range(1, 6):
        index.add([("T", ["k"], 100 * second, 1000 * second)], 100 * second + 100)
    index.take_unsynced().sync()
    again = Index(disk, "index", shape)
    again.load(index.state(), 0, abnormal=abnormal)
    assert (len(again), again.position, again.state()) == (2, 600, index.state())


def test_a_removed_file_is_not_synced_any_more() -> None:
    disk, shape = SimulatedDisk(), IndexShape(slots=3, entries=5)
    index = Index(disk, "index", shape)
    index.load(None, 0, abnormal=False)
    for second in range(1, 10):
        index.add([("T", ["k"], 100 * second, 1000 * second)], 100 * second + 100)
    removal = index.detach_before(401)
    assert [file.path for file in removal.files] == [f"index/{disk.names('index')[0]}"]
    removal.carry_out()
    unsynced = index.take_unsynced()
    assert [file.path for file in unsynced.files] == [f"index/{name}" for name in disk.names("index")]
    unsynced.sync()


def test_a_search_visits_at_most_100000_entries_of_a_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(SimulatedDisk(), "index", SHAPE)
    index.load(None, 0, abnormal=False)
    index.add([("T", ["k"], 0, 1000)], 100)

    def chain(_: IndexFile, hashed: int) -> Iterator[Entry]:
        return (Entry(hashed, offset, 0, 0) for offset in range(100_001, 0, -1))

    monkeypatch.setattr(IndexFile, "chain", chain)
    assert sum(1 for _ in index.find("T", "k", 0, 2000)) == 100_000


def test_only_the_newest_file_keeps_its_slots_in_memory() -> None:
    disk, shape = SimulatedDisk(), IndexShape(slots=3, entries=5)
    index = Index(disk, "index", shape)
    index.load(None, 0, abnormal=False)
    for second in range(1, 14):
        index.add([("T", ["k"], 100 * second, 1000 * second)], 100 * second + 100)
    assert [file._slots is not None for file in index] == [False, False, False, True]


def test_an_index_file_whose_size_cannot_be_synced_is_closed() -> None:
    disk = SimulatedDisk()
    index = Index(disk, "index", SHAPE)
    index.load(None, 0, abnormal=False)

    def fail(step: Step) -> None:
        if step.kind == "sync":
            raise OSError(5, "Input/output error")

    disk.on_step = fail
    with pytest.raises(OSError, match="Input/output error"):
        index.add([("T", ["k"], 0, 1000)], 100)
    no_open_file(disk)
    assert len(index) == 0


def test_records_that_are_indexed_already_are_passed_over() -> None:
    index = Index(SimulatedDisk(), "index", SHAPE)
    index.load(None, 0, abnormal=False)
    records = [("T", [f"k{number}"], 100 * number, 1000) for number in range(4)]
    index.add(records[:2], 200)
    index.add(records, 400)
    (file,) = list(index)
    assert [entry.commit_offset for entry in file.entries()] == [0, 100, 200, 300]


def test_a_new_file_is_not_read() -> None:
    """Its slots are all zero: 20 MB with the default settings."""
    disk = SimulatedDisk()
    file = _file(disk)
    reads: list[str] = []
    disk.on_read = reads.append
    file.put([(7, 100, 1000)])
    file.put([(8, 200, 1000)])
    assert reads == []
    file.finish()
    file.put([(9, 300, 1000)])
    assert reads == [PATH]


def test_the_keys_of_a_record_are_indexed_in_their_order() -> None:
    made = Index(SimulatedDisk(), "index", SHAPE)
    made.load(None, 0, abnormal=False)
    made.add([("T", ["a", "b", "a"], 0, 1000)], 100)
    (file,) = list(made)
    a, b = (2639 * 31 + ord(key) for key in "ab")  # of "T#", and of the key
    assert [entry.key_hash for entry in file.entries()] == [a, b, a]


def test_only_files_that_have_changed_are_synced() -> None:
    disk, shape = SimulatedDisk(), IndexShape(slots=3, entries=5)
    index = Index(disk, "index", shape)
    index.load(None, 0, abnormal=False)
    synced = []
    for second in (1, 2, 3, 4, 5, 5):
        index.add([("T", ["k"], 100 * second, 1000 * second)], 100 * second + 100)
        if second > 3:
            unsynced = index.take_unsynced()
            synced.append((len(unsynced.files), unsynced.directory))
    assert synced == [(1, "index"), (1, "index"), (0, None)]


@pytest.mark.parametrize("name", ["1", "1" * 16, "1" * 18, "x" * 17, "\u0661" * 17])
def test_a_file_with_another_name_is_refused(name: str) -> None:
    disk = SimulatedDisk()
    disk.create(f"index/{name}", SHAPE.file_bytes)
    with pytest.raises(StoreError, match=f"index/{name}: not an index file, a name of 17 digits expected"):
        Index(disk, "index", SHAPE).load(None, 0, abnormal=False)

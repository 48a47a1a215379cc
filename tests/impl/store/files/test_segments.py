"""Tests segmented files: names, sizes, gaps, cuts (docs/reference/protocol/storing.md, "Segments")."""

import pytest

from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.simulated_disk import Image, SimulatedCrashError, SimulatedDisk, Step
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.segments import SegmentedFile
from tests.impl.left import no_open_file


def _loaded(disk: SimulatedDisk, segment_bytes: int = 16) -> SegmentedFile:
    segments = SegmentedFile(disk, "log", segment_bytes)
    segments.load()
    return segments


def test_segments_are_named_by_the_position_of_their_first_byte() -> None:
    disk = SimulatedDisk()
    segments = _loaded(disk, 1 << 30)
    for position in (0, 1 << 30, 1 << 31):
        segments.write(position, b"x")
    assert disk.names("log") == ["0" * 20, "00000000001073741824", "00000000002147483648"]
    assert (segments.begin, segments.capacity_end) == (0, 3 << 30)


def test_written_data_is_read_after_a_reload_and_no_write_crosses_a_segment() -> None:
    disk = SimulatedDisk()
    segments = _loaded(disk)
    segments.write(0, b"0123456789abcdef")
    segments.write(16, b"ghij")
    segments.close()
    again = _loaded(disk)
    assert again.starts == (0, 16)
    assert again.read(14, 10) == b"ef"
    assert again.read(16, 6) == b"ghij\0\0"
    assert again.read(32, 4) == b""
    if not __debug__:
        return  # the check below is for mistakes of our own code
    with pytest.raises(AssertionError, match="cross"):
        again.write(15, b"xy")


def test_only_changed_data_is_synced_and_names_only_when_they_changed() -> None:
    disk = SimulatedDisk()
    segments = _loaded(disk)
    segments.write(0, b"a")
    segments.write(16, b"b")
    first = segments.take_unsynced()
    assert ([file.path[-2:] for file in first.files], first.directory) == (["00", "16"], "log")
    segments.write(17, b"c")
    second = segments.take_unsynced()
    assert ([file.path[-2:] for file in second.files], second.directory) == (["16"], None)
    assert segments.take_unsynced().files == ()
    first.sync()
    second.sync()
    disk.lose_power()
    assert read_whole(disk, f"log/{16:020d}")[:2] == b"bc"


def test_a_new_segment_is_lost_with_its_name_unless_the_directory_is_synced() -> None:
    disk = SimulatedDisk()
    segments = _loaded(disk)
    segments.write(0, b"a")
    segments.take_unsynced().files[0].sync()
    disk.lose_power()
    assert disk.names("log") == []


def test_a_cut_removes_later_segments_and_zeroes_the_rest_of_this_one() -> None:
    disk = SimulatedDisk()
    segments = _loaded(disk)
    for start in (0, 16, 32):
        segments.write(start, b"x" * 10)
    assert segments.cut(20) == 42 - 20
    assert disk.names("log") == [f"{0:020d}", f"{16:020d}"]
    assert segments.read(16, 16) == b"xxxx" + bytes(12)
    assert segments.cut(20) == 0
    unsynced = segments.take_unsynced()
    unsynced.sync()
    disk.lose_power()
    assert disk.names("log") == [f"{0:020d}", f"{16:020d}"]
    assert _loaded(disk).read(16, 16) == b"xxxx" + bytes(12)


def test_a_cut_at_the_start_of_a_segment_keeps_it_empty_and_at_the_end_changes_nothing() -> None:
    segments = _loaded(SimulatedDisk())
    segments.write(0, b"x" * 16)
    segments.write(16, b"x")
    assert segments.cut(16) == 1
    assert segments.capacity_end == 32
    assert segments.cut(32) == 0
    assert segments.cut(0) == 16
    assert segments.capacity_end == 16


def test_an_empty_last_segment_left_by_a_crash_is_removed() -> None:
    disk = SimulatedDisk()
    _loaded(disk).write(0, b"a")
    disk.create(f"log/{16:020d}", 16)
    names = disk.unsynced().names
    contents = dict(disk.unsynced().contents)
    crashed = disk.copy()
    crashed.crash_os(Image(names, {label: 0 for label in contents if "16#" in label} | {"log/0#0": 1}))
    segments = _loaded(crashed)
    assert segments.starts == (0,)


@pytest.mark.parametrize(
    ("name", "size", "complaint"),
    [
        ("notes.txt", 3, r"log/notes.txt: not a segment, a name of 20 digits expected"),
        (f"{5:020d}", 16, r"log/00000000000000000005: not a multiple of the segment size, 16 bytes expected"),
        (f"{16:020d}", 24, r"log/00000000000000000016: 24 bytes, segments of 16 expected"),
        (f"{16:020d}", 3, r"log/00000000000000000016: 3 bytes, segments of 16 expected"),
        (f"{32:020d}", 16, r"log/00000000000000000032: the segment before it is missing"),
        ("٠" * 20, 16, r"a name of 20 digits expected"),
    ],
)
def test_unexpected_files_are_refused_by_name(name: str, size: int, complaint: str) -> None:
    disk = SimulatedDisk()
    _loaded(disk).write(0, b"a")
    disk.create(f"log/{name}", size)
    with pytest.raises(StoreError, match=complaint):
        _loaded(disk)


def test_an_empty_segment_in_the_middle_is_refused_and_not_cut() -> None:
    disk = SimulatedDisk()
    for start, size in ((0, 16), (16, 0), (32, 16)):
        disk.create(f"log/{start:020d}", size)
    with pytest.raises(StoreError, match="0 bytes, segments of 16 expected"):
        _loaded(disk)


def test_the_size_of_a_killed_processs_segment_is_durable_before_the_next_one_is_created() -> None:
    disk = SimulatedDisk()

    def die(step: Step) -> None:
        if step.kind == "sync":
            raise SimulatedCrashError

    disk.on_step = die
    with pytest.raises(SimulatedCrashError):
        SegmentedFile(disk, "d", 60).write(0, b"a")
    disk.on_step = None
    disk.crash_process()
    segments = SegmentedFile(disk, "d", 60)
    segments.load()
    segments.write(60, b"b")
    disk.crash_os(Image(names={"d": 2}))
    again = SegmentedFile(disk, "d", 60)
    again.load()
    assert again.starts == (0, 60)


@pytest.mark.parametrize(
    ("begin", "end", "writes"),
    [(0, 40, [(0, 16), (1, 16), (2, 8)]), (5, 16, [(0, 11)]), (5, 17, [(0, 11), (1, 1)]), (20, 24, [(1, 4)]),
     (7, 7, [])],
)  # fmt: skip
def test_exactly_the_bytes_between_two_positions_are_written_again(
    begin: int, end: int, writes: list[tuple[int, int]]
) -> None:
    disk = SimulatedDisk()
    segments = _loaded(disk)
    for start in (0, 16, 32):
        segments.write(start, bytes(range(start, start + 16)))
    segments.sync()
    steps: list[Step] = []

    def count(step: Step) -> None:
        steps.append(step)
        assert len(steps) < 9, "it does not end"

    disk.on_step = count
    segments.write_again(begin, end)
    assert [(int(step.path[-20:]) // 16, step.size) for step in steps] == writes
    assert [len(segments.take_unsynced().files), segments.has_unsynced] == [len(writes), False]
    assert b"".join(segments.read(start, 16) for start in (0, 16, 32)) == bytes(range(48))


@pytest.mark.parametrize("position", [0, 15, 16, 31, 32, 47, 48, 1 << 40])
def test_a_position_has_a_segment_if_its_file_exists(position: int) -> None:
    segments = _loaded(SimulatedDisk())
    for start in (16, 32):
        segments.write(start, b"x")
    assert segments.has(position) is (16 <= position < 48)
    assert segments.path_of(position) == f"log/{position // 16 * 16:020d}"
    assert (segments.begin, segments.capacity_end) == (16, 48)


@pytest.mark.parametrize(("position", "left"), [(15, 0), (16, 16), (31, 16), (32, 32), (48, 32), (99, 32)])
def test_segments_before_a_position_are_detached_except_the_last_one(position: int, left: int) -> None:
    disk = SimulatedDisk()
    segments = _loaded(disk)
    for start in (0, 16, 32):
        segments.write(start, b"x")
    removal = segments.detach_before(position)
    assert (segments.begin, segments.capacity_end) == (left, 48)
    assert len(disk.names("log")) == 3
    assert len(segments.take_unsynced().files) == len(segments.starts)
    removal.carry_out()
    assert disk.names("log") == [f"{start:020d}" for start in range(left, 48, 16)]


def test_an_empty_file_has_nothing_unsynced_and_no_bytes() -> None:
    segments = SegmentedFile(SimulatedDisk(), "log", 16)
    unsynced = [segments.has_unsynced]
    segments.load()
    assert (segments.begin, segments.capacity_end, segments.starts) == (0, 0, ())
    unsynced.append(segments.has_unsynced)
    for _ in range(2):
        segments.write(0, b"x")
        unsynced.append(segments.has_unsynced)
        segments.sync()
        unsynced.append(segments.has_unsynced)
    segments.clear()
    unsynced.append(segments.has_unsynced)
    assert (unsynced, segments.starts) == ([False, False, True, False, True, False, True], ())


def test_one_mebibyte_is_written_again_at_a_time() -> None:
    disk = SimulatedDisk()
    segments = SegmentedFile(disk, "log", 4 << 20)
    segments.write(0, bytes(3 << 20))
    steps: list[Step] = []
    disk.on_step = steps.append
    segments.write_again(1, (2 << 20) + 2)
    assert [step.size for step in steps] == [1 << 20, 1 << 20, 1]


def test_a_segment_whose_size_cannot_be_synced_is_closed() -> None:
    disk = SimulatedDisk()

    def fail(step: Step) -> None:
        if step.kind == "sync":
            raise OSError(5, "Input/output error")

    disk.on_step = fail
    segments = _loaded(disk)
    with pytest.raises(OSError, match="Input/output error"):
        segments.write(0, b"x")
    no_open_file(disk)
    assert (segments.starts, segments.has_unsynced) == ((), False)


@pytest.mark.parametrize(("cut_at", "synced"), [(None, [32, 48]), (32, [32, 48]), (16, [32]), (0, [16])])
def test_only_a_segment_that_may_be_empty_is_synced_before_the_next_one_is_created(
    cut_at: int | None, synced: list[int]
) -> None:
    """The last one of a process that was killed is, unless it was removed."""
    disk = SimulatedDisk()
    before = _loaded(disk)
    for start in (0, 16, 32):
        before.write(start, b"x")
    disk.crash_process()
    segments = _loaded(disk)
    if cut_at is not None:
        segments.cut(cut_at)
    steps: list[Step] = []
    disk.on_step = steps.append
    segments.write(segments.capacity_end, b"y")
    assert [int(step.path[-20:]) for step in steps if step.kind == "sync"] == synced
    steps.clear()
    segments.write(segments.capacity_end, b"z")
    assert [step.kind for step in steps] == ["create", "sync", "write"], "the one before has its size"


@pytest.mark.parametrize(("position", "starts", "is_synced"), [(33, 3, False), (32, 3, False), (31, 2, True)])
def test_a_cut_that_removes_a_segment_changes_the_names(position: int, starts: int, is_synced: bool) -> None:
    segments = _loaded(SimulatedDisk())
    for start in (0, 16, 32):
        segments.write(start, b"x")
    segments.sync()
    segments.cut(position)
    assert len(segments.starts) == starts
    assert segments.take_unsynced().directory == ("log" if is_synced else None)

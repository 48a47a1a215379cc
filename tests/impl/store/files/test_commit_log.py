"""Tests the commit log alone: places, fillers, store times, and where a scan goes on after damage.

Source: docs/reference/protocol/storing.md, "Commit log" and "Damaged files".
"""

from itertools import islice

import pytest

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.segments import SegmentedFile

NOISE = b"\xff"
SEARCHED = 1 << 16
"""The number of bytes that a search reads at a time."""


def _log(segment_bytes: int = 512) -> CommitLog:
    return CommitLog(SegmentedFile(SimulatedDisk(), "log", segment_bytes))


def _draft(body: bytes = b"body", topic: str = "T") -> bytearray:
    return record.encode(Message(topic, body))


SIZE = len(_draft())


def _record(position: int, body: bytes = b"body") -> bytes:
    draft = _draft(body)
    record.place(draft, 0, position, 1)
    return bytes(draft)


def _append(log: CommitLog, *bodies: bytes, now_ms: int = 1) -> list[int]:
    places = [log.stage([_draft(body)], number, now_ms) for number, body in enumerate(bodies)]
    log.write_staged()
    return places


def _scanned(log: CommitLog, position: int = 0) -> list[tuple[int, bytes | None]]:
    found = [(end, stored.message.body if stored else None) for end, stored in islice(log.scan(position), 99)]
    assert len(found) < 99, "the scan goes on and on"
    return found


def _alter(log: CommitLog, position: int, data: bytes) -> None:
    log.segments.write(position, data)


def test_records_follow_one_another_and_a_filler_ends_a_segment() -> None:
    log = _log(2 * SIZE + record.FILLER_BYTES)
    assert _append(log, b"aaaa", b"bbbb", b"cccc") == [0, SIZE, 2 * SIZE + 8]
    assert _scanned(log) == [
        (SIZE, b"aaaa"),
        (2 * SIZE, b"bbbb"),
        (2 * SIZE + 8, None),
        (3 * SIZE + 8, b"cccc"),
    ]
    assert (log.end, log.last_record, log.needed_from) == (3 * SIZE + 8, 2 * SIZE + 8, 3 * SIZE + 8)
    assert log.read(2 * SIZE, 100) == record.filler(8)


def test_a_record_and_its_filler_need_one_byte_less_than_is_left() -> None:
    log = _log(2 * SIZE + record.FILLER_BYTES - 1)
    assert _append(log, b"aaaa", b"bbbb") == [0, 2 * SIZE + 7]
    assert log.read(SIZE, 8) == record.filler(SIZE + 7)


def test_the_largest_records_leave_room_for_a_filler() -> None:
    log = _log(3 * SIZE + record.FILLER_BYTES)
    assert log.record_bytes_max == 3 * SIZE
    assert log.stage([_draft(), _draft(), _draft()], 7, 1) == 0
    log.write_staged()
    assert [stored.queue_offset for _, stored in log.scan(0) if stored] == [7, 8, 9]
    with pytest.raises(ValueError, match=rf"3 record\(s\) of {3 * SIZE + 1} bytes, {3 * SIZE} fit a segment"):
        log.stage([_draft(), _draft(), _draft(b"bodyx")], 0, 1)


def test_a_filler_at_the_end_of_the_log_does_not_belong_to_it() -> None:
    log = _log(2 * SIZE)
    _append(log, b"aaaa")
    _alter(log, SIZE, record.filler(SIZE))
    assert _scanned(log) == [(SIZE, b"aaaa")]
    _alter(log, 2 * SIZE, b"x")  # the next segment
    assert _scanned(log) == [(SIZE, b"aaaa"), (2 * SIZE, None)]
    _alter(log, SIZE, record.filler(SIZE - 1))
    assert _scanned(log) == [(SIZE, b"aaaa")]


def test_a_stored_record_keeps_its_place_after_a_filler() -> None:
    log = _log()
    _append(log, b"aaaa")
    log.stage_stored(512, _record(512, b"bbbb"), 77)
    log.write_staged()
    assert log.read(SIZE, 8) == record.filler(512 - SIZE)
    assert (log.end, log.last_record, log.store_timestamp_ms) == (512 + SIZE, 512, 77)
    assert _scanned(log) == [(SIZE, b"aaaa"), (512, None), (512 + SIZE, b"bbbb")]


def test_an_empty_log_begins_at_the_position_of_the_first_stored_record() -> None:
    log = _log()
    log.stage_stored(1024, _record(1024), 1)
    log.write_staged()
    assert (log.begin, log.end) == (1024, 1024 + SIZE)


def test_nothing_is_in_the_log_before_staged_records_are_written() -> None:
    log = _log()
    assert [log.stage([_draft()], 0, 5), log.stage([_draft()], 1, 5)] == [0, SIZE]
    assert (log.end, log.last_record, log.store_timestamp_ms, log.staged_timestamp_ms) == (0, None, 0, 5)
    log.write_staged()
    log.write_staged()
    assert (log.end, log.last_record, log.store_timestamp_ms) == (2 * SIZE, SIZE, 5)


def test_more_than_one_mebibyte_is_not_staged() -> None:
    log = _log(4 << 20)
    log.stage([_draft(bytes((1 << 20) - SIZE + 4))], 0, 1)
    log.stage([_draft(b"")], 1, 1)
    assert log.end == 0
    log.stage([_draft()], 2, 1)
    assert log.end == (1 << 20) + SIZE - 4


def test_store_times_never_decrease_and_go_on_at_the_pace_of_a_clock_that_was_set_back() -> None:
    log, times = _log(4096), []
    for now_ms in (1000, 400, 500, 1099, 1700, 1699, 1100, 1700, 1701, 2100):
        _append(log, b"body", now_ms=now_ms)
        times.append(log.store_timestamp_ms)
    assert times == [1000, 1000, 1100, 1699, 1700, 1700, 1700, 1700, 1701, 2100]


def test_a_clock_that_has_reached_the_last_store_time_counts_again() -> None:
    log, times = _log(4096), []
    for now_ms in (1000, 400, 1000, 900, 1050):
        _append(log, b"body", now_ms=now_ms)
        times.append(log.store_timestamp_ms)
    assert times == [1000, 1000, 1000, 1000, 1050]


@pytest.mark.parametrize(
    ("position", "size", "found"),
    [
        (0, SIZE, True),
        (-1, SIZE, False),
        (0, 90, False),
        (0, 91, True),
        (SIZE, SIZE, True),
    ],
)
def test_a_record_is_only_read_with_a_possible_place_and_size(position: int, size: int, found: bool) -> None:
    log = _log()
    _append(log, b"aaaa", b"bbbb")
    assert log.read_record(position, size) == (log.read(position, size) if found else b"")


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1])
def test_a_large_size_is_first_compared_with_that_of_the_record(size: int) -> None:
    log = _log(1 << 20)
    _append(log, b"small", bytes(size - SIZE + 4))
    assert len(log.read_record(SIZE + 1, size)) == size
    assert len(log.read_record(0, size)) == (size if size <= 1 << 16 else 0)


def test_a_damaged_record_is_left_out_and_reported_once() -> None:
    log, reported = _log(), list[tuple[int, int]]()
    _append(log, b"aaaa", b"bbbb", b"cccc")
    log.on_damage = lambda begin, end: reported.append((begin, end))
    _alter(log, SIZE + 88, NOISE)
    expected = [(SIZE, b"aaaa"), (2 * SIZE, None), (3 * SIZE, b"cccc")]
    assert _scanned(log) == _scanned(log) == expected
    assert reported == [(SIZE, 2 * SIZE)]
    assert [log.is_damaged(at) for at in (SIZE - 1, SIZE, 2 * SIZE - 1, 2 * SIZE)] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("size", [b"\0\0\0\0", b"\xff\xff\xff\xff", (SIZE + 1).to_bytes(4, "big")])
def test_the_next_record_is_found_without_the_size_of_the_damaged_one(size: bytes) -> None:
    log = _log()
    _append(log, b"aaaa", b"bbbb", b"cccc")
    _alter(log, SIZE, size)
    assert _scanned(log) == [(SIZE, b"aaaa"), (2 * SIZE, None), (3 * SIZE, b"cccc")]


def test_damage_at_the_end_goes_up_to_the_end_that_is_known() -> None:
    log = _log()
    _append(log, b"aaaa", b"bbbb")
    _alter(log, SIZE + 88, NOISE)
    assert _scanned(log) == [(SIZE, b"aaaa"), (2 * SIZE, None)]
    log.end = SIZE
    again = CommitLog(log.segments)
    assert _scanned(again) == [(SIZE, b"aaaa")], "nothing says that there was more"
    again.known_end = SIZE + 1
    assert _scanned(again) == [(SIZE, b"aaaa"), (SIZE + 1, None)]


def test_what_a_body_contains_is_not_the_end_of_the_damage() -> None:
    """The size of the damaged record is right, so its body is not searched for a record or filler."""
    log = _log()
    room = 512 - (88 + 10)
    _append(log, NOISE * 10 + record.filler(room) + NOISE * 10, b"next")
    _alter(log, 88, b"\0")
    _alter(log, 512, b"x")  # so that a filler can end the segment
    size = SIZE + 24
    assert _scanned(log) == [(size, None), (size + SIZE, b"next")]


@pytest.mark.parametrize("segment_bytes", [4 * SEARCHED, SEARCHED + 100])
@pytest.mark.parametrize("begin", [*range(SEARCHED - 9, SEARCHED + 2), SEARCHED + 100, 2 * SEARCHED + 192])
def test_a_record_after_much_damage_is_found_wherever_it_begins(begin: int, segment_bytes: int) -> None:
    log = _log(segment_bytes)
    for start in range(0, begin, segment_bytes):
        _alter(log, start, NOISE * min(begin - start, segment_bytes))
    data = _record(begin)
    if begin % segment_bytes + len(data) > segment_bytes:
        begin = segment_bytes
        data = _record(begin)
    _alter(log, begin, data)
    assert log.next_whole(0) == begin
    log.known_end = begin + len(data)
    assert _scanned(log) == [(begin, None), (begin + len(data), b"body")]


def test_blank_parts_of_the_log_are_passed_over() -> None:
    log = _log(3 * SEARCHED)
    begin = 2 * SEARCHED + 7
    _alter(log, begin, _record(begin))
    assert log.next_whole(0) == begin
    assert log.next_whole(begin + 1) is None
    assert log.next_whole(3 * SEARCHED) is None


def test_a_record_that_is_written_again_is_no_longer_damaged() -> None:
    log = _log()
    _append(log, b"aaaa", b"bbbb", b"cccc", b"dddd")
    for number in (1, 2):
        log.mark_damaged(number * SIZE, (number + 1) * SIZE)
    assert [body for _, body in _scanned(log)] == [b"aaaa", None, None, b"dddd"]
    log.replace_record(2 * SIZE, _record(2 * SIZE, b"CCCC"))
    assert [body for _, body in _scanned(log)] == [b"aaaa", None, b"CCCC", b"dddd"]
    log.replace_record(SIZE, _record(SIZE, b"BBBB"))
    assert [body for _, body in _scanned(log)] == [b"aaaa", b"BBBB", b"CCCC", b"dddd"]


def test_damage_that_ends_with_what_is_known_is_passed_over_as_a_whole() -> None:
    """The last known record is damaged, and whole ones follow: its body is not searched either."""
    log = _log()
    _append(log, NOISE * 10 + record.filler(512 - (88 + 10)) + NOISE * 10, b"next")
    _alter(log, 88, b"\0")
    _alter(log, 512, b"x")  # so that a filler can end the segment
    size = SIZE + 24
    again = CommitLog(log.segments)
    again.known_end = size
    assert _scanned(again) == [(size, None), (size + SIZE, b"next")]


@pytest.mark.parametrize(("size", "reads"), [(1 << 16, [1 << 16]), ((1 << 16) + 1, [8, (1 << 16) + 1])])
def test_a_record_of_64_kib_is_read_at_once(
    size: int, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, sizes = _log(1 << 20), list[int]()
    _append(log, bytes(size - SIZE + 4))
    read = log.segments.read

    def noted(position: int, count: int) -> bytes:
        sizes.append(count)
        return read(position, count)

    monkeypatch.setattr(log.segments, "read", noted)
    assert len(log.read_record(0, size)) == size
    assert sizes == reads


def test_only_the_magic_makes_the_rest_of_a_segment_a_filler() -> None:
    log, reported = _log(2 * SIZE + record.FILLER_BYTES), list[tuple[int, int]]()
    log.on_damage = lambda begin, end: reported.append((begin, end))
    _append(log, b"aaaa", b"bbbb", b"cccc")
    _alter(log, 2 * SIZE + 4, b"?")
    again = CommitLog(log.segments)
    assert _scanned(again) == [(SIZE, b"aaaa"), (2 * SIZE, b"bbbb")], "this may be the end of the log"
    assert [end for end, _ in _scanned(log)] == [SIZE, 2 * SIZE, 2 * SIZE + 8, 3 * SIZE + 8]
    assert reported == [(2 * SIZE, 2 * SIZE + 8)]


def test_an_altered_size_does_not_hide_records_behind_the_known_end() -> None:
    log = _log()
    _append(log, b"aaaa", b"bbbb", b"cccc")
    _alter(log, 0, (2 * SIZE).to_bytes(4, "big"))
    again = CommitLog(log.segments)
    again.known_end = SIZE
    assert _scanned(again) == [(SIZE, None), (2 * SIZE, b"bbbb"), (3 * SIZE, b"cccc")]


@pytest.mark.parametrize("size", [b"\0\0\0\0", SIZE.to_bytes(4, "big")])
def test_damage_ends_at_the_filler_behind_it(size: bytes) -> None:
    log = _log(2 * SIZE + record.FILLER_BYTES)
    _append(log, b"aaaa", b"bbbb", b"cccc")
    _alter(log, SIZE, size)
    _alter(log, SIZE + 88, NOISE)
    assert _scanned(log) == [
        (SIZE, b"aaaa"),
        (2 * SIZE, None),
        (2 * SIZE + 8, None),
        (3 * SIZE + 8, b"cccc"),
    ]


def test_bytes_of_a_body_that_look_like_a_magic_are_one_damage_with_it() -> None:
    log, reported = _log(), list[tuple[int, int]]()
    log.on_damage = lambda begin, end: reported.append((begin, end))
    magics = b"".join(magic.to_bytes(4, "big") for magic in (*record.MAGICS, record.MAGIC_FILLER))
    _append(log, NOISE + magics + NOISE, b"next")
    _alter(log, 0, b"\0\0\0\0")
    size = SIZE - 4 + 14
    assert _scanned(log) == [(size, None), (size + SIZE, b"next")]
    assert reported == [(0, size)]

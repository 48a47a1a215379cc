"""Tests reads of a queue: how far one read goes, what it leaves out, and what it need not compare again.

Source: docs/reference/protocol/pulling.md, "Get statuses"; storing.md, "Damaged files".
"""

from dataclasses import replace

import pytest

from mqproof.impl.remoting.message import tags_code
from mqproof.impl.store import reader
from mqproof.impl.store.entry_repair import LostRecord
from mqproof.impl.store.files import record
from mqproof.impl.store.files.consume_queue import Unit
from mqproof.impl.store.results import GetResult, GetStatus
from mqproof.impl.store.verified_entries import BLOCK_ENTRIES, VerifiedEntries
from tests.impl.store.site import SMALL, Site, message

LARGE = replace(
    SMALL, commit_log_segment_bytes=1 << 20, consume_queue_segment_bytes=20_000, index_entries=5000
)
A = frozenset({tags_code("A")})
SIZE = len(record.encode(message("m000", TAGS="A")))


def _written(count: int, every: int = 2) -> Site:
    """Write m000, m001 and so on; every second one has the tag A, or every third one and so on."""
    site = Site(LARGE)
    site.open()
    for number in range(count):
        site.store.append(message(f"m{number:03d}", TAGS="B" if number % every else "A"))
    site.store.dispatch()
    return site


def _offsets(found: GetResult) -> list[int]:
    return [record.decode(data).queue_offset for data in found.records]


def _wants(*numbers: int) -> set[str]:
    return {f"m{number:03d}" for number in numbers}


@pytest.mark.parametrize("tags", [None, frozenset({tags_code("A"), tags_code("B")})])
def test_a_read_that_selects_goes_on_behind_what_it_does_not_return(tags: frozenset[int] | None) -> None:
    site = _written(20)
    selects = lambda data: record.decode(data).message.body.decode() in _wants(3, 7, 12)  # noqa: E731
    found = site.store.get("T", 0, 0, 2, tag_codes=tags, selects=selects)
    assert (_offsets(found), found.next_offset) == ([3, 7], 8)
    found = site.store.get("T", 0, 8, 2, tag_codes=tags, selects=selects)
    assert (_offsets(found), found.next_offset, found.status) == ([12], 20, GetStatus.FOUND)
    found = site.store.get("T", 0, 13, 2, tag_codes=tags, selects=selects)
    assert (found.records, found.next_offset, found.status) == ((), 20, GetStatus.NO_MATCHED_MESSAGE)


@pytest.mark.parametrize("tags", [None, A])
@pytest.mark.parametrize(("max_bytes", "count"), [(1, 1), (SIZE, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2)])
def test_a_read_has_so_many_bytes_and_at_least_one_record(
    max_bytes: int, count: int, tags: frozenset[int] | None
) -> None:
    site = _written(10, every=1)
    found = site.store.get("T", 0, 0, 5, max_bytes, tag_codes=tags)
    assert (_offsets(found), found.next_offset) == (list(range(count)), count)


@pytest.mark.parametrize("tags", [None, A])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_read_has_so_many_records(count: int, tags: frozenset[int] | None) -> None:
    found = _written(10, every=1).store.get("T", 0, 3, count, tag_codes=tags)
    assert (_offsets(found), found.next_offset) == (list(range(3, 3 + count)), 3 + count)


@pytest.mark.parametrize(("count", "next_offset"), [(1, 4), (8, 6)])
def test_a_read_visits_so_many_entries_or_as_many_as_it_may_return(
    count: int, next_offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_UNITS_LOOKED_AT", 4)
    site = _written(6, every=9)
    found = site.store.get("T", 0, 0, count, selects=lambda _: False)
    assert (found.status, found.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, next_offset)
    found = site.store.get("T", 0, 1, count, tag_codes=A)
    assert (found.status, found.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, min(next_offset + 1, 6))


@pytest.mark.parametrize("tags", [None, A])
def test_a_read_whose_records_are_all_damaged_says_so(tags: frozenset[int] | None) -> None:
    site = _written(3, every=1)
    for number in range(3):
        site.store._log.segments.write(number * SIZE + 88, b"?")
    found = site.store.get("T", 0, 0, tag_codes=tags)
    assert (found.status, found.next_offset) == (GetStatus.MESSAGE_WAS_REMOVING, 3)


@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [
        (1, GetStatus.OFFSET_TOO_SMALL, 2),
        (2, GetStatus.FOUND, 4),
        (4, GetStatus.OFFSET_OVERFLOW_ONE, 4),
        (5, GetStatus.OFFSET_OVERFLOW_BADLY, 4),
    ],
)
def test_the_status_of_a_read_at_each_limit(offset: int, status: GetStatus, next_offset: int) -> None:
    site = _written(4)
    queue = site.store._queues.find("T", 0)
    assert queue is not None
    queue.first = 2
    found = site.store.get("T", 0, offset)
    assert (found.status, found.next_offset, found.min_offset, found.max_offset) == (
        status,
        next_offset,
        2,
        4,
    )


def test_entries_that_were_compared_are_not_compared_again_until_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 2 * BLOCK_ENTRIES
    site = _written(count + 50, every=10)
    reads: list[int] = []
    read = site.store._log.read_record

    def counted(position: int, size: int) -> bytes:
        reads.append(position // SIZE)
        return read(position, size)

    monkeypatch.setattr(site.store._log, "read_record", counted)

    def get() -> list[int]:
        reads.clear()
        assert _offsets(site.store.get("T", 0, 0, 99, tag_codes=A)) == list(range(0, count + 50, 10))
        return list(reads)

    assert get() == list(range(count + 50))
    again = get()
    assert again == [*range(0, count, 10), *range(count, count + 50)], "the last block is not whole"
    queue = site.store._queues.find("T", 0)
    assert queue is not None
    queue.write(5, [Unit(5 * SIZE, SIZE, 7)])
    assert set(range(BLOCK_ENTRIES)) <= set(get())
    assert get() == again


@pytest.mark.parametrize(
    ("begin", "end", "verified"),
    [
        (0, 300, [True, True, True]),
        (0, 299, [True, True, False]),
        (1, 300, [False, True, True]),
        (100, 200, [False, True, False]),
        (101, 199, [False, False, False]),
    ],
)
def test_only_whole_blocks_of_compared_entries_are_remembered(
    begin: int, end: int, verified: list[bool]
) -> None:
    queue = _written(3 * BLOCK_ENTRIES).store._queues.find("T", 0)
    assert queue is not None
    entries = VerifiedEntries()
    entries.add(queue, begin, end)
    assert [entries.has(queue, number) for number in range(3)] == verified


@pytest.mark.parametrize("tags", [None, A, frozenset({-1})])
def test_a_read_describes_a_lost_record_as_its_entry_does(tags: frozenset[int] | None) -> None:
    site = _written(5, every=1)
    site.store._log.segments.write(3 * SIZE + 88, b"?")
    for _ in range(2):
        site.store.get("T", 0, 0, tag_codes=tags)
        assert site.store.lost_records() == (LostRecord("T", 0, 3, 3 * SIZE, SIZE),)


@pytest.mark.parametrize("tags", [None, A])
def test_a_read_ends_before_a_record_that_is_too_large_also_if_the_next_one_is_not(
    tags: frozenset[int] | None,
) -> None:
    site = Site(LARGE)
    site.open()
    for name in ("m0", "m1" * 50, "m2"):
        site.store.append(message(name, TAGS="A"))
    site.store.dispatch()
    found = site.store.get("T", 0, 0, 5, 3 * SIZE, tag_codes=tags)
    assert (_offsets(found), found.next_offset) == ([0], 1)

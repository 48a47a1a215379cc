"""Tests `store verify` on an undamaged store and with each kind of damage.

Method: write a store of several segments, damage one thing, examine the store.
"""

import random
import re
import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from mqproof.impl.examine.contents import contents
from mqproof.impl.examine.directory import open_directory
from mqproof.impl.examine.verdict import Verdict
from mqproof.impl.examine.verify import verify
from mqproof.impl.remoting.message import SYS_TRANSACTION_PREPARED, SYS_TRANSACTION_ROLLBACK
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.store.delay import scheduled
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from tests.impl.store.site import Site, message

HOUR_MS = 3_600_000
TOPICS_OF_OTHERS = b'{"dataVersion":{"counter":1,"timestamp":1},"topicConfigTable":{"T":{"topicName":"T"}}}'
LOG, QUEUE, INDEX = "store/commitlog", "store/consumequeue/T/0", "store/index"


def written() -> Site:
    """Write two queues, a delayed message and transactions in several segments each, with a clean exit."""
    site = Site()
    store = site.open()
    for number in range(8):
        site.append(f"m{number}", f"n{number}")
        site.append(f"o{number}", queue_id=1)
        store.append(message(f"t{number}", TAGS="TagA", KEYS=f"k{number} all"))
        store.dispatch()
        site.clock.advance_ms(HOUR_MS)
    store.append(scheduled(message("d", DELAY="3"), site.config.delay_levels_ms))
    store.append(structs.replace(message("p"), sys_flag=SYS_TRANSACTION_PREPARED))
    store.append(structs.replace(message("r"), sys_flag=SYS_TRANSACTION_ROLLBACK))
    store.dispatch()
    site.close()
    return site


def verdict(site: Site) -> Verdict:
    return verify(open_directory(site.disk, "store", index_slots=3))


def damages(site: Site) -> list[str]:
    return verdict(site).damages


def segment(folder: str, number: int) -> str:
    size = 512 if folder == LOG else 60
    return f"{folder}/{number * size:020d}"


def poke(site: Site, path: str, offset: int, data: bytes) -> None:
    file = site.disk.open(path)
    file.write(offset, data)
    file.close()


def test_an_undamaged_store_has_no_damage_and_everything_is_counted() -> None:
    found = verdict(written())
    assert (found.damages, found.notes) == ([], [])
    assert (found.records, found.entries, found.keys) == (35, 33, 50)


def test_missing_data_that_a_killed_process_had_only_in_memory_is_no_damage() -> None:
    site = Site()
    site.open()
    for count in (1, 2, 5):
        site.append(*(f"m{count}{number}" for number in range(count)))
        site.simulated_disk.crash_process()
        found = verdict(site)
        assert found.damages == [], f"after {count} more"
        assert any("abort" in note for note in found.notes)
        site.open()


def test_examining_changes_nothing() -> None:
    site = written()
    site.simulated_disk.on_step = pytest.fail  # type: ignore[assignment]
    verdict(site)
    contents(open_directory(site.disk, "store", index_slots=3), in_use=False)


@pytest.mark.parametrize("seed", range(8))
def test_a_store_that_recovered_from_a_crash_is_never_reported_as_damaged(seed: int) -> None:
    site = Site()
    for life in range(3):
        site.open()
        for number in range(9):
            site.append(f"l{life}m{number}", queue_id=number % 2)
            if number == 4:
                site.flush()
        site.simulated_disk.crash_os(random.Random(f"{seed}{life}"))
    site.open()
    site.close()
    assert damages(site) == []


def test_an_unclean_exit_is_noted() -> None:
    site = written()
    site.open()
    site.append("a")
    site.simulated_disk.crash_process()
    found = verdict(site)
    assert "abort is there: the last exit was not clean, the next start recovers" in found.notes
    assert found.damages == []


def test_expired_data_is_not_missing() -> None:
    site = written()
    site.open()
    site.clock.advance_ms(100 * HOUR_MS)
    assert result_of(site.store.clean(manually=True)) > 3
    site.close()
    assert damages(site) == []


def _body(site: Site) -> None:
    data = read_whole(site.disk, segment(LOG, 2))
    poke(site, segment(LOG, 2), data.index(b"m") + 0, b"M")


def _remove(path: str) -> Callable[[Site], None]:
    return lambda site: site.disk.remove(path)


def _write(path: str, offset: int, data: bytes) -> Callable[[Site], None]:
    return lambda site: poke(site, path, offset, data)


def _file(path: str, data: bytes) -> Callable[[Site], None]:
    return lambda site: write_durably(site.disk, path, data)


def _lost_queue(site: Site) -> None:
    for number in range(3):
        site.disk.remove(segment("store/consumequeue/T/1", number))


def _checkpoint(change: Callable[[Checkpoint], Checkpoint]) -> Callable[[Site], None]:
    path = "store/checkpoint"
    return lambda site: write_checkpoint(site.disk, path, change(read_checkpoint(site.disk, path)))


def _count_more(known: Checkpoint) -> Checkpoint:
    assert known.queue_count is not None
    return replace(known, queue_count=replace(known.queue_count, entries=known.queue_count.entries + 5))


def _index_ahead(known: Checkpoint) -> Checkpoint:
    assert known.index is not None
    return replace(known, index=replace(known.index, position=1 << 40))


DAMAGES: dict[str, tuple[Callable[[Site], None], str]] = {
    "a size": (_write(segment(LOG, 1), 0, b"\x7f"), r"commitlog/0+512: .* at commit offset 512: record says"),
    "a magic": (
        _write(segment(LOG, 1), 4, b"\0"),
        r"commitlog/0+512: no complete record .*: magic 0x00a320a7",
    ),
    "a body": (_body, r"commitlog/0+1024: no complete record at commit offset \d+: body has CRC"),
    "a place": (_write(segment(LOG, 1), 35, b"\x07"), r"commitlog/0+512: .* record says position"),
    "a queue offset": (
        _write(segment(LOG, 1), 27, b"\x63"),
        r"consumequeue/T/0: the record at commit offset 512 says offset 99, its entry 3",
    ),
    "a segment's rest": (
        _write(segment(LOG, 1), 0, bytes(512)),
        r"commitlog/0+512: no filler at commit offset 512",
    ),
    "a lost segment": (_remove(segment(LOG, 1)), r"commitlog/0+1024: the segment before it is missing"),
    "a strange file": (_file(f"{LOG}/notes", b"x"), r"commitlog/notes: not a segment, a name of 20 digits"),
    "a short segment": (_file(segment(LOG, 50), b"x"), r"commitlog/0+25600: 1 bytes, 512 expected"),
    "an entry": (_write(segment(QUEUE, 1), 0, b"\x07"), r"consumequeue/T/0: entry 3 not at its record"),
    "entries": (_write(segment(QUEUE, 1), 0, bytes(40)), r"consumequeue/T/0: entries 3 to 4 missing"),
    "a tag": (_write(segment(QUEUE, 1), 19, b"\x07"), r"consumequeue/T/0: entry 3 with another tag code"),
    "a lost queue": (_lost_queue, r"consumequeue/T/1: missing, the log has 8 records of it"),
    "a lost queue file": (
        _remove(segment(QUEUE, 1)),
        r"consumequeue/T/0/0+120: the segment before it is missing",
    ),
    "an entry too many": (
        lambda site: site.disk.create(segment(QUEUE, 8), 60).write(0, b"\0" * 6 + b"\x07\0\0\0\0\x70"),
        r"consumequeue/T/0: entr(y|ies) 24.* without a record in the log",
    ),
    "a strange queue": (_file("store/consumequeue/T/x", b""), r"consumequeue/T/x: not a queue"),
    "an index slot": (
        lambda site: poke(site, f"{INDEX}/{site.disk.names(INDEX)[0]}", 40, bytes(12)),
        r"index/\d{17}: \d slots or entries not in their chains",
    ),
    "an index entry": (
        lambda site: poke(site, f"{INDEX}/{site.disk.names(INDEX)[0]}", 52 + 20, b"\x07"),
        r"index: keys of 1 records between commit offsets 0 and 0 missing",
    ),
    "a lost index file": (
        lambda site: site.disk.remove(f"{INDEX}/{site.disk.names(INDEX)[1]}"),
        r"index: keys of \d records between commit offsets \d+ and \d+ missing",
    ),
    "the last index file": (
        lambda site: site.disk.remove(f"{INDEX}/{site.disk.names(INDEX)[-1]}"),
        r"index: keys of \d records",
    ),
    "an index header": (
        lambda site: poke(site, f"{INDEX}/{site.disk.names(INDEX)[0]}", 35, b"\x01"),
        r"index/\d{17}: the header says \d slots",
    ),
    "a strange index file": (_file(f"{INDEX}/x", b""), r"index/x: not an index file"),
    "a checkpoint ahead": (
        lambda site: write_durably(
            site.disk, "store/checkpoint", struct.pack(">qqq", 1 << 50, 0, 0).ljust(4096, b"\0")
        ),
        r"checkpoint: the log time 1125899906842624 is later than any record's",
    ),
    "a count too great": (
        _checkpoint(_count_more),
        r"checkpoint: 38 queue entries up to commit offset \d+, 33 are there",
    ),
    "a position ahead": (
        _checkpoint(_index_ahead),
        r"checkpoint: the index goes to commit offset 1099511627776, the log to \d+",
    ),
    "no checkpoint": (_remove("store/checkpoint"), "checkpoint: missing after a clean exit"),
    "an offset ahead": (
        _file("store/config/consumerOffset.json", b'{"offsetTable":{"T@G":{0:25,1:8}}}'),
        r"config/consumerOffset.json: group G is at 25 of queue 0 of T, which ends at 24",
    ),
    "no JSON": (_file("store/config/topics.json", b"{{{"), r"config/topics.json: TopicConfigs"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_each_damage_is_reported_in_one_clear_line(what: str) -> None:
    damage, complaint = DAMAGES[what]
    site = written()
    damage(site)
    found = damages(site)
    pattern = pytest.raises(AssertionError, match=complaint)
    with pattern:
        raise AssertionError("\n".join(found))
    assert len(found) <= (4 if "index" in what or "queue" in what else 1), found


@pytest.mark.parametrize("what", ["a body", "an entry", "a tag"])
def test_damage_that_a_start_does_not_check_is_reported(what: str) -> None:
    """Recovery trusts data that its checkpoint covers."""
    damage, complaint = DAMAGES[what]
    site = written()
    damage(site)
    site.open()
    assert site.recovery.scanned_from > 1024
    site.append("after")
    site.close()
    (found,) = damages(site)
    assert re.search(complaint, found)


def test_damage_in_the_middle_of_the_log_does_not_hide_later_damage() -> None:
    site = written()
    poke(site, segment(LOG, 1), 4, b"\0")
    poke(site, segment(LOG, 4), 4, b"\0")
    assert [line.partition(":")[0] for line in damages(site)] == [
        "commitlog/00000000000000000512",
        "commitlog/00000000000000002048",
    ]


def test_data_that_a_released_broker_leaves_after_a_cut_is_a_note() -> None:
    """A released broker does not zero the data that it cuts off."""
    site = written()
    end = site.store.log_end
    path = segment(LOG, end // 512)
    poke(site, path, end % 512, b"stale")
    found = verdict(site)
    assert found.damages == []
    assert [note for note in found.notes if "no queue points there" in note]


def test_a_torn_record_that_a_queue_points_at_is_damage() -> None:
    site = written()
    site.open()
    (last,) = site.append("torn")
    site.close()
    start = last.commit_offset % 512
    poke(site, segment(LOG, last.commit_offset // 512), start + 100, bytes(max(1, last.size - 100)))
    found = damages(site)
    assert [line for line in found if f"no complete record at commit offset {last.commit_offset}" in line]


def test_a_directory_that_is_not_a_store_is_refused() -> None:
    with pytest.raises(
        StoreError, match="store: not a store, a directory with commitlog/ or dledger-ID/ expected"
    ):
        open_directory(Site().disk, "store")


def test_the_contents_are_reported_correctly() -> None:
    site = written()
    write_durably(site.disk, "store/config/consumerOffset.json", b'{"offsetTable":{"T@G":{0:5}}}')
    found = contents(open_directory(site.disk, "store", index_slots=3), in_use=True)
    assert (found.log_begin, found.log_end, found.in_use, found.is_clean) == (
        0,
        site.store.log_end,
        True,
        True,
    )
    assert [(queue.topic, queue.queue_id, queue.min_offset, queue.max_offset) for queue in found.queues] == [
        ("SCHEDULE_TOPIC_XXXX", 2, 0, 1),
        ("T", 0, 0, 24),
        ("T", 1, 0, 8),
    ]
    assert sum(file.entries for file in found.index) == 50
    assert found.checkpoint is not None
    assert found.checkpoint.counted_entries == 33
    assert [(progress.group, progress.offset) for progress in found.offsets] == [("G", 5)]
    assert found.segments[0].first_store_ms == 1_700_000_000_000


def test_a_nonstandard_number_of_slots_must_be_given() -> None:
    site = written()
    opened = open_directory(site.disk, "store")
    assert "give the number with --index-slots" in opened.problems[0]


@pytest.mark.parametrize("flushed", [True, False])
def test_records_of_a_deleted_topic_are_a_note_of_one_line(flushed: bool) -> None:
    site = written()
    site.open()
    site.store.delete_topic("T")
    site.append("new")
    if flushed:
        site.close()
    found = verdict(site)
    assert found.damages == []
    assert found.notes[0] == "32 records are of topics that were deleted"


def test_a_topic_recreated_by_a_released_broker_is_no_damage() -> None:
    site = written()
    site.open()
    site.store.delete_topic("T")
    site.append("new")
    site.close()
    site.disk.remove("store/config/deletedTopics.json")
    site.disk.remove("store/config/deletedTopics.json.bak")
    write_durably(site.disk, "store/config/topics.json", TOPICS_OF_OTHERS)
    found = verdict(site)
    assert "24 records are of topics that were deleted" in found.notes
    # A queue without later messages cannot be classified; a queue of a topic that exists may be missing.
    assert found.damages == ["consumequeue/T/1: missing, the log has 8 records of it"]

"""Tests repairs of queue entries and lost records one by one; test_damage.py reads whole damaged stores.

Source: docs/reference/protocol/storing.md, "Damaged files".
"""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mqproof.impl.remoting.message import SYS_TRANSACTION_PREPARED, Message, StoredMessage, tags_code
from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.store import damage, entry_repair, reader
from mqproof.impl.store.damage import Damage, DamageKind, DamageReport, Outcome
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.files import record
from mqproof.impl.store.files.consume_queue import ConsumeQueue, Unit
from mqproof.impl.store.reader import find_records
from mqproof.impl.store.verified_entries import VerifiedEntries
from tests.impl.store.site import SMALL, Site, bodies, message

LARGE = replace(SMALL, commit_log_segment_bytes=4096, consume_queue_segment_bytes=2000, index_entries=500)
WRONG = Unit(1, 2, 3)
SIZE = len(record.encode(message("m0")))
QUEUE_REPAIRED = DamageKind.QUEUE_ENTRY, Outcome.REPAIRED
RECORD_SKIPPED = DamageKind.RECORD, Outcome.SKIPPED


def _written(count: int = 6, *, old: int = 0) -> Site:
    """Write messages m0 to m5; `old` ones of the topic's name before, whose deletion is not recorded."""
    site = Site(LARGE)
    site.open()
    if old:
        site.append(*(f"o{number}" for number in range(old)))
        site.store.delete_topic("T")
    site.append(*(f"m{number}" for number in range(count)))
    site.flush()
    if old:
        site.close()
        for name in ("deletedTopics.json", "deletedTopics.json.bak"):
            site.disk.remove(f"store/config/{name}")
        site.open()
    return site


def _queue(site: Site, topic: str = "T", queue_id: int = 0) -> ConsumeQueue:
    queue = site.store._queues.find(topic, queue_id)
    assert queue is not None
    return queue


def _body(site: Site, offset: int, topic: str = "T") -> str | None:
    unit = site.store.unit(topic, 0, offset)
    if unit is None:
        return None
    return record.decode(site.store._log.read(unit.commit_offset, unit.size)).message.body.decode()


def _break_record(site: Site, offset: int) -> Unit:
    """Change the body of a record; return its entry."""
    (unit,) = _queue(site).units(offset, 1)
    site.store._log.segments.write(unit.commit_offset + 88, b"?")
    return unit


@pytest.mark.parametrize("old", [0, 6])
@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_an_entry_is_searched_for_behind_the_nearest_sound_one(first: int, old: int) -> None:
    site = _written(old=old)
    queue = _queue(site)
    queue.first = first
    queue.write(4, [WRONG])
    assert _body(site, 4) == "m4"
    assert queue.units(3, 2) == [Unit((old + at) * SIZE, SIZE, 0) for at in (3, 4)]
    assert site.store.damage.counts == {QUEUE_REPAIRED: 1}


@pytest.mark.parametrize("wrong", [[4], [3, 4], [0], [5], [0, 1, 2], [3, 4, 5], list(range(6))])
def test_all_wrong_entries_beside_the_one_that_is_read_are_repaired(wrong: list[int]) -> None:
    site = _written()
    queue = _queue(site)
    for offset in wrong:
        queue.write(offset, [WRONG])
    assert site.store.unit("T", 0, wrong[-1]) == Unit(wrong[-1] * SIZE, SIZE, 0)
    assert [queue.units(offset, 1)[0].commit_offset for offset in range(6)] == [at * SIZE for at in range(6)]
    assert site.store.damage.counts == {QUEUE_REPAIRED: len(wrong)}
    assert bodies(site.store) == [f"m{number}" for number in range(6)]


@pytest.mark.parametrize(("wrong", "found"), [([2, 3], "m3"), ([1, 2, 3], "o3")])
def test_only_so_many_neighbours_are_examined(
    wrong: list[int], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a sound one among them, the search begins at the begin of the log."""
    monkeypatch.setattr(entry_repair, "_NEIGHBOURS_MAX", 2)
    site = _written(old=6)
    for offset in wrong:
        _queue(site).write(offset, [WRONG])
    assert _body(site, 3) == found


def test_records_of_other_queues_and_those_without_an_offset_are_passed_over() -> None:
    site = Site(LARGE)
    site.open()
    site.append("m0")
    site.store.append(Message("T", b"prepared", queue_id=0, sys_flag=SYS_TRANSACTION_PREPARED))
    site.append("u0", "u1", topic="U")
    site.append("q0", "q1", queue_id=1)
    site.append("m1", "m2")
    site.flush()
    for offset in range(2):
        _queue(site).write(offset, [WRONG])
    assert [_body(site, offset) for offset in range(3)] == ["m0", "m1", "m2"]


@pytest.mark.parametrize("fails", ["write", "begin"])
def test_a_failure_while_an_entry_is_repaired_makes_the_store_read_only(fails: str) -> None:
    site = _written()
    queue = _queue(site)
    queue.write(2, [WRONG])

    def fail(step: Step) -> None:
        raise OSError(5, f"{step.kind} of {step.path}")

    if fails == "write":
        site.simulated_disk.on_step = fail
    assert bodies(site.store) == [f"m{number}" for number in range(6)]
    assert ("disk error" in site.store.failure) is (fails == "write")
    assert site.store.damage.counts == {QUEUE_REPAIRED: 1}
    assert queue.units(2, 1) == [WRONG if fails == "write" else Unit(2 * SIZE, SIZE, 0)]


def test_the_log_names_the_entry_before_and_after_its_repair(caplog: pytest.LogCaptureFixture) -> None:
    site = _written()
    _queue(site).write(2, [WRONG])
    with caplog.at_level(logging.WARNING):
        site.store.unit("T", 0, 2)
        site.store.unit("T", 0, 2)
    assert caplog.messages == [
        "damaged queue entry at store/consumequeue/T/0, offset 2: it is 2 bytes at 1 with code 3,"
        f" its record is {SIZE} bytes at {2 * SIZE} with code 0: repaired"
    ]


def test_the_log_names_the_place_of_a_lost_record(caplog: pytest.LogCaptureFixture) -> None:
    site = _written()
    unit = _break_record(site, 1)
    with caplog.at_level(logging.WARNING):
        assert (site.store.unit("T", 0, 1), site.store.unit("T", 0, 1)) == (None, None)
    assert caplog.messages[1:] == [
        f"damaged record at store/commitlog/{0:020d}, commit offset {unit.commit_offset} (topic T, queue 0,"
        f" offset 1): {record.OTHER_BODY}: skipped"
    ]


def test_a_record_before_the_begin_of_the_log_is_not_reported() -> None:
    site = Site(replace(LARGE, commit_log_segment_bytes=256))
    site.open()
    site.append(*(f"m{number}" for number in range(6)))
    assert site.store._log.segments.starts[:2] == (0, 256)
    site.store._log.segments.detach_before(256)
    assert site.store.unit("T", 0, 0) is None
    assert len(site.store.damage) == 0
    _queue(site).write(5, [Unit(-1, SIZE, 0)])
    _break_log(site, 5)
    assert site.store.unit("T", 0, 5) is None
    assert site.store.damage.counts[RECORD_SKIPPED] == 1


def _break_log(site: Site, number: int) -> None:
    """Change the body of the record with that queue offset."""
    for _, stored in site.store._log.scan(site.store.log_begin):
        if stored is not None and stored.queue_offset == number:
            site.store._log.segments.write(stored.commit_offset + 88, b"?")


def test_so_many_lost_records_are_remembered_the_oldest_is_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entry_repair, "_LOST_MAX", 2)
    site = _written()
    for offset in (4, 1, 2):
        _break_record(site, offset)
        assert site.store.unit("T", 0, offset) is None
    assert [lost.queue_offset for lost in site.store.lost_records()] == [1, 2]


def test_a_lost_record_is_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    site = _written()
    _break_record(site, 1)
    assert _body(site, 1) is None
    scans: list[int] = []

    def scan(position: int) -> Iterator[tuple[int, None]]:
        scans.append(position)
        return iter(())

    monkeypatch.setattr(site.store._log, "scan", scan)
    assert _body(site, 1) is None
    site.store._log.segments.write(SIZE + 88, b"m")
    assert (_body(site, 1), scans) == ("m1", [])


@pytest.mark.parametrize(("queue_offset", "kept"), [(1, True), (2, False), (7, False), (-1, False)])
def test_a_record_has_its_queue_offset_unless_another_one_has_it(queue_offset: int, kept: bool) -> None:
    site = _written()
    stored = record.decode(site.store._log.read(SIZE, SIZE))
    found = site.store._repair.has(_queue(site), queue_offset, stored)
    assert found is kept
    is_taken = queue_offset == 2
    assert site.store.damage.counts.get(RECORD_SKIPPED, 0) == is_taken


@pytest.mark.parametrize("offset", [-1, 0, 1, 2, 5, 6])
def test_only_entries_from_the_first_to_the_last_are_read(offset: int) -> None:
    site = _written()
    _queue(site).first = 2
    assert (_body(site, offset) is not None) is (2 <= offset < 6)


# The report of damage.


def test_each_place_is_logged_once_for_each_outcome(caplog: pytest.LogCaptureFixture) -> None:
    report = DamageReport()
    with caplog.at_level(logging.WARNING):
        for outcome in (Outcome.SKIPPED, Outcome.SKIPPED, Outcome.REPAIRED, Outcome.SKIPPED):
            report.add(Damage(DamageKind.QUEUE_ENTRY, "here", "it is wrong", outcome))
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("ERROR", "damaged queue entry at here: it is wrong: skipped"),
        ("WARNING", "damaged queue entry at here: it is wrong: repaired"),
        ("ERROR", "damaged queue entry at here: it is wrong: skipped"),
    ]
    assert len(report) == 3
    assert report.counts == {
        (DamageKind.QUEUE_ENTRY, Outcome.SKIPPED): 2,
        (DamageKind.QUEUE_ENTRY, Outcome.REPAIRED): 1,
    }


def test_the_oldest_place_is_forgotten_when_too_many_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "_PLACES_MAX", 2)
    report = DamageReport()
    counts = []
    for place in ("a", "b", "b", "a", "c", "b", "a"):
        report.add(Damage(DamageKind.RECORD, place, "", Outcome.SKIPPED))
        counts.append(len(report))
    assert counts == [1, 2, 2, 2, 3, 3, 4]


# Records that the key index suggests.


def _suggested(site: Site, *offsets: int, wanted: str = "m") -> list[str]:
    found = find_records(
        site.store._log, offsets, lambda each: each.message.body.decode() in wanted, site.store.damage
    )
    return [record.decode(data).message.body.decode() for data in found]


@pytest.mark.parametrize(("others_max", "found"), [(4, ["m0", "m4"]), (3, ["m0"])])
def test_a_search_ends_after_so_many_other_records(
    others_max: int, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_OTHERS_MAX", others_max)
    site = _written()
    assert _suggested(site, *(number * SIZE for number in range(6)), wanted="m0 m4") == found


@pytest.mark.parametrize(
    ("bytes_max", "found"), [(3 * SIZE + 1, ["m0", "m4"]), (3 * SIZE, ["m0"]), (2 * SIZE + 1, ["m0"])]
)
def test_a_search_ends_after_so_many_bytes_of_other_records(
    bytes_max: int, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_OTHERS_BYTES_MAX", bytes_max)
    site = _written()
    assert _suggested(site, *(number * SIZE for number in range(6)), wanted="m0 m4") == found


def test_suggestions_outside_the_log_are_left_out_and_wrong_ones_reported() -> None:
    site = _written()
    everything = "m0 m1 m2 m3 m4 m5"
    assert _suggested(site, -SIZE, 6 * SIZE, 5 * SIZE, 0, wanted=everything) == ["m5", "m0"]
    assert len(site.store.damage) == 0
    assert _suggested(site, 1, SIZE, wanted=everything) == ["m1"]
    assert site.store.damage.counts == {(DamageKind.INDEX_ENTRY, Outcome.SKIPPED): 1}


@pytest.mark.parametrize("wrong", [None, WRONG, Unit(0, 0, 0)])
def test_an_entry_comes_with_its_message_also_after_a_repair(wrong: Unit | None) -> None:
    site = Site(LARGE)
    site.open()
    for number in range(3):
        site.store.append(message(f"m{number}", topic=SCHEDULE_TOPIC, DELAY="1"))
    site.store.dispatch()
    queue = _queue(site, SCHEDULE_TOPIC)
    units = queue.units(0, 3)
    if wrong is not None:
        queue.write(1, [wrong])
    found = [site.store.entry(SCHEDULE_TOPIC, 0, offset) for offset in range(3)]
    assert [(each[0], each[1].message.body) for each in found if each] == [
        (unit, b"m%d" % number) for number, unit in enumerate(units)
    ]
    assert queue.units(0, 3) == units


def test_what_is_damaged_or_absent_has_no_entry() -> None:
    site = _written(2)
    _break_record(site, 1)
    found = [site.store.entry("T", 0, offset) for offset in (0, 1, 2)]
    assert [each is not None for each in found] == [True, False, False]
    assert site.store.entry("T", 9, 0) is None


# What is not done.


def test_sound_entries_are_never_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search would find the same records, but read the log for each of them."""
    site = Site(LARGE)
    site.open()
    for number in range(9):
        site.store.append(message(f"m{number}", 2, TAGS="A" if number % 2 else "B"))
        site.store.append(message(f"d{number}", 1, SCHEDULE_TOPIC, DELAY="2"))
    site.store.dispatch()

    def fail(*_: object) -> None:
        raise AssertionError("a sound entry is searched for")

    monkeypatch.setattr(site.store._repair, "record", fail)
    codes = {tags_code("A")}
    for topic, queue_id in (("T", 2), (SCHEDULE_TOPIC, 1)):
        for offset in (0, 3):
            assert len(site.store.get(topic, queue_id, offset, 5).records) == 5
            assert len(site.store.get(topic, queue_id, offset, 2, 9999, codes).records) == 2 * (topic == "T")
            assert site.store.unit(topic, queue_id, offset) is not None
            assert site.store.entry(topic, queue_id, offset) is not None


def test_a_search_ends_at_the_next_sound_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    site = _written()
    _queue(site).write(1, [WRONG])
    scanned: list[int] = []
    scan = site.store._log.scan

    def noted(position: int) -> Iterator[tuple[int, StoredMessage | None]]:
        for end, stored in scan(position):
            scanned.append(end)
            yield end, stored

    monkeypatch.setattr(site.store._log, "scan", noted)
    assert _body(site, 1) == "m1"
    assert scanned == [2 * SIZE]


@pytest.mark.parametrize("change", ["entry", "queue", "size", "nothing"])
def test_a_lost_record_is_restored_only_while_its_entry_is_the_same(change: str) -> None:
    site = _written()
    right = site.store._log.read(SIZE, SIZE)
    unit = _break_record(site, 1)
    assert site.store.unit("T", 0, 1) is None
    (lost,) = site.store.lost_records()
    if change == "entry":
        _queue(site).write(1, [Unit(unit.commit_offset, unit.size, 7)])
    elif change == "queue":
        site.store.delete_topic("T")
    elif change == "size":
        lost = lost._replace(size=SIZE - 1)
    assert site.store.restore_record(lost, right) is (change == "nothing")
    assert (site.store._log.read(SIZE, SIZE) == right) is (change == "nothing")


# How much is remembered and searched.


def test_10000_lost_records_are_remembered() -> None:
    site = _written()
    lost = site.store._repair._lost
    lost.update({(("X", number), 0): WRONG for number in range(9999)})
    for offset in (1, 2):
        _break_record(site, offset)
        assert site.store.unit("T", 0, offset) is None
        assert len(site.store.lost_records()) == 10_000
    assert site.store.lost_records()[0].queue_id == 1, "the oldest is forgotten"


def test_10000_damaged_places_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage._log, "disabled", True)
    report = DamageReport()
    for place in [*map(str, range(10_000)), "0", "10000"]:
        report.add(Damage(DamageKind.RECORD, place, "", Outcome.SKIPPED))
    assert len(report) == 10_001
    report.add(Damage(DamageKind.RECORD, "0", "", Outcome.SKIPPED))
    assert len(report) == 10_002, "it was forgotten"


def test_100000_blocks_of_compared_entries_are_remembered() -> None:
    queue, verified = _queue(_written()), VerifiedEntries()
    verified._sums = {(("X", number), 0): 0 for number in range(99_999)}
    verified.add(queue, 0, 100)
    assert (("X", 0), 0) in verified._sums
    verified.add(queue, 100, 200)
    assert len(verified._sums) == 100_000
    assert (("X", 0), 0) not in verified._sums


@pytest.mark.parametrize(("others", "found"), [(999, ["m1"]), (1000, [])])
def test_a_search_by_key_reads_1000_other_records(others: int, found: list[str]) -> None:
    assert _suggested(_written(), *[0] * others, SIZE, wanted="m1") == found


@pytest.mark.parametrize(("others", "found"), [(31, [1]), (32, [])])
def test_a_search_by_key_reads_32_mib_of_other_records(others: int, found: list[int]) -> None:
    site = Site(replace(LARGE, commit_log_segment_bytes=4 << 20))
    site.open()
    around = len(record.encode(Message("T", b"")))
    site.store.append(Message("T", bytes((1 << 20) - around)))
    site.store.append(Message("T", b"m"))
    offsets = [*[0] * others, 1 << 20]
    chosen = find_records(site.store._log, offsets, lambda each: each.message.body == b"m", site.store.damage)
    assert [record.decode(data).queue_offset for data in chosen] == found


@pytest.mark.parametrize(("wrong", "found"), [(1000, "m1001"), (1001, "old")])
def test_1000_entries_on_one_side_are_examined_for_a_sound_one(
    wrong: int, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one, the search begins at the begin of the log, where an older record has the offset."""
    monkeypatch.setattr(damage._log, "disabled", True)
    site = Site(replace(SMALL, commit_log_segment_bytes=1 << 18, consume_queue_segment_bytes=40_000))
    site.open()
    site.append("old")
    site.store.delete_topic("T")
    site.store._deleted._before = {}
    site.store._log.segments.write(20, (1001).to_bytes(8, "big"))
    for number in range(1002):
        site.store.append(message(f"m{number}"))
    site.store.dispatch()
    _queue(site).write(1002 - wrong, [WRONG] * wrong)
    assert _body(site, 1001) == found


def test_the_due_time_in_an_entry_of_a_waiting_message_is_compared_too() -> None:
    site = Site(LARGE)
    site.open()
    for number in range(3):
        site.store.append(message(f"m{number}", topic=SCHEDULE_TOPIC, DELAY="1"))
    site.store.dispatch()
    queue = _queue(site, SCHEDULE_TOPIC)
    (unit,) = queue.units(1, 1)
    queue.write(1, [unit._replace(tags_code=unit.tags_code + 1)])
    assert site.store.unit(SCHEDULE_TOPIC, 0, 1) == unit
    assert queue.units(1, 1) == [unit]


def test_entries_behind_sound_ones_are_repaired_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sound ones were too far away to be examined."""
    monkeypatch.setattr(entry_repair, "_NEIGHBOURS_MAX", 1)
    site = _written()
    _queue(site).write(1, [WRONG, WRONG, WRONG])
    assert _body(site, 2) == "m2"
    assert [unit.commit_offset for unit in _queue(site).units(0, 6)] == [at * SIZE for at in range(6)]
    assert site.store.damage.counts == {QUEUE_REPAIRED: 3}


@pytest.mark.parametrize("is_started", [False, True])
def test_a_store_that_is_not_started_writes_no_repaired_entry(is_started: bool) -> None:
    site = _written(5)
    site.close()
    site.made().load()
    if is_started:
        site.store.begin()
    _queue(site).write(2, [WRONG])
    for _ in range(2):
        assert site.store.unit("T", 0, 2) == Unit(2 * SIZE, SIZE, 0)
    assert (_queue(site).units(2, 1) == [WRONG]) is not is_started

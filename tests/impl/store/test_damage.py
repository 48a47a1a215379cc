"""Tests a store whose durable bytes were damaged: nothing wrong is delivered, and nothing is lost silently.

Source: docs/reference/protocol/storing.md, "Damaged files". The method: write a store, change bytes of a file
behind its back, and read everything.
"""

import logging
from dataclasses import replace

import pytest

from mqproof.impl.remoting.message import tags_code
from mqproof.impl.store import verified_entries
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.damage import DamageKind, Outcome
from mqproof.impl.store.files import record
from mqproof.impl.store.results import GetStatus
from mqproof.impl.store.verified_entries import BLOCK_ENTRIES, VerifiedEntries
from tests.impl.store.site import SMALL, Site, message

LARGE = replace(SMALL, commit_log_segment_bytes=4096, consume_queue_segment_bytes=2000, index_entries=500)
LOG = "store/commitlog/00000000000000000000"
QUEUE = "store/consumequeue/T/0/00000000000000000000"
ENTRY = 20


def _flip(site: Site, path: str, byte: int, bit: int = 0) -> None:
    """Flip one bit of a file, on the disk and in the page cache."""
    file = site.disk.open(path)
    (value,) = file.read(byte, 1)
    file.close()
    site.simulated_disk.damage(path, byte, bytes([value ^ (1 << bit)]))


def _written(count: int) -> Site:
    site = Site(LARGE)
    site.open()
    for number in range(count):
        site.append(f"m{number:02d}", queue_id=number % 2)
    site.flush()
    return site


def _read_all(site: Site, queue_id: int = 0) -> list[str]:
    """Return the bodies that a consumer gets, following the next offsets."""
    found, offset = [], 0
    for _ in range(1000):
        got = site.store.get("T", queue_id, offset)
        found += [record.decode(data).message.body.decode() for data in got.records]
        if got.status is GetStatus.OFFSET_OVERFLOW_ONE:
            return found
        assert got.next_offset > offset, f"{got.status} at {offset}: the consumer does not advance"
        offset = got.next_offset
    raise AssertionError("the queue does not end")


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("bit", range(160))
def test_any_flipped_bit_of_a_queue_entry_is_repaired(bit: int, restart: bool) -> None:
    site = _written(16)
    expected = _read_all(site)
    entry = 3 if bit % 2 else 7  # in the middle, and the last one
    if restart:
        site.close()
    _flip(site, QUEUE, entry * ENTRY + bit // 8, bit % 8)
    if restart:
        site.open()
    assert _read_all(site) == expected == [f"m{number:02d}" for number in range(0, 16, 2)]


@pytest.mark.parametrize("ending", ["running", "closed", "killed"])
@pytest.mark.parametrize("number", [0, 6, 15])
@pytest.mark.parametrize("byte", [0, 2, 5, 9, 13, 23, 31, 85, 88, 91, 92, 94])
def test_a_record_with_a_flipped_bit_is_reported_and_the_others_are_delivered(
    byte: int, number: int, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Flip a bit of size, magic, CRC, queue, offset, place, body, topic, and of the lengths."""
    site = _written(16)
    if ending == "closed":
        site.close()
    at = 107 * number
    with caplog.at_level(logging.WARNING):
        _flip(site, LOG, at + byte, 1)
        if ending == "closed":
            site.open()
        elif ending == "killed":
            site.reopen_after_process_crash()
        got = [_read_all(site, queue_id) for queue_id in range(2)]
    kept = [each for each in range(16) if each != number]
    assert got == [[f"m{each:02d}" for each in kept if each % 2 == queue_id] for queue_id in range(2)]
    assert "commit offset" in caplog.text
    assert site.append("next", queue_id=number % 2)[0].queue_offset == 8, "no offset is used again"


@pytest.mark.parametrize("mode", FlushMode)
@pytest.mark.parametrize("altered", [0, 2, 3, 9])
def test_every_recovery_leaves_out_a_counted_record_with_an_altered_offset(
    altered: int, mode: FlushMode
) -> None:
    """Its entry shows the alteration, also when it is no longer the last entry of its queue."""
    site = Site(replace(SMALL, flush_mode=mode))
    site.open()
    second = site.append("a", "b")[1].commit_offset
    site.flush()
    site.store.append(message("c"))
    site.disk.open(LOG).write(second + 20, altered.to_bytes(8, "big"))
    for redispatched in 1, 0:
        site.reopen_after_process_crash()
        assert (_read_all(site), site.store.max_offset("T", 0)) == (["a", "c"], 3)
        assert site.recovery.redispatched == redispatched


def test_a_repair_finds_no_record_of_a_deleted_topic() -> None:
    site = Site(LARGE)
    site.open()
    site.append(*(f"old{number}" for number in range(5)))
    site.store.delete_topic("T")
    site.append(*(f"new{number}" for number in range(4)))
    site.flush()
    _flip(site, QUEUE, 0, 7)
    assert _read_all(site) == [f"new{number}" for number in range(4)]
    assert site.store.damage.counts == {(DamageKind.QUEUE_ENTRY, Outcome.REPAIRED): 1}


def test_a_repair_does_not_replace_sound_entries_by_older_records() -> None:
    """A released broker deletes a topic without a sign of it in the log."""
    site = Site(LARGE)
    site.open()
    site.append(*(f"old{number}" for number in range(5)))
    site.store.delete_topic("T")
    site.append(*(f"new{number}" for number in range(4)))
    site.flush()
    site.close()
    site.disk.remove("store/config/deletedTopics.json")
    site.disk.remove("store/config/deletedTopics.json.bak")
    site.open()
    _flip(site, QUEUE, 0, 7)
    for _ in range(2):
        assert _read_all(site)[1:] == [f"new{number}" for number in range(1, 4)]


def _with_tags(count: int) -> Site:
    site = Site(LARGE)
    site.open()
    for number in range(count):
        site.store.append(message(f"m{number:03d}", TAGS="A" if number % 2 else "B"))
    site.store.dispatch()
    site.flush()
    return site


def test_a_store_that_cannot_be_written_repairs_an_entry_at_each_filtered_read() -> None:
    site = _with_tags(2 * BLOCK_ENTRIES)
    _flip(site, QUEUE, 5 * ENTRY + 19)
    site.store.failure = "the disk failed"
    codes = frozenset({tags_code("A")})
    for _ in range(2):
        got = site.store.get("T", 0, 0, 8, tag_codes=codes)
        assert [record.decode(data).queue_offset for data in got.records] == [1, 3, 5, 7, 9, 11, 13, 15]
        site.store.get("T", 0, 0, 800, tag_codes=frozenset({-1}))  # compares all entries of the segment


def test_the_memory_of_compared_entries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_entries, "_BLOCKS_MAX", 1)
    site = _with_tags(3 * BLOCK_ENTRIES)
    queue, verified = site.store._queues.find("T", 0), VerifiedEntries()
    assert queue is not None
    verified.add(queue, 0, 3 * BLOCK_ENTRIES)
    assert [verified.has(queue, number) for number in range(3)] == [False, False, True]


def _with_lost_record() -> tuple[Site, bytes]:
    """Return a store with a damaged record that a read has found, and the right bytes of the record."""
    site = _written(8)
    (unit,) = site.store.units("T", 0, 1, 1)
    right = site.store.record_at(unit.commit_offset)
    assert right is not None
    _flip(site, LOG, unit.commit_offset + 90)
    assert _read_all(site) == ["m00", "m04", "m06"]
    return site, right


@pytest.mark.parametrize("restart", ["no", "clean", "after a kill"])
def test_a_lost_record_is_restored_durably_from_right_bytes(restart: str) -> None:
    site, right = _with_lost_record()
    (lost,) = site.store.lost_records()
    assert (lost.topic, lost.queue_id, lost.queue_offset, lost.size) == ("T", 0, 1, len(right))
    assert site.store.restore_record(lost, right)
    assert site.store.lost_records() == ()
    assert site.store.damage.counts[DamageKind.RECORD, Outcome.REPAIRED] == 1
    if restart == "clean":
        site.close()
        site.open()
    elif restart != "no":
        site.simulated_disk.lose_power()
        site.open()
    assert _read_all(site) == ["m00", "m02", "m04", "m06"]


def test_a_lost_record_is_not_restored_from_other_bytes() -> None:
    site, right = _with_lost_record()
    (lost,) = site.store.lost_records()
    (other,) = site.store.units("T", 0, 2, 1)
    wrong_body = right[:90] + bytes([right[90] ^ 1]) + right[91:]
    another = site.store.record_at(other.commit_offset) or b""
    for data in (b"", b"noise", right[:-1], right + b"!", wrong_body, another, bytes(len(right))):
        assert not site.store.restore_record(lost, data)
    assert site.store.lost_records() == (lost,)
    assert site.store.damage.counts[DamageKind.RECORD, Outcome.REPAIRED] == 0
    assert not site.store.restore_record(lost._replace(topic="X"), right)
    assert not site.store.restore_record(lost._replace(commit_offset=0), right)
    assert _read_all(site) == ["m00", "m04", "m06"]


def test_a_record_that_became_right_is_no_longer_lost() -> None:
    """A disk may have returned other bytes once."""
    site, right = _with_lost_record()
    (lost,) = site.store.lost_records()
    _flip(site, LOG, lost.commit_offset + 90)
    assert site.store.restore_record(lost, right)
    assert site.store.lost_records() == ()
    assert site.store.damage.counts[DamageKind.RECORD, Outcome.REPAIRED] == 0


def test_a_store_that_cannot_be_written_restores_nothing() -> None:
    site, right = _with_lost_record()
    (lost,) = site.store.lost_records()
    site.store.failure = "the disk failed"
    assert not site.store.restore_record(lost, right)
    assert site.store.lost_records() == (lost,)


def test_a_disk_that_fails_while_a_record_is_restored_makes_the_store_read_only() -> None:
    site, right = _with_lost_record()
    (lost,) = site.store.lost_records()

    def fail(step: object) -> None:
        raise OSError(f"{step}: failed on purpose")

    site.simulated_disk.on_step = fail
    assert not site.store.restore_record(lost, right)
    assert "failed on purpose" in site.store.failure

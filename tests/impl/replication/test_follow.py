"""Tests two logs and a connection between them: accepted and refused data.

Method: stores on simulated disks; the test passes the frames, so it sees each of them.
"""

import random
import struct
import zlib
from collections.abc import Sequence

import pytest

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.follow import DivergedError, Follow
from mqproof.impl.replication.stream import (
    StreamError,
    Transfer,
    read_proved_position,
    write_position,
    write_transfer,
)
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.files import record
from mqproof.impl.store.results import GetStatus
from tests.impl.replication.site import RECORD_BYTES_MAX, Link, filled, log_of, message, store, take_all


def test_an_empty_slave_receives_all_segments_and_can_be_read() -> None:
    master, slave = filled(100), store()
    link = Link(master, slave)
    link.run()
    assert master.log_end > 2 * 4096
    assert log_of(slave) == log_of(master)
    assert slave.max_offset("T", 0) == 100
    assert slave.get("T", 0, 37, 1).records == master.get("T", 0, 37, 1).records
    assert link.acks.highest == master.log_end


def test_a_slave_receives_later_appends() -> None:
    master, slave = filled(3), store()
    link = Link(master, slave)
    link.run()
    for number in range(3, 200):
        master.append(message(number, size=number))
        link.run()
        assert slave.log_end == master.log_end == link.acks.highest
    assert log_of(slave) == log_of(master)


def test_bytes_may_arrive_in_chunks_of_any_size() -> None:
    master, slave = filled(60), store()
    link, chance = Link(master, slave), random.Random(1)
    stream = bytearray()
    while frame := link.feed.next_frame():
        stream += frame
    while stream:
        size = chance.randint(1, 700)
        link.feed.received(link.follow.received(bytes(stream[:size])))
        del stream[:size]
        assert log_of(slave) == log_of(master)[: slave.log_end]
        assert slave.log_end in (0, master.log_end) or record.decode(
            slave.log_read(slave.log_last_record or 0, slave.log_end - (slave.log_last_record or 0))
        )
    assert slave.log_end == master.log_end


@pytest.mark.parametrize("count", [1, 2, 40])
def test_a_slave_that_reconnects_compares_its_last_record_and_continues(count: int) -> None:
    disk = SimulatedDisk()
    master, slave = filled(count), store(disk)
    Link(master, slave).run()
    slave.kill()
    disk.crash_process()
    slave = store(disk)
    master.append(message(count))
    link = Link(master, slave)
    assert link.acks.highest == 0, "a first report acknowledges nothing"
    link.run()
    assert link.follow.verified
    assert log_of(slave) == log_of(master)
    assert link.acks.highest == master.log_end


def test_a_slave_without_new_data_acknowledges_after_the_comparison() -> None:
    master, slave = filled(5), store()
    Link(master, slave).run()
    link = Link(master, slave)
    link.run()
    assert link.acks.highest == master.log_end


def diverged(lost: int) -> Link:
    """Return a slave with five records whose master lost some of them and has others instead."""
    before, slave = filled(5), store()
    Link(before, slave).run()
    master = filled(5 - lost)
    for number in range(lost + 1):
        master.append(message(900 + number))
    return Link(master, slave)


@pytest.mark.parametrize("lost", [1, 3, 5])
def test_a_master_that_lost_its_last_records_is_refused(lost: int) -> None:
    link = diverged(lost)
    with pytest.raises(DivergedError, match="is not its master's"):
        link.run()
    assert link.acks.highest == 0


def test_released_brokers_do_not_notice_divergence_and_ours_only_with_the_check() -> None:
    before, slave = filled(5), store()
    Link(before, slave).run()
    master = filled(4)
    for number in range(4):
        master.append(message(900 + number))
    link = Link(master, slave, LogCheck.AS_SHIPPED)
    link.run()
    assert slave.log_end == master.log_end == link.acks.highest
    assert log_of(slave) != log_of(master), "two logs of one length, and not the same"


def test_a_slave_that_is_ahead_is_refused_by_its_master() -> None:
    long, slave, master = filled(5), store(), filled(2)
    Link(long, slave).run()
    with pytest.raises(StreamError, match="lost its last records"):
        Link(master, slave)


def test_a_slave_that_is_ahead_of_a_released_master_refuses_it() -> None:
    long, slave = filled(5), store()
    Link(long, slave).run()
    follow = Follow(slave, RECORD_BYTES_MAX, LogCheck.COMPARED)
    with pytest.raises(DivergedError, match="lost its last records"):
        follow.received(write_transfer(Transfer(follow.first_position, b"")))


def test_records_that_a_slave_is_ahead_of_its_master_are_never_counted() -> None:
    """An acknowledgement beyond the master's end does not count."""
    link = Link(filled(2), store())
    with pytest.raises(StreamError, match="acknowledges"):
        link.feed.received((1 << 40).to_bytes(8, "big"))
    assert link.acks.highest == 0


def test_as_shipped_every_report_is_believed() -> None:
    master, slave = filled(1), store()
    Link(filled(3), slave).run()
    link = Link(master, slave, LogCheck.AS_SHIPPED)
    assert link.acks.highest == slave.log_end > master.log_end


def test_as_shipped_an_empty_slave_receives_only_the_last_segment() -> None:
    master, slave = filled(100), store()
    Link(master, slave, LogCheck.AS_SHIPPED).run()
    assert slave.log_begin == master.log_end - master.log_end % 4096 > 0
    assert slave.log_end == master.log_end
    first = slave.min_offset("T", 0)
    assert 0 < first < slave.max_offset("T", 0) == 100
    assert slave.get("T", 0, first, 1).records == master.get("T", 0, first, 1).records
    assert slave.get("T", 0, 0).status is GetStatus.OFFSET_TOO_SMALL


@pytest.mark.parametrize("place", [0, 4, 8, 35, 90])
def test_a_damaged_record_is_refused_and_not_stored(place: int) -> None:
    link = Link(filled(3), slave := store())
    frame = bytearray(link.feed.next_frame())
    frame[12 + place] ^= 0x40
    with pytest.raises(StreamError, match="no record at 0"):
        link.follow.received(bytes(frame))
    assert slave.log_end == 0


def test_bytes_for_another_position_are_refused() -> None:
    link = Link(filled(3), slave := store())
    link.run()
    with pytest.raises(StreamError, match=f"sends from 0, {slave.log_end} expected"):
        link.follow.received(write_transfer(Transfer(0, b"x")))
    with pytest.raises(StreamError, match="begins at 100, a multiple of 4096 expected"):
        Link(filled(3), store()).follow.received(write_transfer(Transfer(100, b"x")))


def test_a_record_size_beyond_the_limit_is_refused_before_the_record_arrives() -> None:
    follow = Follow(store(), RECORD_BYTES_MAX, LogCheck.COMPARED)
    head = (RECORD_BYTES_MAX + 1).to_bytes(4, "big") + record.MAGIC_V1.to_bytes(4, "big")
    with pytest.raises(StreamError, match=f"size {RECORD_BYTES_MAX + 1}"):
        follow.received(write_transfer(Transfer(0, head)))


def test_data_after_the_filler_of_a_segment_does_not_matter() -> None:
    master, slave = filled(60), store()
    link = Link(master, slave)
    stream = bytearray()
    while frame := link.feed.next_frame():
        stream += frame
    filler = record.MAGIC_FILLER.to_bytes(4, "big")
    at = stream.index(filler) + 4
    assert not stream[at]
    stream[at] = 7
    take_all(link.follow, bytes(stream))
    assert log_of(slave) == log_of(master)
    Link(master, slave).run()


def test_each_transfer_is_answered_before_the_next_one_is_stored() -> None:
    slave = store()
    link = Link(filled(60), slave)
    frames = [link.feed.next_frame(), link.feed.next_frame()]
    assert all(frames)
    first = link.follow.received(b"".join(frames))
    position = slave.log_end
    assert first == write_position(position)
    second = link.follow.received(b"")
    assert second == write_position(slave.log_end)
    assert slave.log_end > position
    assert link.follow.received(b"") == b""


def test_a_slave_that_requests_deleted_data_is_refused() -> None:
    master = filled(100)
    slave = store()
    Link(filled(10), slave).run()
    master._log.segments.detach_before(4096).carry_out()
    with pytest.raises(StreamError, match="begins at 4096"):
        Link(master, slave)


def test_a_slave_that_crashes_between_any_two_frames_gets_the_same_log() -> None:
    chance, disk = random.Random(5), SimulatedDisk()
    master, slave = filled(0), store(disk)
    link = Link(master, slave)
    for number in range(120):
        master.append(message(number, size=chance.randint(1, 900)))
        if chance.random() < 0.5:
            link.step()
        if chance.random() < 0.2:
            slave.kill()
            if chance.random() < 0.5:
                disk.crash_process()
            else:
                disk.crash_os(chance)
            slave = store(disk)
            link = Link(master, slave)
    link.run()
    assert log_of(slave) == log_of(master)
    assert slave.max_offset("T", 0) == 120


def test_an_empty_slave_receives_the_data_that_its_master_still_has() -> None:
    class Expired:
        log_begin, log_end, log_segment_bytes = 4096, 5000, 4096

        def log_read(self, position: int, size: int) -> bytes:
            return bytes(min(size, 5000 - position)) if position >= 4096 else b""

        def damaged_record(self, _commit_offset: int, _count: int) -> None: ...

    feed = Feed(Expired(), Acks(), LogCheck.COMPARED)
    feed.received(write_position(0))
    assert feed.next_frame()[:12] == write_transfer(Transfer(4096, bytes(904)))[:12]


def test_a_slave_stops_following_a_log_whose_next_bytes_expired() -> None:
    class Expiring:
        log_begin, log_end, log_segment_bytes = 0, 5000, 4096

        def log_read(self, _position: int, _size: int) -> bytes:
            return b""

        def damaged_record(self, _commit_offset: int, _count: int) -> None: ...

    feed = Feed(Expiring(), Acks(), LogCheck.COMPARED)
    feed.received(write_position(100))
    with pytest.raises(StreamError, match="no longer has 100"):
        feed.next_frame()


@pytest.mark.parametrize("chunk", [1, 7, 50])
def test_the_last_record_is_compared_in_chunks_of_any_size(chunk: int) -> None:
    master, slave = filled(20), filled(10)
    follow = Follow(slave, RECORD_BYTES_MAX, LogCheck.COMPARED)
    at, own = follow.first_position, slave.log_end
    while at < master.log_end:
        body = master.log_read(at, chunk)
        follow.received(write_transfer(Transfer(at, body)))
        at += len(body)
        assert follow.verified == (at >= own)
    assert log_of(slave) == log_of(master)


def test_an_impossible_record_is_refused_by_its_first_bytes() -> None:
    size, magic = record.peek(filled(1).log_read(0, 8))
    filler = record.MAGIC_FILLER
    # No filler fits behind a record of 4,089 bytes or more, so no master writes one.
    for front in (
        (size, magic + 1),
        (4089, magic),
        (4096, magic),
        (4097, magic),
        (record.SIZE_MIN - 1, magic),
        (4088, filler),
    ):
        follow = Follow(store(), 1 << 20, LogCheck.COMPARED)
        with pytest.raises(StreamError, match="no record at 0"):
            follow.received(write_transfer(Transfer(0, struct.pack(">II", *front))))


@pytest.mark.parametrize("front", [(4088, record.MAGIC_V1), (record.SIZE_MIN, record.MAGIC_V1)])
def test_the_rest_of_a_possible_record_is_waited_for(front: tuple[int, int]) -> None:
    follow = Follow(slave := store(), 1 << 20, LogCheck.COMPARED)
    assert follow.received(write_transfer(Transfer(0, struct.pack(">II", *front)))) == b""
    assert slave.log_end == 0


def test_the_largest_record_is_waited_for() -> None:
    follow = Follow(store(), RECORD_BYTES_MAX, LogCheck.COMPARED)
    front = struct.pack(">II", RECORD_BYTES_MAX, record.MAGIC_V1)
    assert follow.received(write_transfer(Transfer(0, front[:7]))) == b""
    assert follow.received(write_transfer(Transfer(7, front[7:]))) == b""


class _Own:
    """A slave's log whose last record begins at 3000; it records which of its records are examined."""

    log_segment_bytes = 4096

    def __init__(self, end: int = 3200, last: int | None = 3000, damaged: int | None = None) -> None:
        self.log_end = end
        self.log_last_record: int | None = last
        self.damaged = damaged
        self.examined: list[tuple[int, int]] = []
        self.stored: list[int] = []

    def log_read(self, position: int, size: int) -> bytes:
        return b"%d,%d" % (position, size)

    def damaged_record(self, commit_offset: int, count: int) -> int | None:
        self.examined.append((commit_offset, count))
        return self.damaged

    def append_replicated(self, records: Sequence[tuple[bytes, StoredMessage]]) -> None:
        self.stored += [stored.commit_offset for _, stored in records]


@pytest.mark.parametrize(
    ("end", "last", "begin"),
    [(3200, 3000, 2176), (3200, 1500, 1500), (1024, None, 0), (1025, None, 1), (500, 0, 0)],
)
def test_the_end_of_the_own_log_is_examined_before_it_is_compared(
    end: int, last: int | None, begin: int
) -> None:
    own = _Own(end, last)
    Follow(own, 1000, LogCheck.COMPARED).require_sound()
    assert own.examined == [(begin, 1024 // record.SIZE_MIN + 1)]


def test_a_slave_with_a_damaged_end_does_not_follow() -> None:
    with pytest.raises(StreamError, match="this slave's record at 2900 is damaged: it can follow when"):
        Follow(_Own(damaged=2900), 1000, LogCheck.COMPARED).require_sound()


@pytest.mark.parametrize("proves", [False, True])
@pytest.mark.parametrize(("check", "position"), [(LogCheck.COMPARED, 3000), (LogCheck.AS_SHIPPED, 3200)])
def test_a_report_names_the_last_record_until_the_logs_were_compared(
    check: LogCheck, position: int, proves: bool
) -> None:
    report = bytearray(Follow(_Own(), 1000, check, proves=proves).report())
    if not proves:
        assert report == write_position(position)
        return
    covered = b"%d,%d" % (position - 1024, 1024)
    assert read_proved_position(report) == (position, zlib.crc32(covered))


def test_a_heartbeat_before_the_comparison_shows_that_the_master_has_less() -> None:
    follow = Follow(filled(3), RECORD_BYTES_MAX, LogCheck.COMPARED)
    with pytest.raises(DivergedError, match="its master's at or before"):
        follow.received(write_transfer(Transfer(follow.first_position, b"")))


@pytest.mark.parametrize("chunk", [13, 1000])
def test_records_and_fillers_may_be_divided_among_transfers(chunk: int) -> None:
    master, slave = filled(60), store()
    follow = Follow(slave, RECORD_BYTES_MAX, LogCheck.COMPARED)
    for at in range(0, master.log_end, chunk):
        body = log_of(master)[at : at + chunk]
        follow.received(write_transfer(Transfer(at, body)))
    assert master.log_end > 4096
    assert log_of(slave) == log_of(master)


def test_each_record_is_stored_once() -> None:
    master, own = filled(3), _Own(0, None)
    follow = Follow(own, RECORD_BYTES_MAX, LogCheck.COMPARED)
    for at in range(0, master.log_end, 50):
        follow.received(write_transfer(Transfer(at, master.log_read(at, min(50, master.log_end - at)))))
        own.log_end = at + 50  # the log has grown
    size = master.log_end // 3
    assert own.stored == [0, size, 2 * size]

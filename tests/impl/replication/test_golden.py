"""Tests our replication code with the recorded bytes of a released slave and its released master.

Captured by `python -m tests.interop.capture_replication`: an empty slave, a few messages, heartbeats.
"""

from pathlib import Path

import pytest

from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.follow import Follow
from mqproof.impl.replication.stream import (
    Transfer,
    read_position,
    read_transfer,
    write_position,
    write_transfer,
)
from mqproof.impl.store.config import StoreConfig
from tests.impl.replication.site import log_of, store, take_all

GOLDEN = Path(__file__).with_name("golden")
RELEASES = ["4.9.5", "5.5.0"]
CONFIG = StoreConfig(
    commit_log_segment_bytes=1 << 24, consume_queue_segment_bytes=2000, index_slots=10, index_entries=100
)


def said(release: str, by: str) -> bytearray:
    return bytearray.fromhex((GOLDEN / f"{release}-{by}.hex").read_text(encoding="ascii"))


def positions(release: str) -> list[int]:
    buffer, found = said(release, "slave"), []
    while (position := read_position(buffer)) is not None:
        found.append(position)
    assert not buffer
    return found


def transfers(release: str) -> list[Transfer]:
    buffer, found = said(release, "master"), []
    while (transfer := read_transfer(buffer)) is not None:
        found.append(transfer)
    assert not buffer
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_the_recorded_bytes_equal_those_that_our_code_writes(release: str) -> None:
    assert b"".join(map(write_position, positions(release))) == said(release, "slave")
    assert b"".join(map(write_transfer, transfers(release))) == said(release, "master")


@pytest.mark.parametrize("release", RELEASES)
def test_an_empty_slave_requests_0_and_then_reports_its_position(release: str) -> None:
    first, *reports = positions(release)
    assert first == 0
    assert reports == sorted(reports)
    body = b"".join(transfer.body for transfer in transfers(release))
    assert reports[-1] == len(body) > 0


@pytest.mark.parametrize("release", RELEASES)
def test_a_master_sends_its_log_without_gaps_and_then_a_heartbeat(release: str) -> None:
    position, beats = 0, 0
    for transfer in transfers(release):
        assert transfer.position == position
        position += len(transfer.body)
        beats += not transfer.body
    assert beats


@pytest.mark.parametrize("release", RELEASES)
def test_our_slave_accepts_the_data_of_a_released_master(release: str) -> None:
    slave = store(config=CONFIG)
    follow = Follow(slave, 1 << 20, LogCheck.COMPARED)
    reports = bytearray(follow.report())
    for transfer in transfers(release):
        reports += follow.received(write_transfer(transfer))
    assert log_of(slave) == b"".join(transfer.body for transfer in transfers(release))
    assert sum(slave.max_offset("Replicated", queue) for queue in range(16)) >= 4
    own = []
    while (position := read_position(reports)) is not None:
        own.append(position)
    assert own[0] == positions(release)[0]
    assert own[-1] == positions(release)[-1]


@pytest.mark.parametrize("release", RELEASES)
def test_our_master_sends_a_released_slave_the_same_data_as_its_own_master(release: str) -> None:
    master = store(config=CONFIG)
    follow = Follow(master, 1 << 20, LogCheck.COMPARED)
    take_all(follow, bytes(said(release, "master")))
    acks = Acks()
    feed = Feed(master, acks, LogCheck.COMPARED)
    first, *reports = positions(release)
    feed.received(write_position(first))
    bodies = bytearray()
    while frame := feed.next_frame():
        transfer = read_transfer(bytearray(frame))
        assert transfer is not None
        bodies += transfer.body
    assert bodies == b"".join(transfer.body for transfer in transfers(release))
    feed.received(b"".join(map(write_position, reports)))
    assert acks.highest == master.log_end

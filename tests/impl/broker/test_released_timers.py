"""Tests the file with which released brokers note what they have delivered.

Source: docs/reference/protocol/timers.md, "Files of released brokers".
"""

import struct
from types import SimpleNamespace
from typing import cast

import pytest

from mqproof.impl.broker.released_timers import released_progress
from mqproof.impl.broker.timed_messages import Point
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.base import Store

STORE = cast("Store", SimpleNamespace(directory="/store", next_commit_offset=500))


def progress(data: bytes) -> Point | None:
    disk = SimulatedDisk()
    write_durably(disk, "/store/config/timercheck", data)
    return released_progress(disk, STORE)


@pytest.mark.parametrize(("read_ms", "queue_end"), [(0, 0), (10**15 - 1, 7)])
def test_the_time_and_the_end_of_the_queue_are_read(read_ms: int, queue_end: int) -> None:
    expected = Point(first=0, read_end=queue_end, due_ms=read_ms, scan_from=500)
    assert progress(struct.pack(">qqqq", read_ms, 1, queue_end, 3)) == expected


@pytest.mark.parametrize(("read_ms", "queue_end"), [(-1, 0), (10**15, 0), (0, -1)])
def test_values_that_cannot_be_are_not_believed(read_ms: int, queue_end: int) -> None:
    assert progress(struct.pack(">qqqq", read_ms, 0, queue_end, 0)) is None


def test_a_file_that_is_missing_or_too_short_is_not_used() -> None:
    assert released_progress(SimulatedDisk(), STORE) is None
    assert progress(struct.pack(">qqqq", 1, 1, 1, 1)[:-1]) is None

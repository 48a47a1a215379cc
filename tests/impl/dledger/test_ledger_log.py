"""Tests the committed part of a ledger as a commit log: where a scan stops, and what counts as durable."""

import logging

import pytest

from mqproof.impl.dledger.ledger import Ledger, LedgerConfig
from mqproof.impl.dledger.ledger_log import LedgerLog, stored_in
from mqproof.impl.dledger.rpc_bodies import NO_OP, NORMAL, Entry
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.files import record

SEGMENT = 512


class _Log:
    """A ledger with segments of 512 bytes, and its view as a commit log."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.ledger = Ledger(self.disk, "/d", LedgerConfig(SEGMENT, 32 * 8))
        self.ledger.load()
        self.view = LedgerLog(self.ledger.data)

    def add(self, body: str | None, stored_ms: int = 1000) -> Entry:
        """Append and commit a message, or a no-op for None."""
        draft = b"" if body is None else record.encode(Message("T", body.encode(), {}))

        def placed(position: int) -> bytes:
            data = bytearray(draft)
            if data:
                record.place(data, 0, position, stored_ms)
            return bytes(data)

        index = self.ledger.end_index + 1
        entry = self.ledger.append(index, 1, NO_OP if body is None else NORMAL, placed)
        self.view.advance(entry, stored_in(entry))
        return entry

    def scanned(self, position: int = 0) -> list[tuple[int, str | None]]:
        return [
            (at, stored.message.body.decode() if stored else None) for at, stored in self.view.scan(position)
        ]


def test_a_scan_yields_messages_no_ops_and_fillers_with_the_positions_after_them() -> None:
    log = _Log()
    first, no_op, second, third = log.add("a" * 100), log.add(None), log.add("b" * 100), log.add("c" * 100)
    ends = [each.pos + each.size for each in (first, no_op, second, third)]
    fillers = [
        later.pos
        for earlier, later in ((first, no_op), (no_op, second), (second, third))
        if later.pos > earlier.pos + earlier.size
    ]
    assert fillers, "a segment ends between these entries"
    found = log.scanned()
    assert [(at, body) for at, body in found if body] == [
        (ends[0], "a" * 100),
        (ends[2], "b" * 100),
        (ends[3], "c" * 100),
    ]
    assert [at for at, body in found if body is None] == sorted([ends[1], *fillers])
    assert log.scanned(second.pos) == [each for each in found if each[0] > second.pos]


def test_a_scan_ends_with_the_committed_entries_and_where_no_entry_is() -> None:
    log = _Log()
    entries = [log.add(body) for body in ("a", "b")]
    log.view.end = entries[1].pos
    assert [body for _, body in log.scanned()] == ["a"]
    log.view.end = 4 * SEGMENT
    assert [body for _, body in log.scanned()] == ["a", "b"]
    log.disk.damage(f"/d/data/{0:020}", entries[0].pos, bytes(8))
    assert log.scanned() == []


def test_a_new_view_is_empty_and_needed_from_its_beginning() -> None:
    view = _Log().view
    assert (view.needed_from, view.flushed, view.last_record) == (0, 0, None)
    view.kept_by_all = 7
    assert view.needed_from == 7


def test_the_largest_record_and_its_header_and_a_filler_fit_a_segment() -> None:
    assert _Log().view.record_bytes_max == SEGMENT - 48 - 8


def test_data_is_flushed_as_far_as_it_is_committed_and_durable() -> None:
    log = _Log()
    first, second = log.add("a", 1000), log.add("b", 2000)
    ends = [each.pos + each.size for each in (first, second)]
    flushed = []
    for position in (ends[0], ends[1] + 100, 0):
        log.view.durable_to(position)
        flushed.append((log.view.flushed, log.view.flushed_timestamp_ms))
    assert flushed == [(ends[0], 0), (ends[1], 2000), (ends[1], 2000)], "it never decreases"


def test_an_entry_after_a_cut_is_not_durable_by_the_sync_of_the_cut_one() -> None:
    log = _Log()
    first = log.add("a")
    end = first.pos + first.size
    log.view.durable_to(end + 300)
    log.view.durable_at_most(end)
    log.view.durable_at_most(end + 200)
    log.add("b")
    assert log.view.flushed == end


def test_the_last_message_is_that_of_the_last_entry_with_one() -> None:
    log = _Log()
    entry = log.add("a", 1500)
    log.add(None)
    assert (log.view.last_record, log.view.store_timestamp_ms) == (entry.pos + 48, 1500)


def test_an_entry_that_is_not_a_message_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert stored_in(Entry(NORMAL, 51, 7, 1, 0, body=b"abc")) is None
        assert stored_in(Entry(NO_OP, 48, 8, 1, 51)) is None
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("entry 7 is not a message: ")

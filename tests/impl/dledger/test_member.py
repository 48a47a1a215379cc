"""Tests a member and its ledger: where entries go, which syncs happen, and what memory keeps."""

from random import Random

import pytest

from mqproof.impl.dledger import ledger as ledger_module
from mqproof.impl.dledger import wire
from mqproof.impl.dledger.changes import Cut, Written
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.ledger import Ledger, LedgerConfig
from mqproof.impl.dledger.member import Member
from mqproof.impl.dledger.rpc_bodies import (
    NORMAL,
    AppendRequest,
    AppendResponse,
    Entry,
    MetadataRequest,
    MetadataResponse,
)
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.store.errors import StoreError

CONFIG = LedgerConfig(data_segment_bytes=512, index_segment_bytes=32 * 8)


def _ledger(disk: SimulatedDisk, config: LedgerConfig = CONFIG) -> Ledger:
    ledger = Ledger(disk, "/d", config)
    ledger.load()
    return ledger


def _member(disk: SimulatedDisk) -> Member:
    ledger = Ledger(disk, "/d", CONFIG)
    return Member(GroupConfig("g", "n0", ("n0", "n1")), disk, "/d", Random(1), 0.0, ledger=ledger)


def _entry(index: int, pos: int, body: bytes = b"") -> Entry:
    return Entry(NORMAL, 48 + len(body), index, 1, pos, body=body)


def test_entries_are_compared_with_the_end_of_those_that_are_about_to_be_written() -> None:
    member = _member(SimulatedDisk())
    written = [_entry(0, 0), _entry(1, 48, b"12345"), _entry(2, 101)]
    member.core.state.changes += [Written(each) for each in written]
    assert member._misplaced([_entry(3, 149), _entry(4, 197)]) is None
    assert "entry 3 goes to 149, its leader has it at 150" in (member._misplaced([_entry(3, 150)]) or "")
    member.core.state.changes += [Cut(1)]
    assert member._misplaced([_entry(2, 101)]) is None, "it follows entry 1"
    assert member._misplaced([_entry(0, 0)]) is None


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (_entry(0, 0, bytes(512 - 48 - 8)), None),
        (_entry(0, 0, bytes(512 - 48 - 7)), "entry 0 of 505 bytes does not fit a segment"),
        (_entry(0, 1), "entry 0 goes to 0, its leader has it at 1"),
        (Entry(NORMAL, 49, 0, 1, 0), "entry 0 says 49 bytes, it has 48"),
    ],
)
def test_an_entry_that_does_not_fit_its_place_is_named(entry: Entry, complaint: str | None) -> None:
    found = _member(SimulatedDisk())._misplaced([entry])
    assert found is None if complaint is None else complaint in (found or "")


def test_the_core_knows_where_the_ledger_begins() -> None:
    disk = SimulatedDisk()
    member = _member(disk)
    for index in range(20):
        member.ledger.append(index, 1, NORMAL, b"body")
    member.ledger.begin_flush().sync()
    member.ledger.data.detach_before(512).carry_out()
    member.take_messages(0.0)
    assert member.core.state.terms.begin == member.ledger.begin_index == 9


@pytest.mark.parametrize(("term", "started"), [(0, (1, None)), (1, (1, "n1"))])
def test_a_member_that_stopped_before_its_first_election_starts_in_term_1(
    term: int, started: tuple[int, str | None]
) -> None:
    disk = SimulatedDisk()
    write_durably(disk, "/d/currterm", b"currTerm=%d\nvoteLeader=n1\n" % term)
    state = _member(disk).core.state
    assert (state.term, state.voted_for) == started


def test_a_member_in_term_0_whose_ledger_has_entries_has_lost_its_vote() -> None:
    disk = SimulatedDisk()
    member = _member(disk)
    member.ledger.append(0, 1, NORMAL, b"body")
    member.ledger.begin_flush().sync()
    write_durably(disk, "/d/currterm", b"currTerm=0\nvoteLeader=\n")
    with pytest.raises(StoreError, match="says term 0: the ledger has entries of term 1"):
        _member(disk)


def test_data_is_synced_before_too_much_of_it_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "_IN_DOUBT_BYTES", 100)
    disk = SimulatedDisk()
    ledger = _ledger(disk, LedgerConfig(data_segment_bytes=4096, index_segment_bytes=32 * 80))
    syncs: list[int] = []

    def count(step: Step) -> None:
        if step.kind == "sync" and "/data/" in step.path:
            syncs.append(ledger.end_index + 1)

    ledger.append(0, 1, NORMAL, b"")  # creates and syncs the segment
    flush = ledger.begin_flush()
    flush.sync()
    ledger.end_flush(flush)
    disk.on_step = count
    for index in range(1, 7):
        ledger.append(index, 1, NORMAL, b"")
    assert syncs == [3, 6], "144 bytes each time"
    flush = ledger.begin_flush()
    flush.sync()
    assert ledger.end_flush(flush) == 6
    syncs.clear()
    for index in range(7, 10):
        ledger.append(index, 1, NORMAL, b"")
    assert syncs == [9]


def test_16_mib_of_entries_are_in_memory() -> None:
    ledger = _ledger(SimulatedDisk(), LedgerConfig(data_segment_bytes=64 << 20, index_segment_bytes=320))
    for index in range(3):
        ledger.append(index, 1, NORMAL, bytes((8 << 20) - 48))
    assert list(ledger._recent) == [1, 2]
    ledger.append(3, 1, NORMAL, bytes(1))
    assert list(ledger._recent) == [2, 3]


def test_the_index_is_written_for_2048_entries_at_a_time() -> None:
    ledger = _ledger(SimulatedDisk(), LedgerConfig(data_segment_bytes=1 << 20, index_segment_bytes=1 << 20))
    for index in range(2047):
        ledger.append(index, 1, NORMAL, b"")
    assert ledger._index.capacity_end == 0
    ledger.append(2047, 1, NORMAL, b"")
    assert len(ledger._index.read(0, 2048 * 32).rstrip(b"\0")) > 2047 * 32


def test_the_index_is_synced_when_a_segment_of_data_was_added() -> None:
    disk = SimulatedDisk()
    ledger = _ledger(disk)

    def flushed() -> int:
        flush = ledger.begin_flush()
        flush.sync()
        return len(flush.unsynced)

    counts = []
    for index in range(20):
        ledger.append(index, 1, NORMAL, b"")
        counts.append(flushed())
    assert [number for number, count in enumerate(counts) if count == 2] == [0, 10], "10 entries a segment"
    ledger.write_index()
    again = _ledger(disk)
    again.append(20, 1, NORMAL, b"")
    ledger = again
    assert flushed() == 2, "the first entry of a segment"
    again = _ledger(disk)
    ledger = again
    assert flushed() == 1


def test_so_many_bytes_of_entries_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "_RECENT_BYTES_MAX", 96)
    ledger = _ledger(SimulatedDisk())
    for index in range(4):
        ledger.append(index, 1, NORMAL, b"")
    assert list(ledger._recent) == [2, 3]
    ledger.append(4, 1, NORMAL, bytes(100))
    assert list(ledger._recent) == [4], "the newest one stays, whatever its size"
    assert [ledger.read(index).index for index in range(5)] == [0, 1, 2, 3, 4]
    ledger.cut(3)
    ledger.append(4, 1, NORMAL, b"")
    ledger.append(5, 1, NORMAL, b"")
    assert list(ledger._recent) == [4, 5]


def test_a_flush_before_a_cut_makes_nothing_durable() -> None:
    ledger = _ledger(SimulatedDisk())
    for index in range(3):
        ledger.append(index, 1, NORMAL, b"")
    flush = ledger.begin_flush()
    ledger.cut(1)
    assert ledger.end_flush(flush) == -1
    assert ledger.end_flush(ledger.begin_flush()) == 1


# Responses as commands.


@pytest.mark.parametrize("code", [0, 200])
def test_an_answer_of_ours_and_of_a_released_member_is_read(code: int) -> None:
    request = MetadataRequest("g", "n0", "n1", None, 1)
    response = MetadataResponse("g", "n1", "n0", None, 1, peers={"n0": "127.0.0.1:40911"})
    asked = wire.encode_request(request)
    body = wire.encode_response(asked, response).body
    assert wire.decode_response(request, asked.answer(code, body=body)) == response


@pytest.mark.parametrize(("remark", "complaint"), [("busy", "refused with 2: busy"), (None, "2: no remark")])
def test_a_refusal_is_not_a_response(remark: str | None, complaint: str) -> None:
    request = MetadataRequest("g", "n0", "n1", None, 1)
    answer: Command = new_request(1).answer(2, remark=remark, body=b"{}")
    with pytest.raises(BodyError, match=complaint):
        wire.decode_response(request, answer)


@pytest.mark.parametrize("code", [200, 300, 404, 502])
def test_an_answer_of_a_released_member_is_read_whatever_its_code(code: int) -> None:
    body = b'{"group":"g","remoteId":"n0","localId":"n1","term":1,"code":%d}' % code
    response = wire.decode_response(
        AppendRequest("g", "n1", "n0", None, 1), new_request(1).answer(200, body=body)
    )
    assert response.code == code


def test_a_refused_append_has_no_place() -> None:
    refused = AppendResponse("g", "n0", "n1", None, 1)
    assert (refused.index, refused.pos) == (-1, -1)

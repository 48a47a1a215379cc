"""Tests entries on disk: formats byte for byte, recovery after crashes, and cuts."""

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import msgspec
import pytest

from mqproof.impl.dledger import ballot_file, entry_format
from mqproof.impl.dledger.changes import Ballot
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.ledger import Ledger, LedgerConfig
from mqproof.impl.dledger.member import Member
from mqproof.impl.dledger.rpc_bodies import NO_INDEX, NORMAL, Entry
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.simulated_disk import Image, SimulatedDisk, Step
from mqproof.impl.store.errors import StoreError
from tests.impl.left import no_open_file

SMALL = LedgerConfig(data_segment_bytes=512, index_segment_bytes=32 * 8)


def _ledger(disk: SimulatedDisk, config: LedgerConfig = SMALL) -> Ledger:
    ledger = Ledger(disk, "/d", config)
    ledger.load()
    return ledger


def _fill(ledger: Ledger, count: int, term: int = 1) -> list[Entry]:
    first = ledger.end_index + 1
    return [ledger.append(n, term, NORMAL, b"entry %d" % n) for n in range(first, first + count)]


def _all(ledger: Ledger) -> list[Entry]:
    return [ledger.read(index) for index in range(ledger.end_index + 1)]


def test_an_entry_has_the_released_header() -> None:
    data = entry_format.encode(Entry(NORMAL, 48 + 106, 0, 1, 0, body=bytes(106)))
    header = "00000001 0000009a 0000000000000000 0000000000000001 0000000000000000 00000000 00000000 00000000"
    assert data[:48].hex() == header.replace(" ", "") + "0000006a"
    unit = entry_format.encode_unit(Entry(NORMAL, 154, 0, 1, 0))
    assert unit.hex() == "0000000100000000000000000000009a00000000000000000000000000000001"


def test_an_entry_of_a_released_member_has_no_checksum_and_is_read() -> None:
    entry = Entry(NORMAL, 48 + 3, 4, 2, 96, body=b"abc")
    assert entry_format.decode(entry_format.encode(entry), 96) == entry


@pytest.mark.parametrize("at", [0, 5, 12, 20, 28, 45, 50])
def test_a_changed_byte_makes_an_entry_invalid(at: int) -> None:
    data = bytearray(entry_format.encode(entry_format.make(4, 2, NORMAL, 96, b"abc")))
    data[at] ^= 0x40
    with pytest.raises(entry_format.EntryError):
        entry_format.decode(bytes(data), 96)


def test_a_filler_moves_entries_to_the_next_segment_and_they_are_read_by_index() -> None:
    disk = SimulatedDisk()
    written = _fill(_ledger(disk), 40)
    assert {entry.pos // 512 for entry in written} == {0, 1, 2, 3, 4}
    assert all(entry.pos % 512 + entry.size <= 512 - 8 for entry in written)
    assert _all(_ledger(disk)) == written


def test_a_ledger_without_its_first_segment_is_refused_by_name() -> None:
    disk = SimulatedDisk()
    _fill(_ledger(disk), 40)
    disk.lose(f"/d/data/{0:020}")
    assert _ledger(disk).begin_index > 0, "without that knowledge, the segment may have expired"
    ledger = Ledger(disk, "/d", SMALL)
    ledger.known_begin = 0
    with pytest.raises(StoreError, match=f"/d/data/{0:020}: missing, the ledger began at position 0"):
        ledger.load()


def test_a_load_counts_the_bytes_that_it_cuts() -> None:
    disk = SimulatedDisk()
    last = _fill(_ledger(disk), 3)[-1]
    disk.damage(f"/d/data/{0:020}", last.pos + 50, b"\x07")
    ledger = _ledger(disk)
    assert (ledger.end_index, ledger.bytes_cut) == (last.index - 1, last.size)


def test_synced_entries_survive_a_power_loss_and_none_is_invented() -> None:
    for seed in range(30):
        disk, chance = SimulatedDisk(), Random(seed)
        ledger = _ledger(disk)
        written = _fill(ledger, chance.randint(1, 30))
        flush = ledger.begin_flush()
        flush.sync()
        durable = ledger.end_flush(flush)
        written += _fill(ledger, chance.randint(0, 30))
        disk.crash_os(chance)
        found = _all(_ledger(disk))
        assert len(found) > durable
        assert found == written[: len(found)]


def test_a_lost_index_is_written_again() -> None:
    disk = SimulatedDisk()
    written = _fill(_ledger(disk), 40)
    disk.crash_process()
    for name in disk.names("/d/index"):
        disk.remove(f"/d/index/{name}")
    assert _all(_ledger(disk)) == written


def test_cut_entries_never_reappear() -> None:
    disk = SimulatedDisk()
    ledger = _ledger(disk)
    written = _fill(ledger, 40)
    ledger.begin_flush().sync()
    ledger.cut(5)
    disk.lose_power()
    assert _all(_ledger(disk)) == written[:6]


def test_a_sync_that_started_before_a_cut_says_nothing_about_later_entries() -> None:
    ledger = _ledger(SimulatedDisk())
    _fill(ledger, 5)
    flush = ledger.begin_flush()
    ledger.cut(2)
    _fill(ledger, 5, term=2)
    flush.sync()
    assert ledger.end_flush(flush) == NO_INDEX


def test_data_that_a_failed_sync_did_not_write_is_durable_after_a_start() -> None:
    disk = SimulatedDisk()
    ledger = _ledger(disk)
    written = _fill(ledger, 5)
    flush = ledger.begin_flush()

    def fail(_: object) -> None:
        raise OSError("the disk failed")

    disk.on_step = fail
    with pytest.raises(OSError, match="the disk failed"):
        flush.sync()
    disk.on_step = None
    disk.crash_process()
    assert _all(_ledger(disk)) == written
    disk.lose_power()
    assert _all(_ledger(disk)) == written


def test_an_entry_with_another_position_at_its_leader_is_refused() -> None:
    ledger = _ledger(SimulatedDisk())
    with pytest.raises(StoreError, match="segments of one size"):
        ledger.write(entry_format.make(0, 1, NORMAL, 96, b"x"))


def test_an_entry_too_large_for_a_segment_is_refused() -> None:
    with pytest.raises(StoreError, match="an entry of 548 bytes, 504 fit a segment"):
        _ledger(SimulatedDisk()).append(0, 1, NORMAL, bytes(500))


def test_term_and_vote_are_replaced_together_whatever_the_crash() -> None:
    for seed in range(30):
        disk = SimulatedDisk()
        ballot_file.write(disk, "/d/currterm", Ballot(3, "n1"))
        before = disk.unsynced()
        assert before == Image()
        write_durably(disk, "/d/other", b"x")
        disk.crash_os(Random(seed))
        assert ballot_file.load(disk, "/d/currterm") == Ballot(3, "n1")


def test_a_ballot_of_released_members_is_read() -> None:
    disk = SimulatedDisk()
    write_durably(disk, "/d/currterm", b"#Fri Nov 20\nvoteLeader=n2\ncurrTerm=7\n")
    assert ballot_file.load(disk, "/d/currterm") == Ballot(7, "n2")
    write_durably(disk, "/d/currterm", b"voteLeader=n2\n")
    with pytest.raises(StoreError, match="currTerm is ''"):
        ballot_file.load(disk, "/d/currterm")


def test_a_member_that_lost_its_ballot_does_not_start() -> None:
    disk = SimulatedDisk()
    config = GroupConfig("g", "n0", ("n0",))
    member = Member(config, disk, "/d", Random(1), 0.0, ledger=Ledger(disk, "/d", SMALL))
    member.core.tick(5000.0)
    member.step(5000.0)
    disk.remove("/d/currterm")
    with pytest.raises(StoreError, match="currterm is missing: the ledger has entries of term 1"):
        Member(config, disk, "/d", Random(1), 0.0, ledger=Ledger(disk, "/d", SMALL))


def test_the_state_that_a_member_starts_from_survives_a_power_loss() -> None:
    # The process died while it wrote its ballot: the content may be in the page cache only.
    config = GroupConfig("g", "n0", ("n0", "n1", "n2"))
    found = set()
    for steps in range(8):
        disk = SimulatedDisk()
        Member(config, disk, "/d", Random(1), 0.0, ledger=Ledger(disk, "/d", SMALL)).close()
        left = iter(range(steps))

        def fail(_step: Step, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise OSError("the disk failed")

        disk.on_step = fail
        with suppress(OSError):
            ballot_file.write(disk, "/d/currterm", Ballot(4, "n1"))
        disk.on_step = None
        disk.crash_process()
        state = Member(config, disk, "/d", Random(1), 0.0, ledger=Ledger(disk, "/d", SMALL)).core.state
        found.add((state.term, state.voted_for))
        disk.crash_os(Image())
        assert ballot_file.load(disk, "/d/currterm") == Ballot(state.term, state.voted_for)
    assert found == {(1, None), (4, "n1")}


def _expired(disk: SimulatedDisk) -> tuple[Ledger, list[Entry]]:
    """Write 40 entries in five segments and delete two segments, as a Cleaner does."""
    ledger = _ledger(disk)
    written = _fill(ledger, 40)
    assert ledger.begin_index == 0
    ledger.begin_flush().sync()
    ledger.data.detach_before(2 * 512).carry_out()
    ledger.forget_deleted().carry_out()
    return ledger, [entry for entry in written if entry.pos >= 2 * 512]


def test_a_ledger_begins_with_the_first_entry_that_was_not_deleted() -> None:
    disk = SimulatedDisk()
    ledger, left = _expired(disk)
    assert ledger.begin_index == left[0].index > 0
    assert [ledger.read(index) for index in range(ledger.begin_index, 40)] == left
    assert ledger.index_from(0) == ledger.index_from(left[0].pos) == left[0].index
    assert ledger.index_from(left[-1].pos) == 39
    assert ledger.position_of(39) == left[-1].pos
    with pytest.raises(StoreError, match="no entry"):
        ledger.read(left[0].index - 1)


@pytest.mark.parametrize("lost_index", [False, True])
def test_a_restarted_ledger_begins_there_too_and_grows(lost_index: bool) -> None:
    disk = SimulatedDisk()
    ledger, left = _expired(disk)
    ledger.close()
    if lost_index:
        for name in disk.names("/d/index"):
            disk.remove(f"/d/index/{name}")
    again = Ledger(disk, "/d", SMALL)
    terms = again.load()
    assert (terms.begin, terms.end, again.begin_index) == (left[0].index, 39, left[0].index)
    assert [again.read(index) for index in range(terms.begin, 40)] == left
    assert _fill(again, 3, term=2)[-1].index == 42


def test_index_segments_are_deleted_exactly_with_the_data_they_point_to() -> None:
    disk = SimulatedDisk()
    _, left = _expired(disk)
    starts = [int(name) for name in disk.names("/d/index")]
    assert starts[0] == left[0].index * 32 // 256 * 256 > 0


def test_full_segments_are_counted_even_if_as_many_were_deleted() -> None:
    """The index of a full segment must be synced, because a later start relies on it."""
    disk = SimulatedDisk()
    ledger = _ledger(disk)
    _fill(ledger, 16)
    ledger.begin_flush().sync()
    before = len(ledger.data.starts)
    ledger.data.detach_before(512).carry_out()
    ledger.forget_deleted().carry_out()
    _fill(ledger, 6)
    assert len(ledger.data.starts) == before
    assert len(ledger.begin_flush().unsynced) == 2


def test_a_ledger_whose_first_segment_does_not_begin_with_an_entry_is_refused() -> None:
    disk = SimulatedDisk()
    ledger, _ = _expired(disk)
    ledger.close()
    disk.open(f"/d/data/{1024:020d}").write(0, bytes(48))
    with pytest.raises(StoreError, match="does not begin with an entry"):
        _ledger(disk)


def test_the_index_is_complete_after_a_clean_stop_and_wherever_it_is_read() -> None:
    disk = SimulatedDisk()
    ledger = _ledger(disk)
    _fill(ledger, 5)
    assert disk.names("/d/index") == []
    ledger.write_index()
    written = b"".join(entry_format.encode_unit(ledger.read(index)) for index in range(5))
    assert disk.open(f"/d/index/{0:020d}").read(0, 5 * 32) == written
    _fill(ledger, 20)
    assert ledger.position_of(24) == ledger.read(24).pos
    assert len(disk.names("/d/index")) == 4, "25 units, 8 in a segment"


def test_a_cut_leaves_no_index_unit_of_cut_entries() -> None:
    disk = SimulatedDisk()
    ledger = _ledger(disk)
    written = _fill(ledger, 20)
    ledger.cut(10)
    _fill(ledger, 3, term=2)
    ledger.write_index()
    assert ledger.index_from(written[10].pos) == 10
    assert [ledger.position_of(index) for index in (11, 12, 13)] == [ledger.read(n).pos for n in (11, 12, 13)]
    assert disk.open(f"/d/index/{8 * 32:020d}").read(14 % 8 * 32, 64) == bytes(64)


# What a start reads.


def _full_index(terms: tuple[int, ...]) -> tuple[SimulatedDisk, list[Entry]]:
    """Return the disk of a closed ledger of more than three segments, with a complete index."""
    disk = SimulatedDisk()
    ledger = _ledger(disk)
    written = [ledger.append(index, term, NORMAL, b"entry") for index, term in enumerate(terms)]
    assert written[-1].pos >= 3 * 512
    ledger.write_index()
    ledger.close()
    return disk, written


TERMS = (1,) * 10 + (2,) * 30


def _index_of(disk: SimulatedDisk, count: int) -> bytes:
    data = b"".join(disk.open(f"/d/index/{name}").read(0, 256) for name in disk.names("/d/index"))
    return data[: 32 * count]


def test_a_start_takes_the_terms_of_early_entries_from_the_index_and_does_not_read_them() -> None:
    disk, written = _full_index(TERMS)
    disk.damage(f"/d/data/{0:020}", written[3].pos + 50, b"?")
    ledger = Ledger(disk, "/d", SMALL)
    terms = ledger.load()
    assert [terms.at(index) for index in range(40)] == list(TERMS)
    assert ledger.read(39) == written[39]
    with pytest.raises(StoreError, match="checksum"):
        ledger.read(3)


@pytest.mark.parametrize("at", [3, 12])
@pytest.mark.parametrize(
    "wrong",
    [{"index": 30}, {"term": 7}, {"pos": 4096}, {"size": 49}, {"magic": 7}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_an_index_with_a_wrong_unit_is_written_again_from_the_data(at: int, wrong: dict[str, int]) -> None:
    disk, written = _full_index(TERMS)
    right = _index_of(disk, 40)
    unit = entry_format.encode_unit(msgspec.structs.replace(written[at], **wrong))
    disk.damage(f"/d/index/{at // 8 * 256:020}", at % 8 * 32, unit)
    ledger = Ledger(disk, "/d", SMALL)
    terms = ledger.load()
    assert [terms.at(index) for index in range(40)] == list(TERMS)
    assert _all(ledger) == written
    assert _index_of(disk, 40) == right


def test_a_start_syncs_what_it_found_and_the_index() -> None:
    disk, _ = _full_index(TERMS)
    for name in disk.names("/d/index"):
        disk.remove(f"/d/index/{name}")
    synced: list[str] = []
    disk.on_step = lambda step: synced.append(step.path) if step.kind == "sync" else None
    _ledger(disk)
    assert {path.rsplit("/", 1)[0] for path in synced} >= {"/d/data", "/d/index"}
    assert synced[-1].startswith("/d/index/")


def test_a_start_walks_the_last_three_segments() -> None:
    """Damage in them ends the ledger; an earlier entry is only read by its index."""
    for back, whole in ((1, False), (2, False), (3, False), (4, True)):
        disk, written = _full_index((1,) * 50)
        segments = sorted({entry.pos // 512 for entry in written})
        hit = next(entry for entry in written if entry.pos // 512 == segments[-back])
        disk.damage(f"/d/data/{segments[-back] * 512:020}", hit.pos % 512 + 50, b"?")
        assert (_ledger(disk).end_index == 49) is whole, back


def test_a_closed_ledger_has_no_open_file() -> None:
    disk = SimulatedDisk()
    ledger = _ledger(disk)
    _fill(ledger, 20)
    ledger.write_index()
    assert {file.path.split("/")[2] for file in disk.opened} == {"data", "index"}
    ledger.close()
    no_open_file(disk)


def test_the_position_of_an_entry_is_known_wherever_it_is() -> None:
    disk = SimulatedDisk()
    ledger, left = _expired(disk)
    first = left[0]
    assert ledger.end_of(first.index - 1) == ledger.end_of(-1) == first.pos
    for entry in (first, left[-2], left[-1]):
        assert ledger.end_of(entry.index) == entry.pos + entry.size
    ledger._recent.clear()
    assert [ledger.end_of(entry.index) for entry in left] == [entry.pos + entry.size for entry in left]
    assert ledger.index_from(first.pos + 1) == first.index + 1
    assert ledger.index_from(left[-1].pos + 1) == 40


@pytest.mark.parametrize(
    ("end_pos", "size", "place"),
    [(0, 504, 0), (0, 505, None), (100, 404, 100), (100, 405, 512), (512, 504, 512), (1000, 16, 1000),
     (1000, 17, 1024)],
)  # fmt: skip
def test_an_entry_leaves_room_for_a_filler_in_its_segment(end_pos: int, size: int, place: int | None) -> None:
    assert _ledger(SimulatedDisk()).place_after(end_pos, size) == place


def test_a_cut_before_the_first_entry_leaves_an_empty_ledger() -> None:
    ledger = _ledger(SimulatedDisk())
    _fill(ledger, 20)
    ledger.cut(NO_INDEX)
    assert (ledger.end_index, ledger.end_pos) == (-1, 0)
    again = _fill(ledger, 2, term=2)
    assert [entry.pos for entry in again] == [0, again[0].size]
    assert _all(ledger) == again


def test_a_cut_before_the_deleted_entries_is_refused() -> None:
    ledger, left = _expired(SimulatedDisk())
    with pytest.raises(StoreError, match=f"cut after 2, it begins at {left[0].index}"):
        ledger.cut(2)


def test_a_ledger_that_begins_where_it_is_known_to_begin_is_loaded() -> None:
    disk = SimulatedDisk()
    ledger, left = _expired(disk)
    ledger.close()
    for known, loads in ((1024, True), (1023, False)):
        again = Ledger(disk, "/d", SMALL)
        again.known_begin = known
        if loads:
            assert again.load().end == left[-1].index
        else:
            with pytest.raises(StoreError, match="missing, the ledger began at position 1023"):
                again.load()


@pytest.mark.parametrize(("more", "loads"), [(0, True), (1, False)])
def test_a_ledger_that_lacks_durable_entries_is_refused(more: int, loads: bool) -> None:
    disk = SimulatedDisk()
    last = _fill(_ledger(disk), 3)[-1]
    again = Ledger(disk, "/d", SMALL)
    again.durable_pos = last.pos + last.size + more
    if loads:
        assert again.load().end == 2
    else:
        with pytest.raises(StoreError, match="no whole entry at position"):
            again.load()


def test_a_start_writes_no_index_unit_that_is_right() -> None:
    disk, _ = _full_index(TERMS)
    written: list[str] = []
    disk.on_step = lambda step: written.append(step.path) if step.kind == "write" else None
    _ledger(disk)
    assert not [path for path in written if "/index/" in path]
    assert [path for path in written if "/data/" in path], "data that may exist only in memory"


def test_64_mib_are_written_without_a_sync() -> None:
    disk = SimulatedDisk()
    ledger = _ledger(disk)
    ledger.append(0, 1, NORMAL, b"")
    ledger._synced_pos = 2 * 48 - (64 << 20)
    synced: list[int] = []
    disk.on_step = lambda step: synced.append(ledger.end_index + 1) if step.kind == "sync" else None
    for index in (1, 2, 3):
        ledger.append(index, 1, NORMAL, b"")
    assert synced == [2]


def test_the_segments_have_the_sizes_of_released_members() -> None:
    assert LedgerConfig() == LedgerConfig(data_segment_bytes=1_073_741_824, index_segment_bytes=167_772_160)

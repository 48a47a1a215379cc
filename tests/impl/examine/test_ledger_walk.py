"""Tests `store verify` and `store inspect` on a member's directory, undamaged and with each kind of damage.

Method: a group of one writes a store of several segments; the test damages one thing and examines the store.
"""

import asyncio
import struct
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from random import Random

import pytest

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.rpc_bodies import NORMAL
from mqproof.impl.examine import tables
from mqproof.impl.examine.contents import contents
from mqproof.impl.examine.directory import open_directory
from mqproof.impl.examine.verdict import Verdict
from mqproof.impl.examine.verify import verify
from mqproof.impl.runtime.disk import Disk, write_durably
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.errors import StoreError
from tests.impl.dledger.test_ledger_store import Site, _message, play

LEDGER = "/store/dledger-n0"
_LAST_BODY = "last of all"


def written(*, end: Callable[[Site], object] | None = None, clean: bool = False) -> SimulatedDisk:
    """Write 40 messages in many segments, with a clean exit unless `end` is given."""

    async def scenario(site: Site) -> SimulatedDisk:
        store = await site.leading()
        for number in range(40):
            await store.put(_message(f"m{number}" * 20, KEYS=f"k{number}"))
        if clean:
            await asyncio.sleep(1)
            store.config = replace(store.config, file_reserved_ms=1)
            assert await store.clean(manually=True) > 0
        await store.put(_message(_LAST_BODY))
        if end is None:
            await store.stop()
        else:
            store.put_soon([_message("on its way")], lambda _: None)
            store.kill()
            end(site)
        return site.disk

    return play(scenario)


def verdict(disk: Disk) -> Verdict:
    return verify(open_directory(disk, "/store", index_slots=10))


def damages(disk: Disk) -> list[str]:
    return verdict(disk).damages


def _data(number: int) -> str:
    return f"{LEDGER}/data/{2048 * number:020d}"


def _poke(disk: Disk, path: str, at: int, data: bytes) -> None:
    disk.open(path).write(at, data)


@pytest.mark.parametrize("clean", [False, True])
def test_an_undamaged_member_has_no_damage_and_everything_is_counted(clean: bool) -> None:
    found = verdict(written(clean=clean))
    assert (found.damages, found.notes) == ([], [])
    assert found.records == found.entries
    assert (found.records == 41) is not clean


def test_the_state_left_by_a_killed_process_is_no_damage_and_undispatched_messages_are_noted() -> None:
    found = verdict(written(end=lambda site: site.disk.crash_process()))
    assert found.damages == []
    assert "1 messages are not dispatched: only a leader knows whether they are committed" in found.notes
    assert found.records == 41


@pytest.mark.parametrize("seed", range(8))
def test_a_member_that_recovered_from_a_crash_is_never_reported_as_damaged(seed: int) -> None:
    async def scenario(site: Site) -> SimulatedDisk:
        for life in range(3):
            store = await site.leading()
            for number in range(9):
                await store.put(_message(f"l{life}m{number}"))
            store.put_soon([_message("on its way")], lambda _: None)
            store.kill()
            site.disk.crash_os(Random(f"{seed}{life}"))
        await (await site.leading()).stop()
        return site.disk

    assert damages(play(scenario)) == []


def test_a_changed_byte_of_an_entry_is_reported_with_its_position() -> None:
    disk = written()
    _poke(disk, _data(1), 100, b"\xff")
    said = damages(disk)
    assert said[0].startswith(
        f"dledger-n0/data/{2048:020d}: at 2048 is not a complete entry: the checksum of entry "
    )
    assert said[0].endswith("does not match its content, but more data follows")
    assert len(said) == 1, "queues and index point into the reported entry"


def test_a_missing_filler_and_a_missing_segment_are_reported() -> None:
    disk = written()
    end = entry_format.peek(disk.open(_data(0)).read(0, 8))
    while (size := entry_format.peek(disk.open(_data(0)).read(end, 8))) > 0:
        end += size
    _poke(disk, _data(0), end, bytes(2048 - end))
    assert damages(disk) == [
        f"dledger-n0/data/{0:020d}: at {end} is neither an entry nor a filler, but more data follows"
    ]
    disk.remove(_data(1))
    assert f"dledger-n0/data/{4096:020d}: the segment before it is missing" in damages(disk)


def test_data_after_the_end_that_a_queue_points_to_is_damage() -> None:
    disk = written()
    opened = open_directory(disk, "/store", index_slots=10)
    last = opened.queues["T", 0].units(40, 1)[0].commit_offset - entry_format.HEADER_BYTES
    _poke(disk, _data((opened.log.end - 1) // 2048), (opened.log.end - 1) % 2048, b"\xff")
    assert damages(disk)[0].startswith(
        f"dledger-n0/data/{last // 2048 * 2048:020d}: at {last} is not a complete entry"
    )


def _entry_again(disk: Disk, **changes: int) -> None:
    """Return the first entry of the second segment, changed, with the correct checksum."""
    old = entry_format.decode(_whole(disk, _data(1)), 2048)
    fields = {"index": old.index, "term": old.term, "magic": NORMAL, "pos": 2048, **changes}
    new = entry_format.make(body=old.body, **fields)
    _poke(disk, _data(1), 0, entry_format.encode(new))
    _poke(disk, f"{LEDGER}/index/{0:020d}", new.index * 32, entry_format.encode_unit(new))


def _whole(disk: Disk, path: str) -> bytes:
    front = disk.open(path).read(0, 8)
    return disk.open(path).read(0, entry_format.peek(front))


def test_an_entry_out_of_order_is_reported_by_index_and_by_term() -> None:
    disk = written()
    first = entry_format.decode(_whole(disk, _data(1)), 2048).index
    _entry_again(disk, index=first + 7)
    assert f"dledger-n0/data/{2048:020d}: entry {first + 7} at 2048 behind entry {first - 1}" in damages(disk)
    disk = written()
    _entry_again(disk, term=9)
    assert f"entry {first + 1} is of term 1, behind one of term 9" in "\n".join(damages(disk))


def test_a_wrong_index_is_reported_in_one_line() -> None:
    disk = written()
    _poke(disk, f"{LEDGER}/index/{0:020d}", 3 * 32, bytes(3 * 32))
    assert damages(disk) == ["dledger-n0/index: entries 3 to 5 not as in the data"]


def test_missing_index_units_of_the_newest_entries_after_a_crash_are_a_note() -> None:
    found = verdict(written(end=lambda site: site.disk.crash_process()))
    assert found.damages == []
    (note,) = (note for note in found.notes if "are not in the ledger's index" in note)
    assert note.endswith("the next start writes them")
    assert int(note.split()[0]) > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "dledger-n0/currterm: missing, the ledger has entries of term 1"),
        (b"currTerm=0\nvoteLeader=\n", "dledger-n0/currterm: term 0, the ledger has entries of term 1"),
        (b"nonsense", "dledger-n0/currterm: currTerm is '', a number up to 4611686018427387904 expected"),
    ],
)
def test_a_lost_vote_is_damage(text: bytes | None, said: str) -> None:
    disk = written()
    disk.remove(f"{LEDGER}/currterm")
    if text is not None:
        write_durably(disk, f"{LEDGER}/currterm", text)
    assert damages(disk) == [said]


def test_an_entry_that_is_not_a_message_is_reported() -> None:
    disk = written()
    old = entry_format.decode(_whole(disk, _data(1)), 2048)
    new = entry_format.make(old.index, old.term, NORMAL, 2048, b"x" * len(old.body))
    _poke(disk, _data(1), 0, entry_format.encode(new))
    assert damages(disk)[0].startswith(f"dledger-n0/data/{2048:020d}: entry {old.index} is not a message: ")


def test_damage_of_queues_is_found_as_in_any_store() -> None:
    disk = written()
    (path,) = (f"/store/consumequeue/T/0/{name}" for name in disk.names("/store/consumequeue/T/0")[:1])
    _poke(disk, path, 0, struct.pack(">q", 7))
    assert damages(disk) == ["consumequeue/T/0: entry 0 not at its record"]


def test_the_contents_include_the_member_its_ledger_and_its_vote() -> None:
    disk = written(clean=True)
    found = contents(open_directory(disk, "/store", index_slots=10), in_use=False)
    assert found.ledger is not None
    assert (found.ledger.member, found.ledger.term, found.ledger.voted_for) == ("n0", 1, "n0")
    assert (
        found.ledger.begin_index
        == entry_format.decode(_whole(disk, _data(found.log_begin // 2048)), found.log_begin).index
    )
    assert found.segments[0].first_store_ms
    with redirect_stdout(StringIO()) as shown:
        tables.show(found)
    assert (
        f"member n0 of a group: ledger from entry {found.ledger.begin_index} on, term 1, vote for n0"
        in shown.getvalue()
    )


def test_a_directory_of_two_members_is_refused() -> None:
    disk = written()
    write_durably(disk, "/store/dledger-n1/currterm", b"")
    with pytest.raises(StoreError, match="the ledgers of 2 members, one expected: dledger-n0, dledger-n1"):
        open_directory(disk, "/store")


def test_examining_changes_nothing() -> None:
    disk = written()
    disk.on_step = pytest.fail  # type: ignore[assignment]
    verdict(disk)
    contents(open_directory(disk, "/store", index_slots=10), in_use=False)

"""Scripts for a member that starts with strange files. `strange_files.txt` has what it sends.

See docs/reference/protocol/dledger.md, "DLedger files" and "Limits".
"""

import asyncio
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.scripted_members.failing_lives import look
from mqproof.conformance.adapters.scripted_members.ledger_files import UNIT_BYTES, Item, LedgerFiles
from mqproof.conformance.adapters.scripted_members.scripted_group import (
    GET,
    METADATA,
    PUSH,
    VOTE,
    Fields,
    Followers,
    Lives,
    ScriptedGroup,
    write_file,
)

EXPECTED: Final = Path(__file__).with_suffix(".txt")
_DIRECTORY: Final = "/store/dledger-n0"
_BALLOT: Final = "currterm"
_SEGMENT_BYTES: Final = 8192
_INDEX_BYTES: Final = 32768
_LARGE_BYTES: Final = 5000
"""No segment has room for two such bodies."""


async def _highest(group: ScriptedGroup) -> None:
    """Ledgers that begin with the highest index and have the highest term, and one beyond."""
    for index, term in ((1 << 56, 1), (1 << 56, 1 << 62), ((1 << 56) + 1, 1), (1 << 56, (1 << 62) + 1)):
        for has_checksum in (True, False):
            item = Item(index, term, _SEGMENT_BYTES, b"a", has_checksum=has_checksum)
            await group.lose_files()
            group.heading(f"an entry {index} of term {term}, checksum: {has_checksum}")
            _write_segments(group, "data", _SEGMENT_BYTES, {_SEGMENT_BYTES: item.written()})
            write_file(group, f"{_DIRECTORY}/{_BALLOT}", f"currTerm={1 << 62}\nvoteLeader=\n".encode())
            await group.start_member()
            if group.is_running:
                await look(group)
                await group.stop_member()


def _write_segments(group: ScriptedGroup, name: str, size: int, content: Mapping[int, bytes]) -> None:
    for start, data in content.items():
        write_file(group, f"{_DIRECTORY}/{name}/{start:020}", data.ljust(size, b"\0"))


def _ledger(count: int, entries_of_a_term: int, **more: bool) -> LedgerFiles:
    """Return a ledger with one entry in each segment."""
    files = LedgerFiles(_SEGMENT_BYTES, _INDEX_BYTES)
    for at in range(count):
        item = files.next(1 + at // entries_of_a_term, bytes([97 + at]) * _LARGE_BYTES, **more)
        assert item is not None, "it fits a segment"
        files.items.append(item)
    return files


_FIRST: Final = 2
"""The entry whose unit is damaged is in the third segment of six; a start reads the last three."""


async def _damaged_units(group: ScriptedGroup) -> None:
    """The unit of an entry in an early segment has a wrong field: the start reads the data instead."""
    files = _ledger(6, 2, has_checksum=False)
    for at, what, unit in _units(files.items):
        group.heading(f"the unit of entry {at}: {what}")
        index = bytearray(files.index()[0])
        index[at * UNIT_BYTES : (at + 1) * UNIT_BYTES] = unit
        await _read(group, files, index={0: bytes(index)})


def _units(items: list[Item]) -> Iterator[tuple[int, str, bytes]]:
    for at in (1, _FIRST):
        item = items[at]
        for what, changed in {
            "none": {}, "a lower term": {"term": 0}, "a term beyond": {"term": (1 << 62) + 1},
            "a size too small": {"body": item.body[:-1]}, "a size too large": {"body": item.body + b"."},
            "another index": {"index": at + 1}, "an index beyond": {"index": (1 << 56) + 1},
            "another place": {"pos": item.pos + 1}, "a negative place": {"pos": -1}, "a magic": {"magic": 3},
        }.items():  # fmt: skip
            yield at, what, replace(item, **changed).unit()  # type: ignore[arg-type]
        magic, pos, _, index, term = struct.unpack(">iqiqq", item.unit())
        for size in (47, 48, -1):
            yield at, f"{size} bytes", struct.pack(">iqiqq", magic, pos, size, index, term)


async def _damaged_headers(group: ScriptedGroup) -> None:
    """An entry in an early segment says a wrong size, and has no checksum."""
    files = _ledger(6, 6, has_checksum=False)
    size = files.items[1].size
    for what, offset, value in (
        ("a size too large", 4, size + 1), ("a size too small", 4, size - 1), ("another magic", 0, 3),
        ("a body too large", 44, _LARGE_BYTES + 1), ("a body too small", 44, _LARGE_BYTES - 1),
        ("a negative body", 44, -1), ("another place", 28, 1), ("index 2^56 and more", 8, 1 << 25),
        ("a negative term", 16, -1), ("a checksum", 36, 1), ("a channel", 32, 7), ("a body checksum", 40, 9),
    ):  # fmt: skip
        group.heading(f"entry 1 has {what}")
        data = files.data()
        changed = bytearray(data[_SEGMENT_BYTES])
        struct.pack_into(">i", changed, offset, value)
        await _read(group, files, data={**data, _SEGMENT_BYTES: bytes(changed)})


async def _read(
    group: ScriptedGroup,
    files: LedgerFiles,
    data: Mapping[int, bytes] | None = None,
    index: Mapping[int, bytes] | None = None,
) -> None:
    """Start with the ledger, let n0 lead, and read all entries."""
    await group.lose_files()
    _write_segments(group, "data", _SEGMENT_BYTES, data or files.data())
    _write_segments(group, "index", _INDEX_BYTES, index or files.index())
    write_file(group, f"{_DIRECTORY}/{_BALLOT}", b"currTerm=3\nvoteLeader=\n")
    followers = Followers()
    followers.ends = {"n1": 99, "n2": 99}
    group.script = followers.answer
    begin = len(group.lines)
    await group.start_member()
    await asyncio.sleep(1.2)
    group.lines[begin:] = [each for each in group.lines[begin:] if not each.startswith("n0 -> ")]
    for at in range(len(files.items) + 1):
        await group.ask(GET, -1, "c", beginIndex=at)
    await group.stop_member()


async def _ballots(group: ScriptedGroup) -> None:
    """What a start makes of each text of the ballot."""
    texts = (
        "currTerm=3\nvoteLeader=n1\n", "voteLeader = n1 \n currTerm = 3 ", "currTerm=3", "currTerm=0\n",
        "currTerm=-1\n", "currTerm=\n", "", "currTerm=1x\n", "currTerm=+1\n", "currTerm=1\ncurrTerm=2\n",
        f"currTerm={1 << 62}\n", f"currTerm={(1 << 62) + 1}\n", f"currTerm=0{1 << 62}\n", "currTerm:4\n",
        f"currTerm=1\nvoteLeader={'x' * 255}\n", f"currTerm=1\nvoteLeader={'x' * 256}\n",
        "#currTerm=9\n!currTerm=8\ncurrTerm=7\n", "currTerm=3\nvoteLeader=a=b\n",
    )  # fmt: skip
    for text in texts:
        await group.lose_files()
        group.heading(f"the ballot {text[:60]!r}")
        write_file(group, f"{_DIRECTORY}/{_BALLOT}", text.encode())
        await group.start_member()
        if group.is_running:
            await look(group)
            await group.stop_member()


async def _of_a_leader(group: ScriptedGroup) -> None:
    """Followers answer with entries that they have in place of the leader's."""
    files = _ledger(9, 3)
    for what, answers, ends in _CONFLICTS:
        await group.lose_files()
        group.heading(what)
        _write_segments(group, "data", _SEGMENT_BYTES, files.data())
        write_file(group, f"{_DIRECTORY}/{_BALLOT}", b"currTerm=4\nvoteLeader=\n")
        followers = Followers()
        followers.ends = {"n1": ends, "n2": 99}
        left: list[Fields] = list(answers)

        def answer(
            name: str, code: int, request: Fields, left: list[Fields] = left, own: Followers = followers
        ) -> Fields | None:
            if code == PUSH and name == "n1" and left:
                return {"code": 406, "leaderId": "n0", **left.pop(0)}
            return own.answer(name, code, request)

        group.script = answer
        await group.start_member()
        await asyncio.sleep(2.3)
        await group.ask(GET, -1, "c", beginIndex=9)
        await group.stop_member()


_CONFLICTS: Final[tuple[tuple[str, tuple[Fields, ...], int], ...]] = (
    ("xIndex 0 without acknowledged entries", ({"endIndex": 8, "xIndex": 0, "xTerm": 1},), 99),
    ("xIndex 1", ({"endIndex": 8, "xIndex": 1, "xTerm": 1},), 99),
    ("xIndex 3", ({"endIndex": 8, "xIndex": 3, "xTerm": 2},), 99),
    ("the entry itself", ({"endIndex": 8, "xIndex": 8, "xTerm": 3},), 99),
    ("a shorter log", ({"endIndex": 4, "xIndex": -1},), 4),
    ("a shorter log, then a conflict", ({"endIndex": 4, "xIndex": -1}, {"endIndex": 4, "xIndex": 3}), 2),
    ("no entry at all", ({"endIndex": -1, "xIndex": -1},), -1),
    ("a log of which it says nothing", ({},) * 2, -1),
)


_SMALL_BYTES: Final = 3000
"""A segment has room for two such bodies."""


async def _damaged_entries(group: ScriptedGroup) -> None:
    """One entry is damaged: in the last three segments the start finds it, in earlier ones only a read."""
    for segments, at in ((2, 1), (3, 1), (4, 1), (4, 3), (5, 1), (5, 3), (5, 5), (5, 9)):
        files = LedgerFiles(_SEGMENT_BYTES, _INDEX_BYTES)
        for number in range(2 * segments):
            item = files.next(1 + number // 4, bytes([97 + number]) * _SMALL_BYTES)
            assert item is not None, "it fits a segment"
            files.items.append(item)
        group.heading(f"entry {at} of {2 * segments} in {segments} segments is damaged")
        data = {start: bytearray(each) for start, each in files.data().items()}
        pos = files.items[at].end - 1
        data[pos - pos % _SEGMENT_BYTES][pos % _SEGMENT_BYTES] ^= 1
        await _read(group, files, data={start: bytes(each) for start, each in data.items()})


async def _votes_by_logs(group: ScriptedGroup) -> None:
    """A voter compares the last entries: first their terms, then their indexes."""
    for count, entries_of_a_term, first_term in ((6, 3, 1), (2, 2, 9), (9, 9, 9)):
        await group.lose_files()
        files = _ledger(count, entries_of_a_term)
        files.items = [replace(each, term=each.term + first_term - 1) for each in files.items]
        _write_segments(group, "data", _SEGMENT_BYTES, files.data())
        write_file(group, f"{_DIRECTORY}/{_BALLOT}", b"currTerm=20\nvoteLeader=n1\n")
        await group.start_member()
        await group.ask(METADATA, -1, "c")
        group.heading(f"votes of one whose log ends at {files.end} of term {files.end_term}")
        for term in (files.end_term - 1, files.end_term, files.end_term + 1):
            for index in (0, files.end - 1, files.end, files.end + 1, 99):
                await group.ask(VOTE, 20, ledgerEndIndex=index, ledgerEndTerm=term)
        await group.ask(VOTE, 19, ledgerEndIndex=99, ledgerEndTerm=19)
        await group.ask(VOTE, 20, "n2", ledgerEndIndex=99, ledgerEndTerm=19)


LIVES: Final[Lives] = (
    (_highest, {}), (_damaged_units, {}), (_damaged_headers, {}), (_ballots, {}), (_of_a_leader, {}),
    (_damaged_entries, {}), (_votes_by_logs, {}),
)  # fmt: skip
"""The scripts, each with the configuration of its member."""

"""Ledgers with drawn entries: cut, deleted, killed, without power, damaged; their files and entries compared.

`ledger_files` states what the files and the entries must be.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mqproof.conformance.adapters.scripted_members.ledger_damages import DAMAGES, Damage
from mqproof.conformance.adapters.scripted_members.ledger_files import (
    FILLER_BYTES,
    HEADER_BYTES,
    HIGHEST_TERM,
    NO_OP,
    NORMAL,
    UNIT_BYTES,
    Item,
    LedgerFiles,
)
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.impl.dledger.ledger import Ledger, LedgerConfig
from mqproof.impl.dledger.rpc_bodies import Entry
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.errors import StoreError

_DIRECTORY: Final = "ledger"
_LEDGERS: Final = 3
_STEPS: Final = 14
_RAISED: Final = (StoreError, OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError)


def wrong_ledgers(seed: int) -> tuple[str, ...]:
    """Draw ledgers and damage them; return what differs."""
    found: list[str] = []
    with expected_warnings("mqproof.impl"):
        for number in range(seed * _LEDGERS, (seed + 1) * _LEDGERS):
            ledger = DrawnLedger(number)
            try:
                ledger.run()
            except _RAISED as error:
                ledger.wrong.append(f"{ledger.doing}: it raises {error!r}")
            found += [f"ledger {number}, {each}" for each in ledger.wrong]
    return tuple(found)


class DrawnLedger:
    """A ledger on a disk of its own; `number` determines its content, and what happens to it."""

    def __init__(self, number: int) -> None:
        self.wrong: list[str] = []
        self.doing = ""
        self._number = number
        self._chance = chance = random.Random(number)
        segment_bytes, index_bytes = chance.choice((200, 256, 333)), UNIT_BYTES * chance.choice((2, 3, 9))
        self._config = LedgerConfig(segment_bytes, index_bytes)
        self._disk = SimulatedDisk()
        self._files = LedgerFiles(segment_bytes, index_bytes)
        self._unreadable: tuple[int, ...] = ()
        """The entries that a damage made unreadable."""
        self._synced = -1
        """The index up to which the ledger is known to be durable."""
        self._ledger = self._opened()
        self._terms = self._ledger.load()

    def run(self) -> None:
        """Fill the ledger in several lives, and damage copies of it."""
        self._compare("when it is new")
        for ends in (self._stop, self._kill, self._lose_power, self._stop):
            for _ in range(_STEPS):
                self._do(self._chance.choice(_CHOICES))
            self._do(ends)
            self._open()
        self._do(self._stop)
        names = list(DAMAGES)
        for name in (names[(self._number * 3 + each) % len(names)] for each in range(3)):
            self._damage(name)

    def _do(self, step: "Callable[..., None]") -> None:
        self.doing = f"{self._files.end + 1} entries, {step.__name__.strip('_').replace('_', ' ')}"
        step(self) if step in _CHOICES else step()

    # -- steps

    def _append(self) -> None:
        """Append an entry of a leader, or write one as a follower."""
        chance, files = self._chance, self._files
        term = min(max(files.end_term, 1) + chance.choice((0, 0, 0, 1, 5)), HIGHEST_TERM)
        room = files.room_after(files.end_pos) - HEADER_BYTES - FILLER_BYTES
        largest = files.segment_bytes - HEADER_BYTES - FILLER_BYTES
        size = chance.choice(
            (0, chance.randrange(40), chance.randrange(40), room, room - 1, room + 1, largest)
        )
        body = chance.randbytes(min(max(size, 0), largest))
        magic = NO_OP if not body else NORMAL
        if chance.random() < 0.5:
            item = self._next(term, body, magic=magic)
            given = body if chance.random() < 0.5 else self._placed(item)
            entry = self._ledger.append(item.index, term, magic, given)
            self._same("the entry that was appended", _fields(item), _fields_of(entry))
        else:
            item = self._next(term, body, magic=magic, channel=chance.choice((0, 7)), body_crc=-5)
            item = replace(item, has_checksum=chance.random() < 0.7)
            self._ledger.write(_entry(item))
        files.items.append(item)
        self._terms.append(term)
        self._look()
        synced = files.items[self._synced].pos if self._synced >= 0 else 0
        is_checked = item.has_checksum and (item.body or not item.body_crc)
        if not is_checked or item.pos - synced > files.segment_bytes:
            self._flush()  # a start does not notice what a loss of power takes from such entries

    def _next(self, term: int, body: bytes, **more: int) -> Item:
        item = self._files.next(term, body, **more)
        assert item is not None, "a body has at most the size that a segment has room for"
        return item

    def _placed(self, item: Item) -> Callable[[int], bytes]:
        def body(pos: int) -> bytes:
            if pos:
                self._same("the position of the body", item.pos + HEADER_BYTES, pos)
            return item.body

        return body

    def _refuse(self) -> None:
        """Give it entries that do not fit, or that are at another position."""
        files = self._files
        large = bytes(files.segment_bytes - HEADER_BYTES - FILLER_BYTES + 1)
        term = max(1, files.end_term)
        self._raises(
            "an entry larger than a segment", lambda: self._ledger.append(files.end + 1, term, 1, large)
        )
        item = self._next(term, b"x")
        if item.pos != files.end_pos:
            return  # a filler would be written first
        for pos, size in ((item.pos + 1, item.size), (item.pos, item.size + 1)):
            wrong = Entry(1, size, item.index, term, pos, body=b"x")
            self._raises("an entry of another place", partial(self._ledger.write, wrong))
        for index in (files.begin - 1, files.end + 1):
            self._raises(f"a read of entry {index}", partial(self._ledger.read, index))

    def _cut(self) -> None:
        """Remove the last entries."""
        files = self._files
        if not files.items:
            return
        end = self._chance.randint(max(files.begin, files.end - 4), files.end)
        if files.begin == 0 and self._chance.random() < 0.1:
            end = -1
        flush = self._ledger.begin_flush()
        self._ledger.cut(end)
        self._terms.cut(end)
        files.cut(end)
        flush.sync()
        self._same("the result of a flush before a cut", -1, self._ledger.end_flush(flush))
        self._synced = end
        self._look()
        self._same("the data", self._files.data(), self._content("data", self._disk, self._next_data))
        self._same_durable("data", self._files.data(), self._next_data)

    def _flush(self) -> None:
        """Make everything durable."""
        flush = self._ledger.begin_flush()
        flush.sync()
        self._same("the end of a flush", self._files.end, self._ledger.end_flush(flush))
        self._same("the position of a flush", self._files.end_pos, flush.end_pos)
        self._synced = self._files.end

    def _delete(self) -> None:
        """Delete old segments, as a broker does."""
        files = self._files
        if len(files.starts) < 3 or self._chance.random() < 0.5:
            return
        pos = self._chance.choice(files.starts[1:-1])
        self._flush()
        self._ledger.data.detach_before(pos + self._chance.randrange(20)).carry_out()
        files.begin = files.first_at(pos)
        self._ledger.forget_deleted().carry_out()
        self._terms.begin = files.begin
        self._look()

    def _look(self) -> None:
        """Compare what the ledger shows of its entries."""
        files, ledger = self._files, self._ledger
        self._same("begin", files.begin, ledger.begin_index)
        self._same("end", (files.end, files.end_pos), (ledger.end_index, ledger.end_pos))
        known = [each for each in files.kept if each.index not in self._unreadable]
        for item in self._chance.sample(known, min(3, len(known))):
            self._same(f"entry {item.index}", _fields(item), _fields_of(ledger.read(item.index)))
            self._same(f"the position of {item.index}", item.pos, ledger.position_of(item.index))
            self._same(f"the end of {item.index}", item.end, ledger.end_of(item.index))
            for pos in (item.pos - 1, item.pos, item.pos + 1):
                self._same(f"the first entry from {pos}", files.first_at(pos), ledger.index_from(pos))
            for size in (HEADER_BYTES, files.room_after(item.end) - 8, files.room_after(item.end) - 7, 999):
                place = files.place(size, item.end)
                self._same(f"the place of {size} bytes", place, ledger.place_after(item.end, size))
        self._same(
            "the end of no entry", files.starts[0] if files.kept else 0, ledger.end_of(files.begin - 1)
        )

    # -- ends of a life

    def _stop(self) -> None:
        """Stop cleanly."""
        self._ledger.write_index()
        self._same("the index", self._files.index(), self._content("index", self._disk, self._next_unit))
        self._ledger.close()
        self._disk.crash_process()

    def _kill(self) -> None:
        """End the process where it is."""
        self._disk.crash_process()

    def _lose_power(self) -> None:
        """Crash the machine: what was synced remains, and perhaps more."""
        self._disk.crash_process()
        self._disk.crash_os(self._chance)
        probe = self._opened(self._disk.copy())
        probe.load()
        if not self._synced <= probe.end_index <= self._files.end:
            self.wrong.append(
                f"after a loss of power it ends at {probe.end_index}, {self._synced} was durable"
            )
        self._files.cut(max(probe.end_index, self._files.begin - 1))
        if self._files.kept:  # a header without a body, torn before its checksum, looks like one without
            last = self._files.items[-1]
            is_whole = bool(last.body or probe.read(last.index).chain_crc)
            self._files.items[-1] = replace(last, has_checksum=last.has_checksum and is_whole)
            if len(self._files.kept) > 1 and (before := self._files.items[-2].end) != last.pos:
                self._files.fillers[before] = probe.data.read(before, FILLER_BYTES)

    def _opened(self, disk: SimulatedDisk | None = None) -> Ledger:
        return Ledger((disk or self._disk).process(), _DIRECTORY, self._config)

    def _open(self) -> None:
        self.doing = f"{self.doing}, then a start"
        self._ledger = self._opened()
        self._terms = self._ledger.load()
        self._synced = self._files.end
        self._compare("after a start")

    # -- damages

    def _damage(self, name: str) -> None:
        """Damage a copy of the disk, and start on it; the ledger must be as the damage says."""
        before = self._disk, self._files, self._ledger
        self._disk = self._disk.copy()
        self._files = before[1].copy()
        self.doing = f"{self._files.end + 1} entries, {name}"
        damage = Damage(self._disk, _DIRECTORY, self._files, self._chance)
        if self._files.kept and DAMAGES[name](damage):
            self._disk.crash_process()
            self._ledger = ledger = self._opened()
            ledger.durable_pos, ledger.known_begin = damage.durable_pos, damage.known_begin
            if damage.is_refused:
                self._raises(f"a start with {name}", ledger.load)
            else:
                self._terms = ledger.load()
                if damage.bytes_cut is not None:
                    self._same("the number of bytes cut", damage.bytes_cut, ledger.bytes_cut)
                self._unreadable, self._synced = damage.unreadable, self._files.end
                self._compare("after the start")
                self._append()
                self._stop()
        self._disk, self._files, self._ledger = before
        self._unreadable = ()

    # -- comparisons

    def _compare(self, when: str) -> None:
        """Compare all files, all entries and their terms; everything must be durable."""
        files, ledger = self._files, self._ledger
        expected = {"data": files.data(), "index": files.index()}
        if not self._unreadable:
            for name, following in (("data", self._next_data), ("index", self._next_unit)):
                content = self._content(name, self._disk, following)
                self._same(f"{name} {when}", expected[name], content)
                self._same_durable(name, expected[name], following)
        self._same("begin", (files.begin, files.begin), (ledger.begin_index, self._terms.begin))
        self._same("end", (files.end, files.end_pos), (ledger.end_index, ledger.end_pos))
        self._same("the last term", files.end_term, self._terms.end_term)
        terms = [each.term for each in files.kept]
        self._same("the terms", terms, [self._terms.at(each.index) for each in files.kept])
        for item in files.kept:
            if item.index in self._unreadable:
                self._raises(f"a read of entry {item.index}", partial(ledger.read, item.index))
            else:
                self._same(f"entry {item.index}", _fields(item), _fields_of(ledger.read(item.index)))

    @property
    def _next_data(self) -> int:
        return self._files.end_pos

    @property
    def _next_unit(self) -> int:
        return (self._files.end + 1) * UNIT_BYTES

    def _content(self, name: str, disk: SimulatedDisk, following: int) -> dict[int, bytes]:
        """Return the content of segments by position; an empty one at `following` counts as absent."""
        found = {}
        for path in disk.files(f"{_DIRECTORY}/{name}"):
            content = disk.written(path).rstrip(b"\0")
            start = int(path.rpartition("/")[2])
            if content or start != following:
                found[start] = content
        return found

    def _same_durable(self, name: str, expected: dict[int, bytes], following: int) -> None:
        disk = self._disk.copy()
        disk.lose_power()
        self._same(f"{name} after a loss of power", expected, self._content(name, disk, following))

    def _same(self, what: str, expected: Any, observed: Any) -> None:
        if expected != observed:
            self.wrong.append(f"{self.doing}: {what} is {observed!r}, expected {expected!r}")

    def _raises(self, what: str, call: Callable[[], object]) -> None:
        try:
            call()
        except StoreError as error:
            if _DIRECTORY not in str(error) and "bytes" not in str(error):
                self.wrong.append(f"{self.doing}: {what} is refused with {error}")
        else:
            self.wrong.append(f"{self.doing}: {what} is not refused")


_CHOICES: Final = (
    *(DrawnLedger._append,) * 8,
    DrawnLedger._cut,
    DrawnLedger._flush,
    DrawnLedger._delete,
    DrawnLedger._refuse,
)


def _entry(item: Item) -> Entry:
    return Entry(
        item.magic, item.size, item.index, item.term, item.pos, item.channel, item.checksum,
        item.body_crc, item.body,
    )  # fmt: skip


def _fields(item: Item) -> tuple[Any, ...]:
    return (
        item.magic, item.size, item.index, item.term, item.pos, item.channel, item.checksum,
        item.body_crc, item.body,
    )  # fmt: skip


def _fields_of(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.magic, entry.size, entry.index, entry.term, entry.pos, entry.channel, entry.chain_crc,
        entry.body_crc, bytes(entry.body),
    )  # fmt: skip

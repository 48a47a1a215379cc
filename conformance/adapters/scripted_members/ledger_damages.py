"""Damages of the files of a ledger, and what a start must find then."""

import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.scripted_members.ledger_files import (
    HIGHEST_TERM,
    UNIT_BYTES,
    Item,
    LedgerFiles,
)
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

_WALKED_SEGMENTS: Final = 3
"""A start reads every entry of so many segments at the end. The index is enough for earlier ones."""
_HIGHEST_INDEX: Final = 1 << 56


class Damage:
    """Changes the files of a ledger. The fields state what the next start must do."""

    def __init__(
        self, disk: SimulatedDisk, directory: str, files: LedgerFiles, chance: random.Random
    ) -> None:
        self.disk = disk
        self.files = files
        self.chance = chance
        self.durable_pos = 0
        self.known_begin: int | None = None
        self.is_refused = False
        self.bytes_cut: int | None = None
        self.unreadable: tuple[int, ...] = ()
        self._directory = directory

    @property
    def walked(self) -> list[Item]:
        """The entries that a start reads."""
        first = self.files.starts[-_WALKED_SEGMENTS:][0]
        return [each for each in self.files.kept if each.pos >= first]

    @property
    def earlier(self) -> list[Item]:
        """The entries of earlier segments that do not begin one."""
        first, starts = self.walked[0].pos, self.files.starts
        return [each for each in self.files.kept if each.pos < first and each.pos not in starts]

    def path(self, name: str, start: int) -> str:
        return f"{self._directory}/{name}/{start:020d}"

    def overwrite(self, name: str, position: int, data: bytes) -> None:
        """Write durable bytes, which may continue in the next segment."""
        files = self.files
        segment = files.segment_bytes if name == "data" else files.index_segment_bytes
        while data:
            offset = position % segment
            part, data = data[: segment - offset], data[segment - offset :]
            path = self.path(name, position - offset)
            if path in self.disk.files(self._directory):
                self.disk.damage(path, offset, part)
            position += len(part)

    def cut_from(self, item: Item) -> None:
        """State that the start removes the entry and all later ones."""
        self.files.cut(item.index - 1)

    def following(self, **more: Any) -> Item | None:
        """Return an entry after the last one, in its segment; None if the segment has no room for it."""
        item = Item(self.files.end + 1, self.files.end_term, self.files.end_pos, b"new")
        room = self.files.room_after(item.pos)
        return replace(item, **more) if item.size + 8 <= room < self.files.segment_bytes else None


def _torn(damage: Damage) -> bool:
    """The last entry is torn: its end was not written."""
    item = damage.files.items[-1]
    written = item.written()
    kept = damage.chance.randrange(1, len(written))
    lost = bytes(len(written) - kept)
    if item.index <= damage.files.begin or not (item.has_checksum and item.body) or written[kept:] == lost:
        return False
    damage.overwrite("data", item.pos + kept, lost)
    damage.cut_from(item)
    start = damage.files.end_pos
    filled = item.pos if item.pos == start else None
    damage.bytes_cut = len(written[:kept].rstrip(b"\0")) if filled is not None else None
    return True


def _altered(damage: Damage) -> bool:
    """One byte of an entry differs."""
    items = [each for each in damage.walked[1:] if each.has_checksum]
    if not items:
        return False
    item = damage.chance.choice(items)
    offset = damage.chance.choice((0, 1, 4, 7, 8, 15, 16, 23, 24, 31, 32, 36, 44, 47, item.size - 1))
    written = bytearray(item.written())
    written[offset] ^= damage.chance.choice((1, 128))
    damage.overwrite("data", item.pos, bytes(written))
    damage.cut_from(item)
    return not 32 <= offset < 36 or item.channel == 0


def _strange_entry(damage: Damage) -> bool:
    """An entry with a correct checksum has a wrong field."""
    files = damage.files
    fields = [
        {"index": files.end + 2}, {"index": files.end}, {"index": -1}, {"index": _HIGHEST_INDEX + 1},
        {"term": 0}, {"term": -1}, {"term": HIGHEST_TERM + 1}, {"term": files.end_term - 1},
        {"pos": files.end_pos + 1}, {"magic": 3}, {"magic": 0},
    ]  # fmt: skip
    more = fields[damage.chance.randrange(len(fields))]
    item = damage.following()
    if item is None:
        return False
    written = replace(item, **more).written()  # type: ignore[arg-type]
    damage.overwrite("data", files.end_pos, written)
    damage.bytes_cut = len(written)
    return True


def _strange_size(damage: Damage) -> bool:
    """An entry says another size of itself or of its body."""
    item = damage.following(has_checksum=False)
    if item is None:
        return False
    written = bytearray(item.written())
    at, size = damage.chance.choice(((4, 47), (4, item.size + 1), (44, 2), (44, 4), (4, -1)))
    struct.pack_into(">i", written, at, size)
    damage.overwrite("data", damage.files.end_pos, bytes(written))
    damage.bytes_cut = len(written)
    return True


def _one_more(damage: Damage) -> bool:
    """An entry that is not in the index yet, with the highest term, or without a checksum."""
    term = damage.chance.choice((damage.files.end_term, damage.files.end_term + 7, HIGHEST_TERM))
    item = damage.following(term=term, has_checksum=damage.chance.random() < 0.5, channel=3, body_crc=9)
    if item is None:
        return False
    damage.overwrite("data", item.pos, item.written())
    damage.files.items.append(item)
    damage.bytes_cut = 0
    return True


def _garbage(damage: Damage) -> bool:
    """Bytes after the last entry."""
    room = damage.files.room_after(damage.files.end_pos)
    data = damage.chance.choice(
        (b"\1", bytes(7) + b"\1", struct.pack(">ii", 1, 48), b"\xff\xff\xff\xff\0\0\0\1")
    )
    if len(data) > room or room == damage.files.segment_bytes:
        return False
    damage.overwrite("data", damage.files.end_pos, data)
    damage.bytes_cut = len(data)
    return True


def _units_lost(damage: Damage) -> bool:
    """The last units of the index were not written."""
    first = damage.chance.choice(damage.walked).index
    count = damage.files.end + 1 - first
    damage.overwrite("index", first * UNIT_BYTES, bytes(count * UNIT_BYTES))
    return True


def _units_beyond(damage: Damage) -> bool:
    """The index has units of entries that the data lacks."""
    unit = Item(damage.files.end + 1, 1, damage.files.end_pos, b"").unit()
    damage.overwrite("index", (damage.files.end + 1) * UNIT_BYTES, unit)
    return True


def _unit_altered(damage: Damage) -> bool:
    """A unit of an early entry is of another entry, or of none: the start reads the data instead."""
    items = [each for each in damage.earlier if damage.files.items[each.index + 1].pos == each.end]
    if not items:
        return False
    item = damage.chance.choice(items)
    others = [
        replace(item, index=item.index + 1), replace(item, index=item.index - 1), replace(item, term=0),
        replace(item, pos=item.pos + 1), replace(item, magic=3), replace(item, term=HIGHEST_TERM + 1),
        replace(item, body=item.body + b"."), replace(item, pos=-1),
    ]  # fmt: skip
    unit = damage.chance.choice((bytes(UNIT_BYTES), *(each.unit() for each in others)))
    damage.overwrite("index", item.index * UNIT_BYTES, unit)
    return True


def _early_altered(damage: Damage) -> bool:
    """The body of an early entry differs: the index is trusted, and only this entry cannot be read."""
    items = [each for each in damage.earlier if each.has_checksum and each.body]
    if not items:
        return False
    item = damage.chance.choice(items)
    damage.overwrite("data", item.end - 1, bytes((item.body[-1] ^ 1,)))
    damage.unreadable = (item.index,)
    return True


def _index_lost(damage: Damage) -> bool:
    """The whole index is missing."""
    for path in damage.disk.files(damage.path("index", 0).rpartition("/")[0]):
        damage.disk.lose(path)
    damage.files.indexed_from = damage.files.begin
    return True


def _durable_lost(damage: Damage) -> bool:
    """An entry that was durable is damaged: the start is refused."""
    if not _altered(damage):
        return False
    damage.durable_pos = damage.files.end_pos + 1
    damage.is_refused = True
    return True


def _durable_kept(damage: Damage) -> bool:
    """An entry that was not known to be durable is damaged."""
    if not _altered(damage):
        return False
    damage.durable_pos = damage.files.end_pos
    return True


def _begin_lost(damage: Damage) -> bool:
    """The ledger was known to begin before its first segment: the start is refused."""
    damage.known_begin = damage.files.begin_pos - 1
    damage.is_refused = True
    return damage.files.begin_pos > 0


def _begin_kept(damage: Damage) -> bool:
    """The ledger begins where it was known to begin."""
    damage.known_begin = damage.files.begin_pos
    damage.durable_pos = damage.files.end_pos
    return True


def _segment_lost(damage: Damage) -> bool:
    """A segment between two others is missing: the start is refused."""
    if len(damage.files.starts) < 3:
        return False
    damage.disk.lose(damage.path("data", damage.chance.choice(damage.files.starts[1:-1])))
    damage.is_refused = True
    return True


def _segment_short(damage: Damage) -> bool:
    """A segment has another size: the start is refused."""
    damage.disk.truncate(damage.path("data", damage.files.starts[-1]), damage.files.segment_bytes - 1)
    damage.is_refused = True
    return True


DAMAGES: Final[Mapping[str, Callable[[Damage], bool]]] = {
    "a torn entry": _torn,
    "an altered entry": _altered,
    "a strange entry": _strange_entry,
    "a strange size": _strange_size,
    "an entry more": _one_more,
    "garbage": _garbage,
    "lost units": _units_lost,
    "units beyond the end": _units_beyond,
    "an altered unit": _unit_altered,
    "an altered early entry": _early_altered,
    "a lost index": _index_lost,
    "a lost durable entry": _durable_lost,
    "a lost entry that was not durable": _durable_kept,
    "a lost begin": _begin_lost,
    "a known begin": _begin_kept,
    "a lost segment": _segment_lost,
    "a short segment": _segment_short,
}
"""The damages by name. Each returns whether the ledger is such that it could happen."""

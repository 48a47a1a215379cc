"""The damages: one block or one file of a store each, as a disk can alter it.

Single faults, as in fuzz/store/single_fault.py; here on real files, and on any broker.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from mqproof.conformance.damage import store_files
from mqproof.conformance.damage.observation import Stored
from mqproof.conformance.damage.store_files import ENTRY_BYTES, Place

OLD_TOPIC: Final = "DamageOld"
"""The topic whose messages a checkpoint covers."""
NEW_TOPIC: Final = "DamageNew"
"""A topic that was created later, so that an older table of topics lacks it."""
_SIZE_AT, _MAGIC_AT, _QUEUE_OFFSET_AT, _COMMIT_OFFSET_AT, _BODY_AT = 0, 4, 20, 28, 88


class Moment(StrEnum):
    """When the damage happens."""

    STOPPED = "stopped"  # after a clean exit
    KILLED = "killed"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Store:
    """A store whose bytes are damaged."""

    directory: Path
    truth: Sequence[Stored]
    older: Path
    """A copy of the store before its last messages were written."""

    def record(self, number: int = 1, topic: str = OLD_TOPIC) -> Place:
        """Return the place of a record of a topic."""
        stored = [each for each in self.truth if each.topic == topic]
        return store_files.record(self.directory, stored[number].record.data)

    def entry(self, number: int = 1) -> Place:
        """Return the place of an entry of the old topic's queue."""
        count = sum(each.topic == OLD_TOPIC for each in self.truth)
        return store_files.entry(self.directory, OLD_TOPIC, 0, number % count)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    """Never changes and is never used again."""
    about: str
    damage: Callable[[Store], None]
    moments: tuple[Moment, ...] = (Moment.STOPPED,)

    def ids(self) -> tuple[str, ...]:
        return tuple(f"damage/{self.name}/{moment}" for moment in self.moments)


def _flip(place: Place, at: int, bit: int = 0) -> None:
    data = bytearray(place.read())
    data[at] ^= 1 << bit
    place.write(bytes(data))


def _flip_record(at: int, number: int = 1, bit: int = 0) -> Callable[[Store], None]:
    return lambda store: _flip(store.record(number), at, bit)


def _flip_entry(at: int, number: int = 1, bit: int = 0) -> Callable[[Store], None]:
    return lambda store: _flip(store.entry(number), at, bit)


def _flip_end(store: Store) -> None:
    _flip(store.record(-1, NEW_TOPIC), _BODY_AT + 5)


def _zero_end(store: Store) -> None:
    place = store.record(-1, NEW_TOPIC)
    place.write(bytes(place.size))


def _zero_record(store: Store, number: int = 1) -> None:
    place = store.record(number)
    place.write(bytes(place.size))


def _garbage_record(store: Store) -> None:
    place = store.record()
    place.write(bytes(each ^ 0x5A for each in place.read()))


def _record_elsewhere(store: Store) -> None:
    """Write a record to the place of the next one, as a misdirected write does."""
    first, second = store.record(1), store.record(2)
    second.write(first.read()[: second.size])


def _zero_entry(number: int) -> Callable[[Store], None]:
    return lambda store: store.entry(number).write(bytes(ENTRY_BYTES))


def _entry_elsewhere(store: Store) -> None:
    store.entry(2).write(store.entry(1).read())


def _remove(*names: str) -> Callable[[Store], None]:
    def damage(store: Store) -> None:
        for name in names:
            (store.directory / name).unlink(missing_ok=True)

    return damage


def _write(name: str, data: bytes) -> Callable[[Store], None]:
    return lambda store: _replace(store.directory / name, data)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _earlier(*names: str) -> Callable[[Store], None]:
    """Give files their earlier content back: their last write never reached the disk."""

    def damage(store: Store) -> None:
        for name in names:
            if (older := store.older / name).exists():
                _replace(store.directory / name, older.read_bytes())
            else:
                (store.directory / name).unlink(missing_ok=True)

    return damage


def _flip_file(name: str, at: int) -> Callable[[Store], None]:
    def damage(store: Store) -> None:
        path = store.directory / name
        _flip(Place(path, 0, path.stat().st_size), at)

    return damage


def _lose(folder: str) -> Callable[[Store], None]:
    return lambda store: store_files.one_file(store.directory, folder).unlink()


def _cut(folder: str) -> Callable[[Store], None]:
    def damage(store: Store) -> None:
        path = store_files.one_file(store.directory, folder)
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)

    return damage


_TOPICS: Final = "config/topics.json"
_ALL: Final = tuple(Moment)
_AT_REST: Final = (Moment.STOPPED, Moment.KILLED)
_QUEUE: Final = f"consumequeue/{OLD_TOPIC}"

CASES: Final = (
    Case("record-body", "a bit of a body", _flip_record(_BODY_AT + 5), _ALL),
    Case("record-size", "a bit of a record's size", _flip_record(_SIZE_AT + 3), _ALL),
    Case("record-size-huge", "a high bit of a record's size", _flip_record(_SIZE_AT + 1, bit=6)),
    Case("record-magic", "a bit of a record's magic number", _flip_record(_MAGIC_AT), _AT_REST),
    Case("record-queue-offset", "a bit of a record's queue offset", _flip_record(_QUEUE_OFFSET_AT + 7), _ALL),
    Case("record-commit-offset", "a bit of a record's commit offset", _flip_record(_COMMIT_OFFSET_AT + 6)),
    Case("record-first", "a bit of the body of the first record", _flip_record(_BODY_AT + 5, 0), _AT_REST),
    Case("record-last", "a bit of the body of a queue's last record", _flip_record(_BODY_AT + 5, -1)),
    Case("record-end", "a bit of the body of the last record of the log", _flip_end),
    Case("record-end-zeroed", "zero bytes in place of the last record of the log", _zero_end),
    Case("record-zeroed", "zero bytes in place of a record", _zero_record, _ALL),
    Case("record-garbage", "garbage in place of a record", _garbage_record, _AT_REST),
    Case("record-elsewhere", "a record at the place of the next one", _record_elsewhere, _AT_REST),
    Case("entry-offset", "a bit of an entry's commit offset", _flip_entry(7), _ALL),
    Case("entry-offset-huge", "a high bit of an entry's commit offset", _flip_entry(1, bit=4)),
    Case("entry-size", "a bit of an entry's size", _flip_entry(11), _ALL),
    Case("entry-tags", "a bit of an entry's tag code", _flip_entry(19), _ALL),
    Case("entry-zeroed", "zero bytes in place of an entry", _zero_entry(1), _ALL),
    Case("entry-last-zeroed", "zero bytes in place of the last entry", _zero_entry(-1), _AT_REST),
    Case("entry-elsewhere", "an entry at the place of the next one", _entry_elsewhere, _ALL),
    Case("queue-missing", "a file of a queue is missing", _lose(_QUEUE), _AT_REST),
    Case("queue-cut", "a file of a queue has half its size", _cut(_QUEUE)),
    Case("log-missing", "a file of the commit log is missing", _lose("commitlog")),
    Case("log-cut", "a file of the commit log has half its size", _cut("commitlog")),
    Case("topics-empty", "the table of topics is empty", _write(_TOPICS, b""), _AT_REST),
    Case("topics-missing", "the table of topics is missing", _remove(_TOPICS), _AT_REST),
    Case("topics-both-missing", "the table and its backup are missing", _remove(_TOPICS, f"{_TOPICS}.bak")),
    Case("topics-altered", "a bit of the table of topics", _flip_file(_TOPICS, 40), _AT_REST),
    Case("topics-older", "the last write of the table never reached the disk", _earlier(_TOPICS), _AT_REST),
    Case("checkpoint-altered", "a bit of the checkpoint", _flip_file("checkpoint", 6), _AT_REST),
    Case("checkpoint-zeroed", "zero bytes in place of the checkpoint", _write("checkpoint", bytes(4096))),
    Case("checkpoint-missing", "the checkpoint is missing", _remove("checkpoint"), _AT_REST),
    Case("checkpoint-older", "the checkpoint has its earlier content", _earlier("checkpoint"), _AT_REST),
)
"""`topics-both-missing` and `log-missing` are two writes that one directory lost."""

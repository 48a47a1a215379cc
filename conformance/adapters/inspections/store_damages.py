"""Damages of the files of a stopped broker, each with what remains after it.

See docs/reference/protocol/storing.md, "Damaged files", and recovery.md, "Recovery".
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections.kept_messages import Kept
from mqproof.conformance.answers.stored_record import StoredRecord
from mqproof.conformance.hosts.simulated import STORE
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

LOG_SEGMENT: Final = 1 << 12
SMALL: Final = replace(
    STORE, commit_log_segment_bytes=LOG_SEGMENT, consume_queue_segment_bytes=160, index_entries=9
)
"""A store whose log, queues and index have several files after a few dozen messages."""
LOG: Final = "/store/commitlog"
QUEUES: Final = "/store/consumequeue"
INDEX: Final = "/store/index"
CHECKPOINT: Final = "/store/checkpoint"
_MAGIC_AT, _CRC_AT, _QUEUE_ID_AT, _QUEUE_OFFSET_AT, _COMMIT_OFFSET_AT, _BODY_SIZE_AT = 4, 8, 12, 20, 28, 84


@dataclass(frozen=True, slots=True)
class Case:
    """One damage, and what remains after it."""

    name: str
    damage: Callable[[SimulatedDisk, Kept], None]
    lost: Callable[[Kept], list[StoredRecord]] = lambda _: []
    """The messages that are lost; their offsets are not used again."""
    cut_from: Callable[[Kept], int | None] = lambda _: None
    """The commit offset at which the log ends now, if it lost its end."""
    refused: str = ""
    """A part of the error, if the broker does not start."""


def log_path(commit_offset: int) -> str:
    return f"{LOG}/{commit_offset // LOG_SEGMENT * LOG_SEGMENT:020}"


def alter(disk: SimulatedDisk, record: StoredRecord, at: int, data: bytes) -> None:
    """Overwrite bytes of a record in the log."""
    disk.damage(log_path(record.commit_offset), record.commit_offset % LOG_SEGMENT + at, data)


def lose(disk: SimulatedDisk, folder: str) -> None:
    for path in disk.files(folder):
        disk.lose(path)


def _middle(kept: Kept) -> StoredRecord:
    """Return a record between others of its queue and of its segment."""
    return kept.counted("plain", 1)[3]


def _first_of_queue(kept: Kept) -> StoredRecord:
    return kept.counted("plain", 0)[0]


def _only(kept: Kept) -> StoredRecord:
    """Return the only record of a queue."""
    return kept.counted("single", 0)[0]


def _last_of_queue(kept: Kept) -> StoredRecord:
    return kept.counted("plain", 1)[-1]


def entry_place(topic: str, queue: int, offset: int) -> tuple[str, int]:
    """Return the path of the file that has an entry, and its place there."""
    return f"{QUEUES}/{topic}/{queue}/{offset // 8 * 160:020}", offset % 8 * 20


def alter_entry(disk: SimulatedDisk, record: StoredRecord, at: int, data: bytes) -> None:
    path, begin = entry_place(record.topic, record.queue_id, record.queue_offset)
    disk.damage(path, begin + at, data)


def _flipped(record: StoredRecord, at: int) -> bytes:
    return bytes([record.raw[at] ^ 1])


_PLACES: Final = {
    "size": (3, None), "huge size": (0, b"\x7f"), "negative size": (0, b"\xff"), "size 0": (0, bytes(4)),
    "magic": (_MAGIC_AT, None), "checksum": (_CRC_AT + 3, None), "queue": (_QUEUE_ID_AT + 3, None),
    "negative queue": (_QUEUE_ID_AT, b"\xff"), "queue offset": (_QUEUE_OFFSET_AT + 7, None),
    "negative queue offset": (_QUEUE_OFFSET_AT, b"\x80"), "commit offset": (_COMMIT_OFFSET_AT + 7, None),
    "body size": (_BODY_SIZE_AT + 3, None), "negative body size": (_BODY_SIZE_AT, b"\xff"),
    "body": (_BODY_SIZE_AT + 4, None),
    "zeros": (0, bytes(90)), "garbage": (0, b"\x5a" * 90),
}  # fmt: skip
"""Bytes of a record to overwrite, by what they are; None flips a bit."""


def _altered(name: str, of: Callable[[Kept], StoredRecord], **more: Any) -> Case:
    at, data = _PLACES[name]

    def damage(disk: SimulatedDisk, kept: Kept) -> None:
        record = of(kept)
        alter(disk, record, at, data or _flipped(record, at))

    where = of.__name__.strip("_").replace("_", " ")
    return Case(f"{name} of the {where} record", damage, lambda kept: [of(kept)], **more)


def _without_queues(case: Case) -> Case:
    def damage(disk: SimulatedDisk, kept: Kept) -> None:
        case.damage(disk, kept)
        lose(disk, QUEUES)

    return replace(case, name=f"{case.name}, without queues", damage=damage, refused=QUEUES)


def _topic_altered(disk: SimulatedDisk, kept: Kept) -> None:
    record = _middle(kept)
    at = record.raw.rindex(b"plain", 0, record.raw.rindex(b"KEYS"))
    alter(disk, record, at, b"q")


def _all_lost(folder: str) -> Callable[[SimulatedDisk, Kept], None]:
    return lambda disk, _kept: lose(disk, folder)


def _adjacent_entries(disk: SimulatedDisk, kept: Kept) -> None:
    for record in kept.counted("plain", 1)[3:5]:
        alter_entry(disk, record, 0, bytes(20))


def _entries(at: int, data: bytes) -> Callable[[SimulatedDisk, Kept], None]:
    def damage(disk: SimulatedDisk, kept: Kept) -> None:
        for record in (_middle(kept), _only(kept), _last_of_queue(kept)):
            alter_entry(disk, record, at, data)

    return damage


def _last_entry(disk: SimulatedDisk, kept: Kept) -> None:
    """Let a queue's last entry point at a record of another queue."""
    alter_entry(disk, _last_of_queue(kept), 0, kept.records[0].commit_offset.to_bytes(8, "big"))


def _without_own_part(disk: SimulatedDisk, _kept: Kept) -> None:
    """Leave the times only, as in the checkpoint of a released broker."""
    disk.damage(CHECKPOINT, 1024, bytes(84))


def _without_own_part_and_queues(disk: SimulatedDisk, kept: Kept) -> None:
    _without_own_part(disk, kept)
    lose(disk, QUEUES)


def _first_file_of(folder: str, number: int = 0) -> Callable[[SimulatedDisk, Kept], None]:
    return lambda disk, _kept: disk.lose(disk.files(folder)[number])


def _short(folder: str) -> Callable[[SimulatedDisk, Kept], None]:
    return lambda disk, _kept: disk.truncate(disk.files(folder)[0], 100)


def _index_altered(disk: SimulatedDisk, _kept: Kept) -> None:
    """Overwrite the times of the header of the newest index file."""
    disk.damage(disk.files(INDEX)[-1], 0, b"\xff" * 8)


def _strange_index(name: str, size: int) -> Callable[[SimulatedDisk, Kept], None]:
    def damage(disk: SimulatedDisk, _kept: Kept) -> None:
        disk.process().create(f"{INDEX}/{name}", size).sync()
        disk.process().sync_directory(INDEX)

    return damage


RECORDS: Final = (
    *(_altered(name, _middle) for name in _PLACES),
    *(_altered(name, _first_of_queue) for name in ("body", "queue", "zeros")),
    *(_altered(name, _only) for name in ("size", "body", "zeros")),
    _altered("queue offset", _only, refused=QUEUES),
    *(_altered(name, _last_of_queue) for name in ("size", "body", "queue offset", "queue")),
    *(_without_queues(_altered(name, _middle)) for name in ("size", "body", "queue", "queue offset")),
    *(_without_queues(_altered(name, _last_of_queue)) for name in ("size", "queue", "queue offset")),
    Case("another topic", _topic_altered, lambda kept: [_middle(kept)]),
)  # fmt: skip
"""Damages of records that the checkpoint counts."""
FILES: Final = (
    Case("no queues", _all_lost(QUEUES)),
    Case("no queue of one topic", _all_lost(f"{QUEUES}/plain/1")),
    Case("no first file of a queue", _first_file_of(f"{QUEUES}/plain/1")),
    Case("no last file of a queue", _first_file_of(f"{QUEUES}/plain/1", -1)),
    Case("no index", _all_lost(INDEX)),
    Case("no last index file", _first_file_of(INDEX, -1)),
    Case("header of the index", _index_altered),
    Case("two zeroed entries", _adjacent_entries),
    Case("entries elsewhere", _entries(7, b"\x77")),
    Case("entries of another size", _entries(11, b"\x77")),
    Case("entries of negative size", _entries(8, b"\xff")),
    Case("entries of another tag", _entries(19, b"\x77")),
    Case("last entry at another record", _last_entry),
    Case("no checkpoint", lambda disk, _: disk.lose(CHECKPOINT)),
    Case("checkpoint altered", lambda disk, _: disk.damage(CHECKPOINT, 1, b"\x77")),
    Case("checkpoint without a count", _without_own_part),
    Case("checkpoint without a count, no queues", _without_own_part_and_queues),
    Case("no first segment", _first_file_of(LOG), refused=LOG),
    Case("no last segment", _first_file_of(LOG, -1), refused=LOG),
    Case("no middle segment", _first_file_of(LOG, 1), refused=LOG),
    Case("short segment", _short(LOG), refused=LOG),
    Case("short file of a queue", _short(f"{QUEUES}/plain/1"), refused=QUEUES),
    Case("index file of another size", _strange_index("20991231235959999", 100), refused=INDEX),
)  # fmt: skip
"""Damages of the other files."""


def _uncounted(case: Case) -> Case:
    """Return the case without a checkpoint: nothing says that the log was durable."""

    def damage(disk: SimulatedDisk, kept: Kept) -> None:
        case.damage(disk, kept)
        disk.lose(CHECKPOINT)

    return replace(case, name=f"{case.name}, without a checkpoint", damage=damage)


def _last(kept: Kept) -> StoredRecord:
    return kept.records[-1]


def _later(kept: Kept) -> StoredRecord:
    """Return a record behind the counted part."""
    return kept.records[-4]


def _cut(case: Case, of: Callable[[Kept], StoredRecord]) -> Case:
    return replace(case, lost=lambda _: [], cut_from=lambda kept: of(kept).commit_offset)


UNCOUNTED: Final = (
    Case("nothing", lambda _disk, _kept: None),
    *(_cut(_altered(name, _later), _later) for name in ("size", "huge size", "magic", "body", "zeros")),
    *(_cut(_altered(name, _last), _last) for name in ("size", "commit offset", "garbage")),
    _cut(replace(_without_queues(_altered("body", _later)), refused=""), _later),
    _cut(_uncounted(_altered("body", _middle)), _middle),
    _cut(_uncounted(_altered("size", _later)), _later),
    *(_altered(name, _middle) for name in ("size", "queue")),
    Case("no queues", _all_lost(QUEUES)),
    Case("no index", _all_lost(INDEX)),
    Case("no checkpoint", lambda disk, _: disk.lose(CHECKPOINT)),
    Case("checkpoint without a count", _without_own_part),
    Case("checkpoint altered", lambda disk, _: disk.damage(CHECKPOINT, 1, b"\x77")),
)  # fmt: skip
"""Damages after a kill: the checkpoint counts a part of the log."""

EXPIRED: Final = tuple(
    each
    for each in (*RECORDS, *FILES)
    if each.refused or each.name.startswith(("no ", "size", "last ", "body of the last"))
    if "first of queue" not in each.name and "only" not in each.name
)
"""Damages of what is left after the deletion of old segments."""
REBUILT: Final = (
    Case("no queues", _all_lost(QUEUES)),
    Case("no last file of a queue", _first_file_of(f"{QUEUES}/plain/1", -1)),
    Case("no index", _all_lost(INDEX)),
    Case("checkpoint without a count", _without_own_part),
    Case("no checkpoint", lambda disk, _: disk.lose(CHECKPOINT)),
)
"""Damages after which a start writes files again."""

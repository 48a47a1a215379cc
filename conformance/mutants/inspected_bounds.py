"""Mutants that the inspections of crafted stores and of the bounds of a store detect, one for each."""

from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.mutants.mutant import by_name, unexplained
from mqproof.impl.runtime.disk import Disk
from mqproof.impl.store import delay
from mqproof.impl.store.files import checkpoint, record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.index import key_hash

_STORE: Final = "mqproof.impl.store"

_next_whole, _room_for = CommitLog._next_whole, CommitLog._room_for
_unit_code = delay.unit_code
_read_checkpoint, _frame_of = checkpoint.read_checkpoint, record._frame_of


def _to_the_end(log: Any, position: int, _limit: int) -> int:
    return _next_whole(log, position, log.segments.capacity_end)


def _as_the_clock(_log: object, now_ms: int) -> int:
    return now_ms


def _never(*_: object) -> bool:
    return False


def _with_more_rest(log: Any, size: int) -> int:
    return _room_for(log, size + 1)


def _readable(disk: Disk, path: str) -> Any:
    try:
        return _read_checkpoint(disk, path)
    except OSError:
        return checkpoint.Checkpoint()


def _second_version(topic: str, *hosts: Any) -> Any:
    frame = _frame_of(topic, *hosts)
    if len(topic) != record._TOPIC_V1_BYTES_MAX:
        return frame
    return frame._replace(magic=record.MAGIC_V2, topic=len(topic).to_bytes(2, "big") + topic.encode())


def _flushed_or_not(log: Any, start: int) -> int | None:
    stored = next((stored for _, stored in log.scan(start) if stored is not None), None)
    return stored.store_timestamp_ms if stored else None


def _newest_file(index: Any, topic: str, key: str, begin_ms: int, end_ms: int) -> Any:
    for file in index._files[-1:]:
        yield from index._matches(file, key_hash(topic, key), begin_ms, end_ms)


def _any_chain(file: Any, hashed: int) -> Any:
    number = file._newest(hashed % file._shape.slots)
    while number:
        entry = file._entry(number)
        yield entry
        number = entry.previous if 0 <= entry.previous < number else 0


def _again(_index: object, hashes: Any, _commit_offset: int) -> Any:
    return hashes


def _a_millisecond_late(message: Any, store_ms: int, levels_ms: Any) -> int:
    return _unit_code(message, store_ms + 1, levels_ms)


def _unchecked(repair: Any, queue: Any, queue_offset: int) -> Any:
    unit = repair._there(queue, queue_offset)
    stored = unit and repair._stored(unit)
    return stored and (unit, stored)


def _deleted_at_once(store: Any, topic: str) -> None:
    store._require_writable()
    store._forget({topic: store._log.end})


def _all(log: Any, offsets: Any, is_wanted: Any, damage: Any) -> Any:  # noqa: ARG001
    for offset in offsets:
        size, _ = record.peek(log.read(offset, 8))
        stored = log.decode(log.read_record(offset, size), offset)
        if stored is not None and is_wanted(stored):
            yield log.read(offset, size)


INSPECTIONS: Final[Mapping[str, str]] = {
    "records-behind-damage-at-the-count": "crafted starts",
    "deletions-not-loaded": "crafted flushed starts",
    "store-time-is-the-clock": "clock set back",
    "record-needs-nine-more-bytes": "ends of segments",
    "query-reads-any-bytes": "many bytes with one hash",
    "topic-of-127-bytes-is-long": "lengths of topics",
    "unreadable-checkpoint-is-missing": "failing starts",
    "age-of-what-is-not-durable": "kept segments",
    "one-index-file-searched": "periods of queries",
    "chains-of-any-slot": "damaged index",
    "deletion-before-the-sends": "sends and deletions",
    "keys-indexed-again": "partly indexed",
    "due-a-millisecond-later": "due times",
    "due-times-not-compared": "damaged delays",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    unexplained(
        "records-behind-damage-at-the-count", "damage before the counted position ends behind it",
        f"{_STORE}.files.commit_log:CommitLog._next_whole", _to_the_end,
    ),
    unexplained(
        "deletions-not-loaded", "a start dispatches the records of deleted topics",
        f"{_STORE}.files.deleted_topics:DeletedTopics.has", _never,
    ),
    unexplained(
        "store-time-is-the-clock", "the store time is the clock's, even if it was set back",
        f"{_STORE}.files.commit_log:CommitLog.next_store_timestamp", _as_the_clock,
    ),
    unexplained(
        "record-needs-nine-more-bytes", "9 bytes must be left behind a record in its segment",
        f"{_STORE}.files.commit_log:CommitLog._room_for", _with_more_rest,
    ),
    unexplained(
        "query-reads-any-bytes", "a query by key reads any number of other records",
        f"{_STORE}.base:find_records", _all,
    ),
    unexplained(
        "topic-of-127-bytes-is-long", "a topic of 127 bytes has a length of two bytes in its records",
        f"{_STORE}.files.record:_frame_of", _second_version,
    ),
    unexplained(
        "unreadable-checkpoint-is-missing", "a checkpoint that cannot be read counts as missing",
        f"{_STORE}.base:read_checkpoint", _readable,
    ),
    unexplained(
        "age-of-what-is-not-durable", "a segment is deleted although the one after it is not durable",
        f"{_STORE}.expiry:_store_time_ms", _flushed_or_not,
    ),
    unexplained(
        "one-index-file-searched", "a query by key reads the newest file of the index only",
        f"{_STORE}.files.index:Index.find", _newest_file,
    ),
    unexplained(
        "chains-of-any-slot", "a query by key follows entries of other slots",
        f"{_STORE}.files.index_file:IndexFile.chain", _any_chain,
    ),
    unexplained(
        "deletion-before-the-sends", "a topic is deleted before the sends beside the request are written",
        f"{_STORE}.message_store:MessageStore.delete_topic", _deleted_at_once,
    ),
    unexplained(
        "keys-indexed-again", "a start indexes all keys of a record of which the index has some",
        f"{_STORE}.files.index:Index._missing", _again,
    ),
    unexplained(
        "due-a-millisecond-later", "the due time in the entry of a delayed message is a millisecond late",
        f"{_STORE}.appender:unit_code", _a_millisecond_late,
    ),
    unexplained(
        "due-times-not-compared", "the entry of a delayed message is not compared with its record",
        f"{_STORE}.entry_repair:EntryRepair.entry", _unchecked,
    ),
)  # fmt: skip
"""The mutants by name."""

"""Rules about the files of a store after a clean exit: everything follows from the commit log."""

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.store_on_disk import (
    ENTRY_BYTES,
    INDEX,
    QUEUES,
    Checkpoint,
    Entry,
    Files,
    Log,
    Shape,
    expected_queues,
    index_entries,
    index_files,
    queue_files,
    read_checkpoint,
    read_log,
)
from mqproof.conformance.wire import chapters

CONFIG: Final = "config/"
DELETED: Final = "deletedTopics.json"
_SEAL: Final = re.compile(rb',?"mqproofSeal":"([0-9]+)-([0-9a-f]{8})"\}\Z')


def wrong_in_files(files: Files, shape: Shape) -> Iterator[Wrong]:
    """Yield everything that is wrong in the files of a store that was stopped."""
    log = read_log(files, shape)
    yield from _log(log)
    deleted = deletions(files)
    queues = expected_queues(log, shape, deleted)
    yield from _queues(files, log, queues, shape)
    # An index that is built again has no records of deleted topics, and an old one has expired records.
    if not deleted and not log.begin:
        yield from _index(files, log, shape)
    yield from _checkpoint(files, log, queues, is_exact=not deleted)
    if "abort" in files:
        yield Wrong(chapters.STORE_DIRECTORY, "the file abort exists after a clean exit")


def deletions(files: Files) -> dict[str, int]:
    """Return the deleted topics, each with the commit offset before which its records were deleted."""
    table = json.loads(files.get(f"{CONFIG}{DELETED}", b"{}"))
    return {name: at for name, at in table.items() if type(at) is int}


def wrong_tables(files: Files) -> Iterator[Wrong]:
    """Yield what is wrong in the configuration files, whether the store runs or not."""
    for path, data in files.items():
        if not path.startswith(CONFIG) or not path.endswith(".json"):
            continue
        match = _SEAL.search(data)
        if match is None:
            yield Wrong(chapters.CONFIGURATION_FILES, f"{path} has no seal")
        elif zlib.crc32(data[: match.start()] + b"}", int(match[1])) != int(match[2], 16):
            yield Wrong(chapters.CONFIGURATION_FILES, f"{path} does not match its seal")
        elif files.get(f"{path}.bak") != data:
            yield Wrong(chapters.CONFIGURATION_FILES, f"{path}.bak is not equal to {path}")


def wrong_after_kill(files: Files) -> Iterator[Wrong]:
    """Yield what is wrong in the files of a store that was killed and not started again."""
    for path, data in files.items():
        if path.startswith(INDEX) and not int.from_bytes(data[36:40], "big"):
            yield Wrong(chapters.KEY_INDEX, f"{path} has entries, and its header does not show the first one")


def _log(log: Log) -> Iterator[Wrong]:
    if not log.is_clean:
        yield Wrong(chapters.COMMIT_LOG, f"bytes follow the last record, which ends at {log.end}")
    for before, record in zip(log.records, log.records[1:], strict=False):
        if record.store_ms < before.store_ms:
            text = (
                f"the record at {record.commit_offset} was stored at {record.store_ms}, before the last one"
            )
            yield Wrong(chapters.COMMIT_LOG, text)


def _queues(
    files: Files, log: Log, queues: Mapping[tuple[str, int], Mapping[int, Entry]], shape: Shape
) -> Iterator[Wrong]:
    expected: dict[str, bytearray] = {}
    for queue, entries in queues.items():
        if sorted(entries) != list(range(min(entries), min(entries) + len(entries))):
            yield Wrong(chapters.CONSUME_QUEUE, f"the log has {sorted(entries)} of queue {queue}")
        expected.update(queue_files(queue, entries, shape))
    for path in sorted(expected.keys() | {path for path in files if path.startswith(QUEUES)}):
        content, wanted = files.get(path, b"").rstrip(b"\0"), bytes(expected.get(path, b"")).rstrip(b"\0")
        # Entries of records before the log's begin stay until their segment is deleted.
        first = len(wanted) - len(wanted.lstrip(b"\0"))
        begin = first - first % ENTRY_BYTES if log.begin else 0
        is_expired = log.begin and not wanted
        if content[begin:] != wanted[begin:] and not is_expired:
            yield Wrong(chapters.CONSUME_QUEUE, f"{path} has {_units(content)}, expected {_units(wanted)}")


def _units(content: bytes) -> list[tuple[int, int, int]]:
    padded = content.ljust(-(-len(content) // ENTRY_BYTES) * ENTRY_BYTES, b"\0")
    return [
        (
            int.from_bytes(padded[at : at + 8], "big"),
            int.from_bytes(padded[at + 8 : at + 12], "big"),
            int.from_bytes(padded[at + 12 : at + 20], "big", signed=True),
        )
        for at in range(0, len(padded), ENTRY_BYTES)
    ]


def _index(files: Files, log: Log, shape: Shape) -> Iterator[Wrong]:
    expected = index_files(index_entries(log.records), shape)
    for path in sorted(expected.keys() | {path for path in files if path.startswith(INDEX)}):
        content, wanted = files.get(path, b"").rstrip(b"\0"), expected.get(path, b"").rstrip(b"\0")
        if content != wanted:
            at = next((at for at, (a, b) in enumerate(zip(content, wanted, strict=False)) if a != b), -1)
            text = f"{path} has {len(content)} bytes, expected {len(wanted)}; the first other byte is {at}"
            yield Wrong(chapters.KEY_INDEX, text)


def _checkpoint(
    files: Files, log: Log, queues: Mapping[tuple[str, int], Mapping[int, Entry]], *, is_exact: bool
) -> Iterator[Wrong]:
    """`is_exact`: whether no topic was deleted, whose entries the checkpoint may still count."""
    found = read_checkpoint(files.get("checkpoint", b""))
    if found is None:
        yield Wrong(chapters.CHECKPOINT, "its own fields do not match their CRC")
        return
    for text in _untrue(found, files, log, queues, is_exact=is_exact):
        yield Wrong(chapters.CHECKPOINT, f"{text}; the log is from {log.begin} to {log.end}")


def _untrue(
    found: Checkpoint,
    files: Files,
    log: Log,
    queues: Mapping[tuple[str, int], Mapping[int, Entry]],
    *,
    is_exact: bool,
) -> Iterator[str]:
    last_ms = log.records[-1].store_ms if log.records else 0
    if found.log_ms != last_ms and log.records:
        yield f"log time {found.log_ms}, expected {last_ms}"
    if found.queues_ms > last_ms and log.records:
        yield f"queue time {found.queues_ms}, expected {last_ms} at most"
    count = sum(
        found.begin <= at < found.position for entries in queues.values() for at, _, _ in entries.values()
    )
    is_true = found.count == count or (found.count > count and not is_exact)
    if found.position > log.next or (found.begin >= log.begin and not is_true):
        yield f"{found.count} entries from {found.begin} to {found.position}, expected {count}"
    if found.indexed > log.end:
        yield f"the index has keys up to {found.indexed}"
    names = [path for path in files if path.startswith(INDEX)]
    newest = max(names, default="")
    if found.newest != int(newest.removeprefix(INDEX) or 0) or (
        newest and files[newest][:40].ljust(40, b"\0") != found.header
    ):
        yield f"the newest index file is {found.newest}, expected {newest} with its header"

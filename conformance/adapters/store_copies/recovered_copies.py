"""Starts stores on copies of a running broker's disk, damaged or not, and compares their files with the log.

A store must find all durable records on each copy. Its queues and its index must follow from them, whatever
files were lost that a start can compute again.
"""

import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mqproof.conformance.answers import file_rules
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.store_on_disk import (
    ENTRY_BYTES,
    INDEX,
    LOG,
    QUEUES,
    Log,
    Queue,
    Shape,
    expected_queues,
    read_log,
)
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.message_store import MessageStore

_CHECKPOINT: Final = "checkpoint"
_DERIVED: Final = (LOG, QUEUES, INDEX)

Damage = Callable[[SimulatedDisk, str, random.Random], None]


def _paths(disk: SimulatedDisk, store: str, folder: str) -> Sequence[str]:
    return disk.files(f"{store}/{folder.rstrip('/')}")


def _nothing(_disk: SimulatedDisk, _store: str, _chance: random.Random) -> None:
    pass


def _no_checkpoint(disk: SimulatedDisk, store: str, _chance: random.Random) -> None:
    disk.lose(f"{store}/{_CHECKPOINT}")


def _older_checkpoint(disk: SimulatedDisk, store: str, _chance: random.Random) -> None:
    """Leave the times only, as a released broker does."""
    path = f"{store}/{_CHECKPOINT}"
    disk.resize(path, disk.written(path)[:24].ljust(4096, b"\0"))


def _no_index(disk: SimulatedDisk, store: str, _chance: random.Random) -> None:
    for path in _paths(disk, store, INDEX):
        disk.lose(path)
    disk.lose(f"{store}/{_CHECKPOINT}")


def _no_newest_index(disk: SimulatedDisk, store: str, _chance: random.Random) -> None:
    for path in _paths(disk, store, INDEX)[-1:]:
        disk.lose(path)
    was_killed(disk, store)
    disk.lose(f"{store}/{_CHECKPOINT}")


def _no_queue(disk: SimulatedDisk, store: str, chance: random.Random) -> None:
    """Lose the first or the last file of a queue; a start is refused if one between two others is missing."""
    if paths := _paths(disk, store, QUEUES):
        queue = chance.choice(paths).rpartition("/")[0]
        files = [path for path in paths if path.rpartition("/")[0] == queue]
        disk.lose(chance.choice((files[0], files[-1])))


def _no_queues(disk: SimulatedDisk, store: str, _chance: random.Random) -> None:
    for path in _paths(disk, store, QUEUES):
        disk.lose(path)


def _no_last_entries(disk: SimulatedDisk, store: str, chance: random.Random) -> None:
    """Zero the last entries of a queue, and a part of the one before them."""
    if paths := _paths(disk, store, QUEUES):
        path = chance.choice(paths)
        written = len(disk.written(path))
        begin = max(0, written - chance.randrange(2 * ENTRY_BYTES + 1))
        disk.damage(path, begin, bytes(written - begin))


def _altered_entry(disk: SimulatedDisk, store: str, chance: random.Random) -> None:
    """Alter a byte of one entry."""
    paths = [path for path in _paths(disk, store, QUEUES) if disk.written(path)]
    if paths:
        path = chance.choice(paths)
        at = chance.randrange(len(disk.written(path)))
        disk.damage(path, at, bytes([disk.written(path)[at] ^ (1 << chance.randrange(8))]))


def _torn_end(disk: SimulatedDisk, store: str, chance: random.Random) -> None:
    """Add the beginning of a record that a crash interrupted."""
    was_killed(disk, store)
    for path in _paths(disk, store, LOG)[-1:]:
        written = disk.written(path)
        disk.damage(path, len(written), written[: chance.randrange(1, 92)])


def _no_table(disk: SimulatedDisk, store: str, chance: random.Random) -> None:
    """Lose the table of deleted topics or its backup, or empty it."""
    if paths := _tables(disk, store):
        path = chance.choice(paths)
        if chance.random() < 0.5:
            disk.lose(path)
        else:
            disk.resize(path, b"")


def _altered_table(disk: SimulatedDisk, store: str, chance: random.Random) -> None:
    """Alter a bit of the table of deleted topics or of its backup."""
    if paths := _tables(disk, store):
        path = chance.choice(paths)
        at = chance.randrange(len(disk.written(path)))
        disk.damage(path, at, bytes([disk.written(path)[at] ^ 1]))


def _older_table(disk: SimulatedDisk, store: str, chance: random.Random) -> None:
    """Lose the last write of the table of deleted topics, or of its backup."""
    if paths := _tables(disk, store):
        disk.resize(chance.choice(paths), b'{"mqproofSeal":"0-%08x"}' % zlib.crc32(b"{}"))


def _tables(disk: SimulatedDisk, store: str) -> list[str]:
    return [path for path in disk.files(f"{store}/config") if file_rules.DELETED in path]


def was_killed(disk: SimulatedDisk, store: str) -> None:
    """Leave the file that a store removes when it stops cleanly."""
    disk.create(f"{store}/abort", 0).sync()
    disk.sync_directory(store)


DAMAGES: Final[Mapping[str, Damage]] = {
    "nothing": _nothing,
    "the checkpoint is lost": _no_checkpoint,
    "a released broker wrote the checkpoint": _older_checkpoint,
    "the index is lost": _no_index,
    "the newest file of the index is lost": _no_newest_index,
    "a file of a queue is lost": _no_queue,
    "the queues are lost": _no_queues,
    "the last entries of a queue are lost": _no_last_entries,
    "a byte of an entry is altered": _altered_entry,
    "a write at the end of the log was interrupted": _torn_end,
    "a table or its backup is lost": _no_table,
    "a table or its backup is altered": _altered_table,
    "a table or its backup is older": _older_table,
}
"""What happens to the files of a stopped store that a start can repair."""


class RecoveredCopies:
    """Stores on copies of one disk; what is wrong goes to the watch."""

    def __init__(
        self, disk: SimulatedDisk, directory: str, config: StoreConfig, runtime: Runtime, watch: Watch
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._config = replace(config, clean_forcibly=False)
        self._runtime = runtime
        self._watch = watch
        self.shape = Shape(
            config.commit_log_segment_bytes,
            config.consume_queue_segment_bytes,
            config.index_slots,
            config.index_entries,
            config.delay_levels_ms,
        )

    async def examine(self, number: int) -> None:
        """Start a store after a kill, after a loss of power, and after one damage; `number` chooses it."""
        chance = random.Random(number)
        killed = self._disk.copy()
        killed.crash_process()
        self._watch.found("the tables", file_rules.wrong_tables(self.files(killed)))
        self._watch.found("after a kill", file_rules.wrong_after_kill(self.files(killed)))
        await self.restart("a kill", killed)
        files = self.files(killed)
        log = read_log(files, self.shape)
        self._no_less("a kill", read_log(self.files(self._disk), self.shape), log)
        await self._after_power_loss(chance, log)
        names = list(DAMAGES)
        await self._after_damage(names[number % len(names)], killed, chance, files, log)

    async def _after_power_loss(self, chance: random.Random, whole: Log) -> None:
        """Let the machine crash: what was synced is found, and nothing that was never written."""
        synced, crashed = self._disk.copy(), self._disk.copy()
        synced.lose_power()
        crashed.crash_os(chance)
        await self.restart("a crash of the machine", crashed)
        found = read_log(self.files(crashed), self.shape)
        self._no_less("a crash of the machine", read_log(self.files(synced), self.shape), found)
        self._no_less("a kill", found, whole)

    async def _after_damage(
        self, name: str, disk: SimulatedDisk, chance: random.Random, files: Mapping[str, bytes], log: Log
    ) -> None:
        """Damage the stopped store, start it, read everything, and lose power before it stops."""
        disk.lose_power()
        what = f"a clean exit and a loss of power, then {name}"
        if self._derived(self.files(disk)) != self._derived(files):
            self._watch.found(what, [Wrong(chapters.DURABILITY, "files of a clean exit are lost")])
        DAMAGES[name](disk, self._directory, chance)
        store = await self.started(what, disk)
        if store is None:
            return
        self._watch.found(what, self._repaired_tables(disk, files))
        self._watch.found(what, self.read(store, log))
        store.kill()
        disk.lose_power()
        await self.restart(f"{what}, a start and a loss of power", disk, log)
        is_kept = not log.begin and not file_rules.deletions(files)
        if is_kept and (changed := sorted(self._changed(files, self.files(disk)))):
            self._watch.found(what, [Wrong(chapters.DAMAGED_FILES, f"a start does not repair {changed}")])

    def _repaired_tables(self, disk: SimulatedDisk, before: Mapping[str, bytes]) -> Iterator[Wrong]:
        """Yield what is wrong in the table of deleted topics, which the store has read."""
        now = self.files(disk)
        yield from file_rules.wrong_tables(
            {
                path: data
                for path, data in now.items()
                if path.startswith(f"{file_rules.CONFIG}{file_rules.DELETED}")
            }
        )
        if file_rules.deletions(now) != file_rules.deletions(before):
            text = (
                f"the deleted topics are {file_rules.deletions(now)}, before {file_rules.deletions(before)}"
            )
            yield Wrong(chapters.CONFIGURATION_FILES, text)

    async def restart(self, what: str, disk: SimulatedDisk, log: Log | None = None) -> None:
        """Start a store and stop it; all files must then follow from the log.

        With a log, all of its records are read in between.
        """
        if store := await self.started(what, disk):
            if log is not None:
                self._watch.found(what, self.read(store, log))
            await store.stop()
            disk.crash_process()
            self._watch.found(f"after {what}", file_rules.wrong_in_files(self.files(disk), self.shape))

    async def started(self, what: str, disk: SimulatedDisk) -> MessageStore | None:
        runtime = replace(self._runtime, disk=disk.process(), offload=inline)
        store = MessageStore(self._directory, self._config, runtime)
        try:
            store.load()
            await store.start()
        except StoreError as error:
            wrong = Wrong(chapters.DAMAGED_FILES, f"the store does not start: {error}")
            self._watch.found(f"after {what}", [wrong])
            return None
        return store

    def read(self, store: MessageStore, log: Log) -> list[Wrong]:
        """Read all queues, all records of each and those with one tag; a read repairs altered entries."""
        raw = {record.commit_offset: record.raw for record in log.records}
        wrong = []
        for queue, entries in expected_queues(log, self.shape, store.deleted_topics).items():
            for offset, entry in sorted(entries.items()):
                if (unit := store.unit(*queue, offset)) != entry:
                    text = f"the entry {offset} of queue {queue[1]} of {queue[0]} is {unit}, expected {entry}"
                    wrong.append(Wrong(chapters.CONSUME_QUEUE, text))
            code = entries[max(entries)][2]
            for codes in (None, {code}):
                found = self.records(store, queue, range(min(entries), max(entries) + 1), codes)
                expected = [
                    raw[at] for _, (at, _, its_code) in sorted(entries.items()) if codes in (None, {its_code})
                ]
                if found != expected:
                    text = f"queue {queue[1]} of {queue[0]} has {len(found)} records with the codes {codes}"
                    wrong.append(Wrong(chapters.DAMAGED_FILES, f"{text}, expected {len(expected)}"))
        return wrong

    def records(
        self, store: MessageStore, queue: Queue, offsets: range, codes: set[int] | None
    ) -> list[bytes]:
        found: list[bytes] = []
        offset = offsets.start
        while offset in offsets:
            got = store.get(*queue, offset, max_bytes=1 << 20, tag_codes=codes)
            if got.next_offset <= offset:
                break
            found += got.records
            offset = got.next_offset
        return found

    def _no_less(self, what: str, less: Log, more: Log) -> None:
        """Report records of one log that the other does not have."""
        if more.records[: len(less.records)] != less.records and less.begin == more.begin:
            text = f"the log ends at {more.end}, expected {less.end} at least, with the same records"
            self._watch.found(f"after {what}", [Wrong(chapters.DURABILITY, text)])

    def files(self, disk: SimulatedDisk) -> dict[str, bytes]:
        begin = len(self._directory) + 1
        return {path[begin:]: disk.written(path) for path in disk.files(self._directory)}

    def _derived(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        return {
            path: content
            for path, data in files.items()
            if path.startswith(_DERIVED) and (content := data.rstrip(b"\0"))
        }

    def _changed(self, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> set[str]:
        was, now = self._derived(before), self._derived(after)
        return {path for path in was.keys() | now.keys() if was.get(path) != now.get(path)}

"""A store on a simulated disk, step by step: no event loop, no services, no waiting."""

import random
from pathlib import Path
from typing import TypeVar

from mqproof.impl.remoting.message import NAME_END, Batch, Message, StoredMessage
from mqproof.impl.runtime.disk import Disk
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import ManualClock
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.dispatch import Appended, index_keys
from mqproof.impl.store.files import record
from mqproof.impl.store.files.index import key_hash
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import Recovery
from mqproof.spec.events import Event, Kind
from tests.impl.left import no_open_file

T = TypeVar("T")

SMALL = StoreConfig(
    flush_mode=FlushMode.ASYNC_FLUSH,
    commit_log_segment_bytes=512,
    consume_queue_segment_bytes=60,
    index_slots=3,
    index_entries=5,
)
"""Four or five records to a log segment, three entries to a queue segment, four keys to an index file."""


def message(name: str, queue_id: int = 0, topic: str = "T", **properties: str) -> Message:
    """Return a small message; `name` is its body and its unique key."""
    return Message(topic, name.encode(), {"UNIQ_KEY": name, **properties}, queue_id)


def batch_of(*messages: Message) -> Batch:
    """Return the batch of messages that differ in their bodies, properties and flags only."""
    pairs = [
        {name: f"{name}{NAME_END}{value}" for name, value in each.properties.items()} for each in messages
    ]
    return Batch(messages[0], [each.body for each in messages], pairs, [each.flag for each in messages])


class Site:
    """One store directory across many restarts of its store."""

    def __init__(
        self, config: StoreConfig = SMALL, disk: Disk | None = None, directory: str = "store"
    ) -> None:
        self.config = config
        self.directory = directory
        self.disk = disk or SimulatedDisk()
        self.clock = ManualClock()
        self.events: list[Event] = []
        self._events_file: Path | None = None
        self.recovery: Recovery
        self.store: MessageStore
        self.made()

    @property
    def simulated_disk(self) -> SimulatedDisk:
        assert isinstance(self.disk, SimulatedDisk)
        return self.disk

    def to_file(self, path: Path) -> None:
        """Write events to that file from the next start on."""
        self._events_file = path

    def made(self) -> MessageStore:
        """Return a new store object that is not loaded."""
        log = EventLog(self.events.append, "broker", self.clock, len(self.events))
        if self._events_file is not None:
            log = EventLog.to_file(str(self._events_file), "broker", self.clock)
        runtime = Runtime(self.clock, self.disk, SimulatedNetwork(), random.Random(0), inline)
        self.store = MessageStore(self.directory, self.config, runtime, log)
        return self.store

    def open(self) -> MessageStore:
        """Load and begin a new store object."""
        store = self.made()
        self.recovery = store.load()
        store.begin()
        return store

    def append(self, *names: str, queue_id: int = 0, topic: str = "T") -> list[Appended]:
        """Append and dispatch messages."""
        appended = [self.store.append(message(name, queue_id, topic)) for name in names]
        self.store.dispatch()
        return appended

    def flush(self) -> None:
        """Make log and queues durable, and write the checkpoint."""
        result_of(self.store.flush_log())
        result_of(self.store.flush_queues())
        result_of(self.store.write_checkpoint())

    def close(self) -> None:
        """Exit cleanly."""
        result_of(self.store.stop())
        if isinstance(self.disk, SimulatedDisk):
            no_open_file(self.disk)

    def reopen_after_process_crash(self) -> MessageStore:
        self.simulated_disk.crash_process()
        return self.open()

    def reopen_after_power_loss(self) -> MessageStore:
        self.simulated_disk.lose_power()
        return self.open()

    def kinds(self, *only: Kind) -> list[str]:
        """Return the kinds of the events so far, in order."""
        return [event.kind.value for event in self.events if not only or event.kind in only]


def stored_messages(store: MessageStore, queue_id: int = 0, topic: str = "T") -> list[StoredMessage]:
    """Return everything that can be read from a queue, in queue order. Checks that offsets have no gaps."""
    found: list[StoredMessage] = []
    for _ in range(10_000):
        result = store.get(topic, queue_id, len(found))
        if not result.records:
            return found
        for data in result.records:
            stored = record.decode(data)
            assert stored.queue_offset == len(found), (
                f"offset {stored.queue_offset} where {len(found)} is next"
            )
            assert (stored.message.topic, stored.message.queue_id) == (topic, queue_id)
            found.append(stored)
    raise AssertionError("the queue does not end")


def check_index(store: MessageStore) -> None:
    """Check that the index contains each key of each record in log order, and nothing else."""
    index, log = store._index, store._log
    assert index is not None
    records = [stored for _, stored in log.scan(log.begin) if stored is not None]
    keys = [(each, key) for each in records for key in index_keys(each.message)]
    expected = [(key_hash(each.message.topic, key), each.commit_offset) for each, key in keys]
    assert [(entry.key_hash, entry.commit_offset) for file in index for entry in file.entries()] == expected
    for each, key in keys:
        found = store.find(each.message.topic, key, 1000, each.store_timestamp_ms, each.store_timestamp_ms)
        assert store.record_at(each.commit_offset) in found, f"{key} leads to its record"
    for file in index:
        hashes = [entry.key_hash for entry in file.entries()]
        slots = {hashed % store.config.index_slots for hashed in hashes}
        assert (file.header.slots_used, file.header.entry_next) == (len(slots), len(hashes) + 1)


def bodies(store: MessageStore, queue_id: int = 0, topic: str = "T") -> list[str]:
    """Return the bodies of a queue, in order."""
    return [stored.message.body.decode() for stored in stored_messages(store, queue_id, topic)]

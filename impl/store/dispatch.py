"""Dispatch: each record of the commit log gets an entry in its consume queue, and its keys go to the index.

The entry makes the record readable.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

import msgspec

from mqproof.impl.remoting.message import (
    KEYS,
    SYS_TRANSACTION_MASK,
    SYS_TRANSACTION_PREPARED,
    SYS_TRANSACTION_ROLLBACK,
    TAGS,
    UNIQUE_KEY,
    Message,
    StoredMessage,
)
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.store.delay import SCHEDULE_TOPIC, unit_code
from mqproof.impl.store.files.consume_queue import ConsumeQueues, QueueKey, Unit, pack_unit
from mqproof.impl.store.files.index import Index
from mqproof.spec.events import Kind

Arrival = Callable[[str, int, int, int], None]
"""Called with (topic, queue id, next queue offset, tags code) when a message became readable."""


class Appended(msgspec.Struct, frozen=True):
    """An appended record: the fields that dispatch needs."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_offset: int
    size: int
    tags_code: int
    """The third field of the record's queue entry; for a delayed message, the time when it is due."""
    store_timestamp_ms: int
    message_id: str
    queued: bool
    """Whether the record takes a queue offset; false for prepared and rolled-back transactions."""
    keys: tuple[str, ...]
    """The keys of the record in the index."""
    tags: str
    """The tags of the message, empty if it has none."""
    properties: Mapping[str, str] = {}
    """The properties of the message, for an event log that records them."""

    @property
    def end(self) -> int:
        """The commit offset after the record."""
        return self.commit_offset + self.size


class Run(msgspec.Struct, frozen=True):
    """Records of one queue that follow each other in the log: what their dispatch needs, in lists."""

    topic: str
    queue_id: int
    queue_offset: int
    """The queue offset of the first record."""
    queued: bool
    store_timestamp_ms: int
    end: int
    """The commit offset after the last record."""
    offsets: Sequence[int]
    """The commit offset of each record."""
    sizes: Sequence[int]
    codes: Sequence[int]
    """The third field of each queue entry, as in Appended."""
    units: bytes
    """The queue entries, one after the other."""
    keys: Sequence[Sequence[str]]
    """The keys of each record in the index."""
    message_ids: Sequence[str] = ()
    """The identifiers of the messages, for an event log."""


def run_of(appended: Appended) -> Run:
    """Return a run of one record."""
    return Run(
        appended.topic,
        appended.queue_id,
        appended.queue_offset,
        appended.queued,
        appended.store_timestamp_ms,
        appended.end,
        (appended.commit_offset,),
        (appended.size,),
        (appended.tags_code,),
        pack_unit(appended.commit_offset, appended.size, appended.tags_code),
        (appended.keys,),
        (appended.message_id,),
    )


def takes_queue_offset(sys_flag: int) -> bool:
    """Return whether a record takes a queue offset; prepared and rolled-back transactions do not."""
    return sys_flag & SYS_TRANSACTION_MASK not in (SYS_TRANSACTION_PREPARED, SYS_TRANSACTION_ROLLBACK)


def index_keys(message: Message) -> tuple[str, ...]:
    """Return the unique key and the words of KEYS; a rolled-back transaction has no keys."""
    if message.sys_flag & SYS_TRANSACTION_MASK == SYS_TRANSACTION_ROLLBACK:
        return ()
    return keys_among(message.properties.get(UNIQUE_KEY), message.properties.get(KEYS))


def keys_among(unique: str | None, words: str | None) -> tuple[str, ...]:
    """Return the unique key and the words of KEYS."""
    if not words:  # as most messages
        return (unique,) if unique else ()
    return tuple(key for key in (unique, *words.split(" ")) if key)


def appended_record(stored: StoredMessage, delay_levels_ms: Sequence[int]) -> Appended:
    """Return the description of a record read from the log, equal to that at its append."""
    message = stored.message
    return Appended(
        topic=message.topic,
        queue_id=message.queue_id,
        queue_offset=stored.queue_offset,
        commit_offset=stored.commit_offset,
        size=stored.size,
        tags_code=unit_code(message, stored.store_timestamp_ms, delay_levels_ms),
        store_timestamp_ms=stored.store_timestamp_ms,
        message_id=stored.message_id,
        queued=takes_queue_offset(message.sys_flag),
        keys=index_keys(message),
        tags=message.properties.get(TAGS, ""),
        properties=message.properties,
    )


def emit_append(events: EventLog, appended: Appended) -> None:
    """Emit the event that the message is in the page cache.

    For a delayed message the event has the store time, from which the delay counts. The event's own time is
    later, and after a crash much later.
    """
    attrs = {"size": str(appended.size)}
    if appended.topic == SCHEDULE_TOPIC:
        attrs["stored_ms"] = str(appended.store_timestamp_ms)
    if events.records_properties:
        attrs["properties"] = msgspec.json.encode(dict(appended.properties)).decode()
    events.emit(
        Kind.APPEND,
        msg_id=appended.message_id,
        topic=appended.topic,
        queue_id=appended.queue_id,
        queue_offset=appended.queue_offset,
        commit_offset=appended.commit_offset,
        tags=appended.tags,
        attrs=attrs,
    )


class Dispatcher:
    """Dispatches appended records to their queues in the order of the log, never beyond the given limit."""

    def __init__(self, queues: ConsumeQueues, index: Index | None, events: EventLog | None) -> None:
        self.position = 0
        """Commit offset up to which everything is dispatched."""
        self.store_timestamp_ms = 0
        """Store time of the last record dispatched."""
        self._queues = queues
        self._index = index
        self._events = events
        self._waiting: list[Run] = []

    def add(self, run: Run) -> None:
        """Let records wait that follow those that wait already."""
        self._waiting.append(run)

    def forget(self, topic: str, before: int) -> None:
        """Drop the waiting queue entries of a deleted topic whose records are before that commit offset."""
        self._waiting = [
            msgspec.structs.replace(one, queued=False)
            if one.topic == topic and one.offsets[0] < before
            else one
            for one in self._waiting
        ]

    def run(self, limit: int, on_arrival: Arrival | None = None) -> int:
        """Dispatch the runs that end at or before the commit offset `limit`; return the number of records.

        Each queue is written once. `on_arrival` is called for each record that became readable.

        Raises:
            OSError: the disk failed; all of them still wait, and none is visible.
        """
        ready = self._waiting
        if not ready:
            return 0
        if ready[-1].end > limit:
            ready = list(takewhile(lambda one: one.end <= limit, ready))
            if not ready:
                return 0
        by_queue: dict[QueueKey, list[Run]] = {}
        for run in ready:
            if run.queued:
                key = run.topic, run.queue_id
                runs = by_queue.get(key)
                if runs is None or run.queue_offset == 0:
                    by_queue[key] = runs = []  # with offset 0, a master's topic was deleted and recreated
                runs.append(run)
        queues = {key: self._queues.find_or_make(*key) for key in by_queue}
        for key, runs in by_queue.items():
            if runs[0].queue_offset == 0 < queues[key].end:
                queues[key].clear()
            queues[key].write_packed(runs[0].queue_offset, b"".join([run.units for run in runs]))
        self._index_all(ready)
        for key, runs in by_queue.items():
            queues[key].end = max(queues[key].end, runs[-1].queue_offset + len(runs[-1].offsets))
        self.position = ready[-1].end
        self.store_timestamp_ms = ready[-1].store_timestamp_ms
        self._waiting = self._waiting[len(ready) :]
        for run in ready:
            if run.queued:
                self._report(run, on_arrival)
        return sum([len(run.offsets) for run in ready])

    def dispatch(self, appended: Appended) -> bool:
        """Write the queue entry and the keys of one record; return whether that changed the queue."""
        changed = appended.queued and self._write(appended)
        self.index(appended)
        self.position = appended.end
        self.store_timestamp_ms = appended.store_timestamp_ms
        return changed

    def index(self, appended: Appended) -> None:
        """Add the keys of one record to the index, if there is one."""
        self._index_all((run_of(appended),))

    def _index_all(self, ready: Sequence[Run]) -> None:
        if self._index is not None:
            records = [
                (run.topic, keys, commit_offset, run.store_timestamp_ms)
                for run in ready
                for commit_offset, keys in zip(run.offsets, run.keys, strict=True)
            ]
            self._index.add(records, ready[-1].end)

    def _report(self, run: Run, on_arrival: Arrival | None) -> None:
        """Report the records of a run, which became readable."""
        if self._events is not None:
            for number, (commit_offset, message_id) in enumerate(
                zip(run.offsets, run.message_ids, strict=True)
            ):
                self._events.emit(
                    Kind.DISPATCH,
                    msg_id=message_id,
                    topic=run.topic,
                    queue_id=run.queue_id,
                    queue_offset=run.queue_offset + number,
                    commit_offset=commit_offset,
                )
        if on_arrival is not None:
            offset_next = run.queue_offset
            for tags_code in run.codes:
                offset_next += 1
                on_arrival(run.topic, run.queue_id, offset_next, tags_code)

    def _write(self, appended: Appended) -> bool:
        queue = self._queues.find_or_make(appended.topic, appended.queue_id)
        changed = queue.put(appended.queue_offset, queue_unit(appended))
        if changed:
            self._report(run_of(appended), None)
        return changed


def queue_unit(appended: Appended) -> Unit:
    """Return the queue entry of a record."""
    return Unit(appended.commit_offset, appended.size, appended.tags_code)

"""Appending: messages become records at the end of the log, with commit offsets and queue offsets.

There are two steps, so that many messages cost one write: `stage` assigns a position to each message, and
`write` writes all staged messages into the page cache.
"""

from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from mqproof.impl.remoting.message import (
    KEYS,
    TAGS,
    UNIQUE_KEY,
    Batch,
    Message,
    offset_message_id,
    tags_code,
)
from mqproof.impl.runtime.clock import Clock, now_ms
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.delay import SCHEDULE_TOPIC, unit_code
from mqproof.impl.store.dispatch import (
    Appended,
    Dispatcher,
    Run,
    emit_append,
    index_keys,
    keys_among,
    takes_queue_offset,
)
from mqproof.impl.store.files import record
from mqproof.impl.store.files.batch_records import BatchRecords
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueues, QueueKey, pack_unit

_place: Final = attrgetter("topic", "queue_id", "store_host")


class Appender:
    """The write side of one store. Records that it has written wait in the dispatcher."""

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueues,
        dispatcher: Dispatcher,
        clock: Clock,
        events: EventLog | None,
    ) -> None:
        self._log = log
        self._queues = queues
        self._dispatcher = dispatcher
        self._clock = clock
        self._events = events
        self._unlogged: deque[Appended] = deque()
        self._queue_offsets: dict[QueueKey, int] = {}
        """The next offset of each queue that this process has appended to."""

    def stage(self, messages: Sequence[Message], config: StoreConfig) -> Run:
        """Assign positions and queue offsets to messages of one queue; they go into one segment.

        Raises:
            ValueError: a message cannot be stored; nothing happened.
            OSError: the disk failed; nothing that was staged will be written.
        """
        first = messages[0]
        queued = takes_queue_offset(first.sys_flag)
        if len(messages) > 1:
            assert queued, "a transaction cannot be part of a batch"
        queue_offset = self.next_queue_offset(first.topic, first.queue_id) if queued else 0
        if type(messages) is Batch:
            run = self._batch(messages, queue_offset, config)
        elif len(messages) == 1:
            run = self._one(first, queue_offset, queued, config)
        else:
            run = self._several(messages, queue_offset, config)
        if queued:
            self._queue_offsets[run.topic, run.queue_id] = queue_offset + len(run.offsets)
        self._emit_appends()  # a full segment may have been written
        if self._events is not None:
            described = described_records(messages, run)
            run = replace(run, message_ids=[one.message_id for one in described])
            self._unlogged += described
        self._dispatcher.add(run)
        return run

    def _one(self, message: Message, queue_offset: int, queued: bool, config: StoreConfig) -> Run:
        """Stage a message that is sent alone."""
        draft = _encoded(message, config.message_bytes_max, self._log.record_bytes_max)
        size, begin = len(draft), self._log.stage((draft,), queue_offset, now_ms(self._clock))
        stored_ms = self._log.staged_timestamp_ms
        if message.topic == SCHEDULE_TOPIC:
            code = unit_code(message, stored_ms, config.delay_levels_ms)
        else:
            code = tags_code(message.properties.get(TAGS))
        return Run(
            message.topic,
            message.queue_id,
            queue_offset,
            queued,
            stored_ms,
            begin + size,
            (begin,),
            (size,),
            (code,),
            pack_unit(begin, size, code),
            (index_keys(message),),
        )

    def _several(self, messages: Sequence[Message], queue_offset: int, config: StoreConfig) -> Run:
        """Stage messages that are encoded one by one, as those of tests."""
        drafts = encode(messages, config.message_bytes_max, self._log.record_bytes_max)
        begin = self._log.stage(drafts, queue_offset, now_ms(self._clock))
        stored_ms, sizes = self._log.staged_timestamp_ms, [*map(len, drafts)]
        codes = [unit_code(message, stored_ms, config.delay_levels_ms) for message in messages]
        return _run(messages[0], queue_offset, stored_ms, begin, sizes, codes, [*map(index_keys, messages)])

    def _batch(self, batch: Batch, queue_offset: int, config: StoreConfig) -> Run:
        """Stage the messages of a batch, which are encoded together."""
        _check(max(map(len, batch.bodies)), config.message_bytes_max, batch.common.queue_id)
        records = BatchRecords(batch)
        begin = self._log.stage_batch(records, queue_offset, now_ms(self._clock))
        stored_ms = self._log.staged_timestamp_ms
        codes = [*map(tags_code, batch.values(TAGS))]
        keys = [*map(keys_among, batch.values(UNIQUE_KEY), batch.values(KEYS))]
        return _run(batch.common, queue_offset, stored_ms, begin, records.sizes, codes, keys)

    def write(self) -> None:
        """Write the staged records to the end of the log in the page cache, with a single write.

        If the process dies, all of them are written or none. A crash of the machine may keep a prefix.

        Raises:
            OSError: the disk failed; none of them will be written.
        """
        self._log.write_staged()
        self._emit_appends()

    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset of the queue's next message; after a restart, the offset after the last entry."""
        known = self._queue_offsets.get((topic, queue_id))
        if known is not None:
            return known
        queue = self._queues.find(topic, queue_id)
        return queue.end if queue else 0

    def has(self, topic: str) -> bool:
        """Return whether this process has appended anything to the topic."""
        return any(name == topic for name, _ in self._queue_offsets)

    def forget(self, topic: str) -> None:
        """Reset the offsets of a deleted topic: its queues begin at 0 again."""
        for key in [key for key in self._queue_offsets if key[0] == topic]:
            del self._queue_offsets[key]

    def _emit_appends(self) -> None:
        """Emit events for the records that are in the log by now.

        An earlier event could describe a record that no crash keeps.
        """
        while self._unlogged and self._unlogged[0].end <= self._log.end:
            assert self._events is not None
            emit_append(self._events, self._unlogged.popleft())


def _run(
    common: Message,
    queue_offset: int,
    stored_ms: int,
    begin: int,
    sizes: list[int],
    codes: list[int],
    keys: list[tuple[str, ...]],
) -> Run:
    *offsets, end = accumulate(sizes, initial=begin)
    units = b"".join(map(pack_unit, offsets, sizes, codes))
    topic, queue_id = common.topic, common.queue_id
    return Run(topic, queue_id, queue_offset, True, stored_ms, end, offsets, sizes, codes, units, keys)


def described_records(messages: Sequence[Message], run: Run) -> list[Appended]:
    """Return the description of each record of a run."""
    described = []
    columns = zip(messages, run.offsets, run.sizes, run.codes, run.keys, strict=True)
    for number, (message, commit_offset, size, code, keys) in enumerate(columns):
        properties = message.properties
        described.append(
            Appended(
                run.topic,
                run.queue_id,
                run.queue_offset + number,
                commit_offset,
                size,
                code,
                run.store_timestamp_ms,
                properties.get(UNIQUE_KEY) or offset_message_id(message.store_host, commit_offset),
                run.queued,
                tuple(keys),
                properties.get(TAGS, ""),
                properties,
            )
        )
    return described


def encode(messages: Sequence[Message], body_bytes_max: int, record_bytes_max: int) -> list[bytearray]:
    """Return the records of messages of one queue without their positions.

    Raises ValueError when one of them cannot be stored.
    """
    assert len(messages) == 1 or len(set(map(_place, messages))) == 1, "one queue and one host expected"
    return [_encoded(message, body_bytes_max, record_bytes_max) for message in messages]


def _encoded(message: Message, body_bytes_max: int, record_bytes_max: int) -> bytearray:
    _check(len(message.body), body_bytes_max, message.queue_id)
    draft = record.encode(message)
    if len(draft) > record_bytes_max:
        raise ValueError(f"record has {len(draft)} bytes, {record_bytes_max} fit a segment")
    return draft


def _check(body_bytes: int, body_bytes_max: int, queue_id: int) -> None:
    if body_bytes > body_bytes_max:
        raise ValueError(f"body has {body_bytes} bytes, at most {body_bytes_max} expected")
    if queue_id < 0:
        raise ValueError(f"queue id is {queue_id}, 0 or more expected")

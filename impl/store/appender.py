"""Appending: messages become records at the end of the log, with commit offsets and queue offsets.

There are two steps, so that many messages cost one write: `stage` assigns a position to each message, and
`write` writes all staged messages into the page cache.
"""

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from mqproof.impl.remoting.message import TAGS, UNIQUE_KEY, Batch, Message, offset_message_id, tags_code
from mqproof.impl.runtime.clock import Clock, now_ms
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.delay import SCHEDULE_TOPIC, unit_code
from mqproof.impl.store.dispatch import Appended, Dispatcher, emit_append, index_keys, takes_queue_offset
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueues, QueueKey

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

    def stage(self, messages: Sequence[Message], config: StoreConfig) -> list[Appended]:
        """Assign positions and queue offsets to messages of one queue; they go into one segment.

        Raises:
            ValueError: a message cannot be stored; nothing happened.
            OSError: the disk failed; nothing that was staged will be written.
        """
        topic, queue_id = key = messages[0].topic, messages[0].queue_id
        bytes_max = self._log.record_bytes_max
        drafts = encode(messages, config.message_bytes_max, bytes_max)
        queued = takes_queue_offset(messages[0].sys_flag)
        if len(messages) > 1:
            assert queued, "a transaction cannot be part of a batch"
        queue_offset = self.next_queue_offset(topic, queue_id) if queued else 0
        commit_offset = self._log.stage(drafts, queue_offset, now_ms(self._clock))
        if queued:
            self._queue_offsets[key] = queue_offset + len(drafts)
        self._emit_appends()  # a full segment may have been written
        stored_ms = self._log.staged_timestamp_ms
        staged = []
        levels_ms = config.delay_levels_ms if topic == SCHEDULE_TOPIC else ()
        for message, draft in zip(messages, drafts, strict=True):
            size, properties = len(draft), message.properties
            tags = properties.get(TAGS, "")
            staged.append(
                Appended(
                    topic,
                    queue_id,
                    queue_offset,
                    commit_offset,
                    size,
                    unit_code(message, stored_ms, levels_ms) if levels_ms else tags_code(tags),
                    stored_ms,
                    properties.get(UNIQUE_KEY) or offset_message_id(message.store_host, commit_offset),
                    queued,
                    index_keys(message),
                    tags,
                    properties if self._events is not None else {},
                )
            )
            queue_offset += 1
            commit_offset += size
        self._dispatcher.add(staged)
        if self._events is not None:
            self._unlogged += staged
        return staged

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


def encode(messages: Sequence[Message], body_bytes_max: int, record_bytes_max: int) -> list[bytearray]:
    """Return the records of messages of one queue without their positions.

    Raises ValueError when one of them cannot be stored.
    """
    for message in messages:
        if len(message.body) > body_bytes_max:
            raise ValueError(f"body has {len(message.body)} bytes, at most {body_bytes_max} expected")
    if messages[0].queue_id < 0:
        raise ValueError(f"queue id is {messages[0].queue_id}, 0 or more expected")
    if isinstance(messages, Batch):
        drafts = record.encode_batch(messages)
    else:
        assert len(messages) == 1 or len(set(map(_place, messages))) == 1, "one queue and one host expected"
        drafts = [record.encode(message) for message in messages]
    for draft in drafts:
        if len(draft) > record_bytes_max:
            raise ValueError(f"record has {len(draft)} bytes, {record_bytes_max} fit a segment")
    return drafts

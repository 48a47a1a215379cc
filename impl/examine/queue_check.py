"""Checks the entries of consume queues against the records of the log."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from mqproof.impl.examine.contents import topics
from mqproof.impl.examine.directory import StoreDirectory
from mqproof.impl.examine.verdict import Runs, Verdict, span
from mqproof.impl.remoting.message import TAGS, StoredMessage, tags_code
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.consume_queue import ConsumeQueue, QueueKey, Unit
from mqproof.impl.store.files.deleted_topics import DeletedTopics
from mqproof.impl.store.recovery import points_at_its_record

_UNITS_READ: Final = 1000


class _QueueCheck:
    """Checks one queue: its entries against the records of the log, in the order of the queue."""

    def __init__(self, queue: ConsumeQueue, label: str, verdict: Verdict) -> None:
        self.queue = queue
        self.label = label
        self._damages = verdict.damages
        self.verdict = verdict
        self.first: int | None = None
        """Queue offset of the first record."""
        self.next = 0
        self._units: list[Unit] = []
        self._units_at = 0
        self._missing = Runs(lambda a, b: self._report(f"{span(a, b)} missing, the log has the record"))
        self._elsewhere = Runs(lambda a, b: self._report(f"{span(a, b)} not at its record"))
        self._tags = Runs(lambda a, b: self._report(f"{span(a, b)} with another tag code than its record"))

    def saw(self, stored: StoredMessage, is_damaged: Callable[[int], bool]) -> None:
        offset = stored.queue_offset
        if self.first is not None and offset != self.next and self._is_entry_of(self.next, stored):
            place = f"the record at commit offset {stored.commit_offset}"
            self._report(f"{place} says offset {offset}, its entry {self.next}")
            offset = self.next
        if self.first is None:
            self.first = offset
        elif offset < self.next:
            self._report(f"a second record of offset {offset}, at commit offset {stored.commit_offset}")
            return
        elif offset > self.next:
            self._between(self.next, offset, is_damaged)
        self.next = offset + 1
        unit = self.unit(offset)
        if unit is None or unit.size == 0:
            self._missing.add(offset)
        elif (unit.commit_offset, unit.size) != (stored.commit_offset, stored.size):
            self._elsewhere.add(offset)
        elif stored.message.topic != SCHEDULE_TOPIC and unit.tags_code != tags_code(
            stored.message.properties.get(TAGS)
        ):
            self._tags.add(offset)
        else:
            self.verdict.entries += 1

    def finish(self, log_begin: int, is_damaged: Callable[[int], bool]) -> None:
        """Check the entries before the first record and after the last one."""
        first = self.queue.find(log_begin)
        if self.first is None:
            self._between(first, self.queue.end, is_damaged)
        else:
            self._between(first, self.first, is_damaged)
            self._between(self.next, self.queue.end, is_damaged)
        for runs in (self._missing, self._elsewhere, self._tags):
            runs.end()

    def unit(self, offset: int) -> Unit | None:
        if not self._units_at <= offset < self._units_at + len(self._units):
            self._units, self._units_at = self.queue.units(offset, _UNITS_READ), offset
        return self._units[offset - self._units_at] if self._units else None

    def _is_entry_of(self, offset: int, stored: StoredMessage) -> bool:
        unit = self.unit(offset)
        return unit is not None and unit.commit_offset == stored.commit_offset

    def _between(self, begin: int, end: int, is_damaged: Callable[[int], bool]) -> None:
        """Report the entries of these offsets, which have no record, unless they refer to a damaged part."""
        lost = Runs(lambda a, b: self._report(f"{span(a, b)} without a record in the log"))
        for offset in range(begin, end):
            unit = self.unit(offset)
            if unit is None or unit.size == 0 or not is_damaged(unit.commit_offset):
                lost.add(offset)
        lost.end()

    def _report(self, what: str) -> None:
        self._damages.append(f"{self.label}: {what}")


class QueuesCheck:
    def __init__(self, store: StoreDirectory, verdict: Verdict, is_damaged: Callable[[int], bool]) -> None:
        self._store = store
        self._verdict = verdict
        self._is_damaged = is_damaged
        self._checks: dict[QueueKey, _QueueCheck] = {
            key: self._check(key, queue) for key, queue in store.queues.items()
        }
        self._without: Counter[QueueKey] = Counter()
        self._deleted = DeletedTopics(store.disk, store.layout.deleted_topics)
        try:
            self._deleted.load()
        except StoreError as error:
            verdict.damages.append(store.path(str(error)))
        self._births = {
            key: queue.units(0, 1)[0].commit_offset
            for key, queue in store.queues.items()
            if queue.begin == 0 < queue.end and points_at_its_record(queue, 0, store.log)
        }
        """The commit offset of each queue's first record. Earlier records are of a topic that was deleted."""
        self._known = {topic.name for topic in topics(store, [])}
        self.deleted_count = 0
        """The number of records of deleted topics."""

    @property
    def commit_offset_max(self) -> int:
        """The highest commit offset that any queue refers to; -1 for none."""
        ends = [
            queue.units(queue.end - 1, 1) for queue in self._store.queues.values() if queue.end > queue.begin
        ]
        return max((units[0].commit_offset for units in ends if units), default=-1)

    def saw(self, stored: StoredMessage) -> None:
        key = (stored.message.topic, stored.message.queue_id)
        check = self._checks.get(key)
        is_unknown = check is None and bool(self._known) and key[0] not in self._known
        at = stored.commit_offset
        if is_unknown or self._deleted.has(key[0], at) or at < self._births.get(key, 0):
            self.deleted_count += 1
        elif check is None:
            self._without[key] += 1
        else:
            check.saw(stored, self._is_damaged)

    def finish(self) -> None:
        if self.deleted_count:
            self._verdict.notes.append(f"{self.deleted_count} records are of topics that were deleted")
        for check in self._checks.values():
            check.finish(self._store.log.begin, self._is_damaged)
        for (topic, queue_id), count in self._without.items():
            self._verdict.damages.append(
                f"consumequeue/{topic}/{queue_id}: missing, the log has {count} records of it"
            )

    def _check(self, key: QueueKey, queue: ConsumeQueue) -> _QueueCheck:
        return _QueueCheck(queue, f"consumequeue/{key[0]}/{key[1]}", self._verdict)

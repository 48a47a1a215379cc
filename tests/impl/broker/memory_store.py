"""A store in memory, whose clock, answers and losses a test sets: for the work on queues of the broker.

It has the operations of `Store` that timers and transactions use.
"""

from collections.abc import Callable, Iterator, Sequence

from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.files import record
from mqproof.impl.store.results import STORED, PutResult, PutStatus
from mqproof.spec.events import Kind


class Events:
    """An event log that keeps the kinds and fields of its events."""

    def __init__(self) -> None:
        self.kept: list[tuple[Kind, dict[str, object]]] = []

    def emit(self, kind: Kind, **fields: object) -> None:
        self.kept.append((kind, fields))


class MemoryStore:
    """A log of records, each of 1000 bytes, and the queues over it."""

    def __init__(self) -> None:
        self.config = StoreConfig()
        self.clock_ms = 1_000_000
        self.writable = True
        self.failure = ""
        self.log_wanted_before = 0
        self.answers: list[PutStatus] = []
        """The statuses of the next puts; later ones are PUT_OK."""
        self.lost: set[int] = set()
        """The commit offsets of records that cannot be read."""
        self.unreadable_from: int | None = None
        """The commit offset from which records are not in their queues yet."""
        self.scanned: list[int] = []
        """The commit offsets from which the log was read."""
        self.flushed = 0
        """How often the log was flushed."""
        self.readers: dict[str, Callable[[], int | None]] = {}
        self._log: list[bytes] = []
        self._queues: dict[tuple[str, int], list[int]] = {}

    def now_ms(self) -> int:
        return self.clock_ms

    def keep_log_from(self, reader: str, needed_from: Callable[[], int | None]) -> None:
        self.readers[reader] = needed_from

    async def flush_log(self) -> None:
        self.flushed += 1

    # -- reading

    log_begin = 0

    @property
    def next_commit_offset(self) -> int:
        return 1000 * len(self._log)

    @property
    def log_flushed(self) -> int:
        return self.next_commit_offset

    def min_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        most = self.next_commit_offset if self.unreadable_from is None else self.unreadable_from
        return sum(at < most for at in self._queues.get((topic, queue_id), ()))

    def commit_offset_at(self, topic: str, queue_id: int, offset: int) -> int | None:
        within = 0 <= offset < self.max_offset(topic, queue_id)
        return self._queues[topic, queue_id][offset] if within else None

    def record_at(self, commit_offset: int) -> bytes | None:
        number, rest = divmod(commit_offset, 1000)
        is_there = rest == 0 and 0 <= number < len(self._log) and commit_offset not in self.lost
        return self._log[number] if is_there else None

    def stored_at(self, commit_offset: int) -> StoredMessage | None:
        data = self.record_at(commit_offset)
        return None if data is None else record.decode(data)

    def records_from(self, commit_offset: int) -> Iterator[StoredMessage]:
        self.scanned.append(commit_offset)
        for data in self._log[-(-commit_offset // 1000) :]:
            yield record.decode(data)

    def messages(self, topic: str, queue_id: int = 0) -> list[StoredMessage]:
        """Return the messages of a queue."""
        return [record.decode(self._log[at // 1000]) for at in self._queues.get((topic, queue_id), ())]

    # -- puts

    def put_soon(
        self,
        messages: Sequence[Message],
        done: Callable[[list[PutResult]], None],
        *,
        wait: bool = True,  # noqa: ARG002
    ) -> None:
        done([self.add(message) for message in messages])

    async def put(self, message: Message, *, wait: bool = True) -> PutResult:  # noqa: ARG002
        return self.add(message)

    def add(self, message: Message) -> PutResult:
        """Put a message, and return the result that the test asked for."""
        status = self.answers.pop(0) if self.answers else PutStatus.PUT_OK
        if status not in STORED:
            return PutResult(status, reason="as the test says")
        queue = self._queues.setdefault((message.topic, message.queue_id), [])
        draft, at = record.encode(message), self.next_commit_offset
        record.place(draft, len(queue), at, self.clock_ms)
        self._log.append(bytes(draft))
        queue.append(at)
        return PutResult(status, len(queue) - 1, at, "id", "", len(draft), self.clock_ms)

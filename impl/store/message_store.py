"""The store as a broker sees it: put, get, start, stop.

States: made, loaded (`load`: recovered, readable), started (`start` or `begin`: writable), stopped. A disk error
while writing or syncing makes a started store read-only for good: what the disk then still holds is unknown, so
nothing more is promised on top of it (docs/protocol.md, "Disk errors").
"""

from collections.abc import Callable, Collection

from impl.event_log import EventLog
from impl.message import Message
from impl.runtime.runtime import Runtime
from impl.store.config import StoreConfig
from impl.store.results import GetResult, PutResult, Recovery

Arrival = Callable[[str, int, int, int], None]
"""Told (topic, queue_id, next queue offset, tags code) when a message became readable."""


class MessageStore:
    """One store directory, owned by one process. Not thread-safe: call it from the event loop's thread."""

    def __init__(
        self, directory: str, config: StoreConfig, runtime: Runtime, events: EventLog | None = None
    ) -> None:
        self.directory = directory
        self.config = config
        self.on_arrival: Arrival | None = None
        """Wakes long polls; called inside `put` or the flush task, must not block or raise."""

    @property
    def writable(self) -> bool:
        """Started, not stopped, and no disk error so far."""
        raise NotImplementedError

    def load(self) -> Recovery:
        """Lock the directory, recover what is in it, and make it readable.

        Raises:
            StoreError: another process has the directory (nothing was changed), a file that does not belong
                there, a segment of another size than configured, a missing segment, or a disk error.
        """
        raise NotImplementedError

    async def start(self) -> None:
        """Write the abort file and run the flush services; `put` works from here on."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop cleanly: flush the log, dispatch all, flush the queues, write the checkpoint, remove the abort
        file, release the lock. After a disk error the abort file stays. Works from any state, also twice."""
        raise NotImplementedError

    async def put(self, message: Message, *, wait: bool = True) -> PutResult:
        """Store one message in its queue (`queue_id` must be valid: the store does not know topics).

        Returns when the status is known: under SYNC_FLUSH with `wait` after the fsync that covers the message.
        """
        raise NotImplementedError

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int = 32,
        max_bytes: int = 256 * 1024,
        tag_codes: Collection[int] | None = None,
    ) -> GetResult:
        """Dispatched records from `offset` on; `tag_codes` None or empty means all.

        At least one record is returned whatever its size.
        """
        raise NotImplementedError

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first readable queue offset; 0 for a queue that does not exist."""
        raise NotImplementedError

    def max_offset(self, topic: str, queue_id: int) -> int:
        """One more than the last readable queue offset; 0 for a queue that does not exist."""
        raise NotImplementedError

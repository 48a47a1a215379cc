"""The consume offsets of a group in the queues that a member reads: in memory, and in their store.

See docs/reference/protocol/offsets.md, "Consumer offsets" and "Broadcast offsets".
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting import bodies
from mqproof.impl.remoting.java_json import BodyError, ObjectKey, read, write
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.runtime import Runtime

_log = logging.getLogger(__name__)


class OffsetStore(Protocol):
    """The store of a group's offsets.

    An offset that cannot be saved is logged, and saved by the next call.
    """

    async def load(self, queue: MessageQueue) -> int | None:
        """Return the offset to continue from, or None if there certainly is none.

        Raises:
            ClientError: the offset is not known. The caller must not start anywhere else instead.
        """
        ...

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        """Store these offsets. `reset` means that they do not result from consumption."""
        ...

    async def release(self, queue: MessageQueue, offset: int) -> None:
        """Store the last offset of a queue that another member may be reading already."""
        ...


class BrokerOffsets:
    """Offsets of a group whose members divide the queues. The broker of each queue stores them."""

    def __init__(self, calls: GroupRequests, events: ConsumerEvents) -> None:
        self._calls = calls
        self._events = events
        self._resets: set[MessageQueue] = set()
        """Queues whose reset the broker has not confirmed.

        The next commit may be lower than the broker's offset.
        """

    async def load(self, queue: MessageQueue) -> int | None:
        return await self._calls.committed(queue)

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:
        # Save all offsets each time, changed or not: a broker that crashed may have gone back to older ones.
        await asyncio.gather(*(self._save(queue, offset, reset) for queue, offset in offsets.items()))

    async def release(self, queue: MessageQueue, offset: int) -> None:
        # The next owner may be ahead by now, and released brokers accept any offset.
        self._resets.discard(queue)
        try:
            known = await self._calls.committed(queue)
        except ClientError as error:
            _log.warning("the last offset is not stored: %s", error)
            return
        if known is None or known < offset:
            await self._save(queue, offset, reset=False)

    async def _save(self, queue: MessageQueue, offset: int, reset: bool) -> None:
        if reset:
            self._resets.add(queue)
        reset = queue in self._resets
        # During a rebalance two members may read a queue. The one that is behind must not move the offset
        # back.
        try:
            await self._calls.commit(queue, offset, only_forward=not reset)
        except ClientError as error:
            _log.warning("an offset is not stored: %s", error)
        else:
            if reset:
                self._resets.discard(queue)
            self._events.committed(queue, offset, reset=reset)


class _File(msgspec.Struct, rename="camel"):
    offset_table: dict[ObjectKey, int] = {}


class FileOffsets:
    """Offsets of a member that reads every queue itself (broadcast), in a local file of this member.

    The file is replaced atomically. The previous version stays as `offsets.json.bak`, which is read when the
    file itself is missing or invalid.
    """

    def __init__(self, directory: str, client_id: str, group: str, runtime: Runtime) -> None:
        self._path: Final = f"{directory}/{quote(client_id, safe='@#')}/{quote(group, safe='')}/offsets.json"
        self._backup: Final = f"{self._path}.bak"
        self._runtime = runtime
        self._table: dict[MessageQueue, int] | None = None
        self._saved: dict[MessageQueue, int] = {}
        self._saving = asyncio.Lock()

    async def load(self, queue: MessageQueue) -> int | None:
        return self._loaded().get(queue)

    async def save(self, offsets: Mapping[MessageQueue, int], *, reset: bool = False) -> None:  # noqa: ARG002  # an OffsetStore's signature
        table = self._loaded()
        table.update(offsets)
        async with self._saving:
            saved = dict(table)
            if saved == self._saved:
                return
            try:
                await self._runtime.offload(partial(self._write, _encoded(saved)))
            except OSError as error:
                _log.error("offsets cannot be written to disk: %s: %s", self._path, error)
            else:
                self._saved = saved

    async def release(self, queue: MessageQueue, offset: int) -> None:
        await self.save({queue: offset})

    def _write(self, data: bytes) -> None:
        disk = self._runtime.disk
        if disk.exists(self._path):
            write_durably(disk, self._backup, read_whole(disk, self._path))
        write_durably(disk, self._path, data)

    def _loaded(self) -> dict[MessageQueue, int]:
        if self._table is None:
            self._table = self._read()
        return self._table

    def _read(self) -> dict[MessageQueue, int]:
        failure: Exception | None = None
        for path in (self._path, self._backup):
            try:
                table = read(_File, read_whole(self._runtime.disk, path)).offset_table
                named = {key.as_a(bodies.MessageQueue): offset for key, offset in table.items()}
            except FileNotFoundError:
                pass
            except (OSError, BodyError) as error:
                _log.warning("%s is not read: %s", path, error)
                failure = error
            else:
                return {MessageQueue(q.topic, q.broker_name, q.queue_id): n for q, n in named.items()}
        if failure is not None:
            raise ClientError(f"{self._path}: neither it nor its backup can be read: {failure}")
        return {}


def _encoded(table: Mapping[MessageQueue, int]) -> bytes:
    keys = ((bodies.MessageQueue(q.broker_name, q.queue_id, q.topic), offset) for q, offset in table.items())
    return write(_File({ObjectKey(queue): offset for queue, offset in keys}))


class Offsets:
    """The offsets of the queues that a member reads. They are ahead of the store until they are saved.

    The store may be code of the application. Its exceptions are logged, and do not end a consumer.
    """

    def __init__(self, store: OffsetStore) -> None:
        self._store = store
        self._table: dict[MessageQueue, int] = {}
        self._resets: set[MessageQueue] = set()
        """Queues whose reset could not be stored; the next save repeats it."""

    def get(self, queue: MessageQueue) -> int | None:
        return self._table.get(queue)

    def set(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset, forward or back."""
        self._table[queue] = offset

    async def begin(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset of a queue that had none, and store it. The next `save` repeats a failure."""
        self.set(queue, offset)
        await self._is_done(self._store.save({queue: offset}))

    def advance(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset if it is higher than the current one."""
        self._table[queue] = max(offset, self._table.get(queue, 0))

    async def load(self, queue: MessageQueue) -> int | None:
        """Return the stored offset, as OffsetStore.load does. Raises ClientError, and nothing else."""
        try:
            return await self._store.load(queue)
        except ClientError:
            raise
        except Exception as error:
            raise ClientError(f"{queue}: the offset store failed: {type(error).__name__}: {error}") from error

    async def save(self) -> None:
        """Store all offsets."""
        for queue in list(self._resets):
            await self._save_reset(queue)
        if known := {queue: offset for queue, offset in self._table.items() if queue not in self._resets}:
            await self._is_done(self._store.save(known))

    async def _save_reset(self, queue: MessageQueue) -> None:
        self._resets.discard(queue)
        offset = self._table.get(queue)
        if offset is not None and not await self._is_done(self._store.save({queue: offset}, reset=True)):
            self._resets.add(queue)

    async def reset(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset for a reason other than consumption, and store it at once."""
        self._table[queue] = offset
        await self._save_reset(queue)

    async def release(self, queue: MessageQueue) -> None:
        """Store the offset of a queue that this member has lost, and forget it."""
        offset = self._table.pop(queue, None)
        self._resets.discard(queue)
        if offset is not None:
            await self._is_done(self._store.release(queue, offset))

    async def _is_done(self, work: Awaitable[None]) -> bool:
        try:
            await work
        except Exception as error:  # the store may be code of the application
            _log.error("the offset store failed", exc_info=error)
            return False
        return True

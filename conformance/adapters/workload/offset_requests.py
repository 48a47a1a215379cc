"""Records the requests of clients about their groups' offsets, and a push consumer that does so."""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from mqproof.conformance.history.lines import CommitValue, QueryValue, Type
from mqproof.conformance.history.recorder import Historian
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.offset_store import BrokerOffsets, OffsetStore
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.model import ClientError, MessageQueue

_ERROR_MAX: Final = 200


def queue_name(queue: MessageQueue) -> str:
    """Return the name of the queue in histories."""
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


async def record_commit(
    historian: Historian, process: str, value: CommitValue, work: Awaitable[None]
) -> None:
    """Perform and record a commit. Raises ClientError."""
    historian.begin(process, value)
    try:
        await work
    except ClientError as error:
        historian.end(process, value, Type.INFO, str(error)[:_ERROR_MAX])
        raise
    historian.end(process, value)


async def record_query(
    historian: Historian, process: str, value: QueryValue, work: Awaitable[int | None]
) -> int | None:
    """Perform and record a query. Raises ClientError."""
    historian.begin(process, value)
    try:
        offset = await work
    except ClientError as error:
        historian.end(process, QueryValue(), Type.FAIL, str(error)[:_ERROR_MAX])
        raise
    historian.end(process, QueryValue(offset=-1 if offset is None else offset))
    return offset


class RecordingPushConsumer(PushConsumer):
    """A push consumer that records its commits and queries. Broadcast groups have no offsets at the broker.

    `client` is its name in the history.
    """

    def __init__(self, historian: Historian, client: str, *arguments: Any) -> None:
        self._recording = historian, client
        super().__init__(*arguments)

    def _offset_store(self) -> OffsetStore:
        if not self._is_cluster:
            return super()._offset_store()
        return BrokerOffsets(_RecordingCalls(*self._recording, self._session, self._group), self._events)


class _RecordingCalls(GroupRequests):
    """Group requests that are recorded in a history.

    Offsets of several queues are queried concurrently, so each call is a process of its own in the history.
    """

    def __init__(self, historian: Historian, client: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._historian = historian
        self._client = client
        self._new = count(1)
        self._free: list[str] = []

    async def commit(self, queue: MessageQueue, offset: int, *, only_forward: bool = False) -> None:
        value = CommitValue(self.group, queue_name(queue), offset, self._client)
        work = super().commit(queue, offset, only_forward=only_forward)
        with self._process() as process:
            await record_commit(self._historian, process, value, work)

    async def committed(self, queue: MessageQueue) -> int | None:
        value = QueryValue(self.group, queue_name(queue), client=self._client)
        with self._process() as process:
            return await record_query(self._historian, process, value, super().committed(queue))

    @contextmanager
    def _process(self) -> Iterator[str]:
        """Yield a process name without an open operation. The name is not reused after a cancelled call."""
        process = self._free.pop() if self._free else f"{self._client} offsets {next(self._new)}"
        try:
            yield process
        except ClientError:
            self._free.append(process)
            raise
        else:
            self._free.append(process)

"""Consumes the messages of `mqproof consume`: each queue by itself, or as a member of the group."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Final, TypeVar

import msgspec

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import (
    ClientError,
    MessageQueue,
    PullResult,
    ReceivedMessage,
    RetryLater,
)
from mqproof.impl.remoting.address_server import NameServers
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.runtime import Runtime

T = TypeVar("T")

_HOLD_MS: Final = 1000
"""How long the broker may hold a pull of a consumer with `follow`."""
_QUIET_MS: Final = 3000
"""A member without `follow` ends after this time without a message. Finding its queues takes part of it."""
_POLL_MAX: Final = 32
_POLL_MS: Final = 200
_PAUSE_S: Final = 0.2
"""The pause between two attempts of a consumer with `follow`."""


class Begin(Enum):
    """Where a consumer begins."""

    COMMITTED = "where the group is, else at the first message"
    MIN = "at the first message"
    MAX = "behind the last message"
    TIME = "at the message stored nearest to a time"


@dataclass(frozen=True, slots=True)
class ConsumeJob:
    name_servers: NameServers
    topic: str
    group: str
    count_max: int | None
    begin: Begin
    begin_ms: int
    """The start time for Begin.TIME, in milliseconds since the epoch."""
    follow: bool
    """Whether to wait for more messages at the end of a queue, and for a broker that is not available."""
    idle_ms_max: int | None
    """With `follow`: stop after this time without a message; None means never."""
    tags: MessageSelector
    as_json: bool
    """Whether each line is a JSON object."""
    show: Callable[[str], None]
    """Receives a line for each message."""
    credentials: Credentials | None = None


async def consume(job: ConsumeJob, runtime: Runtime, events: EventLog | None) -> int:
    """Consume the topic's queues and commit; returns how many messages were shown.

    Raises:
        ClientError: the topic is unknown, or a broker refuses or does not answer. Never raised with `follow`.
    """
    session = Session(job.name_servers, runtime, credentials=job.credentials)
    consumer = PullConsumer(session, job.group, events)
    await session.start()
    progress = _Progress(job)
    try:
        queues = await _patiently(job, progress, lambda: consumer.queues(job.topic)) or []
        await session.heartbeat()
        await asyncio.gather(*(_consume_queue(consumer, queue, progress) for queue in queues))
    finally:
        await session.stop()
    return progress.shown


async def consume_assigned(job: ConsumeJob, runtime: Runtime, events: EventLog | None) -> int:
    """Consume the queues assigned to this member of the group. Returns the number of messages shown.

    `begin` applies to queues in which the group has no offset. Without `follow`, consumption ends when no
    message has arrived for a while.
    """
    progress = _Progress(_with_an_end(job))
    async with (
        Session(job.name_servers, runtime, credentials=job.credentials) as session,
        LitePullConsumer(session, job.group, LitePullConfig(*_beginning(job)), events) as consumer,
    ):
        await consumer.subscribe(job.topic, job.tags)
        while not progress.is_enough:
            left = _POLL_MAX if job.count_max is None else job.count_max - progress.shown
            for message in await consumer.poll(_POLL_MS, min(left, _POLL_MAX)):
                progress.show(message.stored)
    return progress.shown


async def consume_assigned_in_order(job: ConsumeJob, runtime: Runtime, events: EventLog | None) -> int:
    """Consume as `consume_assigned` does, but lock each queue at its broker.

    Two members then never consume one queue at the same time, even while queues are reassigned.
    """
    progress = _Progress(_with_an_end(job))

    async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        if progress.is_enough:
            return RetryLater()  # not consumed: it stays at the head of its queue
        for message in messages:
            progress.show(message.stored)
        return None

    consume_from, begin_ms = _beginning(job)
    config = PushConsumerConfig(orderly=True, consume_from=consume_from, consume_from_ms=begin_ms)
    async with (
        Session(job.name_servers, runtime, credentials=job.credentials) as session,
        PushConsumer(session, job.group, listener, config, events) as consumer,
    ):
        await consumer.subscribe(job.topic, job.tags)
        while not progress.is_enough:
            await asyncio.sleep(_PAUSE_S)
    return progress.shown


def _with_an_end(job: ConsumeJob) -> ConsumeJob:
    return job if job.follow else replace(job, idle_ms_max=_QUIET_MS)


def _beginning(job: ConsumeJob) -> tuple[ConsumeFrom, int | None]:
    """Return where a group without offsets starts, and the time if it starts at one."""
    if job.begin is Begin.TIME:
        return ConsumeFrom.TIMESTAMP, job.begin_ms
    return ConsumeFrom.LAST_OFFSET if job.begin is Begin.MAX else ConsumeFrom.FIRST_OFFSET, None


class _Progress:
    """The number of messages shown from all queues, and the time of the last one."""

    def __init__(self, job: ConsumeJob) -> None:
        self.job = job
        self.shown = 0
        self._shown_last_s = asyncio.get_running_loop().time()

    @property
    def is_enough(self) -> bool:
        if self.job.count_max is not None and self.shown >= self.job.count_max:
            return True
        idle_s = asyncio.get_running_loop().time() - self._shown_last_s
        return self.job.idle_ms_max is not None and idle_s * 1000 >= self.job.idle_ms_max

    def show(self, stored: StoredMessage) -> None:
        self.shown += 1
        self._shown_last_s = asyncio.get_running_loop().time()
        self.job.show(_json_line(stored) if self.job.as_json else _line(stored))


def _line(stored: StoredMessage) -> str:
    text = stored.message.body.decode(errors="backslashreplace")
    return f"{stored.message.queue_id} {stored.queue_offset} {stored.message_id} {text}"


def _json_line(stored: StoredMessage) -> str:
    message = stored.message
    members = {
        "topic": message.topic,
        "queue_id": message.queue_id,
        "queue_offset": stored.queue_offset,
        "message_id": stored.message_id,
        "born_timestamp_ms": message.born_timestamp_ms,
        "store_timestamp_ms": stored.store_timestamp_ms,
        "reconsume_times": message.reconsume_times,
        "properties": dict(message.properties),
        "body": message.body.decode(errors="backslashreplace"),
    }
    return msgspec.json.encode(members).decode()


async def _patiently(job: ConsumeJob, progress: _Progress, call: Callable[[], Awaitable[T]]) -> T | None:
    """Return the call's result. With `follow`, retry until there is one; None after the idle time."""
    while True:
        try:
            return await call()
        except ClientError:
            if not job.follow:
                raise
        if progress.is_enough:
            return None
        await asyncio.sleep(_PAUSE_S)


async def _consume_queue(consumer: PullConsumer, queue: MessageQueue, progress: _Progress) -> None:
    job = progress.job
    offset = await _patiently(job, progress, lambda: _first_offset(consumer, queue, job))
    hold_ms = _HOLD_MS if job.follow else 0
    while offset is not None and not progress.is_enough:
        result = await _patiently(
            job, progress, partial(consumer.pull, queue, offset, tags=job.tags, hold_ms=hold_ms)
        )
        if result is None:
            return
        offset = _show(result, progress)
        moved = result.status == "OFFSET_ILLEGAL"
        await _patiently(job, progress, partial(consumer.commit, queue, offset, reset=moved))
        if result.status == "NO_NEW_MESSAGE" and not job.follow:
            return


async def _first_offset(consumer: PullConsumer, queue: MessageQueue, job: ConsumeJob) -> int:
    if job.begin is Begin.TIME:
        return await consumer.search_offset(queue, job.begin_ms)
    if job.begin is Begin.MAX:
        return await consumer.max_offset(queue)
    committed = await consumer.committed(queue) if job.begin is Begin.COMMITTED else None
    return await consumer.min_offset(queue) if committed is None else committed


def _show(result: PullResult, progress: _Progress) -> int:
    """Show messages up to the limit. Returns the offset after the last one shown."""
    for stored in result.messages:
        if progress.is_enough:
            return stored.queue_offset
        progress.show(stored)
    return result.next_offset

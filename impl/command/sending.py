"""Sends the messages of `mqproof send` and counts their outcomes."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import msgspec

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import Outcome, Refused, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.queue_choice import by_hash
from mqproof.impl.remoting.address_server import NameServers
from mqproof.impl.remoting.message import UNIQUE_KEY, Message, UniqueKeys
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.runtime import Runtime

_PAUSE_S: Final = 0.2
"""The pause between two attempts with `until_stored`."""


@dataclass(frozen=True, slots=True)
class SendJob:
    name_servers: NameServers
    topic: str
    body: bytes
    properties: Mapping[str, str]
    count: int
    outstanding: int
    timeout_ms: int
    until_stored: bool
    """Send each message again, with the same unique key, until its answer is SEND_OK."""
    show: Callable[[str], None] | None
    """Receives a line for each message."""
    group: str = "mqproof_producer"
    batch: int = 1
    """The number of messages in one request."""
    sharding_key: str | None = None
    """Messages of one key go to one queue, and so stay in order."""
    credentials: Credentials | None = None


@dataclass(slots=True)
class SendSummary:
    outcomes: Counter[str] = field(default_factory=Counter)
    """The number of messages by outcome: a send status, the name of a response code, or UNKNOWN."""
    refused: int = 0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        return self.outcomes.total()

    @property
    def exit_code(self) -> int:
        """0: all SEND_OK. 1: a message was refused. 3: whether a message is stored and durable is unknown."""
        if self.refused:
            return 1
        return 0 if self.outcomes["SEND_OK"] == self.count else 3

    def as_json(self) -> str:
        rate = self.count / self.seconds if self.seconds else 0.0
        summary = {
            "sends": self.count,
            "seconds": round(self.seconds, 6),
            "sends_per_second": round(rate, 1),
            "outcomes": dict(self.outcomes),
        }
        return msgspec.json.encode(summary).decode()

    def __str__(self) -> str:
        outcomes = ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items()))
        rate = self.count / self.seconds if self.seconds else 0.0
        return f"{self.count} sends in {self.seconds:.3f} s ({rate:.0f}/s): {outcomes}"


async def send(job: SendJob, runtime: Runtime, events: EventLog | None) -> SendSummary:
    """Send `count` messages, with at most `outstanding` requests in progress."""
    session = Session(job.name_servers, runtime, credentials=job.credentials)
    config = ProducerConfig(group=job.group, send_timeout_ms=job.timeout_ms)
    producer = Producer(session, config, events)
    await session.start()
    loop = asyncio.get_running_loop()
    summary = SendSummary()
    left = iter(range(job.count))
    keys = UniqueKeys(runtime.random, runtime.clock)

    async def sender() -> None:
        while places := list(islice(left, job.batch)):
            messages = [
                Message(job.topic, job.body, {**job.properties, UNIQUE_KEY: keys.take()}) for _ in places
            ]
            for outcome in await _send_stubbornly(producer, job, messages):
                _note(summary, job, outcome)

    try:
        began_s = loop.time()
        await asyncio.gather(*(sender() for _ in range(min(job.outstanding, job.count))))
        summary.seconds = loop.time() - began_s
    finally:
        await session.stop()
    return summary


async def _send_stubbornly(producer: Producer, job: SendJob, messages: Sequence[Message]) -> list[Outcome]:
    """Return the messages' outcomes; with `until_stored`, send again until all are SEND_OK."""
    while True:
        outcomes = await _send_once(producer, job, messages)
        done = all(isinstance(outcome, Sent) and outcome.status == "SEND_OK" for outcome in outcomes)
        if done or not job.until_stored:
            return outcomes
        await asyncio.sleep(_PAUSE_S)


async def _send_once(producer: Producer, job: SendJob, messages: Sequence[Message]) -> list[Outcome]:
    select = by_hash(job.sharding_key) if job.sharding_key is not None else None
    if job.batch == 1:
        return [await producer.send(messages[0], select=select)]
    return await producer.send_batch(messages, select=select)


def _note(summary: SendSummary, job: SendJob, outcome: Outcome) -> None:
    if isinstance(outcome, Sent):
        summary.outcomes[outcome.status] += 1
        line = f"{outcome.status} {outcome.message_id} {outcome.queue} offset {outcome.queue_offset}"
    elif isinstance(outcome, Refused):
        summary.outcomes[outcome.status] += 1
        summary.refused += 1
        line = f"{outcome.status} {outcome.message_id} {outcome.remark}"
    else:
        summary.outcomes["UNKNOWN"] += 1
        line = f"UNKNOWN {outcome.message_id} {outcome.remark}"
    if job.show is not None:
        job.show(line)

"""A producer, the calls of a listener, and their traces. The caller answers each request.

Used by the behaviours of Tracing and by the fuzz target `client-traces`. Time passes only while a step waits.
A call of the listener is only its two reports.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from mqproof.conformance.subjects.stepped.delayed_requests import Held, HeldRequests, at_rest, session
from mqproof.impl.client.model import MessageQueue, Outcome, ReceivedMessage, Refused, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.tracing.trace_dispatcher import TraceDispatcher
from mqproof.impl.client.tracing.trace_records import CallBegan, TraceRecord, decode
from mqproof.impl.client.tracing.traced_calls import TracedCalls
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import SendResponse
from mqproof.impl.remoting.message import KEYS, UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.runtime.runtime import Runtime
from mqproof.reference.tracing import Trace, Traces

_TRACE_TOPIC: Final = "TT"
_QUEUE: Final = MessageQueue("T", "broker", 0)
_SEND_MS: Final = 10**9
_STOP_S: Final = 1.5
"""A stop ends within this time."""
_COLLECT_S: Final = 1.0
"""Traces are sent within this time."""
_CODES: Final = {
    "good": ResponseCode.SUCCESS,
    "bad": ResponseCode.FLUSH_DISK_TIMEOUT,
    "refused": ResponseCode.NO_PERMISSION,
}
_SENT: Final = Sent("SEND_OK", "trace", MessageQueue(_TRACE_TOPIC, "broker", 0), 0, "", 1)
_REFUSED: Final = Refused("trace", "NO_PERMISSION", "no", 1)


class _Dispatcher(TraceDispatcher):
    """Sends a batch when its driver says so."""

    may_send: "asyncio.Event"

    async def _send_batch(self) -> None:
        await self.may_send.wait()
        self.may_send.clear()
        await super()._send_batch()


class TracedClient:
    """It must be created in the loop that runs it."""

    def __init__(self, runtime: Runtime, waiting_max: int) -> None:
        self._requests = HeldRequests(_at_once)
        self._answer: asyncio.Future[Outcome] | None = None
        self._body = b""
        self._names: dict[str, str] = {}
        """The operations by the ids of their messages."""
        self._dispatcher = _Dispatcher(_TRACE_TOPIC, self._sends_traces, waiting_max)
        self._dispatcher.may_send = asyncio.Event()
        config = ProducerConfig("PG", send_timeout_ms=_SEND_MS, retries=0)
        self._producer = Producer(session(self._requests, runtime, "client"), config)
        self._producer._traces = self._dispatcher
        self._calls = TracedCalls(self._dispatcher, "CG", runtime)
        self._sends: dict[str, asyncio.Task[Outcome]] = {}
        self._held: dict[str, Held] = {}
        self._called: dict[str, tuple[str, ReceivedMessage]] = {}
        self._stopping: asyncio.Task[None] | None = None

    # Operations

    async def begin_send(self, name: str) -> None:
        message = Message(_QUEUE.topic, name.encode(), {KEYS: name})
        self._sends[name] = asyncio.create_task(self._producer.send(message, _QUEUE))
        await at_rest()
        self._held[name] = self._requests.held[-1]

    async def end_send(self, name: str, how: str) -> None:
        held = self._held.pop(name)
        stored = SendResponse("7F00000100002A9F0000000000000000", 0, 0)
        fields = {} if how == "refused" else headers.write(stored)
        held.answer(held.request.answer(_CODES[how], fields))
        await at_rest()

    def outcome(self, name: str) -> str:
        """Return what the application has seen of a send."""
        sending = self._sends[name]
        if not sending.done():
            return "running"
        if error := sending.exception():
            return type(error).__name__
        outcome = sending.result()
        if isinstance(outcome, Sent):
            return "good" if outcome.status == "SEND_OK" else "bad"
        return "refused"

    def begin_call(self, name: str) -> None:
        message = _received(name)
        self._called[name] = (self._calls.began([message]), message)

    def end_call(self, name: str, how: str) -> None:
        request_id, message = self._called.pop(name)
        self._calls.ended(request_id, [message], 0.0, int(how == "good"), raised=False)

    # Traces

    async def take(self) -> None:
        """Let the next batch be sent, if traces wait and no batch is being sent."""
        self._dispatcher.may_send.set()
        if self._stopping is None:
            await asyncio.sleep(_COLLECT_S)
        await at_rest()
        self._dispatcher.may_send.clear()

    async def settle(self, how: str) -> None:
        """End the send of the batch: it is "stored", "refused", or raises an "error"."""
        answer, self._answer = self._answer, None
        assert answer is not None, "no batch is being sent"
        if how == "error":
            answer.set_exception(RuntimeError("bad"))
        else:
            answer.set_result(_SENT if how == "stored" else _REFUSED)
        await at_rest()

    @property
    def waiting(self) -> Traces:
        return self._traces(list(self._dispatcher._waiting))

    @property
    def waiting_count(self) -> int:
        return len(self._dispatcher._waiting)

    @property
    def batch(self) -> Traces:
        """The traces of the message that is being sent."""
        return self._traces(decode(self._body)) if self._answer is not None else frozenset()

    @property
    def dropped(self) -> int:
        return self._dispatcher.dropped

    # The end

    async def stop(self) -> None:
        self._stopping = asyncio.create_task(self._dispatcher.stop())
        await at_rest()

    async def stopped(self) -> bool:
        """Let the time limit of a stop pass; return whether it has ended."""
        assert self._stopping is not None, "it does not stop"
        if not self._stopping.done():
            await asyncio.sleep(_STOP_S)
        return self._stopping.done()

    async def _sends_traces(self, message: Message) -> Outcome:
        self._body = message.body
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        except asyncio.CancelledError:
            self._answer = None
            raise

    def _traces(self, records: Sequence[TraceRecord]) -> Traces:
        return frozenset(map(_trace, records))


def _trace(record: TraceRecord) -> Trace:
    name = record.keys or ""
    if isinstance(record, CallBegan):
        return Trace(name, "began")
    return Trace(name, "good" if record.ok else "bad")


def _received(name: str) -> ReceivedMessage:
    message = StoredMessage(Message(_QUEUE.topic, b".", {UNIQUE_KEY: name, KEYS: name}), 0, 0, 0, 0, 0)
    return ReceivedMessage(message, _QUEUE, 0)


def _at_once(request: Command) -> Command | None:
    """Answer route queries immediately, as a name server does."""
    if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC:
        return None
    route = TopicRoute(
        [BrokerData({0: "127.0.0.1:10911"}, _QUEUE.broker_name, "cluster")],
        [QueueData(_QUEUE.broker_name, 1, PERM_READ_WRITE, write_queue_nums=1)],
    )
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(route))

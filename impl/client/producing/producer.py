"""Sends messages: chooses a queue, retries at other brokers, and reports the outcome precisely."""

import asyncio
import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Final

from mqproof.impl.client.arguments import require_group, require_kind, require_topic, require_whole
from mqproof.impl.client.connection.routes import publish_queues, require
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.messages.compose import is_delayed
from mqproof.impl.client.messages.payload import Payload, PayloadBuilder, unique_key
from mqproof.impl.client.model import (
    STORED_STATUSES,
    MessageError,
    MessageQueue,
    NoReplyError,
    NoRouteError,
    Outcome,
    ReceivedMessage,
    RefusalError,
    Refused,
    ReplyError,
    SendError,
    Sent,
    Unknown,
)
from mqproof.impl.client.producing.queue_choice import LEVELS_5, LatencyLevels, QueueChoice, Selector
from mqproof.impl.client.producing.request_reply import new_correlation_id, reply_to, with_request
from mqproof.impl.client.producing.transport import LoopTransport, Transport
from mqproof.impl.client.tracing.trace_dispatcher import TraceDispatcher
from mqproof.impl.client.tracing.trace_records import MessageType, Published
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import QueueData, TopicRoute
from mqproof.impl.remoting.channel import ConnectError, RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, is_retriable, response_name
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import HeaderError, RecallMessageRequest, SendRequest, SendResponse
from mqproof.impl.remoting.message import KEYS, TAGS, Message
from mqproof.impl.remoting.recall_handle import parse_handle
from mqproof.impl.remoting.topic_names import name_problem
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.spec.events import Kind

_UNKNOWN: Final = "unknown"
_NOT_CONNECTED: Final = "NOT_CONNECTED"
_ACCESS_REFUSAL: Final = re.compile(r"[\w.$]*AclException\b")
"""The start of the remark of a refusal by access control; see docs/reference/protocol/access-control.md,
"Permissions".
"""
_WRONG_BROKER: Final = (_NOT_CONNECTED, _UNKNOWN, ResponseCode.SERVICE_NOT_AVAILABLE.name)
"""Statuses of an attempt that suggest that the broker is gone, or is no longer a master."""


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """The defaults of a producer, which a call may override. They are RocketMQ's."""

    group: str = "mqproof_producer"
    """The name of the producer group."""
    send_timeout_ms: int = 3000
    """The time limit for all attempts of one send together."""
    retries: int = 2
    """The number of attempts after the first, each at another broker if there is one."""
    retry_unconfirmed: bool = False
    """Whether to retry when the message is stored but not confirmed on disk or on a slave.

    It may be stored twice.
    """
    body_bytes_max: int = 4 << 20
    """The limit on the size of a body."""
    compress_from_bytes: int = 4096
    """Bodies of at least this size are compressed. Batches are never compressed."""
    latency_fault_strategy: bool = False
    """Whether to avoid brokers that were slow or failed, for some time (sendLatencyFaultEnable)."""
    latency_levels: LatencyLevels = LEVELS_5
    """How long a slow broker is avoided, by the latency of the attempt."""
    default_topic: str = "TBW102"
    """The template topic: a topic that a send creates gets the queues of this one."""
    default_topic_queues: int = 4
    """The number of queues requested when a send creates its topic."""
    trace_topic: str | None = None
    """The topic for traces of the stored messages, usually RMQ_SYS_TRACE_TOPIC; None traces nothing."""
    retry_unknown: bool = True
    """Whether to retry when an attempt received no response, or failed halfway at the broker.

    The message may be stored twice, under the same id.
    """


@dataclass(frozen=True, slots=True)
class _Ended:
    """How one attempt ended. If it has a response, the message is stored."""

    status: str
    """One of STORED_STATUSES, the name of a refusal, NO_ROUTE, _NOT_CONNECTED or _UNKNOWN."""
    attempt: int
    remark: str = ""
    may_retry: bool = False
    queue: MessageQueue | None = None
    response: SendResponse | None = None


class Producer:
    """A producer of one group. Its methods may run concurrently; responses may arrive in any order.

    A send has one of three outcomes, and does not raise for any of them. `Sent` means stored. `Refused` means
    certainly not stored. `Unknown` means that the message may be stored. Sending an unknown message again may
    store it twice, under the same id.
    """

    def __init__(
        self, session: Session, config: ProducerConfig | None = None, events: EventLog | None = None
    ) -> None:
        self._session = session
        self._config = config or ProducerConfig()
        _check(self._config)
        self._events = events
        self._transport: Transport = LoopTransport(session)
        self._payloads = _payload_builder(session, self._config)
        levels = self._config.latency_levels if self._config.latency_fault_strategy else None
        self._choice = QueueChoice(session.runtime.random.randrange(1 << 16), levels)
        self._queues: dict[str, tuple[TopicRoute, list[MessageQueue]]] = {}
        session.join_as_producer(self._config.group)
        self._traces = trace_dispatcher(session, f"{self._config.group}-PRODUCE", self._config.trace_topic)

    async def send(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        select: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> Outcome:
        """Send one message and return its outcome.

        The producer chooses the queue and retries at other brokers. If `queue` or `select` chooses the queue,
        there is only one attempt. `timeout_ms` limits all attempts together, including the route lookup. If a
        send is cancelled, its outcome is unknown.

        Raises:
            MessageError: the body is empty, too long or not bytes, the topic is not allowed, or the
                properties cannot be encoded.
        """
        (outcome,) = await self._send(self._payloads.single(message), queue, select, timeout_ms)
        return outcome

    async def send_or_raise(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        select: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> Sent:
        """Send one message as `send` does, and raise an error unless the broker stored it.

        Raises:
            SendError: the outcome is `Refused` or `Unknown`; the error has it.
            MessageError: as `send`.
        """
        outcome = await self.send(message, queue, select=select, timeout_ms=timeout_ms)
        if not isinstance(outcome, Sent):
            raise SendError(outcome)
        return outcome

    async def send_many(
        self, messages: Iterable[Message], *, outstanding: int = 64, timeout_ms: int | None = None
    ) -> list[Outcome]:
        """Send messages concurrently, and return an outcome for each, in their order.

        Each message is sent as `send` does, with its own queue and attempts; `timeout_ms` limits each one.
        At most `outstanding` messages have no outcome at a time, so a later one may be stored earlier.

        Raises:
            MessageError: as `send`, for any of the messages; nothing was sent.
        """
        require_whole("outstanding", outstanding, 1)
        payloads = [self._payloads.single(message) for message in messages]
        waiting = iter(enumerate(payloads))
        outcomes: dict[int, Outcome] = {}

        async def send_waiting() -> None:
            for number, payload in waiting:
                (outcomes[number],) = await self._send(payload, None, None, timeout_ms)

        await asyncio.gather(*(send_waiting() for _ in range(min(outstanding, len(payloads)))))
        return [outcomes[number] for number in range(len(payloads))]

    async def send_batch(
        self,
        messages: Iterable[Message],
        queue: MessageQueue | None = None,
        *,
        select: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> list[Outcome]:
        """Send messages of one topic in one request, to one queue, and return an outcome for each.

        Works as `send`. All outcomes are of the same kind: a batch is stored as a whole, at consecutive
        offsets. (If the broker's machine crashes, only the start of the batch may survive.)

        Raises:
            MessageError: as `send`, or the messages differ in topic or in WAIT, are delayed, or are too long
                together.
        """
        return await self._send(self._payloads.batch(list(messages)), queue, select, timeout_ms)

    async def send_oneway(
        self, message: Message, queue: MessageQueue | None = None, *, select: Selector | None = None
    ) -> str:
        """Send a message without waiting for a response. Returns the message id.

        Raises:
            MessageError: as `send`.
            NoRouteError, RemotingError: nothing was sent.
        """
        payload = self._payloads.single(message)
        target = await self._target(payload.topic, None, queue, select)
        address = self._master(payload.topic, target.broker_name)
        self._emit(Kind.SEND, payload, target, attempt=1)
        request = self._request(payload, target.queue_id, oneway=True)
        try:
            await self._session.remoting.send_oneway(address, request)
        except RemotingError:
            self._doubt(payload.topic)
            raise
        return unique_key(payload.first)

    async def recall(self, topic: str, handle: str, *, timeout_ms: int | None = None) -> None:
        """Withdraw a message that waits for its time. `handle` is the `recall_handle` of its `Sent`.

        After a return, the message is never delivered. A recall that raises ClientError or RemotingError may
        have been executed.

        Raises:
            MessageError: the handle is invalid.
            RefusalError: the message does not wait any more, or the broker does not allow recalls.
            NoRouteError, RemotingError: the broker was not reached, or did not answer in time.
        """
        try:
            broker_name = parse_handle(handle).broker
        except ValueError as error:
            raise MessageError(str(error)) from None
        deadline_s = _now_s() + (timeout_ms or self._config.send_timeout_ms) / 1000
        await self._route(topic, deadline_s)
        address = self._master(topic, broker_name)
        header = RecallMessageRequest(topic, handle, self._config.group)
        request = new_request(RequestCode.RECALL_MESSAGE, headers.write(header))
        answer = await self._session.remoting.invoke(address, request, max(0.0, deadline_s - _now_s()))
        if answer.code != ResponseCode.SUCCESS:
            remark = f"{response_name(answer.code)}: {answer.remark or 'no remark'}"
            raise RefusalError(f"the recall of a message in {topic} failed: {remark}", answer.code)

    async def request(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        select: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> Message:
        """Send a message, wait for the reply of a consumer, and return the reply.

        `timeout_ms` limits everything together; without it, the limit is `send_timeout_ms`. A reply that
        comes later is dropped. Of several replies the first one counts.

        Raises:
            NoReplyError: there was no reply in time. A consumer may have consumed the message all the same.
            SendError: the message was refused, and is certainly not stored.
            MessageError: as `send`, or the message has a delay.
        """
        limit_ms = timeout_ms or self._config.send_timeout_ms
        deadline_s = _now_s() + limit_ms / 1000
        correlation_id = new_correlation_id(self._session.runtime)
        request = with_request(message, correlation_id, self._session.client_id, limit_ms)
        payload = self._payloads.single(request)
        with self._session.replies.expecting(correlation_id) as reply:
            self._session.greet_while_waiting()
            sending = asyncio.create_task(self._send_request(payload, queue, select, deadline_s))
            try:
                await self._first_of(reply, sending, deadline_s)
                outcome = sending.result() if sending.done() else None
                if reply.done():
                    return reply.result()
                if isinstance(outcome, Refused):
                    raise SendError(outcome)
                raise NoReplyError(limit_ms, outcome)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    async def _first_of(
        self, reply: "asyncio.Future[Message]", sending: "asyncio.Task[Outcome]", deadline_s: float
    ) -> None:
        """Wait for the reply, for the refusal of the request, or for the deadline."""
        both: list[asyncio.Future[Any]] = [reply, sending]
        limit_s = max(0.0, deadline_s - _now_s())
        await asyncio.wait(both, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if sending.done() and not isinstance(sending.result(), Refused):
            await asyncio.wait([reply], timeout=max(0.0, deadline_s - _now_s()))

    async def _send_request(
        self, payload: Payload, queue: MessageQueue | None, select: Selector | None, deadline_s: float
    ) -> Outcome:
        """Send a request. The broker must know this client before it receives the reply."""
        with contextlib.suppress(RemotingError, NoRouteError):  # the send reports the same
            await self._route(payload.topic, deadline_s)
        await self._session.greet()
        (outcome,) = await self._send(payload, queue, select, round((deadline_s - _now_s()) * 1000))
        await self._session.greet()  # a broker that the send has found
        return outcome

    async def reply(
        self,
        request: ReceivedMessage,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Send the reply to a message that requests one, and wait until its requester confirmed it.

        The broker from which the request was read passes the reply on. `timeout_ms` limits the whole;
        without it, the limit is `send_timeout_ms`.

        Raises:
            ReplyError: the requester did not confirm the reply: it is gone or too slow, or the broker is.
            MessageError: the message requests no reply, or the body or a property is not allowed.
        """
        payload = self._payloads.single(reply_to(request, body, properties))
        queue = request.queue
        address = self._session.routes.address(queue.topic, queue.broker_name)
        if address is None:
            raise ReplyError(f"broker {queue.broker_name} has no master")
        command = self._request(payload, 0, code=RequestCode.SEND_REPLY_MESSAGE_V2)
        timeout_s = (timeout_ms or self._config.send_timeout_ms) / 1000
        try:
            answer = await self._session.remoting.invoke(address, command, timeout_s)
        except RemotingError as error:
            raise ReplyError(f"it is unknown whether the requester received the reply: {error}") from None
        if answer.code != ResponseCode.SUCCESS:
            raise ReplyError(f"{response_name(answer.code)}: {answer.remark or 'no remark'}")

    def _request(
        self, payload: Payload, queue_id: int, *, oneway: bool = False, code: RequestCode | None = None
    ) -> Command:
        config = self._config
        header = SendRequest(
            producer_group=config.group,
            topic=payload.topic,
            default_topic=config.default_topic,
            default_topic_queue_nums=config.default_topic_queues,
            queue_id=queue_id,
            sys_flag=payload.first.sys_flag,
            born_timestamp=payload.first.born_timestamp_ms,
            flag=payload.first.flag,
            properties=payload.properties,
            reconsume_times=payload.first.reconsume_times,
            unit_mode=False,
            max_reconsume_times=payload.reconsume_max,
            batch=payload.is_batch,
        )
        usual = RequestCode.SEND_BATCH_MESSAGE if payload.is_batch else RequestCode.SEND_MESSAGE_V2
        return new_request(code or usual, headers.write_send_v2(header), payload.body, oneway=oneway)

    # Queue and route.

    async def _target(
        self,
        topic: str,
        last_broker: str | None,
        asked: MessageQueue | None,
        select: Selector | None,
        deadline_s: float | None = None,
    ) -> MessageQueue:
        """Return the queue for the next attempt. Raises NoRouteError, RemotingError."""
        route = await self._route(topic, deadline_s)
        if asked is not None:
            return asked
        queues = self._writable_queues(topic, route)
        if not queues:
            self._doubt(topic)
            raise NoRouteError(f"topic {topic} has no writable queue")
        if select is not None:
            return select(queues)
        return self._choice.choose(queues, last_broker, self._transport.now_s())

    async def _route(self, topic: str, deadline_s: float | None) -> TopicRoute:
        """Return the route, which is requested if it is not known. Raises NoRouteError, RemotingError."""
        known = self._session.routes.known(topic)
        if known is not None:
            return known
        return await self._transport.run(self._requested_route(topic, deadline_s))

    async def _requested_route(self, topic: str, deadline_s: float | None) -> TopicRoute:
        try:
            async with asyncio.timeout_at(deadline_s):
                route = await self._session.routes.get(topic)
                if route is None:
                    template = await self._session.routes.get(self._config.default_topic)
                    route = template and self._as_if_created(template)
        except TimeoutError:
            raise NoRouteError(f"the route of {topic} was not received in time") from None
        return require(topic, route)

    def _master(self, topic: str, broker_name: str) -> Address:
        """Return the address of the broker's master. Without one, doubt the route and raise NoRouteError."""
        address = self._session.routes.address(topic, broker_name)
        if address is None:
            self._doubt(topic)
            raise NoRouteError(f"broker {broker_name} has no master")
        return address

    def _doubt(self, topic: str) -> None:
        """Report that the topic's route may be out of date, or the default topic's if the topic has none."""
        routes = self._session.routes
        doubted = topic if routes.known(topic) else self._config.default_topic
        self._transport.in_loop(routes.doubt, doubted)

    def _writable_queues(self, topic: str, route: TopicRoute) -> Sequence[MessageQueue]:
        known = self._queues.get(topic)
        if known is None or known[0] is not route:
            known = self._queues[topic] = (route, publish_queues(topic, route))
        return known[1]

    def _as_if_created(self, template: TopicRoute) -> TopicRoute:
        """Return the route that a topic will have once its first send makes the broker create it."""
        most = self._config.default_topic_queues
        queues = [
            QueueData(
                broker_name=data.broker_name,
                perm=data.perm,
                read_queue_nums=min(data.read_queue_nums, most),
                topic_sys_flag=data.topic_sys_flag,
                write_queue_nums=min(data.read_queue_nums, most),
            )
            for data in template.queue_datas
        ]
        return TopicRoute(broker_datas=template.broker_datas, queue_datas=queues)

    # Attempts.

    async def _send(
        self, payload: Payload, queue: MessageQueue | None, select: Selector | None, timeout_ms: int | None
    ) -> list[Outcome]:
        deadline_s = self._transport.now_s() + (timeout_ms or self._config.send_timeout_ms) / 1000
        attempts = 1 if queue is not None or select is not None else 1 + self._config.retries
        last_broker: str | None = None
        ends: list[_Ended] = []
        for attempt in range(1, attempts + 1):
            try:
                target = await self._target(payload.topic, last_broker, queue, select, deadline_s)
            except (RemotingError, NoRouteError) as error:
                ends.append(_Ended("NO_ROUTE", attempt - 1, str(error)))
                break
            last_broker = target.broker_name
            ends.append(await self._attempt(payload, target, attempt, deadline_s))
            is_unknown = ends[-1].status == _UNKNOWN and not self._config.retry_unknown
            if is_unknown or not ends[-1].may_retry or self._transport.now_s() >= deadline_s:
                break
        return _outcomes(payload, ends)

    async def _attempt(
        self, payload: Payload, queue: MessageQueue, attempt: int, deadline_s: float
    ) -> _Ended:
        try:
            address = self._master(queue.topic, queue.broker_name)
        except NoRouteError as error:
            return _Ended("NO_ROUTE", attempt, str(error), may_retry=True)
        self._emit(Kind.SEND, payload, queue, attempt)
        request = self._request(payload, queue.queue_id)
        began_s = self._transport.now_s()
        try:
            answer = await self._transport.invoke(address, request, max(0.0, deadline_s - began_s))
        except ConnectError as error:
            ended = _Ended(_NOT_CONNECTED, attempt, str(error), may_retry=True)
        except RemotingError as error:
            ended = _Ended(_UNKNOWN, attempt, str(error), may_retry=True)
        else:
            ended = self._judged(queue, attempt, answer)
            if self._traces is not None and ended.response is not None:
                took_s = self._transport.now_s() - began_s
                self._trace(self._traces, payload, ended, str(address), answer, took_s)
        if ended.status in _WRONG_BROKER:
            self._doubt(queue.topic)
        ended_s = self._transport.now_s()
        if ended.may_retry:
            self._choice.failed(queue.broker_name, ended_s)
        else:
            self._choice.answered(queue.broker_name, ended_s - began_s, ended_s)
        offset = ended.response.queue_offset if ended.response else None
        kind = Kind.SEND_FAIL if ended.response is None else Kind.SEND_ACK
        self._emit(kind, payload, ended.queue or queue, attempt, ended.status, offset)
        return ended

    def _trace(
        self,
        traces: TraceDispatcher,
        payload: Payload,
        ended: _Ended,
        store_host: str,
        answer: Command,
        took_s: float,
    ) -> None:
        """Report a stored message or batch, unless the broker has tracing off."""
        assert ended.response is not None
        if answer.fields.get("TRACE_ON") == "false" or not traces.traces(payload.topic):
            return
        properties = {} if payload.is_batch else payload.first.properties
        kind = MessageType.HALF if "TRAN_MSG" in properties else MessageType.NORMAL
        took_ms = round(took_s * 1000)
        record = Published(
            time_ms=now_ms(self._session.runtime.clock) - took_ms,
            region=answer.fields.get("MSG_REGION"),
            group=self._config.group,
            topic=payload.topic,
            message_ids=tuple(unique_key(message) for message in payload.messages),
            tag=properties.get(TAGS),
            keys=properties.get(KEYS),
            store_host=store_host,
            body_bytes=len(payload.body),
            took_ms=took_ms,
            message_type=MessageType.DELAYED if is_delayed(payload.first) else kind,
            offset_ids=ended.response.msg_id,
            ok=ended.status == "SEND_OK",
        )
        self._transport.in_loop(traces.add, [record])

    def _judged(self, queue: MessageQueue, attempt: int, answer: Command) -> _Ended:
        stored = STORED_STATUSES.get(answer.code)
        if stored is not None:
            try:
                response = headers.read(SendResponse, answer.fields)
            except HeaderError as error:
                return _Ended(_UNKNOWN, attempt, f"{stored}, but {error}")
            again = self._config.retry_unconfirmed and answer.code != ResponseCode.SUCCESS
            queue = replace(queue, queue_id=response.queue_id)
            return _Ended(stored, attempt, "", again, queue, response)
        name, remark = response_name(answer.code), answer.remark or ""
        if _is_access_refusal(answer.code, remark):
            return _Ended(ResponseCode.NO_PERMISSION.name, attempt, remark)
        if answer.code == ResponseCode.SYSTEM_ERROR:
            # Brokers also send this code when they failed halfway, so the record may be stored.
            return _Ended(_UNKNOWN, attempt, f"{name}: {remark}", may_retry=True)
        return _Ended(name, attempt, remark, is_retriable(answer.code))

    def _emit(
        self,
        kind: Kind,
        payload: Payload,
        queue: MessageQueue,
        attempt: int,
        status: str | None = None,
        queue_offset: int | None = None,
    ) -> None:
        if self._events is None:
            return
        for place, message in enumerate(payload.messages):
            self._events.emit(
                kind,
                msg_id=unique_key(message),
                topic=message.topic,
                queue_id=queue.queue_id,
                queue_offset=None if queue_offset is None or is_delayed(message) else queue_offset + place,
                group=self._config.group,
                client=self._session.client_id,
                status=status,
                attempt=attempt,
                keys=message.properties.get(KEYS),
                tags=message.properties.get(TAGS, "") if kind is Kind.SEND else None,
                born_ts=message.born_timestamp_us,
                attrs={"broker": queue.broker_name},
            )


def with_transport(producer: Producer, transport: Transport) -> Producer:
    """Return the producer with another transport. Both have the same queue choice and send to one trace.

    Each has its own message ids, so that they may run in different threads.
    """
    other = copy(producer)
    other._transport = transport
    other._payloads = _payload_builder(producer._session, producer._config)
    return other


def _payload_builder(session: Session, config: ProducerConfig) -> PayloadBuilder:
    return PayloadBuilder(session.runtime, config.body_bytes_max, config.compress_from_bytes)


def trace_dispatcher(session: Session, role: str, topic: str | None) -> TraceDispatcher | None:
    """Return what sends traces to a topic, in a producer group of their own; None without a topic.

    `role` is part of the group's name. The dispatcher stops with the session.

    Raises MessageError when it cannot be a topic's name.
    """
    if topic is None:
        return None
    if problem := name_problem(topic):
        raise MessageError(problem)
    producer = Producer(session, ProducerConfig(f"_INNER_TRACE_PRODUCER-{role}-1"))
    dispatcher = TraceDispatcher(topic, producer.send)
    session.at_stop(dispatcher.stop)
    return dispatcher


def _is_access_refusal(code: int, remark: str) -> bool:
    """Return whether the broker's access control refused the request before anything was stored.

    Brokers of 4.9 use the same response code for an internal error; the remark distinguishes the two. No
    other broker of the cluster would decide differently, so the send is not retried.
    """
    return code in (ResponseCode.SYSTEM_ERROR, ResponseCode.NO_PERMISSION) and bool(
        _ACCESS_REFUSAL.match(remark)
    )


def _outcomes(payload: Payload, ends: Sequence[_Ended]) -> list[Outcome]:
    """Combine all attempts into the outcome of each message.

    If any attempt stored the message, it is stored, whatever came later. A refusal does not make an earlier
    unknown attempt certain, so the outcome is then unknown.
    """
    attempts = ends[-1].attempt
    confirmed = [end for end in ends if end.status == "SEND_OK"]
    for end in confirmed or [end for end in ends if end.response]:
        assert end.response is not None
        assert end.queue is not None
        ids = end.response.msg_id.split(",")
        return [
            Sent(
                status=end.status,
                message_id=unique_key(message),
                queue=end.queue,
                queue_offset=end.response.queue_offset + place,
                offset_message_id=ids[place] if place < len(ids) else "",
                attempts=attempts,
                recall_handle=end.response.recall_handle,
            )
            for place, message in enumerate(payload.messages)
        ]
    doubts = [end for end in ends if end.status == _UNKNOWN]
    if doubts:
        return [Unknown(unique_key(message), doubts[-1].remark, attempts) for message in payload.messages]
    last = ends[-1]
    return [Refused(unique_key(message), last.status, last.remark, attempts) for message in payload.messages]


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _check(config: ProducerConfig) -> None:
    require_group(config.group)
    require_whole("send_timeout_ms", config.send_timeout_ms, 1)
    require_whole("retries", config.retries)
    require_whole("body_bytes_max", config.body_bytes_max, 1)
    require_whole("compress_from_bytes", config.compress_from_bytes)
    require_whole("default_topic_queues", config.default_topic_queues, 1)
    for name in ("retry_unconfirmed", "retry_unknown", "latency_fault_strategy"):
        require_kind(name, getattr(config, name), bool)
    require_topic(config.default_topic)

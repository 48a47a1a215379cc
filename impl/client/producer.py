"""Sends messages: picks a queue, tries again elsewhere, and says honestly what is known in the end."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from impl.client.model import (
    STORED_STATUSES,
    MessageError,
    MessageQueue,
    NoRouteError,
    Outcome,
    Refused,
    Sent,
    Unknown,
)
from impl.client.routes import publish_queues, require
from impl.client.session import Session
from impl.event_log import EventLog
from impl.message import KEYS, UNIQUE_KEY, Message, UniqueKeys, encode_properties
from impl.remoting import headers
from impl.remoting.bodies import QueueData, TopicRoute
from impl.remoting.channel import ConnectError, RemotingError
from impl.remoting.codes import RequestCode, ResponseCode, is_retriable, response_name
from impl.remoting.command import Command, new_request
from impl.remoting.headers import HeaderError, SendRequest, SendResponse
from impl.runtime.clock import now_ms
from spec.events import Kind


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    group: str = "mqproof_producer"
    send_timeout_ms: int = 3000
    """For all attempts of one send together."""
    retries: int = 2
    """Attempts after the first, each at another broker where there is one."""
    body_bytes_max: int = 4 << 20
    default_topic: str = "TBW102"
    default_topic_queues: int = 4
    """Queues asked for when a send creates its topic."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How one attempt ended."""

    outcome: Outcome
    may_retry: bool


class Producer:
    """A producer of one group. `send` may be called many times at once; answers come in any order."""

    def __init__(
        self, session: Session, config: ProducerConfig | None = None, events: EventLog | None = None
    ) -> None:
        self._session = session
        self._config = config or ProducerConfig()
        self._events = events
        self._keys = UniqueKeys(session.runtime.random, session.runtime.clock)
        self._turn = session.runtime.random.randrange(1 << 16)
        self._queues: dict[str, tuple[TopicRoute, list[MessageQueue]]] = {}
        session.join_as_producer(self._config.group)

    async def send(self, message: Message, queue: MessageQueue | None = None) -> Outcome:
        """Send one message and say what became of it.

        The producer chooses the queue and tries other brokers, unless `queue` is given: then there is one
        attempt, there. Cancelling a send leaves its outcome unknown.

        Raises:
            MessageError: the body is empty or too long, or topic or properties cannot be encoded.
        """
        message = self._prepared(message)
        deadline_s = _now_s() + self._config.send_timeout_ms / 1000
        attempts = 1 if queue is not None else 1 + self._config.retries
        doubt: Unknown | None = None
        last_broker: str | None = None
        outcome: Outcome
        for attempt in range(1, attempts + 1):
            try:
                target = await self._choose(message.topic, last_broker, queue)
            except (RemotingError, NoRouteError) as error:
                outcome = Refused(_key(message), "NO_ROUTE", str(error), attempt - 1)
                break
            last_broker = target.broker_name
            ended = await self._attempt(message, target, attempt, deadline_s)
            outcome = ended.outcome
            if isinstance(outcome, Unknown):
                doubt = outcome
            if not ended.may_retry or _now_s() >= deadline_s:
                break
        # A refusal after an attempt whose fate is unknown leaves the message's fate unknown.
        if doubt is not None and isinstance(outcome, Refused):
            return replace(doubt, attempts=outcome.attempts)
        return outcome

    async def send_oneway(self, message: Message) -> str:
        """Send without waiting for any answer; returns the message id.

        Raises:
            MessageError: as `send`. NoRouteError, RemotingError: nothing was sent.
        """
        message = self._prepared(message)
        queue = await self._choose(message.topic, None, None)
        address = self._session.routes.address(message.topic, queue.broker_name)
        if address is None:
            raise NoRouteError(f"broker {queue.broker_name} has no master")
        self._emit(Kind.SEND, message, queue, attempt=1)
        request = self._request(message, queue, oneway=True)
        await self._session.remoting.send_oneway(address, request)
        return _key(message)

    def _prepared(self, message: Message) -> Message:
        if not message.body:
            raise MessageError("the body is empty")
        if len(message.body) > self._config.body_bytes_max:
            most = self._config.body_bytes_max
            raise MessageError(f"the body has {len(message.body)} bytes, at most {most} are allowed")
        properties = dict(message.properties)
        properties.setdefault(UNIQUE_KEY, self._keys.take())
        properties.setdefault("WAIT", "true")
        try:
            message.topic.encode()
            encode_properties(properties).encode()
        except ValueError as error:
            raise MessageError(str(error)) from None
        born_ms = message.born_timestamp_ms or now_ms(self._session.runtime.clock)
        return replace(message, properties=properties, born_timestamp_ms=born_ms)

    async def _choose(self, topic: str, last_broker: str | None, asked: MessageQueue | None) -> MessageQueue:
        """The queue asked for; else the next in turn, of another broker than the last if there is another."""
        queues = await self._writable_queues(topic)
        if asked is not None:
            return asked
        if not queues:
            raise NoRouteError(f"topic {topic} has no writable queue")
        self._turn += 1
        others = [queue for queue in queues if queue.broker_name != last_broker] if last_broker else queues
        candidates = others or queues
        return candidates[self._turn % len(candidates)]

    async def _writable_queues(self, topic: str) -> Sequence[MessageQueue]:
        route = await self._session.routes.get(topic)
        if route is None:
            template = await self._session.routes.get(self._config.default_topic)
            route = template and self._as_if_created(template)
        route = require(topic, route)
        known = self._queues.get(topic)
        if known is None or known[0] is not route:
            known = self._queues[topic] = (route, publish_queues(topic, route))
        return known[1]

    def _as_if_created(self, template: TopicRoute) -> TopicRoute:
        """The route that a topic will have once our send has made its broker create it."""
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

    async def _attempt(
        self, message: Message, queue: MessageQueue, attempt: int, deadline_s: float
    ) -> _Attempt:
        address = self._session.routes.address(queue.topic, queue.broker_name)
        if address is None:
            refused = Refused(_key(message), "NO_ROUTE", f"broker {queue.broker_name} has no master", attempt)
            return _Attempt(refused, may_retry=True)
        self._emit(Kind.SEND, message, queue, attempt=attempt)
        request = self._request(message, queue)
        try:
            left_s = max(0.0, deadline_s - _now_s())
            answer = await self._session.remoting.invoke(address, request, left_s)
        except ConnectError as error:
            refused = Refused(_key(message), "NOT_CONNECTED", str(error), attempt)
            self._emit(Kind.SEND_FAIL, message, queue, attempt=attempt, status=refused.status)
            return _Attempt(refused, may_retry=True)
        except RemotingError as error:
            self._emit(Kind.SEND_FAIL, message, queue, attempt=attempt, status="unknown")
            return _Attempt(Unknown(_key(message), str(error), attempt), may_retry=True)
        return self._judge(message, queue, attempt, answer)

    def _judge(self, message: Message, queue: MessageQueue, attempt: int, answer: Command) -> _Attempt:
        key = _key(message)
        status = STORED_STATUSES.get(answer.code)
        if status is not None:
            try:
                header = headers.read(SendResponse, answer.fields)
            except HeaderError as error:
                self._emit(Kind.SEND_FAIL, message, queue, attempt, "unknown")
                return _Attempt(Unknown(key, f"{status}, but {error}", attempt), may_retry=False)
            if header.queue_id != queue.queue_id:
                queue = replace(queue, queue_id=header.queue_id)
            sent = Sent(status, key, queue, header.queue_offset, header.msg_id, attempt)
            self._emit(Kind.SEND_ACK, message, queue, attempt, status, header.queue_offset)
            return _Attempt(sent, may_retry=False)
        name, remark = response_name(answer.code), answer.remark or ""
        may_retry = is_retriable(answer.code)
        if answer.code == ResponseCode.SYSTEM_ERROR:
            # The broker answers so as well when it failed halfway: the record may be there.
            self._emit(Kind.SEND_FAIL, message, queue, attempt, "unknown")
            return _Attempt(Unknown(key, f"{name}: {remark}", attempt), may_retry)
        self._emit(Kind.SEND_FAIL, message, queue, attempt, name)
        return _Attempt(Refused(key, name, remark, attempt), may_retry)

    def _request(self, message: Message, queue: MessageQueue, *, oneway: bool = False) -> Command:
        header = SendRequest(
            producer_group=self._config.group,
            topic=message.topic,
            default_topic=self._config.default_topic,
            default_topic_queue_nums=self._config.default_topic_queues,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag,
            born_timestamp=message.born_timestamp_ms,
            flag=message.flag,
            properties=encode_properties(message.properties),
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            batch=False,
        )
        fields = headers.write_send_v2(header)
        return new_request(RequestCode.SEND_MESSAGE_V2, fields, message.body, oneway=oneway)

    def _emit(
        self,
        kind: Kind,
        message: Message,
        queue: MessageQueue,
        attempt: int,
        status: str | None = None,
        queue_offset: int | None = None,
    ) -> None:
        if self._events is not None:
            self._events.emit(
                kind,
                msg_id=_key(message),
                topic=message.topic,
                queue_id=queue.queue_id,
                queue_offset=queue_offset,
                group=self._config.group,
                client=self._session.client_id,
                status=status,
                attempt=attempt,
                keys=message.properties.get(KEYS),
                born_ts=message.born_timestamp_us,
                attrs={"broker": queue.broker_name},
            )


def _key(message: Message) -> str:
    return message.properties[UNIQUE_KEY]


def _now_s() -> float:
    return asyncio.get_running_loop().time()

"""Reads queues by offset: the application says from where, and how far it got."""

from collections.abc import Iterator
from typing import Final

from impl.client.compression import inflated
from impl.client.model import ClientError, MessageQueue, PullResult
from impl.client.routes import require, subscribe_queues
from impl.client.session import Session
from impl.event_log import EventLog
from impl.message import KEYS, TAGS, StoredMessage
from impl.remoting import headers
from impl.remoting.bodies import ConsumerData
from impl.remoting.channel import RemotingError
from impl.remoting.codes import RequestCode, ResponseCode, response_name
from impl.remoting.command import Command, new_request
from impl.remoting.headers import (
    PULL_HAS_SUBSCRIPTION,
    PULL_MAY_SUSPEND,
    HeaderError,
    OffsetResponse,
    PullRequest,
    PullResponse,
    QueryOffsetRequest,
    QueueRequest,
    SearchOffsetRequest,
    UpdateOffsetRequest,
)
from impl.store import record
from spec.events import Kind

_TIMEOUT_S: Final = 5.0
_HOLD_SLACK_S: Final = 10.0
"""How much longer than its hold a pull may take."""

_STATUSES: Final[dict[int, str]] = {
    ResponseCode.SUCCESS: "FOUND",
    ResponseCode.PULL_NOT_FOUND: "NO_NEW_MESSAGE",
    ResponseCode.PULL_RETRY_IMMEDIATELY: "NO_MATCHED_MESSAGE",
    ResponseCode.PULL_OFFSET_MOVED: "OFFSET_ILLEGAL",
}


class PullConsumer:
    """A member of a consumer group that decides for itself which queues it reads.

    Every method raises ClientError when the broker refuses, cannot be reached, or does not answer in time.
    """

    def __init__(self, session: Session, group: str, events: EventLog | None = None) -> None:
        self._session = session
        self._group = group
        self._events = events
        session.join_as_consumer(ConsumerData(group, consume_type="CONSUME_ACTIVELY"))

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The topic's readable queues, which this consumer is now expected to read.

        Raises NoRouteError when nobody knows the topic.
        """
        try:
            route = await self._session.routes.refresh(topic)
        except RemotingError as error:
            raise ClientError(f"queues of {topic}: {error}") from None
        queues = subscribe_queues(topic, require(topic, route))
        if self._events is not None:
            self._events.emit(
                Kind.REBALANCE,
                topic=topic,
                group=self._group,
                client=self._session.client_id,
                attrs={"queues": str(len(queues))},
            )
        return queues

    async def pull(
        self, queue: MessageQueue, offset: int, *, max_count: int = 32, tags: str = "*", hold_ms: int = 0
    ) -> PullResult:
        """Messages from `offset` on. With hold_ms, wait that long for the first one.

        `tags` is `TagA || TagB`, or `*` for all.
        """
        header = PullRequest(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=max_count,
            sys_flag=PULL_HAS_SUBSCRIPTION | (PULL_MAY_SUSPEND if hold_ms else 0),
            commit_offset=0,
            suspend_timeout_millis=hold_ms,
            sub_version=0,
            subscription=tags,
            expression_type="TAG",
        )
        fields = headers.write(header)
        timeout_s = hold_ms / 1000 + _HOLD_SLACK_S
        answer = await self._invoke(queue, RequestCode.PULL_MESSAGE, fields, timeout_s)
        status = _STATUSES.get(answer.code)
        if status is None:
            raise _refusal(queue, answer)
        try:
            response = headers.read(PullResponse, answer.fields)
            messages = tuple(_wanted(_messages(answer.body), tags))
        except ValueError as error:
            raise ClientError(f"{queue}: the answer to a pull makes no sense: {error}") from None
        self._report_delivery(queue, messages)
        return PullResult(
            status, response.next_begin_offset, response.min_offset, response.max_offset, messages
        )

    async def commit(self, queue: MessageQueue, offset: int, *, reset: bool = False) -> None:
        """Tell the broker that everything before `offset` is done; returns when it has noted that.

        `reset` says in the event log that the offset did not get there by consuming: it may go back.
        """
        header = UpdateOffsetRequest(self._group, queue.topic, queue.queue_id, offset)
        answer = await self._invoke(queue, RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header))
        if answer.code != ResponseCode.SUCCESS:
            raise _refusal(queue, answer)
        if self._events is not None:
            self._events.emit(
                Kind.OFFSET_COMMIT,
                topic=queue.topic,
                queue_id=queue.queue_id,
                queue_offset=offset,
                group=self._group,
                client=self._session.client_id,
                attrs={"broker": queue.broker_name, **({"reset": "true"} if reset else {})},
            )

    async def committed(self, queue: MessageQueue) -> int | None:
        """The offset the group committed; None when there is none and the queue's beginning is gone.

        A group that never committed in a queue that still has its first message is at 0.
        """
        header = QueryOffsetRequest(self._group, queue.topic, queue.queue_id)
        answer = await self._invoke(queue, RequestCode.QUERY_CONSUMER_OFFSET, headers.write(header))
        return None if answer.code == ResponseCode.QUERY_NOT_FOUND else _offset(queue, answer)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first offset that can be read."""
        header = QueueRequest(queue.topic, queue.queue_id)
        return _offset(queue, await self._invoke(queue, RequestCode.GET_MIN_OFFSET, headers.write(header)))

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the last offset."""
        header = QueueRequest(queue.topic, queue.queue_id)
        return _offset(queue, await self._invoke(queue, RequestCode.GET_MAX_OFFSET, headers.write(header)))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the message stored nearest to that time."""
        header = SearchOffsetRequest(queue.topic, queue.queue_id, timestamp_ms)
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        return _offset(queue, await self._invoke(queue, code, headers.write(header)))

    async def _invoke(
        self, queue: MessageQueue, code: RequestCode, fields: dict[str, str], timeout_s: float = _TIMEOUT_S
    ) -> Command:
        try:
            await self._session.routes.get(queue.topic)
            address = self._session.routes.address(queue.topic, queue.broker_name, master_only=False)
            if address is None:
                raise ClientError(f"{queue}: no broker of that name is known")
            return await self._session.remoting.invoke(address, new_request(code, fields), timeout_s)
        except RemotingError as error:
            raise ClientError(f"{queue}: {error}") from None

    def _report_delivery(self, queue: MessageQueue, messages: tuple[StoredMessage, ...]) -> None:
        if self._events is None:
            return
        for stored in messages:
            message = stored.message
            self._events.emit(
                Kind.DELIVER,
                msg_id=stored.message_id,
                topic=message.topic,
                queue_id=message.queue_id,
                queue_offset=stored.queue_offset,
                commit_offset=stored.commit_offset,
                group=self._group,
                client=self._session.client_id,
                keys=message.properties.get(KEYS),
                born_ts=message.born_timestamp_us,
                attrs={"broker": queue.broker_name},
            )


def _messages(body: bytes) -> Iterator[StoredMessage]:
    """The records of a pull's body, one behind the other."""
    at = 0
    while at < len(body):
        size, _ = record.peek(body[at : at + record.FILLER_BYTES])
        if not record.SIZE_MIN <= size <= len(body) - at:
            raise ValueError(f"a record of {size} bytes in a body with {len(body) - at} left")
        yield inflated(record.decode(body[at : at + size]))
        at += size


def _wanted(messages: Iterator[StoredMessage], expression: str) -> Iterator[StoredMessage]:
    """The broker compares hash codes only; here the tags themselves count."""
    tags = {tag.strip() for tag in expression.split("||")} - {""}
    for stored in messages:
        if not tags or tags == {"*"} or stored.message.properties.get(TAGS) in tags:
            yield stored


def _offset(queue: MessageQueue, answer: Command) -> int:
    if answer.code != ResponseCode.SUCCESS:
        raise _refusal(queue, answer)
    try:
        return headers.read(OffsetResponse, answer.fields).offset
    except HeaderError as error:
        raise ClientError(f"{queue}: {error}") from None


def _refusal(queue: MessageQueue, answer: Command) -> ClientError:
    return ClientError(f"{queue}: {response_name(answer.code)}: {answer.remark or 'no remark'}")

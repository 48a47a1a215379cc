"""The requests that a member of a consumer group sends to brokers, each as one method.

See docs/protocol.md, "Pulling", "Offset requests", "Queue locks" and "Retries". Every call raises ClientError
when the broker refuses, cannot be reached, does not answer in time, or answers nonsense.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from mqproof.impl.client.model import ClientError, MessageQueue, PullResult, ReceivedMessage, RefusalError
from mqproof.impl.client.records import read_records
from mqproof.impl.client.session import Session
from mqproof.impl.remoting import bodies, headers, java_json
from mqproof.impl.remoting.bodies import ConsumerIds, LockedQueues, QueueLocks
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    PULL_HAS_SUBSCRIPTION,
    PULL_MAY_SUSPEND,
    ConsumerGroupRequest,
    HeaderError,
    OffsetResponse,
    PullRequest,
    PullResponse,
    QueryOffsetRequest,
    QueueRequest,
    SearchOffsetRequest,
    SendBackRequest,
    UpdateOffsetRequest,
)
from mqproof.impl.remoting.message import TAGS, StoredMessage
from mqproof.impl.runtime.network import Address

_TIMEOUT_S: Final = 5.0
_LOCK_TIMEOUT_S: Final = 1.0
_HOLD_SLACK_S: Final = 10.0
"""How much longer than its hold a pull may take."""

_STATUSES: Final[dict[int, str]] = {
    ResponseCode.SUCCESS: "FOUND",
    ResponseCode.PULL_NOT_FOUND: "NO_NEW_MESSAGE",
    ResponseCode.PULL_RETRY_IMMEDIATELY: "NO_MATCHED_MESSAGE",
    ResponseCode.PULL_OFFSET_MOVED: "OFFSET_ILLEGAL",
}


class GroupRequests:
    """The requests of one client for one group. Remembers the replica to pull each queue from."""

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self.group = group
        self._suggested: dict[MessageQueue, int] = {}

    # Reading.

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_count: int = 32,
        tags: str = "*",
        hold_ms: int = 0,
    ) -> PullResult:
        """Messages from `offset` on whose tag is wanted; with hold_ms, wait that long for the first one."""
        address = await self._replica(queue)
        header = PullRequest(
            consumer_group=self.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=max_count,
            # The subscription always comes along: the broker need not have heard our heartbeat yet, nor
            # agree with it after another member's.
            sys_flag=PULL_HAS_SUBSCRIPTION | (PULL_MAY_SUSPEND if hold_ms else 0),
            commit_offset=0,
            suspend_timeout_millis=hold_ms,
            sub_version=0,
            subscription=tags,
            expression_type="TAG",
        )
        timeout_s = hold_ms / 1000 + _HOLD_SLACK_S
        request = new_request(RequestCode.PULL_MESSAGE, headers.write(header))
        answer = await self._ask(queue.topic, str(queue), address, request, timeout_s)
        status = _STATUSES.get(answer.code)
        if status is None:
            raise _refusal(str(queue), answer)
        try:
            response = headers.read(PullResponse, answer.fields)
            messages = tuple(_wanted(read_records(answer.body), tags))
        except ValueError as error:
            raise ClientError(f"{queue}: the answer to a pull makes no sense: {error}") from None
        self._suggested[queue] = response.suggest_which_broker_id
        return PullResult(
            status, response.next_begin_offset, response.min_offset, response.max_offset, messages
        )

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first offset that can be read."""
        header = QueueRequest(queue.topic, queue.queue_id)
        return _offset(queue, await self._of_queue(queue, RequestCode.GET_MIN_OFFSET, header))

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the last offset."""
        header = QueueRequest(queue.topic, queue.queue_id)
        return _offset(queue, await self._of_queue(queue, RequestCode.GET_MAX_OFFSET, header))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the message stored nearest to that time."""
        header = SearchOffsetRequest(queue.topic, queue.queue_id, timestamp_ms)
        return _offset(queue, await self._of_queue(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header))

    # The group's offsets.

    async def committed(self, queue: MessageQueue) -> int | None:
        """The offset the group committed; None when there is none and the queue's beginning is gone.

        Only the master's word that there is none counts as none. Any other failure raises: who took "busy"
        for "none" would begin behind messages that nobody has seen. Without a master a slave's offset will
        do: it may be too low, which repeats messages; but what it never heard of may be there all the same.
        """
        address = await self._any_replica(queue)
        is_master = address == self._session.routes.address(queue.topic, queue.broker_name)
        header = QueryOffsetRequest(self.group, queue.topic, queue.queue_id)
        request = new_request(RequestCode.QUERY_CONSUMER_OFFSET, headers.write(header))
        answer = await self._ask(queue.topic, str(queue), address, request)
        if answer.code != ResponseCode.QUERY_NOT_FOUND:
            return _offset(queue, answer)
        if not is_master:
            raise ClientError(f"{queue}: a slave has no offset, its master may have one")
        return None

    async def commit(self, queue: MessageQueue, offset: int, *, only_forward: bool = False) -> None:
        """Tell the master that everything before `offset` is done; returns when it has noted that. No slave
        is told: what the master says next may be older, and the offset would go back. With `only_forward` a
        master of ours that knows of more keeps that."""
        address = await self._master(queue)
        header = UpdateOffsetRequest(
            self.group, queue.topic, queue.queue_id, offset, only_forward=only_forward or None
        )
        request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header))
        _require(str(queue), await self._ask(queue.topic, str(queue), address, request))

    async def send_back(self, message: ReceivedMessage, delay_level: int, reconsume_max: int) -> None:
        """Have the broker deliver the message again later: level 0 leaves the wait to it, -1 is the dead
        letters at once. Returns when the copy is stored."""
        header = SendBackRequest(
            offset=message.stored.commit_offset,
            group=self.group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=message.topic,
            unit_mode=False,
            max_reconsume_times=reconsume_max,
        )
        code = RequestCode.CONSUMER_SEND_MSG_BACK
        _require(str(message.queue), await self._of_queue(message.queue, code, header))

    # Members and locks.

    async def members(self, topic: str) -> list[str]:
        """The client ids of the group, as one broker of the topic knows them."""
        await self._route(topic)
        brokers = self._session.routes.brokers_of(topic)
        if not brokers:
            raise ClientError(f"{topic}: no broker is known")
        address = self._session.runtime.random.choice(brokers)
        fields = headers.write(ConsumerGroupRequest(self.group))
        request = new_request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields)
        answer = _require(topic, await self._ask(topic, topic, address, request))
        try:
            return java_json.read(ConsumerIds, answer.body).consumer_id_list
        except ValueError as error:
            raise ClientError(f"{topic}: the list of consumers makes no sense: {error}") from None

    async def lock(self, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """Lock queues of one broker name, or renew the locks; returns which of them are ours now. Its master
        alone knows who holds what."""
        wanted = list(queues)
        request = new_request(RequestCode.LOCK_BATCH_MQ, body=self._locks(wanted))
        address = await self._master(wanted[0])
        what = f"locks at {wanted[0].broker_name}"
        answer = _require(what, await self._ask(wanted[0].topic, what, address, request, _LOCK_TIMEOUT_S))
        try:
            locked = java_json.read(LockedQueues, answer.body).lock_ok_mq_set
        except ValueError as error:
            raise ClientError(f"{what}: the answer makes no sense: {error}") from None
        return {MessageQueue(each.topic, each.broker_name, each.queue_id) for each in locked} & set(wanted)

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Give up locks at one broker name."""
        wanted = list(queues)
        request = new_request(RequestCode.UNLOCK_BATCH_MQ, body=self._locks(wanted))
        address = await self._master(wanted[0])
        what = f"locks at {wanted[0].broker_name}"
        _require(what, await self._ask(wanted[0].topic, what, address, request, _LOCK_TIMEOUT_S))

    def _locks(self, queues: Iterable[MessageQueue]) -> bytes:
        named = [bodies.MessageQueue(each.broker_name, each.queue_id, each.topic) for each in queues]
        return java_json.write(QueueLocks(self._session.client_id, self.group, named), standard=True)

    # Where to.

    async def _of_queue(self, queue: MessageQueue, code: RequestCode, header: headers.Header) -> Command:
        address = await self._any_replica(queue)
        return await self._ask(queue.topic, str(queue), address, new_request(code, headers.write(header)))

    async def _ask(
        self, topic: str, what: str, address: Address, request: Command, timeout_s: float = _TIMEOUT_S
    ) -> Command:
        routes = self._session.routes
        try:
            answer = await self._session.remoting.invoke(address, request, timeout_s)
        except RemotingError as error:
            routes.doubt(topic)
            raise ClientError(f"{what}: {error}") from None
        if answer.code == ResponseCode.SERVICE_NOT_AVAILABLE:
            routes.doubt(topic)
        return answer

    async def _route(self, topic: str) -> None:
        try:
            await self._session.routes.get(topic)
        except RemotingError as error:
            raise ClientError(f"{topic}: {error}") from None

    async def _master(self, queue: MessageQueue) -> Address:
        """The queue's master, and nobody in its place."""
        return await self._broker(queue, master_only=True)

    async def _any_replica(self, queue: MessageQueue) -> Address:
        """The queue's master; where that is gone, any replica."""
        return await self._broker(queue, master_only=False)

    async def _broker(self, queue: MessageQueue, *, master_only: bool) -> Address:
        await self._route(queue.topic)
        routes = self._session.routes
        address = routes.address(queue.topic, queue.broker_name, master_only=master_only)
        if address is None:
            routes.doubt(queue.topic)
            raise ClientError(f"{queue}: no {'master' if master_only else 'broker'} of that name is known")
        return address

    async def _replica(self, queue: MessageQueue) -> Address:
        """Where the last answer said to pull; where that is gone the next slave, else anybody."""
        await self._route(queue.topic)
        replicas = self._session.routes.replicas(queue.topic, queue.broker_name)
        if not replicas:
            return await self._any_replica(queue)
        wanted = self._suggested.get(queue, 0)
        candidates = (wanted, wanted + 1) if wanted else (wanted,)
        return replicas[next((each for each in candidates if each in replicas), min(replicas))]


def _wanted(messages: Iterator[StoredMessage], expression: str) -> Iterator[StoredMessage]:
    """The broker compares hash codes only; here the tags themselves count."""
    tags = {tag.strip() for tag in expression.split("||")} - {""}
    for stored in messages:
        if not tags or tags == {"*"} or stored.message.properties.get(TAGS) in tags:
            yield stored


def _require(what: str, answer: Command) -> Command:
    if answer.code != ResponseCode.SUCCESS:
        raise _refusal(what, answer)
    return answer


def _offset(queue: MessageQueue, answer: Command) -> int:
    _require(str(queue), answer)
    try:
        return headers.read(OffsetResponse, answer.fields).offset
    except HeaderError as error:
        raise ClientError(f"{queue}: {error}") from None


def _refusal(what: str, answer: Command) -> RefusalError:
    remark = f"{what}: {response_name(answer.code)}: {answer.remark or 'no remark'}"
    return RefusalError(remark, answer.code)

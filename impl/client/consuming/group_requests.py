"""The requests that a member of a consumer group sends to brokers, one method each.

See docs/reference/protocol/pulling.md, "Pull requests"; docs/reference/protocol/offsets.md, "Offset
requests"; docs/reference/protocol/groups.md, "Queue locks"; docs/reference/protocol/retries-and-delays.md,
"Retries". Every call raises ClientError when the broker refuses the request, cannot be reached, does not
respond in time, or sends a malformed response.
"""

from collections.abc import Callable, Iterable
from typing import Final

from mqproof.impl.client.connection.records import AnswerReader
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.message_selector import TAG, MessageSelector, as_selector
from mqproof.impl.client.model import ClientError, MessageQueue, PullResult, ReceivedMessage, RefusalError
from mqproof.impl.filtering.function_names import function_name
from mqproof.impl.remoting import bodies, headers, java_json
from mqproof.impl.remoting.bodies import ClientCheck, ConsumerIds, LockedQueues, QueueLocks, Subscription
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    PULL_CLASS_FILTER,
    PULL_HAS_SUBSCRIPTION,
    PULL_MAY_SUSPEND,
    ConsumerGroupRequest,
    HeaderError,
    OffsetResponse,
    PullRequest,
    PullResponse,
    QueryOffsetRequest,
    QueueRequest,
    RegisterFunctionRequest,
    SearchOffsetRequest,
    SendBackRequest,
    UpdateOffsetRequest,
)
from mqproof.impl.remoting.message import TAGS, StoredMessage
from mqproof.impl.runtime.network import Address

_TIMEOUT_S: Final = 5.0
_LOCK_TIMEOUT_S: Final = 1.0
_HOLD_SLACK_S: Final = 10.0
"""How much longer than its hold time a pull may take."""

_STATUSES: Final[dict[int, str]] = {
    ResponseCode.SUCCESS: "FOUND",
    ResponseCode.PULL_NOT_FOUND: "NO_NEW_MESSAGE",
    ResponseCode.PULL_RETRY_IMMEDIATELY: "NO_MATCHED_MESSAGE",
    ResponseCode.PULL_OFFSET_MOVED: "OFFSET_ILLEGAL",
}


class GroupRequests:
    """The requests of one client for one group. Remembers which replica to pull each queue from."""

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self.group = group
        self._suggested: dict[MessageQueue, int] = {}
        self._reader = AnswerReader()

    async def require_sole(self, topics: Iterable[str]) -> None:
        """Refuse a group in which another process has this client id (`Session.require_sole`)."""
        await self._session.require_sole(self.group, topics)

    # Reading.

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_count: int = 32,
        tags: str | MessageSelector = "*",
        hold_ms: int = 0,
        room: Callable[[], int] | None = None,
    ) -> PullResult:
        """Return the messages that `tags` selects, starting at `offset`.

        The broker may wait `hold_ms` for the first one. The bodies of several messages have at most `room()`
        bytes when they are decompressed; the next offset is then that of the first message left out. Raises
        ValueError for a text that is not a tag expression.
        """
        selector = as_selector(tags)
        address = await self._replica(queue)
        flags = PULL_HAS_SUBSCRIPTION | (PULL_MAY_SUSPEND if hold_ms else 0)
        if selector.module is not None:
            address, flags = self._filter_server(queue, address), flags | PULL_CLASS_FILTER
        header = PullRequest(
            consumer_group=self.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=max_count,
            # Always include the subscription: the broker may not have received our heartbeat yet, or may have
            # another member's subscription.
            sys_flag=flags,
            commit_offset=0,
            suspend_timeout_millis=hold_ms,
            sub_version=0,
            subscription=selector.expression,
            expression_type=selector.expression_type,
        )
        timeout_s = hold_ms / 1000 + _HOLD_SLACK_S
        fields = headers.write(header)
        request = new_request(RequestCode.PULL_MESSAGE, fields)
        answer = await self._ask(queue.topic, str(queue), address, request, timeout_s)
        if answer.code == ResponseCode.FILTER_DATA_NOT_EXIST and selector.module is not None:
            await self._upload(queue, address, selector.module)
            request = new_request(RequestCode.PULL_MESSAGE, fields)
            answer = await self._ask(queue.topic, str(queue), address, request, timeout_s)
        status = _STATUSES.get(answer.code)
        if status is None:
            raise _refusal(str(queue), answer)
        try:
            response = headers.read(PullResponse, answer.fields)
            messages, left_out = await self._reader.read(answer.body, _filter(selector), room)
        except ValueError as error:
            raise ClientError(f"{queue}: the answer to a pull is invalid: {error}") from None
        self._suggested[queue] = response.suggest_which_broker_id
        next_offset = response.next_begin_offset if left_out is None else left_out
        return PullResult(status, next_offset, response.min_offset, response.max_offset, messages)

    async def _upload(self, queue: MessageQueue, filter_server: Address, module: bytes) -> None:
        header = RegisterFunctionRequest(self.group, queue.topic, function_name(module))
        code = RequestCode.REGISTER_MESSAGE_FILTER_CLASS
        request = new_request(code, headers.write(header), module)
        what = f"{queue}: upload of the function"
        _require(what, await self._ask(queue.topic, what, filter_server, request))

    def _filter_server(self, queue: MessageQueue, broker: Address) -> Address:
        """Return a filter server of the broker. Raises ClientError when there is none."""
        known = self._session.routes.filter_servers(queue.topic, broker)
        if not known:
            self._session.routes.doubt(queue.topic)
            raise ClientError(f"{queue}: broker {broker} has no filter server to run the function")
        return self._session.runtime.random.choice(known)

    async def check(self, subscription: Subscription) -> None:
        """Ask one broker of the topic whether it accepts the subscription.

        Raises:
            RefusalError: it does not. ClientError: no broker of the topic answers.
        """
        topic = subscription.topic
        await self._route(topic)
        brokers = self._session.routes.brokers_of(topic)
        if not brokers:
            raise ClientError(f"{topic}: no broker is known")
        body = java_json.write(ClientCheck(self._session.client_id, self.group, subscription), standard=True)
        request = new_request(RequestCode.CHECK_CLIENT_CONFIG, body=body)
        address = self._session.runtime.random.choice(brokers)
        _require(f"subscription to {topic}", await self._ask(topic, topic, address, request))

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the first offset that can be read."""
        header = QueueRequest(queue.topic, queue.queue_id)
        return _offset(queue, await self._of_queue(queue, RequestCode.GET_MIN_OFFSET, header))

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the end offset: one more than the last offset."""
        header = QueueRequest(queue.topic, queue.queue_id)
        return _offset(queue, await self._of_queue(queue, RequestCode.GET_MAX_OFFSET, header))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the message whose store time is nearest to the timestamp."""
        header = SearchOffsetRequest(queue.topic, queue.queue_id, timestamp_ms)
        return _offset(queue, await self._of_queue(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header))

    # The group's offsets.

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's committed offset, or None if it has none and the start of the queue is deleted.

        Only a response of the master counts as "none". Any other failure raises ClientError: a consumer that
        took "busy" for "none" would start behind messages that the group has not consumed. Without a master,
        a slave's offset is used. It may be too low, which only repeats messages. A slave without an offset
        proves nothing, because the master may have one.
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
        """Report to the master that every message before `offset` is consumed, and wait for its confirmation.

        Slaves do not receive the commit. If they did, the master's next, older value would move the offset
        back. With `only_forward`, an mqproof master that already has a higher offset keeps it.
        """
        address = await self._master(queue)
        header = UpdateOffsetRequest(
            self.group, queue.topic, queue.queue_id, offset, only_forward=only_forward or None
        )
        request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header))
        _require(str(queue), await self._ask(queue.topic, str(queue), address, request))

    async def send_back(self, message: ReceivedMessage, delay_level: int, reconsume_max: int) -> None:
        """Request that the broker deliver the message again later, and wait until it has stored the copy.

        Delay level 0 lets the broker choose the delay; -1 moves the message to the dead letter queue at once.
        """
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
        """Return the client ids of the group's members, as one broker of the topic reports them.

        The broker is chosen at random.
        """
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
            raise ClientError(f"{topic}: the list of consumers is invalid: {error}") from None

    async def lock(self, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """Lock queues of one broker name, or renew the locks.

        Returns the queues that this client has locked now.

        The request goes to the master, because only the master keeps the locks.
        """
        wanted = list(queues)
        request = new_request(RequestCode.LOCK_BATCH_MQ, body=self._locks(wanted))
        address = await self._master(wanted[0])
        what = f"locks at {wanted[0].broker_name}"
        answer = _require(what, await self._ask(wanted[0].topic, what, address, request, _LOCK_TIMEOUT_S))
        try:
            locked = java_json.read(LockedQueues, answer.body).lock_ok_mq_set
        except ValueError as error:
            raise ClientError(f"{what}: the answer is invalid: {error}") from None
        return {MessageQueue(each.topic, each.broker_name, each.queue_id) for each in locked} & set(wanted)

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Release locks on queues of one broker name."""
        wanted = list(queues)
        request = new_request(RequestCode.UNLOCK_BATCH_MQ, body=self._locks(wanted))
        address = await self._master(wanted[0])
        what = f"locks at {wanted[0].broker_name}"
        _require(what, await self._ask(wanted[0].topic, what, address, request, _LOCK_TIMEOUT_S))

    def _locks(self, queues: Iterable[MessageQueue]) -> bytes:
        named = [bodies.MessageQueue(each.broker_name, each.queue_id, each.topic) for each in queues]
        return java_json.write(QueueLocks(self._session.client_id, self.group, named), standard=True)

    # Brokers and routes.

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
        """Return the address of the queue's master. Never falls back to a slave."""
        return await self._broker(queue, master_only=True)

    async def _any_replica(self, queue: MessageQueue) -> Address:
        """Return the address of the queue's master, or of any replica if there is no master."""
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
        """Return the replica that the last response suggested.

        If it is gone, returns the slave with the next id, then the replica with the lowest id, then any
        replica.
        """
        await self._route(queue.topic)
        replicas = self._session.routes.replicas(queue.topic, queue.broker_name)
        if not replicas:
            return await self._any_replica(queue)
        wanted = self._suggested.get(queue, 0)
        candidates = (wanted, wanted + 1) if wanted else (wanted,)
        return replicas[next((each for each in candidates if each in replicas), min(replicas))]


def _filter(selector: MessageSelector) -> Callable[[StoredMessage], bool]:
    """Return a filter by the tags themselves, because the broker compares only their hash codes."""
    tags = {tag.strip() for tag in selector.expression.split("||")} - {""}
    if selector.expression_type != TAG or not tags or tags == {"*"}:
        return lambda _: True
    return lambda stored: stored.message.properties.get(TAGS) in tags


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

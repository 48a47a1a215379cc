"""Our client as used by adapters, with the answers of conformance/suites/flush/target.py."""

from collections.abc import Awaitable

from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.faults.controls import Place
from mqproof.conformance.suites.flush.target import Outcome, Pulled, PulledMessage, PullStatus, Sent
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, PullResult, Refused
from mqproof.impl.client.model import Sent as Stored
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.message import UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime

TEMPLATE_TOPIC = "TBW102"
"""The topic of every broker that creates topics automatically; its route lists these brokers."""

_STATUSES = {"FOUND": PullStatus.FOUND, "OFFSET_ILLEGAL": PullStatus.OFFSET_MOVED}


class Client:
    """One producer and one consumer of one topic. Create it on a running event loop."""

    def __init__(self, name_server: Address, runtime: Runtime, topic: str, group: str) -> None:
        self._name_server = name_server
        self._session = Session([name_server], runtime)
        self._producer = Producer(self._session, ProducerConfig(group=f"{group}_producer"))
        self._consumer = PullConsumer(self._session, group)
        self._topic = topic
        self._broker = ""

    async def start(self) -> None:
        """Find the broker. Raises TargetError if there is none."""
        try:
            route = await self._session.routes.refresh(TEMPLATE_TOPIC)
        except RemotingError as error:
            raise TargetError(f"name server {self._name_server}: {error}") from None
        brokers = [data.broker_name for data in route.broker_datas if 0 in data.broker_addrs] if route else []
        if not brokers:
            raise TargetError(
                f"name server {self._name_server} knows no master that creates topics automatically"
                f" (no route of {TEMPLATE_TOPIC}): set autoCreateTopicEnable on a broker"
            )
        self._broker = self._broker or min(brokers)
        if self._broker not in brokers:
            raise TargetError(f"name server {self._name_server} does not know {self._broker} any more")
        data = (
            next(data for data in route.broker_datas if data.broker_name == self._broker) if route else None
        )
        assert data is not None
        self.place = Place(self._broker, data.broker_addrs[0], str(self._name_server))

    async def stop(self) -> None:
        await self._session.stop()

    async def serves(self) -> bool:
        """Return whether the broker is known and answers."""
        try:
            await self.start()
            await self.max_offset(0)
        except TargetError:
            return False
        return True

    async def send(self, queue_id: int, msg_id: str, body: bytes, *, timeout_ms: int | None = None) -> Sent:
        message = Message(topic=self._topic, body=body, properties={UNIQUE_KEY: msg_id}, queue_id=queue_id)
        outcome = await self._producer.send(message, self._queue(queue_id), timeout_ms=timeout_ms)
        if isinstance(outcome, Stored):
            return Sent(Outcome.OK, outcome.status, outcome.queue_offset)
        if isinstance(outcome, Refused):
            return Sent(Outcome.FAILED, outcome.status)
        answered = outcome.remark.startswith("SYSTEM_ERROR")
        return Sent(Outcome.INDETERMINATE, outcome.remark, under_way=not answered)

    async def pull(self, queue_id: int, offset: int, max_count: int) -> Pulled:
        try:
            result = await self._consumer.pull(self._queue(queue_id), offset, max_count=max_count)
        except NoRouteError as error:
            raise TargetError(str(error)) from None
        except ClientError as error:
            if "TOPIC_NOT_EXIST" in str(error):  # no message was sent yet: an empty queue
                return Pulled(PullStatus.OFFSET_MOVED if offset else PullStatus.NO_NEW, (), 0, 0, 0)
            if "is invalid" in str(error):
                unreadable = PulledMessage("", b"", "", -1, -1)
                return Pulled(PullStatus.FOUND, (unreadable,), offset + 1, 0, offset + 1)
            raise TargetError(str(error)) from None
        return _pulled(result)

    async def commit(self, queue_id: int, offset: int) -> bool:
        try:
            await self._consumer.commit(self._queue(queue_id), offset)
        except ClientError:
            return False
        return True

    async def committed(self, queue_id: int) -> int:
        try:
            return await self._consumer.committed(self._queue(queue_id)) or 0
        except ClientError as error:
            raise TargetError(str(error)) from None

    async def min_offset(self, queue_id: int) -> int:
        return await self._offset(self._consumer.min_offset(self._queue(queue_id)))

    async def max_offset(self, queue_id: int) -> int:
        return await self._offset(self._consumer.max_offset(self._queue(queue_id)))

    async def _offset(self, query: Awaitable[int]) -> int:
        try:
            return await query
        except ClientError as error:
            if "TOPIC_NOT_EXIST" in str(error):
                return 0
            raise TargetError(str(error)) from None

    def _queue(self, queue_id: int) -> MessageQueue:
        return MessageQueue(self._topic, self._broker, queue_id)


def _pulled(result: PullResult) -> Pulled:
    # A status that finds no messages and does not move the consumer counts as "no new messages".
    status = _STATUSES.get(result.status, PullStatus.NO_NEW)
    messages = tuple(map(_message, result.messages))
    return Pulled(status, messages, result.next_offset, result.min_offset, result.max_offset)


def _message(stored: StoredMessage) -> PulledMessage:
    message = stored.message
    return PulledMessage(
        message.properties.get(UNIQUE_KEY, ""),
        message.body,
        message.topic,
        message.queue_id,
        stored.queue_offset,
        stored.store_timestamp_ms,
    )

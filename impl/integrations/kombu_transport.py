"""A transport of kombu, so that Celery keeps its tasks in topics of RocketMQ.

    register_kombu()
    app = Celery("shop", broker="rocketmq://127.0.0.1:9876")

Each queue of kombu is a topic, which a group of the same name consumes. A message is consumed when it is
acknowledged. Until then it belongs to its worker, and a worker that dies loses it to another one: delivery is
at least once. `reject(requeue=True)` delivers again after 10 s, and later with each further time.

| transport option | default | |
|---|---|---|
| name_servers | the URL | HOST:PORT, several separated by `;` |
| topic_prefix | kombu_ | begins the name of every topic and group |
| queues | 8 | queues of a topic that is created; at most this many workers share its tasks |
| create_topics | true | create a topic that is missing, which requires the rights of an administrator |
| visibility_timeout | 900 | seconds after which an unacknowledged message is delivered again |
| unacked_max | 1000 | unacknowledged messages that a worker holds of a queue |
| tls | | path of a tls.properties |
| polling_interval | 0.02 | seconds between two looks for messages that arrived |

The URL's user and password are an account of the cluster. Fanout and topic exchanges, priorities and
exclusive queues are refused, so remote control, events and the result backend `rpc://` do not work.
"""

import asyncio
import logging
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from queue import Empty, SimpleQueue
from typing import Any, Final
from uuid import uuid4

import kombu.transport
import msgspec
from kombu.exceptions import ChannelError
from kombu.transport import virtual

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.integrations.cluster_site import ClusterSite, ensure_topic, move_members
from mqproof.impl.remoting.signing import Credentials

SCHEME: Final = "rocketmq"

_log: Final = logging.getLogger(__name__)

_Payload = dict[str, Any]
_OF_KOMBU: Final = {"polling_interval", "max_retries", "interval_start", "interval_step", "interval_max"}
_STOP_MS: Final = 500
"""How long the end of a consumer waits for the messages that were acknowledged just before."""


def register_kombu() -> None:
    """Let kombu and Celery know URLs that begin with `rocketmq://`."""
    kombu.transport.TRANSPORT_ALIASES[SCHEME] = f"{__name__}:KombuTransport"


class KombuOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The transport options; the module's docstring explains them."""

    name_servers: str | None = None
    topic_prefix: str = "kombu_"
    queues: int = 8
    create_topics: bool = True
    visibility_timeout: float = 900
    unacked_max: int = 1000
    tls: str | None = None

    def __post_init__(self) -> None:
        for name in ("queues", "visibility_timeout", "unacked_max"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, a positive number expected")


def read_options(given: Mapping[str, Any]) -> KombuOptions:
    """Return the options. Raises ValueError for one that is unknown or has a wrong value."""
    own = {name: value for name, value in given.items() if name not in _OF_KOMBU}
    try:
        return msgspec.convert(own, KombuOptions)
    except msgspec.ValidationError as error:
        raise ValueError(f"transport options of {SCHEME}: {error}") from None


def topic_name(prefix: str, queue: str) -> str:
    """Return the topic of a queue. Characters that a topic cannot have become `-` and their code."""
    return prefix + re.sub(r"[^A-Za-z0-9_]", lambda found: f"-{ord(found[0]):02x}", queue)


@dataclass(frozen=True, slots=True)
class Held:
    """A message that a listener received. Its answer decides whether the message is consumed."""

    message: ReceivedMessage
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[RetryLater | None]"

    def settle(self, answer: RetryLater | None) -> None:
        """Answer from any thread. Only the first answer counts."""

        def set_answer() -> None:
            if not self.answer.done():
                self.answer.set_result(answer)

        try:
            self.loop.call_soon_threadsafe(set_answer)
        except RuntimeError:  # the loop is closed with its connection
            _log.warning("%s is delivered again: its connection is closed", self.message.message_id)


class Unacked(virtual.QoS):  # type: ignore[misc]  # kombu has no types
    """Tells the broker which of the delivered messages are consumed."""

    def ack(self, delivery_tag: str) -> None:
        self.channel.settle(delivery_tag, None)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        self.channel.settle(delivery_tag, RetryLater() if requeue else None)
        super().ack(delivery_tag)


class Channel(virtual.Channel):  # type: ignore[misc]
    """Sends to topics and takes what the consumers of its transport received."""

    QoS = Unacked
    do_restore = False  # what is not acknowledged is not committed, so it is delivered again

    def __init__(self, connection: "KombuTransport", **options: Any) -> None:
        super().__init__(connection, **options)
        self._held: dict[str, Held] = {}
        self._unacknowledged: set[str] = set()
        """Queues that are consumed without acknowledgements."""

    def settle(self, delivery_tag: str, answer: RetryLater | None) -> None:
        if (held := self._held.pop(delivery_tag, None)) is not None:
            held.settle(answer)

    def exchange_declare(
        self,
        exchange: str | None = None,
        type: str = "direct",  # noqa: A002  # kombu's name
        **options: Any,
    ) -> None:
        if type != "direct":
            raise ChannelError(f"exchange {exchange} is of type {type}: only direct exchanges are supported")
        super().exchange_declare(exchange, type, **options)

    def basic_consume(self, queue: str, no_ack: bool, *arguments: Any, **options: Any) -> None:
        if no_ack:
            self._unacknowledged.add(queue)
        super().basic_consume(queue, no_ack, *arguments, **options)
        self.connection.consume(queue)

    def basic_cancel(self, consumer_tag: str) -> None:
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue is not None and queue not in self._active_queues:
            self._unacknowledged.discard(queue)
            self.connection.cancel(queue)

    def _get(self, queue: str, timeout: float | None = None) -> _Payload:  # noqa: ARG002  # kombu's signature
        held = self.connection.consume(queue).get_nowait()
        try:
            payload = msgspec.json.decode(held.message.body, type=_Payload)
            properties = payload["properties"]
            properties["delivery_info"]["redelivered"] = held.message.reconsume_times > 0
        except (msgspec.DecodeError, KeyError, TypeError) as error:  # sent by another program
            held.settle(None)
            _log.warning("message %s is not of kombu and is skipped: %s", held.message.message_id, error)
            raise Empty from None
        tag = properties["delivery_tag"] = uuid4().hex  # two deliveries of one message are two
        if queue in self._unacknowledged:
            held.settle(None)
        else:
            self._held[tag] = held
        return payload

    def _put(self, queue: str, message: _Payload, **options: Any) -> None:  # noqa: ARG002
        if message["properties"].get("priority"):
            raise ChannelError("a message has a priority, which RocketMQ does not support")
        body = msgspec.json.encode(message)
        keys = [str(found)] if (found := message["properties"].get("correlation_id")) else []
        self.connection.client_of_process().send_or_raise(
            new_message(self.connection.topic(queue), body, keys=keys)
        )

    def _new_queue(self, queue: str, **options: Any) -> None:
        for name in ("exclusive", "auto_delete"):
            if options.get(name):
                raise ChannelError(f"queue {queue} is {name}, which is not supported: a topic has no owner")
        self.connection.create(queue)

    def _size(self, queue: str) -> int:
        return int(self.connection.unread(queue))

    def _purge(self, queue: str) -> int:
        return int(self.connection.purge(queue))

    def queue_delete(self, queue: str, *arguments: Any, **options: Any) -> None:  # noqa: ARG002
        raise ChannelError(f"queue {queue} is a topic: delete it with `mqproof admin deleteTopic`")


class KombuTransport(virtual.Transport):  # type: ignore[misc]
    """One client of a cluster, and the consumers of the queues that its channels read."""

    Channel = Channel
    can_parse_url = False
    default_port = 9876
    driver_type = SCHEME
    driver_name = "mqproof"
    polling_interval = 0.02
    implements = virtual.Transport.implements.extend(exchange_type=frozenset(["direct"]))
    connection_errors = (*virtual.Transport.connection_errors, ClientError, OSError)

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        self._options = read_options(client.transport_options)
        if client.ssl:
            raise ValueError("ssl is not supported: name a tls.properties in the transport option tls")
        if client.virtual_host not in (None, "", "/"):
            raise ValueError(f"{SCHEME} has no virtual hosts, {client.virtual_host!r} given")
        account = Credentials(client.userid, client.password) if client.userid else None
        address = f"{client.hostname or '127.0.0.1'}:{client.port or self.default_port}"
        self.site = ClusterSite(self._options.name_servers or address, self._options.tls, account)
        self._client: BlockingClient | None = None
        self._process = os.getpid()
        self._open = ExitStack()
        self._consumers: dict[str, tuple[SimpleQueue[Held], ExitStack]] = {}
        self._created: set[str] = set()

    def driver_version(self) -> str:
        return version("mqproof")

    def topic(self, queue: str) -> str:
        return topic_name(self._options.topic_prefix, queue)

    def client_of_process(self) -> BlockingClient:
        """Return the client. A process that was forked needs its own, because threads are not copied."""
        if self._client is None or self._process != os.getpid():
            self._open, self._process, self._consumers = ExitStack(), os.getpid(), {}
            self._client = self._open.enter_context(self._new_client())
        return self._client

    def _new_client(self, group: str = "kombu") -> BlockingClient:
        site = self.site
        return BlockingClient(
            site.name_servers, consumer_group=group, tls=site.tls, credentials=site.credentials
        )

    def establish_connection(self) -> "KombuTransport":
        self.client_of_process()
        super().establish_connection()
        return self

    def close_connection(self, connection: Any) -> None:
        super().close_connection(connection)
        if self._process != os.getpid():
            return  # the client belongs to the process that this one was forked from
        for queue in list(self._consumers):
            self.cancel(queue)
        self._client = None
        self._open.close()

    def create(self, queue: str) -> None:
        """Create the topic of a queue, unless it exists or `create_topics` is false."""
        if self._options.create_topics and queue not in self._created:
            topic, count = self.topic(queue), self._options.queues
            self.site.administer_blocking(lambda admin: ensure_topic(admin, topic, count))
            self._created.add(queue)

    def consume(self, queue: str) -> SimpleQueue[Held]:
        """Return where the messages of a queue arrive. Starts its consumer if there is none."""
        client = self.client_of_process()
        if queue not in self._consumers:
            arrived: SimpleQueue[Held] = SimpleQueue()

            async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
                loop = asyncio.get_running_loop()
                held = Held(messages[0], loop, loop.create_future())
                arrived.put(held)
                return await held.answer

            config = PushConsumerConfig(
                consume_from=ConsumeFrom.FIRST_OFFSET,
                concurrency=self._options.unacked_max,
                consume_timeout_ms=round(self._options.visibility_timeout * 1000),
                stop_timeout_ms=_STOP_MS,
            )
            topic, stack = self.topic(queue), ExitStack()
            stack.enter_context(client.consuming(topic, {topic: "*"}, listener, config))
            self._consumers[queue] = arrived, stack
        return self._consumers[queue][0]

    def cancel(self, queue: str) -> None:
        """Stop the consumer of a queue. Another worker receives what is not acknowledged."""
        if (found := self._consumers.pop(queue, None)) is not None:
            found[1].close()

    def unread(self, queue: str) -> int:
        """Return how many messages of a queue its group has not consumed."""
        topic = self.topic(queue)
        with self._new_client(topic) as client:
            return sum(_unread(client, each) for each in client.queues(topic))

    def purge(self, queue: str) -> int:
        """Skip all messages of a queue, and return how many they were."""
        topic, count = self.topic(queue), 0
        with self._new_client(topic) as client:
            for each in client.queues(topic):
                count += _unread(client, each)
                client.commit(each, client.max_offset(each))
        self.site.administer_blocking(lambda admin: move_members(admin, topic, topic))
        return count


def _unread(client: BlockingClient, queue: MessageQueue) -> int:
    return client.max_offset(queue) - max(client.committed(queue) or 0, client.min_offset(queue))

"""A broker of FastStream: handlers are push consumers, and publishers send to topics.

    broker = FastStreamBroker("127.0.0.1:9876")

    @broker.subscriber("Orders", group="kitchen")
    @broker.publisher("Bills")
    async def bill(order: Order) -> Bill: ...

    app = FastStream(broker)

A message whose handler fails is delivered again later, and becomes a dead letter after 16 times.
`message.nack()` and `message.reject()` do one or the other from inside a handler.

FastStream's public API has no base class for brokers: its issue 2806, open in November 2026, asks for one.
This broker therefore uses internal names of FastStream 0.7.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Any, Final

from fast_depends import dependency_provider
from faststream._internal.broker import BrokerUsecase
from faststream._internal.configs import (
    BrokerConfig,
    PublisherSpecificationConfig,
    PublisherUsecaseConfig,
    SubscriberSpecificationConfig,
    SubscriberUsecaseConfig,
)
from faststream._internal.constants import EMPTY
from faststream._internal.context.repository import ContextRepo
from faststream._internal.di import FastDependsConfig
from faststream._internal.endpoint.publisher import PublisherSpecification, PublisherUsecase
from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream._internal.logger import LoggerState
from faststream._internal.logger.params_storage import ManualLoggerStorage
from faststream.exceptions import FeatureNotSupportedException
from faststream.message import StreamMessage
from faststream.middlewares import AckPolicy
from faststream.response.publish_type import PublishType
from faststream.response.response import PublishCommand
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import BrokerSpec, Operation, PublisherSpec, SubscriberSpec
from faststream.specification.schema import Message as MessageSpec

from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.model import ClientError, ReceivedMessage, RetryLater, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.integrations.cluster_site import ClusterSite, ensure_topic
from mqproof.impl.integrations.faststream_messages import (
    Command,
    CommandProducer,
    Delivery,
    FastStreamMessage,
    ReplyPublisher,
    decode,
    parse,
)
from mqproof.impl.remoting.signing import Credentials

LOGGER: Final = logging.getLogger("mqproof.faststream")

QUEUES: Final = 8
"""Queues of a topic that is created for a subscriber."""


@dataclass(kw_only=True)
class _BrokerConfig(BrokerConfig):
    site: ClusterSite | None = None
    session: Session | None = None
    create_topics: bool = True


@dataclass(kw_only=True)
class _Subscription(SubscriberUsecaseConfig):
    topic: str
    group: str
    tags: str = "*"
    push: PushConsumerConfig = field(default_factory=PushConsumerConfig)

    @property
    def ack_policy(self) -> AckPolicy:
        given = (self._ack_policy, self._outer_config.ack_policy)
        return next((each for each in given if each is not EMPTY), AckPolicy.NACK_ON_ERROR)


@dataclass(kw_only=True)
class _SubscriberText(SubscriberSpecificationConfig):
    topic: str


@dataclass(kw_only=True)
class _PublisherText(PublisherSpecificationConfig):
    topic: str


class _SubscriberDocument(SubscriberSpecification[BrokerConfig, _SubscriberText]):
    """The entry of a subscriber in the AsyncAPI document."""

    @property
    def channel_labels(self) -> list[str]:
        return [self._outer_config.prefix + self.config.topic]

    def get_schema(self) -> dict[str, SubscriberSpec]:
        message = MessageSpec(title=f"{self.name}:Message", payload=resolve_payloads(self.get_payloads()))
        spec = SubscriberSpec(
            address=self.channel_labels[0],
            description=self.description,
            operation=Operation(message=message, bindings=None),
            bindings=None,
        )
        return {self.name: spec}


class _PublisherDocument(PublisherSpecification[BrokerConfig, _PublisherText]):
    """The entry of a publisher in the AsyncAPI document."""

    @property
    def name(self) -> str:
        return self.config.title_ or f"{self._outer_config.prefix}{self.config.topic}:Publisher"

    def get_schema(self) -> dict[str, PublisherSpec]:
        payload = resolve_payloads(self.get_payloads(), "Publisher")
        spec = PublisherSpec(
            address=self._outer_config.prefix + self.config.topic,
            description=self.config.description_,
            operation=Operation(
                message=MessageSpec(title=f"{self.name}:Message", payload=payload), bindings=None
            ),
            bindings=None,
        )
        return {self.name: spec}


class FastStreamSubscriber(SubscriberUsecase[Delivery]):
    """A push consumer whose listener is a handler of FastStream."""

    def __init__(self, config: _Subscription, document: Any, calls: CallsCollection[Delivery]) -> None:
        config.parser, config.decoder = parse, decode
        super().__init__(config, document, calls)
        self._config = config
        self._consumer: PushConsumer | None = None

    @property
    def topic(self) -> str:
        return self._outer_config.prefix + self._config.topic

    async def start(self) -> None:
        await super().start()
        self._post_start()
        if self.calls:
            outer: Any = self._outer_config
            if outer.create_topics:
                await outer.site.administer(lambda admin: ensure_topic(admin, self.topic, QUEUES))
            config = self._config
            self._consumer = PushConsumer(outer.session, config.group, self._listen, config.push)
            await self._consumer.subscribe(self.topic, config.tags)
            await self._consumer.start()

    async def stop(self) -> None:
        """Let the handlers that run return, and leave the group."""
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            await consumer.stop()
        await super().stop()

    async def _listen(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        delivery = Delivery.of(messages[0])
        await self.consume(delivery)
        return delivery.answer

    def _make_response_publisher(self, message: StreamMessage[Delivery]) -> Iterable[ReplyPublisher]:
        request = message.raw_message.received
        producer: Any = self._outer_config.producer
        return () if request is None else (ReplyPublisher(producer, request),)

    def get_log_context(self, message: StreamMessage[Delivery] | None) -> dict[str, str]:
        return {"topic": self.topic, **super().get_log_context(message)}

    async def get_one(self, *, timeout: float = 5) -> FastStreamMessage | None:  # noqa: ARG002
        raise FeatureNotSupportedException("get_one is not supported: use a LitePullConsumer")

    def __aiter__(self) -> AsyncIterator[FastStreamMessage]:
        raise FeatureNotSupportedException("a subscriber is no iterator: use a LitePullConsumer")


class FastStreamPublisher(PublisherUsecase):
    """Sends to one topic."""

    def __init__(self, config: PublisherUsecaseConfig, document: Any, topic: str, tag: str | None) -> None:
        super().__init__(config, document)
        self._topic, self._tag = topic, tag

    @property
    def topic(self) -> str:
        return self._outer_config.prefix + self._topic

    async def publish(
        self, message: Any, *, headers: dict[str, str] | None = None, correlation_id: str | None = None
    ) -> Sent | None:
        command = Command(
            message,
            destination=self.topic,
            tag=self._tag,
            headers=headers,
            correlation_id=correlation_id or self._outer_config.id_generator(),
            _publish_type=PublishType.PUBLISH,
        )
        return await self._send(command, ())

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: Iterable[Any]) -> None:
        """Send what a handler returned."""
        command = Command.from_cmd(cmd)
        command.destination = self.topic
        command.tag = command.tag or self._tag
        await self._send(command, _extra_middlewares)

    async def _send(self, command: Command, middlewares: Iterable[Any]) -> Sent | None:
        producer = self._outer_config.producer
        found: Sent | None = await self._basic_publish(
            command, producer=producer, _extra_middlewares=middlewares
        )
        return found

    async def request(  # type: ignore[override]
        self, message: Any, *, timeout: float = 3.0
    ) -> FastStreamMessage:
        """Send a request, and return the reply to it. Raises NoReplyError after the timeout."""
        command = Command(
            message,
            destination=self.topic,
            tag=self._tag,
            timeout_s=timeout,
            _publish_type=PublishType.REQUEST,
        )
        found: FastStreamMessage = await self._basic_request(command, producer=self._outer_config.producer)
        return found


class FastStreamBroker(BrokerUsecase[Delivery, Session, _BrokerConfig]):
    """A cluster of RocketMQ as the broker of a FastStream application."""

    def __init__(
        self,
        name_servers: str = "127.0.0.1:9876",
        *,
        tls: str | None = None,
        credentials: Credentials | None = None,
        producer_group: str = "faststream_producer",
        create_topics: bool = True,
        ack_policy: AckPolicy = EMPTY,
        middlewares: Sequence[Any] = (),
        dependencies: Sequence[Any] = (),
        logger: logging.Logger | None = LOGGER,
        graceful_timeout: float | None = 15.0,
        description: str | None = None,
    ) -> None:
        """Create a broker. `name_servers`, `tls` and `credentials` are as in `connect`.

        A subscriber's topic that is missing is created, which requires the rights of an administrator, unless
        `create_topics` is false. `ack_policy` is the one of subscribers without their own; by default
        AckPolicy.NACK_ON_ERROR.
        """
        self._producer_group = producer_group
        super().__init__(
            routers=(),
            config=_BrokerConfig(
                site=ClusterSite(name_servers, tls, credentials),
                create_topics=create_topics,
                producer=CommandProducer(None, None),
                broker_middlewares=middlewares,
                broker_dependencies=dependencies,
                graceful_timeout=graceful_timeout,
                ack_policy=ack_policy,
                logger=LoggerState(logging.INFO, ManualLoggerStorage(logger) if logger else None),
                fd_config=FastDependsConfig(
                    use_fastdepends=True, provider=dependency_provider, context=ContextRepo()
                ),
                extra_context={"broker": self},
            ),
            specification=BrokerSpec(
                url=[f"rocketmq://{name_servers}"],
                protocol="rocketmq",
                protocol_version=None,
                description=description,
                tags=(),
                security=None,
            ),
        )

    async def _connect(self) -> Session:
        config = self.config.broker_config
        site = config.site
        assert site is not None
        session = connect(site.name_servers, tls=site.tls, credentials=site.credentials)
        await session.start()
        config.session = session
        producer = Producer(session, ProducerConfig(self._producer_group))
        self._commands().connect(producer, config.fd_config._serializer, config.broker_codec)
        return session

    async def start(self) -> None:
        """Connect, join the groups, and start to consume."""
        await self.connect()
        await super().start()

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Leave the groups and close the connections."""
        await super().stop(exc_type, exc_val, exc_tb)
        if self._connection is not None:
            session, self._connection = self._connection, None
            self._commands().connect(None, None, None)
            await session.stop()

    async def ping(self, timeout: float | None = 5.0) -> bool:
        """Return whether a name server answers."""
        site = self.config.broker_config.site
        assert site is not None
        try:
            async with asyncio.timeout(timeout):
                await site.administer(lambda admin: admin.cluster_info())
        except (ClientError, TimeoutError):
            return False
        return True

    async def publish(
        self,
        message: Any,
        topic: str,
        *,
        tag: str | None = None,
        keys: Iterable[str] = (),
        delay: timedelta | float | None = None,
        headers: dict[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> Sent:
        """Send a message; the arguments are as in `new_message`. Raises SendError if it is not confirmed."""
        command = Command(
            message,
            destination=topic,
            tag=tag,
            keys=tuple(keys),
            delay=delay,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            _publish_type=PublishType.PUBLISH,
        )
        sent: Sent = await self._basic_publish(command, producer=self.config.producer)
        return sent

    async def request(  # type: ignore[override]
        self, message: Any, topic: str, *, timeout: float = 3.0, headers: dict[str, str] | None = None
    ) -> FastStreamMessage:
        """Send a request, and return the reply of the handler. Raises NoReplyError after the timeout."""
        command = Command(
            message,
            destination=topic,
            timeout_s=timeout,
            headers=headers,
            _publish_type=PublishType.REQUEST,
        )
        found: FastStreamMessage = await self._basic_request(command, producer=self.config.producer)
        return found

    def subscriber(  # type: ignore[override]
        self,
        topic: str,
        *,
        group: str,
        tags: str = "*",
        config: PushConsumerConfig | None = None,
        ack_policy: AckPolicy = EMPTY,
        dependencies: Sequence[Any] = (),
        parser: Any = None,
        decoder: Any = None,
        no_reply: bool = False,
        title: str | None = None,
        description: str | None = None,
        include_in_schema: bool = True,
    ) -> FastStreamSubscriber:
        """Consume a topic as a member of the group. `config` is that of a push consumer.

        Raises ValueError if `config` has batches, because a handler receives one message.
        """
        push = config or PushConsumerConfig()
        if push.batch_max != 1:
            raise ValueError(f"batch_max is {push.batch_max}, 1 expected: a handler receives one message")
        outer: Any = self.config
        calls = CallsCollection[Delivery]()
        text = _SubscriberText(
            topic=topic, title_=title, description_=description, include_in_schema=include_in_schema
        )
        found = FastStreamSubscriber(
            _Subscription(
                _outer_config=outer,
                _ack_policy=ack_policy,
                no_reply=no_reply,
                topic=topic,
                group=group,
                tags=tags,
                push=push,
            ),
            _SubscriberDocument(outer, text, calls),
            calls,
        )
        super().subscriber(found)
        return found.add_call(parser_=parser, decoder_=decoder, dependencies_=dependencies)

    def publisher(  # type: ignore[override]
        self,
        topic: str,
        *,
        tag: str | None = None,
        title: str | None = None,
        description: str | None = None,
        schema: Any = None,
        include_in_schema: bool = True,
    ) -> FastStreamPublisher:
        """Send the results of the decorated handler to a topic."""
        outer: Any = self.config
        text = _PublisherText(
            topic=topic,
            title_=title,
            description_=description,
            schema_=schema,
            include_in_schema=include_in_schema,
        )
        found = FastStreamPublisher(
            PublisherUsecaseConfig(_outer_config=outer), _PublisherDocument(outer, text), topic, tag
        )
        super().publisher(found)
        return found

    def _commands(self) -> CommandProducer:
        producer = self.config.producer
        assert isinstance(producer, CommandProducer)
        return producer

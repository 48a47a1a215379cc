"""What FastStream's handlers receive and send: a message of RocketMQ, and the answer to its delivery."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from faststream._internal.endpoint.publisher.fake import FakePublisher
from faststream._internal.endpoint.utils import ParserComposition
from faststream._internal.parser import DefaultCodec
from faststream._internal.producer import ProducerProto
from faststream.exceptions import FeatureNotSupportedException, IncorrectState
from faststream.message import StreamMessage, decode_message
from faststream.response.publish_type import PublishType
from faststream.response.response import PublishCommand, Response

from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ReceivedMessage, RetryLater, Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.message import KEYS, REPLY_TO_CLIENT, TAGS, Message

if TYPE_CHECKING:
    from faststream._internal.parser import CodecProto

DEAD_LETTER: Final = -1
"""The delay level that moves a message to the dead letter queue."""

_CONTENT_TYPE: Final = "content-type"
_CORRELATION: Final = "correlation-id"
"""The properties in which FastStream's own values travel."""


@dataclass(slots=True)
class Delivery:
    """A message, and the answer that the broker gets: None if it is consumed."""

    body: bytes
    properties: Mapping[str, str]
    message_id: str
    received: ReceivedMessage | None = None
    """None for the reply to a request."""
    answer: RetryLater | None = None

    @classmethod
    def of(cls, received: ReceivedMessage) -> "Delivery":
        """Return a delivery that is repeated unless its handler acknowledges it."""
        return cls(received.body, received.properties, received.message_id, received, RetryLater())

    @classmethod
    def of_reply(cls, reply: Message) -> "Delivery":
        return cls(reply.body, reply.properties, "")


class FastStreamMessage(StreamMessage[Delivery]):
    """The message that a handler of FastStream can ask for. Only its first answer counts."""

    @property
    def tag(self) -> str | None:
        return self.raw_message.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        return self.raw_message.properties.get(KEYS, "").split()

    async def ack(self) -> None:
        """Count the message as consumed."""
        if self.committed is None:
            self.raw_message.answer = None
        await super().ack()

    async def nack(self, delay_level: int = 0) -> None:
        """Deliver the message again later, as RetryLater(delay_level) does."""
        if self.committed is None:
            self.raw_message.answer = RetryLater(delay_level)
        await super().nack()

    async def reject(self) -> None:
        """Move the message to the dead letter queue of the group."""
        if self.committed is None:
            self.raw_message.answer = RetryLater(DEAD_LETTER)
        await super().reject()


async def parse(delivery: Delivery) -> FastStreamMessage:
    """Return the message of a delivery."""
    properties = delivery.properties
    return FastStreamMessage(
        delivery,
        delivery.body,
        headers=dict(properties),
        reply_to=properties.get(REPLY_TO_CLIENT, "") if delivery.received else "",
        content_type=properties.get(_CONTENT_TYPE),
        correlation_id=properties.get(_CORRELATION),
        message_id=delivery.message_id or None,
    )


async def decode(message: StreamMessage[Any]) -> Any:
    return decode_message(message)


class FastStreamResponse(Response):
    """A handler's result with options of RocketMQ for the message that a publisher sends."""

    def __init__(
        self,
        body: Any,
        *,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        tag: str | None = None,
        keys: tuple[str, ...] = (),
        delay: timedelta | float | None = None,
    ) -> None:
        super().__init__(body, headers=headers, correlation_id=correlation_id)
        self.tag, self.keys, self.delay = tag, keys, delay

    def as_publish_command(self) -> "Command":
        return Command(
            self.body,
            _publish_type=PublishType.PUBLISH,
            headers=self.headers,
            correlation_id=self.correlation_id,
            tag=self.tag,
            keys=self.keys,
            delay=self.delay,
        )


class Command(PublishCommand):
    """What to send."""

    def __init__(
        self,
        body: Any,
        *,
        tag: str | None = None,
        keys: tuple[str, ...] = (),
        delay: timedelta | float | None = None,
        timeout_s: float = 3.0,
        request: ReceivedMessage | None = None,
        **given: Any,
    ) -> None:
        super().__init__(body, **given)
        self.tag, self.keys, self.delay, self.timeout_s = tag, keys, delay, timeout_s
        self.request = request
        """The request that this replies to."""

    @classmethod
    def from_cmd(cls, cmd: PublishCommand) -> "Command":
        if isinstance(cmd, Command):
            return cmd
        return cls(
            cmd.body,
            _publish_type=cmd.publish_type,
            destination=cmd.destination,
            correlation_id=cmd.correlation_id,
            headers=cmd.headers,
            reply_to=cmd.reply_to,
        )


class ReplyPublisher(FakePublisher):
    """Sends the result of a handler to the client that waits for it."""

    def __init__(self, producer: "CommandProducer", request: ReceivedMessage) -> None:
        super().__init__(producer=producer)
        self._request = request

    def patch_command(self, cmd: PublishCommand) -> Command:
        found = Command.from_cmd(super().patch_command(cmd))
        found.request = self._request
        return found


class CommandProducer(ProducerProto[Command]):
    """Sends commands through a producer of ours."""

    def __init__(self, parser: Any, decoder: Any) -> None:
        self._parser: Any = ParserComposition(parser, parse)
        self._decoder: Any = ParserComposition(decoder, decode)
        self.codec: CodecProto = DefaultCodec()
        self._serializer: Any = None
        self._producer: Producer | None = None

    def connect(self, producer: Producer | None, serializer: Any, codec: "CodecProto | None") -> None:
        self._producer, self._serializer = producer, serializer
        self.codec = codec or DefaultCodec()

    async def publish(self, cmd: Command) -> Sent | None:
        """Send a message, or the reply to a request. Raises SendError or ReplyError."""
        message = await self._message(cmd)
        if cmd.request is None:
            return await self._connected().send_or_raise(message)
        own = {name: value for name, value in message.properties.items() if name not in (TAGS, KEYS)}
        await self._connected().reply(cmd.request, message.body, properties=own)
        return None

    async def request(self, cmd: Command) -> Delivery:
        """Send a request and return its reply. Raises NoReplyError."""
        message = await self._message(cmd)
        return Delivery.of_reply(
            await self._connected().request(message, timeout_ms=round(cmd.timeout_s * 1000))
        )

    async def publish_batch(self, cmd: Command) -> None:  # noqa: ARG002  # FastStream's signature
        raise FeatureNotSupportedException("batches are not supported: publish each message")

    async def _message(self, cmd: Command) -> Message:
        body, content_type = await self.codec.encode(cmd.body, self._serializer)
        own = {_CONTENT_TYPE: content_type, _CORRELATION: cmd.correlation_id}
        properties = {name: str(value) for name, value in ((cmd.headers or {}) | own).items() if value}
        topic = cmd.destination or (cmd.request.topic if cmd.request else "")
        return new_message(topic, body, tag=cmd.tag, keys=cmd.keys, delay=cmd.delay, properties=properties)

    def _connected(self) -> Producer:
        if self._producer is None:
            raise IncorrectState("the broker is not connected: start it before publishing")
        return self._producer

"""The content of one send request: a message, or a batch of one topic, checked and encoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from mqproof.impl.client.messages.compose import (
    check_batch,
    check_destination,
    check_text_property,
    encode_batch,
)
from mqproof.impl.client.messages.compression import deflated
from mqproof.impl.client.model import MessageError
from mqproof.impl.remoting.message import (
    MAX_RECONSUME_TIMES,
    RETRY_PREFIX,
    SYS_COMPRESSED,
    UNIQUE_KEY,
    WAIT,
    Message,
    UniqueKeys,
    encode_properties,
)
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.runtime import Runtime

_PROPERTIES_BYTES_MAX: Final = 32767


@dataclass(frozen=True, slots=True)
class Payload:
    """One message, or a batch of one topic. Every message has its unique key."""

    messages: tuple[Message, ...]
    properties: str
    """The properties in the request header. A batch has only WAIT there, which applies to all its messages.
    """
    body: bytes
    is_batch: bool

    @property
    def first(self) -> Message:
        return self.messages[0]

    @property
    def topic(self) -> str:
        return self.first.topic

    @property
    def reconsume_max(self) -> int | None:
        """How often a message to a retry topic may be delivered before it becomes a dead letter."""
        text = self.first.properties.get(MAX_RECONSUME_TIMES, "")
        return int(text) if text.isdecimal() and self.topic.startswith(RETRY_PREFIX) else None


class PayloadBuilder:
    """Builds payloads. Raises MessageError for a message that cannot be sent as it is."""

    def __init__(self, runtime: Runtime, body_bytes_max: int, compress_from_bytes: int) -> None:
        self._clock = runtime.clock
        self._keys = UniqueKeys(runtime.random, runtime.clock)
        self._body_bytes_max = body_bytes_max
        self._compress_from_bytes = compress_from_bytes

    def single(self, message: Message) -> Payload:
        message, properties = self._prepared(message)
        if len(message.body) >= self._compress_from_bytes and not message.sys_flag & SYS_COMPRESSED:
            message = deflated(message)
        return Payload((message,), properties, message.body, is_batch=False)

    def batch(self, messages: Sequence[Message]) -> Payload:
        check_batch(messages)
        prepared = tuple(self._prepared(message)[0] for message in messages)
        body = encode_batch(prepared)
        self._check_size("batch", body)
        shared = {WAIT: prepared[0].properties[WAIT]}
        return Payload(prepared, encode_properties(shared), body, is_batch=True)

    def _prepared(self, message: Message) -> tuple[Message, str]:
        """Return the message as it is sent, and its encoded properties."""
        check_destination(message)
        if not message.body:
            raise MessageError("the body is empty")
        self._check_size("body", message.body)
        properties = dict(message.properties)
        if UNIQUE_KEY not in properties:
            properties[UNIQUE_KEY] = self._keys.take()
        properties.setdefault(WAIT, "true")
        for name, value in properties.items():
            check_text_property(name, value)
        try:
            text = encode_properties(properties)
            size = len(text.encode())
        except ValueError as error:
            raise MessageError(str(error)) from None
        if size > _PROPERTIES_BYTES_MAX:
            raise MessageError(
                f"the properties have {size} bytes, at most {_PROPERTIES_BYTES_MAX} are allowed"
            )
        born_ms = message.born_timestamp_ms or now_ms(self._clock)
        return replace(message, properties=properties, born_timestamp_ms=born_ms), text

    def _check_size(self, what: str, data: bytes) -> None:
        if len(data) > self._body_bytes_max:
            raise MessageError(
                f"the {what} has {len(data)} bytes, at most {self._body_bytes_max} are allowed"
            )


def unique_key(message: Message) -> str:
    """Return the id of a message in a payload."""
    return message.properties[UNIQUE_KEY]

"""The requests of one session that wait for a reply, by correlation id.

See docs/reference/protocol/requests-and-replies.md. The broker names a client by its id, and all producers of
a session share this id.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from mqproof.impl.client.messages.compression import inflated_body
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import PushReplyRequest
from mqproof.impl.remoting.message import ARRIVE_TIME, CORRELATION_ID, Message, decode_properties
from mqproof.impl.runtime.clock import Clock, now_ms
from mqproof.impl.runtime.network import Address


class WaitingReplies:
    """Gives each reply to the request that waits for it, once, and drops all others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, asyncio.Future[Message]] = {}

    @contextmanager
    def expecting(self, correlation_id: str) -> Iterator[asyncio.Future[Message]]:
        """Yield the future reply to a request; a reply that comes after the block is dropped."""
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = reply
        try:
            yield reply
        finally:
            del self._waiting[correlation_id]
            reply.cancel()

    @property
    def are_awaited(self) -> bool:
        """Whether any request waits for a reply."""
        return bool(self._waiting)

    def give(self, correlation_id: str, message: Message) -> None:
        """End the request that waits for this reply; drop a reply that no request waits for."""
        reply = self._waiting.get(correlation_id)
        if reply is not None and not reply.done():
            reply.set_result(message)

    def is_waited_for(self, correlation_id: str) -> bool:
        """Return whether a request still waits for this reply."""
        reply = self._waiting.get(correlation_id)
        return reply is not None and not reply.done()

    def pushed(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a Handler's signature
        """Process PUSH_REPLY_MESSAGE_TO_CLIENT, and confirm it, also when the reply comes too late.

        The confirmation says that the client has received the reply. If a late reply were refused, its
        sender would consume the request again, in vain.
        """
        header = headers.read(PushReplyRequest, request.fields)
        properties = decode_properties(header.properties or "")
        correlation_id = properties.get(CORRELATION_ID, "")
        if self.is_waited_for(correlation_id):
            message = Message(
                topic=header.topic,
                body=inflated_body(request.body, header.sys_flag),
                properties={**properties, ARRIVE_TIME: str(now_ms(self._clock))},
                queue_id=header.queue_id,
                flag=header.flag,
                sys_flag=header.sys_flag,
                born_timestamp_ms=header.born_timestamp,
                born_host=_host(header.born_host),
                store_host=_host(header.store_host),
                reconsume_times=header.reconsume_times or 0,
            )
            self.give(correlation_id, message)
        return request.answer(ResponseCode.SUCCESS)


def _host(text: str) -> tuple[str, int]:
    """Return an address that a broker reports; an unknown one if it is not an address."""
    try:
        return Address.parse(text.removeprefix("/"))
    except ValueError:
        return ("0.0.0.0", 0)

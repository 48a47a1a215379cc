"""Arranges the redelivery of messages that were not consumed, or moves them to the dead letter queue.

No message is dropped. See docs/reference/protocol/retries-and-delays.md, "Retries".
"""

import logging
from typing import Final

from msgspec.structs import replace

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, ReceivedMessage, Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.message import (
    DELAY,
    MAX_RECONSUME_TIMES,
    ORIGIN_MESSAGE_ID,
    RECONSUME_TIME,
    RETRY_PREFIX,
    RETRY_TOPIC,
)
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

_DEAD: Final = -1
_FIRST_LEVEL: Final = 3


class Redelivery:
    """Sends messages back to the broker. If the broker rejects one, sends a copy to the retry topic."""

    def __init__(
        self, calls: GroupRequests, producer: Producer, reconsume_max: int, events: ConsumerEvents
    ) -> None:
        self._calls = calls
        self._producer = producer
        self._reconsume_max = reconsume_max
        self._events = events

    async def send_back(self, message: ReceivedMessage, delay_level: int = 0) -> bool:
        """Have the message redelivered, or moved to the dead letter queue if it reached the maximum.

        Returns False when no broker accepted it. The caller must then keep the message.
        """
        dead = delay_level == _DEAD or message.reconsume_times >= self._reconsume_max
        try:
            await self._calls.send_back(message, delay_level, self._reconsume_max)
        except ClientError as error:
            _log.warning("a message was not sent back, a copy is sent: %s", error)
            if not await self._send_copy(message, delay_level, dead=dead):
                return False
        kind = Kind.DEAD_LETTER if dead else Kind.RETRY
        self._events.of_message(kind, message.queue, message.stored)
        return True

    async def bury(self, message: ReceivedMessage) -> bool:
        """Move the message to the dead letter queue now. Returns False when no broker accepted it."""
        return await self.send_back(message, _DEAD)

    async def _send_copy(self, message: ReceivedMessage, delay_level: int, *, dead: bool) -> bool:
        """Send a copy to the retry topic.

        The broker turns it into a dead letter if it was redelivered too often.

        Releases count redeliveries differently there. The maximum is set so that all of them reach the same
        decision.
        """
        original = message.stored.message
        times = message.reconsume_times + 1
        properties = dict(original.properties)
        properties.setdefault(RETRY_TOPIC, message.topic)
        properties.setdefault(ORIGIN_MESSAGE_ID, message.stored.offset_message_id)
        properties[RECONSUME_TIME] = str(times)
        properties[MAX_RECONSUME_TIMES] = str(0 if dead else self._reconsume_max + 1)
        properties[DELAY] = str(delay_level if delay_level > 0 else _FIRST_LEVEL + message.reconsume_times)
        copy = replace(
            original,
            topic=RETRY_PREFIX + self._calls.group,
            properties=properties,
            sys_flag=0,  # the body is already decompressed, and all other flags belong to the first copy
            reconsume_times=times,
        )
        return isinstance(await self._producer.send(copy), Sent)

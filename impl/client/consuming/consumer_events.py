"""The events that a consumer records in the event log.

See docs/reference/protocol/event-log.md, "Events of a client".
"""

from collections.abc import Iterable, Mapping

from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.message import KEYS, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Kind


class ConsumerEvents:
    """Records the events of one member of one group. Without an event log it does nothing."""

    def __init__(self, events: EventLog | None, group: str, client_id: str, *, orderly: bool = False) -> None:
        self._events = events
        self._group = group
        self._client_id = client_id
        self._orderly = {"orderly": "true"} if orderly else {}

    def rebalanced(self, topic: str, queues: int) -> None:
        """Record that the member computed how many queues of the topic it reads."""
        if self._events is not None:
            self._events.emit(
                Kind.REBALANCE,
                topic=topic,
                group=self._group,
                client=self._client_id,
                attrs={"queues": str(queues), **self._orderly},
            )

    def delivered(self, queue: MessageQueue, messages: Iterable[StoredMessage]) -> None:
        """Record that messages were passed to the application."""
        for stored in messages:
            self.of_message(Kind.DELIVER, queue, stored)

    def of_message(self, kind: Kind, queue: MessageQueue, stored: StoredMessage) -> None:
        """Record an event of a message that was read from this queue."""
        if self._events is None:
            return
        message = stored.message
        self._events.emit(
            kind,
            msg_id=stored.message_id,
            topic=message.topic,
            queue_id=message.queue_id,
            queue_offset=stored.queue_offset,
            commit_offset=stored.commit_offset,
            group=self._group,
            client=self._client_id,
            keys=message.properties.get(KEYS),
            born_ts=message.born_timestamp_us,
            attrs={"broker": queue.broker_name},
        )

    def committed(self, queue: MessageQueue, offset: int, *, reset: bool) -> None:
        """Record that the broker confirmed an offset."""
        if self._events is None:
            return
        attrs: Mapping[str, str] = {"reset": "true"} if reset else {}
        self._events.emit(
            Kind.OFFSET_COMMIT,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            group=self._group,
            client=self._client_id,
            attrs={"broker": queue.broker_name, **attrs},
        )

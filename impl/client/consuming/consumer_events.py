"""The events that a consumer records in the event log.

See docs/reference/protocol/event-log.md, "Events of a client".
"""

from collections.abc import Iterable, Mapping

from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.message import KEYS, TAGS, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Kind


class ConsumerEvents:
    """Records the events of one member of one group. Without an event log it does nothing."""

    def __init__(self, events: EventLog | None, group: str, client_id: str, *, orderly: bool = False) -> None:
        self._events = events
        self._group = group
        self._client_id = client_id
        self._selected: dict[str, dict[str, str]] = {}
        """The attributes of the newest `subscribe` event of each topic."""
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

    def selects(self, topic: str, selector: MessageSelector) -> None:
        """Record which messages of a topic the member reads from now on, if that is new or changed."""
        attrs = {"type": selector.expression_type, "expression": selector.expression}
        if self._events is None or self._selected.get(topic) == attrs:
            return
        self._selected[topic] = attrs
        self._events.emit(Kind.SUBSCRIBE, topic=topic, group=self._group, client=self._client_id, attrs=attrs)

    def subscribes(self, selectors: Mapping[str, MessageSelector]) -> None:
        """Record the changes from the previous subscriptions of the member to these, by topic."""
        for topic, selector in selectors.items():
            self.selects(topic, selector)
        for topic in sorted(self._selected.keys() - selectors.keys()):
            del self._selected[topic]
            if self._events is not None:
                self._events.emit(Kind.UNSUBSCRIBE, topic=topic, group=self._group, client=self._client_id)

    def left(self) -> None:
        """Record that the member has no subscriptions any more."""
        self.subscribes({})

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
            tags=message.properties.get(TAGS, "") if kind is Kind.DELIVER else None,
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

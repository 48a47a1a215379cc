"""The subscriptions of each group that the broker has recorded in its event log, and what changes in them.

See docs/reference/protocol/event-log.md, "Events of a broker".
"""

from collections.abc import Mapping
from typing import Final

from mqproof.impl.remoting.bodies import Subscription
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Kind

_CLASS: Final = "CLASS"
"""The type of a subscription whose clients filter with their own code."""


class AnnouncedSubscriptions:
    """Records a group's subscription when it is new or changed. Without an event log it does nothing.

    It has only groups with members, whose subscriptions the table of clients limits.
    """

    def __init__(self, events: EventLog | None) -> None:
        self._events = events
        self._announced: dict[str, dict[str, dict[str, str]]] = {}
        """The attributes of the newest event of each topic, by group."""

    def update(self, group: str, subscriptions: Mapping[str, Subscription], client: str) -> None:
        """Record what a heartbeat of the client changed in the subscriptions of its group, by topic."""
        if self._events is None:
            return
        known = self._announced.setdefault(group, {})
        for topic in sorted(known.keys() - subscriptions.keys()):
            del known[topic]
            self._events.emit(Kind.UNSUBSCRIBE, topic=topic, group=group, client=client)
        for topic, subscription in sorted(subscriptions.items()):
            attrs = _attrs(subscription)
            if known.get(topic) != attrs:
                known[topic] = attrs
                self._events.emit(Kind.SUBSCRIBE, topic=topic, group=group, client=client, attrs=attrs)

    def group_left(self, group: str) -> None:
        """Record that a group without members subscribes to nothing."""
        for topic in sorted(self._announced.pop(group, {})):
            if self._events is not None:
                self._events.emit(Kind.UNSUBSCRIBE, topic=topic, group=group)


def _attrs(subscription: Subscription) -> dict[str, str]:
    kind = _CLASS if subscription.class_filter_mode else subscription.expression_type or "TAG"
    return {"type": kind, "expression": subscription.sub_string or "*"}

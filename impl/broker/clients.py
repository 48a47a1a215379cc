"""Who is connected: producers and consumers by group, as their heartbeats tell. Pure tables, time passed in.

See docs/protocol.md, "Client registration".
"""

from collections.abc import Iterable
from dataclasses import dataclass

from impl.remoting.bodies import ConsumerData, Heartbeat, Subscription
from impl.remoting.channel import Channel


@dataclass(slots=True)
class _Member:
    client_id: str
    last_update_ms: int


class ConsumerGroup:
    """The members of one group and what they subscribe to; the latest heartbeat speaks for all."""

    def __init__(self) -> None:
        self.members: dict[Channel, _Member] = {}
        self.subscriptions: dict[str, Subscription] = {}
        """By topic."""
        self.message_model = "CLUSTERING"

    def update(self, data: ConsumerData) -> bool:
        """Take over the subscriptions; True when the set of topics changed."""
        before = set(self.subscriptions)
        self.message_model = data.message_model
        given = {subscription.topic: subscription for subscription in data.subscription_data_set}
        for topic, subscription in given.items():
            known = self.subscriptions.get(topic)
            if known is None or subscription.sub_version > known.sub_version:
                self.subscriptions[topic] = subscription
        for topic in before - set(given):
            del self.subscriptions[topic]
        return set(self.subscriptions) != before


class ClientTable:
    """Groups whose last member leaves are forgotten."""

    def __init__(self) -> None:
        self._consumers: dict[str, ConsumerGroup] = {}
        self._producers: dict[str, dict[Channel, _Member]] = {}

    def heartbeat(self, channel: Channel, heartbeat: Heartbeat, now_ms: int) -> set[str]:
        """Note a heartbeat. Returns the consumer groups whose members or topics changed."""
        for producer in heartbeat.producer_data_set:
            members = self._producers.setdefault(producer.group_name, {})
            members[channel] = _Member(heartbeat.client_id, now_ms)
        changed = set()
        for data in heartbeat.consumer_data_set:
            group = self._consumers.setdefault(data.group_name, ConsumerGroup())
            is_new = channel not in group.members
            group.members[channel] = _Member(heartbeat.client_id, now_ms)
            if group.update(data) or is_new:
                changed.add(data.group_name)
        return changed

    def unregister(
        self, channel: Channel, producer_group: str | None, consumer_group: str | None
    ) -> set[str]:
        """Note that a client leaves its groups. Returns the consumer groups that changed."""
        if producer_group:
            self._drop_producers(channel, [producer_group])
        return self._drop_consumers(channel, [consumer_group] if consumer_group else [])

    def channel_closed(self, channel: Channel) -> set[str]:
        """Drop the channel from every group. Returns the consumer groups that changed."""
        self._drop_producers(channel, list(self._producers))
        return self._drop_consumers(channel, list(self._consumers))

    def silent_since(self, before_ms: int) -> list[Channel]:
        """Channels with a group membership that was not confirmed since then."""
        tables: list[dict[Channel, _Member]] = list(self._producers.values())
        tables += [group.members for group in self._consumers.values()]
        silent = (
            channel
            for members in tables
            for channel, member in members.items()
            if member.last_update_ms < before_ms
        )
        return list(dict.fromkeys(silent))

    def consumer_group(self, group: str) -> ConsumerGroup | None:
        return self._consumers.get(group)

    def consumer_ids(self, group: str) -> list[str]:
        """The client ids in the group; a client with two connections is there twice."""
        known = self._consumers.get(group)
        return [member.client_id for member in known.members.values()] if known else []

    def consumer_channels(self, group: str) -> list[Channel]:
        known = self._consumers.get(group)
        return list(known.members) if known else []

    def _drop_producers(self, channel: Channel, groups: Iterable[str]) -> None:
        for name in groups:
            members = self._producers.get(name, {})
            members.pop(channel, None)
            if not members:
                self._producers.pop(name, None)

    def _drop_consumers(self, channel: Channel, groups: Iterable[str]) -> set[str]:
        changed = set()
        for name in groups:
            group = self._consumers.get(name)
            if group is not None and group.members.pop(channel, None) is not None:
                changed.add(name)
                if not group.members:
                    del self._consumers[name]
        return changed

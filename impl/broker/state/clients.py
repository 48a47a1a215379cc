"""The connected producers and consumers by group, from their heartbeats. Pure tables; time is passed in.

See docs/reference/protocol/groups.md, "Client registration".
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec

from mqproof.impl.remoting.bodies import ConsumerData, Heartbeat, Subscription
from mqproof.impl.remoting.budget import Budget, Percentages, shares_of
from mqproof.impl.remoting.channel import Channel

T = TypeVar("T")

BROADCASTING: Final = "BROADCASTING"

MEMBERSHIP_BYTES_MAX: Final = 128 << 20
"""The most bytes of all memberships: what the heartbeats say about each client and group."""
_MEMBER_BYTES: Final = 256
"""The size of a membership without subscriptions."""


@dataclass(frozen=True, slots=True)
class Member:
    """One client in one group, as reported in its last heartbeat."""

    client_id: str
    language: str | None
    version: int
    last_update_ms: int


class ConsumerGroup:
    """The members of one group and their subscriptions; the latest heartbeat applies to the whole group."""

    def __init__(self) -> None:
        self.members: dict[Channel, Member] = {}
        self.subscriptions: dict[str, Subscription] = {}
        """The subscriptions by topic."""
        self.data = ConsumerData("")
        """The data of the latest heartbeat."""

    @property
    def is_broadcasting(self) -> bool:
        return self.data.message_model == BROADCASTING

    def update(self, data: ConsumerData) -> bool:
        """Apply the subscriptions of a heartbeat; return True when the set of topics changed."""
        before = set(self.subscriptions)
        self.data = data
        given = {subscription.topic: subscription for subscription in data.subscription_data_set}
        for topic, subscription in given.items():
            known = self.subscriptions.get(topic)
            if known is None or subscription.sub_version > known.sub_version:
                self.subscriptions[topic] = subscription
        for topic in before - set(given):
            del self.subscriptions[topic]
        return set(self.subscriptions) != before

    def channel_of(self, client_id: str) -> Channel | None:
        """Return the client's channel; if it has several, the one with the latest heartbeat."""
        found = [channel for channel, one in self.members.items() if one.client_id == client_id]
        return max(found, key=lambda channel: self.members[channel].last_update_ms, default=None)


class ClientTable:
    """The producer and consumer groups. A group is removed when its last member leaves."""

    def __init__(self, percent: Percentages | None = None) -> None:
        self.budget = Budget(
            "bytes of group memberships", shares_of(MEMBERSHIP_BYTES_MAX, percent or Percentages())
        )
        self._consumers: dict[str, ConsumerGroup] = {}
        self._producers: dict[str, dict[Channel, Member]] = {}
        self._producer_channels: dict[str, dict[Channel, None]] = {}
        """The channels of producers by client id, the one with the latest heartbeat last."""
        self._producer_ids: dict[Channel, str] = {}
        self._memberships: dict[Channel, dict[str, int]] = {}
        """The groups of each channel, with prefix `p` or `c` for producers and consumers, and their bytes."""

    def refusal(self, channel: Channel, heartbeat: Heartbeat) -> str | None:
        """Return why the budget has no room for a heartbeat; None if it has."""
        known = self._memberships.get(channel, {})
        given = _sizes(heartbeat)
        return self.budget.refusal(channel, sum(size - known.get(name, 0) for name, size in given.items()))

    def heartbeat(self, channel: Channel, heartbeat: Heartbeat, member: Member) -> set[str]:
        """Record a heartbeat; return the consumer groups whose members or topics changed."""
        memberships = self._memberships.setdefault(channel, {})
        for name, size in _sizes(heartbeat).items():
            self.budget.take(channel, size - memberships.get(name, 0))
            memberships[name] = size
        for producer in heartbeat.producer_data_set:
            self._producers.setdefault(producer.group_name, {})[channel] = member
        if heartbeat.producer_data_set:
            self._note_producer(channel, member.client_id)
        changed = set()
        for data in heartbeat.consumer_data_set:
            group = self._consumers.setdefault(data.group_name, ConsumerGroup())
            is_new = channel not in group.members
            group.members[channel] = member
            if group.update(data) or is_new:
                changed.add(data.group_name)
        return changed

    def membership_count(self, channel: Channel) -> int:
        """Return the number of groups that the client is in."""
        return len(self._memberships.get(channel, ()))

    def unregister(
        self, channel: Channel, producer_group: str | None, consumer_group: str | None
    ) -> set[str]:
        """Remove a client from its groups; return the consumer groups that changed."""
        leaving = {"p" + (producer_group or ""), "c" + (consumer_group or "")}
        return self._leave(channel, leaving & self._memberships.get(channel, {}).keys())

    def channel_closed(self, channel: Channel) -> set[str]:
        """Remove the channel from every group; return the consumer groups that changed."""
        return self._leave(channel, set(self._memberships.get(channel, ())))

    def silent_since(self, before_ms: int) -> list[Channel]:
        """Return the channels with a group membership last confirmed before `before_ms`."""
        tables: list[dict[Channel, Member]] = list(self._producers.values())
        tables += [group.members for group in self._consumers.values()]
        silent = (
            channel
            for members in tables
            for channel, member in members.items()
            if member.last_update_ms < before_ms
        )
        return list(dict.fromkeys(silent))

    def count_as_heard(self, now_ms: int) -> None:
        """Treat all clients as if they had sent a heartbeat now."""
        tables: list[dict[Channel, Member]] = list(self._producers.values())
        tables += [group.members for group in self._consumers.values()]
        for members in tables:
            members.update({channel: replace(one, last_update_ms=now_ms) for channel, one in members.items()})

    def subscribed(self) -> dict[str, tuple[int, list[str]]]:
        """Return the number of members and the topics of each consumer group."""
        return {name: (len(one.members), [*one.subscriptions]) for name, one in self._consumers.items()}

    def consumer_group(self, group: str) -> ConsumerGroup | None:
        return self._consumers.get(group)

    def groups_of_topic(self, topic: str) -> list[str]:
        """Return the groups with members that subscribe to the topic."""
        return [name for name, group in self._consumers.items() if topic in group.subscriptions]

    def producers(self) -> dict[str, dict[Channel, Member]]:
        """Return the members of the producer groups, by group."""
        return self._producers

    def next_producer(self, group: str) -> Channel | None:
        """Return one of the group's producers, each time the next; None if none reads its connection."""
        members = self._producers.get(group, {})
        for channel in list(members):
            members[channel] = members.pop(channel)
            if channel.takes:
                return channel
        return None

    def producer_channel(self, client_id: str) -> Channel | None:
        """Return the channel on which a producer with this client id sent the latest heartbeat."""
        return next(reversed(self._producer_channels.get(client_id, {})), None)

    def consumer_ids(self, group: str) -> list[str]:
        """Return the client ids in the group, each once.

        A client that reconnects before the loss of its old connection is detected has two channels but is one
        member. If it counted twice, no client would read the queues allocated to the second member.
        """
        known = self._consumers.get(group)
        return list(dict.fromkeys(member.client_id for member in known.members.values())) if known else []

    def consumer_channels(self, group: str) -> list[Channel]:
        known = self._consumers.get(group)
        return list(known.members) if known else []

    def _leave(self, channel: Channel, leaving: Iterable[str]) -> set[str]:
        changed = set()
        for membership in sorted(leaving):
            kind, name = membership[0], membership[1:]
            if kind == "p":
                _drop(self._producers, name, channel)
            else:
                self._consumers[name].members.pop(channel)
                changed.add(name)
                if not self._consumers[name].members:
                    del self._consumers[name]
            self.budget.take(channel, -self._memberships[channel].pop(membership))
        left = self._memberships.get(channel, {})
        if not any(membership[0] == "p" for membership in left):
            self._forget_producer(channel)
        if not left:
            self._memberships.pop(channel, None)
        return changed

    def _note_producer(self, channel: Channel, client_id: str) -> None:
        if self._producer_ids.get(channel) != client_id:
            self._forget_producer(channel)
            self._producer_ids[channel] = client_id
        channels = self._producer_channels.setdefault(client_id, {})
        channels.pop(channel, None)
        channels[channel] = None

    def _forget_producer(self, channel: Channel) -> None:
        client_id = self._producer_ids.pop(channel, None)
        if client_id is not None:
            _drop(self._producer_channels, client_id, channel)


def _sizes(heartbeat: Heartbeat) -> dict[str, int]:
    """Return the membership of each group in a heartbeat, and its size in bytes."""
    sizes = {"p" + producer.group_name: _MEMBER_BYTES for producer in heartbeat.producer_data_set}
    for data in heartbeat.consumer_data_set:
        sizes["c" + data.group_name] = _MEMBER_BYTES + len(msgspec.json.encode(data))
    return sizes


def _drop(groups: dict[str, dict[Channel, T]], name: str, channel: Channel) -> None:
    groups[name].pop(channel)
    if not groups[name]:
        del groups[name]

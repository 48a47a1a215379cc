"""The topics and tags that a consumer subscribes to.

See docs/reference/protocol/groups.md, "Client registration".
"""

from mqproof.impl.remoting.bodies import Subscription
from mqproof.impl.remoting.message import tags_code
from mqproof.impl.runtime.clock import Clock, now_ms


class Subscriptions:
    """Subscriptions by topic, each with its creation time: brokers use the later of two."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_topic: dict[str, Subscription] = {}

    def add(self, topic: str, tags: str = "*") -> None:
        """Subscribe to a topic. `tags` is `TagA || TagB`, or `*` for all."""
        wanted = sorted({tag.strip() for tag in tags.split("||")} - {""})
        if not wanted or wanted == ["*"]:
            subscription = Subscription(topic, "*", sub_version=now_ms(self._clock))
        else:
            codes = [tags_code(tag) for tag in wanted]
            text = " || ".join(wanted)
            subscription = Subscription(topic, text, codes, wanted, sub_version=now_ms(self._clock))
        self._by_topic[topic] = subscription

    def remove(self, topic: str) -> None:
        self._by_topic.pop(topic, None)

    def topics(self) -> list[str]:
        return list(self._by_topic)

    def all(self) -> list[Subscription]:
        return list(self._by_topic.values())

    def tags_of(self, topic: str) -> str:
        """Return the tag expression of a topic, in the form that brokers read."""
        subscription = self._by_topic.get(topic)
        return (subscription and subscription.sub_string) or "*"

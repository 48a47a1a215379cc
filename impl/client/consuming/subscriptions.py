"""The topics and tags that a consumer subscribes to.

See docs/reference/protocol/groups.md, "Client registration".
"""

import logging

from mqproof.impl.client.arguments import require_topic
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.message_selector import SQL92, MessageSelector, as_selector
from mqproof.impl.client.model import ClientError, RefusalError
from mqproof.impl.remoting.bodies import Subscription
from mqproof.impl.remoting.message import tags_code
from mqproof.impl.runtime.clock import Clock, now_ms

_log = logging.getLogger(__name__)


class Subscriptions:
    """Subscriptions by topic, each with its creation time: brokers use the later of two."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._by_topic: dict[str, tuple[Subscription, MessageSelector]] = {}

    def add(self, topic: str, selector: str | MessageSelector = "*") -> None:
        """Subscribe to a topic. A text is `TagA || TagB`, or `*` for all.

        Raises:
            ValueError: the text is no tag expression, or the topic's name is not allowed.
        """
        require_topic(topic)
        selector = as_selector(selector)
        version = now_ms(self.clock)
        if selector.module is not None:
            subscription = Subscription(
                topic, selector.expression, class_filter_mode=True, sub_version=version
            )
        elif selector.is_sql:
            subscription = Subscription(
                topic, selector.expression, expression_type=SQL92, sub_version=version
            )
        else:
            tags = sorted({tag.strip() for tag in selector.expression.split("||")} - {""})
            if tags == ["*"]:
                tags = []
            selector = MessageSelector(" || ".join(tags) or "*")
            codes = [tags_code(tag) for tag in tags]
            subscription = Subscription(topic, selector.expression, codes, tags, sub_version=version)
        self._by_topic[topic] = subscription, selector

    def remove(self, topic: str) -> None:
        self._by_topic.pop(topic, None)

    def topics(self) -> list[str]:
        return list(self._by_topic)

    def all(self) -> list[Subscription]:
        return [subscription for subscription, _ in self._by_topic.values()]

    def get(self, topic: str) -> Subscription | None:
        return self._by_topic[topic][0] if topic in self._by_topic else None

    def selector_of(self, topic: str) -> MessageSelector:
        """Return the selector of a topic, in the form that brokers read."""
        return self._by_topic[topic][1] if topic in self._by_topic else MessageSelector("*")

    def selectors(self) -> dict[str, MessageSelector]:
        """Return the selector of each topic."""
        return {topic: selector for topic, (_, selector) in self._by_topic.items()}


async def add_accepted(
    calls: GroupRequests, subscriptions: Subscriptions, topic: str, selector: str | MessageSelector = "*"
) -> None:
    """Subscribe to a topic after the brokers have accepted it; until then, nothing changes.

    Raises:
        ValueError: the text is no tag expression, or the topic's name is not allowed.
        RefusalError: a broker refuses the SQL92 expression.
        ClientError: another process is a consumer of the group with the same client id.
    """
    wanted = Subscriptions(subscriptions.clock)
    wanted.add(topic, selector)
    await require_accepted(calls, wanted, topic)
    await calls.require_sole([topic])
    subscriptions.add(topic, selector)


async def require_accepted(calls: GroupRequests, subscriptions: Subscriptions, topic: str) -> None:
    """Ask a broker whether it accepts the SQL92 expression for the topic, if there is one.

    If no broker answers, the first pull shows whether the brokers accept it.

    Raises:
        RefusalError: it does not. The error has the broker's reason.
    """
    subscription = subscriptions.get(topic)
    if subscription is None or subscription.expression_type != SQL92:
        return
    try:
        await calls.check(subscription)
    except RefusalError:
        raise
    except ClientError as error:
        _log.info("the expression for %s is not checked: %s", topic, error)

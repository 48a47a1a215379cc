"""Checks that several request processors share; each raises RefusedError."""

import asyncio
import logging
from typing import Final

from mqproof.impl.broker.services import Services
from mqproof.impl.remoting.bodies import PERM_READ, PERM_WRITE, SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import RETRY_PREFIX, Message
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.topic_names import name_problem
from mqproof.impl.store.delay import delay_level, scheduled

_log = logging.getLogger(__name__)

_LOG_S: Final = 60.0


def require_group(services: Services, group: str, channel: Channel) -> SubscriptionGroup:
    """Return the group; create it if groups are created automatically, otherwise refuse an unknown group.

    A new group counts for the channel.
    """
    known = services.groups.get(group)
    if known is not None:
        return known
    if not group or name_problem(RETRY_PREFIX + group):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{group!r} cannot be a consumer group's name")
    made = services.groups.find_or_make(group, auto_create=services.config.auto_create_groups, by=channel)
    if made is None:
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {group} does not exist")
    return made


def require_consuming_group(services: Services, group: str, channel: Channel) -> SubscriptionGroup:
    """Return the group; refuse as `require_group`, and also a group that may not consume."""
    known = require_group(services, group, channel)
    if not known.consume_enable:
        raise RefusedError(ResponseCode.NO_PERMISSION, f"group {group} may not consume")
    return known


def require_topic(services: Services, topic: str) -> TopicConfig:
    """Return the topic; refuse one that does not exist."""
    known = services.topics.get(topic)
    if known is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic {topic} does not exist")
    return known


def require_readable_queue(services: Services, topic_name: str, queue_id: int) -> None:
    """Refuse a queue that does not exist or may not be read."""
    topic = require_topic(services, topic_name)
    if not topic.perm & PERM_READ:
        raise RefusedError(ResponseCode.NO_PERMISSION, f"topic {topic_name} has no read permission")
    if not 0 <= queue_id < topic.read_queue_nums:
        remark = f"queue {queue_id} of topic {topic_name}, which has {topic.read_queue_nums} queues"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)


def require_readable_broker(services: Services) -> None:
    """Refuse when the broker as a whole may not be read."""
    if not services.config.permission & PERM_READ:
        raise RefusedError(ResponseCode.NO_PERMISSION, "the broker has no read permission")


def require_writable_broker(services: Services) -> None:
    """Refuse when the broker as a whole may not be written."""
    if not services.config.permission & PERM_WRITE:
        raise RefusedError(ResponseCode.NO_PERMISSION, "the broker has no write permission")


def require_master(services: Services) -> None:
    """Refuse a request that only a master serves."""
    if services.is_slave:
        raise RefusedError(ResponseCode.SERVICE_NOT_AVAILABLE, services.store.refusal)


def require_sole_master(services: Services) -> None:
    """Refuse a request that must not be served while another master may exist.

    A member of a group refuses it if no quorum has confirmed its leadership recently.
    """
    require_master(services)
    if not services.store.has_all:
        remark = "no quorum has confirmed lately that this broker is the leader"
        raise RefusedError(ResponseCode.SERVICE_NOT_AVAILABLE, remark)


def scheduled_or_refused(services: Services, message: Message) -> Message:
    """Return the message as it is stored: in the queue of its delay level if it has one.

    Refuses a delay level that is not a number. One above the last level counts as the last one, and is
    logged, at most once a minute.
    """
    levels_ms = services.config.store.delay_levels_ms
    try:
        stored = scheduled(message, levels_ms)
        if stored is not message and delay_level(message) > len(levels_ms):
            _log_level(services, message, len(levels_ms))
        return stored
    except ValueError as error:
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None


def _log_level(services: Services, message: Message, levels: int) -> None:
    now_s = asyncio.get_running_loop().time()
    if now_s - services.level_logged_s >= _LOG_S:
        services.level_logged_s = now_s
        _log.warning(
            "a message to %s has delay level %d, which counts as %d, the last one",
            message.topic,
            delay_level(message),
            levels,
        )

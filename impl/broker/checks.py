"""Refusals that several requests share."""

from impl.broker.services import Services
from impl.broker.topics import RETRY_PREFIX, name_problem
from impl.remoting.bodies import PERM_READ
from impl.remoting.codes import ResponseCode
from impl.remoting.dispatch import RefusedError


def require_group(services: Services, group: str) -> None:
    """Refuse a group that does not exist, where groups do not come into being by being named."""
    if name_problem(RETRY_PREFIX + group):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{group!r} cannot be a consumer group's name")
    if not services.config.auto_create_groups and services.clients.consumer_group(group) is None:
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {group} does not exist")


def require_readable_queue(services: Services, topic_name: str, queue_id: int) -> None:
    """Refuse a queue that does not exist or may not be read."""
    topic = services.topics.get(topic_name)
    if topic is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic {topic_name} does not exist")
    if not topic.perm & PERM_READ:
        raise RefusedError(ResponseCode.NO_PERMISSION, f"topic {topic_name} may not be read")
    if not 0 <= queue_id < topic.read_queue_nums:
        remark = f"queue {queue_id} of topic {topic_name}, which has {topic.read_queue_nums} queues"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)

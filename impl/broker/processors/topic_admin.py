"""Administration of topics (docs/reference/protocol/administration.md, "Administration of a broker")."""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from mqproof.impl.broker.requests.checks import require_topic
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.broker.state.topics import is_system_topic, system_topics
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, AllTopics, TopicConfig, TopicConfigList, TopicList
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import TopicRequest, UpdateTopicRequest
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.topic_names import name_problem

_PERM_MAX: Final = PERM_READ_WRITE | 1
_FILTER_TYPES: Final = ("SINGLE_TAG", "MULTI_TAG")


async def update_topic(services: Services, request: Command, channel: Channel) -> Reply:
    """Create or change a topic; answer after it is on disk.

    It is registered with the name servers afterwards.
    """
    header = headers.read(UpdateTopicRequest, request.fields)
    topic = TopicConfig(
        topic_name=header.topic,
        order=header.order,
        perm=header.perm,
        read_queue_nums=header.read_queue_nums,
        topic_filter_type=header.topic_filter_type,
        topic_sys_flag=header.topic_sys_flag or 0,
        write_queue_nums=header.write_queue_nums,
    )
    await _put_all(services, [topic], channel)
    return request.answer(ResponseCode.SUCCESS)


async def update_topics(services: Services, request: Command, channel: Channel) -> Reply:
    """Create or change several topics, either all or none."""
    await _put_all(services, java_json.read(TopicConfigList, request.body).topic_config_list, channel)
    return request.answer(ResponseCode.SUCCESS)


async def delete_topic(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Delete a topic, its queues, and all consumer offsets in it.

    Its messages stay in the log until they expire.
    """
    header = headers.read(TopicRequest, request.fields)
    if not header.topic or is_system_topic(header.topic, services.config.name, services.config.cluster):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"topic {header.topic!r} cannot be deleted")
    await services.topics.delete([header.topic])
    services.store.delete_topic(header.topic)
    services.offsets.remove_topic(header.topic)
    return request.answer(ResponseCode.SUCCESS)


def all_topics(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return every topic with its settings and, for slaves, the deleted topics."""
    topics = services.topics.snapshot()
    answer = AllTopics(topics.data_version, topics.topic_config_table, dict(services.store.deleted_topics))
    body = java_json.write(answer, standard=True)
    return request.answer(ResponseCode.SUCCESS, body=body)


def one_topic(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the settings of a topic."""
    header = headers.read(TopicRequest, request.fields)
    topic = require_topic(services, header.topic)
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(topic, standard=True))


def system_topic_list(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the topics that no administrator can change."""
    topics = system_topics(services.config.name, services.config.cluster)
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(TopicList(topic_list=topics)))


async def _put_all(services: Services, topics: list[TopicConfig], channel: Channel) -> None:
    for topic in topics:
        if problem := _problem(services, topic):
            raise RefusedError(ResponseCode.SYSTEM_ERROR, problem)
    asked = [_with_its_attributes(services, topic) for topic in topics]
    changed = [topic for topic in asked if services.topics.get(topic.topic_name) != topic]
    await services.topics.put_all(changed, channel)


def _with_its_attributes(services: Services, topic: TopicConfig) -> TopicConfig:
    """Return the topic with the attributes that it has now.

    Attributes are kept but not changed: in a request they describe changes, by rules of 5.x.
    """
    known = services.topics.get(topic.topic_name)
    return replace(topic, attributes=UNSET if known is None else known.attributes)


def _problem(services: Services, topic: TopicConfig) -> str | None:
    queues_max = services.config.topic_queues_max
    if problem := name_problem(topic.topic_name):
        return problem
    if is_system_topic(topic.topic_name, services.config.name, services.config.cluster):
        return f"the topic {topic.topic_name} is a system topic"
    if not 0 <= topic.perm <= _PERM_MAX:
        return f"permissions {topic.perm}, 0 to {_PERM_MAX} expected"
    if topic.topic_filter_type not in _FILTER_TYPES:
        return f"filter type {topic.topic_filter_type!r}, {' or '.join(_FILTER_TYPES)} expected"
    if not (1 <= topic.read_queue_nums <= queues_max and 0 <= topic.write_queue_nums <= queues_max):
        return (
            f"{topic.read_queue_nums} read and {topic.write_queue_nums} write queues,"
            f" 1 to {queues_max} and 0 to {queues_max} expected"
        )
    return None


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: update_topic,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: update_topics,
    RequestCode.DELETE_TOPIC_IN_BROKER: delete_topic,
    RequestCode.GET_ALL_TOPIC_CONFIG: all_topics,
    RequestCode.GET_TOPIC_CONFIG: one_topic,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: system_topic_list,
}

"""Which topics and groups belong to RocketMQ itself, and not to an application."""

from enum import Enum
from typing import Final

from mqproof.impl.admin.groups import DEAD_LETTER_PREFIX, RETRY_PREFIX
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC
from mqproof.impl.remoting.topic_names import NOT_FOR_CLIENTS

_SYSTEM_TOPICS: Final = NOT_FOR_CLIENTS | {
    TRACE_TOPIC,
    "TBW102",
    "BenchmarkTest",
    "DefaultHeartBeatSyncerTopic",
}
_SYSTEM_TOPIC_STARTS: Final = ("rmq_sys_", "RMQ_SYS_", "%")
_SYSTEM_GROUPS: Final = frozenset(
    {
        *("DEFAULT_CONSUMER", "TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP"),
        *("__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SCHEDULE_CONSUMER"),
    }
)
_SYSTEM_GROUP_STARTS: Final = ("CID_ONSAPI_", "CID_ONS-", "CID_RMQ_SYS_", "CID_SYS_RMQ_")


class TopicKind(Enum):
    NORMAL = "normal"
    RETRY = "retry"
    DEAD_LETTER = "dead letter"
    SYSTEM = "system"


def topic_kind(name: str, clusters_and_brokers: frozenset[str] = frozenset()) -> TopicKind:
    """Return the kind of a topic. Brokers have system topics of their own names and of their clusters'."""
    if name.startswith(RETRY_PREFIX):
        return TopicKind.RETRY
    if name.startswith(DEAD_LETTER_PREFIX):
        return TopicKind.DEAD_LETTER
    own = name in clusters_and_brokers or name.removesuffix("_REPLY_TOPIC") in clusters_and_brokers
    return TopicKind.SYSTEM if own or is_system_topic(name) else TopicKind.NORMAL


def is_system_topic(name: str) -> bool:
    """Return whether the name alone shows that the topic belongs to RocketMQ; retry topics do."""
    return name in _SYSTEM_TOPICS or name.startswith(_SYSTEM_TOPIC_STARTS) or name.endswith("_REPLY_TOPIC")


def is_system_group(name: str) -> bool:
    return name in _SYSTEM_GROUPS or name.startswith(_SYSTEM_GROUP_STARTS)

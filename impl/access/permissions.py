"""The permission that each request code requires, in one table. Pure functions.

See docs/reference/protocol/access-control.md, "Permissions".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ClientCheck, Heartbeat, QueueLocks
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import EndTransactionRequest, HeaderError, ViewMessageRequest
from mqproof.impl.remoting.message import RETRY_PREFIX, parse_offset_message_id

DENY: Final = 1
ANY: Final = 2
PUB: Final = 4
SUB: Final = 8
PERMISSION_NAMES: Final = {"DENY": DENY, "ANY": ANY, "PUB": PUB, "SUB": SUB}


class Kind(Enum):
    TOPIC = "topic"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Need:
    """A permission that a request needs: one of the bits PUB and SUB."""

    kind: Kind
    name: str
    permission: int


class Caller(Enum):
    """The senders of a request that needs no permission for a topic or group."""

    ANYONE = "anyone"
    """No account is needed."""
    ADMINISTRATOR = "an administrator"


TopicAt = Callable[[int], str | None]
"""Returns the topic of the message at a commit offset; None if no message begins there."""

Needs = Callable[[Command, TopicAt], Iterable[Need]]
"""Returns the needed permissions of an account. Raises BodyError for a body that cannot be read."""


def permission_of(text: str) -> int:
    """Return the bits of a permission in words, such as PUB|SUB; an empty text is DENY. Raises ValueError."""
    found = 0
    for part in text.split("|") if text.strip() else ["DENY"]:
        if part.strip() not in PERMISSION_NAMES:
            raise ValueError(f"permission {text!r}, DENY, ANY, PUB, SUB or PUB|SUB expected")
        found |= PERMISSION_NAMES[part.strip()]
    return found


def no_messages(commit_offset: int) -> str | None:  # noqa: ARG001  # a TopicAt's signature
    """The TopicAt of a server without messages."""
    return None


def _topic(name: str, permission: int) -> Need:
    """Return the needed permission for a topic; a retry topic needs permission SUB for its group."""
    if name.startswith(RETRY_PREFIX):
        return Need(Kind.GROUP, name.removeprefix(RETRY_PREFIX), SUB)
    return Need(Kind.TOPIC, name, permission)


def _of_fields(*, topic: str = "", group: str = "", permission: int = SUB) -> Needs:
    """Return the needs of requests whose fields `topic` and `group` have the names.

    An absent field is an empty name: only an account that may use every name has permission for it.
    """

    def found(request: Command, _: TopicAt) -> list[Need]:
        fields = request.fields
        wanted = [_topic(fields.get(topic, ""), permission)] if topic else []
        return wanted + ([Need(Kind.GROUP, fields.get(group, ""), SUB)] if group else [])

    return found


def _and_topic_if_given(needs: Needs) -> Needs:
    """Return these needs and, if the optional field `topic` is present, SUB for that topic."""

    def found(request: Command, topic_at: TopicAt) -> list[Need]:
        topic = request.fields.get("topic")
        return [*needs(request, topic_at), *([_topic(topic, SUB)] if topic else [])]

    return found


def _unregistered(request: Command, _: TopicAt) -> list[Need]:
    group = request.fields.get("consumerGroup")
    return [Need(Kind.GROUP, group, SUB)] if group else []


def _of_heartbeat(request: Command, _: TopicAt) -> list[Need]:
    found = []
    for data in java_json.read(Heartbeat, request.body).consumer_data_set:
        found.append(Need(Kind.GROUP, data.group_name, SUB))
        found += [_topic(each.topic, SUB) for each in data.subscription_data_set]
    return found


def _of_locks(request: Command, _: TopicAt) -> list[Need]:
    locks = java_json.read(QueueLocks, request.body)
    topics = dict.fromkeys(queue.topic for queue in locks.mq_set)
    return [Need(Kind.GROUP, locks.consumer_group, SUB), *(_topic(name, SUB) for name in topics)]


def _of_client_check(request: Command, _: TopicAt) -> list[Need]:
    check = java_json.read(ClientCheck, request.body)
    topics = [check.subscription_data.topic] if check.subscription_data else []
    return [Need(Kind.GROUP, check.group, SUB), *(_topic(name, SUB) for name in topics)]


def _of_message(offset_of: Callable[[Command], int | None], group: str = "", permission: int = SUB) -> Needs:
    """Return the needs of requests that name a message by its place: the permission for its topic."""

    def found(request: Command, topic_at: TopicAt) -> list[Need]:
        offset = offset_of(request)
        name = topic_at(offset) if offset is not None else None
        wanted = [_topic(name, permission)] if name is not None else []
        return wanted + ([Need(Kind.GROUP, request.fields.get(group, ""), SUB)] if group else [])

    return found


def _half_offset(request: Command) -> int | None:
    try:
        return headers.read(EndTransactionRequest, request.fields).commit_log_offset
    except HeaderError:
        return None


def _offset_field(request: Command) -> int | None:
    # Read as the processor reads it, so that the two cannot mean different messages. It refuses what is not a
    # number as well.
    try:
        return headers.read(ViewMessageRequest, request.fields).offset
    except HeaderError:
        return None


def _offset_of_id(request: Command) -> int | None:
    try:
        return parse_offset_message_id(request.fields.get("msgId", ""))[1]
    except ValueError:
        return None


_ADMIN: Final = Caller.ADMINISTRATOR
_ANYONE: Final = Caller.ANYONE
_USE_TOPIC: Final = _of_fields(topic="topic", permission=PUB | SUB)
_READ_TOPIC: Final = _of_fields(topic="topic")
_READ_GROUP: Final = _of_fields(group="group")
_CONSUME: Final = _of_fields(topic="topic", group="consumerGroup")

PERMISSIONS: Final[dict[int, Caller | Needs]] = {
    # Producers and consumers.
    RequestCode.SEND_MESSAGE: _of_fields(topic="topic", permission=PUB),
    RequestCode.SEND_MESSAGE_V2: _of_fields(topic="b", permission=PUB),
    RequestCode.SEND_BATCH_MESSAGE: _of_fields(topic="b", permission=PUB),
    # The broker takes replies only for its reply topic: who may send there may reply to any client.
    RequestCode.SEND_REPLY_MESSAGE: _of_fields(topic="topic", permission=PUB),
    RequestCode.SEND_REPLY_MESSAGE_V2: _of_fields(topic="b", permission=PUB),
    RequestCode.END_TRANSACTION: _of_message(_half_offset, permission=PUB),
    # The processor compares the topic with that of the handle.
    RequestCode.RECALL_MESSAGE: _of_fields(topic="topic", permission=PUB),
    RequestCode.PULL_MESSAGE: _CONSUME,
    RequestCode.LITE_PULL_MESSAGE: _CONSUME,
    RequestCode.QUERY_CONSUMER_OFFSET: _CONSUME,
    RequestCode.UPDATE_CONSUMER_OFFSET: _CONSUME,
    # The copy of a message is in the group's retry topic: its members can read the body.
    RequestCode.CONSUMER_SEND_MSG_BACK: _of_message(_offset_field, group="group"),
    RequestCode.HEART_BEAT: _of_heartbeat,
    RequestCode.UNREGISTER_CLIENT: _unregistered,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _of_fields(group="consumerGroup"),
    RequestCode.LOCK_BATCH_MQ: _of_locks,
    RequestCode.UNLOCK_BATCH_MQ: _of_locks,
    RequestCode.CHECK_CLIENT_CONFIG: _of_client_check,
    # Messages by key and by place.
    RequestCode.QUERY_MESSAGE: _READ_TOPIC,
    RequestCode.VIEW_MESSAGE_BY_ID: _of_message(_offset_field),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: _of_message(_offset_of_id, group="consumerGroup"),
    RequestCode.QUERY_CONSUME_QUEUE: _READ_TOPIC,
    # One topic or one group.
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _USE_TOPIC,
    RequestCode.GET_MAX_OFFSET: _USE_TOPIC,
    RequestCode.GET_MIN_OFFSET: _USE_TOPIC,
    RequestCode.GET_EARLIEST_MSG_STORETIME: _USE_TOPIC,
    RequestCode.GET_TOPIC_STATS_INFO: _USE_TOPIC,
    RequestCode.GET_TOPIC_CONFIG: _USE_TOPIC,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: _USE_TOPIC,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: _of_fields(group="consumerGroup"),
    RequestCode.GET_CONSUMER_RUNNING_INFO: _of_fields(group="consumerGroup"),
    RequestCode.GET_CONSUME_STATS: _and_topic_if_given(_of_fields(group="consumerGroup")),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: _READ_GROUP,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: _READ_GROUP,
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: _and_topic_if_given(_READ_GROUP),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _of_fields(topic="topic", group="group"),
    RequestCode.QUERY_CONSUME_TIME_SPAN: _of_fields(topic="topic", group="group"),
    RequestCode.QUERY_CORRECTION_OFFSET: _of_fields(topic="topic", group="compareGroup"),
    # The whole broker.
    RequestCode.UPDATE_AND_CREATE_TOPIC: _ADMIN,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: _ADMIN,
    RequestCode.DELETE_TOPIC_IN_BROKER: _ADMIN,
    RequestCode.GET_ALL_TOPIC_CONFIG: _ADMIN,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _ADMIN,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _ADMIN,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _ADMIN,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: _ADMIN,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _ADMIN,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: _ADMIN,
    RequestCode.CLONE_GROUP_OFFSET: _ADMIN,
    RequestCode.GET_ALL_CONSUMER_OFFSET: _ADMIN,
    RequestCode.GET_ALL_DELAY_OFFSET: _ADMIN,
    RequestCode.GET_BROKER_CONSUME_STATS: _ADMIN,
    RequestCode.VIEW_BROKER_STATS_DATA: _ADMIN,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: _ADMIN,
    RequestCode.GET_ALL_PRODUCER_INFO: _ADMIN,
    RequestCode.RESUME_CHECK_HALF_MESSAGE: _ADMIN,
    RequestCode.UPDATE_BROKER_CONFIG: _ADMIN,
    RequestCode.GET_BROKER_CONFIG: _ADMIN,
    RequestCode.GET_BROKER_RUNTIME_INFO: _ADMIN,
    RequestCode.REGISTER_FILTER_SERVER: _ADMIN,
    RequestCode.GET_BROKER_HA_STATUS: _ADMIN,
    RequestCode.SET_MESSAGE_REQUEST_MODE: _ADMIN,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: _ADMIN,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: _ADMIN,
    RequestCode.CLEAN_UNUSED_TOPIC: _ADMIN,
    RequestCode.DELETE_EXPIRED_COMMITLOG: _ADMIN,
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: _ADMIN,
    RequestCode.DELETE_ACL_CONFIG: _ADMIN,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _ADMIN,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: _ADMIN,
    RequestCode.AUTH_CREATE_USER: _ADMIN,
    RequestCode.AUTH_UPDATE_USER: _ADMIN,
    RequestCode.AUTH_DELETE_USER: _ADMIN,
    RequestCode.AUTH_GET_USER: _ADMIN,
    RequestCode.AUTH_LIST_USER: _ADMIN,
    RequestCode.AUTH_CREATE_ACL: _ADMIN,
    RequestCode.AUTH_UPDATE_ACL: _ADMIN,
    RequestCode.AUTH_DELETE_ACL: _ADMIN,
    RequestCode.AUTH_GET_ACL: _ADMIN,
    RequestCode.AUTH_LIST_ACL: _ADMIN,
    # A name server: everything that changes it, and what only its brokers and administrators ask.
    RequestCode.REGISTER_BROKER: _ADMIN,
    RequestCode.UNREGISTER_BROKER: _ADMIN,
    RequestCode.BROKER_HEARTBEAT: _ADMIN,
    RequestCode.QUERY_DATA_VERSION: _ADMIN,  # it counts as a heartbeat
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: _ADMIN,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: _ADMIN,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: _ADMIN,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: _ADMIN,
    RequestCode.PUT_KV_CONFIG: _ADMIN,
    RequestCode.DELETE_KV_CONFIG: _ADMIN,
    RequestCode.UPDATE_NAMESRV_CONFIG: _ADMIN,
    RequestCode.GET_NAMESRV_CONFIG: _ANYONE,
    RequestCode.GET_KV_CONFIG: _ANYONE,
    RequestCode.GET_KVLIST_BY_NAMESPACE: _ANYONE,
    RequestCode.GET_BROKER_MEMBER_GROUP: _ANYONE,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: _ANYONE,
    RequestCode.GET_BROKER_CLUSTER_INFO: _ANYONE,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _ANYONE,
    RequestCode.GET_TOPICS_BY_CLUSTER: _ANYONE,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: _ANYONE,
    RequestCode.GET_UNIT_TOPIC_LIST: _ANYONE,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _ANYONE,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _ANYONE,
}
"""Every request code that a broker or a name server answers. A code without a row is refused."""

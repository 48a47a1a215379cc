"""The operation-specific headers: typed objects here, flat strings on the wire.

`read(Header, fields)` checks presence, types and ranges. `write(header)` omits members that are None. Members
that a newer peer adds are ignored. See docs/reference/protocol/framing.md, "Operation headers".
"""

from typing import Annotated, Any, Final, TypeVar, cast

import msgspec

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

Name = Annotated[str, msgspec.Meta(max_length=1024)]
"""A name, an address, an identifier or a word. The rules for topics and groups are stricter."""
ListText = Annotated[str, msgspec.Meta(max_length=64 * 1024)]
"""Several names or conditions in one text."""
PropertiesText = Annotated[str, msgspec.Meta(max_length=64 * 1024)]
"""The properties of a message. A store takes at most 32767 bytes, and refuses more as MESSAGE_ILLEGAL."""
IdsText = Annotated[str, msgspec.Meta(max_length=1024 * 1024)]
"""The offset message ids of a batch, joined by commas."""
ValueText = Annotated[str, msgspec.Meta(max_length=512 * 1024)]
"""A value of a name server's key-value configuration."""


class HeaderError(ValueError):
    """A mandatory header field is missing or has the wrong type. The message names the field."""


class Header(msgspec.Struct, rename="camel"):
    """The base of all operation headers. On the wire, members have the same names, in camel case."""


_Header = TypeVar("_Header", bound=Header)


def read(kind: type[_Header], fields: dict[str, str]) -> _Header:
    """Return the header of this kind in `fields`.

    Raises:
        HeaderError: a mandatory field is missing, or a value is not of its field's type or range.
    """
    try:
        return msgspec.convert(fields, kind, strict=False)
    except ValueError as error:
        raise HeaderError(f"{kind.__name__}: {error}") from None


def write(header: Header) -> dict[str, str]:
    """Return the header as flat strings, without members that are None."""
    members: dict[str, Any] = msgspec.to_builtins(header)
    return {name: _text(value) for name, value in members.items() if value is not None}


def _text(value: str | bool | int) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# Sending.


class SendRequest(Header):
    """The request header of SEND_MESSAGE. With queue id -1, the broker chooses the queue."""

    producer_group: Name
    topic: Name
    default_topic: Name
    """The template for a topic that does not exist yet."""
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    """When the client created the message, in milliseconds of its own clock."""
    flag: Int
    """The application's flag, stored unchanged."""
    properties: PropertiesText | None = None
    reconsume_times: Int | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int | None = None
    batch: bool | None = None


_LETTERS: Final = {
    "producerGroup": "a",
    "topic": "b",
    "defaultTopic": "c",
    "defaultTopicQueueNums": "d",
    "queueId": "e",
    "sysFlag": "f",
    "bornTimestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsumeTimes": "j",
    "unitMode": "k",
    "maxReconsumeTimes": "l",
    "batch": "m",
}
"""SEND_MESSAGE_V2: the same members under one-letter names."""

_NAMES: Final = {letter: name for name, letter in _LETTERS.items()}

_MEMBERS: Final = msgspec.structs.fields(SendRequest)
_SendRequestV2: Final = cast(
    type[SendRequest],  # it has the same members
    msgspec.defstruct(
        "SendRequest",
        [(it.name, it.type) if it.required else (it.name, it.type, it.default) for it in _MEMBERS],
        rename={it.name: _LETTERS[it.encode_name] for it in _MEMBERS},
    ),
)


def read_send_v2(fields: dict[str, str]) -> SendRequest:
    """Return the header of SEND_MESSAGE_V2. Raises HeaderError, with the full name of the field."""
    try:
        return msgspec.convert(fields, _SendRequestV2, strict=False)
    except ValueError:
        return read(SendRequest, {_NAMES[key]: value for key, value in fields.items() if key in _NAMES})


def write_send_v2(header: SendRequest) -> dict[str, str]:
    """Return the header of SEND_MESSAGE_V2 as flat strings."""
    members: dict[str, Any] = msgspec.to_builtins(header)
    return {_LETTERS[name]: _text(value) for name, value in members.items() if value is not None}


class SendResponse(Header):
    msg_id: IdsText
    """The store host and commit log offset, not the unique key. A batch has one for each message."""
    queue_id: Int
    queue_offset: Long
    transaction_id: Name | None = None
    recall_handle: ListText | None = None
    """The handle to recall the message while it waits for its time."""


def write_send_response(
    *,
    msg_id: str,
    queue_id: int,
    queue_offset: int,
    transaction_id: str | None,
    recall_handle: str | None = None,
) -> dict[str, str]:
    """Return the fields of a SendResponse.

    A faster `write`: brokers write more of these headers than of all others together.
    """
    fields = {"msgId": msg_id, "queueId": str(queue_id), "queueOffset": str(queue_offset)}
    if transaction_id is not None:
        fields["transactionId"] = transaction_id
    if recall_handle is not None:
        fields["recallHandle"] = recall_handle
    return fields


class PushReplyRequest(Header):
    """The request header of PUSH_REPLY_MESSAGE_TO_CLIENT, which a broker sends to a client that waits."""

    producer_group: Name
    topic: Name
    default_topic: Name
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    born_host: Name
    """IP:port of the client that replied."""
    store_host: Name
    store_timestamp: Long
    properties: PropertiesText | None = None
    reconsume_times: Int | None = None
    unit_mode: bool | None = None


class SendBackRequest(Header):
    """The request header of CONSUMER_SEND_MSG_BACK: redeliver the message at a commit offset."""

    offset: Long
    """Commit offset of the message."""
    group: Name
    delay_level: Int
    """-1 means the dead letter queue at once; 0 lets the broker choose the level."""
    origin_msg_id: Name | None = None
    origin_topic: Name | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int | None = None
    """Replaces the group's own maximum."""


# Filter servers.


class RegisterFilterServerRequest(Header):
    """The request header of REGISTER_FILTER_SERVER."""

    filter_server_addr: Name


class RegisterFilterServerResponse(Header):
    """The response header of REGISTER_FILTER_SERVER."""

    broker_name: Name
    broker_id: Long


class RegisterFunctionRequest(Header):
    """The request header of REGISTER_MESSAGE_FILTER_CLASS. The body is a module of WebAssembly."""

    consumer_group: Name
    topic: Name
    class_name: Name
    """The SHA-256 of the body, in hexadecimal digits."""


# Pulling.

PULL_COMMITS_OFFSET = 1
PULL_MAY_SUSPEND = 2
PULL_HAS_SUBSCRIPTION = 4
PULL_CLASS_FILTER = 8


class PullRequest(Header):
    consumer_group: Name
    topic: Name
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    """The flags of the request: bits named PULL_*."""
    commit_offset: Long
    suspend_timeout_millis: Long
    sub_version: Long
    subscription: ListText | None = None
    expression_type: Name | None = None
    max_msg_bytes: Int | None = None
    """Only clients of 5.x send this field."""


class PullResponse(Header):
    """Present with PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY and PULL_OFFSET_MOVED as well as with SUCCESS."""

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long


# Offsets.


class QueueRequest(Header):
    """The request header of GET_MAX_OFFSET, GET_MIN_OFFSET, GET_EARLIEST_MSG_STORETIME."""

    topic: Name
    queue_id: Int


class SearchOffsetRequest(Header):
    topic: Name
    queue_id: Int
    timestamp: Long
    boundary_type: Name | None = None
    """5.x: UPPER in any case of letters; any other value means LOWER."""


class QueryOffsetRequest(Header):
    consumer_group: Name
    topic: Name
    queue_id: Int
    set_zero_if_not_found: bool | None = None
    """5.x; false requests QUERY_NOT_FOUND instead of 0."""


class UpdateOffsetRequest(Header):
    consumer_group: Name
    topic: Name
    queue_id: Int
    commit_offset: Long
    only_forward: bool | None = None
    """True means that the offset must not replace a higher one at the master. Only mqproof has this field.

    Slaves set it, and members that commit what they consumed.
    """


class OffsetResponse(Header):
    offset: Long


class StoreTimeResponse(Header):
    timestamp: Long


# Looking messages up.

UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
"""A field beside the header of QUERY_MESSAGE: `true` when the key is a producer's unique key."""


class QueryMessageRequest(Header):
    topic: Name
    key: Name
    max_num: Int
    begin_timestamp: Long
    """The earliest store time of the messages, in milliseconds."""
    end_timestamp: Long


class QueryMessageResponse(Header):
    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


class ViewMessageRequest(Header):
    """The request header of VIEW_MESSAGE_BY_ID."""

    offset: Long
    """The position in the commit log, exactly at the start of a record."""


# Clients at a broker.


class EndTransactionRequest(Header):
    producer_group: Name
    tran_state_table_offset: Long
    """The offset of the half message, or of a copy, in the half queue."""
    commit_log_offset: Long
    commit_or_rollback: Int
    """8 is a commit, 12 a rollback, 0 unknown."""
    msg_id: Name
    """The unique key of the message."""
    from_transaction_check: bool | None = None
    transaction_id: Name | None = None
    topic: Name | None = None


class CheckTransactionRequest(Header):
    """The request header of CHECK_TRANSACTION_STATE, which a broker sends to a producer."""

    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: Name | None = None
    transaction_id: Name | None = None
    offset_msg_id: Name | None = None
    topic: Name | None = None


class ResumeCheckRequest(Header):
    msg_id: Name
    """The offset message id of the discarded message."""
    topic: Name | None = None


class RecallMessageRequest(Header):
    topic: Name
    recall_handle: ListText
    """The handle from the response of the send."""
    producer_group: Name | None = None


class RecallMessageResponse(Header):
    msg_id: Name
    """The unique key of the message."""


class UnregisterClientRequest(Header, rename={"client_id": "clientID"}):
    client_id: Name
    producer_group: Name | None = msgspec.field(name="producerGroup", default=None)
    consumer_group: Name | None = msgspec.field(name="consumerGroup", default=None)


class ConsumerGroupRequest(Header):
    """The request header of GET_CONSUMER_LIST_BY_GROUP and NOTIFY_CONSUMER_IDS_CHANGED."""

    consumer_group: Name


class ProducerGroupRequest(Header):
    producer_group: Name


# Administration of topics, groups and offsets.


class TopicRequest(Header):
    """The request header of requests that name only a topic.

    They are DELETE_TOPIC_IN_BROKER, GET_TOPIC_STATS_INFO, QUERY_TOPIC_CONSUME_BY_WHO and GET_TOPIC_CONFIG.
    """

    topic: Name


class UpdateTopicRequest(Header):
    """The request header of UPDATE_AND_CREATE_TOPIC."""

    topic: Name
    default_topic: Name
    """A mandatory field, which brokers ignore."""
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: Name = "SINGLE_TAG"
    topic_sys_flag: Int | None = None
    order: bool = False


class GroupRequest(Header):
    """The request header of GET_SUBSCRIPTIONGROUP_CONFIG and QUERY_TOPICS_BY_CONSUMER."""

    group: Name


class DeleteGroupRequest(Header):
    """The request header of DELETE_SUBSCRIPTIONGROUP. The flag is removeOffset in 4.9, cleanOffset in 5.x."""

    group_name: Name
    remove_offset: bool | None = None
    clean_offset: bool | None = None


class ConsumeStatsRequest(Header):
    """The request header of GET_CONSUME_STATS. Without a topic: every topic with offsets of the group."""

    consumer_group: Name
    topic: Name | None = None


class AllConsumeStatsRequest(Header):
    """The request header of GET_BROKER_CONSUME_STATS."""

    is_order: bool
    """Whether to include only ordered topics, or only the others."""


class CorrectionRequest(Header):
    """The request header of QUERY_CORRECTION_OFFSET."""

    topic: Name
    compare_group: Name
    filter_groups: ListText | None = None
    """Groups to ignore, separated by commas."""


class StatsRequest(Header):
    """The request header of VIEW_BROKER_STATS_DATA."""

    stats_name: Name
    stats_key: Name


class QueueEntriesRequest(Header):
    """The request header of QUERY_CONSUME_QUEUE."""

    topic: Name
    queue_id: Int
    index: Long
    """The queue offset of the first entry."""
    count: Int
    consumer_group: Name | None = None


class GroupTopicRequest(Header):
    """The request header of QUERY_SUBSCRIPTION_BY_CONSUMER."""

    group: Name
    topic: Name | None = None


class TopicGroupRequest(Header):
    """The request header of QUERY_CONSUME_TIME_SPAN."""

    topic: Name
    group: Name


class ResetOffsetRequest(Header):
    """The request header of INVOKE_BROKER_TO_RESET_OFFSET and RESET_CONSUMER_CLIENT_OFFSET."""

    topic: Name
    group: Name
    timestamp: Long
    """Where to reset to: a time in milliseconds; -1 means the end of each queue."""
    is_force: bool
    """Whether to move forward too, beyond the offset that the group has consumed."""
    queue_id: Int | None = None
    """Reset only this queue (tools of 5.x); None or -1 means all queues."""
    offset: Long | None = None
    """The offset for that queue, which replaces the timestamp; None or -1 means that there is none."""


class ConsumerStatusRequest(Header):
    """The request header of INVOKE_BROKER_TO_GET_CONSUMER_STATUS and GET_CONSUMER_STATUS_FROM_CLIENT."""

    topic: Name
    group: Name
    client_addr: Name | None = None
    """In fact a client id. Absent or empty means all clients of the group."""


class ConsumerRequest(Header):
    """The request header of GET_CONSUMER_RUNNING_INFO and CONSUME_MESSAGE_DIRECTLY.

    The request goes to one client of a group.
    """

    consumer_group: Name
    client_id: Name | None = None
    jstack_enable: bool | None = None
    msg_id: Name | None = None
    """An offset message id."""
    broker_name: Name | None = None


class CloneOffsetRequest(Header):
    """The request header of CLONE_GROUP_OFFSET. Without a topic: every topic with offsets of the source."""

    src_group: Name
    dest_group: Name
    topic: Name | None = None
    offline: bool = False


class BrokerConfigResponse(Header):
    """The response header of GET_BROKER_CONFIG; the body has the lines."""

    version: Name
    """A DataVersion as JSON."""


# Access control of 4.9.


class AccountRequest(Header):
    """The request header of UPDATE_AND_CREATE_ACL_CONFIG; settings that are absent do not change."""

    access_key: Name
    secret_key: Name | None = None
    white_remote_address: ListText | None = None
    admin: bool | None = None
    default_topic_perm: Name | None = None
    default_group_perm: Name | None = None
    topic_perms: ListText | None = None
    """The permissions of topics, for example `T=PUB,U=DENY`."""
    group_perms: ListText | None = None


class UserRequest(Header):
    """The request header of AUTH_CREATE_USER, AUTH_UPDATE_USER, AUTH_DELETE_USER and AUTH_GET_USER."""

    username: Name


class ListUsersRequest(Header):
    """The request header of AUTH_LIST_USER. `filter` is a part of a name."""

    filter: Name = ""


class SubjectRequest(Header):
    """The request header of AUTH_CREATE_ACL, AUTH_UPDATE_ACL and AUTH_GET_ACL. A subject is `User:NAME`."""

    subject: Name


class DeletePolicyRequest(Header):
    """The request header of AUTH_DELETE_ACL. Without a resource, the request means all of the subject's."""

    subject: Name
    policy_type: Name | None = None
    resource: Name | None = None


class ListPoliciesRequest(Header):
    """The request header of AUTH_LIST_ACL. The filters are parts of names."""

    subject_filter: Name = ""
    resource_filter: Name = ""


class DeleteAccountRequest(Header):
    """The request header of DELETE_ACL_CONFIG."""

    access_key: Name


class WhiteAddressesRequest(Header):
    """The request header of UPDATE_GLOBAL_WHITE_ADDRS_CONFIG."""

    global_white_addrs: ListText
    """The addresses, separated by commas."""


class AclVersionResponse(Header):
    """The response header of GET_BROKER_CLUSTER_ACL_INFO."""

    version: Name
    """A DataVersion as JSON."""
    broker_name: Name
    broker_addr: Name
    cluster_name: Name


# Brokers and clients at a name server.


class RegisterBrokerRequest(Header):
    broker_name: Name
    broker_addr: Name
    """IP:port at which clients reach the broker."""
    cluster_name: Name
    ha_server_addr: Name
    broker_id: Long
    """The broker's id; 0 is the master."""
    compressed: bool = False
    body_crc32: Int = msgspec.field(name="bodyCrc32", default=0)
    """CRC-32 of the body as sent, without its top bit; 0 means "do not check"."""
    heartbeat_timeout_millis: Long | None = msgspec.field(name="heartbeatTimeoutMillis", default=None)
    """The name server must remove the broker after this time without a heartbeat."""
    enable_acting_master: bool | None = msgspec.field(name="enableActingMaster", default=None)
    """Present from 5.x on. If true, the slave with the lowest id replaces a missing master in routes.

    With either value, the topics that this slave registers count while there is no master.
    """


class RegisterBrokerResponse(Header):
    ha_server_addr: Name | None = None
    master_addr: Name | None = None


class UnregisterBrokerRequest(Header):
    broker_name: Name
    broker_addr: Name
    cluster_name: Name
    broker_id: Long


class BrokerHeartbeatRequest(Header):
    cluster_name: Name
    broker_addr: Name
    broker_name: Name
    heartbeat_timeout_mills: Long | None = None


class DataVersionRequest(Header):
    """The request header of QUERY_DATA_VERSION: the body has the version that the broker would register."""

    broker_name: Name
    broker_addr: Name
    cluster_name: Name
    broker_id: Long


class DataVersionResponse(Header):
    changed: bool


class MemberGroupRequest(Header):
    """The request header of GET_BROKER_MEMBER_GROUP."""

    cluster_name: Name
    broker_name: Name


class RouteRequest(Header):
    topic: Name
    accept_standard_json_only: bool = False


# Administration of a name server.


class KvRequest(Header):
    """The request header of GET_KV_CONFIG and DELETE_KV_CONFIG."""

    namespace: Name
    key: Name


class PutKvRequest(Header):
    namespace: Name
    key: Name
    value: ValueText


class KvResponse(Header):
    value: ValueText | None = None


class KvNamespaceRequest(Header):
    """The request header of GET_KVLIST_BY_NAMESPACE."""

    namespace: Name


class BrokerNameRequest(Header):
    """The request header of WIPE_WRITE_PERM_OF_BROKER and ADD_WRITE_PERM_OF_BROKER."""

    broker_name: Name


class WipeWriteResponse(Header):
    wipe_topic_count: Int


class AddWriteResponse(Header):
    add_topic_count: Int


class ClusterRequest(Header):
    """The request header of GET_TOPICS_BY_CLUSTER."""

    cluster: Name


class DeleteRoutedTopicRequest(Header):
    """The request header of DELETE_TOPIC_IN_NAMESRV."""

    topic: Name
    cluster_name: Name | None = None
    """Delete only the queues of this cluster's brokers."""


class RegisterTopicRequest(Header):
    """The request header of REGISTER_TOPIC_IN_NAMESRV: the body has the queues, as a route."""

    topic: Name

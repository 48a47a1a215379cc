"""The JSON bodies that brokers, clients and name servers exchange, as types.

Read them with `java_json.read` and write them with `java_json.write`. Members are in the order in which
RocketMQ writes them, and have its defaults. See docs/reference/protocol/framing.md, "JSON bodies".
"""

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from mqproof.impl.remoting.headers import Int, ListText, Long, Name, ValueText
from mqproof.impl.remoting.java_json import ObjectKey

PERM_INHERIT: Final = 1
PERM_WRITE: Final = 2
PERM_READ: Final = 4
PERM_READ_WRITE: Final = PERM_READ | PERM_WRITE

TOPICS_MAX: Final = 100_000
"""The most topics in the table of a broker."""
LIST_MAX: Final = 10_000
"""The most topics, groups or queues in one request of a client."""
SUBSCRIPTIONS_MAX: Final = 10_000
"""The most subscriptions of one group."""
GROUPS_OF_CLIENT_MAX: Final = 1000
"""The most producer groups, and the most consumer groups, in one heartbeat."""
NESTING_MAX: Final = 16
"""The deepest nesting of a member that is only preserved."""
FILTERS_MAX: Final = 50_000
"""The most SQL92 expressions at a broker. This limits the memory that clients can occupy."""
_EXPRESSION_MAX: Final = 4096
_TAGS_MAX: Final = 4096
_FEW: Final = 1000


_Preserved = Annotated[dict[Name, Any], Meta(max_length=_FEW)]
"""An object that is only preserved; `_check_depth` limits its nesting."""

Attributes = Annotated[dict[Name, ListText], Meta(max_length=_FEW)]


class _Body(msgspec.Struct, rename="camel", frozen=True):
    pass


class DataVersion(_Body, frozen=True):
    """The version of a broker's table, such as its topics. The one with the higher counter is newer."""

    counter: Long = 0
    timestamp: Long = 0
    state_version: Long | UnsetType = UNSET
    """5.x: decides which of two brokers that claim one id is the later one."""


class TopicConfig(_Body, frozen=True):
    topic_name: Name
    order: bool = False
    perm: Int = PERM_READ_WRITE
    read_queue_nums: Int = 16
    topic_filter_type: Name = "SINGLE_TAG"
    topic_sys_flag: Int = 0
    write_queue_nums: Int = 16
    attributes: Attributes | UnsetType = UNSET
    """A member of 5.x, which is only preserved."""


class TopicConfigs(_Body, frozen=True):
    data_version: DataVersion
    topic_config_table: Annotated[dict[Name, TopicConfig], Meta(max_length=TOPICS_MAX)]


class AllTopics(TopicConfigs, frozen=True, omit_defaults=True):
    """The response body of GET_ALL_TOPIC_CONFIG."""

    deleted_topics: dict[str, int] = {}
    """For each deleted topic, the commit offset before which its records are. Only mqproof has this field."""


class TopicConfigList(_Body, frozen=True):
    """The request body of UPDATE_AND_CREATE_TOPIC_LIST."""

    topic_config_list: Annotated[list[TopicConfig], Meta(max_length=LIST_MAX)]


class RegisterBrokerBody(_Body, frozen=True):
    topic_config_serialize_wrapper: TopicConfigs
    filter_server_list: Annotated[list[Name], Meta(max_length=_FEW)] = []


class SubscriptionGroup(_Body, frozen=True):
    """The settings of a consumer group at a broker."""

    broker_id: Long = 0
    """The id of the broker that the group reads from."""
    consume_broadcast_enable: bool = True
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    group_name: Name = ""
    notify_consumer_ids_changed_enable: bool = True
    retry_max_times: Int = 16
    """How often a message is redelivered before it goes to the dead letter queue."""
    retry_queue_nums: Int = 1
    which_broker_when_consume_slowly: Long = 1
    # Members of 5.x, which are only preserved.
    attributes: Attributes | UnsetType = UNSET
    consume_message_orderly: bool | UnsetType = UNSET
    consume_timeout_minute: Int | UnsetType = UNSET
    group_retry_policy: _Preserved | UnsetType | None = UNSET
    group_sys_flag: Int | UnsetType = UNSET
    subscription_data_set: (
        Annotated[list[_Preserved], Meta(max_length=SUBSCRIPTIONS_MAX)] | UnsetType | None
    ) = UNSET

    def __post_init__(self) -> None:
        for value in (self.group_retry_policy, self.subscription_data_set):
            _check_depth(value, NESTING_MAX)


class SubscriptionGroupList(_Body, frozen=True):
    """The request body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""

    group_config_list: Annotated[list[SubscriptionGroup], Meta(max_length=LIST_MAX)]


class SubscriptionGroups(_Body, frozen=True):
    data_version: DataVersion
    subscription_group_table: dict[str, SubscriptionGroup]


class GroupFilter(_Body, frozen=True):
    """The SQL92 expression of a group for a topic, as consumerFilter.json has it."""

    topic: Name
    consumer_group: Name
    expression: Annotated[str, Meta(max_length=_EXPRESSION_MAX)]
    born_time: Long = 0
    client_version: Long = 0
    dead_time: Long = 0


class AllGroups(SubscriptionGroups, frozen=True, omit_defaults=True):
    """The response body of GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""

    filters: Annotated[list[GroupFilter], Meta(max_length=FILTERS_MAX)] = []
    """The expressions of the groups. Only mqproof has this field."""


class QueueData(_Body, frozen=True):
    """The queues of one topic at one broker name."""

    broker_name: Name
    perm: Int
    read_queue_nums: Int
    topic_sys_flag: Int = 0
    """The system flag of the topic. Name servers before 4.9 misspell the name of this field."""
    write_queue_nums: Int = 0


class BrokerData(_Body, frozen=True):
    """One broker name, with its addresses by broker id. The master has id 0."""

    broker_addrs: Annotated[dict[Long, Name], Meta(max_length=_FEW)]
    broker_name: Name
    cluster: Name
    enable_acting_master: bool | None = None
    zone_name: Name | None = None


class User(_Body, frozen=True):
    """The request body of AUTH_CREATE_USER and AUTH_UPDATE_USER, and the response body of AUTH_GET_USER.

    Our broker never returns a password.
    """

    username: Name = ""
    password: Name | UnsetType = UNSET
    user_type: Name | UnsetType = UNSET
    """Super or Normal."""
    user_status: Name | UnsetType = UNSET
    """enable or disable."""


class PolicyEntry(_Body, frozen=True):
    """What a policy decides about one resource, such as `Topic:T`."""

    resource: Name
    actions: Annotated[list[Name], Meta(max_length=_FEW)]
    decision: Name
    source_ips: Annotated[list[Name], Meta(max_length=_FEW)] | UnsetType = UNSET


class Policy(_Body, frozen=True):
    entries: Annotated[list[PolicyEntry], Meta(max_length=_FEW)]
    policy_type: Name = ""


class SubjectPolicies(_Body, frozen=True):
    """The request body of AUTH_CREATE_ACL and AUTH_UPDATE_ACL, and the response body of AUTH_GET_ACL."""

    subject: Name
    policies: Annotated[list[Policy], Meta(max_length=_FEW)]


class RequestMode(_Body, frozen=True):
    """The request body of SET_MESSAGE_REQUEST_MODE: how a group receives the messages of a topic."""

    consumer_group: Name
    topic: Name
    mode: Name = "PULL"
    pop_share_queue_num: Int = 0


class RequestModes(_Body, frozen=True):
    """The response body of GET_ALL_MESSAGE_REQUEST_MODE: the modes by topic and group."""

    message_request_mode_map: dict[str, dict[str, RequestMode]]


class HaConnection(_Body, frozen=True):
    """A slave of a master, as its master sees it. Positions are commit offsets."""

    addr: str
    slave_ack_offset: int
    diff: int
    """The bytes of the log that the slave has not acknowledged."""
    in_sync: bool
    transferred_byte_in_second: int
    transfer_from_where: int
    """The position up to which the log was sent."""


class HaClient(_Body, frozen=True):
    """A slave's side of replication. Times are in ms; 0 means never."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    is_activated: bool = msgspec.field(name="activated", default=False)


class HaStatus(_Body, frozen=True):
    """The response body of GET_BROKER_HA_STATUS."""

    master: bool
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HaConnection] = []
    ha_client_runtime_info: HaClient = HaClient()


class TopicRoute(_Body, frozen=True):
    broker_datas: Annotated[list[BrokerData], Meta(max_length=LIST_MAX)]
    queue_datas: Annotated[list[QueueData], Meta(max_length=LIST_MAX)]
    filter_server_table: Annotated[
        dict[Name, Annotated[list[Name], Meta(max_length=_FEW)] | None], Meta(max_length=LIST_MAX)
    ] = {}
    """Old name servers send null instead of a list."""
    order_topic_conf: ValueText | None = None


class MemberGroup(_Body, frozen=True):
    broker_member_group: BrokerData


class ClusterInfo(_Body, frozen=True):
    broker_addr_table: dict[str, BrokerData]
    cluster_addr_table: dict[str, list[str]]


class Subscription(_Body, frozen=True):
    """The subscription of a group to a topic. With type TAG, an empty code set selects everything."""

    topic: Name
    sub_string: ListText | None = "*"
    code_set: Annotated[list[Int], Meta(max_length=_TAGS_MAX)] = []
    """Java hash codes of the tags."""
    tags_set: Annotated[list[Name], Meta(max_length=_TAGS_MAX)] = []
    expression_type: Name | None = "TAG"
    sub_version: Long = 0
    """The time of the subscription in milliseconds. A higher one replaces a lower one."""
    class_filter_mode: bool = False
    """Whether clients filter with their own code; the broker then passes every message."""


if TYPE_CHECKING:
    _Constant = str
else:
    _Constant = Name | Int  # the type of received values; see ConsumerData

_CONSTANTS: Final = {
    "consume_from_where": (
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ),
    "consume_type": ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"),
    "message_model": ("BROADCASTING", "CLUSTERING"),
}


class ConsumerData(_Body, frozen=True):
    """How a member consumes. C++ clients send a constant as its ordinal, all others as its name."""

    group_name: Name
    consume_from_where: _Constant = "CONSUME_FROM_LAST_OFFSET"
    consume_type: _Constant = "CONSUME_PASSIVELY"
    message_model: _Constant = "CLUSTERING"
    subscription_data_set: Annotated[list[Subscription], Meta(max_length=SUBSCRIPTIONS_MAX)] = []
    unit_mode: bool = False

    def __post_init__(self) -> None:
        for field, names in _CONSTANTS.items():
            given = getattr(self, field)
            if isinstance(given, int):
                if not 0 <= given < len(names):
                    raise ValueError(f"{field} is {given}, 0 to {len(names) - 1} or a name expected")
                msgspec.structs.force_setattr(self, field, names[given])
            elif given not in names:
                raise ValueError(f"{field} is {given[:100]!r}, {', '.join(names)} expected")


class ProducerData(_Body, frozen=True):
    group_name: Name


class Heartbeat(_Body, frozen=True):
    client_id: Name = msgspec.field(name="clientID")
    consumer_data_set: Annotated[list[ConsumerData], Meta(max_length=GROUPS_OF_CLIENT_MAX)] = []
    producer_data_set: Annotated[list[ProducerData], Meta(max_length=GROUPS_OF_CLIENT_MAX)] = []


class ConsumerIds(_Body, frozen=True):
    consumer_id_list: list[str]


# Consumers and their queues.


class MessageQueue(_Body, frozen=True):
    """The name of a queue in bodies. Tables keyed by queue have an ObjectKey of it as the key."""

    broker_name: Name
    queue_id: Int
    topic: Name


class QueueLocks(_Body, frozen=True):
    """The request body of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

    client_id: Name
    consumer_group: Name
    mq_set: Annotated[list[MessageQueue], Meta(max_length=LIST_MAX)] = []


class LockedQueues(_Body, frozen=True):
    """The response to LOCK_BATCH_MQ: the requested queues that the client has locked now."""

    lock_ok_mq_set: list[MessageQueue] = msgspec.field(name="lockOKMQSet")


class ClientCheck(_Body, frozen=True):
    """The request body of CHECK_CLIENT_CONFIG."""

    client_id: Name
    group: Name
    subscription_data: Subscription | None = None


class Connection(_Body, frozen=True):
    client_addr: str
    client_id: Name
    language: str | None
    version: int


class ConsumerConnection(_Body, frozen=True):
    connection_set: list[Connection]
    consume_from_where: str
    consume_type: str
    message_model: str
    subscription_table: dict[str, Subscription]


class HeldQueue(_Body, frozen=True):
    """A queue that a consumer reads, and the messages it holds of it. Times are in ms; 0 means never."""

    cached_msg_count: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_size_in_mib: int = msgspec.field(name="cachedMsgSizeInMiB", default=0)
    commit_offset: int = 0
    droped: bool = False
    last_consume_timestamp: int = 0
    last_lock_timestamp: int = 0
    last_pull_timestamp: int = 0
    locked: bool = False
    transaction_msg_count: int = 0
    """The number of messages being consumed. Only for ordered queues."""
    transaction_msg_max_offset: int = 0
    transaction_msg_min_offset: int = 0
    try_unlock_times: int = 0


class TopicPace(_Body, frozen=True):
    """How fast a consumer is in one topic. Times are in milliseconds."""

    consume_failed_msgs: int = 0
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    pull_rt: float = msgspec.field(name="pullRT", default=0.0)
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)


class RunningInfo(_Body, frozen=True):
    """The response to GET_CONSUMER_RUNNING_INFO."""

    mq_table: dict[ObjectKey, HeldQueue] = {}
    """The queues that the client reads, keyed by MessageQueue."""
    properties: dict[str, str] = {}
    status_table: dict[str, TopicPace] = {}
    """The rates of consumption by topic."""
    subscription_set: list[Subscription] = []


class ConsumedDirectly(_Body, frozen=True):
    """The response to CONSUME_MESSAGE_DIRECTLY."""

    auto_commit: bool = True
    consume_result: str = "CR_SUCCESS"
    """CR_SUCCESS, CR_LATER or CR_THROW_EXCEPTION.

    Old listeners may also return CR_ROLLBACK, CR_COMMIT or CR_RETURN_NULL.
    """
    order: bool = False
    remark: str | None = None
    spent_time_mills: int = 0


class ProducerConnection(_Body, frozen=True):
    connection_set: list[Connection]


class QueueProgress(_Body, frozen=True):
    """The progress of a group in one queue."""

    broker_offset: int
    consumer_offset: int
    last_timestamp: int
    """The store time of the last consumed message in milliseconds, or 0 if there is none."""
    pull_offset: int = 0
    """5.x: the offset up to which messages were delivered since the broker started."""


class ConsumeStats(_Body, frozen=True):
    consume_tps: float = 0.0
    offset_table: dict[ObjectKey, QueueProgress] = {}
    """The progress in each queue, keyed by MessageQueue."""


class ConsumeStatsList(_Body, frozen=True):
    """The response body of GET_BROKER_CONSUME_STATS."""

    broker_addr: str
    consume_stats_list: list[dict[str, list[ConsumeStats]]]
    """One table per group, from the group to its progress in each of its topics."""
    total_diff: int = 0
    """The number of messages that groups have not consumed."""


class StatsWindow(_Body, frozen=True):
    """The counts of a minute, an hour or a day."""

    avgpt: float = 0.0
    """The average per addition to the counter."""
    sum: int = 0
    tps: float = 0.0


class BrokerStats(_Body, frozen=True):
    """The response body of VIEW_BROKER_STATS_DATA."""

    stats_day: StatsWindow
    stats_hour: StatsWindow
    stats_minute: StatsWindow


class CorrectionOffsets(_Body, frozen=True):
    """The response body of QUERY_CORRECTION_OFFSET."""

    correction_offsets: dict[int, int]
    """The offsets, keyed by queue id."""


class QueueEntry(_Body, frozen=True):
    """One unit of a consume queue."""

    eval: bool
    """Whether a filter accepted it; false without a filter."""
    physic_offset: int
    physic_size: int
    tags_code: int
    msg: str | None = None


class QueueEntries(_Body, frozen=True):
    """The response body of QUERY_CONSUME_QUEUE."""

    filter_data: str | None = None
    max_queue_index: int = 0
    min_queue_index: int = 0
    queue_data: list[QueueEntry] = []
    subscription_data: Subscription | None = None


class GroupSubscription(_Body, frozen=True):
    """The response body of QUERY_SUBSCRIPTION_BY_CONSUMER."""

    group: Name
    subscription_data: Subscription | None = None
    topic: Name | None = None


class QueueExtent(_Body, frozen=True):
    last_update_timestamp: int
    """The store time of the last message in milliseconds; 0 in an empty queue."""
    max_offset: int
    min_offset: int


class TopicStats(_Body, frozen=True):
    offset_table: dict[ObjectKey, QueueExtent] = {}
    """The extent of each queue, keyed by MessageQueue."""


class QueueOffsets(_Body, frozen=True):
    """The request body of RESET_CONSUMER_CLIENT_OFFSET, and the response to INVOKE_BROKER_TO_RESET_OFFSET."""

    offset_table: dict[ObjectKey, int] = {}
    """The offsets, keyed by MessageQueue."""


class ListedOffset(_Body, frozen=True):
    broker_name: Name
    offset: int
    queue_id: int
    topic: Name


class ListedOffsets(_Body, frozen=True):
    """The same as QueueOffsets, for clients that cannot read objects as keys."""

    offset_table: list[ListedOffset]


class ConsumerStatus(_Body, frozen=True):
    """The responses to GET_CONSUMER_STATUS_FROM_CLIENT and INVOKE_BROKER_TO_GET_CONSUMER_STATUS."""

    consumer_table: dict[str, dict[ObjectKey, int]] = {}
    """The offsets of each client, keyed by client id and then by MessageQueue."""
    message_queue_table: dict[ObjectKey, int] = {}
    """The offsets of the answering client, keyed by MessageQueue."""


class TimeSpan(_Body, frozen=True):
    """The store times in ms of the oldest, the newest and the last consumed message of a queue."""

    consume_time_stamp: int
    delay_time: int
    max_time_stamp: int
    message_queue: MessageQueue
    min_time_stamp: int


class TimeSpans(_Body, frozen=True):
    consume_time_span_set: list[TimeSpan]


class Table(_Body, frozen=True):
    """Names and texts, such as runtime information or the entries of a namespace."""

    table: dict[str, str]


class TopicList(_Body, frozen=True):
    broker_addr: str | None = None
    topic_list: list[str] = []


class GroupList(_Body, frozen=True):
    group_list: list[str]


class ProducerInfo(_Body, frozen=True):
    client_id: Name
    language: str | None
    last_update_timestamp: int
    remote_ip: str = msgspec.field(name="remoteIP")
    version: int


class ProducerTable(_Body, frozen=True):
    data: dict[str, list[ProducerInfo]]


def _check_depth(value: Any, levels: int) -> None:
    """Check the nesting of a preserved member. Raises ValueError."""
    if isinstance(value, (dict, list)):
        if not levels:
            raise ValueError(f"nested more than {NESTING_MAX} levels deep")
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, levels - 1)

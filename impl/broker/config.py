"""The configuration of a broker, and the keys of RocketMQ's properties file for it."""

from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_address
from typing import Any, Final

from mqproof.impl.dledger.config import GroupConfig, Membership, parse_peers
from mqproof.impl.metrics.config import METRICS_OPTIONS, MetricsConfig
from mqproof.impl.remoting import address_server
from mqproof.impl.remoting.address_server import NameServers
from mqproof.impl.remoting.bodies import PERM_READ_WRITE
from mqproof.impl.remoting.budget import ADDRESS_PERCENT, CONNECTION_PERCENT
from mqproof.impl.replication.config import LogCheck, ReplicationConfig, Role
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.properties import (
    ConfigError,
    Option,
    apply,
    boolean,
    from_afar,
    number,
    one_of,
    parse,
    text,
)
from mqproof.impl.runtime.security.peer_network import PeerConfig, parse_addresses
from mqproof.impl.store.config import QUEUE_UNIT_BYTES, FlushMode, StoreConfig
from mqproof.impl.store.delay import parse_levels, show_levels

_INT_MAX: Final = 2**31 - 1
_MASTERS: Final = (Role.ASYNC_MASTER, Role.SYNC_MASTER)


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    name: str = "broker-a"
    """The broker's name. A master and its slaves share it."""
    cluster: str = "DefaultCluster"
    """The name of the broker's cluster."""
    broker_id: int = 0
    """The broker's id; 0 is a master."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = 10911
    """The port to listen on; 0 selects any free port."""
    advertised_host: str = ""
    """The numeric address that clients use for the broker; empty means the listening address."""
    name_servers: NameServers = ()
    """The name servers: `HOST:PORT`, separated by `;`, or the URL of an address server."""
    store_directory: str = "store"
    """The directory of the store."""
    acl_enabled: bool = False
    """Whether requests need an account of the file `acl_path`."""
    acl_path: str = ""
    """The file of the accounts. Empty means config/plain_acl.yml in the store directory."""
    config_path: str = ""
    """The properties file that stores remotely made changes; empty if there is none."""
    auto_create_topics: bool = True
    """Whether a send creates its topic if the topic does not exist."""
    default_topic_queues: int = 8
    """Queues of the template topic; an automatically created topic has at most that many."""
    topic_queues_max: int = 1024
    """The most queues of a topic created by a client or an administrator."""
    topics_max: int = 50_000
    """The most topics. This limits the memory that clients can occupy, and the size of topics.json."""
    groups_max: int = 50_000
    """The most consumer groups."""
    offset_pairs_max: int = 1_000_000
    """The most pairs of topic and group with offsets."""
    holds_max: int = 100_000
    """The most pulls that wait for a message at once."""
    address_percent: int = ADDRESS_PERCENT
    """The share that one address may use of connections, held pulls, bytes, topics and groups, in percent."""
    connection_percent: int = CONNECTION_PERCENT
    """The share that one connection may use of these, in percent."""
    permission: int = PERM_READ_WRITE
    """The permissions of the broker as a whole: 4 is read, 2 is write, 6 is both."""
    region: str = "DefaultRegion"
    """The region that the broker reports to producers."""
    trace_on: bool = True
    """Whether clients may trace the messages that they send to this broker."""
    trace_topic: bool = False
    """Whether the topic of message traces exists from the start, with one queue."""
    sends_max: int = 10_000
    """The most sends that may wait at once; more are refused."""
    sends_bytes_max: int = 256 << 20
    """The most bytes of sends that may wait at once."""
    busy_ms: int = 1000
    """Sends are refused while one has waited for longer."""
    queue_lock_ms: int = 60_000
    """How long a client holds the lock of a queue without renewing it."""
    auto_create_groups: bool = True
    """Whether a consumer creates its group if the group does not exist."""
    offsets_flush_interval_ms: int = 5000
    """The pause between two writes of the groups' offsets."""
    delay_offsets_flush_interval_ms: int = 10_000
    """The pause between two writes of the positions in the delayed messages."""
    register_interval_ms: int = 30_000
    """The pause between two registrations at the name servers."""
    long_polling: bool = True
    """Whether a pull at the end of a queue waits as long as its client requests."""
    short_polling_ms: int = 1000
    """How long a pull is held when long polling is off."""
    pull_count_max: int = 32
    """The most messages in one answer, whatever the client requests."""
    pull_bytes_max: int = 256 << 10
    """The most bytes of messages in one answer."""
    far_pull_count_max: int = 8
    """The most messages in one answer when they are no longer in memory."""
    far_pull_bytes_max: int = 64 << 10
    """The most bytes of messages in one answer when they are no longer in memory."""
    memory_percent: int = 40
    """The part of the machine's memory that is assumed to hold the end of the log."""
    slave_readable: bool = False
    """Whether consumers are directed to a slave for old messages."""
    property_filter: bool = False
    """Whether consumers may select messages by SQL92 expressions over their properties."""
    filter_servers: bool = False
    """Whether filter servers may register, and thereby receive the pulls of consumers with functions."""
    store_replies: bool = True
    """Whether replies between clients are also stored, in the cluster's reply topic."""
    client_expiry_ms: int = 120_000
    """A client that stays silent for longer is removed."""
    reject_transactions: bool = False
    """Whether half messages are refused."""
    transaction_timeout_ms: int = 6000
    """How old a half message is when its producer is first asked for the end of its transaction."""
    transaction_check_interval_ms: int = 30_000
    """The pause between two rounds of checks."""
    transaction_checks_max: int = 15
    """A half message is discarded after this many checks."""
    transaction_operation_interval_ms: int = 3000
    """How long the ends of transactions are collected for one operation record."""
    transactions_open_max: int = 100_000
    """The most transactions that may be open; more half messages are refused."""
    timers: bool = True
    """Whether messages may ask for delivery after a time or at a time."""
    timer_delay_max_s: int = 259_200
    """The longest such delay, in seconds."""
    timers_waiting_max: int = 500_000
    """The most messages that may wait for such a time; more are refused. Each needs memory."""
    recalls: bool = True
    """Whether a message that waits may be recalled."""
    store: StoreConfig = field(default_factory=StoreConfig)
    replication: ReplicationConfig = field(default_factory=ReplicationConfig)
    """The settings of replication. In a group, `role` and `broker_id` change with its leader."""
    membership: Membership = field(default_factory=Membership)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    peer_access: PeerConfig = field(default_factory=PeerConfig)
    """Which slaves and members may connect."""

    @property
    def node(self) -> str:
        """The name in event logs. A master and its slaves share the broker's name, so this adds an id."""
        if self.membership.is_member:
            return f"{self.name}-{self.membership.self_id}"
        return f"{self.name}-{self.broker_id}" if self.broker_id else self.name

    @property
    def group(self) -> GroupConfig:
        """The group configuration of a member."""
        member = self.membership
        ids = tuple(peer.id for peer in member.peers)
        return GroupConfig(member.group or self.name, member.self_id, ids, member.preferred_leaders)

    def with_role(self, *, leads: bool) -> "BrokerConfig":
        """Return the configuration of a member as leader or follower of its group."""
        role, broker_id = (Role.SYNC_MASTER, 0) if leads else (Role.SLAVE, self.membership.slave_id)
        return replace(self, broker_id=broker_id, replication=replace(self.replication, role=role))

    def __post_init__(self) -> None:
        advertised = self.advertised_host or self.host
        if advertised in ("0.0.0.0", "::"):
            raise ValueError(f"host is {advertised}: brokerIP1 must say where clients reach the broker")
        if self.advertised_host:
            ip_address(self.advertised_host)
        self._check_peers()
        role = self.replication.role
        if role is not None and self.replication.is_slave == (self.broker_id == 0):
            raise ValueError(
                f"brokerId is {self.broker_id} and brokerRole {role.value}: only a master has id 0"
            )

    def _check_peers(self) -> None:
        is_member, role = self.membership.is_member, self.replication.role
        if self.acl_enabled and (is_member or role in _MASTERS) and self.peer_access.is_open:
            raise ValueError(
                "aclEnable is true, but any peer could read all messages on the port of slaves or members:"
                " set peerSecretFile or peerAddresses"
            )
        as_shipped = self.replication.log_check is LogCheck.AS_SHIPPED
        if self.peer_access.secret_file and role is not None and as_shipped:
            raise ValueError("haLogCheck is AS_SHIPPED: with peerSecretFile, slaves must prove their logs")


def _name_servers(value: str) -> NameServers:
    try:
        return address_server.parse(value)
    except ValueError:
        raise ValueError("HOST:PORT, several separated by ';', or the URL of an address server") from None


def _address(value: str) -> Address:
    try:
        return Address.parse(value)
    except ValueError:
        raise ValueError("HOST:PORT") from None


def _ids(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(";") if part.strip())


def _ip(value: str) -> str:
    try:
        return str(ip_address(value))
    except ValueError:
        raise ValueError("a numeric IP address") from None


def _hours(value: str) -> tuple[int, ...]:
    hours = tuple(int(part) for part in value.split(";") if part.strip().isdecimal())
    if not hours or len(hours) < len(value.split(";")) or max(hours) > 23:
        raise ValueError("hours from 00 to 23, separated by ';',")
    return hours


def _hours_as_ms(value: str) -> int:
    return number(1, 1_000_000)(value) * 3_600_000


def _ms_as_hours(milliseconds: int) -> str:
    return str(milliseconds // 3_600_000)


def _percent(value: str) -> int:
    """Convert a ratio such as 0.85 (4.9) or a percentage such as 85 (5.x)."""
    if value.startswith("0."):
        return number(1, 99)(value[2:4].ljust(2, "0"))
    return number(1, 100)(value)


_FLUSH_MODE = one_of({mode.value: mode for mode in FlushMode})
_MS = number(1, _INT_MAX)

OPTIONS: Final = {
    "brokerName": Option("name", text),
    "brokerClusterName": Option("cluster", text),
    "brokerId": Option("broker_id", number(0, _INT_MAX)),
    "brokerIP1": Option("advertised_host", _ip),
    "listenPort": Option("port", number(0, 65535)),
    "namesrvAddr": Option("name_servers", _name_servers),
    "storePathRootDir": Option("store_directory", text),
    "autoCreateTopicEnable": Option("auto_create_topics", boolean),
    "autoCreateSubscriptionGroup": Option("auto_create_groups", boolean),
    "defaultTopicQueueNums": Option("default_topic_queues", number(1, 1024)),
    "flushConsumerOffsetInterval": Option("offsets_flush_interval_ms", _MS),
    "flushDelayOffsetInterval": Option("delay_offsets_flush_interval_ms", _MS),
    # RocketMQ limits the period to 10 to 60 seconds.
    "registerNameServerPeriod": Option("register_interval_ms", number(10_000, 60_000)),
    "maxTransferCountOnMessageInMemory": Option("pull_count_max", number(1, 32_768)),
    "maxTransferBytesOnMessageInMemory": Option("pull_bytes_max", number(1, 8 << 20)),
    "maxTransferCountOnMessageInDisk": Option("far_pull_count_max", number(1, 32_768)),
    "maxTransferBytesOnMessageInDisk": Option("far_pull_bytes_max", number(1, 8 << 20)),
    "accessMessageInMemoryMaxRatio": Option("memory_percent", number(1, 100)),
    "slaveReadEnable": Option("slave_readable", boolean),
    "brokerPermission": Option("permission", number(0, 7)),
    "regionId": Option("region", text),
    "traceOn": Option("trace_on", boolean),
    "traceTopicEnable": Option("trace_topic", boolean),
    "aclEnable": Option("acl_enabled", boolean),
    "aclFile": Option("acl_path", str),
    "sendThreadPoolQueueCapacity": Option("sends_max", number(1, _INT_MAX)),
    "osPageCacheBusyTimeOutMills": Option("busy_ms", _MS),
    "pullThreadPoolQueueCapacity": Option("holds_max", number(1, 10_000_000)),
    "addressSharePercent": Option("address_percent", number(1, 100)),
    "connectionSharePercent": Option("connection_percent", number(1, 100)),
    "enablePropertyFilter": Option("property_filter", boolean),
    "filterServerEnable": Option("filter_servers", boolean),
    "longPollingEnable": Option("long_polling", boolean),
    "shortPollingTimeMills": Option("short_polling_ms", _MS),
    "storeReplyMessageEnable": Option("store_replies", boolean),
    "rejectTransactionMessage": Option("reject_transactions", boolean),
    "transactionTimeOut": Option("transaction_timeout_ms", _MS),
    "transactionCheckInterval": Option("transaction_check_interval_ms", _MS),
    "transactionCheckMax": Option("transaction_checks_max", number(1, _INT_MAX)),
    "transactionOpBatchInterval": Option("transaction_operation_interval_ms", _MS),
    "transactionsOpenMax": Option("transactions_open_max", number(1, _INT_MAX)),
    "timerWheelEnable": Option("timers", boolean),
    "timerMaxDelaySec": Option("timer_delay_max_s", number(1, _INT_MAX)),
    "timersWaitingMax": Option("timers_waiting_max", number(1, 10_000_000)),
    "recallMessageEnable": Option("recalls", boolean),
}
"""Maps a key in the file to the field of BrokerConfig."""

RUNNING_KEYS: Final = frozenset(
    {
        "autoCreateTopicEnable",
        "autoCreateSubscriptionGroup",
        "shortPollingTimeMills",
        "longPollingEnable",
        "brokerPermission",
        "regionId",
        "traceOn",
        "maxTransferCountOnMessageInMemory",
        "maxTransferBytesOnMessageInMemory",
        "maxTransferCountOnMessageInDisk",
        "maxTransferBytesOnMessageInDisk",
        "accessMessageInMemoryMaxRatio",
        "slaveReadEnable",
        "storeReplyMessageEnable",
        "rejectTransactionMessage",
        "transactionTimeOut",
        "transactionCheckInterval",
        "transactionCheckMax",
        "transactionsOpenMax",
        "timerWheelEnable",
        "timerMaxDelaySec",
        "timersWaitingMax",
        "recallMessageEnable",
        "enablePropertyFilter",
        "filterServerEnable",
        "maxMessageSize",
        "syncFlushTimeout",
        "deleteWhen",
        "fileReservedTime",
        "diskMaxUsedSpaceRatio",
        "diskSpaceCleanForciblyRatio",
        "diskSpaceWarningLevelRatio",
        "cleanFileForciblyEnable",
    }
)
"""The keys that can be changed while the broker runs."""

PROTECTED: Final = frozenset({"brokerConfigPath", "configBlackList", "rocketmqHome"})
"""The keys that cannot be changed remotely."""

STORE_OPTIONS: Final = {
    "flushDiskType": Option("flush_mode", _FLUSH_MODE),
    "mappedFileSizeCommitLog": Option("commit_log_segment_bytes", number(1024, _INT_MAX)),
    "mappedFileSizeConsumeQueue": Option("consume_queue_segment_bytes", number(QUEUE_UNIT_BYTES, _INT_MAX)),
    "messageIndexEnable": Option("index_enabled", boolean),
    "maxHashSlotNum": Option("index_slots", number(1, _INT_MAX)),
    "maxIndexNum": Option("index_entries", number(2, _INT_MAX)),
    "maxMessageSize": Option("message_bytes_max", number(1, 64 << 20)),
    "syncFlushTimeout": Option("sync_flush_timeout_ms", _MS),
    "flushIntervalCommitLog": Option("flush_log_interval_ms", _MS),
    "flushCommitLogThoroughInterval": Option("flush_log_thorough_interval_ms", _MS),
    "flushIntervalConsumeQueue": Option("flush_queues_interval_ms", _MS),
    "flushConsumeQueueThoroughInterval": Option("checkpoint_interval_ms", _MS),
    "deleteWhen": Option("delete_when_hours", _hours),
    "fileReservedTime": Option("file_reserved_ms", _hours_as_ms, _ms_as_hours),
    "diskMaxUsedSpaceRatio": Option("disk_used_percent_max", number(1, 100)),
    "diskSpaceCleanForciblyRatio": Option("disk_forcibly_percent", _percent),
    "diskSpaceWarningLevelRatio": Option("disk_warning_percent", _percent),
    "cleanFileForciblyEnable": Option("clean_forcibly", boolean),
    "cleanResourceInterval": Option("clean_interval_ms", _MS),
    "scrubEnable": Option("scrub_enabled", boolean),
    "scrubBytesPerSecond": Option("scrub_bytes_per_s", number(1, _INT_MAX)),
    "scrubInterval": Option("scrub_interval_ms", _MS),
    "messageDelayLevel": Option("delay_levels_ms", parse_levels, show_levels),
}
"""Maps a key in the file to the field of StoreConfig."""


REPLICATION_OPTIONS: Final = {
    "brokerRole": Option("role", one_of({role.value: role for role in Role})),
    "haListenPort": Option("ha_port", number(0, 65535)),
    "haMasterAddress": Option("ha_master", _address),
    "haLogCheck": Option("log_check", one_of({check.value: check for check in LogCheck})),
    "inSyncReplicas": Option("in_sync_replicas", number(1, 64)),
    "haSlaveFallbehindMax": Option("fall_behind_bytes_max", number(1, _INT_MAX)),
    "slaveTimeout": Option("slave_timeout_ms", _MS),
    "haSendHeartbeatInterval": Option("heartbeat_ms", _MS),
    "haHousekeepingInterval": Option("housekeeping_ms", _MS),
}
"""Maps a key in the file to the field of ReplicationConfig."""

MEMBERSHIP_OPTIONS: Final = {
    "enableDLegerCommitLog": Option("is_member", boolean),
    "dLegerGroup": Option("group", text),
    "dLegerPeers": Option("peers", parse_peers),
    "dLegerSelfId": Option("self_id", text),
    "preferredLeaderIds": Option("preferred_leaders", _ids),
}
"""Maps a key in the file to the field of Membership."""

PEER_OPTIONS: Final = {
    "peerSecretFile": Option("secret_file", text),
    "peerAddresses": Option("peer_addresses", parse_addresses),
}
"""Maps a key in the file to the field of PeerConfig."""

_ALL_OPTIONS: Final = {
    **OPTIONS,
    **STORE_OPTIONS,
    **REPLICATION_OPTIONS,
    **MEMBERSHIP_OPTIONS,
    **PEER_OPTIONS,
    **METRICS_OPTIONS,
}


def read(file_text: str, where: str) -> tuple[BrokerConfig, tuple[str, ...]]:
    """Return the configuration in a properties file, and the unknown keys in it.

    Raises:
        ConfigError: a line without '=', or a value that its key cannot have.
    """
    properties = parse(file_text, where)
    store_fields = apply(properties, STORE_OPTIONS)
    if segment := store_fields.get("consume_queue_segment_bytes"):
        store_fields["consume_queue_segment_bytes"] = -(-segment // QUEUE_UNIT_BYTES) * QUEUE_UNIT_BYTES
    others = apply(
        properties,
        {**OPTIONS, **REPLICATION_OPTIONS, **MEMBERSHIP_OPTIONS, **PEER_OPTIONS, **METRICS_OPTIONS},
    )
    config = with_changes(BrokerConfig(), {**others, **store_fields})
    unknown = [key for key in properties if key not in _ALL_OPTIONS]
    return config, tuple(unknown)


def show(config: BrokerConfig) -> str:
    """Return the configuration as the text of a properties file."""
    values = {key: option.show(getattr(config, option.field)) for key, option in OPTIONS.items()}
    values |= {key: option.show(getattr(config.store, option.field)) for key, option in STORE_OPTIONS.items()}
    replication = config.replication
    for key, option in REPLICATION_OPTIONS.items():
        if (value := getattr(replication, option.field)) is not None:
            values[key] = option.show(value)
    values |= {
        key: option.show(getattr(config.metrics, option.field)) for key, option in METRICS_OPTIONS.items()
    }
    for key, option in PEER_OPTIONS.items():
        if value := getattr(config.peer_access, option.field):
            values[key] = option.show(value)
    if config.membership.is_member:
        for key, option in MEMBERSHIP_OPTIONS.items():
            values[key] = option.show(getattr(config.membership, option.field))
    return "".join(f"{key}={value}\n" for key, value in values.items())


def updated(config: BrokerConfig, properties_text: str) -> BrokerConfig:
    """Return the configuration after a remote change; unknown keys change nothing.

    Raises:
        ProtectedKeyError, ConfigError: as `properties.from_afar`, or a value that its key cannot have.
    """
    fixed = frozenset(_ALL_OPTIONS) - RUNNING_KEYS
    properties = from_afar(properties_text, protected=PROTECTED, fixed=fixed)
    return with_changes(config, {**apply(properties, OPTIONS), **apply(properties, STORE_OPTIONS)})


def with_changes(config: BrokerConfig, changes: dict[str, Any]) -> BrokerConfig:
    """Return the configuration with fields of it or of its parts changed; a value None changes nothing.

    Raises:
        ConfigError: the parts cannot work with this combination of values.
    """
    given = {name: value for name, value in changes.items() if value is not None}

    def of(part: type) -> dict[str, Any]:
        names = {item.name for item in fields(part)}
        return {name: value for name, value in given.items() if name in names}

    try:
        store = replace(config.store, **of(StoreConfig))
        replication = replace(config.replication, **of(ReplicationConfig))
        member = replace(config.membership, **of(Membership))
        peers = replace(config.peer_access, **of(PeerConfig))
        metrics = replace(config.metrics, **of(MetricsConfig))
        return replace(
            config,
            **of(BrokerConfig),
            store=store,
            replication=replication,
            membership=member,
            peer_access=peers,
            metrics=metrics,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None

"""The configuration of a name server, and RocketMQ's names for the keys in a properties file.

Some keys can be read and changed while the name server runs. See docs/reference/protocol/name-server.md,
"Administration of a name server".
"""

from dataclasses import dataclass, field, replace
from typing import Final

from mqproof.impl.metrics.config import METRICS_OPTIONS, MetricsConfig
from mqproof.impl.namesrv.route_table import Bounds
from mqproof.impl.remoting.budget import ADDRESS_PERCENT, CONNECTION_PERCENT
from mqproof.impl.runtime.properties import Option, apply, boolean, from_afar, number, text

_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = 9876
    """The port to listen on; 0 is any free port."""
    kv_path: str = "store/namesrv/kvConfig.json"
    """The file of the key-value configuration."""
    acl_enabled: bool = False
    """Whether requests that change the name server need an account of the file `acl_path`."""
    acl_path: str = ""
    """The file of the accounts. Empty means plain_acl.yml beside the file `kv_path`."""
    address_percent: int = ADDRESS_PERCENT
    """The share that one address may use of connections and bytes, in percent."""
    connection_percent: int = CONNECTION_PERCENT
    """The share that one connection may use of the bytes, in percent."""
    config_path: str = ""
    """The properties file that stores configuration changes made over the network, if there is one."""
    scan_interval_ms: int = 10_000
    """The pause between two searches for brokers that are silent."""
    broker_expiry_ms: int = 120_000
    """The expiry time of brokers that do not request one."""
    order_messages: bool = False
    """Whether a route has the number of queues per broker of an ordered topic."""
    return_order_to_brokers: bool = True
    """Whether the response to a registration has the ordered topics and their queues per broker."""
    acting_masters: bool = False
    """Whether a slave replaces a missing master in routes.

    It is the slave with the lowest id, and only if its broker allows it.
    """
    wait_for_service: bool = False
    """Whether to refuse route requests until `wait_s` after the start, so that brokers can register first."""
    wait_s: int = 45
    """How long route requests are refused after the start, with `wait_for_service`."""
    list_topics: bool = True
    """Whether to list the topics of a cluster."""
    list_all_topics: bool = True
    """Whether to list all topics."""
    forget_unlisted: bool = False
    """Whether to delete the topics of a master that its changed registration does not list."""
    bounds: Bounds = field(default_factory=Bounds)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)


START_OPTIONS: Final = {
    "listenPort": Option("port", number(0, 65535)),
    "kvConfigPath": Option("kv_path", text),
    "aclEnable": Option("acl_enabled", boolean),
    "aclFile": Option("acl_path", str),
    "addressSharePercent": Option("address_percent", number(1, 100)),
    "connectionSharePercent": Option("connection_percent", number(1, 100)),
}
"""The options that are read only at the start: key in the file to Option (a field of NameServerConfig)."""

RUNNING_OPTIONS: Final = {
    "scanNotActiveBrokerInterval": Option("scan_interval_ms", number(1, _INT_MAX)),
    "orderMessageEnable": Option("order_messages", boolean),
    "returnOrderTopicConfigToBroker": Option("return_order_to_brokers", boolean),
    "supportActingMaster": Option("acting_masters", boolean),
    "needWaitForService": Option("wait_for_service", boolean),
    "waitSecondsForService": Option("wait_s", number(0, _INT_MAX)),
    "enableTopicList": Option("list_topics", boolean),
    "enableAllTopicList": Option("list_all_topics", boolean),
    "deleteTopicWithBrokerRegistration": Option("forget_unlisted", boolean),
}
"""The options that can change while the name server runs: key in the file to Option."""

OPTIONS: Final = {**START_OPTIONS, **RUNNING_OPTIONS}

PROTECTED: Final = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})
"""Keys that cannot be changed over the network."""


def show(config: NameServerConfig) -> str:
    """Return the configuration as the text of a properties file."""
    values = [(key, option.show(getattr(config, option.field))) for key, option in OPTIONS.items()]
    values += [
        (key, option.show(getattr(config.metrics, option.field))) for key, option in METRICS_OPTIONS.items()
    ]
    return "".join(f"{key}={value}\n" for key, value in values)


def updated(config: NameServerConfig, properties_text: str) -> NameServerConfig:
    """Return the configuration after a change made over the network. Unknown keys have no effect.

    Raises:
        ProtectedKeyError, ConfigError: as `properties.from_afar`, or a value is invalid for its key.
    """
    properties = from_afar(
        properties_text, protected=PROTECTED, fixed=frozenset({**START_OPTIONS, **METRICS_OPTIONS})
    )
    return replace(config, **apply(properties, RUNNING_OPTIONS))

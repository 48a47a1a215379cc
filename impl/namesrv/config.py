"""What can be set on a name server, and RocketMQ's own names for it in a properties file.

Some of it can be asked for and changed while the name server runs. See docs/protocol.md, "Name server".
"""

from dataclasses import dataclass, field, replace
from typing import Final

from mqproof.impl.namesrv.route_table import Bounds
from mqproof.impl.runtime.properties import Option, apply, boolean, from_afar, number, text

_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    host: str = "127.0.0.1"
    port: int = 9876
    """0 is any free port."""
    kv_path: str = "store/namesrv/kvConfig.json"
    config_path: str = ""
    """The properties file that keeps what is changed from afar, if there is one."""
    scan_interval_ms: int = 10_000
    broker_expiry_ms: int = 120_000
    """Of brokers that do not name a time themselves."""
    order_messages: bool = False
    """Whether a route tells how many queues each broker gives to an ordered topic."""
    tell_brokers_order: bool = True
    """Whether the answer to a registration does."""
    acting_masters: bool = False
    """Whether the least slave of a broker that allows it is shown as its master while there is none."""
    wait_for_service: bool = False
    """Whether routes are refused until `wait_s` after the start, so that brokers register first."""
    wait_s: int = 45
    list_topics: bool = True
    """Whether the topics of a cluster are told."""
    list_all_topics: bool = True
    """Whether all topics are."""
    forget_unlisted: bool = False
    """Whether a master's topics are forgotten that a changed registration does not list."""
    bounds: Bounds = field(default_factory=Bounds)


START_OPTIONS: Final = {
    "listenPort": Option("port", number(0, 65535)),
    "kvConfigPath": Option("kv_path", text),
}
"""Key in the file to the field of NameServerConfig: what counts at the start."""

RUNNING_OPTIONS: Final = {
    "scanNotActiveBrokerInterval": Option("scan_interval_ms", number(1, _INT_MAX)),
    "orderMessageEnable": Option("order_messages", boolean),
    "returnOrderTopicConfigToBroker": Option("tell_brokers_order", boolean),
    "supportActingMaster": Option("acting_masters", boolean),
    "needWaitForService": Option("wait_for_service", boolean),
    "waitSecondsForService": Option("wait_s", number(0, _INT_MAX)),
    "enableTopicList": Option("list_topics", boolean),
    "enableAllTopicList": Option("list_all_topics", boolean),
    "deleteTopicWithBrokerRegistration": Option("forget_unlisted", boolean),
}
"""The same: what can change while the name server runs."""

OPTIONS: Final = {**START_OPTIONS, **RUNNING_OPTIONS}

PROTECTED: Final = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})
"""Keys that nobody may change from afar."""


def show(config: NameServerConfig) -> str:
    """The configuration as the text of a properties file."""
    values = ((key, option.show(getattr(config, option.field))) for key, option in OPTIONS.items())
    return "".join(f"{key}={value}\n" for key, value in values)


def updated(config: NameServerConfig, properties_text: str) -> NameServerConfig:
    """The configuration after a change from afar; keys that we do not know change nothing.

    Raises:
        ProtectedKeyError, ConfigError: as `properties.from_afar`, or a value that its key cannot have.
    """
    properties = from_afar(properties_text, protected=PROTECTED, fixed=frozenset(START_OPTIONS))
    return replace(config, **apply(properties, RUNNING_OPTIONS))

"""The JSON bodies that brokers, clients and name servers exchange, as types.

Read with `java_json.read`, written with `java_json.write`. Members appear in the order in which RocketMQ
writes them, and have its defaults. See docs/protocol.md, "JSON bodies".
"""

from typing import Final

import msgspec

PERM_INHERIT: Final = 1
PERM_WRITE: Final = 2
PERM_READ: Final = 4
PERM_READ_WRITE: Final = PERM_READ | PERM_WRITE


class _Body(msgspec.Struct, rename="camel", frozen=True):
    pass


class DataVersion(_Body, frozen=True):
    """Of a broker's topic table: it is newer when the counter is."""

    counter: int = 0
    timestamp: int = 0


class TopicConfig(_Body, frozen=True):
    topic_name: str
    order: bool = False
    perm: int = PERM_READ_WRITE
    read_queue_nums: int = 16
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    write_queue_nums: int = 16


class TopicConfigs(_Body, frozen=True):
    data_version: DataVersion
    topic_config_table: dict[str, TopicConfig]


class RegisterBrokerBody(_Body, frozen=True):
    topic_config_serialize_wrapper: TopicConfigs
    filter_server_list: list[str] = []


class QueueData(_Body, frozen=True):
    """The queues of one topic at one broker name."""

    broker_name: str
    perm: int
    read_queue_nums: int
    topic_sys_flag: int
    write_queue_nums: int


class BrokerData(_Body, frozen=True):
    """One broker name: its addresses by broker id, of which 0 is the master."""

    broker_addrs: dict[int, str]
    broker_name: str
    cluster: str


class TopicRoute(_Body, frozen=True):
    broker_datas: list[BrokerData]
    queue_datas: list[QueueData]
    filter_server_table: dict[str, list[str]] = {}
    order_topic_conf: str | None = None


class ClusterInfo(_Body, frozen=True):
    broker_addr_table: dict[str, BrokerData]
    cluster_addr_table: dict[str, list[str]]


class Subscription(_Body, frozen=True):
    """What a group wants of a topic. An empty code set is everything."""

    topic: str
    sub_string: str | None = "*"
    code_set: list[int] = []
    """Java hash codes of the tags."""
    tags_set: list[str] = []
    expression_type: str | None = "TAG"
    sub_version: int = 0
    """Milliseconds when the subscription was made; a greater one replaces a smaller one."""


class ConsumerData(_Body, frozen=True):
    group_name: str
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    subscription_data_set: list[Subscription] = []
    unit_mode: bool = False


class ProducerData(_Body, frozen=True):
    group_name: str


class Heartbeat(_Body, frozen=True):
    client_id: str = msgspec.field(name="clientID")
    consumer_data_set: list[ConsumerData] = []
    producer_data_set: list[ProducerData] = []


class ConsumerIds(_Body, frozen=True):
    consumer_id_list: list[str]

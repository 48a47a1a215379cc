"""What a cluster is configured to do, for files: topics, groups, and settings of brokers."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from mqproof.impl.admin.admin import MASTER_ID, Admin, address_of, read_body
from mqproof.impl.admin.brokers import config
from mqproof.impl.admin.groups import settings
from mqproof.impl.admin.system_names import TopicKind, is_system_group, topic_kind
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting.bodies import AllTopics, BrokerData, TopicConfig
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.runtime.network import Address

_EXPORTED: Final = frozenset(
    {
        *(
            "brokerClusterName",
            "brokerId",
            "brokerName",
            "brokerRole",
            "fileReservedTime",
            "filterServerNums",
        ),
        *("flushDiskType", "maxMessageSize", "messageDelayLevel", "msgTraceTopicName", "slaveReadEnable"),
        *("traceOn", "traceTopicEnable", "useTLS", "autoCreateTopicEnable", "autoCreateSubscriptionGroup"),
    }
)
"""The settings of a broker that are exported. Others may be secrets: brokers of 5.x have passwords there."""


async def topics_at(admin: Admin, brokers: Sequence[Address], *, special: bool) -> dict[str, Any]:
    """Return the topics of brokers by name, as JSON values; of several brokers, the first one counts.

    System topics are left out, and without `special` retry and dead letter topics too.
    """
    own = await _own_names(admin)
    wanted = {TopicKind.NORMAL} | ({TopicKind.RETRY, TopicKind.DEAD_LETTER} if special else set())
    found: dict[str, TopicConfig] = {}
    for broker in brokers:
        answer = read_body(AllTopics, await admin.ask(broker, RequestCode.GET_ALL_TOPIC_CONFIG))
        for name, topic in answer.topic_config_table.items():
            if topic_kind(name, own) in wanted:
                found.setdefault(name, topic)
    return {name: msgspec.to_builtins(found[name]) for name in sorted(found)}


async def groups_at(admin: Admin, brokers: Sequence[Address]) -> dict[str, Any]:
    """Return the consumer groups of brokers, as `topics_at`."""
    found: dict[str, Any] = {}
    for broker in brokers:
        for name, group in (await settings(admin, broker)).items():
            if not is_system_group(name):
                found.setdefault(name, msgspec.to_builtins(group))
    return dict(sorted(found.items()))


async def configurations(admin: Admin, cluster: str) -> dict[str, Any]:
    """Return the number of servers of a cluster, and settings of its masters.

    Raises ClientError when the cluster has no master.
    """
    info = await admin.cluster_info()
    brokers = [info.broker_addr_table[name] for name in sorted(info.cluster_addr_table.get(cluster, []))]
    masters = {each.broker_name: each.broker_addrs[MASTER_ID] for each in brokers if _has_master(each)}
    if not masters:
        raise ClientError(f"no master in cluster {cluster}")
    found = {name: await config(admin, address_of(text)) for name, text in masters.items()}
    return {
        "clusterScale": {
            "namesrvSize": len(await admin.session.name_servers.known()),
            "masterBrokerSize": len(masters),
            "slaveBrokerSize": sum(len(each.broker_addrs) - _has_master(each) for each in brokers),
        },
        "brokerConfigs": {
            name: {key: value for key, value in sorted(values.items()) if key in _EXPORTED}
            for name, values in found.items()
        },
    }


def _has_master(broker: BrokerData) -> bool:
    return MASTER_ID in broker.broker_addrs


async def _own_names(admin: Admin) -> frozenset[str]:
    """Return the names of all clusters and brokers, because these are topics too."""
    info = await admin.cluster_info()
    return frozenset(info.cluster_addr_table) | frozenset(info.broker_addr_table)

"""Operations on brokers: list them, and read their state and configuration."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.impl.admin.admin import Admin, UnreachableError, address_of, read_body
from mqproof.impl.client.model import ClientError, RefusalError
from mqproof.impl.remoting.bodies import AllTopics, HaStatus, SubscriptionGroups, Table
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.properties import ConfigError, parse

_MEASURED: Final = frozenset(
    {
        *("brokerVersionDesc", "commitLogDiskRatio", "consumeQueueDiskRatio", "putMessageAverageSize"),
        *("putTps", "getTransferedTps", "getTransferredTps", "getFoundTps", "getMissTps", "getTotalTps"),
        *("msgPutTotalTodayNow", "msgPutTotalTodayMorning", "msgPutTotalYesterdayMorning"),
        *("msgGetTotalTodayNow", "msgGetTotalTodayMorning", "msgGetTotalYesterdayMorning"),
        *("commitLogMinOffset", "commitLogMaxOffset", "dispatchBehindBytes", "remainHowManyDataToFlush"),
    }
)
"""The entries of a broker's runtime information that `exportMetrics` writes."""


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The state of one broker of a cluster."""

    cluster: str
    name: str
    id: int
    address: Address
    status: Mapping[str, str] | None
    """The broker's runtime information; None when the request failed."""


async def cluster_states(admin: Admin, only: str | None = None) -> list[BrokerState]:
    """Return every broker that the name server knows, or those of one cluster.

    They are sorted by cluster, name and id.
    """
    info = await admin.cluster_info()
    brokers = [
        (cluster, name, id_, address_of(text))
        for cluster, names in info.cluster_addr_table.items()
        if only in (None, cluster)
        for name in names
        for id_, text in info.broker_addr_table[name].broker_addrs.items()
    ]

    async def state(cluster: str, name: str, id_: int, address: Address) -> BrokerState:
        try:
            return BrokerState(cluster, name, id_, address, await status(admin, address))
        except (UnreachableError, RefusalError):
            return BrokerState(cluster, name, id_, address, None)

    return list(await asyncio.gather(*(state(*broker) for broker in sorted(brokers))))


async def status(admin: Admin, broker: Address) -> dict[str, str]:
    """Return the broker's runtime information: texts, under RocketMQ's names."""
    return read_body(Table, await admin.ask(broker, RequestCode.GET_BROKER_RUNTIME_INFO)).table


async def config(admin: Admin, broker: Address) -> dict[str, str]:
    """Return the broker's configuration."""
    return properties_of((await admin.ask(broker, RequestCode.GET_BROKER_CONFIG)).body)


async def ha_status(admin: Admin, broker: Address) -> HaStatus:
    """Return the broker's state of replication."""
    return read_body(HaStatus, await admin.ask(broker, RequestCode.GET_BROKER_HA_STATUS))


async def clean(admin: Admin, brokers: Sequence[Address], code: RequestCode) -> None:
    """Have brokers delete what has expired; `code` is one of the three requests to clean."""
    for broker in brokers:
        await admin.ask(broker, code)


async def metrics(admin: Admin, cluster: str) -> dict[str, dict[str, object]]:
    """Return measurements of each master of a cluster, by broker name."""
    found: dict[str, dict[str, object]] = {}
    for state in await cluster_states(admin, cluster):
        if state.id != 0 or state.status is None:
            continue
        topics = read_body(AllTopics, await admin.ask(state.address, RequestCode.GET_ALL_TOPIC_CONFIG))
        answer = await admin.ask(state.address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        found[state.name] = {
            "address": str(state.address),
            "topics": len(topics.topic_config_table),
            "groups": len(read_body(SubscriptionGroups, answer).subscription_group_table),
            "runtime": {key: state.status[key] for key in sorted(state.status) if key in _MEASURED},
        }
    return found


async def update_config(admin: Admin, brokers: Sequence[Address], key: str, value: str) -> None:
    """Change one setting while the brokers run."""
    body = f"{key}={value}\n".encode()
    for broker in brokers:
        await admin.ask(broker, RequestCode.UPDATE_BROKER_CONFIG, body=body)


def properties_of(body: bytes) -> dict[str, str]:
    """Parse a configuration as servers return it. Raises ClientError when it is malformed."""
    try:
        return {key: given.value for key, given in parse(body.decode(), "the answer").items()}
    except (ConfigError, UnicodeDecodeError) as error:
        raise ClientError(f"the answer is invalid: {error}") from None

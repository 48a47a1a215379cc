"""The name server's tables: which broker lives where, and which topics have queues there. Pure, no I/O.

Brokers register and are known until they unregister, fall silent, or their connection breaks. Nothing is
shared between name servers and nothing survives a restart. See docs/protocol.md, "Name server".
"""

from dataclasses import dataclass, replace
from typing import Final

from impl.remoting.bodies import BrokerData, ClusterInfo, DataVersion, QueueData, TopicConfigs, TopicRoute

MASTER_ID: Final = 0


@dataclass(frozen=True, slots=True)
class BrokerKey:
    """Who a broker says it is."""

    cluster: str
    broker_name: str
    broker_id: int
    """0 is the master."""
    address: str
    """IP:port, where clients reach it."""


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """One living broker process."""

    key: BrokerKey
    ha_address: str
    data_version: DataVersion
    connection: int
    """Identifies the connection it registered on."""
    last_update_ms: int
    expiry_ms: int
    """Silent for longer than this, it is forgotten."""


class RouteTable:
    """Three tables that always agree: living brokers, their addresses by name, and queues by topic.

    Times are in milliseconds of any one monotonic clock, the caller's.
    """

    def __init__(self) -> None:
        self._live: dict[tuple[str, str], LiveBroker] = {}
        """By cluster and address."""
        self._brokers: dict[str, BrokerData] = {}
        """By broker name."""
        self._queues: dict[str, dict[str, QueueData]] = {}
        """By topic, then broker name."""

    def register(
        self,
        key: BrokerKey,
        topics: TopicConfigs | None,
        *,
        ha_address: str,
        connection: int,
        now_ms: int,
        expiry_ms: int,
    ) -> LiveBroker | None:
        """Add or refresh a broker. Listed topics are added or changed; others stay as they are.

        Returns the living master of a slave's broker name, if there is one.
        """
        self._forget_impostors(key)
        before = self._live.get((key.cluster, key.address))
        version = topics.data_version if topics else DataVersion()
        is_first = self._record_address(key)
        self._live[key.cluster, key.address] = LiveBroker(
            key, ha_address, version, connection, now_ms, expiry_ms
        )
        is_changed = is_first or before is None or before.data_version != version
        if topics and key.broker_id == MASTER_ID:
            self._record_queues(key.broker_name, topics, is_changed)
        return None if key.broker_id == MASTER_ID else self._master_of(key)

    def heartbeat(self, cluster: str, address: str, now_ms: int) -> LiveBroker | None:
        """Refresh a known broker; None when it is not known."""
        live = self._live.get((cluster, address))
        if live is not None:
            self._live[cluster, address] = live = replace(live, last_update_ms=now_ms)
        return live

    def unregister(self, key: BrokerKey) -> bool:
        """Forget a broker by its own wish. False when it is not known like that."""
        live = self._live.get((key.cluster, key.address))
        if live is None or live.key != key:
            return False
        self._forget(live)
        return True

    def expire(self, now_ms: int) -> list[LiveBroker]:
        """Forget the brokers that were silent for too long, and return them."""
        silent = [live for live in self._live.values() if live.last_update_ms + live.expiry_ms < now_ms]
        for live in silent:
            self._forget(live)
        return silent

    def connection_closed(self, connection: int) -> list[LiveBroker]:
        """Forget the brokers whose latest registration came over this connection, and return them."""
        gone = [live for live in self._live.values() if live.connection == connection]
        for live in gone:
            self._forget(live)
        return gone

    def route(self, topic: str) -> TopicRoute | None:
        """Where the topic has queues; None when no broker that is known has any."""
        queues = self._queues.get(topic, {})
        brokers = [self._brokers[name] for name in queues if name in self._brokers]
        if not brokers:
            return None
        return TopicRoute(broker_datas=brokers, queue_datas=list(queues.values()))

    def cluster_info(self) -> ClusterInfo:
        """Every known broker."""
        clusters: dict[str, list[str]] = {}
        for broker in self._brokers.values():
            clusters.setdefault(broker.cluster, []).append(broker.broker_name)
        return ClusterInfo(broker_addr_table=dict(self._brokers), cluster_addr_table=clusters)

    def living(self) -> list[LiveBroker]:
        """Every broker that is known."""
        return list(self._live.values())

    def topics(self) -> list[str]:
        """Every topic that has queues."""
        return list(self._queues)

    def _forget_impostors(self, key: BrokerKey) -> None:
        """One address is one broker, and one id of a broker name is one address: the latest word counts."""
        for live in list(self._live.values()):
            other = live.key
            moved = other.address == key.address
            replaced = (other.broker_name, other.broker_id) == (key.broker_name, key.broker_id)
            if other != key and (moved or replaced):
                self._forget(live)

    def _record_address(self, key: BrokerKey) -> bool:
        """Put the address under its id. True when that id was not known before."""
        broker = self._brokers.get(key.broker_name)
        addresses = broker.broker_addrs if broker else {}
        others = {id_: address for id_, address in addresses.items() if address != key.address}
        self._brokers[key.broker_name] = BrokerData(
            {**others, key.broker_id: key.address}, key.broker_name, key.cluster
        )
        return key.broker_id not in addresses

    def _record_queues(self, broker_name: str, topics: TopicConfigs, is_changed: bool) -> None:
        for name, config in topics.topic_config_table.items():
            queues = self._queues.setdefault(name, {})
            if is_changed or broker_name not in queues:
                queues[broker_name] = QueueData(
                    broker_name,
                    config.perm,
                    config.read_queue_nums,
                    config.topic_sys_flag,
                    config.write_queue_nums,
                )

    def _master_of(self, key: BrokerKey) -> LiveBroker | None:
        master = self._brokers[key.broker_name].broker_addrs.get(MASTER_ID)
        return self._live.get((key.cluster, master)) if master else None

    def _forget(self, live: LiveBroker) -> None:
        del self._live[live.key.cluster, live.key.address]
        broker = self._brokers[live.key.broker_name]
        left = {id_: address for id_, address in broker.broker_addrs.items() if address != live.key.address}
        if left:
            self._brokers[live.key.broker_name] = BrokerData(left, broker.broker_name, broker.cluster)
            return
        del self._brokers[live.key.broker_name]
        for topic in [topic for topic, queues in self._queues.items() if live.key.broker_name in queues]:
            del self._queues[topic][live.key.broker_name]
            if not self._queues[topic]:
                del self._queues[topic]

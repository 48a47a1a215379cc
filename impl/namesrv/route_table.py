"""The name server's tables: the addresses of brokers, and the topics that have queues there. No I/O.

A broker is known from its registration until it unregisters, sends no heartbeats for too long, or its
connection breaks. Name servers share nothing, and the tables do not survive a restart. See
docs/reference/protocol/name-server.md, "Name server".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from mqproof.impl.remoting.bodies import (
    PERM_WRITE,
    BrokerData,
    ClusterInfo,
    DataVersion,
    QueueData,
    RegisterBrokerBody,
    TopicConfigs,
    TopicRoute,
)

MASTER_ID: Final = 0


@dataclass(frozen=True, slots=True)
class BrokerKey:
    """The identity of a broker, as it registers."""

    cluster: str
    broker_name: str
    broker_id: int
    """The broker's id; 0 is the master."""
    address: str
    """IP:port at which clients reach it."""


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """One registered broker process."""

    key: BrokerKey
    ha_address: str
    data_version: DataVersion
    connection: int
    """Identifies the connection on which it registered."""
    last_update_ms: int
    expiry_ms: int
    """The broker is removed after this time without a heartbeat."""
    filter_servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits on what brokers can register."""

    brokers_max: int = 10_000
    queues_max: int = 1_000_000
    """The maximum number of queue entries, one for each topic at a broker name."""
    name_characters_max: int = 512
    filter_servers_max: int = 100


class BoundsError(Exception):
    """An operation would exceed a bound; nothing was changed. The message says which bound."""


class RouteTable:
    """Three tables that are always consistent: live brokers, their addresses by name, and queues by topic.

    The cluster of a broker name is stored with its addresses, and a broker's filter servers with the live
    broker. Times are in milliseconds of any monotonic clock, always the caller's.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._live: dict[tuple[str, str], LiveBroker] = {}
        """The live brokers, keyed by cluster and address."""
        self._brokers: dict[str, BrokerData] = {}
        """The broker table, keyed by broker name."""
        self._queues: dict[str, dict[str, QueueData]] = {}
        """The queue table, keyed by topic and then by broker name."""

    # Registration and removal of brokers.

    def register(
        self,
        key: BrokerKey,
        body: RegisterBrokerBody | None,
        *,
        ha_address: str,
        connection: int,
        now_ms: int,
        expiry_ms: int,
        enable_acting_master: bool | None = None,
        forget_unlisted: bool = False,
    ) -> LiveBroker | None:
        """Add or refresh a broker. Its listed topics are added or changed.

        Other topics stay, unless `forget_unlisted` removes those that a master's new list lacks. If
        `enable_acting_master` is not None, whatever its value, the topics of a slave with the lowest id count
        while its name has no master. Returns the live master of a slave's broker name, if there is one.

        Raises:
            BoundsError: a bound would be exceeded; the tables are unchanged.
        """
        topics = body.topic_config_serialize_wrapper if body else TopicConfigs(DataVersion(), {})
        version = topics.data_version
        self._check_bounds(key, topics, body.filter_server_list if body else ())
        if self._is_outdated(key, version):
            return None
        self._forget_impostors(key)
        before = self._live.get((key.cluster, key.address))
        is_first = self._record_address(key, enable_acting_master)
        known = before.filter_servers if before else ()
        filter_servers = tuple(body.filter_server_list) if body else known
        self._live[key.cluster, key.address] = LiveBroker(
            key, ha_address, version, connection, now_ms, expiry_ms, filter_servers
        )
        is_changed = is_first or before is None or before.data_version != version
        if key.broker_id == MASTER_ID:
            self._record_queues(key.broker_name, topics, is_changed)
            if forget_unlisted and is_changed and body is not None:
                listed = topics.topic_config_table.keys()
                for topic in [name for name in self._topics_at(key.broker_name) if name not in listed]:
                    self._forget_queues(topic, {key.broker_name})
        elif enable_acting_master is not None and self._is_least(key):
            perm_mask = ~PERM_WRITE if enable_acting_master else -1
            self._record_queues(key.broker_name, topics, is_changed, perm_mask)
        return None if key.broker_id == MASTER_ID else self._master_of(key)

    def heartbeat(
        self, cluster: str, address: str, now_ms: int, expiry_ms: int | None = None
    ) -> LiveBroker | None:
        """Refresh a known broker. Returns None when it is not known."""
        live = self._live.get((cluster, address))
        if live is not None:
            live = replace(live, last_update_ms=now_ms, expiry_ms=expiry_ms or live.expiry_ms)
            self._live[cluster, address] = live
        return live

    def unregister(self, key: BrokerKey) -> bool:
        """Remove a broker at its own request. Returns False when no broker with exactly this key is known."""
        live = self._live.get((key.cluster, key.address))
        if live is None or live.key != key:
            return False
        self._forget(live)
        return True

    def silent_since(self, before_ms: int) -> list[BrokerKey]:
        """Return the brokers whose last heartbeat came before `before_ms`."""
        return [live.key for live in self._live.values() if live.last_update_ms < before_ms]

    def versions(self) -> dict[BrokerKey, DataVersion]:
        """Return the version of the topics of each broker."""
        return {live.key: live.data_version for live in self._live.values()}

    def expire(self, now_ms: int) -> list[LiveBroker]:
        """Remove the brokers without a heartbeat for too long, and return them."""
        silent = [live for live in self._live.values() if live.last_update_ms + live.expiry_ms < now_ms]
        for live in silent:
            self._forget(live)
        return silent

    def connection_closed(self, connection: int) -> list[LiveBroker]:
        """Remove the brokers whose latest registration came over this connection, and return them."""
        gone = [live for live in self._live.values() if live.connection == connection]
        for live in gone:
            self._forget(live)
        return gone

    # Queries.

    def route(self, topic: str, *, acting_masters: bool = False) -> TopicRoute | None:
        """Return the brokers and queues of the topic, or None when no known broker has any.

        With `acting_masters`, the slave with the lowest id replaces a missing master for reading, if its
        broker allows it.
        """
        queues = self._queues.get(topic, {})
        brokers = [self._brokers[name] for name in queues if name in self._brokers]
        if not brokers:
            return None
        if acting_masters:
            brokers = [_with_acting_master(broker, queues[broker.broker_name]) for broker in brokers]
        return TopicRoute(
            broker_datas=brokers,
            queue_datas=list(queues.values()),
            filter_server_table=self._filter_servers(brokers),
        )

    def cluster_info(self) -> ClusterInfo:
        """Return every known broker."""
        clusters: dict[str, list[str]] = {}
        for broker in self._brokers.values():
            clusters.setdefault(broker.cluster, []).append(broker.broker_name)
        return ClusterInfo(broker_addr_table=dict(self._brokers), cluster_addr_table=clusters)

    def member_group(self, broker_name: str) -> BrokerData | None:
        """Return the addresses of one broker name."""
        return self._brokers.get(broker_name)

    def live(self, cluster: str, address: str) -> LiveBroker | None:
        return self._live.get((cluster, address))

    def living(self) -> list[LiveBroker]:
        """Return every known broker process."""
        return list(self._live.values())

    def topics(self) -> list[str]:
        """Return every topic that has queues."""
        return list(self._queues)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Return the topics that have queues at a broker of the cluster."""
        names = self._names_of(cluster)
        return [topic for topic, queues in self._queues.items() if not names.isdisjoint(queues)]

    def topics_flagged(self, wanted: Callable[[int], bool]) -> list[str]:
        """Return the topics with queues whose system flag satisfies `wanted`."""
        return [
            topic
            for topic, queues in self._queues.items()
            if any(wanted(data.topic_sys_flag) for data in queues.values())
        ]

    # Changes by administrators. Changed permissions last until the broker registers another data version.

    def change_permissions(self, broker_name: str, change: Callable[[int], int]) -> int:
        """Change the permissions of all queues of a broker name. Returns the number of topics affected."""
        changed = 0
        for queues in self._queues.values():
            if data := queues.get(broker_name):
                queues[broker_name] = QueueData(
                    data.broker_name,
                    change(data.perm),
                    data.read_queue_nums,
                    data.topic_sys_flag,
                    data.write_queue_nums,
                )
                changed += 1
        return changed

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic's queues, or only those at the brokers of one cluster."""
        queues = self._queues.get(topic, {})
        gone = set(queues) if cluster is None else self._names_of(cluster).intersection(queues)
        self._forget_queues(topic, gone)

    def add_queues(self, topic: str, queue_datas: Iterable[QueueData]) -> None:
        """Add or replace queues of a topic. Those of unknown brokers are ignored.

        Raises:
            BoundsError: a bound would be exceeded; the tables are unchanged.
        """
        known = {data.broker_name: data for data in queue_datas if data.broker_name in self._brokers}
        self._check_names(topic)
        self._check_queues(len(known.keys() - self._queues.get(topic, {}).keys()))
        if known:
            self._queues.setdefault(topic, {}).update(known)

    # Maintenance of the tables.

    def _check_bounds(self, key: BrokerKey, topics: TopicConfigs, filter_servers: Iterable[str]) -> None:
        filter_servers = list(filter_servers)
        names = topics.topic_config_table
        self._check_names(key.cluster, key.broker_name, key.address, *filter_servers, *names)
        if len(filter_servers) > self._bounds.filter_servers_max:
            raise BoundsError(f"{len(filter_servers)} filter servers of one broker")
        if (key.cluster, key.address) not in self._live and len(self._live) >= self._bounds.brokers_max:
            raise BoundsError(f"{len(self._live)} brokers are registered, which is the limit")
        self._check_queues(sum(key.broker_name not in self._queues.get(name, {}) for name in names))

    def _check_names(self, *names: str) -> None:
        most = self._bounds.name_characters_max
        for name in names:
            if not 1 <= len(name) <= most:
                raise BoundsError(f"a name of {len(name)} characters, 1 to {most} expected")
            if not name.isprintable():
                raise BoundsError(f"{name!r} is not a valid name: it has control characters")

    def _check_queues(self, more: int) -> None:
        # Count only when there is something new, which is rare: a broker usually repeats its registration.
        if more and sum(map(len, self._queues.values())) + more > self._bounds.queues_max:
            raise BoundsError(f"more than {self._bounds.queues_max} topics at brokers")

    def _is_outdated(self, key: BrokerKey, version: DataVersion) -> bool:
        """Return whether another address has this broker's id, and has a later claim to it."""
        broker = self._brokers.get(key.broker_name)
        address = broker.broker_addrs.get(key.broker_id) if broker else None
        if address is None or address == key.address:
            return False
        holder = self._live.get((key.cluster, address))
        return holder is not None and _state(holder.data_version) > _state(version)

    def _forget_impostors(self, key: BrokerKey) -> None:
        """Remove brokers that conflict with a registration, because the latest registration counts.

        One address belongs to one broker, and one id of a broker name belongs to one address.
        """
        for live in list(self._live.values()):
            other = live.key
            moved = other.address == key.address
            replaced = (other.broker_name, other.broker_id) == (key.broker_name, key.broker_id)
            if other != key and (moved or replaced):
                self._forget(live)

    def _record_address(self, key: BrokerKey, enable_acting_master: bool | None) -> bool:
        """Record the address of the broker's id. Returns True when that id was not known before."""
        broker = self._brokers.get(key.broker_name)
        addresses = broker.broker_addrs if broker else {}
        others = {id_: address for id_, address in addresses.items() if address != key.address}
        self._brokers[key.broker_name] = BrokerData(
            {**others, key.broker_id: key.address}, key.broker_name, key.cluster, enable_acting_master
        )
        return key.broker_id not in addresses

    def _record_queues(
        self, broker_name: str, topics: TopicConfigs, is_changed: bool, perm_mask: int = -1
    ) -> None:
        for name, config in topics.topic_config_table.items():
            queues = self._queues.setdefault(name, {})
            if is_changed or broker_name not in queues:
                queues[broker_name] = QueueData(
                    broker_name,
                    config.perm & perm_mask,
                    config.read_queue_nums,
                    config.topic_sys_flag,
                    config.write_queue_nums,
                )

    def _is_least(self, key: BrokerKey) -> bool:
        return key.broker_id == min(self._brokers[key.broker_name].broker_addrs)

    def _master_of(self, key: BrokerKey) -> LiveBroker | None:
        master = self._brokers[key.broker_name].broker_addrs.get(MASTER_ID)
        return self._live.get((key.cluster, master)) if master else None

    def _names_of(self, cluster: str) -> set[str]:
        return {name for name, broker in self._brokers.items() if broker.cluster == cluster}

    def _filter_servers(self, brokers: Iterable[BrokerData]) -> dict[str, list[str] | None]:
        return {
            address: list(live.filter_servers)
            for broker in brokers
            for address in broker.broker_addrs.values()
            if (live := self._live.get((broker.cluster, address))) and live.filter_servers
        }

    def _forget(self, live: LiveBroker) -> None:
        del self._live[live.key.cluster, live.key.address]
        broker = self._brokers[live.key.broker_name]
        left = {id_: address for id_, address in broker.broker_addrs.items() if address != live.key.address}
        if left:
            self._brokers[live.key.broker_name] = BrokerData(
                left, broker.broker_name, broker.cluster, broker.enable_acting_master
            )
            return
        del self._brokers[live.key.broker_name]
        for topic in self._topics_at(live.key.broker_name):
            self._forget_queues(topic, {live.key.broker_name})

    def _topics_at(self, broker_name: str) -> list[str]:
        return [topic for topic, queues in self._queues.items() if broker_name in queues]

    def _forget_queues(self, topic: str, broker_names: set[str]) -> None:
        for name in broker_names:
            del self._queues[topic][name]
        if not self._queues.get(topic, True):
            del self._queues[topic]


def _state(version: DataVersion) -> int:
    return version.state_version or 0


def _with_acting_master(broker: BrokerData, queues: QueueData) -> BrokerData:
    """Return the broker as 5.x presents it: its slave with the lowest id replaces a missing master.

    This applies only while the broker's queues are not writable.
    """
    if not broker.enable_acting_master or MASTER_ID in broker.broker_addrs or queues.perm & PERM_WRITE:
        return broker
    least = min(broker.broker_addrs)
    others = {id_: address for id_, address in broker.broker_addrs.items() if id_ != least}
    acting = {MASTER_ID: broker.broker_addrs[least], **others}
    return BrokerData(acting, broker.broker_name, broker.cluster, broker.enable_acting_master)

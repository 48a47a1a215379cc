"""The brokers of a cluster inside a test: a master and a slave, or three members that elect their master."""

import random
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.dledger.config import Membership, Peer
from mqproof.impl.embedded.broker_properties import ALWAYS_SET, broker_config
from mqproof.impl.replication.config import Role
from mqproof.impl.runtime.clock import Clock
from mqproof.impl.runtime.network import Address, Network
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

_OWN_PROPERTIES: Final = ALWAYS_SET | {
    "brokerId", "haListenPort", "haMasterAddress", "peerSecretFile", "peerAddresses",
    "enableDLegerCommitLog", "dLegerGroup", "dLegerPeers", "dLegerSelfId", "preferredLeaderIds",
}  # fmt: skip
_STORE: Final = "store"
_HOST: Final = "127.0.0.1"
_FIRST_PORT: Final = 10_911
_FIRST_MEMBER_PORT: Final = 40_911
"""The ports of brokers that use no sockets, and those of three members for each other, are ten apart."""
_SECOND_PORT_BELOW: Final = 2
"""Slaves of released brokers ask for topics on the port two below."""


class ClusterKind(StrEnum):
    """How the brokers of a cluster replicate their messages."""

    MASTER_SLAVE = "master-slave"
    """A master and a slave. While the master is stopped, no broker takes messages."""
    DLEDGER = "dledger"
    """Three members that elect their master. When it stops, another one takes over."""


@dataclass(slots=True)
class Member:
    """One broker of the cluster, and the disk that it keeps while it is stopped."""

    name: str
    config: BrokerConfig
    disk: SimulatedDisk
    broker: Broker | None = None
    """None while it is stopped."""

    @property
    def address(self) -> Address:
        """The address that clients use."""
        return Address(self.config.host, self.config.port)

    @property
    def is_master(self) -> bool:
        """Whether it takes messages."""
        services = self.broker.services if self.broker is not None else None
        store = self.broker.group_store if self.broker is not None else None
        return services is not None and not services.is_slave and (store is None or store.has_all)

    def runtime(self, clock: Clock, network: Network) -> Runtime:
        """Return the environment of a new process of this broker."""
        return Runtime(clock, self.disk, network, random.Random(), inline)


def configuration(kind: ClusterKind, properties: Mapping[str, str]) -> BrokerConfig:
    """Return the configuration that all brokers share.

    Raises:
        ConfigError: an unknown key, a key that the cluster sets itself, or a wrong value.
    """
    own = _OWN_PROPERTIES | ({"brokerRole"} if kind is ClusterKind.DLEDGER else set())
    return broker_config(properties, own, in_memory=True)


def members(kind: ClusterKind, shared: BrokerConfig, *, sockets: bool) -> list[Member]:
    """Return the brokers of a new cluster, in the order of their start."""
    count = 3 if kind is ClusterKind.DLEDGER else 2
    own = _free_ports(count, with_second=True) if sockets else _ten_apart(_FIRST_PORT, count)
    configs = [replace(shared, port=port, store_directory=_STORE) for port in own]
    if kind is ClusterKind.DLEDGER:
        ports = _free_ports(count) if sockets else _ten_apart(_FIRST_MEMBER_PORT, count)
        peers = tuple(Peer(f"n{number}", Address(_HOST, port)) for number, port in enumerate(ports))
        return [_member(config, peers, peer.id) for config, peer in zip(configs, peers, strict=True)]
    replication = shared.replication
    master = replace(replication, role=replication.role or Role.SYNC_MASTER, ha_port=0)
    slave = replace(replication, role=Role.SLAVE, ha_port=0)
    return [
        Member("master", replace(configs[0], replication=master), SimulatedDisk()),
        Member("slave", replace(configs[1], replication=slave, broker_id=1), SimulatedDisk()),
    ]


def _member(config: BrokerConfig, peers: tuple[Peer, ...], self_id: str) -> Member:
    membership = Membership(is_member=True, peers=peers, self_id=self_id)
    return Member(self_id, replace(config, membership=membership), SimulatedDisk())


def _ten_apart(first: int, count: int) -> list[int]:
    return [first + 10 * number for number in range(count)]


def _free_ports(count: int, *, with_second: bool = False) -> list[int]:
    """Return ports that are free now. Another process can take one before its broker listens on it.

    `with_second` returns ports whose second port is free as well, as far as few attempts find them.
    """
    found: list[int] = []
    with ExitStack() as stack:
        for left in range(20, 0, -1):
            held = stack.enter_context(socket.create_server((_HOST, 0)))
            port = held.getsockname()[1]
            if not with_second or left <= count - len(found) or _is_free(port - _SECOND_PORT_BELOW, stack):
                found.append(port)
            if len(found) == count:
                break
    return found


def _is_free(port: int, stack: ExitStack) -> bool:
    try:
        stack.enter_context(socket.create_server((_HOST, port)))
    except OSError:
        return False
    return True

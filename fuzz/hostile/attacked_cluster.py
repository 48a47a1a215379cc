"""The cluster under attack: small limits, accounts, or a secret of the peers, depending on its shape."""

from dataclasses import replace
from enum import IntEnum
from typing import Any, Final

from mqproof.conformance.hosts.simulated import MASTER, Cluster, Setup
from mqproof.fuzz.hostile.judge import Use
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session, SessionConfig
from mqproof.impl.remoting.budget import Budget
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.security.peer_network import PeerConfig
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.impl.store.config import FlushMode

STRANGER: Final = "stranger"
"""The machine of the stranger."""
FAULTY: Final = "faulty"
"""The machine of the faulty member, which has the secret of the group."""
OWN_TOPIC: Final = "honest"
QUEUES: Final = 2
ADMINISTRATOR: Final = Credentials("administrator", "secret-of-the-administrator")
ACCOUNT: Final = Credentials("stranger", "secret-of-the-stranger")
"""An account without rights."""
SECRET: Final = PeerConfig("/secret")
_ACCOUNTS: Final = b"""\
accounts:
- {accessKey: administrator, secretKey: secret-of-the-administrator, admin: true}
- {accessKey: stranger, secretKey: secret-of-the-stranger, defaultTopicPerm: DENY, defaultGroupPerm: DENY}
"""
_SEGMENT_BYTES: Final = 1 << 18
"""Room for compressed bodies."""
_NAMES_MAX: Final = 40
"""The most topics, and the most groups. A broker has some of its own."""
_SESSION: Final = SessionConfig(route_refresh_ms=5000, heartbeat_ms=10_000)
_SPARE: Final = {"bytes of unanswered requests": 4 << 10, "bytes of incomplete frames": 64 << 10}
"""The bytes that each connection may always use."""


class Shape(IntEnum):
    BROKER = 0
    ACCOUNTS = 1
    SLAVE = 2
    GROUP = 3


class AttackedCluster(Cluster):
    """A cluster with name servers, a stranger, and a faulty member if it is a group."""

    def __init__(self, loop: SimulatedLoop, seed: int, shape: Shape) -> None:
        self.shape = shape
        replication = ReplicationConfig(Role.SYNC_MASTER) if shape is Shape.SLAVE else None
        setup = Setup(FlushMode.ASYNC_FLUSH, replication, elected=shape is Shape.GROUP, queues=QUEUES)
        super().__init__(loop, seed, setup)
        for name in (STRANGER, FAULTY):
            self.add_machine(name)
        for node in (*self.nodes, FAULTY):
            disk = self.machines[node].disk
            write_durably(disk, SECRET.secret_file, b"the secret of the cluster")
            write_durably(disk, "/plain_acl.yml", _ACCOUNTS)

    def config(self, node: str) -> BrokerConfig:
        base = super().config(node)
        limited = replace(
            base,
            store=replace(base.store, commit_log_segment_bytes=_SEGMENT_BYTES),
            topics_max=_NAMES_MAX,
            groups_max=_NAMES_MAX,
            holds_max=_NAMES_MAX,
            address_percent=10,
            connection_percent=5,
        )
        if self.shape is Shape.ACCOUNTS:
            return replace(limited, acl_enabled=True, acl_path="/plain_acl.yml")
        return limited if self.shape is Shape.BROKER else replace(limited, peer_access=SECRET)

    def own_session(self) -> Session:
        """Return the session of the honest clients."""
        machine = self.machines.get("client") or self.add_machine("client")
        credentials = ADMINISTRATOR if self.shape is Shape.ACCOUNTS else None
        client_id = f"{machine.host}@client"
        return Session(self.names, machine.runtime(), client_id, _SESSION, credentials)

    @property
    def attacked(self) -> str:
        """The broker that strangers attack: the current master."""
        return self.master or (self.nodes[0] if self.setup.elected else MASTER)

    def uses(self) -> list[Use]:
        """Return what the peers of each broker use of it."""
        return [_use(budget) for broker in self.brokers.values() for budget in broker.budgets]


def _use(budget: Budget) -> Use:
    limits = budget.limits
    own: dict[Any, int] = budget._connections or dict(getattr(budget, "_of_connection", {}))
    spare = _SPARE.get(budget.name, 0) * max(1, len(own))
    return Use(
        budget.name,
        budget.used,
        max(budget._addresses.values(), default=0),
        max(own.values(), default=0),
        (limits.total, limits.address, limits.connection),
        spare,
    )

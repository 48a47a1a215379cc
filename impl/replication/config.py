"""What can be set on replication; names follow RocketMQ's properties, with the unit last."""

from dataclasses import dataclass
from enum import StrEnum

from mqproof.impl.runtime.network import Address


class Role(StrEnum):
    """brokerRole."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"  # a send that waits, waits for slaves too
    SLAVE = "SLAVE"


class LogCheck(StrEnum):
    """haLogCheck: what keeps the logs of master and slave from differing."""

    COMPARED = "COMPARED"  # a slave begins with its last record, compares it, and stops when it differs
    AS_SHIPPED = "AS_SHIPPED"  # as released brokers do it: only positions count, and any report acknowledges


@dataclass(frozen=True, slots=True)
class ReplicationConfig:
    role: Role | None = None
    """None is a master alone: nobody can follow it."""
    ha_port: int | None = None
    """haListenPort: where slaves connect; None is the broker's port + 1, 0 is any free port."""
    ha_master: Address | None = None
    """haMasterAddress: whom a slave follows; None is whom the name servers tell of."""
    log_check: LogCheck = LogCheck.COMPARED
    in_sync_replicas: int | None = None
    """inSyncReplicas as 5.x means it: how many must have a message, the master being one. None is 4.9's rule:
    one slave, and SLAVE_NOT_AVAILABLE at once when there is none to wait for."""
    fall_behind_bytes_max: int = 256 << 20
    """haSlaveFallbehindMax: 4.9 waits for no slave that is farther behind."""
    slave_timeout_ms: int = 3000
    """slaveTimeout: how long a send waits for slaves"""
    heartbeat_ms: int = 5000
    """haSendHeartbeatInterval: of a connection on which nothing else is to be said"""
    housekeeping_ms: int = 20_000
    """haHousekeepingInterval: a connection on which nothing was heard for that long is closed"""
    metadata_interval_ms: int = 10_000
    """How often a slave asks for its master's topics, groups and offsets."""

    @property
    def is_slave(self) -> bool:
        return self.role is Role.SLAVE

    @property
    def told_role(self) -> Role | None:
        """What its event log says: SYNC_MASTER where SEND_OK means that a slave has it."""
        waits_for_none = self.role is Role.SYNC_MASTER and not self.slaves_waited_for
        return Role.ASYNC_MASTER if waits_for_none else self.role

    @property
    def slaves_waited_for(self) -> int:
        """How many slaves a send waits for."""
        if self.role is not Role.SYNC_MASTER:
            return 0
        return 1 if self.in_sync_replicas is None else self.in_sync_replicas - 1

"""The configuration of replication.

The names follow RocketMQ's properties, with the unit as the last part.
"""

from dataclasses import dataclass
from enum import StrEnum

from mqproof.impl.runtime.network import Address


class Role(StrEnum):
    """The property brokerRole."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"  # a send that waits until its message is stored also waits for slaves
    SLAVE = "SLAVE"


class LogCheck(StrEnum):
    """The property haLogCheck: how a slave detects that its log differs from its master's."""

    COMPARED = "COMPARED"  # a slave first compares its last record, and stops on a difference
    AS_SHIPPED = "AS_SHIPPED"  # as released brokers: positions are not verified


@dataclass(frozen=True, slots=True)
class ReplicationConfig:
    role: Role | None = None
    """The broker's role: ASYNC_MASTER, SYNC_MASTER or SLAVE.

    None is a master without replication, which no slave can follow.
    """
    ha_port: int | None = None
    """The property haListenPort: the port on which slaves connect.

    None is the broker's port + 1, 0 is any free port.
    """
    ha_master: Address | None = None
    """The property haMasterAddress: the master to follow.

    None follows the master that the name servers report.
    """
    log_check: LogCheck = LogCheck.COMPARED
    """The property haLogCheck: how a slave detects that its log differs from its master's."""
    in_sync_replicas: int | None = None
    """The property inSyncReplicas of 5.x: how many replicas, master included, must have a message.

    None selects the rule of 4.9: wait for one slave, and answer SLAVE_NOT_AVAILABLE at once if no slave is
    usable.
    """
    fall_behind_bytes_max: int = 256 << 20
    """The property haSlaveFallbehindMax: by the rule of 4.9, a slave farther behind is not usable."""
    slave_timeout_ms: int = 3000
    """The property slaveTimeout: how long a send waits for slaves."""
    heartbeat_ms: int = 5000
    """The property haSendHeartbeatInterval: after this time without other data, a heartbeat is sent."""
    housekeeping_ms: int = 20_000
    """The property haHousekeepingInterval: a connection that received nothing for this long is closed."""
    metadata_interval_ms: int = 10_000
    """How often a slave fetches its master's topics, groups and offsets."""

    @property
    def is_slave(self) -> bool:
        return self.role is Role.SLAVE

    @property
    def logged_role(self) -> Role | None:
        """The role in the event log: SYNC_MASTER only where SEND_OK means that a slave has the message."""
        waits_for_none = self.role is Role.SYNC_MASTER and not self.slaves_waited_for
        return Role.ASYNC_MASTER if waits_for_none else self.role

    @property
    def slaves_waited_for(self) -> int:
        """The number of slaves that a send waits for."""
        if self.role is not Role.SYNC_MASTER:
            return 0
        return 1 if self.in_sync_replicas is None else self.in_sync_replicas - 1

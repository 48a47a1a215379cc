"""Tests what the settings of replication mean. Source: docs/reference/protocol/replication.md."""

import pytest

from mqproof.impl.replication.config import LogCheck, ReplicationConfig, Role


@pytest.mark.parametrize(
    ("role", "in_sync_replicas", "slaves", "logged"),
    [
        (None, None, 0, None),
        (None, 3, 0, None),
        (Role.SLAVE, None, 0, Role.SLAVE),
        (Role.SLAVE, 3, 0, Role.SLAVE),
        (Role.ASYNC_MASTER, 3, 0, Role.ASYNC_MASTER),
        (Role.SYNC_MASTER, None, 1, Role.SYNC_MASTER),
        (Role.SYNC_MASTER, 1, 0, Role.ASYNC_MASTER),
        (Role.SYNC_MASTER, 2, 1, Role.SYNC_MASTER),
        (Role.SYNC_MASTER, 3, 2, Role.SYNC_MASTER),
    ],
)
def test_only_a_synchronous_master_waits_and_the_event_log_says_whether_it_does(
    role: Role | None, in_sync_replicas: int | None, slaves: int, logged: Role | None
) -> None:
    config = ReplicationConfig(role, in_sync_replicas=in_sync_replicas)
    assert (config.slaves_waited_for, config.logged_role) == (slaves, logged)
    assert config.is_slave is (role is Role.SLAVE)


def test_the_defaults_are_those_of_released_brokers() -> None:
    config = ReplicationConfig()
    assert (config.role, config.ha_port, config.ha_master, config.in_sync_replicas) == (None,) * 4
    assert config.log_check is LogCheck.COMPARED
    assert config.fall_behind_bytes_max == 268_435_456
    assert (config.slave_timeout_ms, config.metadata_interval_ms) == (3000, 10_000)
    assert (config.heartbeat_ms, config.housekeeping_ms) == (5000, 20_000)

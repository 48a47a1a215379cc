"""Tests the two sides of replication that a broker has, and what it reports of them."""

import asyncio
import logging
from dataclasses import replace

import pytest

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.replicas import SlaveTables
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from tests.impl.world import SMALL_STORE, World, play

CONFIG = BrokerConfig(
    store_directory="/store",
    port=0,
    store=SMALL_STORE,
    replication=ReplicationConfig(role=Role.ASYNC_MASTER, ha_port=0),
)


def slave_of(world: World) -> Broker:
    role = ReplicationConfig(role=Role.SLAVE, ha_port=0)
    names = (world.namesrv_address,)
    config = replace(CONFIG, broker_id=1, name_servers=names, replication=role)
    return Broker(config, replace(world.runtime, disk=SimulatedDisk()))


def test_a_slave_reports_its_master_once_it_follows_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(world: World) -> None:
        slave = slave_of(world)
        before = slave.replicas.status(0)
        assert before is not None
        assert before.ha_client_runtime_info is not None
        info = before.ha_client_runtime_info
        assert (info.master_addr, info.is_activated, info.last_read_timestamp) == (None, False, 0)
        await slave.start()
        async with asyncio.timeout(60):
            while not slave.replicas.has_masters_log:
                await asyncio.sleep(0.1)
        assert world.broker is not None
        master, state = world.broker.replicas.status(0), slave.replicas.status(0)
        assert state is not None
        assert state.ha_client_runtime_info is not None
        info = state.ha_client_runtime_info
        assert (info.master_addr, info.is_activated) == (str(world.broker.replicas.ha_address), True)
        assert master is not None
        assert (master.in_sync_slave_nums, len(master.ha_connection_info)) == (1, 1)
        port = world.broker.replicas.ha_address
        assert f"the HA port {port} is open: any peer that reaches it receives all messages" in caplog.text
        await slave.stop()

    play(scenario, config=CONFIG)


def test_a_slave_sends_each_commit_once_and_only_forward() -> None:
    async def scenario(world: World) -> None:
        slave = slave_of(world)
        await slave.start()
        assert slave.services is not None
        offsets, tables = slave.services.offsets, SlaveTables(slave.services)
        offsets.commit("G", "T", 3, 7)
        (commit,) = tables.newer_commits({"T@G": {3: 6}})
        assert (commit.consumer_group, commit.topic, commit.queue_id) == ("G", "T", 3)
        assert (commit.commit_offset, commit.only_forward) == (7, True)
        tables.mark_sent(commit)
        assert offsets.unsent == set()
        await slave.stop()

    play(scenario, config=CONFIG)

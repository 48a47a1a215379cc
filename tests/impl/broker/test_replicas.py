"""Tests the two sides of replication that a broker has, and what it reports of them."""

import asyncio
import logging
from dataclasses import replace

import pytest

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.replicas import SlaveTables
from mqproof.impl.remoting.bodies import HaClient, HaConnection, HaStatus
from mqproof.impl.remoting.headers import RegisterBrokerResponse
from mqproof.impl.replication.client import MasterState
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.replication.server import SlaveState
from mqproof.impl.runtime.network import Address
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


def test_a_master_reports_the_position_of_each_slave(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        server, store = world.broker.replicas.server, world.broker.store
        assert server is not None
        near, far = Address("10.0.0.2", 1), Address("10.0.0.3", 1)
        states = [SlaveState(near, 901, 950, 7), SlaveState(far, 900, 960, 8)]
        monkeypatch.setattr(server, "slaves", lambda: states)
        monkeypatch.setattr(type(store), "log_end", 1000)
        assert world.broker.replicas.status(0) == HaStatus(
            True,
            master_commit_log_max_offset=1000,
            in_sync_slave_nums=1,
            ha_connection_info=[
                HaConnection(str(near), 901, 99, True, 7, 950),
                HaConnection(str(far), 900, 100, False, 8, 960),
            ],
        )

    play(scenario, config=replace(CONFIG, replication=replace(CONFIG.replication, fall_behind_bytes_max=100)))


def test_a_slave_reports_its_master_and_when_it_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        slave = slave_of(world)
        await slave.start()
        client = slave.replicas.client
        assert client is not None
        master = Address("10.0.0.2", 1)
        state = MasterState(master, is_following=True, heard_ago_s=0.5, reported_ago_s=2.0, bytes_per_s=7)
        with monkeypatch.context() as change:
            change.setattr(client, "state", lambda: state)
            change.setattr(type(slave.store), "log_end", 1000)
            assert slave.replicas.status(100_000) == HaStatus(
                False,
                ha_client_runtime_info=HaClient(str(master), 7, 1000, 99_500, 98_000, is_activated=True),
            )
        await slave.stop()

    play(scenario, config=CONFIG)


@pytest.mark.parametrize(
    ("ha_master", "reported", "followed"),
    [
        (None, {"ha_server_addr": "10.0.0.2:2", "master_addr": "10.0.0.2:1"}, ("10.0.0.2:1", "10.0.0.2:2")),
        (None, {"master_addr": "10.0.0.2:1"}, ("10.0.0.2:1", "None")),
        (None, {"ha_server_addr": "10.0.0.2:2"}, ("None", "10.0.0.2:2")),
        (None, {"ha_server_addr": "nowhere", "master_addr": "10.0.0.2:1"}, ("10.0.0.2:1", "None")),
        (
            Address("10.0.0.9", 9),
            {"ha_server_addr": "10.0.0.2:2", "master_addr": "10.0.0.2:1"},
            ("10.0.0.2:1", "10.0.0.9:9"),
        ),
    ],
)
def test_a_slave_follows_the_master_that_the_name_server_reports_unless_one_is_configured(
    ha_master: Address | None, reported: dict[str, str], followed: tuple[str, str]
) -> None:
    async def scenario(world: World) -> None:
        role = ReplicationConfig(role=Role.SLAVE, ha_port=0, ha_master=ha_master)
        slave = Broker(replace(CONFIG, broker_id=1, replication=role), world.runtime)
        for response in (RegisterBrokerResponse(**reported), RegisterBrokerResponse()):
            slave.replicas.learned(response)
            client = slave.replicas.client
            assert client is not None
            assert (str(slave.replicas.master), str(client.master)) == followed

    play(scenario, config=CONFIG)

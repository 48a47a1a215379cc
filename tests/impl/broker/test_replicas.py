"""Tests the two sides of replication that a broker has, and what it reports of them."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, cast

import pytest
from msgspec.structs import replace as replace_fields

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.replicas import Replicas, SlaveTables
from mqproof.impl.remoting.bodies import HaClient, HaConnection, HaStatus
from mqproof.impl.remoting.headers import RegisterBrokerResponse
from mqproof.impl.replication.client import MasterState
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.replication.metadata import MetadataSync
from mqproof.impl.replication.server import SlaveState
from mqproof.impl.runtime.immediate import result_of
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.files import record
from mqproof.impl.store.message_store import MessageStore
from tests.impl.replication.site import message, store
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


# The two sides without a network.


def _replicas(role: Role | None, **fields: Any) -> tuple[Replicas, MessageStore]:
    own = store()
    replication = ReplicationConfig(role=role, **{"ha_port": 0, **fields.pop("replication", {})})
    config = replace(CONFIG, broker_id=int(role is Role.SLAVE), replication=replication, **fields)
    return Replicas(config, own._runtime, own, None), own


@pytest.mark.parametrize(
    ("role", "in_sync", "is_server", "is_client", "waits"),
    [
        (None, None, False, False, False),
        (Role.SLAVE, None, False, True, False),
        (Role.ASYNC_MASTER, None, True, False, False),
        (Role.SYNC_MASTER, None, True, False, True),
        (Role.SYNC_MASTER, 1, True, False, False),
    ],
)
def test_the_role_decides_which_side_a_broker_has_and_whether_its_sends_wait(
    role: Role | None, in_sync: int | None, is_server: bool, is_client: bool, waits: bool
) -> None:
    replicas, own = _replicas(role, replication={"in_sync_replicas": in_sync})
    assert (replicas.server is not None, replicas.client is not None) == (is_server, is_client)
    assert own.refusal == ("this broker is a slave" if is_client else "")
    assert (own.replicate is not None) is waits
    assert (replicas.network is not None) is (role is not None)
    assert replicas.has_masters_log is not is_client


def test_a_slave_accepts_the_records_of_the_largest_bodies() -> None:
    replicas, _ = _replicas(Role.SLAVE)
    assert replicas.client is not None
    around_bytes = replicas.client._record_bytes_max - SMALL_STORE.message_bytes_max
    largest = replace_fields(message(1), properties={"K": "v" * (record.PROPERTIES_BYTES_MAX - 2)})
    assert around_bytes >= len(record.encode(largest)) - len(largest.body)


def test_the_purpose_of_the_connections_names_the_brokers() -> None:
    replicas, _ = _replicas(Role.SLAVE, name="pair")
    assert replicas.network is not None
    assert replicas.network._identity.purpose == "replication of pair"


@pytest.mark.parametrize(
    ("port", "ha_port", "advertised", "listens", "registered"),
    [
        (10911, None, "", 10912, "127.0.0.1:10912"),
        (10911, 7000, "", 7000, "127.0.0.1:7000"),
        (10911, None, "192.0.2.7", 10912, "192.0.2.7:10912"),
        (0, None, "", 0, None),
        (10911, 0, "", 0, None),
    ],
)
def test_slaves_connect_to_the_next_port_unless_another_is_set(
    port: int, ha_port: int | None, advertised: str, listens: int, registered: str | None
) -> None:
    replicas, _ = _replicas(
        Role.ASYNC_MASTER, port=port, advertised_host=advertised, replication={"ha_port": ha_port}
    )
    asked: list[tuple[str, int]] = []

    async def start(host: str, at: int) -> Address:
        asked.append((host, at))
        return Address(host, at or 12345)

    assert replicas.server is not None
    replicas.server.start = start  # type: ignore[method-assign, assignment]
    result_of(replicas.start())
    assert asked == [(CONFIG.host, listens)]
    assert registered is None or str(replicas.ha_address) == registered


@pytest.mark.parametrize(
    ("configured", "reported", "master", "follows"),
    [
        (
            None,
            RegisterBrokerResponse("10.0.0.1:10912", "10.0.0.1:10911"),
            "10.0.0.1:10911",
            "10.0.0.1:10912",
        ),
        (None, RegisterBrokerResponse(None, "10.0.0.1:10911"), "10.0.0.1:10911", None),
        (None, RegisterBrokerResponse("10.0.0.1:10912", None), None, "10.0.0.1:10912"),
        (None, RegisterBrokerResponse("", ""), None, None),
        (None, RegisterBrokerResponse("10.0.0.1:10912", "no address"), None, None),
        ("h:1", RegisterBrokerResponse("10.0.0.1:10912", "10.0.0.1:10911"), "10.0.0.1:10911", "h:1"),
    ],
)
def test_a_slave_follows_the_reported_master_unless_one_is_configured(
    configured: str | None, reported: RegisterBrokerResponse, master: str | None, follows: str | None
) -> None:
    own = Address.parse(configured) if configured else None
    replicas, _ = _replicas(Role.SLAVE, replication={"ha_master": own})
    for response in (reported, RegisterBrokerResponse()):
        replicas.learned(response)
        assert (str(replicas.master) if replicas.master else None) == master
        assert replicas.client is not None
        assert (str(replicas.client.master) if replicas.client.master else None) == follows


def test_a_master_reports_how_far_each_slave_is() -> None:
    replicas, own = _replicas(Role.ASYNC_MASTER, replication={"fall_behind_bytes_max": 100})
    own.append(message(0))
    end = own.log_end
    assert replicas.server is not None
    states = [
        SlaveState(Address("10.0.0.1", 1), end - 99, end, 5),
        SlaveState(Address("10.0.0.2", 2), end - 100, 7, 0),
    ]
    replicas.server.slaves = lambda: states  # type: ignore[method-assign]
    assert replicas.status(0) == HaStatus(
        True,
        master_commit_log_max_offset=end,
        in_sync_slave_nums=1,
        ha_connection_info=[
            HaConnection(
                addr="10.0.0.1:1", slave_ack_offset=end - 99, diff=99, in_sync=True,
                transferred_byte_in_second=5, transfer_from_where=end,
            ),
            HaConnection(
                addr="10.0.0.2:2", slave_ack_offset=end - 100, diff=100, in_sync=False,
                transferred_byte_in_second=0, transfer_from_where=7,
            ),
        ],
    )  # fmt: skip


def test_a_slave_reports_when_it_last_heard_and_wrote() -> None:
    replicas, own = _replicas(Role.SLAVE)
    assert replicas.client is not None
    replicas.client.state = lambda: MasterState(  # type: ignore[method-assign]
        Address("10.0.0.1", 1), True, 1.5, 0.25, 9
    )
    assert replicas.status(10_000) == HaStatus(
        False,
        ha_client_runtime_info=HaClient(
            master_addr="10.0.0.1:1",
            transferred_byte_in_second=9,
            max_offset=own.log_end,
            last_read_timestamp=8500,
            last_write_timestamp=9750,
            is_activated=True,
        ),
    )


def test_a_broker_without_replication_reports_itself_as_a_master_without_slaves() -> None:
    replicas, own = _replicas(None)
    assert replicas.status(0) == HaStatus(True, master_commit_log_max_offset=own.log_end)
    result_of(replicas.start())
    result_of(replicas.stop())
    replicas.kill()
    assert replicas.ha_address is None


@pytest.mark.parametrize("awaits", [False, True])
def test_a_slave_asks_for_deletions_only_while_it_waits_for_deleted_records(awaits: bool) -> None:
    replicas, own = _replicas(Role.SLAVE)
    replicas.master = Address("10.0.0.1", 1)
    own.awaits_deleted_records = lambda: awaits  # type: ignore[method-assign]
    asked: list[Address | None] = []

    class Metadata:
        master: Address | None = None

        async def correct_deletions(self) -> None:
            asked.append(self.master)

    replicas.prepare_with(cast(MetadataSync, Metadata()))
    assert replicas.client is not None
    result_of(cast(Coroutine[Any, Any, None], replicas.client.prepare()))
    assert asked == ([Address("10.0.0.1", 1)] if awaits else [])


def test_a_master_prepares_nothing() -> None:
    replicas, _ = _replicas(Role.ASYNC_MASTER)
    replicas.prepare_with(cast(MetadataSync, None))
    assert replicas.client is None


def test_a_master_follows_no_reported_master() -> None:
    replicas, _ = _replicas(Role.ASYNC_MASTER)
    replicas.learned(RegisterBrokerResponse("10.0.0.1:10912", "10.0.0.1:10911"))
    assert (replicas.master, replicas.client) == (Address("10.0.0.1", 10911), None)

"""Tests the name server over a simulated network: answers to clients and brokers, and its event log."""

import asyncio
import re
import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import PROCESSORS, NameServer
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ClusterInfo,
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigs,
    TopicRoute,
)
from mqproof.impl.remoting.budget import Shares
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    BrokerHeartbeatRequest,
    PutKvRequest,
    RegisterBrokerRequest,
    RouteRequest,
    UnregisterBrokerRequest,
)
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.spec.events import SCHEMA_VERSION, Event, Kind
from tests.impl.namesrv.world import BROKER, World, play


def test_a_registered_topic_has_a_route_until_its_broker_unregisters() -> None:
    async def main(loop: SimulatedLoop) -> tuple[list[int], list[Kind]]:
        async with World(loop) as world:
            codes = [await world.route_code()]
            await world.register()
            codes.append(await world.route_code())
            name, address, cluster = BROKER
            await world.ask(RequestCode.UNREGISTER_BROKER, UnregisterBrokerRequest(name, address, cluster, 0))
            codes.append(await world.route_code())
            return codes, world.kinds()

    loop = SimulatedLoop()
    codes, kinds = run_simulated(main(loop), loop)
    assert codes == [17, 0, 17]
    assert kinds == [Kind.REGISTER, Kind.UNREGISTER]


def test_a_route_has_the_json_dialect_of_the_requesting_version() -> None:
    topic, standard = {"topic": "T"}, {"topic": "T", "acceptStandardJsonOnly": "true"}
    # An unreleased version is treated as the nearest released one.
    old = [(399, topic), (400, topic), (0, topic), (-1, topic), (-(2**31), topic)]
    new = [(401, topic), (513, topic), (32_767, topic), (2**31 - 1, topic), (399, standard), (-1, standard)]

    async def main(loop: SimulatedLoop) -> list[bytes]:
        async with World(loop) as world:
            await world.register()
            asks = [
                Command(105, opaque, fields=fields, version=version)
                for opaque, (version, fields) in enumerate(old + new)
            ]
            return [(await world.client.invoke(world.address, ask, 3.0)).body for ask in asks]

    loop = SimulatedLoop()
    bodies = run_simulated(main(loop), loop)
    assert [b'{0:"10.0.0.1:10911"}' in body for body in bodies] == [True] * len(old) + [False] * len(new)
    assert [b'{"0":"10.0.0.1:10911"}' in body for body in bodies] == [False] * len(old) + [True] * len(new)
    assert len({repr(java_json.read(TopicRoute, body)) for body in bodies}) == 1


def test_a_silent_broker_is_removed_and_heartbeats_prevent_that() -> None:
    async def main(loop: SimulatedLoop) -> tuple[list[int], list[Kind]]:
        async with World(loop) as world:
            await world.register()
            codes = []
            for _ in range(5):
                await asyncio.sleep(30)
                name, address, cluster = BROKER
                heartbeat = BrokerHeartbeatRequest(cluster, address, name)
                await world.ask(RequestCode.BROKER_HEARTBEAT, heartbeat)
            codes.append(await world.route_code())
            # The connection is kept busy, so that silence matters and not the closed connection.
            for _ in range(14):
                await asyncio.sleep(10)
                codes.append(await world.route_code())
            return codes, world.kinds()

    loop = SimulatedLoop()
    codes, kinds = run_simulated(main(loop), loop)
    assert codes[0] == 0
    assert codes[10] == 0
    assert codes[-1] == 17
    assert kinds == [Kind.REGISTER, *[Kind.HEARTBEAT] * 5, Kind.EXPIRE]


def test_a_closed_connection_removes_the_broker_at_once() -> None:
    async def main(loop: SimulatedLoop) -> tuple[int, Event]:
        async with World(loop) as world:
            await world.register()
            world.network.cut(world.address)
            await asyncio.sleep(0.1)
            return await world.route_code(), world.broker_events()[-1]

    loop = SimulatedLoop()
    code, event = run_simulated(main(loop), loop)
    assert code == 17
    assert (event.kind, event.attrs["reason"]) == (Kind.EXPIRE, "connection closed")


def test_cluster_info_lists_the_brokers() -> None:
    async def main(loop: SimulatedLoop) -> Command:
        async with World(loop) as world:
            await world.register()
            return await world.ask(RequestCode.GET_BROKER_CLUSTER_INFO)

    loop = SimulatedLoop()
    info = java_json.read(ClusterInfo, run_simulated(main(loop), loop).body)
    assert info.cluster_addr_table == {"C": ["b-a"]}
    assert info.broker_addr_table["b-a"].broker_addrs == {0: "10.0.0.1:10911"}


def test_a_request_with_missing_fields_or_a_broken_body_gets_an_error_answer() -> None:
    async def main(loop: SimulatedLoop) -> list[Command]:
        async with World(loop) as world:
            name, address, cluster = BROKER
            header = RegisterBrokerRequest(name, address, cluster, "h:1", 0)
            return [
                await world.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC),
                await world.ask(RequestCode.REGISTER_BROKER, header, b"{"),
                await world.register(),
            ]

    loop = SimulatedLoop()
    missing, broken, fine = run_simulated(main(loop), loop)
    assert (missing.code, broken.code, fine.code) == (1, 1, 0)
    assert "topic" in (missing.remark or "")
    assert "RegisterBrokerBody" in (broken.remark or "")


_TOPICS = TopicConfigs(DataVersion(1), {"T": TopicConfig("T"), "": TopicConfig("U", perm=-1)})
_BODIES = [
    b"",
    b"{",
    b"\xff",
    java_json.write(RegisterBrokerBody(_TOPICS)),
    zlib.compress(b"\0\0\0\x02{}\0\0\0\x01\0\0\0\x12T 4 4 6 SINGLE_TAG\0\0\0\x02[]"),
    b'{"brokerDatas":[],"queueDatas":[{"brokerName":"b-a","perm":6,"readQueueNums":1}]}',
    b"orderMessageEnable=true\nneedWaitForService=false",
    b"listenPort=1",
    zlib.compress(b"\0\0\0\x02{}\0\0\0\x01\0\0\0\x02T "),
]
_VALUES = {
    **dict.fromkeys(
        (
            "brokerName",
            "brokerAddr",
            "clusterName",
            "haServerAddr",
            "topic",
            "cluster",
            "namespace",
            "key",
            "value",
        ),
        ("b-a", "b-b", "10.0.0.1:10911", "10.0.0.2:10911", "C", "", "\0", "T"),
    ),
    **dict.fromkeys(("brokerId", "bodyCrc32"), ("0", "1", "-1", str(2**63 - 1), "9" * 30, "x")),
    **dict.fromkeys(("compressed", "acceptStandardJsonOnly"), ("true", "false", "?")),
}
_changes = st.sampled_from([(name, value) for name, values in _VALUES.items() for value in values])
_requests = st.tuples(
    st.sampled_from([103, 103, 103, 104, 105, 106, 904, 999, *sorted(PROCESSORS)]),
    st.lists(_changes, max_size=2).map(dict),
    st.sampled_from(_BODIES),
    st.sampled_from([True, True, True, False]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_requests, min_size=8, max_size=16))
def test_every_request_is_answered_and_the_tables_keep_working(
    requests: list[tuple[int, dict[str, str], bytes, bool]],
) -> None:
    register = RegisterBrokerRequest("b-a", "10.0.0.1:10911", "C", "10.0.0.1:10912", 0, compressed=True)
    complete = {
        **headers.write(register),
        **headers.write(RouteRequest("T")),
        **headers.write(PutKvRequest("N", "K", "V")),
        "cluster": "C",
    }

    async def main(loop: SimulatedLoop) -> None:
        async with World(loop) as world:
            for code, fields, body, whole in requests:
                asked = new_request(code, {**complete, **fields} if whole else fields, body)
                answer = await world.client.invoke(world.address, asked, 3.0)
                # An unexpected exception would be answered with the name of its type.
                assert not re.match(r"[A-Za-z]+Error: ", answer.remark or ""), answer
            assert (await world.register()).code == 0
            assert await world.route_code() == 0

    loop = SimulatedLoop()
    run_simulated(main(loop), loop)


def test_the_event_log_has_the_start_and_each_route() -> None:
    async def main(loop: SimulatedLoop) -> list[tuple[Kind, str | None, dict[str, str]]]:
        async with World(loop) as world:
            await world.route_code()
            await world.register()
            await world.register(broker=("b-a", "10.0.0.2:10911", "C"), id=1)
            await world.route_code()
            return [(event.kind, event.topic, event.attrs) for event in world.events]

    loop = SimulatedLoop()
    started, nothing, *_, route = run_simulated(main(loop), loop)
    times = {"expiry_ms": "120000", "scan_interval_ms": "10000"}
    assert started == (Kind.RECOVER, None, {**times, "schema": str(SCHEMA_VERSION)})
    assert nothing == (Kind.ROUTE, "T", {"brokers": "", "writable": ""})
    assert route == (Kind.ROUTE, "T", {"brokers": "b-a:0,b-a:1", "writable": "b-a"})


def test_a_broker_is_missed_after_40_seconds() -> None:
    async def scenario(world: World) -> list[bool]:
        """Advance the time to the last millisecond and the next one; queries keep the connection in use."""
        assert not world.server.awaits_upkeep()
        await world.register()
        [live] = world.server.table.living()
        found = []
        for after_ms in (40_000, 40_001):
            await asyncio.sleep((live.last_update_ms + after_ms - 20_000) / 1000 - world.loop.time())
            await world.route_code()
            await asyncio.sleep((live.last_update_ms + after_ms + 0.5) / 1000 - world.loop.time())
            found.append(world.server.awaits_upkeep())
        return found

    assert play(scenario) == [False, True]


def test_a_client_is_missed_after_40_seconds() -> None:
    async def scenario(world: World) -> list[bool]:
        await world.route_code()
        [channel] = world.server._server._channels
        found = []
        for after_s in (39.999, 40.002):
            await asyncio.sleep(channel.active_at_s + after_s - world.loop.time())
            found.append(world.server.awaits_upkeep())
        world.server.count_clients_as_heard()
        return [*found, world.server.awaits_upkeep()]

    assert play(scenario) == [False, True, False]


def test_the_upkeep_acts_on_brokers_and_the_versions_of_their_topics() -> None:
    async def scenario(world: World) -> None:
        seen = [world.server.noticeable()]
        await world.register()
        seen.append(world.server.noticeable())
        await world.register(version=2)
        seen.append(world.server.noticeable())
        assert all(before != after for before, after in pairwise(seen))
        await world.register(version=2)
        assert world.server.noticeable() == seen[-1]

    play(scenario)


def test_the_shares_of_addresses_and_connections_are_those_of_the_configuration() -> None:
    loop = SimulatedLoop()
    runtime = simulated(loop, SimulatedNetwork())
    config = NameServerConfig(port=0, address_percent=30, connection_percent=20)

    async def main() -> list[Shares]:
        return [budget.limits for budget in NameServer(config, runtime).budgets]

    total = 256 << 20
    of_bytes = Shares(total, total * 30 // 100, total * 20 // 100)
    connections = Shares(runtime.connections_max, max(1000, runtime.connections_max * 30 // 100), 1)
    assert run_simulated(main(), loop) == [connections, of_bytes, of_bytes, of_bytes]


@pytest.mark.parametrize("path", ["", "/etc/accounts.yml"])
def test_a_name_server_with_accounts_reads_its_file_and_later_changes_of_it(path: str) -> None:
    disk, file = SimulatedDisk(), path or "store/namesrv/plain_acl.yml"
    write_durably(disk, file, b'globalWhiteRemoteAddresses: ["*"]\naccounts: []')

    async def scenario(world: World) -> list[int]:
        codes = [(await world.register()).code]
        write_durably(disk, file, b"accounts: []")
        await asyncio.sleep(60)
        return [*codes, (await world.register()).code, await world.route_code()]

    config = NameServerConfig(port=0, acl_enabled=True, acl_path=path)
    codes = play(scenario, config, disk)
    assert codes == [ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR, ResponseCode.SUCCESS]

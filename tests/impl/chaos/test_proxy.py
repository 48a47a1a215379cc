"""Frames pass unchanged, all traffic passes the proxy, and a failure is an error or a closed connection."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from mqproof.impl.chaos.capture import CaptureWriter, Recorded, read_capture
from mqproof.impl.chaos.frame_head import frame_of
from mqproof.impl.chaos.plan import Plan, of_faults
from mqproof.impl.chaos.proxy import ChaosConfig, ChaosProxy, UpstreamError
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import ClusterInfo
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Serialization, new_request
from mqproof.impl.runtime.network import Address, Connection
from tests.impl.chaos.faulted import Faulted, outcome, plan
from tests.impl.world import World, play


class Peer:
    """The end of a connection: keeps what it receives."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.data = b""
        self.is_closed = False

    def received(self, data: bytes) -> None:
        self.data += data

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None:
        self.is_closed = True


async def _pair(world: World, chosen: Plan) -> tuple[ChaosProxy, list[Peer], Peer]:
    """Return a proxy in front of a server that only listens, the server's ends, and a client."""
    servers: list[Peer] = []

    def accept(connection: Connection) -> Peer:
        servers.append(Peer(connection))
        return servers[-1]

    proxy = ChaosProxy(ChaosConfig(world.namesrv_address), chosen, world.runtime)
    await proxy.start()
    (port,) = proxy._ports.values()
    listener = await world.network.listen("127.0.0.1", 0, accept)
    port.upstream = listener.address
    clients: list[Peer] = []

    def connected(connection: Connection) -> Peer:
        clients.append(Peer(connection))
        return clients[-1]

    await world.network.connect(port.address, connected)
    return proxy, servers, clients[0]


@pytest.mark.parametrize("serialization", Serialization)
def test_frames_without_faults_pass_byte_by_byte(serialization: Serialization) -> None:
    frames = [
        frame_of(new_request(310, {"b": "T", "e": "1"}, b"not a message")),
        frame_of(new_request(11, {"topic": "T", "queueId": "0", "consumerGroup": "G"})),
        frame_of(new_request(99, {"unknown": "x"}, b"body")),
    ]

    async def run(world: World) -> None:
        proxy, servers, client = await _pair(world, of_faults([]))
        proxy.calm()
        data = b"".join(frames)
        for at in range(0, len(data), 7):  # cut anywhere
            client.connection.write(data[at : at + 7])
        await asyncio.sleep(1)
        assert servers[0].data == data
        servers[0].connection.write(data)
        await asyncio.sleep(1)
        assert client.data == data
        await proxy.stop()
        await asyncio.sleep(1)
        assert client.is_closed
        assert servers[0].is_closed

    play(run)


def test_bytes_that_are_no_frames_close_the_connection() -> None:
    async def run(world: World) -> None:
        proxy, servers, client = await _pair(world, Plan())
        client.connection.write(b"\x7f" * 100)
        await asyncio.sleep(1)
        assert client.is_closed
        assert servers[0].data == b""
        await proxy.stop()

    play(run)


def test_a_signed_request_is_not_changed() -> None:
    async def run(world: World) -> None:
        proxy, servers, client = await _pair(world, plan("pull_fewer"))
        fields = {"topic": "T", "queueId": "0", "consumerGroup": "G", "maxMsgNums": "32"}
        for more in ({}, {"Signature": "s", "AccessKey": "a"}):
            client.connection.write(frame_of(new_request(11, fields | more)))
        await asyncio.sleep(1)
        assert servers[0].data.count(b'"maxMsgNums":"1"') == 1
        assert servers[0].data.count(b'"maxMsgNums":"32"') == 1
        assert proxy.draws.counts == {"pull_fewer": 1}
        await proxy.stop()

    play(run)


def test_routes_and_the_list_of_brokers_name_the_ports_of_the_proxy() -> None:
    async def run(world: World) -> None:
        async with Faulted(world, Plan()) as it:
            await it.send()
            assert str(it.broker).encode() in (await it.route()).body
            request = new_request(RequestCode.GET_BROKER_CLUSTER_INFO)
            answer = await it.client.invoke(it.name_server, request, 30.0)
            cluster = java_json.read(ClusterInfo, answer.body)
            assert cluster.broker_addr_table["broker-a"].broker_addrs == {0: str(it.broker)}
            assert str(world.broker_address).encode() not in answer.body

    play(run)


def test_a_broker_that_appears_later_gets_a_port_before_a_route_names_it() -> None:
    async def run(world: World) -> None:
        async with Faulted(world, Plan()) as it:
            await it.send()
            it.proxy._ports.clear()
            body = (await it.route()).body
            (address,) = it.proxy.brokers.values()
            assert str(address).encode() in body
            assert address != it.broker

    play(run)


def test_the_same_requests_meet_the_same_faults() -> None:
    async def run(seed: int, world: World) -> list[tuple[str, str, int]]:
        async with Faulted(world, of_faults(["send_busy=0.3", "flush_disk_timeout=0.3"], seed=seed)) as it:
            for number in range(40):
                await outcome(it.send(f"m{number}", number % 4))
            return [(each.fault, each.queue, each.number) for each in it.proxy.injected]

    first, again, other = (play(partial(run, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert {fault for fault, _, _ in first} == {"send_busy", "flush_disk_timeout"}


def test_a_name_server_that_does_not_answer_is_an_error_that_names_it() -> None:
    async def run(world: World) -> None:
        proxy = ChaosProxy(ChaosConfig(Address("127.0.0.1", 1)), Plan(), world.runtime)
        with pytest.raises(UpstreamError, match=r"name server 127\.0\.0\.1:1: no connection"):
            await proxy.start()

    play(run)


def test_a_busy_port_is_an_error() -> None:
    async def run(world: World) -> None:
        upstream = world.namesrv_address
        config = ChaosConfig(upstream, upstream.host, upstream.port)
        with pytest.raises(OSError, match="in use"):
            await ChaosProxy(config, Plan(), world.runtime).start()

    play(run)


def test_a_broker_that_stops_closes_the_connections_of_clients() -> None:
    async def run(world: World) -> None:
        async with Faulted(world, Plan()) as it:
            assert await outcome(it.send()) == "SUCCESS"
            await world.stop_broker()
            assert await outcome(it.send()) in ("lost", "refused")
            await asyncio.sleep(1)
            assert await outcome(it.send()) in ("lost", "refused")

    play(run)


def test_the_calm_ends_the_faults_that_are_in_progress() -> None:
    async def run(world: World) -> None:
        async with Faulted(world, plan("broker_restart", at=[1], delay_ms=60_000)) as it:
            assert await outcome(it.send("m1")) == "lost"
            it.proxy.calm()
            assert await outcome(it.send("m2")) == "SUCCESS"

    play(run)


def test_the_capture_has_what_the_client_sent_and_what_it_was_sent(tmp_path: Path) -> None:
    async def run(world: World) -> None:
        capture = CaptureWriter((tmp_path / "c").open("wb"), lambda: 0)
        async with Faulted(world, plan("send_answer_lost", at=[2]), capture) as it:
            await it.send("m1")
            await outcome(it.send("m2"))

    play(run)
    with (tmp_path / "c").open("rb") as file:
        kinds = [entry.kind for entry in read_capture(file, "c")]
    assert kinds == [
        *(Recorded.OPENED, Recorded.TO_SERVER, Recorded.TO_CLIENT),
        *(Recorded.TO_SERVER, Recorded.FAULT, Recorded.CLOSED, Recorded.END),
    ]

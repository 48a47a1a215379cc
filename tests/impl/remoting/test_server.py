"""Tests a listener's times: when idle connections are closed, and how long a stop waits.

Source: docs/reference/protocol/framing.md, "Remoting frame".
"""

import asyncio

import pytest

from mqproof.impl.remoting.budget import server_budgets
from mqproof.impl.remoting.channel import Channel, RemotingError
from mqproof.impl.remoting.command import encode, new_request
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.runtime.supervision import Supervisor
from tests.impl.remoting.test_channel import ECHO, PROCESSORS, SLOW, RawPeer, Stubborn, World

FRAME = encode(new_request(ECHO, body=b"x"))


async def until(time_s: float) -> None:
    await asyncio.sleep(time_s - asyncio.get_running_loop().time())


@pytest.mark.parametrize("data", [FRAME, FRAME[:6]])
@pytest.mark.parametrize(("last_s", "is_closed"), [(9.5, True), (10.5, False)])
def test_a_connection_is_closed_when_a_scan_finds_it_idle_for_more_than_120_s(
    data: bytes, last_s: float, is_closed: bool
) -> None:
    """Scans run every 10 s; a frame that is not complete counts from its first byte."""

    async def main() -> None:
        async with World() as world:
            peer = await world.raw()
            await until(last_s)
            peer.connection.write(data)
            await until(129.9)
            assert not peer.is_closed
            await until(130.2)
            assert peer.is_closed is is_closed
            await until(140.2)
            assert peer.is_closed

    run_simulated(main())


def test_the_rest_of_a_frame_must_arrive_within_120_s_however_active_the_peer_is() -> None:
    async def main() -> None:
        async with World() as world:
            peer = await world.raw()
            await until(9.5)
            for position in range(120):
                peer.connection.write(FRAME[position : position + 1] if position < len(FRAME) - 1 else b"")
                await asyncio.sleep(1)
            assert not peer.is_closed
            await until(130.2)
            assert peer.is_closed

    run_simulated(main())


@pytest.mark.parametrize(("needed", "is_answered"), [(b"0.95", True), (b"1.05", False)])
def test_a_stop_waits_a_second_for_the_requests_in_progress(needed: bytes, is_answered: bool) -> None:
    async def main() -> None:
        async with World() as world:
            asking = asyncio.create_task(world.ask(SLOW, needed))
            await asyncio.sleep(0.01)
            began_s = asyncio.get_running_loop().time() - 0.01
            await world.server.stop()
            if is_answered:
                assert (await asking).body == needed
            else:
                with pytest.raises(RemotingError):
                    await asking
            assert asyncio.get_running_loop().time() - began_s < 1.1

    run_simulated(main())


def test_a_connection_counts_while_it_is_open() -> None:
    async def main() -> None:
        async with World(connections_max=2) as world:
            used = world.server.budgets.connections
            first, _ = await world.raw(), await world.raw()
            refused = await world.raw()
            await asyncio.sleep(0.1)
            assert (used.used, first.is_closed, refused.is_closed) == (2, False, True)
            first.connection.close()
            await asyncio.sleep(0.1)
            assert used.used == 1
            again = await world.raw()
            await asyncio.sleep(0.1)
            assert (used.used, again.is_closed) == (2, False)

    run_simulated(main())


def test_the_traffic_changes_with_each_request_and_with_its_answer() -> None:
    async def main() -> None:
        async with World() as world:
            seen = [world.server.traffic()]
            asking = asyncio.create_task(world.ask(SLOW, b"1"))
            for _ in range(2):
                await asyncio.sleep(0.4)
                seen.append(world.server.traffic())
            await asking
            await asyncio.sleep(0.1)
            seen.append(world.server.traffic())
            assert [one.unanswered for one in seen] == [0, 1, 1, 0]
            assert seen[0] != seen[1] == seen[2]
            assert seen[3].activity > seen[2].activity

    run_simulated(main())


def test_a_peer_is_silent_since_its_last_bytes_or_since_it_was_counted_as_active() -> None:
    async def main() -> None:
        async with World() as world:
            assert not world.server.has_silent(1e9), "there is no peer"
            peers = [await world.raw(), await world.raw()]
            await asyncio.sleep(5)
            for peer in peers:
                peer.connection.write(FRAME)
            await asyncio.sleep(5)
            peers[0].connection.write(FRAME)
            await asyncio.sleep(1)
            assert world.server.has_silent(5.5)
            assert not world.server.has_silent(4.9)
            world.server.count_as_active()
            assert not world.server.has_silent(10.9)

    run_simulated(main())


def test_a_killed_server_breaks_its_connections_at_once() -> None:
    async def main() -> tuple[bool, bytes]:
        async with World() as world:
            peer: RawPeer = await world.raw()
            peer.connection.write(encode(new_request(SLOW, body=b"0.5")))
            await asyncio.sleep(0.1)
            world.server.kill()
            await asyncio.sleep(1)
            return peer.is_closed, bytes(peer.buffer)

    assert run_simulated(main()) == (True, b"")


# The end of a server.


class Lingering(Stubborn):
    """A connection that is closed some time after that was requested; None means never."""

    def __init__(self, closing_s: float | None) -> None:
        super().__init__()
        self.closing_s = closing_s
        self.channel: Channel | None = None

    def close(self) -> None:
        assert self.channel is not None
        if self.closing_s is not None:
            asyncio.get_running_loop().call_later(self.closing_s, self.channel.closed)


@pytest.mark.parametrize(("closing_s", "stopped_s"), [(0.5, 0.5), (0.95, 0.95), (1.5, 1.0), (None, 1.0)])
def test_a_stop_waits_up_to_a_second_for_its_connections_to_close(
    closing_s: float | None, stopped_s: float
) -> None:
    async def main() -> float:
        server = RemotingServer(SimulatedNetwork(), handler(PROCESSORS))
        await server.start("127.0.0.1", 0)
        connection = Lingering(closing_s)
        connection.channel = server._accept(connection)
        await server.stop()
        return asyncio.get_running_loop().time()

    assert run_simulated(main()) == pytest.approx(stopped_s, abs=0.001)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_server_that_ended_accepts_no_connection_and_runs_nothing(end: str) -> None:
    async def main() -> None:
        network, supervisor = SimulatedNetwork(), Supervisor()
        server = RemotingServer(network, handler(PROCESSORS), supervisor=supervisor)
        address = await server.start("127.0.0.1", 0)
        assert supervisor.running == {"scan for idle connections"}
        assert len(asyncio.all_tasks()) == 2
        if end == "stop":
            await server.stop()
        else:
            server.kill()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        with pytest.raises(OSError, match="no server listens on"):
            await network.connect(address, RawPeer().accept)
        assert asyncio.get_running_loop().time() < 0.1, "there was no connection to wait for"

    run_simulated(main())


def test_a_second_stop_does_not_end_the_next_server_at_the_address() -> None:
    async def main() -> None:
        network = SimulatedNetwork()
        first, second = (RemotingServer(network, handler(PROCESSORS)) for _ in range(2))
        address = await first.start("127.0.0.1", 4711)
        await first.stop()
        assert await second.start(*address) == address
        await first.stop()
        await network.connect(address, RawPeer().accept)
        await second.stop()

    run_simulated(main())


def test_a_server_that_did_not_start_can_be_ended() -> None:
    async def main() -> None:
        server = RemotingServer(SimulatedNetwork(), handler(PROCESSORS))
        await server.stop()
        server.kill()

    run_simulated(main())


def test_the_listeners_of_a_server_share_its_budgets() -> None:
    async def main() -> None:
        budgets = server_budgets(7, 1 << 20)
        server = RemotingServer(SimulatedNetwork(), handler(PROCESSORS), budgets=budgets)
        assert server.budgets is budgets
        own = RemotingServer(SimulatedNetwork(), handler(PROCESSORS), connections_max=7)
        assert own.budgets.connections.limits.total == 7

    run_simulated(main())

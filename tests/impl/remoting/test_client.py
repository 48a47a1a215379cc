"""Tests that a client with many connections reports the result of each request."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import pytest

from mqproof.impl.remoting.channel import ConnectError, ConnectionLostError, Limits, RequestTimeoutError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import (
    Address,
    AsyncioNetwork,
    Connection,
    ReceiverFactory,
    SimulatedNetwork,
)
from mqproof.impl.runtime.simulated_loop import run_simulated


class Slow(AsyncioNetwork):
    """Do several things with a connection before the coroutine that requested it continues."""

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        connection = await super().connect(address, on_connection)
        await asyncio.sleep(0.05)
        return connection


def test_a_connection_that_is_lost_at_once_is_a_connect_error() -> None:
    async def ask() -> None:
        greeted: list[Address] = []
        client = RemotingClient(Slow(), on_connected=greeted.append)
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            for _ in range(2):
                with pytest.raises(ConnectError, match="lost as soon as it was made"):
                    await client.invoke(Address(host, port), new_request(1), 1.0)
        assert greeted == []
        await client.close()

    asyncio.run(ask())


class Held(AsyncioNetwork):
    """Holds a connection back until `release` is set, and then connects in the same turn of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.release = asyncio.Event()

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
        connection = await super().connect(address, on_connection)
        await self.release.wait()
        return connection


def test_a_cancellation_at_the_moment_of_the_connection_is_not_lost() -> None:
    """asyncio.wait_for of Python 3.11 returns the connection instead, and the request is sent."""

    async def ask() -> None:
        received: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            received.append(await reader.read(1))
            writer.close()
            await writer.wait_closed()
            served.set()

        served = asyncio.Event()
        network = Held()
        client = RemotingClient(network)
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            address = Address(*server.sockets[0].getsockname())
            task = asyncio.create_task(client.invoke(address, new_request(1), 30.0))
            while not client._connecting:
                await asyncio.sleep(0)
            connecting = client._connecting[address]
            connecting.add_done_callback(lambda _: task.cancel())
            network.release.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            await client.close()
            await served.wait()
        assert b"".join(received) == b""

    asyncio.run(ask())


def test_a_cancelled_caller_of_a_closed_client_is_cancelled() -> None:
    async def ask() -> tuple[bool, BaseException | None]:
        network = Held()
        client = RemotingClient(network)
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            address = Address(*server.sockets[0].getsockname())
            cancelled, waiting = (
                asyncio.create_task(client.invoke(address, new_request(1), 30.0)) for _ in range(2)
            )
            while not client._connecting:
                await asyncio.sleep(0)
            await client.close()
            cancelled.cancel()
            await asyncio.wait([cancelled, waiting])
        return cancelled.cancelled(), waiting.exception()

    is_cancelled, error = asyncio.run(ask())
    assert is_cancelled
    assert isinstance(error, ConnectError)


class Never(SimulatedNetwork):
    """Connections are never made; `cancelled` counts the attempts that were given up."""

    cancelled = 0

    async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:  # noqa: ARG002
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise AssertionError("no connection is made")


@pytest.mark.parametrize(
    ("timeout_s", "waited_s", "is_oneway"), [(10.0, 3.0, False), (2.0, 2.0, False), (10.0, 3.0, True)]
)
def test_a_connection_is_awaited_for_3_s_and_not_longer_than_the_answer(
    timeout_s: float, waited_s: float, is_oneway: bool
) -> None:
    async def main() -> float:
        client, address = RemotingClient(Never()), Address("10.0.0.1", 1)
        asking: Coroutine[Any, Any, object] = client.invoke(address, new_request(1), timeout_s)
        if is_oneway:
            asking.close()
            asking = client.send_oneway(address, new_request(1))
        with pytest.raises(ConnectError, match=f"no connection to .* within {waited_s * 1000:.0f} ms"):
            await asking
        return asyncio.get_running_loop().time()

    assert run_simulated(main()) == pytest.approx(waited_s)


def test_the_time_for_the_connection_counts_for_the_answer() -> None:
    class Late(SimulatedNetwork):
        async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:
            await asyncio.sleep(2)
            return await super().connect(address, on_connection)

    async def main() -> float:
        network = Late()
        server = RemotingServer(network, lambda _request, _channel: None)
        client = RemotingClient(network)
        address = await server.start("127.0.0.1", 0)
        with pytest.raises(RequestTimeoutError):
            await client.invoke(address, new_request(1), 5.0)
        took_s = asyncio.get_running_loop().time()
        await client.close()
        await server.stop()
        return took_s

    assert run_simulated(main()) == pytest.approx(5.0, abs=0.01)


@pytest.mark.parametrize("end", ["close", "abort"])
def test_a_client_that_ends_gives_up_its_attempts_to_connect(end: str) -> None:
    async def main() -> int:
        network = Never()
        client, address = RemotingClient(network), Address("10.0.0.1", 1)
        asking = asyncio.create_task(client.invoke(address, new_request(1), 2.0))
        await asyncio.sleep(1)
        if end == "close":
            await client.close()
        else:
            client.abort()
        with pytest.raises(ConnectError, match="the client is closed"):
            await asking
        assert asyncio.get_running_loop().time() < 1.1
        return network.cancelled

    assert run_simulated(main()) == 1


def test_a_client_has_one_connection_for_each_address_with_its_limits() -> None:
    async def main() -> None:
        network = SimulatedNetwork()
        server = RemotingServer(network, lambda request, _channel: request.answer(0))
        greeted: list[Address] = []
        client = RemotingClient(network, limits=Limits(pending_max=0), on_connected=greeted.append)
        address = await server.start("127.0.0.1", 0)
        assert not client.is_connected(address)
        assert client.channel(address) is None
        for _ in range(2):
            with pytest.raises(ConnectError, match=r"0 requests to .* are already unanswered"):
                await client.invoke(address, new_request(1), 1.0)
        assert client.is_connected(address)
        assert greeted == [address]
        assert client.channel(address) is not None
        assert server.budgets.connections.used == 1
        await client.close()
        await asyncio.sleep(0.1)
        assert not client.is_connected(address)
        await server.stop()

    run_simulated(main())


def test_an_aborted_client_breaks_its_connections_and_makes_no_other() -> None:
    async def main() -> None:
        network = SimulatedNetwork()
        server = RemotingServer(network, lambda _request, _channel: None)
        client = RemotingClient(network)
        address = await server.start("127.0.0.1", 0)
        asking = asyncio.create_task(client.invoke(address, new_request(1), 60.0))
        await asyncio.sleep(1)
        client.abort()
        with pytest.raises(ConnectionLostError):
            await asking
        assert asyncio.get_running_loop().time() < 1.1
        with pytest.raises(ConnectError, match="the client is closed"):
            await client.invoke(address, new_request(1), 1.0)
        await server.stop()

    run_simulated(main())


def test_an_attempt_that_fails_after_its_callers_gave_up_is_not_reported() -> None:
    class Failing(SimulatedNetwork):
        async def connect(self, address: Address, on_connection: ReceiverFactory) -> Connection:  # noqa: ARG002
            await asyncio.sleep(2)
            raise OSError("no route")

    async def main() -> list[object]:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        client = RemotingClient(Failing())
        with pytest.raises(ConnectError):
            await client.invoke(Address("10.0.0.1", 1), new_request(1), 1.0)
        await asyncio.sleep(2)
        gc.collect()
        return reported

    assert run_simulated(main()) == []

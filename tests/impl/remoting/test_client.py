"""Tests that a client with many connections reports the result of each request."""

import asyncio

import pytest

from mqproof.impl.remoting.channel import ConnectError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import new_request
from mqproof.impl.runtime.network import Address, AsyncioNetwork, Connection, ReceiverFactory


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

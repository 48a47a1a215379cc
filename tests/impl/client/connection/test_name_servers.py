"""Which name server is asked, and what happens when it is away.

Source: docs/reference/protocol/clients.md, "Name servers and routes".
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from mqproof.impl.client.connection.name_servers import NameServerChoice
from mqproof.impl.client.connection.session import Session
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.address_server import FETCH_INTERVAL_S, AddressServer
from mqproof.impl.remoting.channel import ConnectError, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from tests.impl.remoting.test_address_server import WHERE, ok, web_server


class Site:
    """Name servers on a network, and a client that asks them."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.network = SimulatedNetwork()
        self.runtime = simulated(loop, self.network)
        self.client = RemotingClient(self.network)
        self.servers: dict[Address, NameServer] = {}

    async def start_server(self) -> Address:
        server = NameServer(NameServerConfig(port=0), self.runtime)
        address = await server.start()
        self.servers[address] = server
        return address

    async def asked(self, choice: NameServerChoice) -> Address:
        """Ask something; returns who answered."""
        await choice.invoke(RequestCode.GET_BROKER_CLUSTER_INFO, {})
        return (await choice.known())[0]


def play(scene: Callable[[Site], Awaitable[None]]) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        site = Site(loop)
        await scene(site)
        await site.client.close()
        for server in site.servers.values():
            await server.stop()

    run_simulated(main(), loop)


def choice_of(site: Site, *addresses: Address, seed: int = 0) -> NameServerChoice:
    return NameServerChoice(site.client, site.network, addresses, Random(seed))


def test_one_name_server_is_asked_as_long_as_it_answers() -> None:
    async def scene(site: Site) -> None:
        choice = choice_of(site, *[await site.start_server() for _ in range(3)])
        assert len({await site.asked(choice) for _ in range(5)}) == 1

    play(scene)


def test_clients_begin_with_different_name_servers() -> None:
    async def scene(site: Site) -> None:
        addresses = [await site.start_server() for _ in range(3)]
        first = {await site.asked(choice_of(site, *addresses, seed=seed)) for seed in range(20)}
        assert first == set(addresses)

    play(scene)


def test_the_next_one_is_asked_when_the_connection_to_this_one_breaks() -> None:
    async def scene(site: Site) -> None:
        choice = choice_of(site, await site.start_server(), await site.start_server())
        first = await site.asked(choice)
        site.network.cut(first)
        await asyncio.sleep(0.1)
        second = await site.asked(choice)
        assert second != first  # though the first one still listens
        assert await site.asked(choice) == second

    play(scene)


def test_a_silent_name_server_is_left_after_its_time_and_requests_at_once_leave_it_once() -> None:
    async def scene(site: Site) -> None:
        choice = choice_of(site, await site.start_server(), await site.start_server())
        first = await site.asked(choice)
        site.network.silence(first)
        await asyncio.gather(*(site.asked(choice) for _ in range(2)))
        assert (await choice.known())[0] != first

    play(scene)


def test_each_is_tried_once_before_a_request_fails() -> None:
    async def scene(site: Site) -> None:
        nowhere = [Address("10.9.9.9", port) for port in (1, 2, 3)]
        choice = choice_of(site, *nowhere, await site.start_server())
        await site.asked(choice)
        with pytest.raises(RemotingError):
            await site.asked(choice_of(site, *nowhere))

    play(scene)


def test_new_addresses_keep_the_one_that_is_asked_if_it_is_among_them() -> None:
    async def scene(site: Site) -> None:
        old, new = await site.start_server(), await site.start_server()
        for seed in range(8):  # whatever the order in which they come
            choice = choice_of(site, old, seed=seed)
            await site.asked(choice)
            choice.become([old, new])
            assert ((await choice.known())[0], set(await choice.known())) == (old, {old, new})
            choice.become([new])
            assert await site.asked(choice) == new

    play(scene)


def test_an_address_server_tells_of_name_servers_that_come_and_go() -> None:
    async def scene(site: Site) -> None:
        first, second = await site.start_server(), await site.start_server()
        told: list[Address | None] = [first]
        await web_server(site.network, lambda: ok(str(told[0])) if told[0] else None)
        session = Session(AddressServer(WHERE, "/"), site.runtime)
        await session.start()
        assert await site.asked(session.name_servers) == first
        told[0] = second
        await asyncio.sleep(FETCH_INTERVAL_S + 1)
        assert await session.name_servers.known() == [second]
        told[0] = None
        await asyncio.sleep(2 * FETCH_INTERVAL_S)
        assert await session.name_servers.known() == [second]
        await session.stop()

    play(scene)


def test_without_any_name_server_a_request_fails_and_says_who_told_none() -> None:
    async def scene(site: Site) -> None:
        choice = NameServerChoice(site.client, site.network, AddressServer(WHERE, "/x"), Random(0))
        with pytest.raises(
            ConnectError, match=r"no name server is known: http://10.0.0.7:8080/x: nobody listens"
        ):
            await site.asked(choice)

    play(scene)

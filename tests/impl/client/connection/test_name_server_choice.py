"""Tests the choice of a name server, also when one is down.

Source: docs/reference/protocol/clients.md, "Name servers and routes".
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any, cast

import pytest

from mqproof.impl.client.connection.name_server_choice import NameServerChoice
from mqproof.impl.client.connection.session import Session
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.address_server import FETCH_INTERVAL_S, AddressServer
from mqproof.impl.remoting.channel import ConnectError, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from tests.impl.remoting.test_address_server import WHERE, ok, web_server


class Site:
    """Name servers on a network, and a client that uses them."""

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
        """Send a request and return the server that answered."""
        await choice.invoke(RequestCode.GET_BROKER_CLUSTER_INFO, {})
        return (await choice.known())[0]


def play(scenario: Callable[[Site], Awaitable[None]]) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        site = Site(loop)
        await scenario(site)
        await site.client.close()
        for server in site.servers.values():
            await server.stop()

    run_simulated(main(), loop)


def choice_of(site: Site, *addresses: Address, seed: int = 0) -> NameServerChoice:
    return NameServerChoice(site.client, site.network, addresses, Random(seed))


def test_one_name_server_is_used_as_long_as_it_answers() -> None:
    async def scenario(site: Site) -> None:
        choice = choice_of(site, *[await site.start_server() for _ in range(3)])
        assert len({await site.asked(choice) for _ in range(5)}) == 1

    play(scenario)


def test_clients_start_with_different_name_servers() -> None:
    async def scenario(site: Site) -> None:
        addresses = [await site.start_server() for _ in range(3)]
        first = {await site.asked(choice_of(site, *addresses, seed=seed)) for seed in range(20)}
        assert first == set(addresses)

    play(scenario)


def test_the_next_name_server_is_used_when_the_connection_to_this_one_breaks() -> None:
    async def scenario(site: Site) -> None:
        choice = choice_of(site, await site.start_server(), await site.start_server())
        first = await site.asked(choice)
        site.network.cut(first)
        await asyncio.sleep(0.1)
        second = await site.asked(choice)
        assert second != first  # although the first one still listens
        assert await site.asked(choice) == second

    play(scenario)


def test_concurrent_requests_leave_a_silent_name_server_only_once() -> None:
    async def scenario(site: Site) -> None:
        choice = choice_of(site, await site.start_server(), await site.start_server())
        first = await site.asked(choice)
        site.network.silence(first)
        await asyncio.gather(*(site.asked(choice) for _ in range(2)))
        assert (await choice.known())[0] != first

    play(scenario)


def test_each_name_server_is_tried_once_before_a_request_fails() -> None:
    async def scenario(site: Site) -> None:
        nowhere = [Address("10.9.9.9", port) for port in (1, 2, 3)]
        choice = choice_of(site, *nowhere, await site.start_server())
        await site.asked(choice)
        with pytest.raises(RemotingError):
            await site.asked(choice_of(site, *nowhere))

    play(scenario)


def test_new_addresses_keep_the_current_name_server_if_it_is_among_them() -> None:
    async def scenario(site: Site) -> None:
        old, new = await site.start_server(), await site.start_server()
        for seed in range(8):  # in any order
            choice = choice_of(site, old, seed=seed)
            await site.asked(choice)
            choice.become([old, new])
            assert ((await choice.known())[0], set(await choice.known())) == (old, {old, new})
            choice.become([new])
            assert await site.asked(choice) == new

    play(scenario)


def test_an_address_server_adds_and_removes_name_servers() -> None:
    async def scenario(site: Site) -> None:
        first, second = await site.start_server(), await site.start_server()
        reported: list[Address | None] = [first]
        await web_server(site.network, lambda: ok(str(reported[0])) if reported[0] else None)
        session = Session(AddressServer(WHERE, "/"), site.runtime)
        await session.start()
        assert await site.asked(session.name_servers) == first
        reported[0] = second
        await asyncio.sleep(FETCH_INTERVAL_S + 1)
        assert await session.name_servers.known() == [second]
        reported[0] = None
        await asyncio.sleep(2 * FETCH_INTERVAL_S)
        assert await session.name_servers.known() == [second]
        await session.stop()

    play(scenario)


def test_a_request_without_any_name_server_fails_and_names_the_address_server() -> None:
    async def scenario(site: Site) -> None:
        choice = NameServerChoice(site.client, site.network, AddressServer(WHERE, "/x"), Random(0))
        with pytest.raises(
            ConnectError, match=r"no name server is known: http://10.0.0.7:8080/x: no server listens"
        ):
            await site.asked(choice)

    play(scenario)


def test_a_wrong_name_server_is_a_warning_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        wrong = Address("127.0.0.1", 1)
        choice = choice_of(site, wrong)
        for pause_s in (1, 1, 60, 0):
            with pytest.raises(ConnectError):
                await site.asked(choice)
            await asyncio.sleep(pause_s)

    play(scenario)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2
    assert warnings[0].startswith("no name server responds (127.0.0.1:1): ")


class Scripted:
    """Stands for the remoting client: records the addresses that are tried."""

    def __init__(self) -> None:
        self.tried: list[Address] = []
        self.timeouts_s: set[float] = set()
        self.silent: set[Address] = set()
        self.connected: set[Address] = set()

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        self.tried.append(address)
        self.timeouts_s.add(timeout_s)
        if address in self.silent:
            self.connected.discard(address)
            raise RemotingError("silent")
        self.connected.add(address)
        return request.answer(0)

    def is_connected(self, address: Address) -> bool:
        return address in self.connected

    async def asked(self, choice: NameServerChoice) -> list[Address]:
        """Send a request and return the servers that were tried for it."""
        self.tried.clear()
        with suppress(RemotingError):
            await choice.invoke(RequestCode.GET_BROKER_CLUSTER_INFO, {})
        return list(self.tried)


THREE = [Address("n", port) for port in (1, 2, 3)]


def scripted() -> tuple[Scripted, NameServerChoice, list[Address]]:
    """Return a choice of three name servers, and these in their order."""
    client = Scripted()
    choice = NameServerChoice(cast(Any, client), SimulatedNetwork(), THREE, Random(0))
    return client, choice, run_simulated(choice.known())


def test_the_next_server_is_the_first_one_to_try_after_a_failure() -> None:
    client, choice, (a, b, c) = scripted()

    async def scenario() -> None:
        assert await client.asked(choice) == [a]
        client.silent = {a}
        assert await client.asked(choice) == [a, b]
        assert await client.asked(choice) == [b]
        assert await choice.known() == [b, c, a]
        client.silent = {a, b, c}
        assert await client.asked(choice) == [b, c, a]
        client.silent = set()
        assert await client.asked(choice) == [
            b
        ]  # it has not answered since, so its connection does not count
        client.connected.clear()
        assert await client.asked(choice) == [c]
        assert client.timeouts_s == {3.0}

    run_simulated(scenario())


def test_the_same_addresses_change_neither_the_order_nor_the_server_in_use() -> None:
    client, choice, (a, b, c) = scripted()

    async def scenario() -> None:
        client.silent = {a}
        await client.asked(choice)
        for seed in range(8):
            choice._chance.seed(seed)
            choice.become([c, b, a])
            assert await choice.known() == [b, c, a]

    run_simulated(scenario())


def test_a_new_list_is_tried_from_its_start() -> None:
    client, choice, (a, *_) = scripted()

    async def scenario() -> None:
        assert await client.asked(choice) == [a]
        choice.become([Address("m", 1), Address("m", 2)])
        first, _ = await choice.known()
        assert await client.asked(choice) == [first]
        assert choice.addresses == tuple(await choice.known())

    run_simulated(scenario())


def test_silence_is_logged_when_it_lasts_then_once_a_minute_and_anew_after_a_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client, choice, _ = scripted()

    async def warned(at_s: float, *, silent: bool = True) -> bool:
        caplog.clear()
        client.silent = set(THREE) if silent else set()
        await asyncio.sleep(at_s - asyncio.get_running_loop().time())
        await client.asked(choice)
        return bool(caplog.messages)

    async def scenario() -> None:
        expected = {8: False, 8.25: False, 8.5: True, 9: False, 68.25: False, 68.5: True, 69: False}
        assert {at_s: await warned(at_s) for at_s in expected} == expected
        assert not await warned(70, silent=False)
        expected = {71: False, 71.25: False, 71.5: True}
        assert {at_s: await warned(at_s) for at_s in expected} == expected

    run_simulated(scenario())
    tried = ";".join(map(str, choice.addresses))
    assert caplog.messages == [f"no name server responds ({tried}): silent"]


def test_only_the_addresses_of_an_address_server_are_refreshed(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        given = choice_of(site, *THREE)
        fetched = NameServerChoice(site.client, site.network, AddressServer(WHERE, "/x"), Random(0))
        assert (given.is_fetched, fetched.is_fetched) == (False, True)
        await given.refresh()
        assert caplog.messages == []
        await fetched.refresh()
        assert caplog.messages[0].startswith("the name servers are unchanged: http://10.0.0.7:8080/x")
        assert fetched.addresses == ()
        caplog.clear()
        for _ in range(2):
            with pytest.raises(ConnectError):
                await site.asked(fetched)
            await asyncio.sleep(1)
        assert caplog.messages[0].startswith("no name server responds (none known): no name server is known")

    play(scenario)

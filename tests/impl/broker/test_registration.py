"""Tests the registration of a broker. Source: docs/reference/protocol/name-server.md, "Registration"."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest
from msgspec import UNSET

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.registration import Registrar
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.address_server import FETCH_INTERVAL_S, AddressServer
from mqproof.impl.remoting.bodies import BrokerData, ClusterInfo, RegisterBrokerBody
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    UnregisterBrokerRequest,
)
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.spec.events import Event, Kind
from tests.impl.remoting.test_address_server import WHERE, ok, web_server
from tests.impl.world import World, play


async def knows(world: World, name_server: Address) -> list[str]:
    """Return the names of the brokers that the name server knows."""
    request = new_request(RequestCode.GET_BROKER_CLUSTER_INFO)
    answer = await world.session.remoting.invoke(name_server, request, 3.0)
    return sorted(java_json.read(ClusterInfo, answer.body).broker_addr_table)


def test_a_broker_registers_at_every_name_server_even_if_one_is_down() -> None:
    async def scenario(world: World) -> None:
        other = NameServer(NameServerConfig(port=0), world.runtime)
        servers = (Address("10.9.9.9", 1), world.namesrv_address, await other.start())
        config = replace(world.config, name="b-x", store_directory="/x", name_servers=servers)
        broker = Broker(config, world.runtime)
        await broker.start()
        assert await knows(world, servers[1]) == ["b-x", "broker-a"]
        assert await knows(world, servers[2]) == ["b-x"]
        await broker.stop()
        assert await knows(world, servers[2]) == []
        await other.stop()

    play(scenario)


def test_a_silent_name_server_does_not_delay_the_others() -> None:
    async def scenario(world: World) -> None:
        silent = NameServer(NameServerConfig(port=0), world.runtime)
        servers = (await silent.start(), world.namesrv_address)
        world.network.silence(servers[0])
        config = replace(world.config, name="b-x", store_directory="/x", name_servers=servers)
        broker = Broker(config, world.runtime)
        starting = asyncio.create_task(broker.start())
        await asyncio.sleep(2)  # by this world's clock; the silent name server is given up after 6 s
        assert await knows(world, servers[1]) == ["b-x", "broker-a"]
        await starting
        await broker.stop()
        await silent.stop()

    play(scenario)


def test_a_broker_that_stops_unregisters_at_every_name_server() -> None:
    async def scenario(world: World) -> list[Kind]:
        events: list[Event] = []
        log = EventLog(events.append, "namesrv", world.runtime.clock)
        other = NameServer(NameServerConfig(port=0), world.runtime, log)
        servers = (world.namesrv_address, await other.start())
        config = replace(world.config, name="b-x", store_directory="/x", name_servers=servers)
        broker = Broker(config, world.runtime)
        await broker.start()
        await broker.stop()
        await other.stop()
        return [event.kind for event in events]

    assert play(scenario) == [Kind.RECOVER, Kind.REGISTER, Kind.UNREGISTER]


def test_the_address_server_adds_a_name_server_without_a_restart() -> None:
    async def scenario(world: World) -> None:
        reported = [str(world.namesrv_address)]
        await web_server(world.network, lambda: ok(";".join(reported)))
        config = replace(
            world.config, name="b-x", store_directory="/x", name_servers=AddressServer(WHERE, "/nsaddr")
        )
        broker = Broker(config, world.runtime)
        await broker.start()
        assert "b-x" in await knows(world, world.namesrv_address)
        added = NameServer(NameServerConfig(port=0), world.runtime)
        address = await added.start()
        reported.append(str(address))
        a_while_s = FETCH_INTERVAL_S + config.register_interval_ms / 1000 + 1
        await asyncio.sleep(a_while_s)
        assert await knows(world, address) == ["b-x"]
        reported.clear()  # an address server without an answer changes nothing
        await asyncio.sleep(3 * a_while_s)
        assert await knows(world, address) == ["b-x"]
        await broker.stop()
        await added.stop()

    play(scenario)


async def seeking_slave(
    world: World, name_servers: tuple[Address, ...]
) -> tuple[Registrar, list[RegisterBrokerResponse]]:
    """Return the registrar of a slave of broker `b-x`, and a list of the answers to its registrations."""
    config = replace(world.config, name="b-x", broker_id=1, name_servers=name_servers)
    answers: list[RegisterBrokerResponse] = []
    broker = world.broker
    assert broker is not None
    assert broker.services is not None
    services = replace(broker.services, config=config, on_registered=answers.append)
    return Registrar(services, world.session.remoting), answers


def test_a_slave_registers_again_when_its_master_has_returned_at_the_same_address() -> None:
    """The master may accept slaves at another port than before."""

    async def scenario(world: World) -> None:
        registrar, answers = await seeking_slave(world, (world.namesrv_address,))

        async def master() -> Broker:
            own = replace(world.config, name="b-x", port=7777, store_directory="/x")
            broker = Broker(replace(own, name_servers=(world.namesrv_address,)), world.runtime)
            await broker.start()
            return broker

        first = await master()
        known = Address(world.config.host, 7777)
        await registrar.seek_master(known)
        assert not answers, "the known master is no news"
        await first.stop()
        await registrar.seek_master(known)
        assert not answers, "there is no master"
        second = await master()
        await registrar.seek_master(known)
        assert [answer.master_addr for answer in answers] == [str(known)]
        await registrar.seek_master(known)
        assert len(answers) == 1, "asked and answered"
        await second.stop()

    play(scenario)


def test_a_slave_finds_its_master_at_once_although_two_name_servers_are_silent() -> None:
    async def scenario(world: World) -> float:
        silent = [NameServer(NameServerConfig(port=0), world.runtime) for _ in range(2)]
        addresses = [await each.start() for each in silent]
        for address in addresses:
            world.network.silence(address)
        registrar, answers = await seeking_slave(world, (*addresses, world.namesrv_address))
        own = replace(world.config, name="b-x", port=7777, store_directory="/x")
        broker = Broker(replace(own, name_servers=(world.namesrv_address,)), world.runtime)
        await broker.start()
        loop = asyncio.get_running_loop()
        began = loop.time()
        seeking = asyncio.create_task(registrar.seek_master(None))
        while not answers:
            await asyncio.sleep(0.01)
        seconds = loop.time() - began
        await seeking
        await broker.stop()
        for each in silent:
            await each.stop()
        return seconds

    assert play(scenario) < 0.2


Answer = bytes | dict[str, str] | ResponseCode | Exception


class NameServers:
    """Answers the requests of a registrar as the test says, and records them."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Address, Command]] = []
        self.timeouts_s: list[float] = []

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        self.asked.append((address, request))
        self.timeouts_s.append(timeout_s)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ResponseCode):
            return request.answer(answer, remark="as the test says")
        if isinstance(answer, dict):
            return request.answer(ResponseCode.SUCCESS, answer)
        return request.answer(ResponseCode.SUCCESS, body=answer)


FIRST, SECOND = Address("10.0.0.8", 9876), Address("10.0.0.9", 9876)


def registrar_of(world: World, name_servers: NameServers, **changes: object) -> Registrar:
    assert world.broker is not None
    assert world.broker.services is not None
    config = replace(world.config, name="b-x", name_servers=(FIRST, SECOND))
    services = replace(world.broker.services, config=config, **changes)  # type: ignore[arg-type]
    return Registrar(services, cast("RemotingClient", name_servers))


def cluster(**addresses: dict[int, str]) -> bytes:
    return java_json.write(
        ClusterInfo({name: BrokerData(of, name, "C") for name, of in addresses.items()}, {})
    )


@pytest.mark.parametrize(
    ("answers", "peers", "asked"),
    [
        ([cluster(other={0: "10.0.0.1:1"})], (), 1),
        ([cluster(**{"b-x": {1: "10.0.0.3:1", 0: "10.0.0.2:1"}})], ("10.0.0.2:1", "10.0.0.3:1"), 1),
        ([b"[]", cluster(**{"b-x": {0: "10.0.0.2:1"}})], ("10.0.0.2:1",), 2),
        ([cluster(**{"b-x": {0: "nowhere"}}), cluster(**{"b-x": {0: "10.0.0.2:1"}})], ("10.0.0.2:1",), 2),
        ([RemotingError("silent"), RemotingError("silent")], (), 2),
    ],
)
def test_the_peers_are_those_that_the_first_readable_answer_names(
    answers: list[bytes | Exception], peers: tuple[str, ...], asked: int
) -> None:
    async def scenario(world: World) -> None:
        name_servers = NameServers(*answers)
        found = await registrar_of(world, name_servers).peers()
        assert tuple(map(str, found)) == peers
        assert [address for address, _ in name_servers.asked] == [FIRST, SECOND][:asked]

    play(scenario)


def test_a_broker_is_not_its_own_peer() -> None:
    async def scenario(world: World) -> None:
        own, other = str(world.broker_address), "10.0.0.2:1"
        name_servers = NameServers(cluster(**{"b-x": {0: own, 1: other}}))
        assert [str(one) for one in await registrar_of(world, name_servers).peers()] == [other]

    play(scenario)


@pytest.mark.parametrize("given", [None, Address("10.0.0.7", 4000)])
def test_a_registration_names_the_port_of_slaves_or_the_next_port(given: Address | None) -> None:
    async def scenario(world: World) -> None:
        name_servers = NameServers(RemotingError("silent"), RemotingError("silent"))
        await registrar_of(world, name_servers, ha_address=given).register()
        own = world.broker_address
        expected = given or Address(own.host, own.port + 1)
        for address, (_, request) in zip((FIRST, SECOND), name_servers.asked, strict=True):
            header = headers.read(RegisterBrokerRequest, request.fields)
            assert (header.ha_server_addr, header.broker_addr) == (str(expected), str(own)), address

    play(scenario)


def test_a_failure_of_a_name_server_is_logged_once_until_its_next_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        silent, refused, ok = RemotingError("silent"), ResponseCode.SYSTEM_ERROR, b""
        unreadable = {"haServerAddr": "x" * 100_000}
        rounds: list[tuple[Answer, Answer]] = [
            (silent, ok),
            (silent, refused),
            (ok, refused),
            (refused, ok),
            (ok, unreadable),
        ]
        name_servers = NameServers(*(answer for answers in rounds for answer in answers))
        answers: list[RegisterBrokerResponse] = []
        registrar = registrar_of(world, name_servers, on_registered=answers.append)
        caplog.clear()
        for _ in rounds:
            await registrar.register()
        words = [record.getMessage().partition(" does not know this broker: ") for record in caplog.records]
        assert [(who, why.partition(":")[0]) for who, _, why in words] == [
            (f"name server {FIRST}", "silent"),
            (f"name server {SECOND}", "SYSTEM_ERROR"),
            (f"name server {FIRST}", "SYSTEM_ERROR"),
            (f"name server {SECOND}", "RegisterBrokerResponse"),
        ]
        assert "as the test says" in words[1][2]
        assert len(answers) == 4

    play(scenario)


def test_a_registration_waits_six_seconds_a_search_one_and_an_unregistration_three() -> None:
    async def scenario(world: World) -> None:
        name_servers = NameServers(*[RemotingError("silent")] * 6)
        registrar = registrar_of(world, name_servers)
        await registrar.register()
        await registrar.seek_master(None)
        await registrar.unregister()
        assert name_servers.timeouts_s == [6, 6, 1, 1, 3, 3]
        header = headers.read(UnregisterBrokerRequest, name_servers.asked[-1][1].fields)
        assert header == UnregisterBrokerRequest("b-x", str(world.broker_address), world.config.cluster, 0)

    play(scenario)


@pytest.mark.parametrize(
    ("addresses", "known", "registers"),
    [
        (["m:1"], None, [True]),
        (["m:1"], "m:1", [False]),
        (["m:1"], "n:1", [True]),
        ([None, "m:1", "m:1"], "m:1", [False, True, False]),
        (["", "m:1"], "m:1", [False, False]),
    ],
)
def test_a_slave_registers_when_a_name_server_knows_another_master_or_one_that_has_returned(
    addresses: list[str | None], known: str | None, registers: list[bool]
) -> None:
    """None stands for an answer without a master, and "" for a name server that is silent."""

    async def scenario(world: World) -> None:
        silent = RemotingError("silent")
        seen = []
        registrar: Registrar | None = None
        for address in addresses:
            answer = silent if address == "" else cluster(**({"b-x": {0: address}} if address else {}))
            name_servers = NameServers(answer, silent)
            registrar = registrar or registrar_of(world, name_servers)
            registrar._client, registrar._name_servers = cast("RemotingClient", name_servers), (FIRST,)
            await registrar.seek_master(None if known is None else Address.parse(known))
            seen.append(RequestCode.REGISTER_BROKER in [request.code for _, request in name_servers.asked])
        assert seen == registers

    play(scenario)


@pytest.mark.parametrize(
    ("changes", "state_version"), [({}, UNSET), ({"term": lambda: 0}, UNSET), ({"term": lambda: 1}, 1)]
)
def test_the_version_of_the_topics_of_a_leader_has_its_term(
    changes: dict[str, object], state_version: object
) -> None:
    async def scenario(world: World) -> None:
        name_servers = NameServers(*[RemotingError("silent")] * 2)
        await registrar_of(world, name_servers, **changes).register()
        body = java_json.read(RegisterBrokerBody, name_servers.asked[0][1].body)
        assert body.topic_config_serialize_wrapper.data_version.state_version == state_version

    play(scenario)

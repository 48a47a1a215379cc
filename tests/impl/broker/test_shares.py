"""Tests that one connection or address cannot use all of a broker, and that others are still served.

Source: docs/how-to/broker.md, "Bounds".
"""

import asyncio
from dataclasses import replace

import pytest

from mqproof.impl.broker.config import BrokerConfig, read
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerData, Heartbeat, Subscription
from mqproof.impl.remoting.budget import NameBudget, Percentages, Shares
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import UpdateTopicRequest
from tests.impl.broker.processors.test_send import CONFIG, send
from tests.impl.broker.test_broker import PULL, altered
from tests.impl.world import World, play

BUSY = ResponseCode.SYSTEM_BUSY
FEW = Shares(total=9, address=4, connection=2)


async def ask(
    world: World, client: RemotingClient, code: int, fields: dict[str, str], body: bytes = b""
) -> int:
    return (await client.invoke(world.broker_address, new_request(code, fields, body), 60.0)).code


def beat(group: str, subscription: str = "*") -> bytes:
    data = ConsumerData(group, subscription_data_set=[Subscription("T", subscription)])
    return java_json.write(Heartbeat("c", [data]), standard=True)


def test_a_connection_and_an_address_have_shares_of_the_held_pulls(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> list[int | None]:
        assert world.broker is not None
        assert world.broker.services is not None
        await send(world)
        world.broker.services.holds.budget.limits = FEW
        fields = altered(PULL, queueOffset=1, sysFlag=6, suspendTimeoutMillis=20_000)
        clients = [RemotingClient(world.network) for _ in range(3)]
        held = [
            asyncio.ensure_future(ask(world, client, RequestCode.PULL_MESSAGE, fields))
            for client in (clients[0], clients[0], clients[0], clients[1], clients[1], clients[2])
        ]
        await asyncio.sleep(1)
        found = [one.result() if one.done() else None for one in held]
        assert (await send(world)).code == ResponseCode.SUCCESS
        assert [await one for one in held] == [0, 0, BUSY, 0, 0, BUSY]
        for client in clients:
            await client.close()
        return found

    assert play(scenario) == [None, None, BUSY, None, None, BUSY]
    lines = [one for one in caplog.messages if "held pulls" in one]
    assert len(lines) == 1
    assert "2 held pulls of this connection, at most 2 allowed" in lines[0]


@pytest.mark.parametrize("how", ["send", "update", "heartbeat"])
def test_a_connection_has_a_share_of_the_topics_until_they_are_deleted(how: str) -> None:
    async def scenario(world: World) -> list[int]:
        assert world.broker is not None
        assert world.broker.services is not None
        created: NameBudget = world.broker.services.topics.budget
        created.limits = FEW
        one, other = RemotingClient(world.network), RemotingClient(world.network)

        async def make(client: RemotingClient, topic: str) -> int:
            if how == "heartbeat":
                return await ask(world, client, RequestCode.HEART_BEAT, {}, beat(topic))
            if how == "update":
                fields = headers.write(UpdateTopicRequest(topic, "TBW102", 1, 1, 6))
                return await ask(world, client, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
            fields = headers.write(headers.SendRequest("PG", topic, "TBW102", 1, 0, 0, 0, 0))
            return await ask(world, client, RequestCode.SEND_MESSAGE, fields, b"x")

        found = [await make(one, f"T{number}") for number in range(3)]
        found += [await make(other, f"U{number}") for number in range(3)]
        name = "%RETRY%T0" if how == "heartbeat" else "T0"
        await ask(world, one, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": name})
        found.append(await make(other, "U3"))
        third = RemotingClient(world.network)
        found += [await make(third, "V0"), await make(third, "V1")]
        for client in (one, other, third):
            await client.close()
        return found

    # Per connection two, per address four; a deleted one makes room for its address.
    assert play(scenario) == [0, 0, BUSY, 0, 0, BUSY, BUSY, 0, BUSY]


def test_a_connection_has_a_share_of_the_groups_and_of_what_heartbeats_say() -> None:
    async def scenario(world: World) -> list[int]:
        assert world.broker is not None
        assert world.broker.services is not None
        services = world.broker.services
        one, other = RemotingClient(world.network), RemotingClient(world.network)
        services.groups.budget.limits = FEW
        found = [
            await ask(world, one, RequestCode.HEART_BEAT, {}, beat(group))
            for group in ("G1", "G2", "G3", "G1")
        ]
        services.clients.budget.limits = Shares(5000, 5000, 3000)
        for client, text in ((one, "x" * 1500), (one, "x" * 3000), (one, "*"), (other, "x" * 1500)):
            found.append(await ask(world, client, RequestCode.HEART_BEAT, {}, beat("G1", text)))
        await one.close()
        await asyncio.sleep(1)
        found.append(await ask(world, other, RequestCode.HEART_BEAT, {}, beat("G1", "x" * 2000)))
        await other.close()
        await asyncio.sleep(1)
        assert services.clients.budget.used == 0
        return found

    assert play(scenario) == [0, 0, BUSY, 0, 0, BUSY, 0, 0, 0]


def test_both_ports_of_a_broker_and_its_tables_have_the_shares_of_the_configuration() -> None:
    text = "addressSharePercent=30\nconnectionSharePercent=20\npullThreadPoolQueueCapacity=50000\n"
    config, unknown = read(text, "f")
    assert not unknown
    percent = Percentages(30, 20)

    async def scenario(world: World) -> None:
        assert world.broker is not None
        assert world.broker.services is not None
        services = world.broker.services
        assert services.holds.budget.limits == Shares(50_000, 15_000, 10_000)
        assert services.topics.budget.limits == Shares(50_000, 15_000, 10_000)
        assert services.groups.budget.limits == Shares(50_000, 15_000, 10_000)
        assert services.clients.budget.limits.address == services.clients.budget.limits.total * 30 // 100
        assert world.broker._budgets.connections.limits.address == 3000
        assert world.broker._server is not None
        assert world.broker._server.budgets is world.broker._budgets
        assert world.broker._percent == percent

    more = {name: getattr(config, name) for name in ("address_percent", "connection_percent", "holds_max")}
    assert BrokerConfig().holds_max == 100_000
    play(scenario, config=replace(CONFIG, **more))

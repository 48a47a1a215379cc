"""Tests pulls by SQL92: selection, refusals, and expressions that heartbeats registered.

Source: docs/reference/protocol/filters.md, "Filter data".
"""

import asyncio
from dataclasses import replace

import pytest

from mqproof.impl.broker.broker import Broker
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import PullResult
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import ClientCheck, ConsumerData, Heartbeat, Subscription
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.message import Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from tests.impl.broker.processors.test_pull import bodies, pull
from tests.impl.broker.processors.test_send import CONFIG
from tests.impl.broker.test_broker import QUEUE
from tests.impl.world import World, play

WITH_FILTERS = replace(CONFIG, property_filter=True)
SQL = {"subscription": "price > 10", "expressionType": "SQL92"}


async def send_prices(world: World) -> None:
    for price in ("5", "20", "x", None, "11"):
        properties = {} if price is None else {"price": price}
        await world.producer.send(Message("T", f"{price}".encode(), properties), QUEUE)


async def beat(world: World, expression: str, version: int) -> None:
    subscription = Subscription("T", expression, expression_type="SQL92", sub_version=version)
    body = Heartbeat("c1", [ConsumerData("G", subscription_data_set=[subscription])], [])
    await world.ask(RequestCode.HEART_BEAT, body=java_json.write(body, standard=True))


def test_a_pull_returns_the_messages_that_the_expression_selects_and_moves_over_the_others() -> None:
    async def scenario(world: World) -> tuple[PullResult, PullResult]:
        await send_prices(world)
        wanted = MessageSelector.sql("price > 10")
        none = MessageSelector.sql("price > 1000")
        return await world.consumer.pull(QUEUE, 0, tags=wanted), await world.consumer.pull(
            QUEUE, 0, tags=none
        )

    some, none = play(scenario, config=WITH_FILTERS)
    assert [stored.message.body for stored in some.messages] == [b"20", b"11"]
    assert some.next_offset == 5
    assert (none.status, none.next_offset) == ("NO_MATCHED_MESSAGE", 5)


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        (SQL, ResponseCode.SYSTEM_ERROR, "its enablePropertyFilter is false"),
        ({**SQL, "subscription": "price >"}, ResponseCode.SYSTEM_ERROR, "its enablePropertyFilter is false"),
        (
            {**SQL, "expressionType": "XPATH"},
            ResponseCode.SYSTEM_ERROR,
            "filter type XPATH is not supported",
        ),
    ],
)
def test_a_broker_without_filters_refuses_expressions(
    changes: dict[str, object], code: ResponseCode, remark: str
) -> None:
    async def scenario(world: World) -> None:
        await send_prices(world)
        answer = await pull(world, sysFlag=4, **changes)
        assert (answer.code, remark in (answer.remark or "")) == (code, True), answer.remark
        check = ClientCheck(
            "c1",
            "G",
            Subscription("T", str(changes["subscription"]), expression_type=str(changes["expressionType"])),
        )
        body = java_json.write(check, standard=True)
        checked = await world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body)
        assert (checked.code, checked.remark) == (answer.code, answer.remark)

    play(scenario)


def test_a_broker_with_filters_accepts_a_valid_expression_in_a_check() -> None:
    async def scenario(world: World) -> list[int]:
        checks = [
            ClientCheck("c1", "G", Subscription("T", "a = 1", expression_type="SQL92")),
            ClientCheck("c1", "G", Subscription("T", "a =", expression_type="SQL92")),
            ClientCheck("c1", "G", Subscription("T", "TagA")),
            ClientCheck("c1", "G"),
        ]
        code = RequestCode.CHECK_CLIENT_CONFIG
        return [(await world.ask(code, body=java_json.write(check, standard=True))).code for check in checks]

    assert play(scenario, config=WITH_FILTERS) == [0, 23, 0, 0]


def test_a_pull_without_an_expression_uses_the_one_of_the_heartbeats_also_after_a_restart() -> None:
    async def scenario(world: World) -> list[tuple[int, list[bytes]]]:
        await send_prices(world)
        answers = []

        async def ask(version: int) -> None:
            answer = await pull(
                world, sysFlag=0, subVersion=version, subscription=None, expressionType="SQL92"
            )
            answers.append((answer.code, bodies(answer)))

        await ask(1)
        await beat(world, "price > 10", 1)
        await ask(1)
        await ask(2)
        await world.stop_broker()
        await world.start_broker()
        assert world.broker is not None
        assert world.broker.services is not None
        kept = world.broker.services.filters.get("T", "G")
        assert kept is not None
        assert kept.expression == "price > 10"
        return answers

    assert play(scenario, config=replace(WITH_FILTERS, port=10_911)) == [
        (ResponseCode.SUBSCRIPTION_NOT_EXIST, []),
        (0, [b"20", b"11"]),
        (ResponseCode.SUBSCRIPTION_NOT_LATEST, []),
    ]


def test_an_expression_that_the_broker_lacks_or_has_in_an_older_version_is_refused() -> None:
    async def scenario(world: World) -> list[int]:
        await send_prices(world)
        await beat(world, "price >", 1)  # invalid, so it is not registered
        missing = await pull(world, sysFlag=0, subVersion=1, subscription=None)
        await beat(world, "price > 10", 2)
        await beat(world, "price >", 3)
        older = await pull(world, sysFlag=0, subVersion=3, subscription=None)
        return [missing.code, older.code]

    assert play(scenario, config=WITH_FILTERS) == [
        ResponseCode.FILTER_DATA_NOT_EXIST,
        ResponseCode.FILTER_DATA_NOT_LATEST,
    ]


def test_a_slave_has_the_expressions_of_groups_that_never_connected_to_it() -> None:
    async def scenario(world: World) -> None:
        await beat(world, "price > 10", 7)
        disk = SimulatedDisk()
        names = (world.namesrv_address,)
        role = ReplicationConfig(role=Role.SLAVE, ha_port=0)
        config = replace(WITH_FILTERS, port=10921, broker_id=1, name_servers=names, replication=role)
        slave = Broker(config, replace(world.runtime, disk=disk))
        await slave.start()
        await asyncio.sleep(40)
        assert slave.services is not None
        found = slave.services.filters.get("T", "G")
        await slave.stop()
        assert found is not None
        assert (found.expression, found.client_version) == ("price > 10", 7)
        assert found.dead_time, "the group has no members there"

    role = ReplicationConfig(role=Role.ASYNC_MASTER, ha_port=0)
    play(scenario, config=replace(WITH_FILTERS, replication=role))

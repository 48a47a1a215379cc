"""Tests the requests of brokers over a simulated network.

Source: docs/reference/protocol/name-server.md, "Registration" and "Expiry".
"""

import asyncio

import pytest

from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import DataVersion, MemberGroup, Table
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    BrokerHeartbeatRequest,
    DataVersionRequest,
    DataVersionResponse,
    MemberGroupRequest,
    PutKvRequest,
    RegisterBrokerResponse,
    UnregisterBrokerRequest,
)
from mqproof.spec.events import Kind
from tests.impl.namesrv.world import BROKER, World, play

NAME, ADDRESS, CLUSTER = BROKER
SLAVE = (NAME, "10.0.0.2:10911", CLUSTER)


def changed(answer: Command) -> bool:
    return headers.read(DataVersionResponse, answer.fields).changed


async def query(world: World, version: int) -> Command:
    header = DataVersionRequest(NAME, ADDRESS, CLUSTER, 0)
    return await world.ask(RequestCode.QUERY_DATA_VERSION, header, java_json.write(DataVersion(version)))


def test_the_answer_to_a_slave_has_its_master() -> None:
    async def scenario(world: World) -> None:
        alone = headers.read(RegisterBrokerResponse, (await world.register(broker=SLAVE, id=1)).fields)
        assert alone.master_addr is None
        await world.register()
        answered = headers.read(RegisterBrokerResponse, (await world.register(broker=SLAVE, id=1)).fields)
        assert (answered.master_addr, answered.ha_server_addr) == (ADDRESS, f"{ADDRESS}9")

    play(scenario)


def test_the_query_of_a_data_version_is_logged_as_a_heartbeat() -> None:
    async def scenario(world: World) -> list[Kind]:
        await query(world, 1)
        await world.register()
        await query(world, 1)
        return world.kinds()

    assert play(scenario) == [Kind.REGISTER, Kind.HEARTBEAT]


def test_a_data_version_is_changed_if_it_differs_from_the_registered_one() -> None:
    async def scenario(world: World) -> None:
        unknown = await query(world, 1)
        assert (changed(unknown), unknown.body) == (True, b"")
        await world.register(version=1)
        same, newer = await query(world, 1), await query(world, 2)
        assert (changed(same), changed(newer)) == (False, True)
        assert java_json.read(DataVersion, newer.body) == DataVersion(1)

    play(scenario)


def test_a_query_of_the_data_version_keeps_a_broker_alive() -> None:
    async def scenario(world: World) -> None:
        await world.register()
        for _ in range(5):
            await asyncio.sleep(40)
            await query(world, 2)
        assert await world.route_code() == ResponseCode.SUCCESS

    play(scenario)


def test_a_broker_can_request_its_expiry_time() -> None:
    async def scenario(world: World) -> list[int]:
        await world.register(heartbeat_timeout_millis=20_000)
        codes = []
        for _ in range(4):
            codes.append(await world.route_code())
            await asyncio.sleep(12)
        return codes

    assert play(scenario) == [0, 0, 0, 17]


def test_a_heartbeat_can_change_the_expiry_time() -> None:
    async def scenario(world: World) -> int:
        await world.register(heartbeat_timeout_millis=20_000)
        await world.ask(RequestCode.BROKER_HEARTBEAT, BrokerHeartbeatRequest(CLUSTER, ADDRESS, NAME, 90_000))
        await asyncio.sleep(70)
        return await world.route_code()

    assert play(scenario) == ResponseCode.SUCCESS


def test_the_event_log_has_the_expiry_time_that_a_broker_requested() -> None:
    async def scenario(world: World) -> list[str | None]:
        await world.register()
        await world.register(heartbeat_timeout_millis=20_000)
        await world.ask(RequestCode.BROKER_HEARTBEAT, BrokerHeartbeatRequest(CLUSTER, ADDRESS, NAME, 90_000))
        return [event.attrs.get("expiry_ms") for event in world.broker_events()]

    assert play(scenario) == [None, "20000", "90000"]


def test_events_name_the_broker_and_its_address() -> None:
    async def scenario(world: World) -> list[tuple[Kind, str, str]]:
        await world.register()
        await world.ask(RequestCode.BROKER_HEARTBEAT, BrokerHeartbeatRequest(CLUSTER, ADDRESS, NAME, 90_000))
        await query(world, 1)
        await world.ask(RequestCode.UNREGISTER_BROKER, UnregisterBrokerRequest(NAME, ADDRESS, CLUSTER, 0))
        await world.register()
        await asyncio.sleep(200)
        return [
            (event.kind, event.attrs["broker"], event.attrs["address"]) for event in world.broker_events()
        ]

    assert play(scenario) == [
        (kind, NAME, ADDRESS)
        for kind in (
            Kind.REGISTER,
            Kind.HEARTBEAT,
            Kind.HEARTBEAT,
            Kind.UNREGISTER,
            Kind.REGISTER,
            Kind.EXPIRE,
        )
    ]


@pytest.mark.parametrize("count", [8, 9])
def test_the_event_of_a_registration_lists_up_to_eight_topics_and_their_version(count: int) -> None:
    async def scenario(world: World) -> list[dict[str, str]]:
        await world.register(*(f"T{number}" for number in range(count)), version=5)
        return [dict(event.attrs) for event in world.broker_events()]

    [attrs] = play(scenario)
    listed = {"topics": "T0,T1,T2,T3,T4,T5,T6,T7", "version": "0.0.5"}
    assert attrs == {"broker": NAME, "address": ADDRESS, "id": "0", **(listed if count == 8 else {})}


@pytest.mark.parametrize(
    ("asked_ms", "expiry_ms"),
    [(None, None), (-1, None), (0, None), (1, 1), (3_600_000, 3_600_000), (3_600_001, 3_600_000)],
)
def test_a_requested_expiry_time_counts_up_to_an_hour(asked_ms: int | None, expiry_ms: int | None) -> None:
    async def scenario(world: World) -> list[str | None]:
        await world.register(heartbeat_timeout_millis=asked_ms)
        await world.ask(
            RequestCode.BROKER_HEARTBEAT, BrokerHeartbeatRequest(CLUSTER, ADDRESS, NAME, asked_ms)
        )
        return [event.attrs.get("expiry_ms") for event in world.broker_events()]

    shown = None if expiry_ms is None else str(expiry_ms)
    assert play(scenario) == [shown, shown]


def test_the_expiry_time_that_a_broker_can_request_is_limited() -> None:
    async def scenario(world: World) -> int:
        await world.register(heartbeat_timeout_millis=2**62)
        for _ in range(400):  # the connection stays busy, so that only the broker's silence counts
            await asyncio.sleep(10)
            await world.route_code()
        return await world.route_code()

    assert play(scenario) == ResponseCode.TOPIC_NOT_EXIST


def test_the_answer_to_a_registration_has_the_ordered_topics_unless_disabled() -> None:
    async def scenario(world: World) -> bytes:
        await world.ask(RequestCode.PUT_KV_CONFIG, PutKvRequest("ORDER_TOPIC_CONFIG", "T", "b-a:4"))
        return (await world.register()).body

    assert java_json.read(Table, play(scenario)).table == {"T": "b-a:4"}
    assert play(scenario, NameServerConfig(port=0, return_order_to_brokers=False)) == b""


def test_the_members_of_a_broker_name_are_returned() -> None:
    async def scenario(world: World) -> None:
        await world.register()
        await world.register(broker=SLAVE, id=1)
        answer = await world.ask(RequestCode.GET_BROKER_MEMBER_GROUP, MemberGroupRequest(CLUSTER, NAME))
        group = java_json.read(MemberGroup, answer.body).broker_member_group
        assert group.broker_addrs == {0: ADDRESS, 1: SLAVE[1]}
        absent = await world.ask(RequestCode.GET_BROKER_MEMBER_GROUP, MemberGroupRequest("D", NAME))
        assert absent.code == ResponseCode.SYSTEM_ERROR

    play(scenario)


def test_a_registration_beyond_a_limit_is_refused_with_a_reason() -> None:
    async def scenario(world: World) -> Command:
        return await world.register("T" * 600)

    answer = play(scenario)
    assert (answer.code, answer.remark) == (1, "a name of 600 characters, 1 to 512 expected")


@pytest.mark.parametrize(("forget_unlisted", "code"), [(False, 0), (True, 17)])
def test_topics_that_a_master_no_longer_lists_are_deleted_if_enabled(
    forget_unlisted: bool, code: int
) -> None:
    async def scenario(world: World) -> int:
        await world.register("T", "U")
        await world.register("U", broker=("b-b", "10.0.0.2:10911", "C"))
        await world.register("U", version=1)
        assert await world.route_code() == 0  # the registration has no change
        await world.register("U", id=1, broker=("b-a", "10.0.0.3:10911", "C"), version=2)
        assert await world.route_code() == 0  # a slave does not know all topics
        await world.register("U", version=2)
        return await world.route_code()

    assert play(scenario, NameServerConfig(port=0, forget_unlisted=forget_unlisted)) == code

"""Tests changes by administrators over a simulated network.

Source: docs/reference/protocol/name-server.md, "Administration of a name server".
"""

from mqproof.impl.namesrv import config
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import QueueData, Table, TopicConfig, TopicRoute
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    AddWriteResponse,
    BrokerNameRequest,
    DeleteRoutedTopicRequest,
    KvNamespaceRequest,
    KvRequest,
    KvResponse,
    PutKvRequest,
    RegisterTopicRequest,
    RouteRequest,
    WipeWriteResponse,
)
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.properties import apply, parse
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from tests.impl.namesrv.world import World, play

PROTECTED = ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")


async def perm(world: World) -> int:
    answer = await world.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest("T"))
    return java_json.read(TopicRoute, answer.body).queue_datas[0].perm


def test_write_permission_is_removed_and_restored() -> None:
    async def scenario(world: World) -> None:
        await world.register("T", "U")
        wiped = await world.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, BrokerNameRequest("b-a"))
        assert headers.read(WipeWriteResponse, wiped.fields).wipe_topic_count == 2
        assert await perm(world) == 4
        added = await world.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, BrokerNameRequest("b-a"))
        assert headers.read(AddWriteResponse, added.fields).add_topic_count == 2
        assert await perm(world) == 6
        # Whatever the permission was before, the result is readable and writable.
        await world.register(TopicConfig("T", perm=1), "U", version=2)
        await world.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, BrokerNameRequest("b-a"))
        assert await perm(world) == 6
        unknown = await world.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, BrokerNameRequest("b-x"))
        assert headers.read(WipeWriteResponse, unknown.fields).wipe_topic_count == 0

    play(scenario)


def test_a_deleted_topic_stays_deleted_until_its_broker_registers_a_change() -> None:
    async def scenario(world: World) -> list[int]:
        await world.register()
        await world.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, DeleteRoutedTopicRequest("T", "D"))
        codes = [await world.route_code()]
        await world.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, DeleteRoutedTopicRequest("T"))
        codes.append(await world.route_code())
        await world.register(version=2)
        return [*codes, await world.route_code()]

    assert play(scenario) == [0, 17, 0]


def test_a_single_topic_is_registered_with_its_queues() -> None:
    async def scenario(world: World) -> int:
        await world.register("U")
        route = TopicRoute([], [QueueData("b-a", 6, 1, 0, 1)])
        await world.ask(
            RequestCode.REGISTER_TOPIC_IN_NAMESRV, RegisterTopicRequest("T"), java_json.write(route)
        )
        return await world.route_code()

    assert play(scenario) == ResponseCode.SUCCESS


def test_key_value_pairs_survive_a_restart_of_the_name_server() -> None:
    disk = SimulatedDisk()

    async def write(world: World) -> None:
        for key in ("a", "b"):
            await world.ask(RequestCode.PUT_KV_CONFIG, PutKvRequest("N", key, f"value of {key}"))
        await world.ask(RequestCode.DELETE_KV_CONFIG, KvRequest("N", "a"))

    async def look(world: World) -> None:
        found = await world.ask(RequestCode.GET_KV_CONFIG, KvRequest("N", "b"))
        assert headers.read(KvResponse, found.fields).value == "value of b"
        listed = await world.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, KvNamespaceRequest("N"))
        assert java_json.read(Table, listed.body).table == {"b": "value of b"}
        absent = [
            await world.ask(RequestCode.GET_KV_CONFIG, KvRequest("N", "a")),
            await world.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, KvNamespaceRequest("M")),
        ]
        assert {answer.code for answer in absent} == {ResponseCode.QUERY_NOT_FOUND}

    play(write, disk=disk)
    disk.lose_power()
    play(look, disk=disk)


def test_a_value_that_cannot_be_stored_is_refused_and_absent() -> None:
    async def scenario(world: World) -> list[int]:
        def full(step: Step) -> None:
            raise OSError(28, "No space left on device")

        world.disk.on_step = full
        answer = await world.ask(RequestCode.PUT_KV_CONFIG, PutKvRequest("N", "a", "v"))
        assert (answer.remark or "").startswith("kvConfig.json cannot be written")
        return [answer.code, (await world.ask(RequestCode.GET_KV_CONFIG, KvRequest("N", "a"))).code]

    assert play(scenario) == [ResponseCode.SYSTEM_ERROR, ResponseCode.QUERY_NOT_FOUND]


def test_the_configuration_can_be_read_and_changed_at_run_time() -> None:
    async def scenario(world: World) -> NameServerConfig:
        answer = await world.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true\nnews=1\n")
        assert answer.code == ResponseCode.SUCCESS
        text = (await world.ask(RequestCode.GET_NAMESRV_CONFIG)).body.decode()
        return NameServerConfig(**apply(parse(text, "shown"), config.OPTIONS))

    assert play(scenario) == NameServerConfig(port=0, order_messages=True)


def test_a_change_is_kept_in_the_properties_file_across_a_restart() -> None:
    disk = SimulatedDisk()
    write_durably(disk, "/n.conf", b"listenPort=0\norderMessageEnable=false\n")

    async def scenario(world: World) -> int:
        return (await world.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true")).code

    assert play(scenario, NameServerConfig(port=0, config_path="/n.conf"), disk) == ResponseCode.SUCCESS
    disk.lose_power()
    kept = read_whole(disk, "/n.conf").decode()
    assert NameServerConfig(**apply(parse(kept, "kept"), config.OPTIONS)).order_messages
    # A missing file cannot be changed.
    answer = play(scenario, NameServerConfig(port=0, config_path="/other.conf"), disk)
    assert answer == ResponseCode.SYSTEM_ERROR


def test_a_change_of_the_configuration_is_applied_as_a_whole_or_not_at_all() -> None:
    async def scenario(world: World) -> list[Command]:
        bodies = [
            *(b"orderMessageEnable=true\n%s=/tmp/x" % key.encode() for key in PROTECTED),
            b"orderMessageEnable=true\nlistenPort=1",
            b"orderMessageEnable=true\nwaitSecondsForService=soon",
            b"orderMessageEnable=true\nnonsense",
            b"\xff",
            b"",
        ]
        answers = [await world.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body) for body in bodies]
        shown = await world.ask(RequestCode.GET_NAMESRV_CONFIG)
        assert b"orderMessageEnable=false\n" in shown.body
        return answers

    answers = play(scenario)
    protected, others = answers[: len(PROTECTED)], answers[len(PROTECTED) :]
    assert {answer.code for answer in protected} == {ResponseCode.NO_PERMISSION}
    assert all(key in (answer.remark or "") for key, answer in zip(PROTECTED, protected, strict=True))
    assert [answer.code for answer in others] == [1, 1, 1, 1, 0]
    assert "waitSecondsForService is 'soon', a whole number" in (others[1].remark or "")

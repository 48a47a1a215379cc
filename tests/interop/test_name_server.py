"""Compares our name server with Apache's: the same requests get the same answers.

Where releases differ, ours answers like 5.x.

The test plays brokers with separate connections, because a broker is removed when its connection closes.
"""

import asyncio
import zlib
from pathlib import Path
from typing import Any

import pytest

from mqproof.conformance.adapters.apache import servers
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ClusterInfo,
    DataVersion,
    RegisterBrokerBody,
    Table,
    TopicConfig,
    TopicConfigs,
    TopicList,
    TopicRoute,
)
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode as Code
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import (
    BrokerHeartbeatRequest,
    BrokerNameRequest,
    ClusterRequest,
    DataVersionRequest,
    DeleteRoutedTopicRequest,
    KvNamespaceRequest,
    KvRequest,
    PutKvRequest,
    RegisterBrokerRequest,
    RouteRequest,
    UnregisterBrokerRequest,
)
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import production

pytestmark = pytest.mark.apache

OTHERWISE_IN_4_9 = {
    # A missing queue is added only with another data version.
    "T is back",
    # Without its master, a broker name has its previous queues, or none.
    "slave spoke",
    "slave first",
    "an older slave",
}
"""The steps after which the answers of 4.9 differ."""

MASTER, SLAVE, OTHER = "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"


class Witness:
    """Sends requests to one name server and records the answers."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._clients: dict[str, RemotingClient] = {}
        self.seen: list[tuple[str, Any]] = []

    async def ask(
        self, what: str, code: Code, header: headers.Header | None, body: bytes = b"", sender: str = ""
    ) -> Any:
        client = self._clients.setdefault(sender, RemotingClient(AsyncioNetwork()))
        fields = headers.write(header) if header else {}
        answer = await client.invoke(self._address, new_request(code, fields, body), 10.0)
        self.seen.append((what, (answer.code, _meaning(code, answer.fields, answer.body))))
        return answer

    async def register(
        self,
        what: str,
        address: str,
        *topics: TopicConfig,
        version: int,
        id_: int = 0,
        name: str = "b-a",
        acting: bool | None = False,
    ) -> None:
        header = RegisterBrokerRequest(name, address, "C", f"{address}9", id_, enable_acting_master=acting)
        table = TopicConfigs(DataVersion(version, 7, 0), {topic.topic_name: topic for topic in topics})
        body = java_json.write(RegisterBrokerBody(table), standard=True)
        await self.ask(what, Code.REGISTER_BROKER, header, body, sender=address)

    async def unregister(self, what: str, address: str, id_: int = 0, name: str = "b-a") -> None:
        header = UnregisterBrokerRequest(name, address, "C", id_)
        await self.ask(what, Code.UNREGISTER_BROKER, header, sender=address)
        await asyncio.sleep(0.3)  # 5.x processes such requests in a queue

    async def look(self, what: str) -> None:
        """Request everything that can be requested."""
        for topic in ("T", "U", "V"):
            await self.ask(f"{what}: route of {topic}", Code.GET_ROUTEINFO_BY_TOPIC, RouteRequest(topic))
        await self.ask(f"{what}: cluster", Code.GET_BROKER_CLUSTER_INFO, None)
        await self.ask(f"{what}: topics", Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, None)
        await self.ask(f"{what}: of C", Code.GET_TOPICS_BY_CLUSTER, ClusterRequest("C"))
        await self.ask(f"{what}: system", Code.GET_SYSTEM_TOPIC_LIST_FROM_NS, None)
        for code in (
            Code.GET_UNIT_TOPIC_LIST,
            Code.GET_HAS_UNIT_SUB_TOPIC_LIST,
            Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        ):
            await self.ask(f"{what}: {code.name}", code, None)

    async def leave(self, sender: str) -> None:
        """Close a broker's connection."""
        await self._clients.pop(sender).close()
        await asyncio.sleep(0.5)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


def _meaning(code: Code, fields: dict[str, str], body: bytes) -> Any:
    """Return the answer without meaningless differences: the order of lists, fields that one side omits."""
    kinds: dict[Code, Any] = {
        Code.GET_ROUTEINFO_BY_TOPIC: TopicRoute,
        Code.GET_BROKER_CLUSTER_INFO: ClusterInfo,
        Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: TopicList,
        Code.GET_TOPICS_BY_CLUSTER: TopicList,
        Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: TopicList,
        Code.GET_UNIT_TOPIC_LIST: TopicList,
        Code.GET_HAS_UNIT_SUB_TOPIC_LIST: TopicList,
        Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: TopicList,
        Code.GET_KVLIST_BY_NAMESPACE: Table,
        Code.QUERY_DATA_VERSION: DataVersion,
        Code.REGISTER_BROKER: Table,
    }
    return (fields, _shape(java_json.read(kinds[code], body)) if body and code in kinds else body)


def _shape(value: Any) -> Any:
    if isinstance(value, TopicRoute):
        route_brokers = sorted(
            (data.cluster, data.broker_name, sorted(data.broker_addrs.items())) for data in value.broker_datas
        )
        queues = sorted(
            (data.broker_name, data.perm, data.read_queue_nums, data.write_queue_nums, data.topic_sys_flag)
            for data in value.queue_datas
        )
        return route_brokers, queues, value.filter_server_table, value.order_topic_conf
    if isinstance(value, ClusterInfo):
        brokers = sorted(
            (name, sorted(data.broker_addrs.items())) for name, data in value.broker_addr_table.items()
        )
        return brokers, sorted((name, sorted(names)) for name, names in value.cluster_addr_table.items())
    if isinstance(value, TopicList):
        return sorted(value.topic_list)
    if isinstance(value, DataVersion):
        return value.counter, value.timestamp
    return value


T, U = TopicConfig("T", read_queue_nums=2, write_queue_nums=3), TopicConfig("U", topic_sys_flag=1)
MORE = TopicConfig("T", read_queue_nums=8, write_queue_nums=8)


async def script(address: Address, *, since_5: bool) -> list[tuple[str, Any]]:
    """Test two broker names, one of them with a slave."""
    it = Witness(address)
    try:
        await registrations(it)
        await data_versions(it, since_5=since_5)
        await permissions_and_topics(it)
        await masters_and_slaves(it)
        await compressed_registrations(it)
        await key_value_configuration(it)
        await it.look("the end")
        return it.seen
    finally:
        await it.close()


async def registrations(it: Witness) -> None:
    """Register brokers, with the same and other topics, in the same and another version."""
    await it.look("Unknown")
    await it.register("master comes", MASTER, T, U, version=1)
    await it.look("one master")
    await it.register("slave comes", SLAVE, T, U, version=1, id_=1)
    await it.register("another name comes", OTHER, T, U, version=1, name="b-b")
    await it.look("three brokers")
    await it.register("other queues, the same version", MASTER, MORE, U, version=1)
    await it.look("nothing new")
    await it.register("other queues, another version", MASTER, MORE, version=2)
    await it.look("more queues")
    await it.register("a slave says what its master does not", SLAVE, T, TopicConfig("V"), version=5, id_=1)
    await it.look("the master counts")


async def data_versions(it: Witness, *, since_5: bool) -> None:
    """Query the version of a broker's topics that the name server has."""
    known = DataVersionRequest("b-a", MASTER, "C", 0)
    for version in (2, 3):
        body = java_json.write(DataVersion(version, 7, 0), standard=True)
        await it.ask(f"is {version} new", Code.QUERY_DATA_VERSION, known, body)
    if since_5:  # 4.9 does not answer an unknown broker at all
        await it.ask("heartbeat", Code.BROKER_HEARTBEAT, BrokerHeartbeatRequest("C", MASTER, "b-a"))


async def permissions_and_topics(it: Witness) -> None:
    """Remove and add the write permission; delete a topic and register it again."""
    await it.ask("wipe", Code.WIPE_WRITE_PERM_OF_BROKER, BrokerNameRequest("b-a"))
    await it.look("wiped")
    await it.register("the same again", MASTER, MORE, version=2)
    await it.look("still wiped")
    await it.ask("add", Code.ADD_WRITE_PERM_OF_BROKER, BrokerNameRequest("b-a"))
    await it.look("added")
    await it.ask("delete in D", Code.DELETE_TOPIC_IN_NAMESRV, DeleteRoutedTopicRequest("T", "D"))
    await it.look("still there")
    await it.ask("delete", Code.DELETE_TOPIC_IN_NAMESRV, DeleteRoutedTopicRequest("T"))
    await it.look("deleted")
    await it.register("says T again", MASTER, MORE, U, version=2)
    await it.look("T is back")
    await it.register("registers T again", MASTER, MORE, U, version=3)
    await it.look("both again")


async def masters_and_slaves(it: Witness) -> None:
    """Let a master leave, and let its slave register without it, before it, and in its place."""
    await it.unregister("master leaves", MASTER)
    await it.look("slave alone")
    await it.register("slave speaks, not acting", SLAVE, T, TopicConfig("V"), version=6, id_=1)
    await it.look("slave spoke")
    await it.leave(SLAVE)
    await it.look("slave's connection closed")
    await it.register("a slave before its master", SLAVE, T, U, version=1, id_=1)
    await it.look("slave first")
    await it.register("no word of acting", SLAVE, T, U, version=2, id_=1, acting=None)
    await it.look("an older slave")
    await it.register("the slave's address becomes master", SLAVE, T, U, version=3)
    await it.look("promoted")
    await it.register("another address takes the id", MASTER, T, U, version=4)
    await it.look("taken over")


async def compressed_registrations(it: Witness) -> None:
    """Register with a compressed body, which counts, and with a wrong checksum, which is refused."""
    for what, fault in (("deflated", 0), ("spoilt on the way", 1)):
        fields = [b'{"counter":9,"timestamp":7}', b"T 1 2 4 SINGLE_TAG", b"V 1 1 6 SINGLE_TAG", b"[]"]
        data_version, *lines, filters = (len(field).to_bytes(4, "big") + field for field in fields)
        body = zlib.compress(b"".join([data_version, len(lines).to_bytes(4, "big"), *lines, filters]))
        checksum = (zlib.crc32(body) & 0x7FFF_FFFF) ^ fault
        header = RegisterBrokerRequest("b-b", OTHER, "C", f"{OTHER}9", 0, True, checksum)
        await it.ask(what, Code.REGISTER_BROKER, header, body, sender=OTHER)
        await it.look(what)


async def key_value_configuration(it: Witness) -> None:
    """Query, put, list, use and delete keys, also for the order of a topic."""
    await it.ask("absent key", Code.GET_KV_CONFIG, KvRequest("N", "k"))
    await it.ask("absent namespace", Code.GET_KVLIST_BY_NAMESPACE, KvNamespaceRequest("N"))
    await it.ask("put", Code.PUT_KV_CONFIG, PutKvRequest("ORDER_TOPIC_CONFIG", "T", "b-a:4"))
    await it.ask("get", Code.GET_KV_CONFIG, KvRequest("ORDER_TOPIC_CONFIG", "T"))
    await it.ask("list", Code.GET_KVLIST_BY_NAMESPACE, KvNamespaceRequest("ORDER_TOPIC_CONFIG"))
    await it.register("the answer has the order", MASTER, T, U, version=4)
    await it.ask("forget", Code.DELETE_KV_CONFIG, KvRequest("ORDER_TOPIC_CONFIG", "T"))
    await it.ask("forgotten", Code.GET_KV_CONFIG, KvRequest("ORDER_TOPIC_CONFIG", "T"))


async def ours(folder: Path, *, since_5: bool) -> list[tuple[str, Any]]:
    config = NameServerConfig(port=0, kv_path=f"{folder}/ours/kvConfig.json")
    server = NameServer(config, production(AsyncioNetwork()))
    try:
        return await script(await server.start(), since_5=since_5)
    finally:
        await server.stop()


def test_our_name_server_answers_like_apaches(release: str, tmp_path: Path) -> None:
    since_5 = release.startswith("5.")
    server = servers.name_server(release, tmp_path)
    with servers.running(server):
        theirs = asyncio.run(script(server.address, since_5=since_5))
    own = asyncio.run(ours(tmp_path, since_5=since_5))
    assert [what for what, _ in theirs] == [what for what, _ in own]
    differing = {
        what.partition(":")[0]: f"{what}\n  theirs {seen}\n  ours   {mine}"
        for (what, seen), (_, mine) in zip(theirs, own, strict=True)
        if seen != mine
    }
    assert set(differing) == (set() if since_5 else OTHERWISE_IN_4_9), "\n".join(differing.values())

"""A name server: registrations of strange brokers in both forms, routes, lists, and key-value pairs.

See docs/reference/protocol/name-server.md.
"""

import asyncio
import errno
import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, in_bytes, written
from mqproof.conformance.hosts.simulated import NAME_SERVERS
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame
from mqproof.impl.runtime.simulated_disk import Step

_CLUSTER: Final = "c"
KV_FILE: Final = "/names/kvConfig.json"
_ORDER: Final = "ORDER_TOPIC_CONFIG"
_SILENT_S: Final = 121 + 10


def topic(name: str, queues: int = 4, perm: int = 6, flag: int = 0) -> dict[str, Any]:
    """Return the configuration of a topic as brokers register it."""
    return {
        "topicName": name, "readQueueNums": queues, "writeQueueNums": queues + 1, "perm": perm,
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": flag, "order": False,
    }  # fmt: skip


def body_of(
    topics: Iterable[dict[str, Any]], counter: int = 1, servers: Iterable[str] = ()
) -> dict[str, Any]:
    table = {each["topicName"]: each for each in topics}
    version = {"timestamp": 7, "counter": counter, "stateVersion": 0}
    wrapper = {"topicConfigTable": table, "dataVersion": version}
    return {"topicConfigSerializeWrapper": wrapper, "filterServerList": list(servers)}


def packed(topics: Iterable[dict[str, Any]], counter: int = 1, servers: Iterable[str] = ()) -> bytes:
    """Return the compressed form of a body."""
    listed = list(topics)
    lines = [
        f"{each['topicName']} {each['readQueueNums']} {each['writeQueueNums']} {each['perm']} SINGLE_TAG"
        for each in listed
    ]
    version = json.dumps({"timestamp": 7, "counter": counter, "stateVersion": 0})
    parts = b"".join(map(_sized, lines))
    text = _sized(version) + struct.pack(">i", len(listed)) + parts + _sized(json.dumps(list(servers)))
    return zlib.compress(text)


def _sized(text: str) -> bytes:
    return struct.pack(">i", len(text.encode())) + text.encode()


class Registrant:
    """A broker that registers at one name server."""

    def __init__(self, site: Site, name: str, broker_id: int = 0, cluster: str = _CLUSTER) -> None:
        self.site = site
        self.address = f"10.7.{len(name)}.{broker_id + 1}:10911" if name else "10.7.9.9:10911"
        self.fields: dict[str, object] = {
            "brokerName": name, "brokerAddr": self.address, "clusterName": cluster, "brokerId": broker_id,
        }  # fmt: skip

    async def line(self) -> RawClient:
        return await self.site.client(self.address, self.site.name_server)

    async def ask(self, request: str, body: Any = b"", expects: int = 0, **more: object) -> Frame:
        texts = {name: written(value) for name, value in {**self.fields, **more}.items()}
        answer = await (await self.line()).request(CODES[request], texts, in_bytes(body))
        self.site.compare(f"the code of {request} {texts}", expects, answer.code, answer.remark)
        return answer

    async def register(self, body: Any, expects: int = 0, **more: object) -> Frame:
        return await self.ask("REGISTER_BROKER", body, expects, haServerAddr=f"{self.address}2", **more)


async def _route(site: Site, name: str, version: int = 409) -> dict[str, Any] | None:
    answer = await site.ask(
        "GET_ROUTEINFO_BY_TOPIC", expects=None, to=site.name_server, topic=name, of_frame={"version": version}
    )
    if answer.code == 17:
        return None
    site.compare(f"the code of the route of {name}", 0, answer.code, answer.remark)
    if version >= 401:
        json.loads(answer.body)  # standard JSON
    found: dict[str, Any] = java_values.read(answer.body)
    return found


async def _routed(
    site: Site, name: str, queues: Mapping[str, tuple[int, int, int]],
    addresses: Mapping[str, Mapping[str, str]], servers: Mapping[str, list[str]] | None = None,
    order: str | None = None,
) -> None:  # fmt: skip
    """Compare a route: reads, writes and permissions by broker, and addresses by broker and id."""
    for version in (409, 300):
        found = await _route(site, name, version)
        if not queues:
            site.compare(f"the route of {name}", None, found)
            continue
        if found is None:
            site.report(f"{name} has no route, expected {queues}")
            continue
        observed = {
            each["brokerName"]: (each["readQueueNums"], each["writeQueueNums"], each["perm"])
            for each in found["queueDatas"]
        }
        site.compare(f"the queues of {name}", dict(queues), observed)
        ids = {
            each["brokerName"]: {str(key): value for key, value in each["brokerAddrs"].items()}
            for each in found["brokerDatas"]
        }
        site.compare(f"the brokers of {name}", dict(addresses), ids)
        site.compare(
            f"the clusters of {name}", {_CLUSTER}, {each["cluster"] for each in found["brokerDatas"]}
        )
        site.compare(f"the filter servers of {name}", servers or {}, found.get("filterServerTable") or {})
        site.compare(f"the order of {name}", order, found.get("orderTopicConf"))


async def registrations(site: Site) -> None:
    """Brokers register in both forms, are silent, unregister, and disconnect."""
    site.rule = chapters.NAME_SERVER
    one, slave, two = Registrant(site, "a"), Registrant(site, "a", 1), Registrant(site, "bb")
    answer = await one.register(body_of([topic("t"), topic("u", 2, 4, 1)], servers=["10.7.7.7:1"]))
    site.compare("the master of a master", None, answer.fields.get("masterAddr"))
    answer = await slave.register(body_of([topic("t")]))
    site.compare("the master of a slave", one.address, answer.fields.get("masterAddr"))
    site.compare("the HA address of its master", f"{one.address}2", answer.fields.get("haServerAddr"))
    data = packed([topic("t", 8), topic("v", 1, 2)], servers=["10.7.7.8:1"])
    crc = zlib.crc32(data) & 0x7FFF_FFFF
    for wrong in (
        b"",
        data[:-9],
        zlib.compress(b"\0\0"),
        zlib.compress(_sized("{}") + b"\xff" * 4),
        b"x" * 40,
    ):
        await two.register(wrong or b"{", 1, compressed=True)
    await two.register(data, 1, compressed=True, bodyCrc32=crc + 1)
    await two.register(data, 1, compressed=False)
    await _routed(site, "v", {}, {})
    await two.register(data, compressed=True, bodyCrc32=crc)
    both = {"a": {"0": one.address, "1": slave.address}, "bb": {"0": two.address}}
    servers = {one.address: ["10.7.7.7:1"], two.address: ["10.7.7.8:1"]}
    await _routed(site, "t", {"a": (4, 5, 6), "bb": (8, 9, 6)}, both, servers)
    await _routed(site, "u", {"a": (2, 3, 4)}, {"a": both["a"]}, {one.address: ["10.7.7.7:1"]})
    await _routed(site, "v", {"bb": (1, 2, 2)}, {"bb": both["bb"]}, {two.address: ["10.7.7.8:1"]})
    await _lists(site, both)
    await _members(site, one, slave)
    await _versions(site, one)
    await one.register(body_of([topic("t", 1)], servers=[]))
    await _routed(site, "t", {"a": (4, 5, 6), "bb": (8, 9, 6)}, both, {two.address: ["10.7.7.8:1"]})
    await one.register(body_of([topic("t", 1)], 2))
    await _routed(site, "t", {"a": (1, 2, 6), "bb": (8, 9, 6)}, both, {two.address: ["10.7.7.8:1"]})
    await _permissions(site, one, both)
    await _bounds(site)
    await _leaving(site, one, slave, two)


async def _lists(site: Site, both: Mapping[str, Mapping[str, str]]) -> None:
    to = site.name_server
    info = java_values.read((await site.ask("GET_BROKER_CLUSTER_INFO", to=to)).body)
    observed = {
        name: {str(key): value for key, value in data["brokerAddrs"].items()}
        for name, data in info["brokerAddrTable"].items()
        if name in both
    }
    site.compare("the brokers", dict(both), observed)
    site.compare("the clusters", ["DefaultCluster", _CLUSTER], sorted(info["clusterAddrTable"]))
    site.compare("the brokers of the cluster", sorted(both), sorted(info["clusterAddrTable"][_CLUSTER]))
    own = {"t", "u", "v"}
    queries: tuple[tuple[str, dict[str, Any], set[str]], ...] = (
        ("GET_ALL_TOPIC_LIST_FROM_NAMESERVER", {}, own),
        ("GET_TOPICS_BY_CLUSTER", {"cluster": _CLUSTER}, own),
        ("GET_TOPICS_BY_CLUSTER", {"cluster": "unknown"}, set()),
        ("GET_UNIT_TOPIC_LIST", {}, {"u"}),
        ("GET_HAS_UNIT_SUB_TOPIC_LIST", {}, set()),
        ("GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", {}, set()),
    )
    for name, fields, expected in queries:
        found = java_values.read((await site.ask(name, to=to, **fields)).body)["topicList"]
        listed = {each for each in found if len(each) == 1}
        site.compare(f"the topics of {name} {fields}", expected, listed)
        site.compare(f"topics twice in {name}", len(found), len(set(found)))
    answer = await site.ask("GET_SYSTEM_TOPIC_LIST_FROM_NS", to=to)
    found = java_values.read(answer.body)
    expected_names = sorted([*both, "broker-a", _CLUSTER, "DefaultCluster"])
    site.compare("the names of brokers and clusters", expected_names, sorted(found["topicList"]))
    addresses = [*(each for ids in both.values() for each in ids.values()), str(site.broker)]
    site.compare("whether it names a broker", True, found["brokerAddr"] in addresses)
    for key, names in (
        ("enableAllTopicList", ("GET_ALL_TOPIC_LIST_FROM_NAMESERVER",)),
        ("enableTopicList", ("GET_TOPICS_BY_CLUSTER", "GET_UNIT_TOPIC_LIST", "GET_HAS_UNIT_SUB_TOPIC_LIST")),
    ):
        await site.ask("UPDATE_NAMESRV_CONFIG", f"{key}=false", to=to)
        for name in names:
            await site.ask(name, expects=1, to=to, cluster=_CLUSTER)
        await site.ask("UPDATE_NAMESRV_CONFIG", f"{key}=true", to=to)


async def _members(site: Site, one: Registrant, slave: Registrant) -> None:
    answer = await site.ask(
        "GET_BROKER_MEMBER_GROUP", to=site.name_server, clusterName=_CLUSTER, brokerName="a"
    )
    group = java_values.read(answer.body)["brokerMemberGroup"]
    ids = {str(key): value for key, value in group["brokerAddrs"].items()}
    observed = (group["cluster"], group["brokerName"], ids)
    site.compare("the member group", (_CLUSTER, "a", {"0": one.address, "1": slave.address}), observed)


async def _versions(site: Site, one: Registrant) -> None:
    for counter, changed in ((1, "false"), (2, "true")):
        version = {"timestamp": 7, "counter": counter, "stateVersion": 0}
        answer = await one.ask("QUERY_DATA_VERSION", version)
        site.compare(f"whether version {counter} is new", changed, answer.fields.get("changed"))
        known = java_values.read(answer.body)
        site.compare("the known version", (7, 1), (known["timestamp"], known["counter"]))


async def _permissions(site: Site, one: Registrant, both: Mapping[str, Mapping[str, str]]) -> None:
    """Remove and add write permission; delete and add queues."""
    to, servers = site.name_server, {both["bb"]["0"]: ["10.7.7.8:1"]}
    answer = await site.ask("WIPE_WRITE_PERM_OF_BROKER", to=to, brokerName="a")
    site.compare("the topics without write permission", "2", answer.fields.get("wipeTopicCount"))
    await _routed(site, "t", {"a": (1, 2, 4), "bb": (8, 9, 6)}, both, servers)
    await one.register(body_of([topic("t", 1)], 2))
    await _routed(site, "t", {"a": (1, 2, 4), "bb": (8, 9, 6)}, both, servers)
    answer = await site.ask("ADD_WRITE_PERM_OF_BROKER", to=to, brokerName="a")
    site.compare("the topics with write permission", "2", answer.fields.get("addTopicCount"))
    await _routed(site, "u", {"a": (2, 3, 6)}, {"a": both["a"]})
    for request, count in (
        ("WIPE_WRITE_PERM_OF_BROKER", "wipeTopicCount"),
        ("ADD_WRITE_PERM_OF_BROKER", "addTopicCount"),
    ):
        answer = await site.ask(request, to=to, brokerName="unknown")
        site.compare("the topics of an unknown broker", "0", answer.fields.get(count))
    await site.ask("DELETE_TOPIC_IN_NAMESRV", to=to, topic="t", clusterName="unknown")
    await _routed(site, "t", {"a": (1, 2, 6), "bb": (8, 9, 6)}, both, servers)
    await site.ask("DELETE_TOPIC_IN_NAMESRV", to=to, topic="t", clusterName=_CLUSTER)
    await _routed(site, "t", {}, {})
    await site.ask("DELETE_TOPIC_IN_NAMESRV", to=to, topic="u")
    await _routed(site, "u", {}, {})
    queues = [
        {"brokerName": name, "readQueueNums": 3, "writeQueueNums": 2, "perm": 6, "topicSysFlag": 0}
        for name in ("a", "unknown")
    ]
    data = {"queueDatas": queues, "brokerDatas": []}
    await site.ask("REGISTER_TOPIC_IN_NAMESRV", data, to=to, topic="w")
    await _routed(site, "w", {"a": (3, 2, 6)}, {"a": both["a"]})
    for wrong in ("x" * 513, "", "a\x01b"):
        await site.ask(
            "REGISTER_TOPIC_IN_NAMESRV", data, expects=1, to=to, topic=wrong
        )  # fmt: skip
    await site.ask("REGISTER_TOPIC_IN_NAMESRV", data, to=to, topic="x" * 512)
    await one.register(body_of([topic("t", 1)], 2))
    await _routed(site, "t", {"a": (1, 2, 6)}, {"a": both["a"]})


async def _bounds(site: Site) -> None:
    """A registration beyond a limit changes nothing."""
    for name, body, code in (
        ("", body_of([topic("z")]), 1),
        ("x" * 513, body_of([topic("z")]), 1),
        ("x\x02", body_of([topic("z")]), 1),
        ("ccc", body_of([topic("z" * 513)]), 1),
        ("ccc", body_of([topic("z")], servers=["10.7.7.7:1"] * 101), 1),
        ("ccc", body_of([topic("z" * 512)], servers=[f"10.7.7.7:{port}" for port in range(100)]), 0),
    ):
        broker = Registrant(site, name)
        await broker.register(body, code)
        found = java_values.read((await site.ask("GET_BROKER_CLUSTER_INFO", to=site.name_server)).body)
        site.compare(f"whether {name[:9]!r} is known", not code, name in found["brokerAddrTable"])
    await broker.ask("UNREGISTER_BROKER")


async def _leaving(site: Site, one: Registrant, slave: Registrant, two: Registrant) -> None:
    """The queues of a name stay while one of its brokers is known."""
    await two.ask("UNREGISTER_BROKER", brokerId=1)
    await _routed(site, "v", {"bb": (1, 2, 2)}, {"bb": {"0": two.address}}, {two.address: ["10.7.7.8:1"]})
    await two.ask("UNREGISTER_BROKER")
    await _routed(site, "v", {}, {})
    (await one.line()).close()
    await asyncio.sleep(1)
    await _routed(site, "t", {"a": (1, 2, 6)}, {"a": {"1": slave.address}})
    await one.register(body_of([topic("t", 1)], 2), heartbeatTimeoutMillis=30_000)
    for _ in range(4):
        await asyncio.sleep(20)
        await one.ask("BROKER_HEARTBEAT", heartbeatTimeoutMills=30_000)
        await _routed(site, "t", {"a": (1, 2, 6)}, {"a": {"0": one.address, "1": slave.address}})
    await asyncio.sleep(41)
    await _routed(site, "t", {"a": (1, 2, 6)}, {"a": {"1": slave.address}})
    await asyncio.sleep(_SILENT_S - 4 * 20 - 41)
    await _routed(site, "t", {}, {})


async def key_values(site: Site) -> None:
    """Key-value pairs: a change that cannot be written changes nothing, and a restart keeps the others."""
    site.rule = chapters.NAME_SERVER
    to, node = site.name_server, NAME_SERVERS[0]
    disk = site.cluster.machines[node].disk

    async def put(namespace: str, key: str, value: str, expects: int = 0) -> None:
        await site.ask("PUT_KV_CONFIG", expects=expects, to=to, namespace=namespace, key=key, value=value)

    async def delete(namespace: str, key: str, expects: int = 0) -> None:
        await site.ask("DELETE_KV_CONFIG", expects=expects, to=to, namespace=namespace, key=key)

    async def compare(expected: Mapping[str, Mapping[str, str]]) -> None:
        for namespace in ("n", "m", _ORDER):
            answer = await site.ask("GET_KVLIST_BY_NAMESPACE", expects=None, to=to, namespace=namespace)
            found = java_values.read(answer.body)["table"] if not answer.code else None
            site.compare(f"namespace {namespace}", expected.get(namespace), found)
            site.compare(f"the code for {namespace}", 0 if namespace in expected else 22, answer.code)
            for key in "kl":
                answer = await site.ask("GET_KV_CONFIG", expects=None, to=to, namespace=namespace, key=key)
                value = expected.get(namespace, {}).get(key)
                site.compare(f"{key} of {namespace}", value, answer.fields.get("value"))
                site.compare(f"the code for {key} of {namespace}", 22 if value is None else 0, answer.code)

    await compare({})
    await put("n", "k", "1")
    await put("n", "l", "2")
    await put("m", "k", "3")
    await put("n", "k", "4")
    await compare({"n": {"k": "4", "l": "2"}, "m": {"k": "3"}})
    disk.on_step = _full
    await put("n", "k", "5", 1)
    await delete("n", "l", 1)
    await put("n", "k", "4")
    await delete("m", "unknown")
    disk.on_step = None
    await compare({"n": {"k": "4", "l": "2"}, "m": {"k": "3"}})
    written_file = json.loads(disk.written(KV_FILE))
    site.compare("the file", {"configTable": {"n": {"k": "4", "l": "2"}, "m": {"k": "3"}}}, written_file)
    await delete("m", "k")
    await put(_ORDER, "t", "a:4")
    site.cluster.kill(node)
    await site.cluster.start(node)
    await asyncio.sleep(1)
    await compare({"n": {"k": "4", "l": "2"}, _ORDER: {"t": "a:4"}})
    await _order(site)
    await _room(site)


def _full(step: Step) -> None:
    if step.kind == "create":
        raise OSError(errno.ENOSPC, "the disk is full", step.path)


async def _order(site: Site) -> None:
    """Brokers receive the ordered topics, and so do routes if that is on."""
    to, one = site.name_server, Registrant(site, "a")
    answer = await one.register(body_of([topic("t"), topic("u")]))
    site.compare("the ordered topics", {"t": "a:4"}, java_values.read(answer.body)["table"])
    await _routed(site, "t", {"a": (4, 5, 6)}, {"a": {"0": one.address}})
    await site.ask(
        "UPDATE_NAMESRV_CONFIG", "orderMessageEnable=true\nreturnOrderTopicConfigToBroker=false", to=to
    )
    answer = await one.register(body_of([topic("t"), topic("u")]))
    site.compare("the body without ordered topics", b"", answer.body)
    await _routed(site, "t", {"a": (4, 5, 6)}, {"a": {"0": one.address}}, order="a:4")
    await _routed(site, "u", {"a": (4, 5, 6)}, {"a": {"0": one.address}})
    await site.ask("UPDATE_NAMESRV_CONFIG", "needWaitForService=true\norderMessageEnable=false", to=to)
    await site.ask("GET_ROUTEINFO_BY_TOPIC", expects=1, to=to, topic="t")
    await asyncio.sleep(46)
    await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic="t")
    await site.ask("UPDATE_NAMESRV_CONFIG", "deleteTopicWithBrokerRegistration=true", to=to)
    await one.register(body_of([topic("t")], 2))
    await _routed(site, "u", {}, {})
    await _acting_masters(site)


async def _acting_masters(site: Site) -> None:
    """The slave with the least id acts for a missing master of a name without write permission."""
    to = site.name_server
    slaves = [Registrant(site, "dddd", number) for number in (2, 1)]
    for slave in slaves:
        await slave.register(body_of([topic("s")]), enableActingMaster=True)
    real = {"1": slaves[1].address, "2": slaves[0].address}
    await _routed(site, "s", {"dddd": (4, 5, 4)}, {"dddd": real})
    await site.ask("UPDATE_NAMESRV_CONFIG", "supportActingMaster=true", to=to)
    await _routed(site, "s", {"dddd": (4, 5, 4)}, {"dddd": {"0": real["1"], "2": real["2"]}})
    await site.ask("ADD_WRITE_PERM_OF_BROKER", to=to, brokerName="dddd")
    await _routed(site, "s", {"dddd": (4, 5, 6)}, {"dddd": real})


async def _room(site: Site) -> None:
    """The texts have together at most 4 Mi characters, and one has at most 512 Ki."""
    to, most = site.name_server, 512 << 10
    left = (4 << 20) - len("n" + "k4" + "l2" + _ORDER + "ta:4" + "m" + "01234567") - 7 * most
    for key, size, expects in (
        *((str(number), most, 0) for number in range(7)),
        ("7", left + 1, 1),
        ("7", left, 0),
        ("7", left + 1, 1),
        ("7", most + 1, 1),
    ):
        value = "x" * size
        await site.ask("PUT_KV_CONFIG", expects=expects, to=to, namespace="m", key=key, value=value)
    answer = await site.ask("GET_KV_CONFIG", to=to, namespace="m", key="7")
    site.compare("the length of the text", left, len(answer.fields["value"]))


REGISTRATIONS: Final = Inspection("registrations", registrations)
KEY_VALUES: Final = Inspection("key-value pairs", key_values)

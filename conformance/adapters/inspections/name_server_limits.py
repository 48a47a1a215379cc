"""A name server at its limits: files, entries, registrations, claims to an id, and each field of a route.

See docs/reference/protocol/name-server.md.
"""

import asyncio
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import (
    KV_FILE,
    Registrant,
    body_of,
    packed,
    topic,
)
from mqproof.conformance.hosts.simulated import NAME_SERVERS
from mqproof.conformance.wire import chapters
from mqproof.impl.namesrv.config import OPTIONS, NameServerConfig
from mqproof.impl.namesrv.route_table import Bounds
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.properties import ConfigError, apply, parse

_BROKERS, _QUEUES = 4, 40
_TOPICS: Final = 100_000
_ENTRIES: Final = 10_000
_SETTINGS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "listenPort": (("0", "65535"), ("-1", "65536", "x", "")), "kvConfigPath": (("x",), ("",)),
    "aclEnable": (("true", "false"), ("x", "")), "aclFile": (("x", ""), ()),
    "addressSharePercent": (("1", "100"), ("0", "101")),
    "connectionSharePercent": (("1", "100"), ("0", "101")),
    "scanNotActiveBrokerInterval": (("1", str(2**31 - 1)), ("0", str(2**31))),
    "waitSecondsForService": (("0", str(2**31 - 1)), ("-1", str(2**31))),
}  # fmt: skip
"""Settings of a file, with values that are possible and values that are not."""


async def name_server_limits(site: Site) -> None:
    site.rule = chapters.NAME_SERVER
    _files(site)
    await _claims(site)
    await _fields(site)
    await _expiry(site)
    await _registrations(site)
    await _entries(site)
    await _damaged_files(site)


def _files(site: Site) -> None:
    for name, (good, bad) in _SETTINGS.items():
        for value in (*good, *bad):
            try:
                found = apply(parse(f"{name}={value}", "file"), OPTIONS)[OPTIONS[name].field]
            except ConfigError:
                found = None
            shown = None if found is None else OPTIONS[name].show(found)
            site.compare(f"{name}={value} of a file", value if value in good else None, shown)


def _versioned(counter: int, state: int, *topics: dict[str, Any]) -> dict[str, Any]:
    body = body_of(topics, counter)
    body["topicConfigSerializeWrapper"]["dataVersion"]["stateVersion"] = state
    return body


async def _addresses(site: Site, name: str) -> dict[str, str]:
    info = java_values.read((await site.ask("GET_BROKER_CLUSTER_INFO", to=site.name_server)).body)
    found = info["brokerAddrTable"].get(name, {}).get("brokerAddrs", {})
    return {str(key): value for key, value in found.items()}


async def _claims(site: Site) -> None:
    """Of two addresses with one id the later state counts; one address has one id."""
    first = Registrant(site, "a")
    other = Registrant(site, "a")
    other.address = "10.8.0.1:10911"
    other.fields = {**other.fields, "brokerAddr": other.address}
    slave = Registrant(site, "a", 1)
    await first.register(_versioned(1, 5, topic("t", 3)))
    await slave.register(_versioned(1, 5))
    for state, holder in ((4, first), (0, first), (5, other)):
        await other.register(_versioned(9, state, topic("t", 7)))
        expected = {"0": holder.address, "1": slave.address}
        site.compare(f"the brokers after a claim of state {state}", expected, await _addresses(site, "a"))
        queues = (await _route(site, "t"))["queueDatas"]
        site.compare("the queues", 3 if holder is first else 7, queues[0]["readQueueNums"])
    await first.register(_versioned(1, 6, topic("t", 3)))
    site.compare(
        "the brokers after a later claim",
        {"0": first.address, "1": slave.address},
        await _addresses(site, "a"),
    )
    moved = Registrant(site, "moved")
    moved.fields = {**moved.fields, "brokerAddr": first.address}
    await moved.register(_versioned(1, 0, topic("m")))
    site.compare("the brokers that an address left", {"1": slave.address}, await _addresses(site, "a"))
    site.compare("the brokers of its new name", {"0": first.address}, await _addresses(site, "moved"))
    await moved.ask("UNREGISTER_BROKER", clusterName="another")
    await moved.ask("UNREGISTER_BROKER", brokerAddr="10.8.0.9:1")
    site.compare(
        "the brokers after strange unregistrations", {"0": first.address}, await _addresses(site, "moved")
    )
    for one in (moved, slave, other, first):
        await one.ask("UNREGISTER_BROKER")
    site.compare(
        "the brokers at the end", ({}, {}), (await _addresses(site, "a"), await _addresses(site, "moved"))
    )


async def _route(site: Site, name: str) -> dict[str, Any]:
    answer = await site.ask("GET_ROUTEINFO_BY_TOPIC", to=site.name_server, topic=name)
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def _fields(site: Site) -> None:
    """Compare each field of a route after changes of permissions, and the lists of topics by flag."""
    to, one = site.name_server, Registrant(site, "a")
    flags = {f"flag{flag}": flag for flag in range(4)}
    topics = [topic(name, 3, 7, flag) for name, flag in flags.items()]
    await one.register(body_of(topics, servers=["10.7.7.7:1"]), enableActingMaster=False)
    broker = {"brokerAddrs": {"0": one.address}, "brokerName": "a", "cluster": "c"}
    expected: dict[str, Any] = {
        "brokerDatas": [{**broker, "enableActingMaster": False}],
        "filterServerTable": {one.address: ["10.7.7.7:1"]},
        "queueDatas": [
            {"brokerName": "a", "perm": 7, "readQueueNums": 3, "topicSysFlag": 2, "writeQueueNums": 4}
        ],
    }  # fmt: skip
    queue = expected["queueDatas"][0]
    for request, field, perm in (
        ("", "", 7), ("WIPE_WRITE_PERM_OF_BROKER", "wipeTopicCount", 5),
        ("WIPE_WRITE_PERM_OF_BROKER", "wipeTopicCount", 5), ("ADD_WRITE_PERM_OF_BROKER", "addTopicCount", 6),
    ):  # fmt: skip
        if request:
            answer = await site.ask(request, to=to, brokerName="a")
            site.compare(f"the topics of {request}", str(len(flags)), answer.fields.get(field))
            answer = await site.ask(request, to=to, brokerName="unknown")
            site.compare(f"the topics of {request} of no broker", "0", answer.fields.get(field))
        queue["perm"] = perm
        site.compare(f"the route after {request}", expected, await _route(site, "flag2"))
    for request, wanted in (
        ("GET_UNIT_TOPIC_LIST", {1, 3}), ("GET_HAS_UNIT_SUB_TOPIC_LIST", {2, 3}),
        ("GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", {2}),
    ):  # fmt: skip
        found = java_values.read((await site.ask(request, to=to)).body)["topicList"]
        names = {name for name, flag in flags.items() if flag in wanted}
        site.compare(f"the topics of {request}", names, set(found) & flags.keys())
    await site.ask("DELETE_TOPIC_IN_NAMESRV", to=to, topic="flag1", clusterName="another")
    await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic="flag1")
    await site.ask("DELETE_TOPIC_IN_NAMESRV", to=to, topic="flag1", clusterName="c")
    await site.ask("DELETE_TOPIC_IN_NAMESRV", to=to, topic="flag2")
    for name in ("flag1", "flag2"):
        await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic=name, expects=17)
    for cluster, expects in (("c", 0), ("another", 1)):
        await site.ask("GET_BROKER_MEMBER_GROUP", to=to, clusterName=cluster, brokerName="a", expects=expects)
    await one.ask("UNREGISTER_BROKER")


async def _expiry(site: Site) -> None:
    """A broker is removed at the first scan after the time that it asks for, at most an hour."""
    scan_s = 10
    for asked_ms, lives_s in ((1, 0), (30_000, 30), (0, 120), (-5, 120), (3_600_001, 3600), (1 << 40, 3600)):
        one = Registrant(site, "silent")
        await one.register(body_of([topic("s")]), heartbeatTimeoutMillis=asked_ms)
        line = await one.line()
        passed = 0
        while passed + 100 <= lives_s:  # the connection must not be idle
            await asyncio.sleep(100)
            passed += 100
            await line.request(9999, {})
        await asyncio.sleep(max(0, lives_s - passed - 0.5))
        if lives_s:
            site.compare(
                f"the brokers before {lives_s} s", {"0": one.address}, await _addresses(site, "silent")
            )
        await asyncio.sleep(scan_s + 1)
        site.compare(f"the brokers after {lives_s} s", {}, await _addresses(site, "silent"))


async def _registrations(site: Site) -> None:
    """One broker, queue or topic more than a limit changes nothing."""
    known = [Registrant(site, "b" * number) for number in range(2, 2 + _BROKERS)]
    for number, one in enumerate(known):
        await one.register(body_of([]), 0 if number < _BROKERS - 1 else 1)
    site.compare("the broker beyond the limit", {}, await _addresses(site, "b" * (1 + _BROKERS)))
    await known[0].register(body_of([]))
    info = java_values.read((await site.ask("GET_ALL_TOPIC_LIST_FROM_NAMESERVER", to=site.name_server)).body)
    left = _QUEUES - len(info["topicList"])
    names = [topic(f"q{number}") for number in range(left + 1)]
    await known[0].register(body_of(names), 1)
    await site.ask("GET_ROUTEINFO_BY_TOPIC", to=site.name_server, topic="q0", expects=17)
    await known[0].register(body_of(names[:-1]))
    await known[0].register(body_of(names[:-1], 2))
    await known[0].register(body_of(names, 3), 1)
    data = {
        "queueDatas": [{"brokerName": "bb", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}],
        "brokerDatas": [],
    }
    await site.ask("REGISTER_TOPIC_IN_NAMESRV", data, to=site.name_server, topic=f"q{left}", expects=1)
    await site.ask("REGISTER_TOPIC_IN_NAMESRV", data, to=site.name_server, topic="q0")
    version = json.dumps({"timestamp": 7, "counter": 1}).encode()
    for count, text in ((-1, True), (_TOPICS + 1, True), (_TOPICS, False)):
        raw = struct.pack(">i", len(version)) + version + struct.pack(">i", count)
        answer = await known[1].register(zlib.compress(raw), 1, compressed=True)
        site.compare(f"whether {count} topics are too many", text, f"{count} topics" in (answer.remark or ""))
    await known[0].ask("UNREGISTER_BROKER")
    for body in (packed([topic("p")]), packed([])):
        await known[1].register(body, compressed=True)
    for one in known[1:-1]:
        await one.ask("UNREGISTER_BROKER")


async def _entries(site: Site) -> None:
    """There may be 10,000 key-value entries."""
    entries = {str(number): "v" for number in range(_ENTRIES - 1)}
    await _restart(site, json.dumps({"configTable": {"n": entries}}))

    async def put(key: str, expects: int, namespace: str = "n") -> None:
        await site.ask(
            "PUT_KV_CONFIG", expects=expects, to=site.name_server, namespace=namespace, key=key, value="w"
        )

    await put("more", 0)
    await put("most", 1)
    await put("most", 1, "another")
    await put("0", 0)
    await site.ask("DELETE_KV_CONFIG", to=site.name_server, namespace="n", key="1")
    await put("most", 0, "another")
    answer = await site.ask("GET_KVLIST_BY_NAMESPACE", to=site.name_server, namespace="n")
    del entries["1"]
    expected = {**entries, "0": "w", "more": "w"}
    site.compare("the entries", True, java_values.read(answer.body)["table"] == expected)


async def _damaged_files(site: Site) -> None:
    """A name server does not start with a file that is not its own, and leaves it as it is."""
    node = NAME_SERVERS[0]
    machine = site.cluster.machines[node]
    site.cluster.kill(node)
    for text in ("", "{", "[]", '{"configTable":{"n":1}}', '{"configTable":{"n":{"k":[]}}}', "\xff"):
        site.write_file(node, KV_FILE, text)
        server = NameServer(NameServerConfig(machine.host, kv_path=KV_FILE), machine.runtime())
        try:
            await server.start()
        except ConfigError as error:
            site.compare("whether the error names the file", True, KV_FILE in str(error))
        else:
            site.report(f"it starts with the file {text!r}")
            await server.stop()
        site.compare("the damaged file", text.encode(), machine.disk.written(KV_FILE))
    await _restart(site, '{"configTable":{"n":{"k":"v"}},"more":1}')
    answer = await site.ask("GET_KV_CONFIG", to=site.name_server, namespace="n", key="k")
    site.compare("the value of a sound file", "v", answer.fields.get("value"))


async def _restart(site: Site, text: str) -> None:
    node = NAME_SERVERS[0]
    site.cluster.kill(node)
    site.write_file(node, KV_FILE, text)
    await site.cluster.start(node)
    await asyncio.sleep(1)


NAME_SERVER_LIMITS: Final = Inspection(
    "name server limits", name_server_limits,
    name_server={"bounds": Bounds(brokers_max=_BROKERS, queues_max=_QUEUES)},
)  # fmt: skip

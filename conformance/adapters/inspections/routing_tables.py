"""A name server's tables after each step, its times, its accounts, and its clients.

See docs/reference/protocol/name-server.md.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections.accounts import ADMIN, SECRET, signed
from mqproof.conformance.adapters.inspections.damaged_registrations import damaged_registrations
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.settings import lines
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import body_of, topic
from mqproof.conformance.hosts.simulated import NAME_SERVERS
from mqproof.conformance.wire import chapters
from mqproof.impl.namesrv import config
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.route_table import Bounds, BoundsError, BrokerKey, RouteTable
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import QueueData, RegisterBrokerBody
from mqproof.impl.runtime.network import Address

_ACCOUNTS: Final = "/names/plain_acl.yml"
_POLL_S: Final = 5.0
_SECOND: Final = "second-admin"
_DEFAULTS: Final = {
    "listenPort": "9876", "kvConfigPath": "store/namesrv/kvConfig.json", "aclEnable": "false", "aclFile": "",
    "addressSharePercent": "50", "connectionSharePercent": "10", "scanNotActiveBrokerInterval": "10000",
    "orderMessageEnable": "false", "returnOrderTopicConfigToBroker": "true", "supportActingMaster": "false",
    "needWaitForService": "false", "waitSecondsForService": "45", "enableTopicList": "true",
    "enableAllTopicList": "true", "deleteTopicWithBrokerRegistration": "false",
    "metricsExporterType": "DISABLE", "metricsPromExporterHost": "127.0.0.1",
    "metricsPromExporterPort": "5557",
}  # fmt: skip


async def routing_tables(site: Site) -> None:
    site.rule = chapters.NAME_SERVER
    _defaults(site)
    _registered(site)
    _acting(site)
    _expired(site)
    damaged_registrations(site)
    await _times(site)
    await _counted(site)
    await _accounts(site)


def _defaults(site: Site) -> None:
    found = NameServerConfig()
    site.compare("the settings of a name server", _DEFAULTS, lines(config.show(found)))
    others = found.host, found.broker_expiry_ms, found.config_path, found.bounds
    site.compare(
        "its other settings", ("127.0.0.1", 120_000, "", Bounds(10_000, 1_000_000, 512, 100)), others
    )


class _Names:
    """The tables of a name server without I/O, and the time that its caller sets."""

    def __init__(self, site: Site, bounds: Bounds | None = None) -> None:
        self.site = site
        self.table = RouteTable(bounds)
        self.now_ms = 1000

    def register(
        self, name: str, number: int, address: str, *topics: dict[str, Any], counter: int = 1,
        state: int | None = None, cluster: str = "c", servers: tuple[str, ...] = (),
        without_body: bool = False, connection: int = 1, expiry_ms: int = 100, **more: Any,
    ) -> str | None:  # fmt: skip
        """Register; return the address of the master in the answer, or `refused`."""
        data = body_of(topics, counter, servers)
        version = data["topicConfigSerializeWrapper"]["dataVersion"]
        del version["stateVersion"]
        if state is not None:
            version["stateVersion"] = state
        body = None if without_body else java_json.read(RegisterBrokerBody, json.dumps(data).encode())
        try:
            master = self.table.register(
                BrokerKey(cluster, name, number, address), body, ha_address=f"{address}-ha",
                connection=connection, now_ms=self.now_ms, expiry_ms=expiry_ms, **more,
            )  # fmt: skip
        except BoundsError:
            return "refused"
        return master.key.address if master else None

    def compare(
        self, what: str, brokers: Mapping[str, Mapping[int, str]],
        queues: Mapping[str, Mapping[str, tuple[int, int, int, int]]],
        servers: Mapping[str, list[str]] | None = None,
    ) -> None:  # fmt: skip
        """Compare the addresses by name, and perm, reads, writes and flag by topic and name."""
        info = self.table.cluster_info()
        shown = {name: dict(data.broker_addrs) for name, data in info.broker_addr_table.items()}
        self.site.compare(f"the brokers after {what}", brokers, shown)
        named = {name for names in info.cluster_addr_table.values() for name in names}
        self.site.compare(f"the names of clusters after {what}", set(brokers), named)
        found: dict[str, Any] = {}
        listed: dict[str, Any] = {}
        for each in self.table.topics():
            route = self.table.route(each)
            found[each] = {
                data.broker_name: (
                    data.perm,
                    data.read_queue_nums,
                    data.write_queue_nums,
                    data.topic_sys_flag,
                )
                for data in (route.queue_datas if route else ())
            }
            listed |= route.filter_server_table if route else {}
        self.site.compare(f"the queues after {what}", queues, found)
        self.site.compare(f"the filter servers after {what}", servers or {}, listed)


_T, _U = (6, 4, 5, 0), (4, 2, 3, 1)


def _registered(site: Site) -> None:
    """Registrations, claims and removals, with all tables after each one."""
    names = _Names(site, Bounds(brokers_max=4, queues_max=4, name_characters_max=8, filter_servers_max=2))
    t, u = topic("t"), topic("u", 2, 4, 1)
    site.compare(
        "the master of a master", None, names.register("a", 0, "a0", t, u, state=1, servers=("s1", "s2"))
    )
    queues: dict[str, dict[str, tuple[int, int, int, int]]] = {"t": {"a": _T}, "u": {"a": _U}}
    names.compare("a registration", {"a": {0: "a0"}}, queues, {"a0": ["s1", "s2"]})
    for state in (None, 0):
        site.compare(
            "the answer to an older claim", None, names.register("a", 0, "x0", topic("t", 9), state=state)
        )
        names.compare(f"a claim of state {state}", {"a": {0: "a0"}}, queues, {"a0": ["s1", "s2"]})
    names.register("a", 0, "a0", topic("t", 9), state=1, without_body=True)
    names.compare("a registration without a body", {"a": {0: "a0"}}, queues, {"a0": ["s1", "s2"]})
    site.compare("the master of a slave", "a0", names.register("a", 1, "a1", topic("t", 9), counter=2))
    both = {"a": {0: "a0", 1: "a1"}}
    names.compare("the registration of a slave", both, queues, {"a0": ["s1", "s2"]})
    names.register("a", 0, "a0", topic("t", 7), u, counter=2)
    queues["t"]["a"] = (6, 7, 8, 0)
    names.compare("a new version", both, queues)
    names.register("a", 0, "a0", topic("t", 6), topic("v", 1), counter=2, servers=("s1",))
    queues["v"] = {"a": (6, 1, 2, 0)}
    names.compare("the same version with a new topic", both, queues, {"a0": ["s1"]})
    _refused(names)
    names.compare("refused registrations", both, queues, {"a0": ["s1"]})
    _left(names, queues)


def _refused(names: _Names) -> None:
    wrongs: tuple[dict[str, Any], ...] = (
        {"name": "b", "number": 0, "address": "b0", "servers": ("s",) * 3},
        {"name": "b" * 9, "number": 0, "address": "b0"},
        {"name": "b", "number": 0, "address": "b" * 9},
        {"name": "b", "number": 0, "address": "b0", "cluster": "c" * 9},
        {"name": "b", "number": 0, "address": "b0", "cluster": ""},
        {"name": "b\n", "number": 0, "address": "b0"},
        {"name": "b", "number": 0, "address": "b0", "servers": ("s" * 9,)},
    )
    for wrong in wrongs:
        names.site.compare(f"the answer to {wrong}", "refused", names.register(**wrong))
    names.site.compare(
        "the answer beyond the queues", "refused", names.register("b", 0, "b0", topic("t"), topic("u"))
    )


def _left(names: _Names, queues: dict[str, dict[str, tuple[int, int, int, int]]]) -> None:
    """Names at the limits, and brokers that leave."""
    site, both = names.site, {"a": {0: "a0", 1: "a1"}}
    names.register("b" * 8, 0, "b" * 8, topic("t"), servers=("s" * 8, "s"))
    eight = "b" * 8
    queues["t"][eight] = _T
    names.compare("names of the greatest length", {**both, eight: {0: eight}}, queues,
                  {"a0": ["s1"], eight: ["s" * 8, "s"]})  # fmt: skip
    names.register("c", 3, "c3", cluster="d")
    site.compare("the answer beyond the brokers", "refused", names.register("c", 4, "c4"))
    site.compare("the answer to one that moves", "a0", names.register("a", 3, "a1", counter=2))
    names.compare("a broker with another id", {"a": {0: "a0", 3: "a1"}, eight: {0: eight}, "c": {3: "c3"}},
                  queues, {"a0": ["s1"], eight: ["s" * 8, "s"]})  # fmt: skip
    for key, is_known in (
        (BrokerKey("c", "a", 0, "x"), False), (BrokerKey("x", "a", 0, "a0"), False),
        (BrokerKey("c", "a", 1, "a0"), False), (BrokerKey("c", "x", 0, "a0"), False),
        (BrokerKey("c", "a", 0, "a0"), True), (BrokerKey("c", "a", 0, "a0"), False),
        (BrokerKey("c", eight, 0, eight), True),
    ):  # fmt: skip
        site.compare(f"whether {key} unregisters", is_known, names.table.unregister(key))
    del queues["t"][eight]
    names.compare("two have left", {"a": {3: "a1"}, "c": {3: "c3"}}, queues)
    names.table.unregister(BrokerKey("c", "a", 3, "a1"))
    names.compare("the last one of a name has left", {"c": {3: "c3"}}, {})
    names.table.add_queues("w", [QueueData("c", 6, 1, 0, 2), QueueData("unknown", 6, 1, 0, 2)])
    names.compare("queues are added", {"c": {3: "c3"}}, {"w": {"c": (6, 1, 2, 0)}})
    names.table.add_queues("x", [QueueData("unknown", 6, 1, 0, 2)])
    names.compare("queues of an unknown broker are added", {"c": {3: "c3"}}, {"w": {"c": (6, 1, 2, 0)}})


def _acting(site: Site) -> None:
    """Slaves without a master: the one with the least id counts, and may act as the master."""
    t = topic("t")
    for allows, perm in ((True, 4), (False, 6), (None, None)):
        names = _Names(site)
        names.register("a", 2, "a2", t, enable_acting_master=allows)
        queues = {} if perm is None else {"t": {"a": (perm, 4, 5, 0)}}
        names.compare(f"the registration of a slave with {allows}", {"a": {2: "a2"}}, queues)
        names.register("a", 3, "a3", topic("t", 9), counter=2, enable_acting_master=allows)
        names.compare("that of another one", {"a": {2: "a2", 3: "a3"}}, queues)
        names.register("a", 1, "a1", topic("t", 7), counter=2, enable_acting_master=allows)
        if perm is not None:
            queues = {"t": {"a": (perm, 7, 8, 0)}}
        names.compare("that of a lesser one", {"a": {1: "a1", 2: "a2", 3: "a3"}}, queues)
        for acting in (False, True):
            route = names.table.route("t", acting_masters=acting)
            shown = dict(route.broker_datas[0].broker_addrs) if route else None
            expected = {0: "a1", 2: "a2", 3: "a3"} if allows and acting else {1: "a1", 2: "a2", 3: "a3"}
            site.compare(f"the route with {allows}, {acting}", expected if queues else None, shown)
        names.register("a", 0, "a0", t, enable_acting_master=allows)
        route = names.table.route("t", acting_masters=True)
        shown = dict(route.broker_datas[0].broker_addrs) if route else None
        site.compare("the route with a master", {0: "a0", 1: "a1", 2: "a2", 3: "a3"}, shown)
    names = _Names(site)
    names.register("a", 0, "a0", t, topic("u"))
    names.register("b", 0, "b0", topic("u"))
    for counter, without, left in ((1, False, "tu"), (2, True, "tu"), (3, False, "u")):
        names.register("a", 0, "a0", topic("u"), counter=counter, without_body=without, forget_unlisted=True)
        site.compare(f"the topics after version {counter}", sorted(left), sorted(names.table.topics()))
    names.register("a", 0, "a0", counter=4, forget_unlisted=True)
    names.compare("a list without topics", {"a": {0: "a0"}, "b": {0: "b0"}}, {"u": {"b": _T}})


def _expired(site: Site) -> None:
    """Brokers expire a millisecond after their time, and with their connection."""
    names = _Names(site)
    table = names.table
    names.register("a", 0, "a0", topic("t"), connection=1, expiry_ms=100)
    names.register("b", 0, "b0", topic("t"), connection=2, expiry_ms=100)
    names.register("c", 0, "c0", topic("t"), connection=2, expiry_ms=100)

    def gone(found: list[Any]) -> list[str]:
        return sorted(each.key.address for each in found)

    site.compare("who expires in time", [], gone(table.expire(1100)))
    for cluster, address, expiry_ms, is_known in (
        ("c", "a0", None, True), ("x", "a0", None, False), ("c", "x", None, False), ("c", "b0", 300, True),
    ):  # fmt: skip
        found = table.heartbeat(cluster, address, 1050, expiry_ms)
        site.compare(f"whether {address} of {cluster} is known", is_known, found is not None)
    site.compare("who expires a millisecond later", ["c0"], gone(table.expire(1101)))
    names.compare("the first one has expired", {"a": {0: "a0"}, "b": {0: "b0"}}, {"t": {"a": _T, "b": _T}})
    site.compare(
        "who expires after a heartbeat", ([], ["a0"]), (gone(table.expire(1150)), gone(table.expire(1151)))
    )
    table.heartbeat("c", "b0", 1200)
    site.compare("who expires later", ([], ["b0"]), (gone(table.expire(1500)), gone(table.expire(1501))))
    names.compare("all have expired", {}, {})
    names.register("a", 0, "a0", topic("t"), connection=1)
    names.register("b", 0, "b0", topic("t"), connection=2)
    names.register("b", 1, "b1", topic("t"), connection=2)
    site.compare("who leaves with another connection", [], gone(table.connection_closed(3)))
    site.compare("who leaves with a connection", ["b0", "b1"], gone(table.connection_closed(2)))
    names.compare("a connection is closed", {"a": {0: "a0"}}, {"t": {"a": _T}})
    names.register("a", 0, "a0", connection=2)
    site.compare("who leaves with an old connection", [], gone(table.connection_closed(1)))


async def _times(site: Site) -> None:
    """Routes are refused for a time after the start, and scans are as frequent as set."""
    machine = site.cluster.add_machine("names of its own")
    own = NameServerConfig(
        machine.host, 9876, kv_path="/own/kv.json", scan_interval_ms=1000, broker_expiry_ms=2500,
        wait_for_service=True, wait_s=5,
    )  # fmt: skip
    runtime = machine.runtime()
    server = NameServer(own, runtime)
    site.compare("the address before the start", None, server.address)
    loop = asyncio.get_running_loop()
    address = await server.start()
    began_s = loop.time()
    site.compare("the address", (address, Address(machine.host, 9876)), (server.address, address))
    line = await RawClient(address).open(site.cluster.internet.machine(HOST))
    asked = {"topic": "t"}
    fields = {"brokerName": "b", "brokerAddr": "a", "clusterName": "c", "haServerAddr": "h", "brokerId": "0"}
    expires: dict[float, float] = {0.2: 3.0, 3.6: 7.0, 8.4: 11.0, 12.6: 16.0}
    """The times of registrations, and of the scans that remove the broker."""
    steps = [(begin, "register") for begin in expires]
    steps += [
        (end + more, "gone" if more > 0 else "there") for end in expires.values() for more in (-0.02, 0.02)
    ]
    steps += [(4.98, "early"), (5.02, "late")]
    for second, step in sorted(steps):
        await asyncio.sleep(began_s + second - loop.time())
        if step == "register":
            body = json.dumps(body_of([topic("t")])).encode()
            answer = await line.request(CODES["REGISTER_BROKER"], fields, body)
            site.compare("the code of a registration", 0, answer.code, answer.remark)
        elif step in ("early", "late"):
            answer = await line.request(CODES["GET_ROUTEINFO_BY_TOPIC"], asked)
            site.compare(f"the code of a route at {second} s", 1 if step == "early" else 0, answer.code)
        else:
            answer = await line.request(CODES["GET_BROKER_MEMBER_GROUP"], fields)
            site.compare(f"the code of the member group at {second} s", int(step == "gone"), answer.code)
    await server.stop()
    await asyncio.sleep(0.01)
    site.compare("the tasks after the stop", set(), set(runtime.supervisor.running))
    site.compare(
        "the address and a connection after the stop", (None, True), (server.address, line.is_closed)
    )


async def _counted(site: Site) -> None:
    """A name server may count its clients as if they had just sent something."""
    machine = site.cluster.add_machine("names of a test")
    server = NameServer(NameServerConfig(machine.host, 0, kv_path="/own/kv.json"), machine.runtime())
    address = await server.start()
    for is_counted in (True, False):
        line = await RawClient(address).open(site.cluster.internet.machine(HOST))
        await asyncio.sleep(119)
        if is_counted:
            server.count_clients_as_heard()
        await asyncio.sleep(12)
        site.compare(f"whether a client that counts as heard ({is_counted}) is connected", is_counted,
                     not line.is_closed)  # fmt: skip
        line.close()
    server.kill()


async def _accounts(site: Site) -> None:
    """A name server reads its accounts again within 5 s; a file that is wrong changes nothing."""

    async def is_allowed(key: str) -> bool:
        fields: dict[str, Any] = signed({"namespace": "n", "key": "k", "value": "v"}, b"", key, SECRET)
        answer = await site.ask("PUT_KV_CONFIG", to=site.name_server, expects=None, **fields)
        return answer.code == 0

    other = {"accounts": [{**ADMIN.entry(), "accessKey": _SECOND}]}
    allowed = ADMIN.key
    for text, key in ((None, ADMIN.key), (json.dumps(other), _SECOND), ("{", _SECOND),
                      ("accounts: \x01", _SECOND), (_FILE, ADMIN.key)):  # fmt: skip
        if text is not None:
            site.write_file(NAME_SERVERS[0], _ACCOUNTS, text)
            site.compare("whether the accounts from before count at first", True, await is_allowed(allowed))
            await asyncio.sleep(_POLL_S + 0.1)
        allowed = key
        found = [each for each in (ADMIN.key, _SECOND) if await is_allowed(each)]
        site.compare(f"the accounts that count after {text!r:.30}", [key], found)


_FILE: Final = json.dumps({"accounts": [ADMIN.entry()]})
_TOOLS: Final = json.dumps({"accessKey": ADMIN.key, "secretKey": SECRET})
ROUTING_TABLES: Final = Inspection(
    "routing tables", routing_tables, name_server={"acl_enabled": True},
    files={"/store/config/tools.yml": _TOOLS}, name_server_files={_ACCOUNTS: _FILE},
)  # fmt: skip

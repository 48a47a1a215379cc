"""The tables of a name server after each registration, removal and expiry.

Source: docs/reference/protocol/name-server.md.
"""

import json
from collections.abc import Mapping
from typing import Any

from mqproof.conformance.adapters.inspections.strange_brokers import body_of, topic
from mqproof.impl.namesrv.route_table import Bounds, BoundsError, BrokerKey, RouteTable
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import QueueData, RegisterBrokerBody
from tests.impl.compared import Compared


class _Names:
    """The tables of a name server without I/O, and the time that its caller sets."""

    def __init__(self, site: Compared, bounds: Bounds | None = None) -> None:
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


def test_registrations_claims_and_removals_change_the_tables() -> None:
    """Registrations, claims and removals, with all tables after each one."""
    site = Compared()
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


def test_an_acting_master_is_shown_as_one() -> None:
    """Slaves without a master: the one with the least id counts, and may act as the master."""
    site = Compared()
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


def test_brokers_expire_a_millisecond_after_their_time() -> None:
    """Brokers expire a millisecond after their time, and with their connection."""
    site = Compared()
    names = _Names(site)
    table = names.table
    names.register("a", 0, "a0", topic("t"), connection=1, expiry_ms=100)
    names.register("b", 0, "b0", topic("t"), connection=2, expiry_ms=100)
    names.register("c", 0, "c0", topic("t"), connection=2, expiry_ms=100)

    def gone(found: list[Any]) -> list[str]:
        return sorted(each.key.address for each in found)

    site.compare("the brokers that expire in time", [], gone(table.expire(1100)))
    for cluster, address, expiry_ms, is_known in (
        ("c", "a0", None, True), ("x", "a0", None, False), ("c", "x", None, False), ("c", "b0", 300, True),
    ):  # fmt: skip
        found = table.heartbeat(cluster, address, 1050, expiry_ms)
        site.compare(f"whether {address} of {cluster} is known", is_known, found is not None)
    site.compare("those a millisecond later", ["c0"], gone(table.expire(1101)))
    names.compare("the first one has expired", {"a": {0: "a0"}, "b": {0: "b0"}}, {"t": {"a": _T, "b": _T}})
    site.compare(
        "those after a heartbeat", ([], ["a0"]), (gone(table.expire(1150)), gone(table.expire(1151)))
    )
    table.heartbeat("c", "b0", 1200)
    site.compare("those that expire last", ([], ["b0"]), (gone(table.expire(1500)), gone(table.expire(1501))))
    names.compare("all have expired", {}, {})
    names.register("a", 0, "a0", topic("t"), connection=1)
    names.register("b", 0, "b0", topic("t"), connection=2)
    names.register("b", 1, "b1", topic("t"), connection=2)
    site.compare("the brokers that leave with another connection", [], gone(table.connection_closed(3)))
    site.compare("those that leave with a connection", ["b0", "b1"], gone(table.connection_closed(2)))
    names.compare("a connection is closed", {"a": {0: "a0"}}, {"t": {"a": _T}})
    names.register("a", 0, "a0", connection=2)
    site.compare("those that leave with an old connection", [], gone(table.connection_closed(1)))

"""What a broker sends to its name servers: every field of its registrations, and when.

See docs/reference/protocol/name-server.md.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.scripted_names import ScriptedAddresses, ScriptedNames
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.answers.stored_record import offset_message_id
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame
from mqproof.impl.remoting.address_server import AddressServer
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address

_NAMES: Final = ("10.0.9.1", "10.0.9.2")
_WEB: Final = "10.0.9.3"
_HA_PORT: Final = 12345
_PERIOD_S: Final = 60
_FETCH_S: Final = 120


async def registered(site: Site) -> None:
    """Compare each registration of a master and its slave, while the name server knows several masters."""
    await _registered(site, _HA_PORT)


async def registered_by_default(site: Site) -> None:
    """The port for slaves is the one after the port for clients if none is set."""
    await _registered(site, site.broker.port + 1)


async def _registered(site: Site, ha_port: int) -> None:
    site.rule = chapters.NAME_SERVER
    names = await ScriptedNames(site, _NAMES[0]).open()
    master, slave = (site.cluster.machines[node].host for node in (MASTER, SLAVE))
    ha_address = f"{master}:{ha_port}"
    await asyncio.sleep(_PERIOD_S + 10)
    (request,) = names.take("REGISTER_BROKER", master)
    _compare(site, request, {"brokerId": "0", "brokerAddr": str(site.broker), "haServerAddr": ha_address})
    (request,) = names.take("REGISTER_BROKER", slave)
    _compare(site, request, {
        "brokerId": "1", "brokerAddr": f"{slave}:{site.broker.port}",
        "haServerAddr": f"{slave}:{site.broker.port + 1}",
    })  # fmt: skip
    await _topics(site, names, master)
    await _followed(site, names, ha_address, slave)
    await site.cluster.stop(SLAVE)
    await site.cluster.stop(MASTER)
    for host, broker_id in ((slave, "1"), (master, "0")):
        (request,) = names.take("UNREGISTER_BROKER", host)
        site.compare("the last request", {
            "brokerName": "broker-a", "brokerAddr": f"{host}:{site.broker.port}", "brokerId": broker_id,
            "clusterName": "DefaultCluster",
        }, dict(request.fields))  # fmt: skip


def _compare(site: Site, request: Frame, expected: Mapping[str, str]) -> None:
    common = {"brokerName": "broker-a", "clusterName": "DefaultCluster", "enableActingMaster": "false"}
    shown = {name: value for name, value in request.fields.items() if name not in ("compressed", "bodyCrc32")}
    site.compare("a registration", {**common, **expected}, shown)


def _table(request: Frame) -> tuple[dict[str, Any], int]:
    """Return the registered topics, and the counter of their version."""
    body = java_values.read(request.body)
    wrapper = body["topicConfigSerializeWrapper"]
    return wrapper["topicConfigTable"], int(wrapper["dataVersion"]["counter"])


async def _topics(site: Site, names: ScriptedNames, master: str) -> None:
    """Each change of the topics is registered at once, once, with a new version."""
    counter = 0
    for number, permission in enumerate((6, 4, 7)):
        await make_topic(site, "t", number + 1, perm=permission, order=bool(number))
        await asyncio.sleep(0.2)
        (request,) = names.take("REGISTER_BROKER", master)
        table, later = _table(request)
        of_broker = java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"]
        site.compare("the registered topics", of_broker, table)
        site.compare("whether the version is later", True, later > counter)
        counter = later
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=4")
    await asyncio.sleep(0.2)
    (request,) = names.take("REGISTER_BROKER", master)
    site.compare("the permissions", {4, 5}, {each["perm"] for each in _table(request)[0].values()})
    site.compare("whether the version is later", True, _table(request)[1] > counter)
    await asyncio.sleep(_PERIOD_S)
    site.compare("the periodic registrations", 1, len(names.take("REGISTER_BROKER", master)))


async def _followed(site: Site, names: ScriptedNames, ha_address: str, slave: str) -> None:
    """A slave registers when its name server knows another master, or one that has come back."""
    names.take("REGISTER_BROKER", slave)
    names.take("GET_BROKER_CLUSTER_INFO", slave)

    async def passes(seconds: float, registrations: int, what: str, *, asks: bool) -> None:
        await asyncio.sleep(seconds)
        found = len(names.take("REGISTER_BROKER", slave))
        site.compare(f"the registrations of a slave {what}", registrations, found)
        asked = len(names.take("GET_BROKER_CLUSTER_INFO", slave))
        expected = round(seconds / 0.5) if asks else 0
        site.compare(f"whether it asks {what}: {asked}", True, abs(asked - expected) <= 3)

    await passes(5, 0, "without a master", asks=True)
    names.master, names.ha_address = str(site.broker), ha_address
    await asyncio.sleep(1)
    site.compare("the registrations", 1, len(names.take("REGISTER_BROKER", slave)))
    await asyncio.sleep(10)
    site.compare("whether the slave follows", True, site.cluster.follows())
    site.compare("the registrations of the copied topics", 1, len(names.take("REGISTER_BROKER", slave)))
    names.take("GET_BROKER_CLUSTER_INFO", slave)
    await passes(5, 0, "that follows", asks=False)
    site.cluster.kill(MASTER)
    await passes(5, 0, "whose master is away", asks=True)
    names.master, names.ha_address = "10.0.9.77:10911", "10.0.9.77:10912"
    await passes(5, 1, "with another master", asks=True)
    names.master = ""
    await passes(5, 0, "without a master", asks=True)
    names.master, names.ha_address = "10.0.9.77:10911", ha_address
    await site.cluster.start(MASTER)
    await asyncio.sleep(10)
    site.compare("the registrations after its return", 1, len(names.take("REGISTER_BROKER", slave)))
    site.compare("whether the slave follows the same log", True, site.cluster.follows())


async def fetched(site: Site) -> None:
    """A broker registers with the name servers that an address server lists now."""
    site.rule = chapters.NAME_SERVER
    one, other = [await ScriptedNames(site, host).open() for host in _NAMES]
    web = await ScriptedAddresses(site, _WEB).open()
    host = site.broker.host

    async def passes(expected: tuple[bool, bool], what: str) -> None:
        for each in (one, other):
            each.requests.clear()
        web.requests.clear()
        await asyncio.sleep(_FETCH_S)
        found = tuple(bool(each.take("REGISTER_BROKER", host)) for each in (one, other))
        site.compare(f"the name servers with registrations {what}", expected, found)
        site.compare("the requests for the list", [
            f"GET /rocketmq/nsaddr?x=1 HTTP/1.0\r\nHost: {_WEB}:80\r\nConnection: close\r\n\r\n".encode()
        ], web.requests)  # fmt: skip

    for servers, status, expected in (
        ((one,), "200 OK", (True, False)), ((one, other), "200 OK", (True, True)),
        ((other,), "500 Wrong", (True, True)), ((), "200 OK", (True, True)),
        ((other,), "200 OK", (False, True)),
    ):  # fmt: skip
        web.lists(*servers, status=status)
        await asyncio.sleep(_FETCH_S)
        await passes(expected, f"after {status} with {len(servers)} servers")
    await site.restart()
    site.compare("the requests at a start", 1, len(web.requests) - 1)


async def advertised(site: Site) -> None:
    """A broker registers, and names in its messages, the address that its configuration advertises."""
    site.rule = chapters.NAME_SERVER
    names = await ScriptedNames(site, _NAMES[0]).open()
    master, slave = (site.cluster.machines[node].host for node in (MASTER, SLAVE))
    await asyncio.sleep(_PERIOD_S + 10)
    for host, broker_id, ha_port in ((master, "0", _HA_PORT), (slave, "1", site.broker.port + 1)):
        (request,) = names.take("REGISTER_BROKER", host)
        _compare(site, request, {
            "brokerId": broker_id, "brokerAddr": f"{_ADVERTISED}:{site.broker.port}",
            "haServerAddr": f"{_ADVERTISED}:{ha_port}",
        })  # fmt: skip
    await make_topic(site, "t")
    sent = await send(site, "t", expects=None)
    found = offset_message_id(f"{_ADVERTISED}:{site.broker.port}", 0)
    site.compare("the offset message id", found, sent.fields.get("msgId"))
    site.watch.wrong = [each for each in site.watch.wrong if "of a message stored at" not in each.text]


_ADVERTISED: Final = "10.0.9.50"
_SITE: Final = {"name_servers": (Address(_NAMES[0], 9876),), "register_interval_ms": _PERIOD_S * 1000}
REGISTERED: Final = Inspection(
    "registration", registered, _SITE, replication=ReplicationConfig(Role.ASYNC_MASTER, ha_port=_HA_PORT)
)
ADVERTISED: Final = Inspection(
    "advertised address", advertised, {**_SITE, "advertised_host": _ADVERTISED},
    replication=ReplicationConfig(Role.ASYNC_MASTER, ha_port=_HA_PORT),
)  # fmt: skip
BY_DEFAULT: Final = Inspection(
    "registration by default", registered_by_default, _SITE, replication=ReplicationConfig(Role.ASYNC_MASTER)
)
FETCHED: Final = Inspection(
    "fetched name servers",
    fetched,
    {"name_servers": AddressServer(Address(_WEB, 80), "/rocketmq/nsaddr?x=1")},
)

"""Brokers with two name servers of which one is silent, refuses, or answers what cannot be read.

See docs/reference/protocol/name-server.md, and replication.md.
"""

import asyncio
from typing import Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.scripted_names import ScriptedNames
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address

_NAMES: Final = ("10.0.9.1", "10.0.9.2")
_ELSEWHERE: Final = "10.0.9.77:10911"
_PERIOD_S: Final = 60
_TIMEOUT_S: Final = 7
_UNREADABLE: Final = (b"{", b"[]", b'{"brokerAddrTable":7}', b"\xff")


async def silent_names(site: Site) -> None:
    """The other name server is enough for a master, and for a slave that seeks its master."""
    site.rule = chapters.NAME_SERVER
    wrong, good = [await ScriptedNames(site, host).open() for host in _NAMES]
    hosts = {node: site.cluster.machines[node].host for node in (MASTER, SLAVE)}
    ha_address = f"{hosts[MASTER]}:{site.broker.port + 1}"
    good.ha_address = ha_address
    for answer in ("silent", "refusing", *_UNREADABLE):
        wrong.is_silent, wrong.code = answer == "silent", int(answer == "refusing")
        wrong.cluster = answer if isinstance(answer, bytes) else None
        await _finds_its_master(site, good, hosts[SLAVE], f"beside one that is {answer!r}")
    await make_topic(site, "t")
    await asyncio.sleep(1)
    for names in (wrong, good):
        found = len(names.take("REGISTER_BROKER", hosts[MASTER]))
        site.compare("whether a new topic is registered", True, found > 0)
    wrong.is_silent = True
    await make_topic(site, "u")
    await asyncio.sleep(0.1)
    site.compare("the registrations beside a silent one", 1, len(good.take("REGISTER_BROKER", hosts[MASTER])))
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="u")
    await asyncio.sleep(_TIMEOUT_S)  # the registration before still waits for the silent one
    (request,) = good.take("REGISTER_BROKER", hosts[MASTER])
    topics = java_values.read(request.body)["topicConfigSerializeWrapper"]["topicConfigTable"]
    site.compare("the registered topics after a deletion", (True, False), ("t" in topics, "u" in topics))
    await _ends(site, wrong, good, hosts)


async def _finds_its_master(site: Site, good: ScriptedNames, slave: str, what: str) -> None:
    """Let the slave lose its master, then let one name server know another one, and the first one again."""
    await site.cluster.stop(SLAVE)
    good.master = ""
    await site.cluster.start(SLAVE)
    await asyncio.sleep(8)
    good.take("REGISTER_BROKER", slave)
    await asyncio.sleep(3)
    site.compare(
        f"the registrations of a slave without a master {what}", 0, len(good.take("REGISTER_BROKER", slave))
    )
    good.master = str(site.broker)
    await asyncio.sleep(2)
    found = len(good.take("REGISTER_BROKER", slave))
    site.compare(f"whether a slave registers with a master {what}", True, found > 0)
    await asyncio.sleep(8)
    site.compare(f"whether it follows {what}", True, site.cluster.follows())


async def _ends(site: Site, wrong: ScriptedNames, good: ScriptedNames, hosts: dict[str, str]) -> None:
    """A broker that stops is unregistered at each name server, though one does not answer."""
    for node in (SLAVE, MASTER):
        for names in (wrong, good):
            names.take("UNREGISTER_BROKER", hosts[node])
        began_s = site.cluster.now_s
        await site.cluster.stop(node)
        took_s = site.cluster.now_s - began_s
        site.compare(f"whether {node} ends in time: {took_s}", True, took_s < 5)
        for names in (wrong, good):
            site.compare(f"the last requests of {node}", 1, len(names.take("UNREGISTER_BROKER", hosts[node])))


SILENT_NAMES: Final = Inspection(
    "silent name servers", silent_names,
    {"name_servers": tuple(Address(host, 9876) for host in _NAMES), "register_interval_ms": _PERIOD_S * 1000},
    replication=ReplicationConfig(Role.ASYNC_MASTER),
)  # fmt: skip

"""A slave that acts for its master at a name server: it takes this role, and leaves it in each way.

See docs/reference/protocol/name-server.md, "Routes" and "Differences between releases".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import Registrant, body_of, topic
from mqproof.conformance.wire import chapters

_READ, _READ_WRITE = 4, 6
_SILENT_S: Final = 121 + 10


class _Names:
    """One broker name: a master and two slaves, which may act for it or not."""

    def __init__(self, site: Site, name: str, enable: bool | None) -> None:
        self.site = site
        self.name = name
        self.enable = enable
        self.brokers = [Registrant(site, name, number) for number in range(3)]
        self._version = 1

    async def register(self, number: int) -> None:
        """Register with changed topics."""
        self._version += 1
        fields: dict[str, Any] = {} if self.enable is None else {"enableActingMaster": self.enable}
        await self.brokers[number].register(body_of([topic(self.name)], self._version), **fields)

    async def leave(self, number: int, how: str) -> None:
        """Let a broker go: it unregisters, its connection ends, or it is silent while the others are not."""
        if how == "unregisters":
            await self.brokers[number].ask("UNREGISTER_BROKER")
        elif how == "disconnects":
            (await self.brokers[number].line()).close()
        else:
            for _ in range(5):
                await asyncio.sleep(_SILENT_S / 5)
                for other in self.brokers:
                    if other is not self.brokers[number] and other.address in await self.known():
                        await other.ask("BROKER_HEARTBEAT")
        await asyncio.sleep(0.1)

    async def known(self) -> set[str]:
        answer = await self.site.ask("GET_BROKER_CLUSTER_INFO", to=self.site.name_server)
        brokers = java_values.read(answer.body)["brokerAddrTable"].get(self.name)
        return set(brokers["brokerAddrs"].values()) if brokers else set()

    async def shows(self, what: str, perm: int, acting: dict[int, int]) -> None:
        """Compare the route, by the id that it shows and the id of the broker, and the members."""
        site, to = self.site, self.site.name_server
        answer = await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic=self.name)
        route: dict[str, Any] = java_values.read(answer.body)
        (broker,), (queues,) = route["brokerDatas"], route["queueDatas"]
        expected = {str(shown): self.brokers[number].address for shown, number in acting.items()}
        found = {str(key): address for key, address in broker["brokerAddrs"].items()}
        site.compare(f"the brokers of {self.name} {what}", expected, found)
        site.compare(f"the permission of {self.name} {what}", perm, queues["perm"])
        enabled = broker.get("enableActingMaster", False)
        site.compare(f"enableActingMaster of {self.name} {what}", bool(self.enable), enabled)
        group = await site.ask("GET_BROKER_MEMBER_GROUP", to=to, brokerName=self.name, clusterName="c")
        members = java_values.read(group.body)["brokerMemberGroup"]["brokerAddrs"]
        real = {str(number): self.brokers[number].address for number in acting.values()}
        site.compare(
            f"the members of {self.name} {what}", real, {str(key): each for key, each in members.items()}
        )


async def acting_masters(site: Site) -> None:
    """Masters and slaves of three names come and go, in each way."""
    site.rule = chapters.NAME_SERVER
    for name, enable in (("acting", True), ("not allowed", False), ("of 4.9", None)):
        names = _Names(site, name, enable)
        for how in ("unregisters", "disconnects", "is silent"):
            await _rounds(names, how)


async def _rounds(names: _Names, how: str) -> None:
    acts = bool(names.enable)
    for number in range(3):
        await names.register(number)
    every = {0: 0, 1: 1, 2: 2}
    await names.shows("with its master", _READ_WRITE, every)
    await names.leave(0, how)
    await names.shows(f"after its master {how}", _READ_WRITE, {1: 1, 2: 2})
    await names.register(2)
    await names.shows("after another slave registers", _READ_WRITE, {1: 1, 2: 2})
    await names.register(1)
    perm = _READ if acts else _READ_WRITE
    await names.shows("after the first slave registers", perm, {0: 1, 2: 2} if acts else {1: 1, 2: 2})
    await names.leave(1, how)
    await names.shows(f"after the acting slave {how}", perm, {0: 2} if acts else {2: 2})
    await names.register(0)
    await names.shows("after its master returns", _READ_WRITE, {0: 0, 2: 2})
    await names.leave(2, how)
    await names.shows(f"after the last slave {how}", _READ_WRITE, {0: 0})
    await names.leave(0, "unregisters")
    await names.site.ask("GET_ROUTEINFO_BY_TOPIC", expects=17, to=names.site.name_server, topic=names.name)


ACTING_MASTERS: Final = Inspection("acting masters", acting_masters, name_server={"acting_masters": True})

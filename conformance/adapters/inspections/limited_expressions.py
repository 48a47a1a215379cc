"""How many expressions a slave keeps of its master, and for how long; the limit is lowered.

See docs/reference/protocol/filters.md, "Filter data", and replication.md, "Metadata".
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final
from unittest import mock

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import beat, make_topic, pull, subscription
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.broker.state import consumer_filters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address

_TOPIC: Final = "t"
_OF_MASTER, _OF_SLAVE = ("m1", "m2", "m3", "m4"), ("s1", "s2", "s3")
_MAX: Final = 5
_SYNCED_S: Final = 25
"""Longer than two copies of the master's tables, and than two looks for expired expressions."""
_HALF_DAY_MS: Final = 12 * 3_600_000
_MINUTE_MS: Final = 60_000
_NO_DATA: Final = 27


async def limited_expressions(site: Site) -> None:
    site.rule = chapters.PULL_REQUESTS
    await make_topic(site, _TOPIC)
    await asyncio.sleep(_SYNCED_S)
    with mock.patch.object(consumer_filters, "FILTERS_MAX", _MAX):
        slave = Address(site.cluster.machines[SLAVE].host, site.broker.port)
        lines = await site.client("member"), await site.client("member", to=slave)
        await _limited(site, *lines)
    await _renewed(site, *lines)


async def _limited(site: Site, master: RawClient, slave: RawClient) -> None:
    """A slave keeps its own expressions, and the latest ones of its master up to the limit."""
    await _subscribe(site, slave, _OF_SLAVE)
    await _subscribe(site, master, _OF_MASTER)
    await asyncio.sleep(_SYNCED_S)
    await _compare(site, slave, {"s1", "s2", "s3", "m3", "m4"})
    more = [await site.client("more", to=line.server) for line in (master, slave)]
    await _subscribe(site, more[1], ("s4",))
    await _subscribe(site, slave, ("s3",), "a > 5")
    await _subscribe(site, more[0], ("m5", "m6"))
    for line, groups in ((master, _OF_MASTER), (slave, _OF_SLAVE)):  # otherwise the clients count as silent
        await _subscribe(site, line, groups)
    await _compare(site, slave, {"s1", "s2", "s3", "m3", "m4"})
    await _compare(site, master, {*_OF_MASTER, "m5"})
    await _unwritten(site, slave)
    changed = (await _kept(site, slave)).get("s3", {}).get("expression")
    site.compare("the changed expression of a full table", "a > 5", changed)
    for group, line, code in (("s4", slave, _NO_DATA), ("m5", master, 19), ("m6", master, _NO_DATA)):
        await pull(
            site, _TOPIC, group=group, by=line, sysFlag=0, subscription=None, expressionType="SQL92",
            expects=code,
        )  # fmt: skip


async def _unwritten(site: Site, slave: RawClient) -> None:
    """A heartbeat that changes nothing lets no file be written."""
    await asyncio.sleep(_SYNCED_S)
    written: list[str] = []
    disk = site.cluster.machines[SLAVE].disk
    disk.on_step = lambda step: written.append(step.path) if "consumerFilter" in step.path else None
    await _subscribe(site, slave, _OF_SLAVE)
    await asyncio.sleep(_SYNCED_S)
    disk.on_step = None
    site.compare("the files that a repeated heartbeat writes", [], written)


async def _subscribe(site: Site, line: RawClient, groups: Iterable[str], text: str = "a > 1") -> None:
    for group in groups:
        version = int(group[1:]) + (100 if text != "a > 1" else 0)
        await beat(site, "m@1", group, [subscription(_TOPIC, text, version, "SQL92")], by=line)


async def _kept(site: Site, line: RawClient) -> dict[str, dict[str, Any]]:
    body = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG", by=line)).body)
    return {each["consumerGroup"]: each for each in body.get("filters", [])}


async def _compare(site: Site, line: RawClient, expected: set[str]) -> None:
    found = await _kept(site, line)
    site.compare(f"the groups whose expressions {line.server} keeps", expected, set(found))


async def _renewed(site: Site, master: RawClient, slave: RawClient) -> None:
    """A slave renews an expression after half a day while the group has members at the master only."""
    began_ms = (await _kept(site, slave))["m4"]["deadTime"]
    site.compare(
        "whether a group without members here has left now", True, 0 < site.now_ms - began_ms < 120_000
    )
    for add_ms, is_renewed in ((_HALF_DAY_MS - 5 * _MINUTE_MS, False), (5 * _MINUTE_MS, True)):
        _add(site, add_ms)
        await _subscribe(site, master, _OF_MASTER)
        await _subscribe(site, slave, _OF_SLAVE)
        await asyncio.sleep(_SYNCED_S)
        left_ms = (await _kept(site, slave))["m4"]["deadTime"]
        now_ms = began_ms if not is_renewed else _now_ms(site) - left_ms < _MINUTE_MS and left_ms
        site.compare("when a group with members at the master only has left", now_ms, left_ms)
    await site.cluster.stop(MASTER)
    for add_ms, is_kept in ((2 * _HALF_DAY_MS - 5 * _MINUTE_MS, True), (5 * _MINUTE_MS, False)):
        _add(site, add_ms)
        await _subscribe(site, slave, _OF_SLAVE)
        await asyncio.sleep(_SYNCED_S)
        site.compare("whether the expression is kept", is_kept, "m4" in await _kept(site, slave))
    site.compare("whether that of a member is kept", True, "s1" in await _kept(site, slave))


def _add(site: Site, add_ms: int) -> None:
    site.cluster.machines[SLAVE].clock.skew_us += add_ms * 1000


def _now_ms(site: Site) -> int:
    return site.now_ms + site.cluster.machines[SLAVE].clock.skew_us // 1000


LIMITED_EXPRESSIONS: Final = Inspection(
    "limited expressions", limited_expressions, {"property_filter": True},
    replication=ReplicationConfig(Role.ASYNC_MASTER),
)  # fmt: skip

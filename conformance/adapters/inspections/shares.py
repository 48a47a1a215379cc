"""What one connection and one address may use of a broker: names, memberships, and filter servers.

See docs/reference/protocol/administration.md and filters.md, "Filter servers".
"""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import beat, make_group, make_topic, subscription
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_disk import Step

_BUSY: Final = 2
_OTHER_HOST, _THIRD_HOST = "10.0.1.2", "10.0.1.3"
_TOTAL, _OF_CONNECTION, _OF_ADDRESS = 2000, 1100, 1600
_UNIT: Final = 60_000
"""The size of a subscription; 22 of them fit into 1 % of the bytes of all memberships."""
_FILTER_SERVERS_MAX: Final = 16

_Make = Callable[[Site, RawClient, str, int, int], Coroutine[Any, Any, None]]


async def _make_groups(site: Site, by: RawClient, name: str, count: int, expects: int) -> None:
    body = {"groupConfigList": [{"groupName": f"{name}{number}"} for number in range(count)]}
    await site.ask("UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", body, expects=expects, by=by)


async def _make_topics(site: Site, by: RawClient, name: str, count: int, expects: int) -> None:
    topic = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
    body = {"topicConfigList": [{"topicName": f"{name}{number}", **topic} for number in range(count)]}
    await site.ask("UPDATE_AND_CREATE_TOPIC_LIST", body, expects=expects, by=by)


async def shares(site: Site) -> None:
    """Create names up to each share and one beyond it, by two connections of one address, and by others."""
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    built_in = len(java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"])
    for make, there, path in ((_make_groups, 0, "subscriptionGroup"), (_make_topics, built_in, "topics")):
        await _filled(site, make, there, path)
    one, more = await site.client("one"), await site.client("third", host=_THIRD_HOST)
    for line in (one, more):
        await beat(site, "member@1", "of_a_heartbeat", [subscription("t")], by=line, expects=_BUSY)
    for name in ("a1", "c1"):  # so that the share of the connection is the limit, and not that of the table
        await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName=name)
        await site.ask("DELETE_TOPIC_IN_BROKER", topic=name)
    await beat(site, "member@1", "of_a_heartbeat", [subscription("t")], by=one)
    await beat(site, "member@1", "of_another", [subscription("t")], by=one, expects=_BUSY)


async def _filled(site: Site, make: _Make, there: int, path: str) -> None:
    one, two = await site.client("one"), await site.client("two")
    other, third = [
        await site.client(name, host=host) for name, host in (("other", _OTHER_HOST), ("third", _THIRD_HOST))
    ]
    disk = site.cluster.machines[MASTER].disk

    def fail(step: Step) -> None:
        if path in step.path:
            raise OSError(errno.ENOSPC, "the disk is full")

    disk.on_step = fail
    for _ in range(2):
        await make(site, one, "a", _OF_CONNECTION, 1)
    disk.on_step = None
    site.watch.wrong = [each for each in site.watch.wrong if "the disk is full" not in each.text]
    await make(site, one, "a", _OF_CONNECTION + 1, _BUSY)
    await make(site, one, "a", _OF_CONNECTION, 0)
    await make(site, one, "more", 1, _BUSY)
    await make(site, one, "a", 1, 0)
    await make(site, two, "b", _OF_ADDRESS - _OF_CONNECTION + 1, _BUSY)
    await make(site, two, "b", _OF_ADDRESS - _OF_CONNECTION, 0)
    await make(site, two, "more", 1, _BUSY)
    await make(site, other, "c", _TOTAL - _OF_ADDRESS - there + 1, _BUSY)
    await make(site, other, "c", _TOTAL - _OF_ADDRESS - there, 0)
    await make(site, third, "more", 1, _BUSY)


async def at_once(site: Site) -> None:
    """Of two requests at the same time for the last place in a table, one is refused."""
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    there = len(java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"])
    await make_topic(site, "first")
    for number in range(_SMALL - 1):
        await make_group(site, f"first{number}")
    for number in range(_SMALL - there - 2):
        await make_topic(site, f"more{number}")
    for names, make in (("t", make_topic), ("g", make_group)):
        answers = await asyncio.gather(*(make(site, f"{names}{at}", expects=None) for at in range(3)))
        site.compare(f"the answers for {names}", [0, _BUSY, _BUSY], sorted(each.code for each in answers))


async def memberships(site: Site) -> None:
    """Heartbeats may fill the share of their connection; the place is free again when the client leaves."""
    site.rule = chapters.CLIENT_REGISTRATION
    one, two = await site.client("one"), await site.client("two")
    for group, units, by, expects in (
        ("g", 15, one, 0), ("h", 8, one, _BUSY), ("h", 7, one, 0), ("h", 7, one, 0), ("g", 16, one, _BUSY),
        ("g", 14, one, 0), ("h", 8, one, 0), ("g", 15, two, 0), ("i", 15, two, _BUSY),
    ):  # fmt: skip
        await _beat_with(site, group, units, by, expects)
    await site.ask("UNREGISTER_CLIENT", by=one, clientID="member@1", consumerGroup="g")
    await _beat_with(site, "i", 15, one, _BUSY)
    await _beat_with(site, "i", 14, one, 0)
    one.close()
    await asyncio.sleep(0.1)
    for group in ("g", "i"):
        expects = 0 if group == "g" else 1
        answer = await site.ask("GET_CONSUMER_LIST_BY_GROUP", consumerGroup=group, expects=expects)
        site.compare(
            "the members", '{"consumerIdList":["member@1"]}' if group == "g" else "", answer.body.decode()
        )


async def _beat_with(site: Site, group: str, units: int, by: RawClient, expects: int) -> None:
    subscriptions = [subscription(f"t{number}", "x" * _UNIT, kind="SQL92") for number in range(units)]
    await beat(site, "member@1", group, subscriptions, by=by, expects=expects)


async def filter_servers(site: Site) -> None:
    """Name servers report each filter server at once, until its connection ends or it is silent."""
    site.rule = chapters.FILTER_SERVERS
    await make_topic(site, "t")
    lines = [await site.client(f"filter {number}") for number in range(_FILTER_SERVERS_MAX + 1)]
    shown: list[str] = []
    for number, line in enumerate(lines[:-1]):
        address = f"10.0.2.{number + 10}:9000"
        answer = await site.ask("REGISTER_FILTER_SERVER", by=line, filterServerAddr=address)
        site.compare("the answer", {"brokerName": "broker-a", "brokerId": "0"}, dict(answer.fields))
        shown.append(address)
        await _registered(site, shown)
    await site.ask("REGISTER_FILTER_SERVER", by=lines[-1], filterServerAddr="10.0.3.1:9000", expects=1)
    await site.ask("REGISTER_FILTER_SERVER", by=lines[0], filterServerAddr="10.0.3.1", expects=1)
    await site.ask("REGISTER_FILTER_SERVER", by=lines[0], filterServerAddr="10.0.3.1:9000")
    shown[0] = "10.0.3.1:9000"
    await _registered(site, shown)
    lines[1].close()
    del shown[1]
    await _registered(site, shown)
    await site.ask("REGISTER_FILTER_SERVER", by=lines[-1], filterServerAddr="10.0.3.2:9000")
    for _ in range(3):
        await asyncio.sleep(14)
        await site.ask("REGISTER_FILTER_SERVER", by=lines[0], filterServerAddr="10.0.3.1:9000")
    await _registered(site, ["10.0.3.1:9000"])


async def _registered(site: Site, expected: list[str]) -> None:
    await asyncio.sleep(0.1)
    for to in site.cluster.names:
        body = java_values.read((await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic="t")).body)
        found = body["filterServerTable"].get(str(site.broker), [])
        site.compare("the filter servers of a name server", sorted(expected), sorted(found))


_SMALL: Final = 12
SHARES: Final = Inspection("shares", shares, {
    "topics_max": _TOTAL, "groups_max": _TOTAL, "connection_percent": 55, "address_percent": 80,
})  # fmt: skip
AT_ONCE: Final = Inspection("last places", at_once, {"topics_max": _SMALL, "groups_max": _SMALL})
MEMBERSHIPS: Final = Inspection("memberships", memberships, {"connection_percent": 1, "address_percent": 2})
FILTER_SERVERS: Final = Inspection("filter servers", filter_servers, {"filter_servers": True})

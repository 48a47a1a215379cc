"""Clients with several connections and groups: what each heartbeat, departure and silence changes.

See docs/reference/protocol/groups.md, "Client registration".
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_CHANGED, _CHECK, _INFO, _PUSHED = 40, 39, 307, 326
_NOT_ONLINE: Final = 206
_FORBIDDEN, _NOT_FOUND = 16, 19
_MISSED_S: Final = 40
_SILENT_S: Final = 120
_SCAN_S: Final = 10
_BEATS: Final[tuple[tuple[int, list[dict[str, Any]], bool, dict[str, tuple[str, int]]], ...]] = (
    (0, [subscription("t", "a", 5)], True, {"t": ("a", 5)}),
    (1, [subscription("t", "a", 5)], True, {"t": ("a", 5)}),
    (0, [subscription("t", "a", 5)], False, {"t": ("a", 5)}),
    (0, [subscription("t", "b", 4)], False, {"t": ("a", 5)}),
    (0, [subscription("t", "b", 5)], False, {"t": ("a", 5)}),
    (1, [subscription("t", "b", 6)], False, {"t": ("b", 6)}),
    (1, [subscription("t", "b", 6), subscription("u", "*", 1)], True, {"t": ("b", 6), "u": ("*", 1)}),
    (0, [subscription("u", "*", 1)], True, {"u": ("*", 1)}),
    (0, [subscription("t", "c", 3)], True, {"t": ("c", 3)}),
    (0, [], True, {}),
)
"""A member, the subscriptions of its heartbeat, whether members are notified, and the group's then."""


async def members(site: Site) -> None:
    site.rule = chapters.CLIENT_REGISTRATION
    await make_topic(site, "t")
    await make_group(site, "g")
    await _upkeep(site)
    await _topics_of_a_group(site)
    await _broadcasting(site)
    await _reconnected(site)
    await _leaving(site)
    await _locks(site)
    await _producers(site)
    await _silent(site)
    await _heard(site)


async def _hears(site: Site, lines: Sequence[RawClient], what: str, expected: Sequence[int]) -> None:
    """Compare how often each client was notified since the last look."""
    await asyncio.sleep(0.05)
    found = [sum(each.code == _CHANGED for each in line.pushed) for line in lines]
    site.compare(f"the notifications after {what}", list(expected), found)
    for line in lines:
        line.pushed.clear()


async def _topics_of_a_group(site: Site) -> None:
    """The latest heartbeat names the topics of a group; a later version replaces a subscription."""
    for group, notifies in (("g", True), ("quiet", False)):
        await make_group(site, group, notifyConsumerIdsChangedEnable=notifies)
        lines = [await site.client(f"{group} {number}") for number in range(2)]

        known = [False, False]
        for at, subscriptions, is_changed, shown in _BEATS:
            await beat(site, f"{group}@{at}", group, subscriptions, by=lines[at])
            known[at] = True
            notes = [int(is_changed and notifies and each) for each in known]
            await _hears(site, lines, f"{subscriptions} of {at} in {group}", notes)
            table = java_values.read(
                (await site.ask("GET_CONSUMER_CONNECTION_LIST", consumerGroup=group)).body
            )
            found = {
                name: (each["subString"], each["subVersion"])
                for name, each in table["subscriptionTable"].items()
            }
            site.compare(f"the subscriptions of {group}", shown, found)
        for line in lines:
            line.close()
        await asyncio.sleep(0.05)


async def _broadcasting(site: Site) -> None:
    """A group without broadcasts refuses the pulls of a member that wants them, and of no other."""
    line = await site.client("broadcasts")
    for model, is_enabled, code in (
        ("BROADCASTING", False, _FORBIDDEN), ("CLUSTERING", False, _NOT_FOUND),
        ("BROADCASTING", True, _NOT_FOUND), ("CLUSTERING", True, _NOT_FOUND),
    ):  # fmt: skip
        await make_group(site, "b", consumeBroadcastEnable=is_enabled)
        await beat(site, "b@1", "b", [subscription("t")], by=line, messageModel=model)
        await pull(site, "t", group="b", by=line, sysFlag=0, subscription=None, expects=code)
    line.close()
    await asyncio.sleep(0.05)


async def _reconnected(site: Site) -> None:
    """A client with two connections is one member; requests go to that with the latest heartbeat."""
    await make_group(site, "g")
    old, new, other = [await site.client(name) for name in ("old", "new", "other")]
    for by, name in ((old, "c@1"), (other, "c@2"), (new, "c@1")):
        await beat(site, name, "g", [subscription("t")], by=by)
        await asyncio.sleep(0.01)
    await _ids(site, "g", ["c@1", "c@2"])
    body = java_values.read((await site.ask("GET_CONSUMER_CONNECTION_LIST", consumerGroup="g")).body)
    addresses = sorted(each["clientAddr"] for each in body["connectionSet"])
    site.compare("the connections", sorted(each.address for each in (old, new, other)), addresses)
    for latest in (new, old, new):
        await beat(site, "c@1", "g", [subscription("t")], by=latest)
        await asyncio.sleep(0.01)
        await _asks(site, [old, new, other], latest)
    new.close()
    await asyncio.sleep(0.05)
    await _ids(site, "g", ["c@1", "c@2"])
    await _asks(site, [old, other], old)
    old.close()
    await asyncio.sleep(0.05)
    await _ids(site, "g", ["c@2"])
    await site.ask(
        "GET_CONSUMER_RUNNING_INFO", expects=1, consumerGroup="g", clientId="c@1", jstackEnable=False
    )
    other.close()
    await asyncio.sleep(0.05)


async def _ids(site: Site, group: str, expected: list[str]) -> None:
    answer = await site.ask("GET_CONSUMER_LIST_BY_GROUP", consumerGroup=group, expects=0 if expected else 1)
    found = java_values.read(answer.body)["consumerIdList"] if expected else []
    site.compare(f"the members of {group}", expected, found)


async def _asks(site: Site, lines: Sequence[RawClient], expected: RawClient) -> None:
    """Ask a member for its state; compare the connection that receives the request."""
    for line in lines:
        line.pushed.clear()
    fields = {"consumerGroup": "g", "clientId": "c@1", "jstackEnable": False}
    administrator = await site.client("administrator")
    waiting = administrator.put(
        CODES["GET_CONSUMER_RUNNING_INFO"], {key: written(each) for key, each in fields.items()}
    )
    await asyncio.sleep(0.05)
    heard = [[each.code for each in line.pushed] for line in lines]
    site.compare(
        "the connections that are asked", [[_INFO] if line is expected else [] for line in lines], heard
    )
    expected.reply(expected.pushed[-1], 0, b"{}")
    site.compare("the answer", 0, (await waiting).code)


async def _leaving(site: Site) -> None:
    """A client leaves the groups that it names, and no others; the remaining members are notified."""
    for group in ("g", "h"):
        await make_group(site, group)
    one, two = await site.client("one"), await site.client("two")
    for by, name in ((one, "one@1"), (two, "two@1")):
        for group in ("g", "h"):
            await beat(site, name, group, [subscription("t")], by=by, producers=("p", "q"))
    for line in (one, two):
        line.pushed.clear()
    cases: tuple[tuple[dict[str, Any], list[int]], ...] = (
        ({}, [0, 0]), ({"consumerGroup": "absent"}, [0, 0]), ({"producerGroup": "g"}, [0, 0]),
        ({"consumerGroup": "p"}, [0, 0]), ({"consumerGroup": "g"}, [0, 1]), ({"consumerGroup": "g"}, [0, 0]),
        ({"producerGroup": "p"}, [0, 0]),
    )  # fmt: skip
    for fields, notes in cases:
        await site.ask("UNREGISTER_CLIENT", by=one, clientID="one@1", **fields)
        await _hears(site, (one, two), f"{fields}", notes)
    await _ids(site, "g", ["two@1"])
    await _ids(site, "h", ["one@1", "two@1"])
    await _producer_ids(site, {"p": ["two@1"], "q": ["one@1", "two@1"]})
    await site.ask("UNREGISTER_CLIENT", by=one, clientID="one@1", consumerGroup="h", producerGroup="q")
    await _hears(site, (one, two), "the last departure", [0, 1])
    await _ids(site, "h", ["two@1"])
    await _producer_ids(site, {"p": ["two@1"], "q": ["two@1"]})
    two.close()
    await asyncio.sleep(0.05)
    for group in ("g", "h"):
        await _ids(site, group, [])
        await site.ask("GET_CONSUMER_CONNECTION_LIST", expects=_NOT_ONLINE, consumerGroup=group)
    await _producer_ids(site, {})


async def _producer_ids(site: Site, expected: Mapping[str, list[str]]) -> None:
    every = java_values.read((await site.ask("GET_ALL_PRODUCER_INFO")).body)["data"]
    found = {group: sorted(each["clientId"] for each in listed) for group, listed in every.items() if listed}
    site.compare("the producers", dict(expected), found)


async def _locks(site: Site) -> None:
    """A client unlocks what it holds; other queues of the request change nothing."""
    site.rule = chapters.QUEUE_LOCKS
    await make_topic(site, "locked", 3)
    for name, client, queues, held in (
        ("UNLOCK_BATCH_MQ", "one", [0], None), ("LOCK_BATCH_MQ", "one", [0, 1], [0, 1]),
        ("UNLOCK_BATCH_MQ", "one", [2, 0], None), ("UNLOCK_BATCH_MQ", "two", [1], None),
        ("LOCK_BATCH_MQ", "two", [0, 1, 2], [0, 2]), ("UNLOCK_BATCH_MQ", "one", [0, 1, 2], None),
        ("LOCK_BATCH_MQ", "one", [0, 1, 2], [1]), ("LOCK_BATCH_MQ", "two", [0, 1, 2, 3], [0, 2]),
    ):  # fmt: skip
        named = [{"topic": "locked", "brokerName": "broker-a", "queueId": queue} for queue in queues]
        body = {"consumerGroup": "g", "clientId": client, "mqSet": named}
        answer = await site.ask(name, body)
        if held is not None:
            found = [each["queueId"] for each in java_values.read(answer.body)["lockOKMQSet"]]
            site.compare(f"the queues that {client} holds", held, sorted(found))
    site.rule = chapters.CLIENT_REGISTRATION


async def _producers(site: Site) -> None:
    """Replies go to the producer's latest connection; checks go to the producers that read, in turn."""
    lines = [await site.client(f"producer {number}") for number in range(2)]
    lines.append(await RawClient(site.broker).open(site.cluster.internet.machine(HOST)))
    for by, name in zip(lines, ("one@1", "one@1", "two@1"), strict=True):
        await beat(site, name, "", [], producers=("p",), by=by)
    await _replied(site, "one@1", lines[1])
    await beat(site, "one@1", "", [], producers=("p",), by=lines[0])
    await _replied(site, "one@1", lines[0])
    await beat(site, "renamed@1", "", [], producers=("p",), by=lines[0])
    await _replied(site, "one@1", lines[1])
    await _replied(site, "renamed@1", lines[0])
    lines[1].close()
    await asyncio.sleep(0.05)
    await _replied(site, "one@1", None)
    await _both_kinds(site)
    lines = [lines[0], lines[2], await site.client("producer 4")]
    await beat(site, "three@1", "", [], producers=("p",), by=lines[2])
    for line in lines:
        line.pushed.clear()
    lines[1].stop_taking(1 << 20)
    of = {"TRAN_MSG": "true", "PGROUP": "p", "CHECK_IMMUNITY_TIME_IN_SECONDS": "0"}
    for number in range(4):
        await send(site, "t", f=4, of={**of, "UNIQ_KEY": f"{number}"})
    await asyncio.sleep(_ROUND_MS / 1000)
    counts = [sum(each.code == _CHECK for each in line.pushed) for line in lines]
    site.compare("the checks that each producer receives", [2, 0, 2], counts)
    lines[1].take_again()
    for line in lines:
        line.close()
    await asyncio.sleep(0.05)


async def _both_kinds(site: Site) -> None:
    """A client is a producer for replies until it leaves its last producer group."""
    line = await site.client("both")
    await beat(site, "both@1", "g", [subscription("t")], by=line, producers=("q", "r"))
    cases: tuple[tuple[dict[str, Any], bool], ...] = (
        ({"consumerGroup": "g"}, True), ({"producerGroup": "q"}, True), ({"producerGroup": "r"}, False),
    )  # fmt: skip
    for fields, receives in cases:
        await site.ask("UNREGISTER_CLIENT", by=line, clientID="both@1", **fields)
        await _replied(site, "both@1", line if receives else None)
    await beat(site, "both@1", "g", [subscription("t")], by=line, producers=("q",))
    await site.ask("UNREGISTER_CLIENT", by=line, clientID="both@1", producerGroup="q")
    await _replied(site, "both@1", None)
    line.close()
    await asyncio.sleep(0.05)


async def _replied(site: Site, client: str, expected: RawClient | None) -> None:
    """Send a reply to a client; compare the connection that receives it."""
    of = {"CORRELATION_ID": "c", "REPLY_TO_CLIENT": client}
    if expected is not None:
        expected.pushed.clear()
    waiting = asyncio.ensure_future(
        send(site, "DefaultCluster_REPLY_TOPIC", name="SEND_REPLY_MESSAGE_V2", of=of, expects=None)
    )
    await asyncio.sleep(0.05)
    if expected is not None:
        site.compare(f"what {client} receives", [_PUSHED], [each.code for each in expected.pushed])
        expected.reply(expected.pushed[-1])
    site.compare(f"the answer to a reply to {client}", int(expected is None), (await waiting).code)


async def _silent(site: Site) -> None:
    """The connection of a client that is silent for 120 s is closed, and no other."""
    await make_group(site, "g")
    await make_group(site, "h")
    kept, silent, producer, late = [await site.client(name) for name in ("kept", "silent", "sends", "late")]
    await beat(site, "silent@1", "g", [subscription("t")], by=silent)
    await beat(site, "sends@1", "", [], producers=("p",), by=producer)
    await beat(site, "late@1", "g", [subscription("t")], by=late)
    await beat(site, "late@1", "h", [subscription("t")], by=late)
    began_s = site.cluster.now_s
    ended: dict[str, float] = {}
    while site.cluster.now_s - began_s < _SILENT_S + 2 * _SCAN_S:
        if (site.cluster.now_s - began_s) % 30 < 1:
            await beat(site, "kept@1", "g", [subscription("t")], by=kept)
            await beat(site, "late@1", "h", [subscription("t")], by=late)
        await asyncio.sleep(1)
        for name, line in (("silent", silent), ("producer", producer), ("late", late), ("kept", kept)):
            if line.is_closed:
                ended.setdefault(name, site.cluster.now_s - began_s)
    for name in ("silent", "producer", "late"):
        after_s = ended.get(name, 0.0)
        site.compare(
            f"whether {name} ends in time: {after_s}", True, _SILENT_S < after_s <= _SILENT_S + _SCAN_S + 1
        )
    site.compare("whether a client with heartbeats is kept", False, "kept" in ended)
    await _ids(site, "g", ["kept@1"])
    kept.close()
    await asyncio.sleep(0.05)


async def _upkeep(site: Site) -> None:
    """An embedded broker says whether a client is missing, or a transaction is open."""
    broker = site.cluster.brokers[MASTER]
    site.compare("whether upkeep is awaited without clients", False, broker.awaits_upkeep())
    line = await site.client("may be missing")
    await beat(site, "missing@1", "g", [subscription("t")], by=line)
    site.compare("whether it is awaited with a client", False, broker.awaits_upkeep())
    before = broker.noticeable()
    site.compare("whether anything has changed", True, before == broker.noticeable())
    await asyncio.sleep(_MISSED_S + 1)
    site.compare("whether it is awaited with a silent client", True, broker.awaits_upkeep())
    await beat(site, "missing@1", "g", [subscription("u")], by=line)
    site.compare("whether a subscription is noticed", False, before == broker.noticeable())
    await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)
    site.compare("whether it is awaited after a heartbeat", False, broker.awaits_upkeep())
    line.close()
    await asyncio.sleep(0.05)
    half = {"TRAN_MSG": "true", "PGROUP": "q", "UNIQ_KEY": "open", "CHECK_IMMUNITY_TIME_IN_SECONDS": "9999"}
    await send(site, "t", f=4, of=half)
    site.compare("whether it is awaited with an open transaction", True, broker.awaits_upkeep())


async def _heard(site: Site) -> None:
    """A test that advances time counts all clients as heard: no connection ends for that time."""
    lines = [await site.client(name) for name in ("consumes", "produces", "asks")]
    await beat(site, "consumes@1", "g", [subscription("t")], by=lines[0])
    await beat(site, "produces@1", "", [], producers=("p",), by=lines[1])
    await site.ask("GET_MAX_OFFSET", by=lines[2], topic="t", queueId=0)
    for is_last in (False, False, True):
        await asyncio.sleep(_SILENT_S - _SCAN_S)
        site.compare("the connections that have ended", [False] * 3, [each.is_closed for each in lines])
        if not is_last:
            site.cluster.brokers[MASTER].count_clients_as_heard()
    await asyncio.sleep(3 * _SCAN_S)
    site.compare("the connections that have ended at last", [True] * 3, [each.is_closed for each in lines])


_ROUND_MS: Final = 5000
HEARTBEATS: Final = Inspection(
    "heartbeats", members, {"transaction_check_interval_ms": _ROUND_MS, "transaction_checks_max": 1000}
)

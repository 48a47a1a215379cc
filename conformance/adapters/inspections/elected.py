"""Brokers that elect their master: their offsets, topics and waiting messages when the leadership moves.

See docs/reference/protocol/dledger.md, "Broker of a DLedger group", and replication.md.
"""

import asyncio
from typing import Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import commit, make_group, make_topic, records, send
from mqproof.conformance.hosts.simulated import MEMBERS
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.network import Address

_COPIED_S: Final = 25
"""Longer than two copies of the master's tables."""
_TOPIC, _NEW, _GROUP = "t", "new", "g"
_PORT: Final = 10911
_RETRY: Final = "%RETRY%other"
_LEAST: Final = 4
_REFUSED, _NO_SLAVE = 14, 11


async def elected(site: Site) -> None:
    """Let n0, n1 and another member lead; compare what each of them shows."""
    site.rule = chapters.CONSUMER_OFFSETS
    await _led_by(site, "n0")
    await make_topic(site, _TOPIC, 2)
    await make_group(site, _GROUP)
    await commit(site, _GROUP, _TOPIC, 0, 5)
    await commit(site, _GROUP, _TOPIC, 1, 1)
    await _offsets(site, "of the first master", {"0": 5, "1": 1})
    await _led_by(site, "n1")
    await commit(site, _GROUP, _TOPIC, 0, 2)
    await _offsets(site, "after a reset at the second master", {"0": 2, "1": 1})
    await _led_by(site, "n0")
    await _offsets(site, "of the first master again", {"0": 2, "1": 1})
    await _led_by(site, "n1")
    await _commit_at(site, "n2", 4)
    await _offsets(site, "after a commit at a slave", {"0": 4, "1": 1})
    await commit(site, _GROUP, _TOPIC, 0, 3)
    await _offsets(site, "after a reset of what a slave had sent", {"0": 3, "1": 1})
    await _changed_and_killed(site)


async def _led_by(site: Site, node: str) -> None:
    """Transfer the leadership to the member; from now on, requests go there."""
    cluster = site.cluster
    while (master := cluster.master) != node:
        if master is not None:
            await cluster.group_store(master).node.transfer_leadership(node)
        await asyncio.sleep(0.5)
    await _found(site)
    await _registered(site)


async def _found(site: Site) -> None:
    """Send further requests to the master; wait until it serves."""
    while (master := site.cluster.master) is None:
        await asyncio.sleep(0.5)
    site.broker = _address(site, master)
    await asyncio.sleep(2)


async def _registered(site: Site) -> None:
    """The name servers know the new master at once."""
    for to in site.cluster.names:
        body = (await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic="SELF_TEST_TOPIC")).body
        (broker,) = java_values.read(body)["brokerDatas"]
        found = {str(id_): address for id_, address in broker["brokerAddrs"].items()}
        site.compare("the master of a route", str(site.broker), found.get("0"))


def _address(site: Site, node: str) -> Address:
    return Address(site.cluster.machines[node].host, _PORT)


async def _commit_at(site: Site, node: str, offset: int) -> None:
    await site.ask(
        "UPDATE_CONSUMER_OFFSET", to=_address(site, node), consumerGroup=_GROUP, topic=_TOPIC, queueId=0,
        commitOffset=offset,
    )  # fmt: skip


async def _offsets(site: Site, what: str, expected: dict[str, int]) -> None:
    """Compare the offsets at each member after the copies of the tables."""
    await asyncio.sleep(_COPIED_S)
    for node in MEMBERS:
        body = (await site.ask("GET_ALL_CONSUMER_OFFSET", to=_address(site, node))).body
        found = java_values.read(body)["offsetTable"].get(f"{_TOPIC}@{_GROUP}", {})
        shown = {str(queue): offset for queue, offset in found.items()}
        site.compare(f"the offsets at {node} {what}", expected, shown)


async def _changed_and_killed(site: Site) -> None:
    """Kill a master right after changes: the next one has the topics of the log, and what waits."""
    site.rule = chapters.TOPICS
    await make_topic(site, _TOPIC, 5)
    await make_topic(site, _NEW, 3)
    await send(site, _TOPIC, "in a new queue", 4)
    await send(site, _NEW, "in a new topic", 2)
    await send(site, _RETRY, "in a retry topic")
    await send(site, _TOPIC, "delayed", of={"DELAY": "2"})
    await send(site, _TOPIC, "timed", of={"TIMER_DELAY_SEC": "8", "UNIQ_KEY": "timed"})
    former = site.cluster.master
    assert former is not None
    site.cluster.kill(former)
    await asyncio.sleep(1)
    await _found(site)
    for topic, expected in ((_TOPIC, (5, 2)), (_NEW, (_LEAST, _LEAST)), (_RETRY, (1, 1))):
        made = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic=topic)).body)
        site.compare(f"the queues of {topic}", expected, (made["readQueueNums"], made["writeQueueNums"]))
        site.compare(f"the permission of {topic}", 6, made["perm"])
    await asyncio.sleep(15)
    for topic, queue, bodies in (
        (_RETRY, 0, [b"in a retry topic"]),
        (_TOPIC, 4, [b"in a new queue"]), (_NEW, 2, [b"in a new topic"]), (_TOPIC, 0, [b"delayed", b"timed"]),
    ):  # fmt: skip
        found = sorted(each.body for each in await records(site, topic, 0, queue))
        site.compare(f"the messages of queue {queue} of {topic}", bodies, found)
    await _returned(site, former)


async def _returned(site: Site, former: str) -> None:
    """A former master that returns is a slave: it refuses what only a master does."""
    await site.cluster.start(former)
    await asyncio.sleep(_COPIED_S)
    own = await site.client(to=_address(site, former))
    await site.ask(
        "RECALL_MESSAGE", by=own, expects=_REFUSED, producerGroup="p", topic=_TOPIC, recallHandle="x"
    )
    await site.ask(
        "END_TRANSACTION", by=own, expects=_NO_SLAVE, producerGroup="p", tranStateTableOffset=0,
        commitLogOffset=0, commitOrRollback=8, msgId="x", transactionId="x", fromTransactionCheck=False,
    )  # fmt: skip
    await _registered(site)
    tables = [
        java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG", to=_address(site, node))).body)
        for node in MEMBERS
    ]
    for node, table in zip(MEMBERS, tables, strict=True):
        names = {
            name: table["topicConfigTable"].get(name, {}).get("readQueueNums") for name in (_TOPIC, _NEW)
        }
        site.compare(f"the topics at {node}", {_TOPIC: 5, _NEW: _LEAST}, names)


ELECTED: Final = Inspection("elected master", elected, {"default_topic_queues": _LEAST}, elected=True)

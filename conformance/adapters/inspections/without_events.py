"""Brokers without an event log, as most run: whatever records an event otherwise works as with one.

See docs/reference/protocol/event-log.md.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    records,
    send,
    subscription,
)
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.hosts import simulated
from mqproof.conformance.hosts.simulated import MASTER, MEMBERS, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address

_TOPIC, _GROUP = "t", "g"
_HALF: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
_COMMIT, _ROLLBACK = 8, 12
_ROUND_S: Final = 5
_SYNCED_S: Final = 12
_DUE_S: Final = 5
_LED_S: Final = 30


@contextmanager
def _unrecorded() -> Iterator[None]:
    """Start brokers without an event log meanwhile."""
    with mock.patch.object(simulated, "EventLog", return_value=None):
        yield


async def without_events(site: Site) -> None:
    site.rule = chapters.SEND_REQUESTS
    with _unrecorded():
        await site.restart()
        await make_topic(site, _TOPIC, 2)
        for group in (_GROUP, "h"):
            await make_group(site, group)
        await _members(site)
        await _messages(site)
        await _offsets(site)
        await _transactions(site)
        await _sent_back(site)
        await _waits(site)
        await site.restart(killed=True)
        await _deletions(site)
        await site.restart()


async def _members(site: Site) -> None:
    line = await site.client("member")
    for topics in ((_TOPIC,), (_TOPIC, "u"), ("u",), (_TOPIC,)):
        await beat(site, "m@1", _GROUP, [subscription(each) for each in topics], by=line)
    await site.ask("UNREGISTER_CLIENT", by=line, clientID="m@1", consumerGroup=_GROUP)
    await beat(site, "m@1", _GROUP, [subscription(_TOPIC)], by=line)
    line.close()
    await asyncio.sleep(0.1)
    await site.ask("GET_CONSUMER_LIST_BY_GROUP", expects=1, consumerGroup=_GROUP)


async def _messages(site: Site) -> None:
    await send(site, _TOPIC, "one")
    await send(site, _TOPIC, batch([(b"two", 0, {}), (b"three", 0, {})]), name="SEND_BATCH_MESSAGE")
    await send(site, "unknown", expects=17, c="absent")
    await pull(site, _TOPIC, 0)
    site.compare("the messages", [b"one", b"two", b"three"], [each.body for each in queue_of(site, _TOPIC)])


async def _offsets(site: Site) -> None:
    for offset in (1, 3, 0, 2):
        await commit(site, _GROUP, _TOPIC, 0, offset)
    at_ms = site.now_ms + 1000
    asked: dict[str, Any] = {"topic": _TOPIC, "group": _GROUP, "timestamp": at_ms, "isForce": True}
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **asked, expects=None)
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **asked, queueId=0, offset=1, expects=None)
    await site.ask("CLONE_GROUP_OFFSET", srcGroup=_GROUP, destGroup="h", topic=_TOPIC, offline=False)
    for group in (_GROUP, "h"):
        answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup=group, topic=_TOPIC, queueId=0)
        site.compare(f"the offset of {group}", "1", answer.fields.get("offset"))


async def _transactions(site: Site) -> None:
    """One is committed, one rolled back, and one is checked and discarded."""
    for number, flag in enumerate((_COMMIT, _ROLLBACK, 0)):
        half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": f"{number}"}
        await send(site, _TOPIC, f"half {number}", 1, f=4, of=half)
        stored = queue_of(site, _HALF)[-1]
        if flag:
            await site.ask(
                "END_TRANSACTION", producerGroup="p", tranStateTableOffset=stored.queue_offset,
                commitLogOffset=stored.commit_offset, commitOrRollback=flag, msgId=f"{number}",
                transactionId=f"{number}", fromTransactionCheck=False,
            )  # fmt: skip
    await asyncio.sleep(4 * _ROUND_S)
    site.compare("the committed messages", [b"half 0"], [each.body for each in queue_of(site, _TOPIC, 1)])
    discarded = [each.body for each in queue_of(site, "TRANS_CHECK_MAX_TIME_TOPIC")]
    site.compare("the discarded messages", [b"half 2"], discarded)


async def _sent_back(site: Site) -> None:
    for level in (0, -1):
        await site.ask(
            "CONSUMER_SEND_MSG_BACK", offset=log_of(site)[0].commit_offset, group=_GROUP, delayLevel=level,
            originMsgId="m", originTopic=_TOPIC, unitMode=False,
        )  # fmt: skip
    await asyncio.sleep(12)
    for topic in (f"%RETRY%{_GROUP}", f"%DLQ%{_GROUP}"):
        site.compare(f"the messages of {topic}", [b"one"], [each.body for each in queue_of(site, topic)])


async def _waits(site: Site) -> None:
    before = len(queue_of(site, _TOPIC))
    await send(site, _TOPIC, "delayed", of={"DELAY": "1"})
    await send(site, _TOPIC, "timer", of={"TIMER_DELAY_SEC": "2"})
    answer = await send(site, _TOPIC, "recalled", of={"TIMER_DELAY_SEC": "2", "UNIQ_KEY": "r"})
    handle = answer.fields["recallHandle"]
    await site.ask("RECALL_MESSAGE", producerGroup="p", topic=_TOPIC, recallHandle=handle)
    await asyncio.sleep(3)
    found = [each.body for each in queue_of(site, _TOPIC)[before:]]
    site.compare("the messages that waited", [b"delayed", b"timer"], found)


async def _deletions(site: Site) -> None:
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="h", cleanOffset=True)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic=_TOPIC)
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=6")
    await make_topic(site, _TOPIC)
    await send(site, _TOPIC, "again")
    answer = await site.ask("GET_MAX_OFFSET", topic=_TOPIC, queueId=0)
    site.compare("the offset after a deletion", "1", answer.fields.get("offset"))


async def pair_without_events(site: Site) -> None:
    """A slave joins and leaves its master, and receives its messages."""
    site.rule = chapters.SEND_REQUESTS
    with _unrecorded():
        for node in (SLAVE, MASTER):
            site.cluster.kill(node)
        for node in (MASTER, SLAVE):
            await site.cluster.start(node)
        await asyncio.sleep(_SYNCED_S)
        await make_topic(site, _TOPIC)
        await send(site, _TOPIC, "one")
        site.compare("the messages of the slave", [b"one"], _at_slave(site))
        await site.cluster.stop(SLAVE)
        await send(site, _TOPIC, "two", expects=None)
        await site.cluster.start(SLAVE)
        await asyncio.sleep(_SYNCED_S)
        await send(site, _TOPIC, "three")
        site.compare("the messages of the slave", [b"one", b"two", b"three"], _at_slave(site))
        site.cluster.kill(MASTER)
        await site.cluster.start(MASTER)
        await asyncio.sleep(_SYNCED_S)
        table = java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"]
        site.compare("whether the topic is kept", True, _TOPIC in table)


def _at_slave(site: Site) -> list[bytes]:
    return [each.body for each in log_of(site, SLAVE) if each.topic == _TOPIC]


async def group_without_events(site: Site) -> None:
    """A leader that loses its quorum while messages become due delivers them, or its successor does."""
    site.rule = chapters.DELAYED_MESSAGES
    cluster = site.cluster
    with _unrecorded():
        for node in MEMBERS:
            cluster.kill(node)
        for node in MEMBERS:
            await cluster.start(node)
        leader = await _leader(site)
        await make_topic(site, _TOPIC)
        for of in ({"DELAY": "2"}, {"TIMER_DELAY_SEC": "5"}):
            await send(site, _TOPIC, f"{of}", of=of)
        await asyncio.sleep(_DUE_S - 1)
        others = [node for node in MEMBERS if node != leader]
        for node in others:
            cluster.internet.cut(cluster.links(leader, node))
        await asyncio.sleep(_DUE_S)
        cluster.internet.heal()
        await _leader(site)
        await asyncio.sleep(_SYNCED_S)
        found = {each.body.decode() for each in await records(site, _TOPIC)}
        site.compare("the messages", {"{'DELAY': '2'}", "{'TIMER_DELAY_SEC': '5'}"}, found)
    # Each member stores messages under its own address, and a message may be there twice.
    site.watch.wrong = [each for each in site.watch.wrong if "an inspection" in each.text]


async def _leader(site: Site) -> str:
    """Wait until a member leads; send further requests to it."""
    for _ in range(_LED_S):
        await asyncio.sleep(1)
        for node in MEMBERS:
            if site.cluster.group_store(node).leads:
                site.broker = Address(site.cluster.machines[node].host, site.broker.port)
                await asyncio.sleep(_SYNCED_S)
                return node
    raise TargetError(f"no member leads after {_LED_S} s")


WITHOUT_EVENTS: Final = Inspection(
    "no event log", without_events,
    {
        "transaction_check_interval_ms": _ROUND_S * 1000, "transaction_timeout_ms": 1000,
        "transaction_checks_max": 1,
    },
)  # fmt: skip
PAIR_WITHOUT_EVENTS: Final = Inspection(
    "pair without event logs", pair_without_events, replication=ReplicationConfig(Role.SYNC_MASTER)
)
GROUP_WITHOUT_EVENTS: Final = Inspection("group without event logs", group_without_events, elected=True)

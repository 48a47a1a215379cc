"""A slave: its copies of the master's tables and messages, what it commits itself, and what it refuses.

See docs/reference/protocol/replication.md and administration.md, "Replication of a broker".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address

_TABLES: Final = {
    "GET_ALL_TOPIC_CONFIG": "topicConfigTable",
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG": "subscriptionGroupTable",
    "GET_ALL_CONSUMER_OFFSET": "offsetTable",
    "GET_ALL_DELAY_OFFSET": "offsetTable",
}
_COPIED_S: Final = 25
"""Longer than two pauses between copies of the tables."""
_FOREVER: Final = 1 << 40


async def slave(site: Site) -> None:
    """Compare every table and message of the slave after changes at the master, and at the slave."""
    site.rule = chapters.CONSUMER_OFFSETS
    at = Address(site.cluster.machines[SLAVE].host, site.broker.port)
    await asyncio.sleep(2)
    await make_topic(site, "t", 2)
    await make_topic(site, "gone", perm=4)
    for group in ("g", "h", "gone"):
        await make_group(site, group, retryMaxTimes=len(group) + 1)
    for number in range(6):
        await send(site, "t", f"{number}", number % 2, of={"a": str(number), "TAGS": f"tag{number % 3}"})
    await send(site, "t", "later", of={"DELAY": "1"})
    await commit(site, "g", "t", 0, 2)
    await commit(site, "g", "t", 1, 1)
    line = await site.client("member")
    await beat(site, "member@1", "g", [subscription("t", "a > 2", 7, "SQL92")], by=line)
    await asyncio.sleep(_COPIED_S)
    before = await _same_tables(site, at)
    site.compare("the topics at both", True, {"t", "gone"} <= before["GET_ALL_TOPIC_CONFIG"].keys())
    site.compare("the groups at both", True, {"g", "h"} <= before["GET_ALL_SUBSCRIPTIONGROUP_CONFIG"].keys())
    site.compare("the offsets at both", {"0": 2, "1": 1}, before["GET_ALL_CONSUMER_OFFSET"].get("t@g"))
    await _same_messages(site, at)
    await _ha_status(site, at)
    await _filtered(site, at)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="gone")
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="gone")
    await make_topic(site, "t", 2, perm=4)
    await commit(site, "g", "t", 1, 0)
    await asyncio.sleep(_COPIED_S)
    after = await _same_tables(site, at)
    site.compare("whether a deleted topic is gone", False, "gone" in after["GET_ALL_TOPIC_CONFIG"])
    site.compare("the offsets after a commit", {"0": 2, "1": 0}, after["GET_ALL_CONSUMER_OFFSET"].get("t@g"))
    await _own_commits(site, at)
    await _refused(site, at)
    await _alone(site, at)


async def _table(site: Site, name: str, to: Address) -> dict[str, Any]:
    body = java_values.read((await site.ask(name, to=to)).body)
    return {
        str(key): {str(each): value for each, value in row.items()} if isinstance(row, dict) else row
        for key, row in body[_TABLES[name]].items()
    }


async def _same_tables(site: Site, at: Address) -> dict[str, dict[str, Any]]:
    found = {}
    for name in _TABLES:
        found[name], copied = await _table(site, name, site.broker), await _table(site, name, at)
        for key in found[name].keys() | copied.keys():
            site.compare(f"{key} of {name} at the slave", found[name].get(key), copied.get(key))
    return found


async def _raw(site: Site, to: Address, queue: int, **more: Any) -> list[bytes]:
    answer = await pull(site, "t", 0, queue, expects=None, by=await site.client(to=to), **more)
    return [each.raw for each in read_records(answer.body)] if not answer.code else []


async def _same_messages(site: Site, at: Address) -> None:
    for queue in (0, 1):
        stored, copied = await _raw(site, site.broker, queue), await _raw(site, at, queue)
        site.compare(f"the messages of queue {queue}", 4 - queue, len(stored))
        site.compare(f"the copies of queue {queue}", stored, copied)
    for name in ("GET_MAX_OFFSET", "GET_MIN_OFFSET"):
        for to in (site.broker, at):
            answer = await site.ask(name, to=to, topic="t", queueId=0)
            site.compare(name, "4" if "MAX" in name else "0", answer.fields.get("offset"))


async def _ha_status(site: Site, at: Address) -> None:
    """The master shows its slave, and the slave its master."""
    end = int(
        java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]["commitLogMaxOffset"]
    )
    shown = java_values.read((await site.ask("GET_BROKER_HA_STATUS")).body)
    site.compare("the state of the master", (True, end, 1), (
        shown["master"], shown["masterCommitLogMaxOffset"], shown["inSyncSlaveNums"]))  # fmt: skip
    (connection,) = shown["haConnectionInfo"]
    site.compare(
        "the slave at the master", (at.host, end, 0, True, end),
        (connection["addr"].rpartition(":")[0], connection["slaveAckOffset"], connection["diff"],
         connection["inSync"], connection["transferFromWhere"]),
    )  # fmt: skip
    shown = java_values.read((await site.ask("GET_BROKER_HA_STATUS", to=at)).body)
    client = shown["haClientRuntimeInfo"]
    site.compare("the state of the slave", (False, end, True), (
        shown["master"], client["maxOffset"], client["activated"]))  # fmt: skip
    site.compare("its master", site.broker.host, client["masterAddr"].rpartition(":")[0])
    for name in ("lastReadTimestamp", "lastWriteTimestamp"):
        site.compare(f"whether {name} is recent", True, 0 <= site.now_ms - client[name] < 30_000)


async def _filtered(site: Site, at: Address) -> None:
    """The slave selects by the expression that a member registered at the master, not by an older one."""
    older = subscription("t", "a > 100", 5, "SQL92")
    await beat(site, "member@1", "g", [older], by=await site.client("member", to=at))
    by_expression: dict[str, Any] = {"sysFlag": 0, "subscription": None, "expressionType": "SQL92"}
    for to in (site.broker, at):
        found = await _raw(site, to, 0, subVersion=5, **by_expression)
        site.compare(f"the selected messages at {to}", 1, len(found))
    for kind, text, count in (("SQL92", "a < 3", 2), ("TAG", "tag1", 1), ("TAG", "*", 4)):
        found = await _raw(site, at, 0, subscription=text, expressionType=kind)
        site.compare(f"the messages that {text} selects at the slave", count, len(found))


async def _own_commits(site: Site, at: Address) -> None:
    """The master receives an offset that is committed at the slave, if it is ahead of its own."""
    slave = await site.client(to=at)
    for offset, expected in ((3, 3), (1, 3)):
        await site.ask(
            "UPDATE_CONSUMER_OFFSET", by=slave, consumerGroup="g", topic="t", queueId=0, commitOffset=offset
        )
        await asyncio.sleep(_COPIED_S)
        shown = await _table(site, "GET_ALL_CONSUMER_OFFSET", site.broker)
        site.compare(f"the master's offset after {offset} at the slave", expected, shown["t@g"].get("0"))


async def _refused(site: Site, at: Address) -> None:
    """A slave accepts no messages, locks no queues, and recalls nothing."""
    own = await site.client(to=at)
    for name, body, fields in _CHANGES:
        await site.ask(name, body, by=own, expects=14, **fields)


_CHANGES: Final[tuple[tuple[str, Any, dict[str, Any]], ...]] = (
    (
        "SEND_MESSAGE_V2", b"m",
        {"a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 0, "h": 0, "i": "", "j": 0,
         "k": False, "m": False},
    ),
    ("LOCK_BATCH_MQ", {"consumerGroup": "g", "clientId": "c",
                       "mqSet": [{"topic": "t", "brokerName": "broker-a", "queueId": 0}]}, {}),
    ("RECALL_MESSAGE", b"", {"producerGroup": "p", "topic": "t", "recallHandle": "x"}),
)  # fmt: skip


async def _alone(site: Site, at: Address) -> None:
    """Without the master, and after its own restart, the slave still has everything."""
    tables = {name: await _table(site, name, at) for name in _TABLES}
    messages = [await _raw(site, at, queue) for queue in (0, 1)]
    await site.cluster.stop(MASTER)
    await site.cluster.stop(SLAVE)
    await site.cluster.start(SLAVE)
    await asyncio.sleep(1)
    for name, rows in tables.items():
        site.compare(f"{name} at the slave alone", rows, await _table(site, name, at))
    site.compare("the messages at the slave alone", messages, [await _raw(site, at, each) for each in (0, 1)])
    body = java_values.read((await site.ask("GET_ROUTEINFO_BY_TOPIC", to=site.name_server, topic="t")).body)
    addresses = [{str(key): each for key, each in one["brokerAddrs"].items()} for one in body["brokerDatas"]]
    site.compare("the route to the slave alone", [{"1": str(at)}], addresses)


SLAVE_COPIES: Final = Inspection("slave", slave, {"property_filter": True},
    replication=ReplicationConfig(Role.ASYNC_MASTER))  # fmt: skip

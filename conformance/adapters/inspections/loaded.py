"""A broker at its limits: sends that wait for a slow disk, full tables, consumers far behind, and a stop.

See docs/reference/protocol/sending.md, "Flow control", pulling.md, and administration.md.
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import Answer
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    records,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.disk import Space
from mqproof.impl.store.config import FlushMode

_BUSY: Final = 2


async def flow_control(site: Site) -> None:
    """While the disk is silent, refuse a third send, too many bytes, and any send after a second."""
    site.rule = chapters.SEND_REQUESTS
    await make_topic(site, "t")
    machine = site.cluster.machines[MASTER]
    await send(site, "t", "0")

    async def put(size: int, name: str) -> Answer:
        line = await site.client(name)
        fields: dict[str, Any] = {
            "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0, "i": "",
            "j": 0, "k": False, "m": False,
        }  # fmt: skip
        texts = {key: written(value) for key, value in fields.items()}
        return line.put(CODES["SEND_MESSAGE_V2"], texts, b"x" * size)

    async def shows(count: int, oldest_ms: int) -> None:
        table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
        site.compare("the waiting sends", str(count), table["sendThreadPoolQueueSize"])
        waited = int(table["sendThreadPoolQueueHeadWaitTimeMills"])
        site.compare(f"whether the oldest waits for {oldest_ms} ms: {waited}", True,
                     abs(waited - oldest_ms) <= 100)  # fmt: skip

    for sizes, text in (
        ((10, 20, 30), "[OVERLOAD]"),
        ((10, 991), "[OVERLOAD]"),
        ((10, 990), ""),
        ((10,), ""),
    ):
        machine.fsync.hold()
        waiting = [await put(size, f"sender {number}") for number, size in enumerate(sizes)]
        await asyncio.sleep(0.5)
        done = [each for each in waiting if each.done()]
        site.compare(f"the refused sends of {sizes}", 1 if text else 0, len(done))
        for each in done:
            site.compare("the refusal", (_BUSY, True), (
                each.result().code, (each.result().remark or "").startswith(text)))  # fmt: skip
        await shows(len(waiting) - len(done), 500)
        if len(sizes) == 1:
            await asyncio.sleep(0.6)
            late = await (await put(1, "late"))
            site.compare("a send behind one that waits", (_BUSY, True), (
                late.code, (late.remark or "").startswith("[PCBUSY_CLEAN_QUEUE]")))  # fmt: skip
        machine.fsync.release()
        codes = [(await each).code for each in waiting if each not in done]
        site.compare("the sends that waited", [0] * len(codes), codes)
        await asyncio.sleep(1)
        await shows(0, 0)
    site.compare("the messages", 1 + 2 + 1 + 2 + 1, len(await records(site, "t")))
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    longest = int(table["putMessageEntireTimeMax"])
    site.compare(f"whether the longest send took over a second: {longest}", True, 1000 < longest < 1300)
    steps = dict(each.rpartition(":")[::2] for each in table["putMessageDistributeTime"].split(" "))
    site.compare("the sends by time", 7, sum(map(int, steps.values())))


async def full_tables(site: Site) -> None:
    """Create one entry more than each table holds; those that exist can still be changed."""
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    count = len(java_values.read((await site.ask("GET_ALL_TOPIC_CONFIG")).body)["topicConfigTable"])
    for number in range(_TOPICS - count):
        await make_topic(site, f"t{number}")
    await make_topic(site, "more", expects=_BUSY)
    await send(site, "more", expects=_BUSY)
    await make_topic(site, "t0", 3)
    await site.ask("DELETE_TOPIC_IN_BROKER", topic="t1")
    await make_topic(site, "more")
    for number in range(_GROUPS):
        await make_group(site, f"g{number}")
    await make_group(site, "more", expects=_BUSY)
    await make_group(site, "g0", consumeEnable=False)
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="g1")
    await make_group(site, "more")
    for number in range(_PAIRS):
        await commit(site, f"g{number * 2}", "t0", 0, 0)
    await commit(site, "more", "t0", 0, 0, expects=1)
    await commit(site, "g0", "t0", 1, 0)
    table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["offsetTable"]
    expected = {"t0@g0": {"0": 0, "1": 0}, "t0@g2": {"0": 0}}
    shown = {key: {str(queue): at for queue, at in each.items()} for key, each in table.items()}
    site.compare("the committed offsets", expected, {
        key: each for key, each in shown.items() if key.startswith("t0@")})  # fmt: skip
    await _waiting_messages(site)


async def _waiting_messages(site: Site) -> None:
    site.rule = chapters.TIMERS
    await send(site, "t0", of={"TIMER_DELAY_SEC": "100"})
    await asyncio.sleep(2)
    await send(site, "t0", of={"TIMER_DELAY_SEC": "100"}, expects=_BUSY)
    half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "k"}
    await send(site, "t0", f=4, of=half)
    await send(site, "t0", f=4, of=half, expects=_BUSY)
    await send(site, "t0")
    answer = await pull(site, "t0", group="g2")
    site.compare("the messages", 1, len(list(read_records(answer.body))))


async def full_disk(site: Site) -> None:
    """While the disk is nearly full, nothing is stored, and everything is served; then all is as before."""
    site.rule = chapters.SEND_REQUESTS
    await make_topic(site, "t")
    await make_group(site, "g")
    await send(site, "t", "before")
    later = await send(site, "t", "later", of={"TIMER_DELAY_SEC": "3600", "UNIQ_KEY": "k"})
    half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "h"}
    kept = await send(site, "t", "half", f=4, of=half)
    place = int(kept.fields["msgId"][-16:], 16)
    disk, room = site.cluster.machines[MASTER].disk, site.cluster.machines[MASTER].disk.room
    reply = {"CORRELATION_ID": "c", "REPLY_TO_CLIENT": "absent"}
    end: dict[str, Any] = {
        "producerGroup": "p", "tranStateTableOffset": kept.fields["queueOffset"], "commitLogOffset": place,
        "commitOrRollback": 8, "msgId": "h", "transactionId": "h", "fromTransactionCheck": False,
    }  # fmt: skip
    for is_full in (True, False):
        disk.room = Space(room.total_bytes, 1) if is_full else room
        await asyncio.sleep(30)
        code = 14 if is_full else 0
        await send(site, "t", "now", expects=code)
        await send(site, "t", "half", f=4, of={**half, "UNIQ_KEY": f"h{is_full}"}, expects=code)
        await send(site, "t", of={"DELAY": "1"}, expects=code)
        await send(site, "t", of={"TIMER_DELAY_SEC": "1"}, expects=code)
        answer = await send(
            site, "DefaultCluster_REPLY_TOPIC", name="SEND_REPLY_MESSAGE_V2", of=reply, expects=1
        )
        site.compare("whether the reply is stored", not is_full, answer.fields.get("msgId") != "0")
        site.compare("the offset of the reply", "0", answer.fields.get("queueOffset"))
        await site.ask(
            "CONSUMER_SEND_MSG_BACK", expects=1 if is_full else 0, offset=0, group="g", delayLevel=1,
            originMsgId="m", originTopic="t", unitMode=False, maxReconsumeTimes=16,
        )  # fmt: skip
        await site.ask("END_TRANSACTION", expects=code, **end)
        handle = later.fields.get("recallHandle")
        await site.ask("RECALL_MESSAGE", expects=code, producerGroup="p", topic="t", recallHandle=handle)
        await asyncio.sleep(5)
        found = [each.body for each in await records(site, "t")]
        expected = [b"before"] if is_full else [b"before", b"half", b"m", b"m", b"now"]
        site.compare("the messages", expected, sorted(found))
        await commit(site, "g", "t", 0, 1)
        await make_topic(site, f"made {is_full}".replace(" ", "_"))
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    site.compare("the sends that failed", True, int(table["putMessageFailedTimes"]) > 0)


async def far_behind(site: Site) -> None:
    """Consumers of old messages receive fewer at once, and are sent to the slave that their group names."""
    site.rule = chapters.PULL_REQUESTS
    site.cluster.machines[MASTER].memory_bytes = 10_000
    await site.restart()
    await make_topic(site, "t")
    await make_group(site, "g", brokerId=0, whichBrokerWhenConsumeSlowly=3)
    for number in range(20):
        await send(site, "t", f"{number:02}" * 250, of={"TAGS": f"tag{number % 2}"})
    for is_readable, offset, count, suggested in (
        (False, 0, 8, "0"), (True, 0, 8, "3"), (True, 19, 1, "0"), (True, 12, 8, "3"),
        (True, 15, 5, "0"), (False, 12, 8, "0"),
    ):  # fmt: skip
        await site.ask("UPDATE_BROKER_CONFIG", f"slaveReadEnable={written(is_readable)}")
        answer = await pull(site, "t", offset)
        site.compare(f"the messages from {offset}", count, len(list(read_records(answer.body))))
        site.watch.wrong = [each for each in site.watch.wrong if "slaveReadEnable is off" not in each.text]
        site.compare(f"the broker for {offset}", suggested, answer.fields.get("suggestWhichBrokerId"))
    await site.ask("UPDATE_BROKER_CONFIG", "slaveReadEnable=false\nmaxTransferBytesOnMessageInDisk=1300")
    for offset, fields, count in (
        (0, {}, 1), (0, {"maxMsgBytes": 1}, 1), (14, {"maxMsgBytes": 1300}, 1), (14, {"maxMsgBytes": 1}, 1),
        (14, {"maxMsgBytes": 3000, "subscription": "tag0"}, 3), (14, {"subscription": "tag1"}, 3),
        (14, {"maxMsgBytes": 1300, "subscription": "tag1"}, 1), (14, {}, 6),
    ):  # fmt: skip
        given: dict[str, Any] = fields
        answer = await pull(site, "t", offset, **given)
        site.compare(f"the messages from {offset} with {fields}", count, len(list(read_records(answer.body))))


async def stops(site: Site) -> None:
    """A broker that stops is unregistered at once, and answers the pulls that it holds."""
    site.rule = chapters.NAME_SERVER
    await make_topic(site, "t")
    await make_group(site, "g")
    line = await site.client("member")
    await beat(site, "member@1", "g", [subscription("t", "a > 1", 1, "SQL92")], by=line)
    fields: dict[str, Any] = {
        "consumerGroup": "g", "topic": "t", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 2,
        "commitOffset": 0, "suspendTimeoutMillis": 15_000, "subVersion": 0, "subscription": "*",
        "expressionType": "TAG",
    }  # fmt: skip
    at_once = await pull(site, "t", sysFlag=4, suspendTimeoutMillis=15_000, expects=19)
    site.compare("the next offset", "0", at_once.fields.get("nextBeginOffset"))
    held = line.put(CODES["PULL_MESSAGE"], {key: written(value) for key, value in fields.items()})
    await asyncio.sleep(1)
    site.compare("whether the pull waits", False, held.done())
    for to in site.cluster.names:
        await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic="t")
    await site.cluster.stop(MASTER)
    site.compare("whether the held pull is answered", True, held.done() and not held.exception())
    for to in site.cluster.names:
        await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic="t", expects=17)
        body = java_values.read((await site.ask("GET_BROKER_CLUSTER_INFO", to=to)).body)
        site.compare("the brokers after the stop", {}, body["brokerAddrTable"])
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)
    before = await _versions(site)
    await asyncio.sleep(40)
    site.compare("the versions of tables that do not change", before, await _versions(site))
    await make_group(site, "h")
    await commit(site, "h", "t", 0, 0)
    await asyncio.sleep(10)
    after = await _versions(site)
    site.compare("the tables that have changed", [False, True, True],
                 [one < other for one, other in zip(before, after, strict=True)])  # fmt: skip


async def _versions(site: Site) -> list[int]:
    """Return the versions of the tables of topics, groups and offsets."""
    names = ("GET_ALL_TOPIC_CONFIG", "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", "GET_ALL_CONSUMER_OFFSET")
    bodies = [java_values.read((await site.ask(name)).body) for name in names]
    return [int(body["dataVersion"]["counter"]) for body in bodies]


_TOPICS, _GROUPS, _PAIRS = 12, 3, 2
FLOW_CONTROL: Final = Inspection(
    "flow control", flow_control, {"sends_max": 2, "sends_bytes_max": 1000}, flush=FlushMode.SYNC_FLUSH
)
FULL_TABLES: Final = Inspection(
    "full tables", full_tables,
    {"topics_max": _TOPICS, "groups_max": _GROUPS, "offset_pairs_max": _PAIRS, "timers_waiting_max": 1,
     "transactions_open_max": 1},
)  # fmt: skip
FAR_BEHIND: Final = Inspection("far behind", far_behind)
FULL_DISK: Final = Inspection("full disk", full_disk)
STOPS: Final = Inspection("stops", stops, {"property_filter": True})

"""Messages that are sent back although they are special, and what a slave and a slow disk do with a request.

See docs/reference/protocol/retries-and-delays.md, "Retries", transactions.md, and replication.md.
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    make_group,
    make_topic,
    properties,
    pull,
    records,
    send,
)
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.config import FlushMode

_SCHEDULE, _RETRIES, _DEAD = "SCHEDULE_TOPIC_XXXX", "%RETRY%g", "%DLQ%g"
_HALF: Final = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "h"}
_COMMITTED: Final = 8
_LEVELS: Final = 18


async def _send_back(site: Site, offset: int, *, expects: int = 0, **more: object) -> None:
    fields: dict[str, Any] = {
        "offset": offset, "group": "g", "delayLevel": 0, "originMsgId": "m", "originTopic": "t",
        "unitMode": False, **more,
    }  # fmt: skip
    await site.ask("CONSUMER_SEND_MSG_BACK", expects=expects, **fields)


def _place(answer: Any) -> int:
    return int(answer.fields["msgId"][-16:], 16)


def _end(half: Any, flag: int = _COMMITTED) -> dict[str, Any]:
    return {
        "producerGroup": "p", "tranStateTableOffset": half.fields["queueOffset"], "transactionId": "h",
        "commitLogOffset": _place(half), "commitOrRollback": flag, "msgId": "h",
        "fromTransactionCheck": False,
    }  # fmt: skip


def _copies(site: Site, topic: str) -> list[StoredRecord]:
    """Return the records of a topic, of all its queues, in the order of the log."""
    return [each for each in log_of(site) if each.topic == topic]


async def sent_back(site: Site) -> None:
    site.rule = chapters.RETRIES
    await make_topic(site, "t")
    await make_group(site, "g", retryQueueNums=2)
    await _of_a_transaction(site)
    await _levels(site)
    await _waiting(site)
    await _queues(site)
    await _refused(site)


async def _of_a_transaction(site: Site) -> None:
    """A message from a transaction is delayed as any other when it is sent back, up to its dead letter."""
    half = await send(site, "t", "transaction", f=4, of=_HALF, h=3)
    await site.ask("END_TRANSACTION", **_end(half))
    await asyncio.sleep(0.1)
    (last,) = await records(site, "t")
    site.compare("the flag of a commit", _COMMITTED, last.system_flag & 12)
    for times, (level, seconds) in enumerate(((3, 10), (4, 30), (1, 1)), 1):
        await _send_back(site, last.commit_offset, delayLevel=level if level == 1 else 0)
        waits = _copies(site, _SCHEDULE)[-1]
        site.compare(f"the level of return {times}", (level - 1, str(level), _RETRIES), (
            waits.queue_id, waits.properties.get("DELAY"), waits.properties.get("REAL_TOPIC")))  # fmt: skip
        await asyncio.sleep(seconds - 0.5)
        site.compare("the copies before the delay", times - 1, len(_copies(site, _RETRIES)))
        await asyncio.sleep(1)
        copies = _copies(site, _RETRIES)
        site.compare("the copies after the delay", times, len(copies))
        last = copies[-1]
        site.compare(
            "the copy",
            (b"transaction", 3, _COMMITTED, times, "t", "false", None),
            (last.body, last.flag, last.system_flag & 12, last.reconsume_times,
             *(last.properties.get(name) for name in ("RETRY_TOPIC", "WAIT", "DELAY"))),
        )  # fmt: skip
    await _send_back(site, last.commit_offset, delayLevel=-1)
    (dead,) = _copies(site, _DEAD)
    site.compare("the dead letter", (b"transaction", 4, "t", "false", None), (
        dead.body, dead.reconsume_times,
        *(dead.properties.get(name) for name in ("RETRY_TOPIC", "WAIT", "DELAY"))))  # fmt: skip
    half = await send(site, "t", "rolled back", f=4, of=_HALF)
    await _send_back(site, _place(half), expects=16)


async def _levels(site: Site) -> None:
    """A level above the last one means the last one."""
    place = _place(await send(site, "t", "levels"))
    for level in (1, _LEVELS - 1, _LEVELS, _LEVELS + 1, 1000):
        await _send_back(site, place, delayLevel=level)
        waits, expected = _copies(site, _SCHEDULE)[-1], min(level, _LEVELS)
        site.compare(f"the queue of level {level}", (expected - 1, str(expected)), (
            waits.queue_id, waits.properties.get("DELAY")))  # fmt: skip
    await _send_back(site, place, delayLevel=5, maxReconsumeTimes=0)
    site.compare("a dead letter by the maximum of the request", b"levels", _copies(site, _DEAD)[-1].body)
    for most, times in ((2, 1), (1, 0)):
        await make_group(site, "few", retryMaxTimes=most, retryQueueNums=1)
        await _send_back(site, place, group="few", delayLevel=1)
        copy = _copies(site, _SCHEDULE)[-1]
        await _send_back(site, copy.commit_offset, group="few", delayLevel=1)
        dead = len(_copies(site, "%DLQ%few"))
        site.compare(f"the dead letters of a group with {most} retries", 1 - times, dead)


async def _waiting(site: Site) -> None:
    """A message that waits can be sent back too; its dead letter does not wait."""
    later = _place(await send(site, "t", "later", of={"DELAY": "5"}))
    await _send_back(site, later, delayLevel=-1)
    dead = _copies(site, _DEAD)[-1]
    site.compare("the dead letter of a waiting message", (b"later", 0, None), (
        dead.body, dead.queue_id, dead.properties.get("DELAY")))  # fmt: skip
    await _send_back(site, later, delayLevel=2)
    waits = _copies(site, _SCHEDULE)[-1]
    site.compare("the copy of a waiting message", (1, "2", _RETRIES), (
        waits.queue_id, waits.properties.get("DELAY"), waits.properties.get("REAL_TOPIC")))  # fmt: skip


async def _queues(site: Site) -> None:
    """The copies are spread over the queues of the retry topic."""
    place = _place(await send(site, "t", "spread"))
    for _ in range(16):
        await _send_back(site, place, delayLevel=1)
    await asyncio.sleep(2)
    used = {each.queue_id for each in _copies(site, _RETRIES) if each.body == b"spread"}
    site.compare("the queues of the copies", {0, 1}, used)


async def _refused(site: Site) -> None:
    """Messages that no consumer receives cannot be sent back; the first reason in the order decides."""
    timed = _place(await send(site, "t", "timed", of={"TIMER_DELAY_SEC": "1000"}))
    half = await send(site, "t", "half", f=4, of=_HALF)
    await site.ask("END_TRANSACTION", **_end(half, 12))
    await asyncio.sleep(4)
    operation = queue_of(site, "RMQ_SYS_TRANS_OP_HALF_TOPIC")[-1].commit_offset
    place = _place(await send(site, "t", "m"))
    for what in (timed, _place(half), operation):
        await _send_back(site, what, expects=16)
    before = len(log_of(site))
    await make_topic(site, _RETRIES, 1, writeQueueNums=0)
    await _send_back(site, place, expects=16)
    await make_topic(site, _RETRIES, 2, perm=4)
    await _send_back(site, place, expects=16)
    await make_topic(site, _RETRIES, 2, perm=2)
    await _send_back(site, -1, expects=1)
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=4\nautoCreateSubscriptionGroup=false")
    await _send_back(site, place, expects=26, group="unknown")
    await _send_back(site, place, expects=1, group="a b")
    await _send_back(site, -1, expects=16)
    await make_group(site, "none", retryQueueNums=0)
    await _send_back(site, -1, expects=16, group="none")
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=2")
    await _send_back(site, -1, group="none")
    site.compare("the records after refused returns", before, len(log_of(site)))


async def slow_disk(site: Site) -> None:
    """While the disk is silent, what must be safe is not confirmed; what need not wait is."""
    site.rule = chapters.RETRIES
    await make_topic(site, "t")
    await make_group(site, "g")
    place = _place(await send(site, "t", "m"))
    await _send_back(site, place, delayLevel=1)
    half = await send(site, "t", "half", f=4, of=_HALF)
    loop, fsync = asyncio.get_running_loop(), site.cluster.machines[MASTER].fsync
    fsync.hold()
    began_s = loop.time()
    await _send_back(site, place, expects=1, delayLevel=1)
    site.compare("the seconds of a return", 5, round(loop.time() - began_s))
    site.rule = chapters.SEND_REQUESTS
    for text in ("false", "False", "FALSE"):
        began_s = loop.time()
        await send(site, "t", text, of={"WAIT": text})
        site.compare(f"the seconds of a send with WAIT {text}", 0, round(loop.time() - began_s))
    for text in ("true", "no", ""):
        began_s = loop.time()
        await send(site, "t", text, of={"WAIT": text}, expects=10)
        site.compare(f"the seconds of a send with WAIT {text}", 5, round(loop.time() - began_s))
    site.rule = chapters.TRANSACTIONS
    await site.ask("END_TRANSACTION", **_end(half))
    fsync.release()
    await asyncio.sleep(2)
    found = await records(site, "t")
    bodies = {b"m", b"false", b"False", b"FALSE", b"true", b"no", b"", b"half"}
    site.compare("the messages at last", bodies, {each.body for each in found})
    site.compare("the messages with WAIT", 0, sum("WAIT" in each.properties for each in found))
    site.compare("the copies", 2, len(_copies(site, _RETRIES)))


_SENT: Final[dict[str, Any]] = {
    "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 0, "h": 0, "i": "", "j": 0, "k": False,
    "m": False,
}  # fmt: skip
_LONG: Final[dict[str, Any]] = {
    "producerGroup": "p", "topic": "t", "defaultTopic": "TBW102", "defaultTopicQueueNums": 4, "queueId": 0,
    "sysFlag": 0, "bornTimestamp": 0, "flag": 0,
}  # fmt: skip
_REPLY: Final = properties({"CORRELATION_ID": "c", "REPLY_TO_CLIENT": "r@1"})
_OF_MASTERS: Final[tuple[tuple[int, str, Any, dict[str, Any]], ...]] = (
    (14, "SEND_MESSAGE", b"m", _LONG),
    (14, "SEND_MESSAGE_V2", b"m", _SENT),
    (14, "SEND_MESSAGE_V2", b"m", {**_SENT, "b": "unknown"}),
    (14, "SEND_MESSAGE_V2", b"m", {**_SENT, "b": "SCHEDULE_TOPIC_XXXX"}),
    (14, "SEND_BATCH_MESSAGE", batch([(b"m", 0, {})]), {**_SENT, "m": True}),
    (14, "SEND_REPLY_MESSAGE_V2", b"m", {**_SENT, "b": "DefaultCluster_REPLY_TOPIC", "i": _REPLY}),
    (14, "SEND_REPLY_MESSAGE_V2", b"m", {**_SENT, "b": "other"}),
    (14, "CONSUMER_SEND_MSG_BACK", b"", {"offset": 0, "group": "g", "delayLevel": 1}),
    (14, "RECALL_MESSAGE", b"", {"producerGroup": "p", "topic": "unknown", "recallHandle": "x"}),
    (14, "RESUME_CHECK_HALF_MESSAGE", b"", {"msgId": "x", "topic": "t"}),
    (11, "END_TRANSACTION", b"", {"producerGroup": "p", "tranStateTableOffset": 0, "commitLogOffset": 0,
                                  "commitOrRollback": 8, "msgId": "h", "transactionId": "h"}),
    (11, "END_TRANSACTION", b"", {"producerGroup": "p", "tranStateTableOffset": 0, "commitLogOffset": 0,
                                  "commitOrRollback": 0, "msgId": "h", "transactionId": "h"}),
    *((14, f"{name}_BATCH_MQ", {"consumerGroup": group, "clientId": "c", "mqSet": []}, {})
      for name in ("LOCK", "UNLOCK") for group in ("g", "unknown")),
)  # fmt: skip


async def at_a_slave(site: Site) -> None:
    """A slave refuses what only a master does, and never corrects a consumer's offset."""
    await make_topic(site, "t")
    await make_topic(site, "empty")
    await make_group(site, "g", brokerId=5, whichBrokerWhenConsumeSlowly=7)
    for number in range(5):
        await send(site, "t", f"{number}")
    await asyncio.sleep(25)
    to = Address(site.cluster.machines[SLAVE].host, site.broker.port)
    line = await RawClient(to).open(site.cluster.internet.machine(HOST))
    for is_alone in (False, True):
        if is_alone:
            await site.cluster.stop(MASTER)
        await _corrects_nothing(site, line)
        site.rule = chapters.SEND_REQUESTS
        for code, name, body, fields in _OF_MASTERS:
            answer = await site.ask(name, body, by=line, expects=code, **fields)
            if code == 14:
                site.compare(f"why {name} is refused", "this broker is a slave", answer.remark)
            if "SEND" in name and "BACK" not in name:
                shown = {key: answer.fields.get(key) for key in ("MSG_REGION", "TRACE_ON")}
                site.compare("the tracing of a refusal", {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"},
                             shown)  # fmt: skip
    await site.cluster.start(MASTER)
    await site.cluster.stop(SLAVE)
    await _without_slave(site)


async def _corrects_nothing(site: Site, line: RawClient) -> None:
    site.rule = chapters.PULL_REQUESTS
    for topic, offset, code, following, broker, count in (
        ("t", 0, 0, 5, 0, 5), ("t", 4, 0, 5, 0, 1), ("t", 5, 19, 5, 0, 0), ("t", 9, 20, 9, 5, 0),
        ("t", -1, 20, -1, 5, 0), ("empty", 0, 19, 0, 5, 0), ("empty", 3, 20, 3, 5, 0),
    ):  # fmt: skip
        answer = await pull(site, topic, offset, by=line, expects=code)
        site.compare(f"the pull at {offset} of {topic}", (str(following), str(broker), count), (
            answer.fields.get("nextBeginOffset"), answer.fields.get("suggestWhichBrokerId"),
            len(list(read_records(answer.body)))))  # fmt: skip


async def _without_slave(site: Site) -> None:
    """A master that lacks its slave stores messages, and says so; a return and an end count as stored."""
    site.rule = chapters.SEND_REQUESTS
    await asyncio.sleep(30)
    place = _place(await send(site, "t", "alone", expects=11))
    site.rule = chapters.RETRIES
    await _send_back(site, place, delayLevel=1)
    site.rule = chapters.TRANSACTIONS
    half = await send(site, "t", "half", f=4, of=_HALF, expects=11)
    await site.ask("END_TRANSACTION", **_end(half))
    site.rule = chapters.RECALLS
    timed = await send(site, "t", "timed", of={"TIMER_DELAY_SEC": "100", "UNIQ_KEY": "k"}, expects=11)
    handle = timed.fields.get("recallHandle")
    await site.ask("RECALL_MESSAGE", expects=1, producerGroup="p", topic="t", recallHandle=handle)
    await asyncio.sleep(2)
    site.compare("the copies", 1, len(_copies(site, _RETRIES)))
    bodies = [each.body for each in _copies(site, "t")]
    site.compare("the messages", [b"0", b"1", b"2", b"3", b"4", b"alone", b"half"], bodies)


SENT_BACK: Final = Inspection("sent back", sent_back)
SLOW_DISK: Final = Inspection("slow disk", slow_disk, {"busy_ms": 1_000_000}, flush=FlushMode.SYNC_FLUSH)
AT_A_SLAVE: Final = Inspection(
    "requests at a slave", at_a_slave, replication=ReplicationConfig(Role.SYNC_MASTER)
)

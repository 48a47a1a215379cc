"""Single sends, replies, ends of transactions and recalls: which queue, which topic, and each refusal.

See docs/reference/protocol/sending.md, transactions.md, requests-and-replies.md, and timers.md.
"""

import asyncio
import base64
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    beat,
    make_group,
    make_topic,
    properties,
    records,
    send,
)
from mqproof.conformance.answers.stored_record import offset_message_id
from mqproof.conformance.wire import chapters

_FORBIDDEN: Final = (
    "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT",
)  # fmt: skip
_SIZE_MAX: Final = 1000
_ILLEGAL, _FORBIDDEN_CODE, _NO_TOPIC, _NO_OPERATION = 13, 16, 17, 604


async def send_cases(site: Site) -> None:
    site.rule = chapters.SEND_REQUESTS
    await make_topic(site, "t")
    await _queues(site)
    await _created(site)
    await _order(site)
    await _headers(site)
    await _batches(site)
    await _times(site)
    await _ends(site)
    await _recalls(site)
    await _replies(site)


async def _queues(site: Site) -> None:
    """A send may name every read or write queue; without one it goes to one of the write queues."""
    for topic, read, write, used in (("reads", 4, 2, 2), ("writes", 2, 4, 4), ("none", 3, 0, 3)):
        await make_topic(site, topic, 1, readQueueNums=read, writeQueueNums=write)
        queues = max(read, write)
        for queue in range(queues + 2):
            await send(site, topic, queue=queue, expects=0 if queue < queues else 1)
        found = set()
        for number in range(40):
            answer = await send(site, topic, queue=-1 - number % 2)
            found.add(int(answer.fields["queueId"]))
        site.compare(f"the queues that the broker chooses of {topic}", set(range(used)), found)


async def _created(site: Site) -> None:
    """A topic is created like its template, which must be inherited, or TBW102 and creation is on."""
    site.rule = chapters.TOPICS
    for name, queues, permission in (("inherited", 6, 7), ("readable", 3, 5), ("own", 2, 6)):
        await make_topic(site, name, queues, perm=permission)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateTopicEnable=false")
    for number, (is_on, template, asked, made) in enumerate((
        (False, "TBW102", 4, None), (False, "", 4, None), (False, "inherited", 4, (4, 6)),
        (False, "readable", 9, (3, 4)), (False, "own", 2, None), (False, "unknown", 2, None),
        (True, "TBW102", 4, (4, 6)), (True, "", 8, (8, 6)), (True, "TBW102", 9, (8, 6)),
        (True, "TBW102", 1, (1, 6)), (True, "inherited", 7, (6, 6)), (True, "own", 2, None),
    )):  # fmt: skip
        await site.ask("UPDATE_BROKER_CONFIG", f"autoCreateTopicEnable={written(is_on)}")
        topic = f"made{number}"
        await send(site, topic, c=template, d=asked, expects=0 if made else _NO_TOPIC)
        shown = await site.ask("GET_TOPIC_CONFIG", topic=topic, expects=0 if made else _NO_TOPIC)
        if made:
            fields = java_values.read(shown.body)
            site.compare(f"the topic made of {template} with {asked}", (made[0], *made), tuple(
                fields[key] for key in ("readQueueNums", "writeQueueNums", "perm")))  # fmt: skip
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateTopicEnable=false")
    await make_group(site, "g", retryQueueNums=3)
    await send(site, "%RETRY%g", c="TBW102", d=1)
    await send(site, "%DLQ%g", expects=_NO_TOPIC)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateTopicEnable=true")


async def _order(site: Site) -> None:
    """Of several reasons to refuse a send, the first one in the documentation decides."""
    site.rule = chapters.SEND_REQUESTS
    await make_topic(site, "ordered", 1, order=True)
    for topic in _FORBIDDEN:
        await send(site, topic, queue=99, expects=_FORBIDDEN_CODE)
    for topic in ("a b", "", "n" * 128, "a/b"):
        await send(site, topic, c="unknown", expects=1)
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=4")
    await send(site, "ordered", queue=9, expects=_FORBIDDEN_CODE)
    await send(site, "t", queue=9, expects=1)
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=6")
    await send(site, "ordered", queue=1, expects=1)
    half = {"TRAN_MSG": "true", "PGROUP": "p"}
    await send(site, "t", queue=1, f=8, of=half, expects=1)
    await send(site, "t", f=8, of=half, expects=_FORBIDDEN_CODE)
    await send(site, "t", f=4, of=half, expects=_ILLEGAL)
    for flags in (4, 8, 12):
        await send(site, "t", f=flags, expects=_FORBIDDEN_CODE)
    for flags in (1, 2, 3):
        answer = await send(site, "t", f=flags)
        last = await records(site, "t", int(answer.fields["queueOffset"]))
        site.compare("the system flag", flags, last[0].system_flag)


async def _headers(site: Site) -> None:
    """Both forms of the header have mandatory members; the others have defaults."""
    names = {
        "producerGroup": "a", "topic": "b", "defaultTopic": "c", "defaultTopicQueueNums": "d", "queueId": "e",
        "sysFlag": "f", "bornTimestamp": "g", "flag": "h",
    }  # fmt: skip
    values: tuple[object, ...] = ("p", "t", "TBW102", 4, 0, 0, 77, 5)
    unwatched = await RawClient(site.broker).open(site.cluster.internet.machine(HOST))
    for is_long in (True, False):
        given = dict(zip(names if is_long else names.values(), values, strict=True))
        code = "SEND_MESSAGE" if is_long else "SEND_MESSAGE_V2"
        answer = await site.ask(code, b"short", **given)  # type: ignore[arg-type]  # fields of the request
        (last,) = await records(site, "t", int(answer.fields["queueOffset"]))
        site.compare("the stored message", (77, 5, 0, 0, b"short"), (
            last.born_ms, last.flag, last.system_flag, last.reconsume_times, last.body))  # fmt: skip
        kept = {"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
        site.compare("its properties", kept, dict(last.properties))
        site.compare("the remark of a success", None, answer.remark)
        for name, value in given.items():
            less: dict[str, Any] = {key: each for key, each in given.items() if key != name}
            await site.ask(code, b"short", expects=1, **less)
            if isinstance(value, int):
                await site.ask(code, b"short", expects=1, by=unwatched, **{**less, name: "x"})
    for name, value in (("i", ""), ("j", 7), ("k", True), ("l", 1), ("m", False)):
        answer = await send(site, "t", "with", **{name: value})  # type: ignore[arg-type]  # fields
        (last,) = await records(site, "t", int(answer.fields["queueOffset"]))
        site.compare(f"the retries with {name}", 7 if name == "j" else 0, last.reconsume_times)


async def _batches(site: Site) -> None:
    """A batch has at most the size of a message, no delay, and no time; DELAY 0 means none."""
    site.rule = chapters.BATCHES
    await site.ask("UPDATE_BROKER_CONFIG", f"maxMessageSize={_SIZE_MAX}")
    spare = _SIZE_MAX - len(batch([(b"", 0, {}), (b"x", 0, {})]))
    for more, expects in ((0, 0), (1, _ILLEGAL)):
        body = batch([(b"y" * (spare + more), 0, {}), (b"x", 0, {})])
        await send(site, "t", body, name="SEND_BATCH_MESSAGE", expects=expects)
    for values, of, expects in (
        ({"DELAY": "0"}, {}, 0), ({}, {"DELAY": "0"}, 0), ({"DELAY": "1"}, {}, _ILLEGAL),
        ({}, {"DELAY": "1"}, _ILLEGAL), ({"DELAY": "0"}, {"DELAY": "1"}, 0), ({"DELAY": "x"}, {}, _ILLEGAL),
        ({"TIMER_DELAY_SEC": "0"}, {}, _ILLEGAL), ({}, {"TIMER_DELAY_MS": "1"}, _ILLEGAL),
        ({"TIMER_DELIVER_MS": "1"}, {}, _ILLEGAL), ({"WAIT": "false"}, {}, 0), ({}, {"WAIT": "false"}, 0),
    ):  # fmt: skip
        both = [(b"first", 1, {"own": "1", **values}), (b"second", 2, values)]
        answer = await send(site, "t", batch(both), name="SEND_BATCH_MESSAGE", of=of, expects=expects)
        if not expects:
            found = await records(site, "t", int(answer.fields["queueOffset"]))
            site.compare(
                "the batch", [(b"first", 1), (b"second", 2)], [(each.body, each.flag) for each in found]
            )
            site.compare("whether WAIT is stored", [False] * 2, ["WAIT" in each.properties for each in found])
    unwatched = await RawClient(site.broker).open(site.cluster.internet.machine(HOST))
    for name in ("SEND_BATCH_MESSAGE", "SEND_MESSAGE_V2"):
        for is_batch, count in ((True, 2), (False, 1)):
            body = batch([(b"first", 1, {}), (b"second", 2, {})])
            answer = await send(site, "t", body, name=name, m=is_batch, by=unwatched)
            found = await records(site, "t", int(answer.fields["queueOffset"]))
            site.compare(f"the messages of {name} with {is_batch}", count, len(found))
    await site.ask("UPDATE_BROKER_CONFIG", f"maxMessageSize={4 << 20}")


async def _times(site: Site) -> None:
    """A delay level counts more than a time; a time that is over means at once."""
    site.rule = chapters.TIMERS
    for of, expects, delayed in (
        ({"DELAY": "0"}, 0, 0), ({"DELAY": "-1"}, 0, 0), ({"DELAY": "+1"}, 0, 1),
        ({"DELAY": "x"}, _ILLEGAL, 0),
        ({"DELAY": "1"}, 0, 1), ({"DELAY": "1", "TIMER_DELAY_SEC": "9"}, 0, 1),
        ({"DELAY": "1", "TIMER_DELAY_SEC": "x"}, 0, 1), ({"DELAY": "0", "TIMER_DELAY_SEC": "1"}, 0, 1),
        ({"TIMER_DELAY_SEC": "0"}, 0, 0), ({"TIMER_DELAY_SEC": "-1"}, 0, 0), ({"TIMER_DELAY_MS": "0"}, 0, 0),
        ({"TIMER_DELAY_MS": "1"}, 0, 1), ({"TIMER_DELIVER_MS": "NOW"}, 0, 0),
        ({"TIMER_DELIVER_MS": "1"}, 0, 0),
        ({"TIMER_DELIVER_MS": "x"}, _ILLEGAL, 0), ({"TIMER_DEL_UNIQKEY": "k"}, _ILLEGAL, 0),
        ({"TIMER_DEL_UNIQKEY": "k", "TIMER_DELAY_SEC": "1"}, _ILLEGAL, 0),
    ):  # fmt: skip
        before = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"])
        values = {name: str(site.now_ms) if text == "NOW" else text for name, text in of.items()}
        await send(site, "t", "timed", of=values, expects=expects)
        grown = [int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"]) - before]
        await asyncio.sleep(1.5)
        grown.append(int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"]) - before)
        site.compare(f"the messages at once and later with {of}", [not expects and not delayed, not expects],
                     grown)  # fmt: skip


async def _ends(site: Site) -> None:
    """Ends that are none, of other messages, or resumed."""
    site.rule = chapters.TRANSACTIONS
    half = await send(site, "t", "h", f=4, of={"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "h"})
    other = await send(site, "t", "no half message")
    end: dict[str, Any] = {
        "producerGroup": "p", "tranStateTableOffset": half.fields["queueOffset"], "msgId": "h",
        "commitLogOffset": int(half.fields["msgId"][-16:], 16), "commitOrRollback": 8, "transactionId": "h",
    }  # fmt: skip
    for flag in (4, 1, 7, 9, 11, 13, -8):
        await site.ask("END_TRANSACTION", expects=1, **{**end, "commitOrRollback": flag})
    await site.ask("END_TRANSACTION", expects=1, **{
        **end, "commitLogOffset": int(other.fields["msgId"][-16:], 16)})  # fmt: skip
    line = await site.client("end")
    silent = line.put(CODES["END_TRANSACTION"], {
        key: written(value) for key, value in {**end, "commitOrRollback": 0}.items()})  # fmt: skip
    await asyncio.sleep(1)
    site.compare("whether an unknown end is answered", False, silent.done())
    silent.cancel()
    for flag, expects in ((8, 0), (8, 0), (12, 1)):
        answer = await site.ask("END_TRANSACTION", expects=expects, **{**end, "commitOrRollback": flag})
        site.compare("whether the answer has a remark", bool(expects), answer.remark is not None)
    half_topic = queue_of(site, "RMQ_SYS_TRANS_HALF_TOPIC")[0]
    for id_ in ("x", "", offset_message_id(str(site.broker), half_topic.commit_offset),
                offset_message_id(str(site.broker), 1 << 40)):  # fmt: skip
        await site.ask("RESUME_CHECK_HALF_MESSAGE", expects=1, msgId=id_, topic="t")
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=4")
    await site.ask("RESUME_CHECK_HALF_MESSAGE", expects=_FORBIDDEN_CODE, msgId="x", topic="t")
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=6")


async def _recalls(site: Site) -> None:
    """Each refusal of a recall, in the order of the documentation; then one that succeeds."""
    site.rule = chapters.RECALLS
    await make_topic(site, "other")
    answer = await send(site, "t", "recalled", of={"TIMER_DELAY_SEC": "2", "UNIQ_KEY": "k"})
    good = answer.fields["recallHandle"]
    version, topic, broker, due, key = base64.urlsafe_b64decode(good).decode().split(" ")
    site.compare("the handle", ("v1", "t", "broker-a", "k"), (version, topic, broker, key))
    site.compare("whether it names the time", True, abs(int(due) - site.now_ms - 2000) <= 2)

    def handle(*parts: str) -> str:
        return base64.urlsafe_b64encode(" ".join(parts).encode()).decode()

    for name, value, expects in (
        ("recallMessageEnable", "false", 16), ("brokerPermission", "4", 16), ("brokerPermission", "6", 0),
    ):  # fmt: skip
        await site.ask("UPDATE_BROKER_CONFIG", f"{name}={value}")
        if expects:
            await site.ask("RECALL_MESSAGE", expects=expects, producerGroup="p", topic="unknown",
                           recallHandle="x")  # fmt: skip
        await site.ask("UPDATE_BROKER_CONFIG", "recallMessageEnable=true")
    for topic, text, expects in (
        ("unknown", "x", _NO_TOPIC), ("t", "x", _NO_OPERATION), ("t", "", _NO_OPERATION),
        ("other", good, _NO_OPERATION), ("t", handle("v1", "t", "broker-b", due, "k"), _NO_OPERATION),
        ("t", handle("v2", "t", "broker-a", due, "k"), _NO_OPERATION),
        ("t", handle("v1", "t", "broker-a", due, "l"), _NO_OPERATION),
        ("t", handle("v1", "t", "broker-a", str(site.now_ms - 1), "k"), _NO_OPERATION),
        ("t", good, 0), ("t", good, _NO_OPERATION),
    ):  # fmt: skip
        answer = await site.ask("RECALL_MESSAGE", expects=expects, producerGroup="p", topic=topic,
                                recallHandle=text)  # fmt: skip
        site.compare("the recalled key", None if expects else "k", answer.fields.get("msgId"))
    late = await send(site, "t", "late", of={"TIMER_DELAY_SEC": "2", "UNIQ_KEY": "late"})
    await asyncio.sleep(3)
    await site.ask("RECALL_MESSAGE", expects=_NO_OPERATION, producerGroup="p", topic="t",
                   recallHandle=late.fields["recallHandle"])  # fmt: skip
    end = int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"])
    site.compare("the last message", b"late", (await records(site, "t", end - 1))[-1].body)


async def _replies(site: Site) -> None:
    """A reply with other members than usual, for a requester that is there, and for one that is not."""
    site.rule = chapters.REPLIES
    topic, of = "DefaultCluster_REPLY_TOPIC", {"CORRELATION_ID": "c", "REPLY_TO_CLIENT": "r@1"}
    line = await site.client("requester")
    for is_there in (False, True):
        if is_there:
            await beat(site, "r@1", "", [], by=line, producers=("p",))
        for name in ("SEND_REPLY_MESSAGE_V2", "SEND_REPLY_MESSAGE"):
            for queue, times, flag in ((0, None, 0), (-1, 4, 3)):
                fields: dict[str, Any] = {
                    "a": "p", "b": topic, "c": "T", "d": 1, "e": queue, "f": flag, "g": 9, "h": 2,
                    "i": properties(of), "j": times,
                }  # fmt: skip
                if name == "SEND_REPLY_MESSAGE":
                    fields = {_LONG[key]: value for key, value in fields.items()}
                texts = {key: written(value) for key, value in fields.items() if value is not None}
                waiting = (await site.client()).put(CODES[name], texts, b"reply")
                await asyncio.sleep(0.1)
                for each in line.pushed:
                    site.compare("the retries of a pushed reply", times and str(times),
                                 each.fields.get("reconsumeTimes"))  # fmt: skip
                    site.compare("its queue, flag and system flag", ("0", "2", str(flag)), tuple(
                        each.fields.get(field) for field in ("queueId", "flag", "sysFlag")))  # fmt: skip
                    line.reply(each)
                site.compare("the pushed replies", int(is_there), len(line.pushed))
                line.pushed.clear()
                answer = await waiting
                site.compare("the code of a reply", 0 if is_there else 1, answer.code)
                (last,) = await records(site, topic, int(answer.fields["queueOffset"]))
                site.compare("the stored reply", (b"reply", 2, flag, 9, times or 0, of), (
                    last.body, last.flag, last.system_flag, last.born_ms, last.reconsume_times,
                    dict(last.properties)))  # fmt: skip
    end = int((await site.ask("GET_MAX_OFFSET", topic=topic, queueId=0)).fields["offset"])
    site.compare("the stored replies", 8, end)
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=4")
    await send(site, "unknown", name="SEND_REPLY_MESSAGE_V2", expects=_FORBIDDEN_CODE)


_LONG: Final = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums", "e": "queueId",
    "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes",
}  # fmt: skip
SEND_CASES: Final = Inspection("send cases", send_cases, {"default_topic_queues": 8})

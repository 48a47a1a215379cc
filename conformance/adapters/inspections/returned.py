"""Messages that a consumer returns: every field of each copy, until it becomes a dead letter; each refusal.

See docs/reference/protocol/retries-and-delays.md, "Retries".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, records, send
from mqproof.conformance.answers.stored_record import StoredRecord, offset_message_id
from mqproof.conformance.wire import chapters

_RETRIES, _DEAD = "%RETRY%g", "%DLQ%g"
_DELAYS_S: Final = {1: 1, 2: 5, 3: 10, 4: 30, 5: 60}
"""The delays of the first levels."""


async def returned(site: Site) -> None:
    """Return one message again and again; compare the copies with it."""
    site.rule = chapters.RETRIES
    await make_topic(site, "t")
    await make_group(site, "g", retryMaxTimes=3, retryQueueNums=1)
    await send(site, "t", "body", h=5, of={"TAGS": "a", "KEYS": "k", "UNIQ_KEY": "u1", "own": "1"})
    original = last = (await records(site, "t"))[0]
    for times, level, taken, is_dead in (
        (1, 0, 3, False), (2, 2, 2, False), (3, 0, 5, False), (4, 0, 0, True),
    ):  # fmt: skip
        await _send_back(site, last, delayLevel=level)
        before = await records(site, _RETRIES)
        if not is_dead:
            await asyncio.sleep(_DELAYS_S[taken] - 0.5)
            site.compare("the copies before the delay", before, await records(site, _RETRIES))
            await asyncio.sleep(1)
        found = await _dead(site) if is_dead else await records(site, _RETRIES)
        site.compare(f"the copies after {times} returns", 1 if is_dead else times, len(found))
        last = found[-1]
        _compare(site, original, last, times)
    await _send_back(site, original, delayLevel=-1)
    _compare(site, original, (await _dead(site))[-1], 1)
    await _send_back(site, original, delayLevel=3, maxReconsumeTimes=0)
    await _send_back(site, last, delayLevel=1, maxReconsumeTimes=5)
    await asyncio.sleep(2)
    site.compare("the dead letters", 3, len(await _dead(site)))
    site.compare("the copies", 4, len(await records(site, _RETRIES)))
    await _sent_again(site)
    await _refused(site, original)


async def _sent_again(site: Site) -> None:
    """A consumer that cannot return a message sends it to the retry topic, with the number of its retries."""
    delays = {"DELAY": "3", "TIMER_DELAY_SEC": "9", "own": "2"}
    for times, most, values, dead, copies in (
        (1, None, {}, 3, 5), (2, None, {}, 3, 6), (3, None, delays, 4, 6), (1, 1, {}, 5, 6), (3, 4, {}, 5, 7),
    ):  # fmt: skip
        answer = await send(site, _RETRIES, f"again {times}", j=times, l=most, of=values)
        found = await _dead(site), await records(site, _RETRIES)
        site.compare(f"the dead letters and copies after {times}", (dead, copies), tuple(map(len, found)))
        record = max((*found[0], *found[1]), key=lambda each: each.commit_offset)
        shown = {name: text for name, text in record.properties.items() if name in delays}
        expected = {"own": "2"} if values else {}
        site.compare("the message", (f"again {times}".encode(), times, expected), (
            record.body, record.reconsume_times, shown))  # fmt: skip
        id_ = offset_message_id(str(site.broker), record.commit_offset)
        site.compare("the answer", (id_, str(record.queue_offset), "0"), tuple(
            answer.fields.get(name) for name in ("msgId", "queueOffset", "queueId")))  # fmt: skip


async def _send_back(site: Site, record: StoredRecord, *, expects: int = 0, **more: object) -> None:
    fields: dict[str, Any] = {
        "offset": record.commit_offset, "group": "g", "delayLevel": 0, "originMsgId": "m",
        "originTopic": record.topic, "unitMode": False, **more,
    }  # fmt: skip
    await site.ask("CONSUMER_SEND_MSG_BACK", expects=expects, **fields)


async def _dead(site: Site) -> list[StoredRecord]:
    """Return the dead letters, which an administrator may read after a change of their topic."""
    shown = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic=_DEAD)).body)
    if shown["perm"] != 6:
        site.compare("the topic of dead letters", (1, 1, 2), (
            shown["readQueueNums"], shown["writeQueueNums"], shown["perm"]))  # fmt: skip
        await make_topic(site, _DEAD)
    return await records(site, _DEAD)


def _compare(site: Site, original: StoredRecord, copy: StoredRecord, times: int) -> None:
    def kept(record: StoredRecord) -> tuple[object, ...]:
        return record.body, record.flag, record.born_ms, record.born_host, record.store_host

    site.compare(f"copy {times}", kept(original), kept(copy))
    site.compare("the number of its retries", times, copy.reconsume_times)
    named = {
        **original.properties, "RETRY_TOPIC": "t",
        "ORIGIN_MESSAGE_ID": offset_message_id(str(site.broker), original.commit_offset),
    }  # fmt: skip
    more = {"DELAY", "REAL_TOPIC", "REAL_QID", "WAIT"}
    shown = {name: value for name, value in copy.properties.items() if name not in more}
    site.compare(f"the properties of copy {times}", named, shown)


async def _refused(site: Site, record: StoredRecord) -> None:
    await _send_back(site, record, expects=1, offset=record.commit_offset + 1)
    await _send_back(site, record, expects=1, offset=1 << 40)
    await make_topic(site, _RETRIES, perm=4)
    await _send_back(site, record, expects=16)
    await make_topic(site, _RETRIES)
    half = await send(site, "t", "half", f=4, of={"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "u2"})
    await _send_back(site, record, expects=16, offset=int(half.fields["msgId"][-16:], 16))
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=4")
    await _send_back(site, record, expects=16)
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=6\nautoCreateSubscriptionGroup=false")
    await _send_back(site, record, expects=26, group="unknown")
    await send(site, "%RETRY%unknown", expects=26)
    await make_group(site, "none", retryQueueNums=0)
    await _send_back(site, record, group="none")
    await asyncio.sleep(40)
    await site.ask("GET_TOPIC_CONFIG", expects=17, topic="%RETRY%none")
    site.compare("the copies after refused returns", 7, len(await records(site, _RETRIES)))


RETURNED: Final = Inspection("returned messages", returned)

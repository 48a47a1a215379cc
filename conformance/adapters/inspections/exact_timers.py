"""Messages that wait: times to the millisecond, each field of a recall, points, and recalled copies.

See docs/reference/protocol/timers.md.
"""

import asyncio
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.adapters.inspections.waiting import TIMER_TOPIC
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.network import Address

_TOPIC: Final = "t"
_AT_ONCE: Final = 1100
_SEGMENT_BYTES: Final = 1 << 18
_POINT_S: Final = 5
"""Longer than a point waits after a change."""
_GONE: Final = 604


async def exact_timers(site: Site) -> None:
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    await _times(site)
    await _recalled(site)
    await _without_key(site)
    await _points(site)
    await _wrong_points(site)
    await _at_once(site)


async def _send(site: Site, body: str, **of: object) -> str:
    """Send a message with these properties; return its handle."""
    answer = await send(
        site, _TOPIC, body, of={"UNIQ_KEY": body, **{key: str(each) for key, each in of.items()}}
    )
    return answer.fields.get("recallHandle", "")


async def _times(site: Site) -> None:
    """Each property asks for its time; the message is stored exactly then."""
    second_ms = (site.now_ms // 1000 + 20) * 1000
    asked: dict[str, dict[str, Any]] = {
        "seconds": {"TIMER_DELAY_SEC": 3}, "milliseconds": {"TIMER_DELAY_MS": 4567},
        "one millisecond": {"TIMER_DELAY_MS": 1}, "both": {"TIMER_DELAY_SEC": 2, "TIMER_DELAY_MS": 9000},
        "all": {"TIMER_DELAY_MS": 1500, "TIMER_DELIVER_MS": second_ms},
        **{f"at {late}": {"TIMER_DELIVER_MS": second_ms + late} for late in (-1, 0, 1, 999)},
        "over": {"TIMER_DELIVER_MS": site.now_ms - 1}, "now": {"TIMER_DELAY_MS": 0},
        "before": {"TIMER_DELAY_SEC": -1},
    }  # fmt: skip
    waits_ms = {"seconds": 3000, "milliseconds": 4567, "one millisecond": 1, "both": 2000, "all": 1500}
    due = {}
    for name, properties in asked.items():
        now_ms = site.now_ms
        await _send(site, name, **properties)
        wait_ms = waits_ms.get(name, 0)
        due[name] = second_ms + int(name.removeprefix("at ")) if name.startswith("at ") else now_ms + wait_ms
    await asyncio.sleep(25)
    waiting = {each.body.decode(): each for each in queue_of(site, TIMER_TOPIC) if each.body != b"0"}
    site.compare(
        "the messages that waited", {*waits_ms, *(name for name in asked if "at " in name)}, set(waiting)
    )
    for each in queue_of(site, _TOPIC):
        name = each.body.decode()
        site.compare(f"the time of {name!r}, late by", 0, each.store_ms - due[name])
        if name in waiting:
            shown = waiting[name].properties
            second = (due[name] - 1) // 1000 * 1000
            site.compare(f"the times of {name!r} while it waits", (str(second), str(due[name])), (
                shown.get("TIMER_OUT_MS"), shown.get("TIMER_DUE_MS")))  # fmt: skip
    site.compare("the delivered messages", len(asked), len(queue_of(site, _TOPIC)))


async def _recalled(site: Site) -> None:
    """A recall is a record with the message's topic, key and time, and the group that asks."""
    due_ms = (site.now_ms // 1000 + 60) * 1000
    for name, at_ms, group in (
        ("exact", due_ms, "p"),
        ("later", due_ms + 1, "other"),
        ("no-group", due_ms, ""),
    ):
        handle = await _send(site, name, TIMER_DELIVER_MS=at_ms)
        began_ms = site.now_ms
        answer = await site.ask("RECALL_MESSAGE", producerGroup=group, topic=_TOPIC, recallHandle=handle)
        site.compare("the recalled key", name, answer.fields.get("msgId"))
        recall = queue_of(site, TIMER_TOPIC)[-1]
        expected = {
            "TIMER_DEL_UNIQKEY": name, "UNIQ_KEY": name, "REAL_TOPIC": _TOPIC, "REAL_QID": "0",
            "TAGS": "_RECALL_TAG_", "TIMER_DELIVER_MS": str(at_ms),
            "TIMER_OUT_MS": str((at_ms - 1) // 1000 * 1000), **({"PGROUP": group} if group else {}),
        }  # fmt: skip
        site.compare(f"the recall of {name}", (b"0", expected, began_ms), (
            recall.body, dict(recall.properties), recall.born_ms))  # fmt: skip
        await site.ask("RECALL_MESSAGE", expects=_GONE, producerGroup="p", topic=_TOPIC, recallHandle=handle)


def _of_points(site: Site) -> list[list[int]]:
    points = [each.properties["TIMER_POINT"] for each in queue_of(site, TIMER_TOPIC, 1)]
    return [[int(word) for word in text.split(" ")] for text in points]


async def _without_key(site: Site) -> None:
    """A message without a unique key has no handle; it is delivered like others."""
    for of, has_handle in (({}, False), ({"UNIQ_KEY": "named"}, True)):
        given: dict[str, str] = {"TIMER_DELAY_SEC": "2", **of}
        answer = await send(site, _TOPIC, "keyless", of=given)
        site.compare(f"whether there is a handle with {of}", has_handle, "recallHandle" in answer.fields)
    await asyncio.sleep(3)
    found = [each.body for each in queue_of(site, _TOPIC)].count(b"keyless")
    site.compare("the delivered messages without a key", 2, found)


async def _points(site: Site) -> None:
    """A point follows each change, and none follows without one; the last one says that all is done."""
    await asyncio.sleep(_POINT_S)
    for wait_s, expected in ((1, 1), (30, 0)):
        before = len(_of_points(site))
        if expected:
            await _send(site, f"point {wait_s}", TIMER_DELAY_SEC=wait_s)
            await asyncio.sleep(2 * _POINT_S)
        else:
            await asyncio.sleep(wait_s)
        found = len(_of_points(site)) - before
        site.compare(f"whether points follow: {found}", True, 0 < found < 3 if expected else not found)
    end = len(queue_of(site, TIMER_TOPIC))
    site.compare("the last point", [end, end], _of_points(site)[-1][:2])


async def _wrong_points(site: Site) -> None:
    """A start skips points that are not valid, and one that is damaged."""
    for name, seconds in (("soon", 12), ("later", 40)):
        await _send(site, name, TIMER_DELAY_SEC=seconds)
    await asyncio.sleep(_POINT_S)
    host = Address(site.broker.host, site.broker.port)
    for text in ("9 9 9 9", "1 2 3", "1 2 3 4 5", "x y z w", "", "-1 0 0 0", "1" * 19 + " 0 0 0"):
        message = Message(TIMER_TOPIC, b"0", {"TIMER_POINT": text}, 1, born_host=host, store_host=host)
        await site.cluster.brokers[MASTER].store.put(message)
    wrong = queue_of(site, TIMER_TOPIC, 1)[-7]
    site.cluster.kill(MASTER)
    disk, size = site.cluster.machines[MASTER].disk, _SEGMENT_BYTES
    segment, at = divmod(wrong.commit_offset + len(wrong.raw) - 6, size)
    disk.damage(f"/store/commitlog/{segment * size:020}", at, b"####")
    await site.cluster.start(MASTER)
    await asyncio.sleep(45)
    found = [each.body for each in queue_of(site, _TOPIC) if each.body in (b"soon", b"later")]
    site.compare("the messages after wrong points", [b"soon", b"later"], found)


async def _at_once(site: Site) -> None:
    """Very many messages are delivered together, and the next ones after them."""
    await _send(site, "many", TIMER_DELAY_SEC=10)
    record = queue_of(site, TIMER_TOPIC)[-1]
    host = Address(site.broker.host, site.broker.port)
    same = Message(TIMER_TOPIC, b"many", record.properties, born_host=host, store_host=host)
    for _ in range(_AT_ONCE // 50):
        await site.cluster.brokers[MASTER].store.put_batch([same] * 50)
    await asyncio.sleep(12)
    await _send(site, "next", TIMER_DELAY_SEC=1)
    await asyncio.sleep(2)
    found = [each.body for each in queue_of(site, _TOPIC)]
    site.compare("the messages that were due together", _AT_ONCE + 1, found.count(b"many"))
    site.compare("the next message", b"next", found[-1])


async def recalled_copies(site: Site) -> None:
    """A message that was copied can be recalled; the copy of another one is delivered."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    handles = {name: await _send(site, name, TIMER_DELAY_SEC=400) for name in ("copied", "kept")}
    site.cluster.machines[MASTER].disk.room = Space(100, 20)
    for _ in range(4):
        await send(site, _TOPIC, b"x" * 9000)
    await asyncio.sleep(150)
    copies = [each for each in queue_of(site, TIMER_TOPIC) if "TIMER_ORIGINAL" in each.properties]
    site.compare("the copies", {b"copied", b"kept"}, {each.body for each in copies})
    site.compare("whether the originals are deleted", True, log_of(site)[0].commit_offset > 0)
    for code in (0, _GONE):
        await site.ask(
            "RECALL_MESSAGE", expects=code, producerGroup="p", topic=_TOPIC, recallHandle=handles["copied"]
        )
    await asyncio.sleep(300)
    found = [each.body for each in queue_of(site, _TOPIC) if each.body in (b"copied", b"kept")]
    site.compare("the delivered messages", [b"kept"], found)


async def unflushed_finals(site: Site) -> None:
    """The segment of a message that waited stays until its delivery is durable: a power loss repeats it."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    await asyncio.sleep(_FLUSH_S - site.cluster.now_s % _FLUSH_S + 1)
    await _send(site, "soon", TIMER_DELAY_SEC=_FLUSH_S + 10)
    waits = queue_of(site, TIMER_TOPIC)[-1]
    for _ in range(4):
        await send(site, _TOPIC, b"x" * 9000)
    await asyncio.sleep(_FLUSH_S + 12)
    site.compare("whether it is delivered", b"soon", queue_of(site, _TOPIC)[-1].body)
    site.cluster.machines[MASTER].disk.room = Space(100, 20)
    await asyncio.sleep(40)
    begin = log_of(site)[0].commit_offset
    site.compare("whether its segment is kept", True, begin <= waits.commit_offset)
    await asyncio.sleep(_FLUSH_S)
    begin = log_of(site)[0].commit_offset
    site.compare("whether its segment is deleted after a flush", True, begin > waits.commit_offset)


_FLUSH_S: Final = 200
UNFLUSHED_FINALS: Final = Inspection(
    "segments of waiting messages", unflushed_finals,
    {
        "store": replace(
            STORE, file_reserved_ms=60_000, delete_when_hours=(), flush_log_interval_ms=_FLUSH_S * 1000,
            flush_log_thorough_interval_ms=1, flush_queues_interval_ms=10**9, checkpoint_interval_ms=10**9,
        )
    },
)  # fmt: skip
EXACT_TIMERS: Final = Inspection(
    "exact timers", exact_timers, {"store": replace(STORE, commit_log_segment_bytes=_SEGMENT_BYTES)}
)
RECALLED_COPIES: Final = Inspection(
    "recalled copies", recalled_copies,
    {"store": replace(STORE, file_reserved_ms=60_000, delete_when_hours=())},
)  # fmt: skip

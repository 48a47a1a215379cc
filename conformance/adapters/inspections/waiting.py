"""Messages that wait for a time: every record of the timer topic, across restarts and recalls.

See docs/reference/protocol/timers.md.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections.disk_log import log_of
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.answers.stored_record import StoredRecord
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.store.config import FlushMode

TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
_ASKS: Final = ("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
_OF_WAITING: Final = ("REAL_TOPIC", "REAL_QID", "TIMER_ORIGINAL", "TIMER_ROLL_TIMES")
_LATE_MS: Final = 20
_ILLEGAL, _BUSY = 604, 2
_TOPIC: Final = "t"


async def waiting(site: Site) -> None:
    """Send, recall and restart; compare each record of the timer topic with what was sent."""
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC, 2)
    await _send(site, "first", 10, 1)
    await site.restart(killed=True)
    await asyncio.sleep(4)
    await _send(site, "second", 20)
    await _send(site, "third", 7)
    await site.restart()
    await asyncio.sleep(4)
    await site.restart(killed=True)
    await asyncio.sleep(5)
    handles = [await _send(site, name, 30, key="same") for name in ("repeated", "again")]
    await _send(site, "kept", 30, key="other")
    await asyncio.sleep(1)
    await _recalled_twice(site, handles[0])
    await _send(site, "same key", 12, key="same")
    await asyncio.sleep(4)
    await site.restart(killed=True)
    await asyncio.sleep(40)
    _compare(site, {
        "first": 1, "second": 1, "third": 1, "repeated": 0, "again": 0, "kept": 1, "same key": 1,
    })  # fmt: skip


async def _send(site: Site, body: str, seconds: int, queue: int = 0, *, key: str = "") -> str:
    """Send a message for a time; return its handle."""
    of = {"TIMER_DELAY_SEC": str(seconds), "UNIQ_KEY": key or body, "TAGS": "a", "own": body}
    answer = await send(site, _TOPIC, body, queue, of=of, h=5)
    return answer.fields.get("recallHandle", "")


async def _recalled_twice(site: Site, handle: str) -> None:
    """While a recall is being stored, another one of the same message is refused; later ones find nothing."""
    fsync = site.cluster.machines[MASTER].fsync
    fsync.hold()
    line = await site.client("recalls")
    fields: dict[str, Any] = {"producerGroup": "p", "topic": _TOPIC, "recallHandle": handle}
    first = line.put(CODES["RECALL_MESSAGE"], fields)
    await asyncio.sleep(0.1)
    site.compare("whether a recall waits for the disk", False, first.done())
    await site.ask("RECALL_MESSAGE", expects=_BUSY, **fields)
    fsync.release()
    site.compare("the recall", (0, "same"), ((await first).code, (await first).fields.get("msgId")))
    await site.ask("RECALL_MESSAGE", expects=_ILLEGAL, **fields)


def _compare(site: Site, deliveries: Mapping[str, int]) -> None:
    """Compare all records of the log with each other, and with the number of deliveries of each body."""
    log = log_of(site)
    timers = [each for each in log if (each.topic, each.queue_id) == (TIMER_TOPIC, 0)]
    originals = {each.body.decode(): each for each in timers if _is_original(each)}
    for body, count in deliveries.items():
        found = [each for each in log if each.topic == _TOPIC and each.body.decode() == body]
        site.compare(f"the deliveries of {body}", count, len(found))
        for each in found:
            _compare_final(site, originals[body], each)
    for place, each in enumerate(timers):
        site.compare("the place of a record of the timer queue", place, each.queue_offset)
        if _is_original(each):
            _compare_original(site, each)
    points = [each for each in log if (each.topic, each.queue_id) == (TIMER_TOPIC, 1)]
    site.compare("whether there are points", True, len(points) > 1)
    for each in points:
        shown = each.properties.get("TIMER_POINT"), each.body
        site.compare(f"the point at {each.commit_offset}", (_point(log, each), b"0"), shown)


def _is_original(record: StoredRecord) -> bool:
    return not {"TIMER_ORIGINAL", "TIMER_DEL_UNIQKEY"} & record.properties.keys()


def _due_ms(record: StoredRecord) -> int:
    return int(record.properties["TIMER_DUE_MS"])


def _compare_original(site: Site, record: StoredRecord) -> None:
    shown, due_ms = record.properties, _due_ms(record)
    asked_ms = int(shown["TIMER_DELAY_SEC"]) * 1000
    site.compare(f"the time of {record.body!r}", record.store_ms + asked_ms, due_ms)
    site.compare("its second", str((due_ms - 1) // 1000 * 1000), shown.get("TIMER_OUT_MS"))
    site.compare("its topic", _TOPIC, shown.get("REAL_TOPIC"))


def _compare_final(site: Site, original: StoredRecord, final: StoredRecord) -> None:
    left_out = (*_ASKS, *_OF_WAITING)
    values = {name: value for name, value in original.properties.items() if name not in left_out}
    late_ms = final.store_ms - _due_ms(original)
    for name, expected, observed in (
        ("properties", values, final.properties),
        ("queue", int(original.properties["REAL_QID"]), final.queue_id),
        ("flag", original.flag, final.flag),
        ("born time", original.born_ms, final.born_ms),
        ("born host", original.born_host, final.born_host),
        ("store host", original.store_host, final.store_host),
        ("system flag", original.system_flag, final.system_flag),
        ("offset of its waiting message", original.commit_offset + 1, final.prepared_offset),
        (f"delivery at its time, {late_ms} ms late,", True, 0 <= late_ms <= _LATE_MS),
    ):
        site.compare(f"the {name} of {final.body!r}", expected, observed)


def _point(log: tuple[StoredRecord, ...], point: StoredRecord) -> str:
    """Return what a point says of the records before it."""
    waits: dict[int, StoredRecord] = {}
    over: list[tuple[int, int]] = []
    end = 0
    for record in log[: log.index(point)]:
        ended: list[int] = []
        if (record.topic, record.queue_id) == (TIMER_TOPIC, 0):
            end += 1
            if recalled := record.properties.get("TIMER_DEL_UNIQKEY"):
                ended = [at for at, each in waits.items() if each.properties.get("UNIQ_KEY") == recalled]
            else:
                waits[record.queue_offset] = record
        elif record.prepared_offset:
            ended = [at for at, each in waits.items() if each.commit_offset == record.prepared_offset - 1]
        over += [(_due_ms(waits.pop(at)), record.commit_offset) for at in ended]
    due_ms = min([point.born_ms + 1, *map(_due_ms, waits.values())]) - 1
    scan_from = min([point.commit_offset, *(at for due, at in over if due > due_ms)])
    return f"{min(waits, default=end)} {end} {due_ms} {scan_from}"


WAITING: Final = Inspection("waiting messages", waiting, flush=FlushMode.SYNC_FLUSH)

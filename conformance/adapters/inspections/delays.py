"""Delayed messages: each level, the time of each delivery, and the progress in the file, across restarts.

See docs/reference/protocol/retries-and-delays.md, "Delayed messages".
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.answers.stored_record import StoredRecord
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters

_TOPIC, _LATER = "t", "SCHEDULE_TOPIC_XXXX"
_FILE: Final = "/store/config/delayOffset.json"
_LEVELS: Final = tuple(1000 + 300 * number for number in range(18))
"""The delays of the 18 levels, in milliseconds."""
_EACH: Final = 3
_OF_DELAY: Final = ("DELAY", "REAL_TOPIC", "REAL_QID")
_LATE_MS: Final = 20


async def delays(site: Site) -> None:
    """Send messages of each level together; compare each delivery, and the progress that the file has."""
    site.rule = chapters.DELAYED_MESSAGES
    await make_topic(site, _TOPIC, 2)
    await _progress(site, {})
    for number in range(_EACH):
        for level in range(1, 19):
            await send(site, _TOPIC, f"{level} {number}", level % 2, h=4, of={
                "DELAY": str(level), "TAGS": "a", "UNIQ_KEY": f"{level}-{number}"})  # fmt: skip
    await asyncio.sleep(3.5)
    await _progress(site, {str(level): _EACH for level, ms in enumerate(_LEVELS, 1) if ms < 3500})
    await site.restart()
    await asyncio.sleep(5)
    every = {str(level): _EACH for level in range(1, 19)}
    for _ in range(2):
        _compare(site)
        await _progress(site, every)
        await _file(site, every)
        await site.restart(killed=True)
        await asyncio.sleep(2)
    await send(site, _TOPIC, "beyond", of={"DELAY": "19"})
    await send(site, _TOPIC, "at once", of={"DELAY": "0"})
    site.compare("the level of a message beyond the last one", ("beyond", "18"), _last(site))
    await asyncio.sleep(7)
    _compare(site, others=2)
    await _cut(site)


def _last(site: Site) -> tuple[str, str | None]:
    record = queue_of(site, _LATER, 17)[-1]
    return record.body.decode(), record.properties.get("DELAY")


async def _progress(site: Site, expected: Mapping[str, int]) -> None:
    table = java_values.read((await site.ask("GET_ALL_DELAY_OFFSET")).body)["offsetTable"]
    site.compare("the progress", dict(expected), {str(level): offset for level, offset in table.items()})


async def _file(site: Site, expected: Mapping[str, int]) -> None:
    text = site.cluster.machines[MASTER].disk.written(_FILE).rstrip(b"\0").decode()
    shown = java_values.read(text[: text.rindex("}") + 1])["offsetTable"]
    site.compare("the progress in the file", dict(expected), {str(level): at for level, at in shown.items()})


def _compare(site: Site, others: int = 0) -> None:
    """Each message is stored once in its own queue, at its time, with its own fields."""
    waiting = {
        each.properties["UNIQ_KEY"]: each for queue in range(18) for each in queue_of(site, _LATER, queue)
        if "UNIQ_KEY" in each.properties
    }  # fmt: skip
    site.compare("the messages that waited", _EACH * 18, len(waiting))
    found = [each for queue in (0, 1) for each in queue_of(site, _TOPIC, queue)]
    site.compare("the delivered messages", _EACH * 18 + others, len(found))
    order: dict[int, list[str]] = {}
    for each in found:
        if key := each.properties.get("UNIQ_KEY"):
            _compare_one(site, waiting[key], each)
            order.setdefault(int(key.partition("-")[0]), []).append(key)
    for level, keys in order.items():
        site.compare(f"the order of level {level}", [f"{level}-{number}" for number in range(_EACH)], keys)


def _compare_one(site: Site, waiting: StoredRecord, delivered: StoredRecord) -> None:
    level = int(waiting.properties["DELAY"])
    values = {name: value for name, value in waiting.properties.items() if name not in _OF_DELAY}
    late_ms = delivered.store_ms - waiting.store_ms - _LEVELS[level - 1]
    shown = {name: value for name, value in delivered.properties.items() if name not in _OF_DELAY}
    for name, expected, observed in (
        ("queue that waits", level - 1, waiting.queue_id),
        ("queue", (_TOPIC, level % 2), (delivered.topic, delivered.queue_id)),
        ("body and flag", (waiting.body, 4), (delivered.body, delivered.flag)),
        ("properties", values, shown),
        ("born time", waiting.born_ms, delivered.born_ms),
        (f"delivery at its time, {late_ms} ms late,", True, 0 <= late_ms <= _LATE_MS),
    ):
        site.compare(f"the {name} of {waiting.body!r}", expected, observed)


async def _cut(site: Site) -> None:
    """Progress beyond the end of a queue is lowered at the start: the next message is delivered."""
    await site.cluster.stop(MASTER)
    site.write_file(MASTER, _FILE, json.dumps({"offsetTable": {"1": 1000, "18": _EACH + 1}}))
    before = len(queue_of(site, _TOPIC, 0))
    await site.cluster.start(MASTER)
    await send(site, _TOPIC, "after", of={"DELAY": "1"})
    await asyncio.sleep(2)
    found = queue_of(site, _TOPIC, 0)[before:]
    site.compare("the repeated messages, and the next one", _EACH * 8 + 1, len(found))
    site.compare("the next message", b"after", found[-1].body)
    await _progress(site, {**{str(level): _EACH for level in range(2, 18)}, "1": _EACH + 1, "18": _EACH + 1})


DELAYS: Final = Inspection(
    "delays", delays,
    {"store": replace(STORE, delay_levels_ms=_LEVELS), "delay_offsets_flush_interval_ms": 2000},
)  # fmt: skip

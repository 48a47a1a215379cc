"""Messages that wait at an idle broker, and at one whose clock is set: each is delivered at its own time.

See docs/reference/protocol/retries-and-delays.md, "Delayed messages", and timers.md.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections.disk_log import queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.hosts.simulated import STORE
from mqproof.conformance.wire import chapters

_TOPIC: Final = "t"
_LEVELS: Final = (*(1000 * number for number in range(1, 17)), 100_000, 3_600_000)
"""The delays of the 18 levels, in milliseconds."""
_IDLE_S: Final = 100
_JUMP_S: Final = 3700
_LOOK_MS: Final = 1000
"""How often a broker looks at its clock."""
_LATE_MS: Final = 5


async def idle_waits(site: Site) -> None:
    site.rule = chapters.DELAYED_MESSAGES
    await make_topic(site, _TOPIC)
    await asyncio.sleep(_IDLE_S)
    for level in (3, 1, 2, 9, 16, 17):
        await _delivered(site, f"level {level}", {"DELAY": str(level)}, _LEVELS[level - 1])
        await asyncio.sleep(_IDLE_S)
    site.rule = chapters.TIMERS
    for seconds in (1, 7, 90):
        await _delivered(site, f"timer {seconds}", {"TIMER_DELAY_SEC": str(seconds)}, seconds * 1000)
        await asyncio.sleep(_IDLE_S)
    await _clock_ahead(site)
    await _clock_back(site)


async def _delivered(site: Site, body: str, of: Mapping[str, str], wait_ms: int) -> None:
    """Send a message; it is not there a millisecond before its time, and it is there shortly after it."""
    began_ms = site.now_ms
    await send(site, _TOPIC, body, of=of)
    await asyncio.sleep((began_ms + wait_ms - 1 - site.now_ms) / 1000)
    found = [each.body.decode() for each in queue_of(site, _TOPIC)]
    site.compare(f"whether {body} is there before its time", False, body in found)
    await asyncio.sleep((1 + _LATE_MS) / 1000)
    last = queue_of(site, _TOPIC)[-1:]
    site.compare("the message after its time", [body], [each.body.decode() for each in last])
    for each in last:
        late_ms = each.store_ms - began_ms - wait_ms
        site.compare(f"whether it is stored at its time: {late_ms} ms late", True, 0 <= late_ms <= _LATE_MS)


async def _clock_ahead(site: Site) -> None:
    """When the clock is set ahead, what is due then is delivered within a second."""
    site.rule = chapters.DELAYED_MESSAGES
    sent = {"delayed": {"DELAY": "18"}, "timer": {"TIMER_DELAY_SEC": "3600"}, "later": {"DELAY": "17"}}
    for body in ("delayed", "timer"):
        await send(site, _TOPIC, body, of=sent[body])
    await asyncio.sleep(10.5)
    before = len(queue_of(site, _TOPIC))
    site.machine_clock_add((_JUMP_S - 200) * 1_000_000)
    await asyncio.sleep(2)
    site.compare("the messages before their time", before, len(queue_of(site, _TOPIC)))
    site.machine_clock_add(_JUMP_S * 1_000_000)
    await asyncio.sleep((_LOOK_MS + _LATE_MS) / 1000)
    found = sorted(each.body.decode() for each in queue_of(site, _TOPIC)[before:])
    site.compare("the messages after the clock was set", ["delayed", "timer"], found)


async def _clock_back(site: Site) -> None:
    """When the clock is set back, no message is early; the time since the last record may count twice."""
    for after_s, back_s, late_s in ((0, 20, 0), (2, 60, 2), (2, 1, 1)):
        before, wanted = len(queue_of(site, _TOPIC)), []
        for of in ({"DELAY": "16"}, {"TIMER_DELAY_SEC": "16"}):
            wanted.append(f"{of} {after_s} {back_s}")
            await send(site, _TOPIC, wanted[-1], of=of)
        began_s = site.cluster.now_s
        await asyncio.sleep(after_s)
        site.machine_clock_add(-back_s * 1_000_000)
        await asyncio.sleep(began_s + 16 + late_s - 0.01 - site.cluster.now_s)
        site.compare(f"the messages before the time of {wanted}", before, len(queue_of(site, _TOPIC)))
        await asyncio.sleep((10 + _LOOK_MS + _LATE_MS) / 1000)
        found = sorted(each.body.decode() for each in queue_of(site, _TOPIC)[before:])
        site.compare("the messages after it", wanted, found)
        await asyncio.sleep(2 * back_s)


IDLE_WAITS: Final = Inspection("idle waits", idle_waits, {"store": replace(STORE, delay_levels_ms=_LEVELS)})

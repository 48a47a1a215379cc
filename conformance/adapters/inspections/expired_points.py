"""Messages that wait while old segments expire, with more points than messages, and with a damaged record.

See docs/reference/protocol/timers.md, "Points" and "Copies".
"""

import asyncio
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, send
from mqproof.conformance.adapters.inspections.waiting import TIMER_TOPIC
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.disk import Space

_TOPIC: Final = "t"
_BEFORE: Final = 6
_POINT_S: Final = 6
"""Longer than a point waits after a change."""


async def expired_points(site: Site) -> None:
    site.rule = chapters.TIMERS
    await make_topic(site, _TOPIC)
    for number in range(_BEFORE):
        await _send(site, f"before {number}", _POINT_S)
        await asyncio.sleep(3 * _POINT_S)
    await _send(site, "damaged", 4000)
    damaged = queue_of(site, TIMER_TOPIC)[-1]
    await _send(site, "waits", 400)
    disk = site.cluster.machines[MASTER].disk
    disk.room = Space(100, 20)
    at = damaged.commit_offset + damaged.raw.index(damaged.body)
    begin = at // STORE.commit_log_segment_bytes * STORE.commit_log_segment_bytes
    disk.damage(f"/store/commitlog/{begin:020}", at - begin, b"####")
    for _ in range(2):
        for _ in range(4):
            await send(site, _TOPIC, b"x" * 9000)
        await asyncio.sleep(100)
    points, (*_, waits) = queue_of(site, TIMER_TOPIC, 1), queue_of(site, TIMER_TOPIC)
    site.compare("the message that waits", b"waits", waits.body)
    begin = log_of(site)[0].commit_offset
    site.compare("whether the damaged record is deleted", True, begin > damaged.commit_offset)
    is_behind = points[0].queue_offset > waits.queue_offset + 1
    site.compare("whether more points have expired than messages were sent", True, is_behind)
    for is_killed in (True, False):
        await site.restart(killed=is_killed)
        await asyncio.sleep(10)
        site.compare("the messages before its time", 0, _count(site))
    await asyncio.sleep(200)
    site.compare("the deliveries", 1, _count(site))


def _count(site: Site) -> int:
    return [each.body for each in queue_of(site, _TOPIC)].count(b"waits")


async def _send(site: Site, body: str, seconds: int) -> None:
    await send(site, _TOPIC, body, of={"TIMER_DELAY_SEC": str(seconds), "UNIQ_KEY": body.replace(" ", "-")})


EXPIRED_POINTS: Final = Inspection(
    "expired points", expired_points,
    {"store": replace(STORE, file_reserved_ms=60_000, delete_when_hours=())},
)  # fmt: skip

"""Queue entries of delayed messages: the due times that they contain, and damage of them.

See docs/reference/protocol/retries-and-delays.md, "Delayed messages", and storing.md, "Damaged files".
"""

import asyncio
from typing import Final

from mqproof.conformance.adapters.inspections.disk_log import log_of
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.store_damages import LOG, LOG_SEGMENT, QUEUES, SMALL
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, records, send
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_WAITING: Final = f"{QUEUES}/SCHEDULE_TOPIC_XXXX"
_DELAYS_MS: Final = {1: 1000, 2: 180_000, 3: 7_200_000, 4: 345_600_000, 5: 345_600_000}
_LEVEL, _DELAY_S = 3, 10
_ILLEGAL: Final = 13


async def due_times(site: Site) -> None:
    """The third field of an entry is the store time and the delay of the level, which has a unit."""
    site.rule = chapters.CONSUME_QUEUE
    await make_topic(site, "t")
    for text in ("x", "1_0", " 3", "3 ", "\u0663", "1.0", "0x1", "1234567890"):
        await send(site, "t", "refused", of={"DELAY": text}, expects=_ILLEGAL)
    for name in ("at first", "after a start without queues"):
        for level, delay_ms in _DELAYS_MS.items():
            if name == "at first":
                await send(site, "t", f"{level}", of={"DELAY": f"{level}", "TAGS": "tag"})
            record = next(each for each in log_of(site) if each.body == b"%d" % level)
            queue = min(level, 4) - 1
            site.compare(f"the place of level {level}", ("SCHEDULE_TOPIC_XXXX", queue),
                         (record.topic, record.queue_id))  # fmt: skip
            data = site.cluster.machines[MASTER].disk.written(f"{_WAITING}/{queue}/{0:020}")
            entry = data[record.queue_offset * 20 :][:20].ljust(20, b"\0")
            expected = (record.commit_offset, len(record.raw), record.store_ms + delay_ms)
            found = tuple(int.from_bytes(entry[a:b], "big") for a, b in ((0, 8), (8, 12), (12, 20)))
            site.compare(f"the entry of level {level} {name}", expected, found)
        await site.cluster.stop(MASTER)
        disk = site.cluster.machines[MASTER].disk
        for path in disk.files(QUEUES):
            disk.lose(path)
        await site.cluster.start(MASTER)


async def damaged_delays(site: Site) -> None:
    """Damaged entries of delayed messages are repaired; damaged records are left out, and nothing else is."""
    site.rule = chapters.DAMAGED_FILES
    site.watch.judges_answers = False
    await make_topic(site, "t")
    await make_group(site, "g")
    for number, (name, at, data, is_kept) in enumerate((
        ("a due time of 0", 12, bytes(8), True), ("an early due time", 16, bytes(4), True),
        ("a late due time", 12, b"\x01", True), ("a negative due time", 12, b"\xff" * 8, True),
        ("another size", 11, b"\x01", True), ("another place", 7, b"\x77", True),
        ("only zero bytes", 0, bytes(20), True), ("a damaged record", None, b"\x00\x7f", False),
    )):  # fmt: skip
        if site.watch.wrong:
            return
        bodies = [f"{number} {each}".encode() for each in range(3)]
        for body in bodies:
            await send(site, "t", body, of={"DELAY": str(_LEVEL)})
        await asyncio.sleep(2)
        _damage(site, bodies[1], at, data)
        if number % 2 and is_kept:
            await site.restart(killed=True)
        began_s = (_waiting(site, bodies[0]) + _DELAY_S * 1000 - site.now_ms) / 1000
        await asyncio.sleep(began_s - 0.2)
        site.compare(f"what is delivered before its time with {name}", [], await _delivered(site, bodies))
        await asyncio.sleep(2.5)
        expected = bodies if is_kept else bodies[::2]
        site.compare(f"what is delivered with {name}", expected, await _delivered(site, bodies))


def _waiting(site: Site, body: bytes) -> int:
    """Return the store time of the message that waits."""
    return next(each for each in log_of(site) if each.body == body).store_ms


def _damage(site: Site, body: bytes, at: int | None, data: bytes) -> None:
    """Damage the entry of a message that waits, or its record."""
    record = next(each for each in log_of(site) if each.body == body)
    disk = site.cluster.machines[MASTER].disk
    if at is None:
        start = record.commit_offset // LOG_SEGMENT * LOG_SEGMENT
        disk.damage(f"{LOG}/{start:020}", record.commit_offset - start + 88, data)
        return
    file, place = divmod(record.queue_offset, 8)
    disk.damage(f"{_WAITING}/{record.queue_id}/{file * 160:020}", place * 20 + at, data)


async def _delivered(site: Site, bodies: list[bytes]) -> list[bytes]:
    offset, found = 0, list[bytes]()
    while more := await records(site, "t", offset):
        offset += len(more)
        found += [each.body for each in more if each.body in bodies]
    return found


DUE_TIMES: Final = Inspection(
    "due times", due_times, properties="messageDelayLevel=1s 3m 2h 4d\nmappedFileSizeCommitLog=100000\n"
)
DAMAGED_DELAYS: Final = Inspection("damaged delays", damaged_delays, {"store": SMALL})

"""Work that a broker does little by little: the deletion of old segments, and the comparison of idle records.

See docs/reference/protocol/recovery.md, "Expiry", and storing.md, "Damaged files" and "Flush".
"""

import asyncio
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections.disk_log import log_of
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.store_damages import LOG, LOG_SEGMENT, SMALL, alter
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, pull, records, send
from mqproof.conformance.answers.stored_record import StoredRecord
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.clock import local_hour

_HOUR_US: Final = 3_600_000_000
_MINUTES_US: Final = 120_000_000
_RESERVED_MS: Final = 72 * 3_600_000
_BODY_AT: Final = 88


def _begin(site: Site) -> int:
    files = site.cluster.machines[MASTER].disk.files(LOG)
    return int(files[0].rpartition("/")[2]) if files else 0


async def fill_segments(site: Site, segments: int) -> None:
    """Send messages that fill segments of the log, one each."""
    for _ in range(segments):
        await send(site, "t", "x" * (LOG_SEGMENT - 300))


async def old_segments(site: Site) -> None:
    """At most ten segments are deleted at once, by request and at the hour, and none before its time."""
    site.rule = chapters.EXPIRY
    await make_topic(site, "t")
    await make_group(site, "g")
    await fill_segments(site, 34)
    await asyncio.sleep(12)
    for rounds in (1, 2):
        site.machine_clock_add((80 if rounds == 1 else 0) * _HOUR_US)
        await _deleted(site, 10 * rounds)
    await fill_segments(site, 1)
    await asyncio.sleep(12)
    await _deleted(site, 30)
    await _deleted(site, 33)  # the age of the last old one is that of the segment after it
    await _deleted(site, 33)
    await _by_age(site)
    await _by_hour(site)


async def _deleted(site: Site, segments: int) -> None:
    await site.ask("DELETE_EXPIRED_COMMITLOG")
    await asyncio.sleep(0.5)
    site.compare("the begin of the log", segments * LOG_SEGMENT, _begin(site))
    await pull(site, "t", 0, expects=21)
    answer = await site.ask("GET_MIN_OFFSET", topic="t", queueId=0)
    site.compare("the first offset", str(segments), answer.fields["offset"])


async def _by_age(site: Site) -> None:
    """A segment goes when the first record after it has the age, to the millisecond."""
    await fill_segments(site, 2)
    await asyncio.sleep(12)
    begin = _begin(site)
    after = next(each for each in log_of(site) if each.commit_offset >= begin + LOG_SEGMENT)
    for left_ms, segments in ((1, 0), (0, 1)):
        site.machine_clock_add((after.store_ms + _RESERVED_MS - left_ms - site.now_ms) * 1000)
        await site.ask("DELETE_EXPIRED_COMMITLOG")
        await asyncio.sleep(0.5 if segments else 0)
        site.compare(f"the segments that are deleted {left_ms} ms before their time", segments * LOG_SEGMENT,
                     _begin(site) - begin)  # fmt: skip


async def _by_hour(site: Site) -> None:
    """At the hour, one round every 10 s deletes ten segments."""
    await fill_segments(site, 26)
    await asyncio.sleep(12)
    begin = _begin(site)
    site.machine_clock_add((75 + (5 - local_hour(site.now_ms)) % 24) * _HOUR_US)
    while local_hour(site.now_ms) != 5:
        site.machine_clock_add(_HOUR_US)
    await asyncio.sleep(30)
    site.compare("the deleted segments at another hour", 0, _begin(site) - begin)
    site.machine_clock_add(23 * _HOUR_US)
    for expected in (10, 20):
        await asyncio.sleep(10)
        site.compare("the deleted segments at the hour", expected * LOG_SEGMENT, _begin(site) - begin)
    site.compare("the last message", 1, len(await records(site, "t", await _last(site))))
    await send(site, "t", "later")


async def _last(site: Site) -> int:
    return int((await site.ask("GET_MAX_OFFSET", topic="t", queueId=0)).fields["offset"]) - 1


async def needed_segments(site: Site) -> None:
    """The segment of the first delayed message is kept, and what follows it; nothing before it is."""
    site.rule = chapters.EXPIRY
    await make_topic(site, "t")
    for before in (0, 1, 0):
        begin = _begin(site)
        await fill_segments(site, 3)
        for _ in range(before):
            await send(site, "t", "y" * 1500)
        await send(site, "t", "z" * 500, of={"DELAY": "17"})
        await fill_segments(site, 4)
        await asyncio.sleep(12)
        site.machine_clock_add(_MINUTES_US)
        for _ in range(2):
            await site.ask("DELETE_EXPIRED_COMMITLOG")
            await asyncio.sleep(1)
            (waiting,) = [each for each in log_of(site) if each.topic == "SCHEDULE_TOPIC_XXXX"]
            expected = waiting.commit_offset // LOG_SEGMENT * LOG_SEGMENT
            what = f"while a message at {waiting.commit_offset - expected} waits"
            site.compare(f"the begin of the log {what}", expected, _begin(site))
            site.compare(f"whether there was something to delete {what}", True, expected > begin)
            await site.restart(killed=True)
        site.machine_clock_add(_HOUR_US)
        await asyncio.sleep(30)  # it is delivered, and the progress is written
    site.compare("the delayed messages", 0, sum(each.topic != "t" for each in log_of(site)[-4:]))
    site.compare("the last message", 1, len(await records(site, "t", await _last(site))))


async def slow_scrub(site: Site) -> None:
    """The scrub begins a minute after the start, keeps to its rate, and begins again after its pause."""
    site.rule = chapters.DAMAGED_FILES
    await make_topic(site, "t", 2)
    for number in range(24):
        await send(site, "t", "x" * 900, number % 2)
    size = len(log_of(site)[0].raw)
    kept = [each for each in log_of(site) if each.topic == "t"]
    await asyncio.sleep(12)
    began_s = site.cluster.now_s
    await site.restart()
    await asyncio.sleep(3)
    pass_s = 24 * size / _RATE
    for number in range(3):
        first_s = began_s + 60 + number * (_PAUSE_S + pass_s)
        first = _of_queue(kept, 0)[0]
        last = _of_queue(kept, 1)[-1]
        for record in (first, last):
            _break(site, record)
        await _until(site, first_s - 2)
        site.compare(f"the idle records before pass {number}", (False, False), _whole(site, first, last))
        await _until(site, first_s + pass_s / 2)
        site.compare(f"the last record in the middle of pass {number}", (False,), _whole(site, last))
        await _until(site, first_s + pass_s + 8)
        site.compare(f"the idle records after pass {number}", (True, True), _whole(site, first, last))
    site.compare("the log of the slave", log_of(site), log_of(site, SLAVE))


def _of_queue(kept: list[StoredRecord], queue: int) -> list[StoredRecord]:
    return [each for each in kept if each.queue_id == queue]


def _break(site: Site, record: StoredRecord) -> None:
    alter(site.cluster.machines[MASTER].disk, record, _BODY_AT, bytes([record.raw[_BODY_AT] ^ 1]))


def _whole(site: Site, *records_: StoredRecord) -> tuple[bool, ...]:
    disk = site.cluster.machines[MASTER].disk
    found = []
    for record in records_:
        at = record.commit_offset % LOG_SEGMENT
        data = disk.written(f"{LOG}/{record.commit_offset - at:020}")
        found.append(data[at : at + len(record.raw)] == record.raw)
    return tuple(found)


async def _until(site: Site, at_s: float) -> None:
    await asyncio.sleep(max(0, at_s - site.cluster.now_s))


async def no_scrub(site: Site) -> None:
    """Without the scrub, an idle record stays damaged until a client reads it."""
    site.rule = chapters.DAMAGED_FILES
    site.watch.judges_answers = False  # a message is left out until it is repaired
    await make_topic(site, "t", 1)
    for _ in range(3):
        await send(site, "t", "x" * 90)
    await asyncio.sleep(12)
    record = next(each for each in log_of(site) if each.topic == "t")
    _break(site, record)
    await asyncio.sleep(200)
    site.compare("an idle record", (False,), _whole(site, record))
    await pull(site, "t", 0, maxMsgNums=1, expects=None)
    await asyncio.sleep(8)
    site.compare("a record that was read", (True,), _whole(site, record))


async def sends_at_once(site: Site) -> None:
    """Under ASYNC_FLUSH, sends do not wait for each other: each is stored, however few may wait."""
    site.rule = chapters.SEND_REQUESTS
    await make_topic(site, "t")
    for wait in ("true", "false"):
        fields: dict[str, Any] = {
            "a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms, "h": 0,
            "i": f"WAIT\x01{wait}\x02", "j": 0, "k": False, "m": False,
        }  # fmt: skip
        texts = {key: written(value) for key, value in fields.items()}
        lines = [await site.client(f"sender {number}") for number in range(6)]
        waiting = [line.put(CODES["SEND_MESSAGE_V2"], texts, b"m") for line in lines]
        site.compare("the answers", [0] * 6, [(await each).code for each in waiting])
    site.compare("the messages", 12, len(await records(site, "t")))


_RATE: Final = 2000
_PAUSE_S: Final = 100
_SCRUBBED: Final = replace(SMALL, scrub_bytes_per_s=_RATE, scrub_interval_ms=_PAUSE_S * 1000)
_PAIR: Final = ReplicationConfig(Role.ASYNC_MASTER)
OLD_SEGMENTS: Final = Inspection(
    "old segments", old_segments, {"store": replace(SMALL, file_reserved_ms=_RESERVED_MS)}
)
NEEDED_SEGMENTS: Final = Inspection(
    "needed segments", needed_segments,
    {"store": replace(SMALL, file_reserved_ms=60_000, delete_when_hours=())},
)  # fmt: skip
SLOW_SCRUB: Final = Inspection("slow scrub", slow_scrub, {"store": _SCRUBBED}, replication=_PAIR)
NO_SCRUB: Final = Inspection(
    "no scrub", no_scrub, {"store": replace(SMALL, scrub_enabled=False)}, replication=_PAIR
)
SENDS_AT_ONCE: Final = Inspection("sends at once", sends_at_once, {"sends_max": 1})

"""Bounds of a store: clocks that are set back, ends of segments, disks that fail at a start, ages, lengths.

See docs/reference/protocol/storing.md, "Commit log", and recovery.md, "Expiry".
"""

import asyncio
import errno
from dataclasses import replace
from typing import Final

from mqproof.conformance.adapters.inspections.disk_log import log_of, queue_of
from mqproof.conformance.adapters.inspections.flushed_files import colliding_key
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.slow_upkeep import fill_segments
from mqproof.conformance.adapters.inspections.stopped_files import compare_files
from mqproof.conformance.adapters.inspections.store_damages import (
    CHECKPOINT,
    INDEX,
    LOG,
    LOG_SEGMENT,
    QUEUES,
    SMALL,
    lose,
)
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    make_group,
    make_topic,
    pull,
    records,
    send,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.clock import local_hour
from mqproof.impl.runtime.disk import Space
from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.store.errors import StoreError

_HOUR_US: Final = 3_600_000_000
_ILLEGAL, _FULL = 13, 14


# -- times


async def clock_set_back(site: Site) -> None:
    """Store times continue from the last record at the pace of a clock that was set back."""
    site.rule = chapters.COMMIT_LOG
    site.watch.judges_answers = False  # the born time is later than the store time
    await make_topic(site, "t")
    await make_group(site, "g")
    await send(site, "t", "0")
    last = log_of(site)[-1].store_ms
    for set_back_s in (3600, 10, 1):
        if set_back_s == 3600:
            await site.cluster.stop(MASTER)
            site.machine_clock_add(-set_back_s * 1_000_000)
            await site.cluster.start(MASTER)
            await asyncio.sleep(1)
        else:
            site.machine_clock_add(-set_back_s * 1_000_000)
        last = await _paced(site, last, set_back_s)
        site.machine_clock_add((set_back_s + 60) * 1_000_000)
        await send(site, "t", "now")
        times = site.now_ms, log_of(site)[-1].store_ms
        site.compare(f"the store time after {set_back_s} s are over", *times)
        last = times[1]


async def _paced(site: Site, last: int, set_back_s: int) -> int:
    """Send while the clock is behind; return the last store time."""
    before, times = site.now_ms, list[int]()
    for pause_s in (0.1, 0.25, 0.003):
        await send(site, "t", f"{pause_s}")
        times.append(log_of(site)[-1].store_ms - site.now_ms)
        await asyncio.sleep(pause_s)
    what = f"after {set_back_s} s back"
    site.compare(f"the pace {what}", times[:1] * 3, times)
    first = times[0] + before
    site.compare(f"whether the first time {what} follows the last, {first - last} ms later", True,
                 last <= first <= last + 1100)  # fmt: skip
    if set_back_s == 1:
        return log_of(site)[-1].store_ms
    await send(site, "t", "delayed", of={"DELAY": "1"})
    for wait_s, count in ((0.8, 0), (1.2, 1)):
        await asyncio.sleep(wait_s)
        found = [each for each in queue_of(site, "t")[-1:] if each.body == b"delayed"]
        site.compare(f"the delayed messages {what}, {wait_s} s later", count, len(found))
    return log_of(site)[-1].store_ms


# -- sizes


async def segment_ends(site: Site) -> None:
    """A record and 8 more bytes fit into the segment, or it begins the next one, after a filler."""
    site.rule = chapters.COMMIT_LOG
    await make_topic(site, "t")
    await make_group(site, "g")
    await send(site, "t", "0")
    (record,) = log_of(site)
    more = len(record.raw) - 1
    place = len(record.raw)
    for rest in (9, 8, 7, 1, 0, 8 + more, 7 + more):
        left = LOG_SEGMENT - place % LOG_SEGMENT
        if left < LOG_SEGMENT // 2:
            place = await _placed(site, place, LOG_SEGMENT // 3, more)
            left = LOG_SEGMENT - place % LOG_SEGMENT
        place = await _placed(site, place, left - rest - more, more)
        place = await _placed(site, place, 0, more)
    most = LOG_SEGMENT - 8 - more
    place = await _placed(site, place, most, more)
    await send(site, "t", b"x" * (most + 1), expects=_ILLEGAL)
    half = most // 2 - more // 2
    for sizes, code in (((half, most - more - half), 0), ((half, most - more - half + 1), _ILLEGAL)):
        parts = batch([(b"x" * size, 0, {}) for size in sizes])
        answer = await send(site, "t", parts, name="SEND_BATCH_MESSAGE", expects=code)
        if not code:
            place = _after_filler(place, sum(sizes) + 2 * more)
            first = int(answer.fields["msgId"].split(",")[0][-16:], 16)
            site.compare("the place of the largest batch", place, first)
            place += sum(sizes) + 2 * more
    place = await _placed(site, place, 0, more)
    expected = log_of(site)
    await site.cluster.stop(MASTER)
    compare_files(site, "after full segments", SMALL)
    lose(site.cluster.machines[MASTER].disk, QUEUES)
    await site.cluster.start(MASTER)
    found = list[bytes]()
    while more_records := await records(site, "t", len(found)):
        found += [each.raw for each in more_records]
    site.compare("whether all messages are there", True, [each.raw for each in expected] == found)


async def _placed(site: Site, place: int, size: int, more: int) -> int:
    """Send a body of that size, compare its place, and return the place after it."""
    answer = await send(site, "t", b"x" * size)
    expected = _after_filler(place, size + more)
    found = int(answer.fields["msgId"][-16:], 16)
    site.compare(f"the place of {size + more} bytes behind {place}", expected, found)
    return expected + size + more


def _after_filler(place: int, size: int) -> int:
    left = LOG_SEGMENT - place % LOG_SEGMENT
    return place if size + 8 <= left else place + left


async def many_bytes(site: Site) -> None:
    """A query reads at most 32 MiB of records that only have the hash of its key."""
    site.rule = chapters.KEY_INDEX
    await make_topic(site, "t")
    await send(site, "t", "wanted", of={"KEYS": colliding_key(0)})
    mebibyte = 1 << 20
    sizes = [4 * mebibyte] * 7 + [7 * mebibyte // 2, mebibyte // 4, mebibyte // 2]
    for number, size in enumerate(sizes, 1):
        await send(site, "t", b"x" * size, of={"KEYS": colliding_key(number)})
        if number >= 7:
            is_found = sum(sizes[:number]) < 32 * mebibyte
            answer = await site.ask(
                "QUERY_MESSAGE", expects=0 if is_found else 22, topic="t", key=colliding_key(0), maxNum=32,
                beginTimestamp=0, endTimestamp=1 << 60,
            )  # fmt: skip
            found = [each.body for each in read_records(answer.body)] if not answer.code else []
            site.compare(f"the messages behind {number} others", [b"wanted"] * is_found, found)


_V1, _V2 = 0xDAA320A7, 0xDAA320AB
_CLUSTER: Final = "c" * 116


async def topic_lengths(site: Site) -> None:
    """A topic of up to 127 bytes has a length of one byte in its records, a longer one of two."""
    site.rule = chapters.LOG_RECORD
    await make_group(site, "g")
    topics = {"a" * 126: _V1, "b" * 127: _V1, f"{_CLUSTER}_REPLY_TOPIC": _V2}
    for topic in topics:
        if not topic.startswith(_CLUSTER):
            await make_topic(site, topic)
        await send(site, topic, topic[:1], of={"KEYS": "k", "TAGS": "tag", "a": "1"})
    for name in ("a running broker", "a start without queues"):
        for topic, magic in topics.items():
            (found,) = await records(site, topic)
            site.compare(f"the version of {len(topic)} bytes at {name}", magic,
                         int.from_bytes(found.raw[4:8], "big"))  # fmt: skip
            site.compare(f"the topic and body at {name}", (topic, topic[:1].encode()),
                         (found.topic, found.body))  # fmt: skip
            for text, kind, code in (
                ("tag", "TAG", 0), ("other", "TAG", 20), ("a = 1", "SQL92", 0), ("a = 2", "SQL92", 20),
            ):  # fmt: skip
                await pull(site, topic, expects=code, subscription=text, expressionType=kind)
            await site.ask(
                "QUERY_MESSAGE", topic=topic, key="k", maxNum=1, beginTimestamp=0, endTimestamp=1 << 60
            )
        await site.cluster.stop(MASTER)
        lose(site.cluster.machines[MASTER].disk, QUEUES)
        await site.cluster.start(MASTER)


# -- starts


_FOLDERS: Final = (LOG, QUEUES, INDEX, CHECKPOINT, "/store/abort")
_READ: Final = "read"


async def failing_starts(site: Site) -> None:
    """Let each kind of operation fail at a start, for each folder: the next start works and loses nothing."""
    site.rule = chapters.RECOVERY
    site.watch.judges_answers = False
    await make_topic(site, "t")
    await make_group(site, "g")
    for number in range(25):
        await send(site, "t", f"{number:02}" * 100, of={"KEYS": f"k{number}"})
    await asyncio.sleep(12)
    await send(site, "t", "25", of={"KEYS": "k25"})
    site.cluster.kill(MASTER)
    lose(site.cluster.machines[MASTER].disk, QUEUES)
    whole = site.cluster.machines[MASTER].disk
    for kind, folder in await _operations(site):
        if not site.watch.wrong:
            site.replace_disk(whole.copy())
            site.watch.judges_answers = False
            await _fails(site, kind, folder)
    site.replace_disk(whole.copy())


async def _operations(site: Site) -> list[tuple[str, str]]:
    """Return the kinds of operations of a start, each with its folder."""
    disk = site.cluster.machines[MASTER].disk.copy()
    site.replace_disk(disk)
    found: dict[tuple[str, str], None] = {}
    disk.on_step = lambda step: found.setdefault((step.kind, _folder(step.path)))
    disk.on_read = lambda path: found.setdefault((_READ, _folder(path)))
    await site.cluster.start(MASTER)
    disk.on_step = disk.on_read = None
    await site.cluster.stop(MASTER)
    return [each for each in found if each[1]]


def _folder(path: str) -> str:
    return next((folder for folder in _FOLDERS if path.startswith(folder)), "")


async def _fails(site: Site, kind: str, folder: str) -> None:
    disk = site.cluster.machines[MASTER].disk

    def fail(step: Step) -> None:
        if step.kind == kind and _folder(step.path) == folder:
            raise OSError(errno.EIO, "the disk is broken", step.path)

    def fail_read(path: str) -> None:
        if kind == _READ and _folder(path) == folder:
            raise OSError(errno.EIO, "the disk is broken", path)

    disk.on_step, disk.on_read = fail, fail_read
    what = f"a start with a {kind} of {folder} that fails"
    for attempt in (1, 2):
        try:
            await site.cluster.start(MASTER)
        except StoreError as error:
            is_said = "the disk is broken" in str(error)
            site.compare(f"{what}: whether attempt {attempt} says why", True, is_said, str(error))
        else:
            site.report(f"{what}: attempt {attempt} succeeds")
            return
    disk.on_step, disk.on_read = None, None
    await site.cluster.start(MASTER)
    found = list[bytes]()
    while more := await records(site, "t", len(found)):
        found += [each.body[:2] for each in more]
    site.compare(f"the messages after {what}", [b"%02d" % number for number in range(26)], found)
    await send(site, "t", "later")
    await site.cluster.stop(MASTER)
    compare_files(site, what, SMALL)


# -- ages


async def kept_segments(site: Site) -> None:
    """A segment is kept while the one after it is young or not durable, at other hours, and if not forced."""
    site.rule = chapters.EXPIRY
    await make_topic(site, "t")
    await make_group(site, "g")
    await fill_segments(site, 8)
    await asyncio.sleep(12)
    disk = site.cluster.machines[MASTER].disk
    for percent, code in ((86, 0), (90, 0), (91, _FULL)):
        disk.room = Space(1000, 1000 - 10 * percent)
        await asyncio.sleep(25)
        await _begins(site, 0, f"while {percent} % of the disk are used, and nothing is forced")
        answer = await send(site, "t", expects=code)
        site.compare("whether the refusal says why", bool(code), "full" in (answer.remark or ""))
        site.watch.wrong = [each for each in site.watch.wrong if "an error of the server" not in each.text]
    disk.room = Space(1000, 500)
    await asyncio.sleep(25)
    late = next(each for each in log_of(site) if each.commit_offset == 4 * LOG_SEGMENT)
    time = (late.store_ms + 200 * 3_600_000).to_bytes(8, "big")
    path = f"{LOG}/{4 * LOG_SEGMENT:020}"
    disk.damage(path, 56, time)
    _to_hour(site, 12, days=4)
    await _deleted(site, 3, "before a segment with a late time")
    disk.damage(path, 56, late.store_ms.to_bytes(8, "big"))
    _to_hour(site, 6)
    await asyncio.sleep(25)
    await _begins(site, 3, "at another hour")
    _to_hour(site, 7)
    await asyncio.sleep(25)
    await _begins(site, 8, "at the second hour")
    await fill_segments(site, 3)
    _to_hour(site, 12, days=4)
    await _deleted(site, 8, "while the segments after it are not durable")
    await asyncio.sleep(12)
    await _deleted(site, 11, "when they are durable")


def _to_hour(site: Site, hour: int, days: int = 0) -> None:
    site.machine_clock_add((24 * days + (hour - local_hour(site.now_ms)) % 24) * _HOUR_US)


async def _deleted(site: Site, segments: int, when: str) -> None:
    await site.ask("DELETE_EXPIRED_COMMITLOG")
    await asyncio.sleep(0.5)
    await _begins(site, segments, when)


async def _begins(site: Site, segments: int, when: str) -> None:
    begin = int(site.cluster.machines[MASTER].disk.files(LOG)[0].rpartition("/")[2])
    site.compare(f"the segments deleted {when}", segments, begin // LOG_SEGMENT)
    answer = await site.ask("GET_MIN_OFFSET", topic="t", queueId=0)
    first = next(each for each in log_of(site) if each.commit_offset >= begin)
    site.compare(f"the first offset {when}", str(first.queue_offset), answer.fields["offset"])


_UNFORCED: Final = replace(SMALL, clean_forcibly=False, delete_when_hours=(4, 7))
CLOCK_SET_BACK: Final = Inspection("clock set back", clock_set_back)
SEGMENT_ENDS: Final = Inspection("ends of segments", segment_ends, {"store": SMALL})
MANY_BYTES: Final = Inspection(
    "many bytes with one hash", many_bytes, {"store": replace(STORE, commit_log_segment_bytes=1 << 25)}
)
TOPIC_LENGTHS: Final = Inspection(
    "lengths of topics", topic_lengths, {"cluster": _CLUSTER, "property_filter": True}
)
FAILING_STARTS: Final = Inspection("failing starts", failing_starts, {"store": SMALL})
KEPT_SEGMENTS: Final = Inspection("kept segments", kept_segments, {"store": _UNFORCED})

"""A broker that starts on a log that an inspection wrote, with every form of record, and damaged ones.

See docs/reference/protocol/storing.md, "Commit log record" and "Damaged files".
"""

import asyncio
import json
import struct
import zlib
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.store_damages import CHECKPOINT, INDEX, LOG, QUEUES, lose
from mqproof.conformance.adapters.inspections.traffic import make_group, pull, send
from mqproof.conformance.adapters.inspections.written_records import (
    Form,
    WrittenLog,
    added,
    exchanged,
    replaced,
    write_log,
)
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters

SEGMENT: Final = 1 << 17
_STORE: Final = replace(STORE, commit_log_segment_bytes=SEGMENT)
_V6, _OTHER_V6 = "fd00::1:2", "fd00::1:3"
_T127, _T128, _T255 = "a" * 127, "b" * 128, "c" * 255
_TAGGED: Final = b"TAGS\x01tag1\x02"


def _text(number: int, more: bytes = b"") -> bytes:
    return b"a\x01%d\x02KEYS\x01k%d all\x02" % (number, number) + more


def _padded(size: int) -> bytes:
    """Return properties of that size."""
    text = _text(size)
    return text + b"p\x01" + b"v" * (size - len(text) - 3) + b"\x02"


FORMS: Final = (
    Form("t", properties=_text(0, _TAGGED)),
    Form("t", b"", _text(1, b"XTAGS\x01tag1\x02")),
    Form("t", properties=_text(2, b"XTAGS\x01tag2\x02TAGS\x01tag1\x02")),
    Form("t", properties=b"TAGS\x01tag1\x02" + _text(3)),
    Form("t", properties=_text(4, b"TAGS\x01tag1")),
    Form("t", properties=_text(5, b"TAGS\x01tag10\x02")),
    Form("t", b"\0" * 40, b""),
    Form("t", b"", b""),
    *(Form("t", b"x" * size, _padded(size)) for size in (100, 254, 255, 256, 257, 258, 511, 512, 513)),
    Form("t", b"x", _padded(32_767)),
    Form("t", b"x" * 70_000, _text(70, _TAGGED)),
    Form("t", b"v6", _text(11, _TAGGED), born=_V6),
    Form("t", b"v6", _text(12, _TAGGED), store=_V6),
    Form("t", b"v6", _text(13, _TAGGED), born=_V6, store=_OTHER_V6),
    Form("t", b"v2", _text(14, _TAGGED), is_second_version=True),
    Form("t", b"v2", _text(15, _TAGGED), born=_V6, store=_OTHER_V6, is_second_version=True),
    Form("t", b"half", _text(16), queue=1, system=4, prepared=5),
    Form("t", b"committed", _text(17, _TAGGED), queue=1, system=8, prepared=77),
    Form("t", b"rolled back", _text(18), queue=1, system=12, prepared=99),
    Form("t", b"again", _text(19), queue=1, flag=-3, reconsumed=16, system=1),
    Form("t", "tägs".encode(), _text(20, "TAGS\x01tägs\x02".encode()), queue=1),
    *(Form(topic, topic[:1].encode() * 9, _text(number, _TAGGED), queue=queue)
      for number, topic in enumerate((_T127, _T128, _T255), 21) for queue in (0, 5)),
)  # fmt: skip
_QUEUED: Final = (("t", 0), ("t", 1), *((name, queue) for name in (_T127, _T128, _T255) for queue in (0, 5)))


def _is_unqueued(record: StoredRecord) -> bool:
    return record.system_flag & 12 in (4, 12)


def _queue_of(log: WrittenLog, topic: str, queue: int) -> list[StoredRecord]:
    return [each for each in log.of_queue(topic, queue) if not _is_unqueued(each)]


def _as_numbered(forms: Collection[Form], log: WrittenLog) -> WrittenLog:
    """Return the log in which records without a queue offset have offset 0, and no other has a gap."""
    ends: dict[tuple[str, int], int] = {}
    data, records = bytearray(log.data), list[StoredRecord]()
    for _, record in zip(forms, log.records, strict=True):
        key = record.topic, record.queue_id
        offset = 0 if _is_unqueued(record) else ends.get(key, 0)
        ends[key] = ends.get(key, 0) + (not _is_unqueued(record))
        at = record.commit_offset - log.records[0].commit_offset
        data[at + 20 : at + 28] = offset.to_bytes(8, "big")
        records += read_records(bytes(data[at : at + len(record.raw)]))
    return WrittenLog(bytes(data), tuple(records))


async def start_on(site: Site, log: WrittenLog, checkpoint: bytes = b"", segment: int = SEGMENT) -> None:
    """Stop the broker, and start it with this log and nothing else but the topics."""
    await make_group(site, "g")
    await site.cluster.stop(MASTER)
    site.watch.judges_answers = False  # the records were not sent by a client, and have other hosts
    disk = site.cluster.machines[MASTER].disk
    for folder in (LOG, QUEUES, INDEX):
        lose(disk, folder)
    topics = {
        name: {"topicName": name, "readQueueNums": 8, "writeQueueNums": 8, "perm": 6}
        for name in ("t", _T127, _T128, _T255)
    }
    for path in disk.files("/store/config"):
        if "topics.json" in path:
            disk.lose(path)
    table = {"dataVersion": {"counter": 1, "timestamp": site.now_ms}, "topicConfigTable": topics}
    site.write_file(MASTER, "/store/config/topics.json", json.dumps(table))
    process = disk.process()
    for at in range(0, len(log.data), segment):
        file = process.create(f"{LOG}/{at:020}", segment)
        file.write(0, log.data[at : at + segment])
        file.sync()
    process.sync_directory(LOG)
    disk.lose(CHECKPOINT)
    if checkpoint:
        file = process.create(CHECKPOINT, 4096)
        file.write(0, checkpoint)
        file.sync()
        process.sync_directory("/store")
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)


async def _pulled(site: Site, topic: str, queue: int, **more: Any) -> list[bytes]:
    offset, found = 0, list[bytes]()
    for _ in range(30):
        answer = await pull(site, topic, offset, queue, expects=None, **more)
        if not answer.code:
            found += [each.raw for each in read_records(answer.body)]
        elif answer.code != _AGAIN:
            return found
        offset = int(answer.fields["nextBeginOffset"])
    site.report(f"the pulls of {topic[:9]} {queue} do not end")
    return found


_AGAIN: Final = 20


async def _same(site: Site, name: str, log: WrittenLog) -> None:
    """Compare what clients see of each queue with the records that were written."""
    for topic, queue in _QUEUED:
        expected = _queue_of(log, topic, queue)
        what = f"{name}, {topic[:9]} {queue}"
        for answer, end in (("GET_MIN_OFFSET", 0), ("GET_MAX_OFFSET", len(expected))):
            shown = await site.ask(answer, topic=topic, queueId=queue)
            site.compare(f"{answer} of {what}", str(end), shown.fields["offset"])
        for subscription, kind, chosen in (
            ("*", "TAG", expected),
            ("tag1", "TAG", [each for each in expected if each.properties.get("TAGS") == "tag1"]),
            ("tägs", "TAG", [each for each in expected if each.properties.get("TAGS") == "tägs"]),
            ("a > 12", "SQL92", [each for each in expected if int(each.properties.get("a", 0)) > 12]),
        ):
            found = await _pulled(site, topic, queue, subscription=subscription, expressionType=kind)
            _compare_raw(site, f"{subscription} of {what}", chosen, found)
        for record in expected:
            await _searched(site, what, record)
    for record in log.records:
        await _viewed(site, name, record)


def _compare_raw(site: Site, what: str, expected: list[StoredRecord], found: list[bytes]) -> None:
    offsets = [int.from_bytes(raw[20:28], "big") for raw in found]
    site.compare(f"the offsets with {what}", [each.queue_offset for each in expected], offsets)
    site.compare(f"whether {what} is whole", True, [each.raw for each in expected] == found)


async def _searched(site: Site, what: str, record: StoredRecord) -> None:
    """The record is the first one at or after its time, and the next one is after it."""
    for later in (0, 1):
        answer = await site.ask(
            "SEARCH_OFFSET_BY_TIMESTAMP", topic=record.topic, queueId=record.queue_id,
            timestamp=record.store_ms - later,
        )  # fmt: skip
        found = int(answer.fields["offset"])
        is_there = found == record.queue_offset if not later else found <= record.queue_offset
        site.compare(f"whether the time of {record.queue_offset} of {what} finds it: {found}", True, is_there)


async def _viewed(site: Site, name: str, record: StoredRecord) -> None:
    answer = await site.ask("VIEW_MESSAGE_BY_ID", offset=record.commit_offset)
    site.compare(f"{name}: the record at {record.commit_offset}", True, answer.body == record.raw)
    for key in record.properties.get("KEYS", "").split(" ")[:1]:
        is_found = bool(key) and record.system_flag & 12 != 12
        answer = await site.ask(
            "QUERY_MESSAGE", expects=0 if is_found else None, topic=record.topic, key=key or "none",
            maxNum=32, beginTimestamp=0, endTimestamp=1 << 60,
        )  # fmt: skip
        found = [each.raw for each in read_records(answer.body)] if not answer.code else []
        site.compare(f"{name}: whether {key} finds its record", is_found, record.raw in found)


async def written_log(site: Site) -> None:
    """A log without any other file, from its first or from a later segment on: every form is delivered."""
    site.rule = chapters.LOG_RECORD
    log = _as_numbered(FORMS, write_log(FORMS, SEGMENT, 0, site.now_ms - 60_000))
    await start_on(site, log)
    await _same(site, "a written log", log)
    for topic, queue in _QUEUED[:4]:
        expected = str(len(_queue_of(log, topic, queue)))
        answer = await send(site, topic, "later", queue)
        site.compare(f"the next offset of {topic[:9]} {queue}", expected, answer.fields["queueOffset"])


async def damaged_log(site: Site) -> None:
    """Bytes that are no record lie between records that the checkpoint counts: only these are left out."""
    site.rule = chapters.DAMAGED_FILES
    alterations = _alterations()
    forms = [replace(_PLAIN, properties=_text(number, _TAGGED)) for number in range(len(alterations) + 1)]
    log = write_log(forms, SEGMENT, 0, site.now_ms - 60_000, [alter for _, alter in alterations])
    await start_on(site, log, _checkpoint(len(log.data), len(forms)))
    expected = log.of_queue("t")
    for subscription in ("*", "tag1"):
        found = await _pulled(site, "t", 0, subscription=subscription)
        offsets = {int.from_bytes(raw[20:28], "big") for raw in found}
        for number, (name, _) in enumerate(alterations):
            site.compare(f"whether the record before {name} is there", True, number in offsets)
        _compare_raw(site, f"{subscription} beside damage", expected, found)
    for record in expected:
        await _viewed(site, "beside damage", record)
    answer = await send(site, "t", "later")
    site.compare("the offset of a later message", str(len(expected)), answer.fields["queueOffset"])


async def searched_log(site: Site) -> None:
    """Between records lie long stretches that are no record, some of them up to the end of a segment."""
    site.rule = chapters.DAMAGED_FILES
    data, records = bytearray(), list[StoredRecord]()
    for number, size in enumerate((0, *_STRETCHES)):
        to_end = number % 12 == 0 and number > 0
        if to_end:
            size = _LONG_SEGMENT - len(data) % _LONG_SEGMENT
        data += (bytes if number % 2 else _garbage)(size)
        form = replace(_PLAIN, properties=_text(number, _TAGGED))
        raw = form.written(number, len(data), site.now_ms + number)
        data += raw
        records += read_records(raw)
    log = WrittenLog(bytes(data), tuple(records))
    await start_on(site, log, _checkpoint(len(data), len(records)), _LONG_SEGMENT)
    _compare_raw(site, "* between stretches", records, await _pulled(site, "t", 0))
    answer = await send(site, "t", "later")
    site.compare("the offset of a later message", str(len(records)), answer.fields["queueOffset"])


_LONG_SEGMENT: Final = 1 << 20
_STRETCHES: Final = (*range(65_536 - 16, 65_536 + 8), 1, 7, 8, 9, 91, 131_072, 131_064, 200_000)
"""Sizes around the portion in which a start searches."""


def _garbage(size: int) -> bytes:
    return b"\x5a" * size


async def visited_log(site: Site) -> None:
    """One read examines 800 entries, however few a filter selects, and ends with a file of the queue."""
    site.rule = chapters.GET_STATUSES
    chosen = {0, 3, 799, 800, 801, 1600, 1601, 1699}
    forms = [
        Form("t", b"", b"a\x011\x02TAGS\x01one\x02" if number in chosen else b"a\x010\x02TAGS\x01other\x02")
        for number in range(_VISITED)
    ]
    await start_on(site, write_log(forms, _LONG_SEGMENT, 0, site.now_ms - 60_000), b"", _LONG_SEGMENT)
    pulls = [(offset, 32) for offset in (0, 1, 4, 800, 801, 802, 1601)]
    for text, kind in (("one", "TAG"), ("one || none", "TAG"), ("a > 0", "SQL92")):
        for offset, most in (*pulls, (0, 1), (0, 2)):
            end = min(offset + _READ, _VISITED, offset - offset % _FILE + _FILE)
            inside = sorted(each for each in chosen if offset <= each < end)
            if len(inside) > most:
                inside, end = inside[:most], inside[most]
            answer = await pull(
                site, "t", offset, expects=0 if inside else 20, maxMsgNums=most, subscription=text,
                expressionType=kind,
            )  # fmt: skip
            found = [each.queue_offset for each in read_records(answer.body)] if not answer.code else []
            what = f"{text} from {offset}, at most {most}"
            site.compare(f"the messages with {what}", inside, found)
            if kind == "TAG":
                site.compare(f"the next offset with {what}", str(end), answer.fields["nextBeginOffset"])


_VISITED, _READ, _FILE = 1700, 800, 1000


async def altered_log(site: Site) -> None:
    """Alter a durable record of a running broker in each way; it is left out, and the others are not."""
    site.rule = chapters.DAMAGED_FILES
    forms = [
        replace(_PLAIN, properties=_text(number, _TAGGED), is_second_version=number == 2)
        for number in range(5)
    ]
    log = write_log(forms, SEGMENT, 0, site.now_ms - 60_000)
    await start_on(site, log)
    disk = site.cluster.machines[MASTER].disk
    expected = log.of_queue("t")
    path = disk.files(LOG)[0]
    for record in (expected[2], expected[3]):
        rest = [each for each in expected if each is not record]
        for name, alter in _alterations(is_second=record is expected[2]):
            altered = alter(record.raw)
            if len(altered) != len(record.raw) or name in _UNSEEN:
                continue
            disk.damage(path, record.commit_offset, altered)
            for subscription in ("*", "tag1", "tag2"):
                found = await _pulled(site, "t", 0, subscription=subscription)
                what = f"{subscription} with {name} of {record.queue_offset}"
                _compare_raw(site, what, rest if subscription != "tag2" else [], found)
            await site.ask("VIEW_MESSAGE_BY_ID", expects=1, offset=record.commit_offset)
            disk.damage(path, record.commit_offset, record.raw)
            _compare_raw(site, f"* after {name}", expected, await _pulled(site, "t", 0))
    end = len(log.data)
    disk.damage(path, end, _PLAIN.written(len(forms), end, site.now_ms))
    await site.ask("VIEW_MESSAGE_BY_ID", expects=1, offset=end)
    await send(site, "t", "later")
    (later,) = read_records((await site.ask("VIEW_MESSAGE_BY_ID", offset=end)).body)
    site.compare("the message at the former end", b"later", later.body)


_PLAIN: Final = Form("t", b"a body of some bytes")
_UNSEEN: Final = ("the tags", "a dot", "two dots")
"""Alterations that a read does not see, or that are those of another topic."""


def _alterations(*, is_second: bool = False) -> list[tuple[str, Callable[[bytes], bytes]]]:
    """Return changes of a record after which the bytes are not a record of the topic `t`."""
    topic_at = 88 + len(_PLAIN.body)
    name_at = topic_at + (2 if is_second else 1)
    length = topic_at + (1 if is_second else 0)
    return [
        ("size 0", replaced(0, bytes(4))),
        ("a size of 91", replaced(0, (91).to_bytes(4, "big"))),
        ("a smaller size", added(0, -1)),
        ("a larger size", added(0, 1)),
        ("a negative size", replaced(0, b"\xff")),
        ("another magic", added(4, 1)),
        ("no magic", replaced(4, bytes(4))),
        ("another checksum", added(8, 1)),
        ("a checksum with its highest bit", lambda raw: replaced(8, bytes([raw[8] | 0x80]))(raw)),
        ("a negative queue", replaced(12, b"\xff" * 4)),
        ("a negative queue offset", replaced(20, b"\xff" * 8)),
        ("a negative place", replaced(28, b"\xff" * 8)),
        ("the next place", added(28, 1, 8)),
        ("the place before", added(28, -1, 8)),
        ("a place far away", replaced(28, b"\x01")),
        ("another body", replaced(88, b"A")),
        ("another last byte of the body", added(topic_at - 1, 1, 1)),
        ("a body of -1 bytes", replaced(84, b"\xff" * 4)),
        ("a shorter body", added(84, -1)),
        ("a longer body", added(84, 1)),
        ("a body beyond the record", replaced(84, b"\0\1\0\0")),
        ("an empty topic", replaced(length, b"\0")),
        ("a longer topic", replaced(length, b"\2")),
        ("a negative length of the topic", replaced(topic_at, b"\xff")),
        ("a dot", replaced(name_at, b".")),
        ("a slash", replaced(name_at, b"/")),
        ("a zero byte", replaced(name_at, b"\0")),
        ("a topic that is no text", replaced(name_at, b"\xff")),
        ("shorter properties", added(name_at + 1, -1, 2)),
        ("longer properties", added(name_at + 1, 1, 2)),
        ("far longer properties", added(name_at + 1, 256, 2)),
        ("no properties", replaced(name_at + 1, bytes(2))),
        ("properties that end in a zero byte", replaced(-1, b"\0")),
        ("properties that are no text", replaced(-2, b"\xff")),
        ("only zero bytes", lambda raw: bytes(len(raw))),
        ("only other bytes", lambda raw: b"\x5a" * len(raw)),
        ("the first half", lambda raw: raw[: len(raw) // 2]),
        ("a part without its begin", lambda raw: raw[9:]),
        ("another commit offset and text", exchanged(b"some bytes", b"SOME BYTES")),
    ]


def _checkpoint(position: int, entries: int) -> bytes:
    """Return a checkpoint that counts entries up to a position, and knows nothing of the index."""
    times = struct.pack(">qqq", 0, 0, 0).ljust(1024, b"\0")
    own = times + struct.pack(">qqqqq", 0, position, entries, -1, -1) + bytes(40)
    return own + zlib.crc32(own).to_bytes(4, "big")


LOG_OPTIONS: Final = {"store": _STORE, "property_filter": True}
WRITTEN_LOG: Final = Inspection("written log", written_log, LOG_OPTIONS)
DAMAGED_LOG: Final = Inspection("damaged log", damaged_log, LOG_OPTIONS)
SEARCHED_LOG: Final = Inspection(
    "searched log", searched_log, {"store": replace(STORE, commit_log_segment_bytes=_LONG_SEGMENT)}
)
VISITED_LOG: Final = Inspection(
    "visited log", visited_log,
    {"store": replace(STORE, commit_log_segment_bytes=_LONG_SEGMENT), "property_filter": True},
)  # fmt: skip
ALTERED_LOG: Final = Inspection("altered log", altered_log, LOG_OPTIONS)

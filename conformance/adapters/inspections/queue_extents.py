"""What every request shows of a queue: whole, after the deletion of its first messages, empty, and unknown.

See docs/reference/protocol/offsets.md, "Offset requests", pulling.md, and administration.md.
"""

import asyncio
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    commit,
    make_group,
    make_topic,
    pull,
    records,
    send,
)
from mqproof.conformance.answers.stored_record import StoredRecord, java_hash, read_records
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.disk import Space

_TOPIC: Final = "t"
_MESSAGES: Final = 40
_NO_OFFSET, _NO_MESSAGE, _MOVED, _ILLEGAL, _FULL = 22, 22, 21, 13, 14
_LOG: Final = "/store/commitlog"

_Queues = dict[int, list[StoredRecord]]


async def queue_extents(site: Site) -> None:
    await make_topic(site, _TOPIC, 2, readQueueNums=3)
    for group in ("g", "new"):
        await make_group(site, group)
    await make_topic(site, "old")
    for _ in range(3):
        await send(site, "old")
    for number in range(_MESSAGES):
        await _send(site, number)
    stored = {queue: await _every(site, queue) for queue in (0, 1)} | {2: []}
    await _compare(site, stored, {0: 0, 1: 0, 2: 0})
    await _far(site, stored)
    site.cluster.machines[MASTER].clock.skew_us += 80 * 3_600_000_000
    for number in range(_MESSAGES, _MESSAGES + 10):
        await _send(site, number)
    await site.ask("DELETE_EXPIRED_COMMITLOG")
    begin = min(int(path.rpartition("/")[2]) for path in site.cluster.machines[MASTER].disk.files(_LOG))
    first = {
        queue: next((at for at, each in enumerate(found) if each.commit_offset >= begin), 0)
        for queue, found in stored.items()
    }
    site.compare("whether messages are deleted, and others are left", True, 5 < first[0] < _MESSAGES // 2)
    for queue in (0, 1):
        stored[queue] += await _every(site, queue, len(stored[queue]))
    await _compare(site, stored, first)
    await _emptied(site)


async def _emptied(site: Site) -> None:
    """A queue whose messages are all deleted ends where it began before."""
    site.rule = chapters.OFFSET_REQUESTS
    for name, more, field, value in (
        ("GET_MIN_OFFSET", {}, "offset", "3"), ("GET_MAX_OFFSET", {}, "offset", "3"),
        ("GET_EARLIEST_MSG_STORETIME", {}, "timestamp", "-1"),
        ("SEARCH_OFFSET_BY_TIMESTAMP", {"timestamp": 0}, "offset", "3"),
        ("SEARCH_OFFSET_BY_TIMESTAMP", {"timestamp": 1 << 50}, "offset", "3"),
        ("SEARCH_OFFSET_BY_TIMESTAMP", {"timestamp": 1 << 50, "boundaryType": "LOWER"}, "offset", "3"),
        ("SEARCH_OFFSET_BY_TIMESTAMP", {"timestamp": 1 << 50, "boundaryType": "UPPER"}, "offset", "0"),
    ):  # fmt: skip
        given: dict[str, Any] = {"topic": "old", "queueId": 0, **more}
        answer = await site.ask(name, **given)
        site.compare(f"{name} {more} of an emptied queue", value, answer.fields.get(field))
    await site.ask("QUERY_CONSUMER_OFFSET", expects=_NO_OFFSET, consumerGroup="new", topic="old", queueId=0)
    await site.ask("QUERY_CONSUME_QUEUE", expects=1, topic="old", queueId=0, index=3, count=1)
    for offset, code in ((0, _MOVED), (2, _MOVED), (3, 19), (4, _MOVED)):
        answer = await pull(site, "old", offset, expects=code)
        site.compare("where to continue", "3", answer.fields.get("nextBeginOffset"))


async def _send(site: Site, number: int) -> None:
    await send(site, _TOPIC, f"{number:02}" * 450, number % 2, of={"TAGS": f"tag{number % 3}"})
    await asyncio.sleep(0.01 * (1 + number % 4))


async def _every(site: Site, queue: int, offset: int = 0) -> list[StoredRecord]:
    found: list[StoredRecord] = []
    while more := await records(site, _TOPIC, offset + len(found), queue):
        found += more
    return found


async def _compare(site: Site, stored: _Queues, first: dict[int, int]) -> None:
    for queue, found in stored.items():
        await _offsets(site, queue, found, first[queue])
        await _by_time(site, queue, [each.store_ms for each in found], first[queue])
        await _entries(site, queue, found, first[queue])
    await _stats(site, stored, first)
    for offsets in ((1, 1), (19, 15), (20, 20), (20, 0)):
        if all(first[queue] < offsets[queue] for queue in (0, 1)) or not any(first.values()):
            await _progress(site, stored, first, offsets)
    site.rule = chapters.OFFSET_REQUESTS
    for topic, queue in (("unknown", 0), (_TOPIC, 9), (_TOPIC, -1)):
        for name, field, value in (
            ("GET_MAX_OFFSET", "offset", "0"), ("GET_MIN_OFFSET", "offset", "0"),
            ("GET_EARLIEST_MSG_STORETIME", "timestamp", "-1"), ("SEARCH_OFFSET_BY_TIMESTAMP", "offset", "0"),
        ):  # fmt: skip
            answer = await site.ask(name, topic=topic, queueId=queue, timestamp=site.now_ms)
            site.compare(f"{name} of {topic} {queue}", value, answer.fields.get(field))


async def _offsets(site: Site, queue: int, found: list[StoredRecord], first: int) -> None:
    site.rule = chapters.OFFSET_REQUESTS
    asked: dict[str, Any] = {"topic": _TOPIC, "queueId": queue}
    earliest = found[first].store_ms if found else -1
    for name, field, value in (
        ("GET_MIN_OFFSET", "offset", first), ("GET_MAX_OFFSET", "offset", len(found)),
        ("GET_EARLIEST_MSG_STORETIME", "timestamp", earliest),
    ):  # fmt: skip
        answer = await site.ask(name, **asked)
        site.compare(f"{name} of queue {queue}", str(value), answer.fields.get(field))
    for is_zero, is_found in ((None, not first), (True, not first), (False, False)):
        answer = await site.ask(
            "QUERY_CONSUMER_OFFSET", expects=0 if is_found else _NO_OFFSET, consumerGroup="new", **asked,
            setZeroIfNotFound=is_zero,
        )  # fmt: skip
        site.compare(f"the offset of a new group in queue {queue}", "0" if is_found else None,
                     answer.fields.get("offset"))  # fmt: skip
    if first:
        for offset in (0, first - 1):
            answer = await pull(site, _TOPIC, offset, queue, expects=_MOVED)
            shown = tuple(answer.fields.get(name) for name in ("nextBeginOffset", "minOffset", "maxOffset"))
            site.compare("where to continue", (str(first), str(first), str(len(found))), shown)
    if found:
        answer = await pull(site, _TOPIC, first, queue, maxMsgNums=1)
        site.compare("the first message", found[first].raw, answer.body)


async def _by_time(site: Site, queue: int, times: list[int], first: int) -> None:
    """Search at the times of the first and last messages, of some between, and beside them."""
    site.rule = chapters.OFFSET_REQUESTS
    left = range(first, len(times))
    near = {*left[:3], *left[-3:], *left[8:10]}
    asked = {0, 1 << 50, *(times[at] + shift for at in near for shift in (-1, 0, 1))}
    asked |= {(times[at] + times[at + 1]) // 2 + shift for at in near if at + 1 in left for shift in (0, 1)}
    for time_ms in sorted(asked):
        later = [at for at in left if times[at] >= time_ms]
        before = [at for at in left if times[at] <= time_ms]
        nearest = min(left, key=lambda at: abs(times[at] - time_ms)) if left else 0
        for boundary, expected in (
            (None, nearest), ("LOWER", [*later, len(times)][0]), ("UPPER", [0, *before][-1])
        ):  # fmt: skip
            answer = await site.ask(
                "SEARCH_OFFSET_BY_TIMESTAMP", topic=_TOPIC, queueId=queue, timestamp=time_ms,
                boundaryType=boundary,
            )  # fmt: skip
            what = f"the offset at {time_ms} in queue {queue}, {boundary}"
            site.compare(what, str(expected), answer.fields.get("offset"))


async def _entries(site: Site, queue: int, found: list[StoredRecord], first: int) -> None:
    site.rule = chapters.STATISTICS_OF_A_BROKER
    asked: dict[str, Any] = {"topic": _TOPIC, "queueId": queue}
    if not found:
        await site.ask("QUERY_CONSUME_QUEUE", expects=1, **asked, index=0, count=1)
        return
    for index in (first - 1, len(found)):
        answer = await site.ask("QUERY_CONSUME_QUEUE", **asked, index=index, count=1)
        site.compare(f"the answer at {index}", (b"", True), (answer.body, bool(answer.remark)))
    answer = await site.ask("QUERY_CONSUME_QUEUE", **asked, index=first, count=99, consumerGroup="new")
    of_none = await site.ask("QUERY_CONSUME_QUEUE", **asked, index=first, count=1)
    filter_data = java_values.read(of_none.body)["filterData"]
    site.compare("the subscription of no group", "@t is not online", filter_data)
    body = java_values.read(answer.body)
    shown = [(each["physicOffset"], each["physicSize"], each["tagsCode"]) for each in body["queueData"]]
    expected = [
        (each.commit_offset, len(each.raw), java_hash(each.properties["TAGS"])) for each in found[first:]
    ]
    site.compare(f"the entries of queue {queue}", expected, shown)
    site.compare("the extent", (first, len(found)), (body["minQueueIndex"], body["maxQueueIndex"]))
    site.compare("the subscription", (None, "new@t is not online"), (
        body.get("subscriptionData"), body["filterData"]))  # fmt: skip


async def _stats(site: Site, stored: _Queues, first: dict[int, int]) -> None:
    """The write queues of a topic, with their extents."""
    site.rule = chapters.ADMINISTRATION_OF_OFFSETS
    body = java_values.read((await site.ask("GET_TOPIC_STATS_INFO", topic=_TOPIC)).body)
    shown = {dict(key)["queueId"]: each for key, each in body["offsetTable"].items()}
    site.compare("the extents of the topic", {
        queue: {
            "minOffset": first[queue], "maxOffset": len(stored[queue]),
            "lastUpdateTimestamp": stored[queue][-1].store_ms,
        }
        for queue in (0, 1)
    }, shown)  # fmt: skip
    await site.ask("GET_TOPIC_STATS_INFO", topic="unknown", expects=17)
    await make_topic(site, "empty")
    body = java_values.read((await site.ask("GET_TOPIC_STATS_INFO", topic="empty")).body)
    (shown,) = body["offsetTable"].values()
    await make_topic(site, f"new{first[0]}")
    await send(site, f"new{first[0]}")
    body_of_new = (await site.ask("QUERY_CONSUME_TIME_SPAN", topic=f"new{first[0]}", group="new")).body
    (span,) = java_values.read(body_of_new)["consumeTimeSpanSet"]
    site.compare("the delay of a message of now", 0, span["delayTime"])
    site.compare("an empty queue", {"minOffset": 0, "maxOffset": 0, "lastUpdateTimestamp": 0}, shown)


async def _progress(site: Site, stored: _Queues, first: dict[int, int], offsets: tuple[int, int]) -> None:
    """The progress of a group that has committed these offsets, and the times of its messages."""
    site.rule = chapters.ADMINISTRATION_OF_OFFSETS
    for queue, offset in enumerate(offsets):
        await commit(site, "new", _TOPIC, queue, offset)
        for is_zero in (None, True, False):
            answer = await site.ask(
                "QUERY_CONSUMER_OFFSET", consumerGroup="new", topic=_TOPIC, queueId=queue,
                setZeroIfNotFound=is_zero,
            )  # fmt: skip
            site.compare("the committed offset", str(offset), answer.fields.get("offset"))
    body = java_values.read((await site.ask("GET_CONSUME_STATS", consumerGroup="new", topic=_TOPIC)).body)
    shown = {dict(key)["queueId"]: each for key, each in body["offsetTable"].items()}
    expected = {}
    for queue, offset in enumerate((*offsets, 0)):
        last = stored[queue][offset - 1].store_ms if offset > first[queue] else 0
        expected[queue] = {"brokerOffset": len(stored[queue]), "consumerOffset": offset,
                           "lastTimestamp": last, "pullOffset": offset}  # fmt: skip
    site.compare(f"the progress with {offsets}", expected, shown)
    body = java_values.read((await site.ask("QUERY_CONSUME_TIME_SPAN", topic=_TOPIC, group="new")).body)
    spans = {span["messageQueue"]["queueId"]: span for span in body["consumeTimeSpanSet"]}
    for queue, offset in enumerate((*offsets, 0)):
        times = [each.store_ms for each in stored[queue]]
        span = spans.pop(queue)
        shown_times = (span["minTimeStamp"], span["maxTimeStamp"])
        ends = (times[first[queue]], times[-1]) if times else (-1, -1)
        site.compare(f"the times of queue {queue}", ends, shown_times)
        waits = site.now_ms - times[offset] if first[queue] <= offset < len(times) else 0
        site.compare(f"the delay of queue {queue} at {offset}", waits, span["delayTime"])
        if offset > first[queue]:
            site.compare(f"the last consumed of queue {queue}", times[offset - 1], span["consumeTimeStamp"])
    site.compare("further queues", {}, spans)
    await site.ask("CLONE_GROUP_OFFSET", srcGroup="g", destGroup="new", topic=_TOPIC)
    await site.ask("DELETE_SUBSCRIPTIONGROUP", groupName="new", removeOffset=True)
    await make_group(site, "new")


async def _far(site: Site, stored: _Queues) -> None:
    """A message is far if more bytes follow than fit into the memory that the setting names."""
    await site.ask("UPDATE_BROKER_CONFIG", "accessMessageInMemoryMaxRatio=1")
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    end = int(table["commitLogMaxOffset"])
    for queue, offset in ((0, 0), (1, 0), (1, 7)):
        for less in (0, 1):
            machine = site.cluster.machines[MASTER]
            machine.memory_bytes = (end - stored[queue][offset].commit_offset - less) * 100
            await site.restart()
            await site.ask("UPDATE_BROKER_CONFIG", "accessMessageInMemoryMaxRatio=1")
            site.rule = chapters.PULL_REQUESTS
            answer = await pull(site, _TOPIC, offset, queue)
            count = len(stored[queue]) - offset
            site.compare(f"the messages from {offset} on, {less} byte too far", 8 if less else count,
                         len(list(read_records(answer.body))))  # fmt: skip
            if not offset:
                site.rule = chapters.OFFSET_REQUESTS
                await site.ask(
                    "QUERY_CONSUMER_OFFSET", expects=_NO_OFFSET if less else 0, consumerGroup="new",
                    topic=_TOPIC, queueId=queue,
                )  # fmt: skip
    site.cluster.machines[MASTER].memory_bytes = 16 << 30
    await site.restart()


async def many_messages(site: Site) -> None:
    """As many messages as one batch, one view of a queue, and one query by key may have, and one more."""
    await make_topic(site, _TOPIC)
    await _largest_batch(site)
    # A watch of this connection would remember every message.
    line = await RawClient(site.broker).open(site.cluster.internet.machine(HOST))
    parts = batch([(b"", 0, {})]) * _QUEUE
    await send(site, _TOPIC, parts, name="SEND_BATCH_MESSAGE", by=line)
    site.rule = chapters.STATISTICS_OF_A_BROKER
    for index, count, found in (
        (0, 2000, _ENTRIES_MAX), (0, _ENTRIES_MAX, _ENTRIES_MAX), (_QUEUE - 10, 2000, 10), (0, 3, 3),
        (_QUEUE - _ENTRIES_MAX, 2000, _ENTRIES_MAX), (1, 2000, _ENTRIES_MAX),
    ):  # fmt: skip
        answer = await site.ask("QUERY_CONSUME_QUEUE", topic=_TOPIC, queueId=0, index=index, count=count)
        entries = java_values.read(answer.body)["queueData"]
        site.compare(f"the entries from {index}, at most {count}", found, len(entries))
    await _by_key(site)
    await _large(site)


async def _largest_batch(site: Site) -> None:
    """A full disk refuses a batch that another disk would store; one that is too large is refused before."""
    site.rule = chapters.BATCHES
    disk, room = site.cluster.machines[MASTER].disk, site.cluster.machines[MASTER].disk.room
    line = await RawClient(site.broker).open(site.cluster.internet.machine(HOST))
    disk.room = Space(room.total_bytes, 1)
    await asyncio.sleep(30)
    for count, expects in ((_BATCH_MAX, _FULL), (_BATCH_MAX + 1, _ILLEGAL)):
        parts = batch([(b"", 0, {})]) * count
        await send(site, _TOPIC, parts, name="SEND_BATCH_MESSAGE", expects=expects, by=line)
    disk.room = room
    await asyncio.sleep(30)


async def _by_key(site: Site) -> None:
    site.rule = chapters.MESSAGE_QUERIES
    await make_topic(site, "keys")
    values = {"KEYS": "other k", "UNIQ_KEY": "u"}
    for start in range(0, 70, 10):
        await send(site, "keys", batch([(f"{start + at}".encode(), 0, values) for at in range(10)]),
                   name="SEND_BATCH_MESSAGE")  # fmt: skip
        await asyncio.sleep(0.01)
    stored = [
        *await records(site, "keys"),
        *await records(site, "keys", 32),
        *await records(site, "keys", 64),
    ]
    times = [each.store_ms for each in stored]
    for key, unique, most, period, found in (
        ("k", None, 100, (0, 1 << 60), range(6, 70)), ("k", None, 65, (0, 1 << 60), range(6, 70)),
        ("k", None, 64, (0, 1 << 60), range(6, 70)), ("k", None, 63, (0, 1 << 60), range(7, 70)),
        ("k", False, 1, (0, 1 << 60), range(69, 70)), ("k", None, 0, (0, 1 << 60), range(0)),
        ("k", None, -1, (0, 1 << 60), range(0)), ("u", True, 1, (0, 1 << 60), range(38, 70)),
        ("u", None, 40, (0, 1 << 60), range(30, 70)), ("k", None, 64, (times[10], times[39]), range(10, 40)),
        ("k", None, 64, (times[10] + 1, times[39] - 1), range(20, 30)), ("none", None, 9, (0, 1), range(0)),
    ):  # fmt: skip
        asked = {"topic": "keys", "key": key, "maxNum": most, "beginTimestamp": period[0],
                 "endTimestamp": period[1], "_UNIQUE_KEY_QUERY": unique}  # fmt: skip
        answer = await site.ask("QUERY_MESSAGE", expects=0 if found else _NO_MESSAGE, **asked)  # type: ignore[arg-type]  # fields
        bodies = [int(each.body) for each in read_records(answer.body)]
        site.compare(f"the messages for {asked}", list(found), bodies)
        end = tuple(answer.fields.get(f"indexLastUpdate{name}") for name in ("Timestamp", "Phyoffset"))
        site.compare("the end of the index", (str(times[-1]), str(stored[-1].commit_offset)), end)


async def _large(site: Site) -> None:
    """An answer to a query has at most 8 MiB, but at least one message."""
    site.rule = chapters.MESSAGE_QUERIES
    await site.ask("UPDATE_BROKER_CONFIG", f"maxMessageSize={9 << 20}")
    await make_topic(site, "large")
    values = {"KEYS": "small"}
    await send(site, "large", of=values)
    (small,) = await records(site, "large")
    more = len(small.raw) - len(small.body)
    half = (4 << 20) - more
    for key, sizes, found in (
        ("exact", (half, half), 2), ("above", (half, half + 1), 1), ("alone", (100, 9 << 20), 1),
    ):  # fmt: skip
        for size in sizes:
            await send(site, "large", b"x" * size, of={"KEYS": key})
        answer = await site.ask("QUERY_MESSAGE", topic="large", key=key, maxNum=9, beginTimestamp=0,
                                endTimestamp=1 << 60)  # fmt: skip
        lengths = [len(each.body) for each in read_records(answer.body)]
        site.compare(f"the sizes of the messages with key {key}", list(sizes[-found:]), lengths)


_BATCH_MAX: Final = 16_384
_ENTRIES_MAX: Final = 1024
_QUEUE: Final = 1100
_LARGE: Final = replace(STORE, commit_log_segment_bytes=1 << 24, consume_queue_segment_bytes=40_000)
QUEUE_EXTENTS: Final = Inspection("queue extents", queue_extents)
MANY_MESSAGES: Final = Inspection("many messages", many_messages, {"store": _LARGE})

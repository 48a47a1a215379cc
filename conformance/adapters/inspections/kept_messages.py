"""The messages that a broker has to keep, and everything that its clients see of them."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from mqproof.conformance.adapters.inspections.site import Site, written
from mqproof.conformance.adapters.inspections.traffic import make_group, make_topic, pull, send
from mqproof.conformance.answers.stored_record import StoredRecord, read_records

Queue = tuple[str, int]
CLUSTER: Final = "c" * 120
_LATE_MS: Final = 1 << 50
LONG: Final = f"{CLUSTER}_REPLY_TOPIC"
"""A topic whose name is longer than that of any topic that a client creates: its length has two bytes."""
QUEUES: Final[tuple[Queue, ...]] = (("plain", 0), ("plain", 1), ("single", 0), (LONG, 0))
_FLUSHED_S: Final = 12
"""Longer than the pause between two thorough flushes, and between two checkpoints."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Records in the order of the log."""

    records: tuple[StoredRecord, ...]
    first: Mapping[Queue, int]
    """The lowest offset of each queue."""
    end: Mapping[Queue, int]
    """The offset after the last message of each queue."""

    def counted(self, topic: str, queue: int) -> list[StoredRecord]:
        return [each for each in self.records if (each.topic, each.queue_id) == (topic, queue)]

    def without(self, lost: Collection[StoredRecord], cut_from: int | None = None) -> "Kept":
        """Return what is left if these records are lost, and the log ends at a commit offset."""
        kept = tuple(each for each in self.records if each not in lost)
        if cut_from is None:
            return replace(self, records=kept)
        end = dict(self.end)
        for each in reversed(self.records):
            if each.commit_offset >= cut_from:
                end[each.topic, each.queue_id] = each.queue_offset
        return Kept(tuple(each for each in kept if each.commit_offset < cut_from), self.first, end)

    def from_place(self, begin: int) -> "Kept":
        """Return what is left if the log begins at a commit offset."""
        kept = tuple(each for each in self.records if each.commit_offset >= begin)
        first = dict(self.end)
        for each in reversed(kept):
            first[each.topic, each.queue_id] = each.queue_offset
        return Kept(kept, first, self.end)


@dataclass(frozen=True, slots=True)
class Seen:
    """What clients see of a broker's messages."""

    pulled: Mapping[Queue, list[bytes]]
    first: Mapping[Queue, int]
    end: Mapping[Queue, int]
    tagged: Mapping[Queue, list[int]]
    """The offsets of the messages with one of the tags."""
    by_key: Mapping[str, list[int]]
    by_id: Mapping[int, bytes]


async def flushed() -> None:
    """Wait until everything is durable, and a checkpoint says so."""
    await asyncio.sleep(_FLUSHED_S)


async def fill(site: Site) -> Kept:
    """Send messages of several forms to each queue, so that each kind of file is there several times."""
    await make_group(site, "g")
    for topic, queues in (("plain", 2), ("single", 1)):
        await make_topic(site, topic, queues)
    await send(site, "single", "only", of={"KEYS": "single one"})
    for number in range(30):
        tag = {"TAGS": f"tag{number % 3}"} if number % 4 else {}
        values = {"a": str(number), **tag, "KEYS": f"k{number} even{number % 2}"}
        await send(site, "plain", f"{number:02}" * 9 * number, number % 2, of=values)
        if not number % 6:
            await send(site, LONG, b"\0" * number)
    for end in (8, 12):
        await _transaction(site, end)
    await send(site, "plain", "later", of={"DELAY": "1"})
    await flushed()
    return await kept_now(site)


async def _transaction(site: Site, end: int) -> None:
    half = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": f"u{end}"}
    kept = await send(site, "plain", f"half {end}", f=4, of=half)
    await site.ask(
        "END_TRANSACTION", producerGroup="p", tranStateTableOffset=kept.fields["queueOffset"],
        commitLogOffset=int(kept.fields["msgId"][-16:], 16), commitOrRollback=end, msgId=f"u{end}",
        transactionId=f"u{end}", fromTransactionCheck=False,
    )  # fmt: skip


async def kept_now(site: Site) -> Kept:
    """Return what the broker has now."""
    shown = await seen(site)
    records = (record for each in shown.pulled.values() for raw in each for record in read_records(raw))
    return Kept(tuple(sorted(records, key=lambda each: each.commit_offset)), shown.first, shown.end)


async def seen(site: Site) -> Seen:
    """Read every message by its queue, its keys and its place."""
    try:
        return await _seen(site)
    finally:
        forgive_lost(site)


def forgive_lost(site: Site) -> None:
    """Drop what the rule for whole logs found: here records are lost on purpose, and each one is stated."""
    site.watch.wrong = [each for each in site.watch.wrong if "is left out" not in each.text]


async def _seen(site: Site) -> Seen:
    pulled = {queue: await _pulled(site, queue) for queue in QUEUES}
    first = {queue: await _offset(site, "GET_MIN_OFFSET", queue) for queue in QUEUES}
    end = {queue: await _offset(site, "GET_MAX_OFFSET", queue) for queue in QUEUES}
    for topic, queue_id in QUEUES:
        asked = {"topic": topic, "queueId": queue_id, "timestamp": _LATE_MS}
        answer = await site.ask("SEARCH_OFFSET_BY_TIMESTAMP", **asked)  # type: ignore[arg-type]  # fields
        last = str(max(first[topic, queue_id], end[topic, queue_id] - 1))
        site.compare(f"the offset of {topic} {queue_id} by a late time", last, answer.fields.get("offset"))
    tagged = {queue: _offsets(await _pulled(site, queue, _TAG)) for queue in QUEUES}
    by_key = {key: await _found(site, topic, key) for topic, key in _KEYS}
    by_id = {
        record.commit_offset: (await site.ask("VIEW_MESSAGE_BY_ID", offset=record.commit_offset)).body
        for each in pulled.values()
        for raw in each[::_VIEWED]
        for record in read_records(raw)
    }
    return Seen(pulled, first, end, tagged, by_key, by_id)


def same(site: Site, name: str, expected: Kept, observed: Seen) -> None:
    """Compare everything that clients see."""
    for queue in QUEUES:
        whole = [each.raw for each in expected.counted(*queue)]
        offsets = [each.queue_offset for each in expected.counted(*queue)]
        shown = _offsets(observed.pulled[queue])
        site.compare(f"{name}: the messages of {queue}", offsets, shown)
        site.compare(
            f"{name}: whether the messages of {queue} are whole", True, whole == observed.pulled[queue]
        )
        tagged = [
            each.queue_offset for each in expected.counted(*queue) if each.properties.get("TAGS") == _TAG
        ]
        site.compare(f"{name}: the messages of {queue} with {_TAG}", tagged, observed.tagged[queue])
        site.compare(f"{name}: the first offset of {queue}", expected.first[queue], observed.first[queue])
        site.compare(f"{name}: the next offset of {queue}", expected.end[queue], observed.end[queue])
    for topic, key in _KEYS:
        places = [
            each.commit_offset
            for each in expected.records
            if each.topic == topic and key in each.properties.get("KEYS", "").split(" ")
        ]
        site.compare(f"{name}: the messages with key {key}", places, observed.by_key[key])
    whole_by_id = {each.commit_offset: each.raw for each in expected.records}
    for place, data in observed.by_id.items():
        site.compare(f"{name}: whether the message at {place} is whole", True, whole_by_id.get(place) == data)


async def sent_after(site: Site, name: str, left: Kept) -> Kept:
    """Send a message to each queue; return what the broker has to keep then."""
    records, end = list(left.records), dict(left.end)
    for topic, queue in QUEUES:
        answer = await send(site, topic, "later", queue, of={"KEYS": "later"})
        offset = str(left.end[topic, queue])
        site.compare(f"{name}: the offset of a later message", offset, answer.fields.get("queueOffset"))
        end[topic, queue] += 1
        found = list(read_records((await pull(site, topic, int(offset), queue)).body))
        site.compare(f"{name}: a later message", [b"later"], [each.body for each in found])
        records += found
    return Kept(tuple(records), left.first, end)


_KEYS: Final = (
    ("plain", "k3"), ("plain", "k16"), ("plain", "even1"), ("single", "one"), ("plain", "later"),
    ("plain", "absent"),
)  # fmt: skip


def _offsets(raw: Iterable[bytes]) -> list[int]:
    return [record.queue_offset for each in raw for record in read_records(each)]


async def _pulled(site: Site, queue: Queue, tag: str = "*") -> list[bytes]:
    """Return every record of a queue with a tag; pull until the end."""
    topic, number = queue
    offset, found = await _offset(site, "GET_MIN_OFFSET", queue), []
    for _ in range(100):
        answer = await pull(site, topic, offset, number, expects=None, subscription=tag)
        if answer.code == 0:
            found += [each.raw for each in read_records(answer.body)]
        elif answer.code not in _AGAIN:
            return found
        offset = int(answer.fields["nextBeginOffset"])
    site.report(f"the pulls of {queue} do not end")
    return found


_TAG: Final = "tag1"
_AGAIN: Final = (20,)
_VIEWED: Final = 5
"""One of so many messages of a queue is also read by its place."""


async def _offset(site: Site, name: str, queue: Queue) -> int:
    answer = await site.ask(name, topic=queue[0], queueId=queue[1])
    return int(answer.fields["offset"])


async def _found(site: Site, topic: str, key: str) -> list[int]:
    answer = await site.ask(
        "QUERY_MESSAGE", expects=None, topic=topic, key=key, maxNum=64, beginTimestamp=0,
        endTimestamp=written(1 << 60),
    )  # fmt: skip
    return sorted(each.commit_offset for each in read_records(answer.body)) if not answer.code else []
